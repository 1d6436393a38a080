#pragma once

// Runs launches: the calling thread works on its launch itself, helpers join where there are groups
// enough. A thread keeps several groups at once where groups wait for each other.

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emu/exec/launch.h"

namespace emu {

/// How a launch ended.
enum class Outcome : uint8_t { done, failed, timed_out, illegal_address };

class Scheduler {
 public:
  /// `threads`: at once on one launch. `timeout`: seconds a launch may take, 0: any.
  Scheduler(int threads, double timeout, uint64_t seed);

  /// Runs all groups of the launch to their ends; `launch.error` says what went wrong. All groups
  /// are begun before the first ends where `together` (a cooperative launch).
  Outcome run(Launch& launch);

 private:
  struct Job;
  void helper();
  void work(Job& job);
  static void fault(Job& job, const std::string& what);

  const int helpers_wanted_;
  const double timeout_;
  const uint64_t seed_;
  std::mutex mutex_;
  std::condition_variable wake_, left_;
  std::list<Job*> jobs_;  // that helpers may join
  int helpers_ = 0;
  uint64_t launches_ = 0;
};

}  // namespace emu
