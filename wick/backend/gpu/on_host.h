#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "wick/backend/gpu/gpu_backend.h"

namespace wick::gpu {

/// Operands of an op that has no kernel of its own on GPUs yet, in the host's memory, where the CPU
/// does it:
///
///     OnHost host(*this);
///     host.cpu().sort(host.out(out), host.in(in), dim);
///     host.finish();
///
/// Right, and as slow as the copies are; not for what is recorded. Views of real dtypes.
class OnHost {
 public:
  explicit OnHost(GpuBackend& backend);
  Backend& cpu() const { return backend(Device::cpu()); }
  /// A copy of the elements.
  ConstView in(const ConstView& view) { return copy_of(view); }
  /// A copy of them as they are; what the CPU makes of it goes back in `finish`.
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

/// Calls of this process so far that went by way of the host.
int64_t on_host_calls();

}  // namespace wick::gpu
