#pragma once

// Streams: each a queue with a thread of its own, begun when it is first used. What is queued runs
// in its order and after the signals it was told to wait for, and after nothing else.

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

namespace emu {

class Device;
struct Capture;  // graph.h

/// Set once, when a command is done.
class Signal {
 public:
  void complete() {
    time_ = std::chrono::steady_clock::now();
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }
  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait() const { done_.wait(0, std::memory_order_acquire); }
  /// When it was completed.
  std::chrono::steady_clock::time_point time() const { return time_; }

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
  std::shared_ptr<Capture> capture;  // under the graphs' mutex

  bool blocking() const { return (flags & hipStreamNonBlocking) == 0; }

  /// Queues work behind all that is queued, and behind `after`. A stream that synchronises with the
  /// null stream waits for that too, and the null stream for all such streams.
  SignalPtr push(Work work, std::vector<SignalPtr> after = {});
  /// The last command's signal; null where there never was one.
  SignalPtr tail() const;
  bool idle() const;
  void wait() const;
  /// The error of a command that failed since the last call.
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
  };
  SignalPtr queue(Work work, std::vector<SignalPtr> after);
  void run();

  mutable std::mutex mutex_;
  std::deque<Command> commands_;
  SignalPtr tail_;
  bool running_ = false;
  std::condition_variable wake_;
  std::atomic<unsigned> error_{hipSuccess};
};

using StreamPtr = std::shared_ptr<Stream>;

/// A mark in a stream, with the time when it was reached.
struct Event {
  explicit Event(unsigned flags, int device) : flags(flags), device(device) {}
  const unsigned flags;
  const int device;
  std::mutex mutex;
  SignalPtr signal;                  // null: never recorded
  StreamPtr stream;                  // where it was
  std::shared_ptr<Capture> capture;  // recorded while a graph was captured: no real mark
  std::vector<struct Node*> nodes;   // that it marks there

  SignalPtr current() {
    std::lock_guard lock(mutex);
    return signal;
  }
};

using EventPtr = std::shared_ptr<Event>;

}  // namespace emu
