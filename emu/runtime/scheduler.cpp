#include "emu/runtime/scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <random>

#include "emu/exec/fault.h"

namespace emu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kLongTurn = 100000, kShortTurn = 1000;  // backward branches of a wave
constexpr int kPatience = 2;  // turns in which a workgroup may pause before further ones begin
// Memory of the workgroups that one thread keeps active.
constexpr size_t kRoomBytes = size_t{1} << 31;
constexpr uint64_t kShuffled = 1 << 22;  // larger grids only start at a random workgroup

}  // namespace

struct Scheduler::Job {
  Launch& launch;
  const uint64_t count;
  Clock::time_point deadline;
  bool limited = false;
  std::vector<uint32_t> order;  // the order under a seed
  const uint64_t batch;
  alignas(64) std::atomic<uint64_t> next{0};  // on its own cache line, since all threads write it
  alignas(64) std::atomic<Outcome> outcome{Outcome::done};
  int helpers = 0;  // active helpers, guarded by the scheduler's mutex

  Job(Launch& l, int threads)
      : launch(l),
        count(l.group_count()),
        batch(std::clamp<uint64_t>(count / (64 * static_cast<uint64_t>(threads)), 1, 64)) {}

  /// Takes the next workgroups for one thread. In a large grid it takes several, so that threads
  /// seldom contend.
  bool take(uint64_t& first, uint64_t& last) {
    if (next.load(std::memory_order_relaxed) >= count) return false;
    first = next.fetch_add(batch, std::memory_order_relaxed);
    if (first >= count) return false;
    last = std::min(first + batch, count);
    return true;
  }
  uint64_t group(uint64_t index) const { return order.empty() ? index : order[index]; }

  void shuffle(uint64_t seed) {
    if (count > kShuffled) return;
    order.resize(count);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  }
};

Scheduler::Scheduler(int threads, double timeout, uint64_t seed)
    : helpers_wanted_(threads - 1), timeout_(timeout), seed_(seed) {}

void Scheduler::fault(Job& job, const std::string& what) {
  std::lock_guard lock(job.launch.mutex);
  if (job.launch.error.empty()) job.launch.error = what;
  job.launch.stop = true;
}

namespace {

/// The workgroups of one launch that one thread runs.
class Share {
 public:
  Share(Launch& launch, size_t limit) : launch_(launch), limit_(limit) {}

  /// Takes workgroups and runs them until none is left. `expired` is called from time to time.
  template <class Take, class Expired>
  Outcome run(const Take& take, const Expired& expired);

  FaultGuard guard;

 private:
  struct Slot {
    std::unique_ptr<Worker> worker;
    int pauses = 0;
  };

  Worker::Progress turn(Slot& slot, int64_t budget);

  Launch& launch_;
  const size_t limit_;
  std::vector<Slot> slots_;
};

/// Mustn't contain objects with destructors: a fault leaves this function by a jump.
Worker::Progress Share::turn(Slot& slot, int64_t budget) {
  Worker* worker = slot.worker.get();
  if (sigsetjmp(guard.back, 0) != 0) return Worker::Progress::failed;
  guard_faults(&guard);
  const Worker::Progress progress = worker->step(budget);
  guard_faults(nullptr);
  return progress;
}

template <class Take, class Expired>
Outcome Share::run(const Take& take, const Expired& expired) {
  static thread_local std::vector<std::unique_ptr<Worker>> spare;
  const auto put_back = [&] {
    for (Slot& slot : slots_) spare.push_back(std::move(slot.worker));
    if (spare.size() > 4) spare.resize(4);
  };
  const auto begin = [&] {
    uint64_t group;
    if (slots_.size() >= limit_ || !take(group)) return false;
    if (spare.empty()) spare.push_back(std::make_unique<Worker>());
    slots_.push_back({std::move(spare.back())});
    spare.pop_back();
    slots_.back().worker->begin(launch_, group);
    return true;
  };
  bool more = begin();
  for (size_t at = 0; !slots_.empty();) {
    if (at >= slots_.size()) at = 0;
    Slot& slot = slots_[at];
    const bool alone = slots_.size() == 1 && (!more || slot.pauses == 0);
    const Worker::Progress progress = turn(slot, alone ? kLongTurn : kShortTurn);
    if (progress == Worker::Progress::failed) {
      if (guard.caught) {  // its registers are inconsistent, so it isn't used again
        slot.worker.reset();
        slots_.erase(slots_.begin() + static_cast<ptrdiff_t>(at));
      }
      put_back();
      return guard.caught || guard.refused ? Outcome::illegal_address : Outcome::failed;
    }
    if (progress == Worker::Progress::done) {
      uint64_t group;
      slot.pauses = 0;
      if (take(group)) {
        slot.worker->begin(launch_, group);
      } else {
        more = false;
        spare.push_back(std::move(slot.worker));
        slots_.erase(slots_.begin() + static_cast<ptrdiff_t>(at));
      }
      if (launch_.stop.load(std::memory_order_relaxed)) break;
      continue;
    }
    if (launch_.stop.load(std::memory_order_relaxed)) break;
    if (expired()) {
      put_back();
      return Outcome::timed_out;
    }
    if (++slot.pauses >= kPatience && more) more = begin() || slots_.size() >= limit_;
    ++at;
  }
  put_back();
  return Outcome::done;
}

/// Describes the address of a bad access.
std::string touched(const Launch& launch, const FaultGuard& guard) {
  if (guard.non_canonical) return "a non-canonical address";
  char address[32];
  std::snprintf(address, sizeof address, "0x%zx", static_cast<size_t>(guard.address));
  return address + (launch.describe ? ", " + launch.describe(guard.address) : "");
}

}  // namespace

