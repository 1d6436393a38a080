#include "emu/model/queue.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <vector>

#include "emu/model/pm4.h"
#include "emu/runtime/options.h"

namespace emu::model {
namespace {

constexpr auto kEager = std::chrono::microseconds(20),
               kLongestPause = std::chrono::microseconds(500);
constexpr int kPausesWhileWaiting = 16;
constexpr auto kNoticeAfter = std::chrono::seconds(10);
constexpr uint32_t kMostCommandWords = 4096;

uint64_t nanoseconds() {
  const auto now = Clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

template <class T>
std::atomic<T>& atomic_at(uint64_t address) {
  return *reinterpret_cast<std::atomic<T>*>(address);
}

Signal& signal_at(uint64_t handle) { return *reinterpret_cast<Signal*>(handle); }

/// Throws if a handle isn't that of a signal.
void check_signal(uint64_t handle, const char* which) {
  int64_t kind = 0;
  if (handle % 8 != 0 || !read_at(handle, kind) || kind != kUserSignal) {
    throw PacketError(QueueError::packet_format,
                      std::string(which) + " signal " + hex(handle) + " isn't a signal");
  }
}

bool meets(int64_t value, Condition condition, int64_t wanted) {
  switch (condition) {
    case Condition::equal:
      return value == wanted;
    case Condition::not_equal:
      return value != wanted;
    case Condition::less:
      return value < wanted;
    case Condition::not_less:
      return value >= wanted;
  }
  return false;
}

/// The message begins with the kernel's name, which may contain any word.
QueueError error_of(Outcome outcome, const Launch& launch) {
  if (outcome == Outcome::illegal_address) return QueueError::memory;
  const std::string name = "kernel " + launch.kernel;
  const size_t behind = launch.error.starts_with(name) ? name.size() : 0;
  const bool instruction = launch.error.find("instruction", behind) != std::string::npos;
  return instruction ? QueueError::instruction : QueueError::exception;
}

}  // namespace

Queue::Queue(Model& model, const QueueInfo& info, int number)
    : model_(model),
      info_(info),
      number_(number),
      thread_(model.threads.start([this] { loop(); })) {}

Queue::~Queue() {
  stopped_ = true;
  {
    std::lock_guard lock(mutex_);
    if (running_ != nullptr) running_->stop = true;
  }
  thread_.join();
}

bool Queue::pause(Clock::time_point since) const {
  const Clock::duration waited = Clock::now() - since;
  if (waited > kEager) {
    std::this_thread::sleep_for(
        std::min<Clock::duration>(waited / kPausesWhileWaiting, kLongestPause));
  }
  return !stopped_;
}

void Queue::loop() {
  try {
    process_all();
  } catch (const PacketError& error) {
    refuse(error);
  } catch (const std::exception& error) {  // no memory, for example
    refuse({QueueError::exception, error.what()});
  }
}

void Queue::process_all() {
  if (!accessible([&] { packet_index_ = atomic_at<uint64_t>(info_.read_pointer).load(); })) {
    throw PacketError(QueueError::memory, "the read pointer can't be read");
  }
  for (auto idle = Clock::now(); pause(idle);) {
    if (process_next(packet_index_)) idle = Clock::now();
  }
}

/// Returns false if there is no packet yet.
bool Queue::process_next(uint64_t index) {
  const uint64_t packet = info_.ring + index % (info_.ring_bytes / kPacketBytes) * kPacketBytes;
  uint16_t header = 0;
  uint64_t written = 0;
  if (!accessible([&] {
        written = atomic_at<uint64_t>(info_.write_pointer).load(std::memory_order_acquire);
        header = atomic_at<uint16_t>(packet).load(std::memory_order_acquire);
      })) {
    throw PacketError(QueueError::memory, "the packet can't be read");
  }
  if (index >= written || type_of(header) == PacketType::invalid) return false;
  std::string reason;
  if (!model_.memory.reach(reason)) throw PacketError(QueueError::memory, reason);
  const uint64_t started = nanoseconds();
  const auto completion = read_packet<uint64_t>(packet + kCompletionOffset);
  if (completion != 0) check_signal(completion, "completion");
  process(packet, type_of(header));
  if (stopped_) return false;
  if (!accessible([&] {
        atomic_at<uint16_t>(packet).store(static_cast<uint16_t>(PacketType::invalid),
                                          std::memory_order_release);
        atomic_at<uint64_t>(info_.read_pointer).store(index + 1, std::memory_order_release);
      })) {
    throw PacketError(QueueError::memory, "the ring or its read pointer can't be written");
  }
  packet_index_ = index + 1;
  if (completion != 0) complete(completion, started);
  return true;
}

/// A packet is complete before the next one is read, which is the strictest order that a
/// header can ask for.
void Queue::process(uint64_t packet, PacketType type) {
  switch (type) {
    case PacketType::dispatch:
      return dispatch(packet);
    case PacketType::barrier_and:
      return barrier(packet, true);
    case PacketType::barrier_or:
      return barrier(packet, false);
    case PacketType::vendor:
      return vendor(packet);
    case PacketType::agent_dispatch:
      throw PacketError(QueueError::packet_format, "GPUs don't process agent dispatch packets");
    default:
      throw PacketError(QueueError::packet_format,
                        "unknown packet type " + std::to_string(static_cast<int>(type)));
  }
}

void Queue::complete(uint64_t handle, uint64_t started) {
  uint64_t mailbox = 0;
  uint32_t event = 0;
  const bool done = accessible([&] {
    Signal& signal = signal_at(handle);
    signal.start = started;
    signal.end = nanoseconds();
    mailbox = signal.mailbox;
    event = signal.event;
    signal.value.fetch_sub(1, std::memory_order_acq_rel);
    if (mailbox != 0) atomic_at<uint64_t>(mailbox).store(event, std::memory_order_release);
  });
  if (!done) {
    throw PacketError(QueueError::memory, "completion signal " + hex(handle) + " can't be written");
  }
  if (mailbox != 0) model_.raise(event);
}

template <class Met>
void Queue::wait(uint64_t signal, const Met& met) {
  const auto begun = Clock::now();
  bool noticed = false;
  while (pause(begun)) {
    int64_t value = 0;
    if (!accessible([&] { value = signal_at(signal).value.load(std::memory_order_acquire); })) {
      throw PacketError(QueueError::memory, "signal " + hex(signal) + " can't be read");
    }
    if (met(value)) return;
    const std::chrono::duration<double> waited = Clock::now() - begun;
    const auto what = [&] {
      return " waits for signal " + hex(signal) + ", whose value is " + std::to_string(value);
    };
    if (model_.timeout > 0 && waited.count() > model_.timeout) {
      throw PacketError(QueueError::exception,
                        "the barrier still" + what() + ", after the time of WICK_EMU_TIMEOUT");
    }
    if (!noticed && waited > kNoticeAfter) {
      noticed = true;
      complain("queue " + std::to_string(number_) + ", packet " + std::to_string(packet_index_) +
               ": the barrier" + what());
    }
  }
}

void Queue::barrier(uint64_t packet, bool all) {
  const auto barrier = read_packet<Barrier>(packet);
  std::vector<uint64_t> signals;
  for (const uint64_t signal : barrier.signals) {
    if (signal == 0) continue;
    check_signal(signal, "a barrier's");
    signals.push_back(signal);
  }
  if (signals.empty()) return;
  if (all) {
    for (const uint64_t signal : signals) wait(signal, [](int64_t value) { return value == 0; });
    return;
  }
  wait(signals[0], [&](int64_t) {
    return std::any_of(signals.begin(), signals.end(), [](uint64_t signal) {
      int64_t value = 1;
      return read_at(signal + offsetof(Signal, value), value) && value == 0;
    });
  });
}

void Queue::vendor(uint64_t packet) {
  const auto value = read_packet<BarrierValue>(packet);
  if (value.format == static_cast<uint8_t>(VendorFormat::barrier_value)) {
    if (value.signal == 0) return;
    check_signal(value.signal, "a barrier's");
    if (value.condition > static_cast<uint32_t>(Condition::not_less)) {
      throw PacketError(QueueError::vendor_format,
                        "unknown condition " + std::to_string(value.condition) + " of a barrier");
    }
    wait(value.signal, [&](int64_t now) {
      return meets(now & value.mask, static_cast<Condition>(value.condition), value.value);
    });
    return;
  }
  if (value.format != static_cast<uint8_t>(VendorFormat::pm4)) {
    throw PacketError(QueueError::vendor_format,
                      "unknown format " + std::to_string(value.format) + " of a vendor packet");
  }
  const auto commands = read_packet<Pm4>(packet);
  const CommandBuffer buffer = command_buffer(commands.jump);
  if (buffer.words > kMostCommandWords) {
    throw PacketError(QueueError::vendor_format,
                      "PM4: " + std::to_string(buffer.words) + " words of commands; at most " +
                          std::to_string(kMostCommandWords) + " are implemented");
  }
  std::vector<uint32_t> words(buffer.words);
  if (words.empty() || !copy_from(words.data(), buffer.address, words.size() * 4)) {
    throw PacketError(QueueError::vendor_format, "the commands of a PM4 packet can't be read");
  }
  if (const std::string other = other_than_caches(words); !other.empty()) {
    throw PacketError(QueueError::vendor_format, "PM4: " + other + " isn't implemented");
  }
  model_.code.invalidate();
}

void Queue::run(Launch& launch) {
  {
    std::lock_guard lock(mutex_);
    running_ = &launch;
  }
  if (stopped_) launch.stop = true;
  const Outcome outcome = model_.scheduler.run(launch);
  {
    std::lock_guard lock(mutex_);
    running_ = nullptr;
  }
  if (stopped_ || outcome == Outcome::done) return;
  throw PacketError(error_of(outcome, launch), launch.error);
}

void Queue::refuse(const PacketError& error) {
  const std::string where =
      "queue " + std::to_string(number_) + ", packet " + std::to_string(packet_index_) + ": ";
  complain(where + error.what());
  const uint64_t queue = info_.read_pointer - kReadPointerOffset;
  uint64_t handle = 0, mailbox = 0;
  int64_t kind = 0;
  uint32_t event = 0;
  const bool told =
      info_.write_pointer == queue + kWritePointerOffset &&
      read_at(queue + kInactiveSignalOffset, handle) && handle != 0 && read_at(handle, kind) &&
      kind == kUserSignal && accessible([&] {
        Signal& signal = signal_at(handle);
        mailbox = signal.mailbox;
        event = signal.event;
        signal.value.store(static_cast<int64_t>(error.code), std::memory_order_release);
        if (mailbox != 0) atomic_at<uint64_t>(mailbox).store(event, std::memory_order_release);
      });
  if (!told) complain(where + "the queue has no signal for its errors");
  if (told && mailbox != 0) model_.raise(event);
}

}  // namespace emu::model
