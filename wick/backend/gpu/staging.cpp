#include "wick/backend/gpu/staging.h"

#include <algorithm>
#include <cstring>

namespace wick::gpu {

Staging::~Staging() {
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
    constexpr unsigned kNoTiming = 2;
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
  // Two pieces are under way while the host copies a third.
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

}  // namespace wick::gpu
