#pragma once

#include <pthread.h>

namespace wick {

/// A process-wide T with `lock()` and `unlock()`. It is initialised before any code runs, so a
/// child of fork() can't see it half constructed. It is never destroyed, because tensors with
/// static storage may outlive it in any order of destruction. fork() waits for its lock, so the
/// child can't find it held by a thread that doesn't exist there.
template <class T>
class ProcessWide {
 public:
  static T& get() {
    (void)&at_fork_;  // instantiates at_fork_
    return storage_.value;
  }

 private:
  union Storage {
    constexpr Storage() : value() {}
    ~Storage() {}  // NOLINT: does nothing, which `= default` can't here
    T value;
  };

  static constinit inline Storage storage_;
  static inline const int at_fork_ =
      pthread_atfork([] { get().lock(); }, [] { get().unlock(); }, [] { get().unlock(); });
};

}  // namespace wick
