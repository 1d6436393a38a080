#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "wick/backend/gpu/gpu_backend.h"

namespace wick::gpu {

/// Runs an op that has no GPU kernel yet on the CPU, with copies of its operands in host memory:
///
///     OnHost host(*this);
///     host.cpu().sort(host.out(out), host.in(in), dim);
///     host.finish();
///
/// The result is exact, but the copies make it slow. It can't be captured. Views have real dtypes.
class OnHost {
 public:
  explicit OnHost(GpuBackend& backend);
  Backend& cpu() const { return backend(Device::cpu()); }
  /// A copy of the elements.
  ConstView in(const ConstView& view) { return copy_of(view); }
  /// A copy of the elements that `finish` copies back to the device.
  View out(const View& view);
  void finish();

 private:
  struct Copy {
    std::unique_ptr<std::byte[]> host;
    void* device = nullptr;
    size_t bytes = 0;
    bool goes_back = false;
  };

  View copy_of(const ConstView& view);

  GpuBackend& backend_;
  std::vector<Copy> copies_;
};

/// Number of ops that this process has run on the host so far.
int64_t on_host_calls();

}  // namespace wick::gpu
