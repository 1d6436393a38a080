#include "emu/runtime/stream.h"

#include <algorithm>
#include <thread>

#include "emu/runtime/device.h"
#include "emu/runtime/interleaver.h"
#include "emu/runtime/options.h"

namespace emu {
namespace {

// A thread without work ends after this time; the next command starts a new one.
constexpr auto kIdle = std::chrono::seconds(2);

}  // namespace

SignalPtr Stream::push(Work work, std::vector<SignalPtr> after) {
  if (!blocking() || device == nullptr) return queue(std::move(work), std::move(after));
  std::lock_guard lock(device->order);
  if (null_stream) {
    for (const StreamPtr& stream : device->streams()) {
      if (stream.get() == this || !stream->blocking()) continue;
      if (SignalPtr last = stream->tail()) after.push_back(last);
    }
  } else if (const StreamPtr null = device->null_stream_if_used()) {
    if (SignalPtr last = null->tail()) after.push_back(last);
  }
  return queue(std::move(work), std::move(after));
}

void Signal::wait() const {
  if (!is_complete()) {
    Interleaver* const interleaver = Interleaver::get();
    interleaver != nullptr ? interleaver->wait_for(*this) : wait_until_done();
  }
  LaunchOrder::get().seen_by_host(launches);
}

SignalPtr Stream::queue(Work work, std::vector<SignalPtr> after) {
  auto signal = std::make_shared<Signal>();
  {
    std::lock_guard lock(mutex_);
    commands_.push_back(
        {std::move(work), std::move(after), signal, LaunchOrder::get().seen_by_host()});
    tail_ = signal;
    if (!running_) {
      running_ = true;
      std::thread([self = shared_from_this()] { self->run(); }).detach();
    } else {
      wake_.notify_one();
    }
  }
  if (Interleaver* const interleaver = Interleaver::get()) interleaver->add(shared_from_this());
  return signal;
}

bool Stream::ready() const {
  std::lock_guard lock(mutex_);
  return !busy_ && !permitted_ && !commands_.empty() &&
         std::ranges::all_of(commands_.front().after,
                             [](const auto& s) { return s->is_complete(); });
}

SignalPtr Stream::permit() {
  std::lock_guard lock(mutex_);
  permitted_ = true;
  wake_.notify_one();
  return commands_.front().signal;
}

/// Runs a command. The caller completes the command's signal.
void Stream::perform(Command& command) {
  launches_.add(command.seen_by_host);
  for (const SignalPtr& signal : command.after) {
    signal->wait_until_done();
    launches_.add(signal->launches);
  }
  LaunchOrder::running() = &launches_;
  hipError_t error = hipErrorUnknown;
  try {
    error = command.work();
  } catch (const std::exception& what) {
    complain(what.what());
  }
  if (error != hipSuccess) set_error(error);
  command.work = nullptr;  // what it holds is released before waiters are notified
  command.signal->launches = launches_;
}

void Stream::run() {
  Interleaver* const interleaver = Interleaver::get();
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool found = wake_.wait_for(
        lock, kIdle, [&] { return !commands_.empty() && (interleaver == nullptr || permitted_); });
    if (!found && !commands_.empty()) continue;  // it isn't the stream's turn yet
    if (!found) {
      running_ = false;
      return;
    }
    Command command = std::move(commands_.front());
    commands_.pop_front();
    permitted_ = false;
    busy_ = true;
    lock.unlock();
    perform(command);
    lock.lock();
    busy_ = false;
    lock.unlock();
    command.signal->complete();
    if (interleaver != nullptr) interleaver->finished();
    lock.lock();
  }
}

SignalPtr Stream::tail() const {
  std::lock_guard lock(mutex_);
  return tail_;
}

bool Stream::idle() const {
  const SignalPtr last = tail();
  return last == nullptr || last->done();
}

void Stream::wait() const {
  if (const SignalPtr last = tail()) last->wait();
}

}  // namespace emu
