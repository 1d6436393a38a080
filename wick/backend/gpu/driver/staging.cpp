#include "wick/backend/gpu/driver/staging.h"

#include <algorithm>
#include <cstring>

namespace wick::gpu {
namespace {

constexpr unsigned kNoTiming = 2;  // flag of events

}  // namespace

struct Staging::Copy {
  char* host = nullptr;
  size_t bytes = 0;
  void *ready = nullptr, *done = nullptr;  // events: the source is ready; the copy is complete
};

Staging::Staging(const Driver& driver, Device device) : driver_(driver), device_(device) {}

Staging::~Staging() {
  for (const auto& copy : all_copies_) {
    driver_.api.event_synchronize(copy->done);
    driver_.api.event_destroy(copy->done);
    driver_.api.event_destroy(copy->ready);
    driver_.api.host_free(copy->host);
  }
  if (copies_ != nullptr) driver_.api.stream_destroy(copies_);
  for (const Slot& slot : slots_) {
    if (slot.done != nullptr) {
      driver_.api.event_synchronize(slot.done);
      driver_.api.event_destroy(slot.done);
    }
    if (slot.host != nullptr) driver_.api.host_free(slot.host);
  }
}

void Staging::check(int code) const {
  driver_.check(code, device_.index, "copying to or from the host");
}

Staging::Slot& Staging::next() {
  Slot& slot = slots_[turn_];
  turn_ = (turn_ + 1) % slots_.size();
  if (slot.host == nullptr) {
    void* host = nullptr;
    check(driver_.api.host_alloc(&host, kSlotBytes, 0));
    slot.host = static_cast<char*>(host);
  }
  if (slot.done == nullptr) {
    check(driver_.api.event_create(&slot.done, kNoTiming));
  } else {
    check(driver_.api.event_synchronize(slot.done));
  }
  return slot;
}

void Staging::upload(void* to, const void* from, size_t bytes, void* stream) {
  std::lock_guard lock(mutex_);
  for (size_t at = 0; at < bytes; at += kSlotBytes) {
    const size_t now = std::min(kSlotBytes, bytes - at);
    Slot& slot = next();
    std::memcpy(slot.host, static_cast<const char*>(from) + at, now);
    check(driver_.api.copy_to_device(static_cast<char*>(to) + at, slot.host, now, stream));
    check(driver_.api.event_record(slot.done, stream));
  }
}

void Staging::download(void* to, const void* from, size_t bytes, void* stream) {
  download_pieces(from, bytes, stream, [to](const char* data, size_t at, size_t count) {
    std::memcpy(static_cast<char*>(to) + at, data, count);
  });
}

void Staging::download_pieces(const void* from, size_t bytes, void* stream, const Take& take) {
  std::lock_guard lock(mutex_);
  // Two pieces are in flight while the host processes a third.
  struct Piece {
    Slot* slot;
    size_t at, bytes;
  };
  std::array<Piece, 2> pieces{};
  size_t started = 0, ended = 0;
  const auto finish = [&] {
    const Piece& piece = pieces[ended++ % pieces.size()];
    check(driver_.api.event_synchronize(piece.slot->done));
    take(piece.slot->host, piece.at, piece.bytes);
  };
  for (size_t at = 0; at < bytes; at += kSlotBytes) {
    if (started - ended == pieces.size()) finish();
    const size_t now = std::min(kSlotBytes, bytes - at);
    Slot& slot = next();
    check(driver_.api.copy_to_host(slot.host, static_cast<const char*>(from) + at, now, stream));
    check(driver_.api.event_record(slot.done, stream));
    pieces[started++ % pieces.size()] = {&slot, at, now};
  }
  while (ended < started) finish();
}

Staging::Copy* Staging::start(const void* from, size_t bytes, void* stream) {
  std::lock_guard lock(mutex_);
  constexpr unsigned kNonBlocking = 1;
  if (copies_ == nullptr) check(driver_.api.stream_create(&copies_, kNonBlocking));
  auto at = std::find_if(free_copies_.begin(), free_copies_.end(),
                         [&](const Copy* copy) { return copy->bytes >= bytes; });
  if (at == free_copies_.end()) {
    constexpr size_t kLeast = 256;
    auto made = std::make_unique<Copy>();
    made->bytes = std::max(bytes, kLeast);
    void* host = nullptr;
    check(driver_.api.host_alloc(&host, made->bytes, 0));
    made->host = static_cast<char*>(host);
    check(driver_.api.event_create(&made->ready, kNoTiming));
    check(driver_.api.event_create(&made->done, kNoTiming));
    free_copies_.reserve(all_copies_.size() + 1);  // so that release needs no memory
    all_copies_.push_back(std::move(made));
    at = free_copies_.insert(free_copies_.end(), all_copies_.back().get());
  }
  Copy* const copy = *at;
  // Waits for a copy that was started but never finished.
  check(driver_.api.event_synchronize(copy->done));
  check(driver_.api.event_record(copy->ready, stream));
  check(driver_.api.stream_wait_event(copies_, copy->ready, 0));
  check(driver_.api.copy_to_host(copy->host, from, bytes, copies_));
  check(driver_.api.event_record(copy->done, copies_));
  free_copies_.erase(at);
  return copy;
}

void Staging::finish(const Copy* copy, void* to, size_t bytes) {
  check(driver_.api.event_synchronize(copy->done));
  std::memcpy(to, copy->host, bytes);
}

void Staging::release(Copy* copy) noexcept {
  std::lock_guard lock(mutex_);
  free_copies_.push_back(copy);
}

}  // namespace wick::gpu
