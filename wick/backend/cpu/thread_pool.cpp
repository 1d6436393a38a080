#include "wick/backend/cpu/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

#include "wick/base/error.h"

namespace wick::cpu {
namespace {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Long enough to bridge the serial stretches between two regions of a model, short enough that an
// idle process stops using its cores at once.
constexpr auto kSpin = std::chrono::microseconds(200);

// A region started from inside a region, or while another host thread's is under way, runs inline.
thread_local bool inside_region = false;

/// CPU quota of the process's control group in whole threads (rounded up), or a large number.
int cgroup_limit() {
  constexpr int kNone = 1 << 20;
  // Version 2: the quota of the group itself and of each of its parents counts.
  std::ifstream self("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(self, line)) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  double limit = kNone;
  for (std::string dir = path;; dir = dir.substr(0, dir.rfind('/'))) {
    std::ifstream file("/sys/fs/cgroup" + dir + "/cpu.max");
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0) {
      limit = std::min(limit, std::strtod(quota.c_str(), nullptr) / period);
    }
    if (dir.empty() || dir == "/") break;
  }
  // Version 1.
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) {
    limit = std::min(limit, quota / period);
  }
  return std::max(1, static_cast<int>(std::ceil(limit)));
}

int usable_threads() {
  cpu_set_t set;
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  return std::clamp(std::min(cores, cgroup_limit()), 1, 1024);
}

}  // namespace

ThreadPool& ThreadPool::global() {
  static ThreadPool pool;
  return pool;
}

ThreadPool::ThreadPool() : threads_(usable_threads()) {}

ThreadPool::~ThreadPool() { stop_workers(); }

void ThreadPool::set_threads(int count) {
  if (count < 1 || count > 1024) {
    throw Error("threads", "count out of range", fmt::format("{}", count), "need 1 to 1024");
  }
  std::lock_guard lock(region_);
  if (count == threads()) return;
  stop_workers();
  threads_ = count;
}

void ThreadPool::start_workers(int count) {
  stopping_ = false;
  const uint32_t seen = generation_.load(std::memory_order_relaxed);
  workers_.reserve(static_cast<size_t>(count));
  for (int i = 1; i <= count; ++i) workers_.emplace_back([this, i, seen] { work(i, seen); });
}

void ThreadPool::stop_workers() {
  {
    std::lock_guard lock(sleep_mutex_);
    stopping_ = true;
    parts_ = 0;
    pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::work(int worker, uint32_t seen) {
  inside_region = true;
  for (;;) {
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    int tries = 0;
    while (generation_.load(std::memory_order_acquire) == seen) {
      relax();
      if (++tries % 64 != 0 || std::chrono::steady_clock::now() < deadline) continue;
      std::unique_lock lock(sleep_mutex_);
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_seq_cst) != seen; });
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
    }
    ++seen;
    if (stopping_) return;
    if (worker < parts_) call_(body_, worker);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::run_parts(int parts, Call call, void* body) {
  if (parts <= 1 || inside_region || !region_.try_lock()) {
    for (int part = 0; part < parts; ++part) call(body, part);
    return;
  }
  std::lock_guard lock(region_, std::adopt_lock);
  if (workers_.empty()) start_workers(threads() - 1);
  call_ = call;
  body_ = body;
  parts_ = parts;
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) {
    // The lock orders this after a worker that is between its check and its wait.
    { std::lock_guard sleep_lock(sleep_mutex_); }
    wake_.notify_all();
  }
  inside_region = true;
  const int here = static_cast<int>(workers_.size()) + 1;
  call(body, 0);
  // set_threads may have lowered the count since the caller chose its parts.
  for (int part = here; part < parts; ++part) call(body, part);
  inside_region = false;
  while (pending_.load(std::memory_order_acquire) > 0) relax();
}

}  // namespace wick::cpu
