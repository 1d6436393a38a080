#pragma once

// The order of streams' commands under WICK_EMU_SEED. Without a seed, each stream runs its commands
// as soon as it can. With one, commands wait until the host waits for something; then one command
// after the other is chosen at random among those that may run, until what the host waits for is
// done. A program that lacks an event or a wait therefore sees results that are wrong or old, and
// sees them again with the same seed.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace emu {

class Signal;
class Stream;

class Interleaver {
 public:
  /// Returns the process's interleaver, or null without a seed.
  static Interleaver* get();

  /// Tells that commands have been queued in the stream.
  void add(std::shared_ptr<Stream> stream);
  /// Runs commands until the signal is set, and returns then.
  void wait_for(const Signal& signal);
  /// Runs one command, if one may run: the host has asked whether something is done.
  void nudge();
  /// Tells that a command has ended.
  void finished();

 private:
  explicit Interleaver(uint64_t seed);
  void conduct();
  bool host_waits() const;
  std::shared_ptr<Stream> choose();
  void run_one(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::mt19937_64 random_;
  std::vector<std::shared_ptr<Stream>> streams_;  // those with commands, in the order of their ids
  std::vector<const Signal*> awaited_;            // one for each thread in wait_for()
  bool nudged_ = false;
};

}  // namespace emu
