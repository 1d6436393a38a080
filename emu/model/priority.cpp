#include "emu/model/priority.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace emu::model {

ThreadStarter::ThreadStarter() : thread_([this] { loop(); }) {}

ThreadStarter::~ThreadStarter() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::thread ThreadStarter::start(std::function<void()> body) {
  std::lock_guard one(one_start_);
  std::unique_lock lock(mutex_);
  body_ = std::move(body), done_ = false, error_ = nullptr;
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_; });
  if (error_ != nullptr) std::rethrow_exception(error_);
  return std::move(started_);
}

void ThreadStarter::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || body_ != nullptr; });
    if (ending_) return;
    try {
      started_ = std::thread(std::exchange(body_, nullptr));
    } catch (...) {
      error_ = std::current_exception();
    }
    done_ = true;
    changed_.notify_all();
  }
}

void yield_to_emulator() {
  // A thread whose nice value is higher by 5 gets a third of another one's processor time, so three
  // threads that poll get as much as one of the emulator's. With more steps, the program would wait
  // too long for other processes.
  constexpr int kSteps = 5, kLowest = 19;
  const int now = getpriority(PRIO_PROCESS, 0);  // on Linux, of the calling thread
  setpriority(PRIO_PROCESS, 0, std::min(now + kSteps, kLowest));
}

}  // namespace emu::model
