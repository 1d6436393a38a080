#pragma once

#include <pthread.h>

namespace wick {

/// The process's one T, which has `lock()` and `unlock()`. It is there before any code runs, so
/// that a child of fork can't find a half-made one; it is never destroyed, since tensors with
/// static storage may outlive any order of destruction; and a fork waits for its lock, so that the
/// child doesn't find it held by a thread that it hasn't got.
template <class T>
class ProcessWide {
 public:
  static T& get() {
    (void)&at_fork_;  // has it made
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
