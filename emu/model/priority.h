#pragma once

// Priorities of threads. ROCr's threads, and a thread that waits for a HIP stream, poll without
// pauses. If there are fewer processors than such threads, the emulator's threads wait for them,
// and a program takes several times as long.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace emu::model {

/// Starts threads whose priority is that of the thread that constructed it, whichever thread calls
/// start(). A thread inherits the priority of its creator, and an unprivileged one can't raise it
/// again.
class ThreadStarter {
 public:
  ThreadStarter();
  ~ThreadStarter();
  ThreadStarter(const ThreadStarter&) = delete;
  ThreadStarter& operator=(const ThreadStarter&) = delete;

  /// Throws std::system_error if the system allows no more threads.
  std::thread start(std::function<void()> body);

 private:
  void loop();

  std::mutex mutex_, one_start_;
  std::condition_variable changed_;
  std::function<void()> body_;  // of the thread to start
  std::thread started_;
  std::exception_ptr error_;
  bool done_ = false, ending_ = false;
  std::thread thread_;
};

/// Lowers the priority of the calling thread, and of threads that it will create: these run when
/// the emulator's threads leave a processor free.
void yield_to_emulator();

}  // namespace emu::model
