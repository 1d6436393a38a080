#pragma once

// Copies between the host's memory and a device's through pinned memory, which the device reads and
// writes by itself while the host goes on.

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

  /// Copies in the order of the stream. `from` may be changed on return; the copy may be under way.
  void upload(void* to, const void* from, size_t bytes, void* stream);
  /// Copies what the stream's work so far has left there, and waits for it.
  void download(void* to, const void* from, size_t bytes, void* stream);
  /// The same, piece by piece: take(data, at, bytes) gets what lies `at` bytes behind `from`.
  using Take = std::function<void(const char* data, size_t at, size_t bytes)>;
  void download_pieces(const void* from, size_t bytes, void* stream, const Take& take);

  /// A copy to the host, beside the stream's later work.
  struct Copy;
  /// Starts to copy what the stream's work so far leaves there.
  Copy* start(const void* from, size_t bytes, void* stream);
  /// Waits for it and hands it over.
  void finish(const Copy* copy, void* to, size_t bytes);
  /// Its memory may serve again.
  void release(Copy* copy) noexcept;

 private:
  static constexpr size_t kSlotBytes = size_t{4} << 20;
  struct Slot {
    char* host = nullptr;
    void* done = nullptr;  // an event, after which the slot is free
  };

  /// A slot whose copy has ended.
  Slot& next();
  void check(int code) const;

  const Driver& driver_;
  const Device device_;
  std::mutex mutex_;
  std::array<Slot, 4> slots_;
  size_t turn_ = 0;

  void* copies_ = nullptr;  // a stream
  std::vector<std::unique_ptr<Copy>> all_copies_;
  std::vector<Copy*> free_copies_;
};

}  // namespace wick::gpu
