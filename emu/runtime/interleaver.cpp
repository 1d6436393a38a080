#include "emu/runtime/interleaver.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "emu/runtime/runtime.h"
#include "emu/runtime/stream.h"

namespace emu {
namespace {

using std::chrono::milliseconds;

// A command that runs longer may wait for a command of another stream, so the next one starts.
constexpr milliseconds kPatience{50};
// A host that waits for nothing may still watch memory that a command writes. So one command runs
// after this time, and further ones after shorter times.
constexpr milliseconds kUnasked{50}, kUnaskedLeast{1};

}  // namespace

Interleaver* Interleaver::get() {
  static Interleaver* const one = [] {
    const uint64_t seed = Runtime::get().options.seed;
    return seed == 0 ? nullptr : new Interleaver(seed);
  }();
  return one;
}

Interleaver::Interleaver(uint64_t seed) : random_(seed) {
  std::thread([this] { conduct(); }).detach();
}

void Interleaver::add(std::shared_ptr<Stream> stream) {
  std::lock_guard lock(mutex_);
  const auto at = std::ranges::lower_bound(streams_, stream->id, {},
                                           [](const auto& other) { return other->id; });
  if (at == streams_.end() || *at != stream) streams_.insert(at, std::move(stream));
}

void Interleaver::wait_for(const Signal& signal) {
  {
    std::lock_guard lock(mutex_);
    awaited_.push_back(&signal);
  }
  wake_.notify_all();
  signal.wait_until_done();
  std::lock_guard lock(mutex_);
  awaited_.erase(std::ranges::find(awaited_, &signal));
}

void Interleaver::nudge() {
  {
    std::lock_guard lock(mutex_);
    nudged_ = true;
  }
  wake_.notify_all();
}

void Interleaver::finished() {
  { std::lock_guard lock(mutex_); }
  wake_.notify_all();
}

/// Returns whether a thread waits for a signal that isn't set. A thread whose signal is set may not
/// have left wait_for() yet: no further command runs for it.
bool Interleaver::host_waits() const {
  return !std::ranges::all_of(awaited_, &Signal::is_complete);
}

std::shared_ptr<Stream> Interleaver::choose() {
  // Stream::idle() would record that the host has seen the end of the stream's launches.
  std::erase_if(streams_, [](const auto& stream) {
    const SignalPtr last = stream->tail();
    return last == nullptr || last->is_complete();
  });
  std::vector<std::shared_ptr<Stream>> ready;
  for (const auto& stream : streams_) {
    if (stream->ready()) ready.push_back(stream);
  }
  return ready.empty() ? nullptr : ready[random_() % ready.size()];
}

/// Lets a stream run its next command, and waits for its end.
void Interleaver::run_one(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Stream> stream = choose();
  if (stream == nullptr) {  // those that run may make others ready
    wake_.wait_for(lock, milliseconds(1));
    return;
  }
  const SignalPtr signal = stream->permit();
  wake_.wait_for(lock, kPatience, [&] { return signal->is_complete(); });
}

void Interleaver::conduct() {
  std::unique_lock lock(mutex_);
  milliseconds pause = kUnasked;
  for (;;) {
    const bool asked = wake_.wait_for(lock, pause, [&] { return nudged_ || host_waits(); });
    pause = asked ? kUnasked : std::max(pause / 2, kUnaskedLeast);
    nudged_ = false;
    run_one(lock);
  }
}

}  // namespace emu