void Scheduler::work(Job& job) {
  Launch& launch = job.launch;
  const size_t lanes = launch.descriptor.wave32() ? 32 : 64;
  const size_t waves = (launch.items() + lanes - 1) / lanes;
  const size_t group_bytes =
      waves * (sizeof(Wave) / 4 + static_cast<size_t>(launch.vgprs) * lanes * 4 +
               size_t{launch.descriptor.scratch_bytes} * lanes) +
      launch.lds_bytes + 4096;
  Share share(launch, std::clamp<size_t>(kRoomBytes / group_bytes, 16, 8192));
  Outcome outcome = Outcome::done;
  try {
    uint64_t at = 0, end = 0;
    const auto take = [&](uint64_t& group) {
      if (at == end && !job.take(at, end)) return false;
      group = job.group(at++);
      return true;
    };
    outcome = share.run(take, [&] { return job.limited && Clock::now() > job.deadline; });
  } catch (const std::exception& error) {
    guard_faults(nullptr);
    fault(job, "kernel " + launch.kernel + ": " + error.what());
    outcome = Outcome::failed;
  }
  if (outcome == Outcome::done) return;
  Outcome none = Outcome::done;
  job.outcome.compare_exchange_strong(none, outcome);
  if (outcome == Outcome::timed_out) {
    fault(job,
          "kernel " + launch.kernel + ": still not at its end after the time of WICK_EMU_TIMEOUT");
  }
  if (share.guard.caught) {
    fault(job, "kernel " + launch.kernel + ": access to " + touched(launch, share.guard));
  }
}

Outcome Scheduler::run(Launch& launch) {
  Job job(launch, helpers_wanted_ + 1);
  if (timeout_ > 0) {
    job.limited = true;
    job.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(timeout_));
  }
  const bool shared = helpers_wanted_ > 0 && job.count > 1;
  {
    std::lock_guard lock(mutex_);
    ++launches_;
    if (seed_ != 0) {
      launch.seed = seed_ + launches_;
      job.shuffle(launch.seed);
    }
    if (shared) {
      jobs_.push_back(&job);
      while (helpers_ < helpers_wanted_) {
        try {
          std::thread([this] { helper(); }).detach();
        } catch (const std::system_error&) {
          break;  // the system allows no more threads
        }
        ++helpers_;
      }
    }
  }
  if (shared) wake_.notify_all();
  work(job);
  if (shared) {
    std::unique_lock lock(mutex_);
    jobs_.remove(&job);
    left_.wait(lock, [&] { return job.helpers == 0; });
  }
  return job.outcome;
}

void Scheduler::helper() {
  std::unique_lock lock(mutex_);
  const auto open = [](Job* job) {
    return job->next.load(std::memory_order_relaxed) < job->count && !job->launch.stop;
  };
  for (;;) {
    Job* job = nullptr;
    wake_.wait(lock, [&] {
      // The launch with the fewest helpers comes first.
      for (Job* candidate : jobs_) {
        if (open(candidate) && (job == nullptr || candidate->helpers < job->helpers)) {
          job = candidate;
        }
      }
      return job != nullptr;
    });
    ++job->helpers;
    lock.unlock();
    work(*job);
    lock.lock();
    if (--job->helpers == 0) left_.notify_all();
  }
}

}  // namespace emu
