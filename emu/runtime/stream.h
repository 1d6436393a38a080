#pragma once

// Streams. Each is a queue with its own thread, which starts on first use. Commands run in queue
// order, after the signals that they were given, and after nothing else. Under WICK_EMU_SEED, they
// also wait for their turn (interleaver.h).

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "emu/hip/types.h"
#include "emu/runtime/launch_order.h"

namespace emu {

class Device;
struct Capture;  // graph.h

/// Is set once, when a command is done.
class Signal {
 public:
  void complete() {
    time_ = std::chrono::steady_clock::now();
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }
  /// Returns whether the command is done. If it is, what the host queues later is ordered after the
  /// command's launches.
  bool done() const {
    if (!is_complete()) return false;
    LaunchOrder::get().seen_by_host(launches);
    return true;
  }
  /// Waits for the command. Under a seed, this makes commands run.
  void wait() const;
  /// Like done() and wait(), but these don't record that the host has seen the launches' end.
  bool is_complete() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait_until_done() const { done_.wait(0, std::memory_order_acquire); }
  /// Returns the time at which it was completed.
  std::chrono::steady_clock::time_point time() const { return time_; }

  /// The launches that are done when the command is; set before its completion.
  LaunchSet launches;

 private:
  std::chrono::steady_clock::time_point time_;
  std::atomic<uint32_t> done_{0};
};

using SignalPtr = std::shared_ptr<Signal>;
using Work = std::function<hipError_t()>;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Device* device, unsigned flags, int priority)
      : device(device), flags(flags), priority(priority) {}

  Device* const device;
  const unsigned flags;
  const int priority;
  bool null_stream = false;
  const uint64_t id = next_id();     // unique in the process
  std::atomic<unsigned> policy{1};   // the hipSynchronizationPolicy; it changes nothing
  std::vector<uint32_t> mask;        // of compute units, as the caller gave it
  std::shared_ptr<Capture> capture;  // guarded by graph_mutex()

  bool blocking() const { return (flags & hipStreamNonBlocking) == 0; }

  /// Queues work after all queued work and after `after`. A stream that synchronizes with the null
  /// stream also waits for the null stream, and the null stream waits for all such streams.
  SignalPtr push(Work work, std::vector<SignalPtr> after = {});
  /// Returns the last command's signal, or null if there was no command.
  SignalPtr tail() const;
  /// Returns whether all commands are done. If they are, what the host queues later is ordered
  /// after the stream's launches.
  bool idle() const;
  void wait() const;
  /// Returns whether the next command may run under a seed: it doesn't run yet, and what it waits
  /// for is done.
  bool ready() const;
  /// Lets the next command run, under a seed. Returns its signal.
  SignalPtr permit();
  /// Returns the first error of a command since the last call, and clears it.
  hipError_t take_error() { return static_cast<hipError_t>(error_.exchange(hipSuccess)); }
  void set_error(hipError_t error) {
    unsigned none = hipSuccess;
    error_.compare_exchange_strong(none, error);
  }

 private:
  struct Command {
    Work work;
    std::vector<SignalPtr> after;
    SignalPtr signal;
    LaunchSet seen_by_host;  // launches that the host knew to be done when it queued the command
  };
  static uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
  SignalPtr queue(Work work, std::vector<SignalPtr> after);
  void perform(Command& command);
  void run();

  mutable std::mutex mutex_;
  std::deque<Command> commands_;
  SignalPtr tail_;
  LaunchSet launches_;      // of the commands that have run; used by the stream's thread
  bool running_ = false;    // its thread exists
  bool permitted_ = false;  // under a seed, the next command may run
  bool busy_ = false;       // a command runs
  std::condition_variable wake_;
  std::atomic<unsigned> error_{hipSuccess};
};

using StreamPtr = std::shared_ptr<Stream>;

/// An event: a position in a stream, and the time at which it was reached.
struct Event {
  explicit Event(unsigned flags, int device) : flags(flags), device(device) {}
  const unsigned flags;
  const int device;
  std::mutex mutex;
  SignalPtr signal;                  // null: never recorded
  StreamPtr stream;                  // the stream in which it was recorded
  std::shared_ptr<Capture> capture;  // set if it was recorded in a capture: then it has no time
  std::vector<struct Node*> nodes;   // the nodes that it stands for in that capture
  std::shared_ptr<Event> original;   // set if hipIpcOpenEventHandle has made this handle of it

  SignalPtr current() {
    std::lock_guard lock(mutex);
    return signal;
  }
};

using EventPtr = std::shared_ptr<Event>;

}  // namespace emu
