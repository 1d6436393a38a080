#include "wick/backend/cpu/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "wick/base/error.h"

namespace wick::cpu {
namespace {

// Longer than the serial code between two regions of a model, and short enough that an idle process
// soon stops using its cores.
constexpr auto kSpin = std::chrono::microseconds(200);
// Polls after which the owner of a region, waiting for the last worker, yields its core: by then
// the worker has most likely lost its own.
constexpr int kOwnerSpins = 10000;

// Whether this thread runs a part of a region. A region that it starts then runs inline.
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
    if (dir.rfind('/') == std::string::npos || dir == "/") break;
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

/// Blocks the signals of this thread, except those of its own faults, until destruction.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// Threads claim the parts of a region. A worker that is late, because it slept or its core is busy
// with another process, finds no part left, and no thread waits for it. `ticket` holds the
// region's number in its upper half and the number of unclaimed parts in its lower half, so that a
// claim fails when either has changed.
struct ThreadPool::Crew {
  std::mutex region;  // held by the host thread whose region uses the workers
  std::vector<std::thread> workers;
  std::atomic<bool> stopping{false};
  // The region that runs. Its owner writes this before it publishes `ticket`; others read it after
  // a claim, which keeps the region open.
  Call call = nullptr;
  void* body = nullptr;
  alignas(64) std::atomic<uint64_t> ticket{0};
  // Parts that aren't done yet, without the owner's first one.
  alignas(64) std::atomic<int> unfinished{0};
  alignas(64) std::atomic<int> sleeping{0};
  std::atomic<bool> orphaned{false};  // in a child of fork: the workers stayed with the parent
  std::mutex sleep_mutex;
  std::condition_variable wake;
  std::mutex error_mutex;
  std::exception_ptr error;  // thrown by a worker's part

  uint32_t number() const {
    return static_cast<uint32_t>(ticket.load(std::memory_order_seq_cst) >> 32);
  }

  /// Opens the next region with `parts` parts to claim.
  void publish(int parts) {
    const uint64_t next = static_cast<uint64_t>(number() + 1u) << 32;
    ticket.store(next | static_cast<uint32_t>(parts), std::memory_order_seq_cst);
  }

  /// Claims a part of region `number`, the highest first; 0 if none is left.
  int claim(uint32_t number) {
    uint64_t now = ticket.load(std::memory_order_acquire);
    while (static_cast<uint32_t>(now >> 32) == number && static_cast<uint32_t>(now) > 0) {
      if (ticket.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel)) {
        return static_cast<int>(static_cast<uint32_t>(now));
      }
    }
    return 0;
  }
};

ThreadPool& ThreadPool::global() {
  static ThreadPool pool;
  return pool;
}

ThreadPool::ThreadPool() : threads_(usable_threads()), crew_(new Crew) {
  // The old crew is leaked: its threads, and the locks that they hold, stayed in the parent.
  pthread_atfork(nullptr, nullptr, [] {
    ThreadPool& pool = global();
    pool.crew_.load()->orphaned.store(true);
    pool.crew_.store(new Crew);
  });
}

ThreadPool::~ThreadPool() {
  // A host thread may outlive the pool and be in a region, so the crew itself isn't freed.
  Crew& crew = *crew_.load();
  if (inside_region || !crew.region.try_lock()) return;
  std::lock_guard lock(crew.region, std::adopt_lock);
  stop_workers(crew);
}

void ThreadPool::set_threads(int count) {
  if (count < 1 || count > 1024) {
    throw Error("threads", "count out of range", fmt::format("{}", count), "need 1 to 1024");
  }
  if (inside_region) {
    throw Error(ErrorKind::runtime, "threads", "count changed inside a parallel region");
  }
  Crew& crew = *crew_.load();
  std::lock_guard lock(crew.region);
  if (count == threads()) return;
  stop_workers(crew);
  threads_ = count;
}

void ThreadPool::start_workers(Crew& crew, int count) {
  crew.stopping = false;
  const uint32_t seen = crew.number();
  crew.workers.reserve(static_cast<size_t>(count));
  const NoSignals blocked;  // workers inherit the mask: signals belong to the program's own threads
  for (int i = 1; i <= count; ++i) {
    try {
      crew.workers.emplace_back([&crew, seen] { work(crew, seen); });
    } catch (const std::system_error&) {
      threads_ = i;  // the system starts no more threads: use those that exist
      return;
    }
  }
}

void ThreadPool::stop_workers(Crew& crew) {
  {
    std::lock_guard lock(crew.sleep_mutex);
    crew.stopping = true;
    crew.publish(0);
  }
  crew.wake.notify_all();
  for (std::thread& worker : crew.workers) worker.join();
  crew.workers.clear();
}

void ThreadPool::work(Crew& crew, uint32_t seen) {
  inside_region = true;
  for (;;) {
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    int tries = 0;
    while (crew.number() == seen) {
      relax();
      if (++tries % 64 != 0 || std::chrono::steady_clock::now() < deadline) continue;
      std::unique_lock lock(crew.sleep_mutex);
      crew.sleeping.fetch_add(1, std::memory_order_seq_cst);
      crew.wake.wait(lock, [&] { return crew.number() != seen; });
      crew.sleeping.fetch_sub(1, std::memory_order_relaxed);
    }
    // This worker may have missed regions, whose parts other threads did.
    seen = crew.number();
    while (const int part = crew.claim(seen)) {
      try {
        crew.call(crew.body, part);
      } catch (...) {
        std::lock_guard lock(crew.error_mutex);
        crew.error = std::current_exception();
      }
      // The part forked, and this is the child process, where no thread waits for the part.
      if (crew.orphaned.load(std::memory_order_relaxed)) _exit(2);
      crew.unfinished.fetch_sub(1, std::memory_order_release);
    }
    if (crew.stopping.load(std::memory_order_acquire)) return;
  }
}

void ThreadPool::run_parts(int parts, Call call, void* body) {
  Crew& crew = *crew_.load(std::memory_order_relaxed);
  if (parts <= 1 || inside_region || threads() <= 1 || !crew.region.try_lock()) {
    for (int part = 0; part < parts; ++part) call(body, part);
    return;
  }
  std::lock_guard lock(crew.region, std::adopt_lock);
  if (crew.workers.empty()) start_workers(crew, threads() - 1);
  crew.call = call;
  crew.body = body;
  crew.unfinished.store(parts - 1, std::memory_order_relaxed);
  crew.publish(parts - 1);
  if (crew.sleeping.load(std::memory_order_seq_cst) > 0) {
    // The lock waits for a worker that is between its check and its wait.
    { std::lock_guard sleep_lock(crew.sleep_mutex); }
    crew.wake.notify_all();
  }
  std::exception_ptr error;
  inside_region = true;
  const uint32_t number = crew.number();
  for (int part = 0;;) {
    try {
      call(body, part);
    } catch (...) {
      error = std::current_exception();
    }
    if (part > 0) crew.unfinished.fetch_sub(1, std::memory_order_release);
    part = crew.claim(number);
    if (part == 0) break;
  }
  inside_region = false;
  // Even after an exception: workers still use `body`.
  for (int tries = 0; crew.unfinished.load(std::memory_order_acquire) > 0;) {
    if (crew.orphaned.load(std::memory_order_relaxed)) {
      throw Error(ErrorKind::runtime, "threads", "forked inside a parallel region", "",
                  "the child has only the thread that forked");
    }
    if (tries < kOwnerSpins) {
      ++tries;
      relax();
    } else {
      std::this_thread::yield();
    }
  }
  if (crew.error) {
    if (!error) error = crew.error;
    crew.error = nullptr;
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace wick::cpu
