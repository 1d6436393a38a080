#pragma once

// Shows that a GPU computes itself: what it did during a test, without the copies to the host that
// the test itself made. An op that goes by way of the host copies its operands there.

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "wick/backend/gpu/trace/counts.h"
#include "wick/base/device.h"

namespace wick::test {

namespace detail {
/// The bytes that tests have copied from a device to the host.
inline uint64_t& own_bytes(Device device) {
  static uint64_t all[3][16] = {};
  return all[static_cast<size_t>(device.kind)][static_cast<size_t>(device.index) % 16];
}
}  // namespace detail

/// Copies to the host while one of these lives are the test's or a preparation's, and not an op's.
class OwnCopies {
 public:
  explicit OwnCopies(Device device)
      : device_(device), before_(gpu::work_counts(device).bytes_to_host) {}
  ~OwnCopies() { detail::own_bytes(device_) += gpu::work_counts(device_).bytes_to_host - before_; }
  OwnCopies(const OwnCopies&) = delete;
  OwnCopies& operator=(const OwnCopies&) = delete;

 private:
  Device device_;
  uint64_t before_;
};

/// The work of a device since the object was made. gpu::count_work() has been called before the
/// first use of the device.
class DeviceWork {
 public:
  explicit DeviceWork(Device device)
      : device_(device),
        before_(gpu::work_counts(device)),
        own_before_(detail::own_bytes(device)) {}

  /// Kernels, gemms of a vendor's library, and copies and fills within the device's memory.
  uint64_t count() const { return (gpu::work_counts(device_) - before_).on_device(); }
  uint64_t bytes_by_ops() const {
    const gpu::WorkCounts did = gpu::work_counts(device_) - before_;
    return did.bytes_to_host - (detail::own_bytes(device_) - own_before_);
  }
  /// Returns why ops weren't computed by the device alone; empty if they were. `expected`: whether
  /// they have anything to compute. A CPU is never at fault.
  std::string fault(bool expected) const {
    if (device_.kind == DeviceKind::cpu) return "";
    if (bytes_by_ops() > 0) {
      return fmt::format("ops on {} copied {} bytes to the host", device_.str(), bytes_by_ops());
    }
    if (expected && count() == 0) return fmt::format("no kernel of {} ran", device_.str());
    return "";
  }

 private:
  Device device_;
  gpu::WorkCounts before_;
  uint64_t own_before_;
};

}  // namespace wick::test
