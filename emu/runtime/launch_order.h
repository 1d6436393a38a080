#pragma once

// Which kernel launches are ordered with each other, by streams, events and the host. The race
// check needs to know it: launches that aren't ordered mustn't use the same bytes if one of them
// writes.

#include <atomic>
#include <bitset>
#include <cstdint>
#include <mutex>

#include "emu/exec/races.h"

namespace emu {

/// Launches, by numbers of 1 to 255, which are used again in the next generation.
struct LaunchSet {
  uint32_t generation = 0;
  std::bitset<256> numbers;

  /// Adds the launches of another set. Those of an older generation are left out.
  void add(const LaunchSet& other) {
    if (other.generation > generation) *this = {other.generation, {}};
    if (other.generation == generation) numbers |= other.numbers;
  }
};

class LaunchOrder {
 public:
  static LaunchOrder& get();
  static constexpr uint32_t kNumbers = 255;

  /// Whether races are checked. If not, no sets are kept.
  std::atomic<bool> active{false};

  /// Begins a launch on this thread. Returns its number, and tells which launches aren't ordered
  /// before it. `restart` is called before numbers are used again.
  template <class Restart>
  uint32_t begin(ForeignLaunches& foreign, const Restart& restart) {
    std::lock_guard lock(mutex_);
    const uint32_t number = begun_++ % kNumbers + 1;
    if (number == 1) {
      if (generation_ > 0) restart();
      ++generation_;
    }
    LaunchSet& before = *running();
    before.add({generation_, {}});
    for (uint32_t other = 1; other <= kNumbers; ++other) {
      foreign.numbers[other] = !before.numbers[other];
    }
    foreign.numbers[number] = 0;
    // Launches before a restart have left no tags, unless they still run or ended after it.
    const bool ended = ended_.generation == generation_ && (ended_.numbers & ~before.numbers).any();
    foreign.any = running_launches_++ != 0 || ended;
    foreign.begun = &begun_;
    foreign.begun_before = begun_;
    before.numbers.set(number);
    return number;
  }
  /// Ends the launch of that number.
  void end(uint32_t number);

  /// The launches before the command that runs on this thread, and those that it begins itself.
  static LaunchSet*& running();
  /// The host has seen that these launches are done: what it queues later comes after them.
  void seen_by_host(const LaunchSet& launches);
  LaunchSet seen_by_host();
  /// The command of this thread has waited for something that any launch may have done.
  void wait_for_any();

 private:
  std::mutex mutex_;
  std::atomic<uint32_t> begun_{0};
  uint32_t generation_ = 0, running_launches_ = 0;
  LaunchSet host_, ended_;
};

}  // namespace emu
