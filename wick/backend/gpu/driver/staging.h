#pragma once

// Copies between host and device memory through pinned memory, which the device accesses
// asynchronously.

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "wick/backend/gpu/driver/driver.h"

namespace wick::gpu {

class Staging {
 public:
  Staging(const Driver& driver, Device device);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Copies in stream order. `from` may be changed once the call returns; the copy may still be in
  /// flight.
  void upload(void* to, const void* from, size_t bytes, void* stream);
  /// Copies after the stream's work so far, and waits for the copy.
  void download(void* to, const void* from, size_t bytes, void* stream);
  /// Downloads in pieces: take(data, at, bytes) gets the piece that lies `at` bytes behind `from`.
  using Take = std::function<void(const char* data, size_t at, size_t bytes)>;
  void download_pieces(const void* from, size_t bytes, void* stream, const Take& take);

  /// An asynchronous copy to the host, which runs beside the stream's later work.
  struct Copy;
  /// Starts a copy after the stream's work so far.
  Copy* start(const void* from, size_t bytes, void* stream);
  /// Waits for the copy and stores its data to `to`.
  void finish(const Copy* copy, void* to, size_t bytes);
  /// Makes the copy's memory available again.
  void release(Copy* copy) noexcept;

 private:
  static constexpr size_t kSlotBytes = size_t{4} << 20;
  struct Slot {
    char* host = nullptr;
    void* done = nullptr;  // an event after which the slot is free
  };

  /// The next slot, once its last copy has completed.
  Slot& next();
  void check(int code) const;

  const Driver& driver_;
  const Device device_;
  std::mutex mutex_;
  std::array<Slot, 4> slots_;
  size_t turn_ = 0;

  void* copies_ = nullptr;  // the stream of asynchronous copies
  std::vector<std::unique_ptr<Copy>> all_copies_;
  std::vector<Copy*> free_copies_;
};

}  // namespace wick::gpu
