#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "wick/base/device.h"
#include "wick/base/export.h"

namespace wick {

/// Reference-counted bytes on a device. A storage has no dtype.
class WICK_API Storage {
 public:
  /// Allocates uninitialised memory from the device's caching allocator. Errors: out of memory.
  static std::shared_ptr<Storage> allocate(Device device, size_t bytes);
  /// Wraps read-only host memory that `owner` owns and keeps alive. `file_backed`: the memory is a
  /// mapped file, so its pages can be dropped and read again from the file.
  static std::shared_ptr<Storage> map(const void* data, size_t bytes,
                                      std::shared_ptr<const void> owner, bool file_backed = false);
  /// Wraps read-only memory of a device that `owner` owns. The owner is kept alive until the
  /// device's queued work has ended. The memory must be aligned to 64 bytes, as backends require.
  /// Errors: the device doesn't exist.
  static std::shared_ptr<Storage> map_on(Device device, const void* data, size_t bytes,
                                         std::shared_ptr<const void> owner);
  /// A range of bytes of another storage, which is kept alive. Calls on a device access it in the
  /// order in which they are issued.
  static std::shared_ptr<Storage> within(std::shared_ptr<Storage> whole, size_t offset,
                                         size_t bytes);
  /// A storage without memory, for results of calls that are traced and not run
  /// (wick/graph/trace.h).
  static std::shared_ptr<Storage> traced(Device device, size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// Errors: the storage is traced and has no memory.
  void* data() const {
    if (traced_) [[unlikely]] {
      fail_traced();
    }
    return data_;
  }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// False for mapped storage.
  bool writable() const { return owner_ == nullptr; }
  bool is_traced() const { return traced_; }
  /// How many times a function has written to this storage in place.
  uint32_t writes() const { return writes_.load(std::memory_order_relaxed); }
  void count_write() { writes_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether its pages can be dropped and read again from a file.
  bool file_backed() const { return file_backed_; }

 private:
  Storage(Device device, void* data, size_t bytes, std::shared_ptr<const void> owner,
          bool file_backed);
  [[noreturn]] static void fail_traced();

  Device device_;
  void* data_;
  size_t bytes_;
  std::shared_ptr<const void> owner_;
  bool file_backed_;
  bool traced_ = false;
  bool within_ = false;
  std::atomic<uint32_t> writes_{0};
};

}  // namespace wick
