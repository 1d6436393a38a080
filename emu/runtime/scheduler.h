#pragma once

// Runs launches. The calling thread works on its own launch, and helper threads join if it has
// enough workgroups. A thread keeps several workgroups active if they wait for each other.

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
  /// `threads`: the most threads that work on one launch. `timeout`: the most seconds that a launch
  /// may take; 0 means unlimited.
  Scheduler(int threads, double timeout, uint64_t seed);

  /// Runs all workgroups of the launch to completion. `launch.error` has the message if one fails.
  /// In a cooperative launch all workgroups begin before the first one ends.
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
  std::list<Job*> jobs_;  // launches that helpers may join
  int helpers_ = 0;
  uint64_t launches_ = 0;
};

}  // namespace emu
