#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "wick/base/device.h"
#include "wick/base/export.h"

namespace wick {

/// Reference-counted bytes on a device, without a dtype.
class WICK_API Storage {
 public:
  /// Uninitialised memory from the device's caching allocator. Errors: out of memory.
  static std::shared_ptr<Storage> allocate(Device device, size_t bytes);
  /// Read-only host memory that belongs to `owner`, which is kept alive. `file_backed`: it is a
  /// mapped file's, whose pages come back from the file when they were given back to the system.
  static std::shared_ptr<Storage> map(const void* data, size_t bytes,
                                      std::shared_ptr<const void> owner, bool file_backed = false);
  /// Read-only memory of a device that belongs to `owner`, which is kept alive until the device's
  /// work has ended; aligned to 64 bytes, as backends expect. Errors: no such device here.
  static std::shared_ptr<Storage> map_on(Device device, const void* data, size_t bytes,
                                         std::shared_ptr<const void> owner);
  /// Bytes inside another storage, which is kept alive; calls on a device use them in the order
  /// that they were made in, as those of any storage.
  static std::shared_ptr<Storage> within(std::shared_ptr<Storage> whole, size_t offset,
                                         size_t bytes);
  /// Storage without memory, for the results of calls that are traced and not run
  /// (wick/graph/trace.h).
  static std::shared_ptr<Storage> traced(Device device, size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// Errors: it is traced.
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
  /// How often a function wrote in place to elements that others may have read.
  uint32_t writes() const { return writes_.load(std::memory_order_relaxed); }
  void count_write() { writes_.fetch_add(1, std::memory_order_relaxed); }
  /// Whether its pages can be given back to the system without losing what they hold.
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
