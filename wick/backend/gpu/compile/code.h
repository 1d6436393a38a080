#pragma once

// The source of a device's kernel code.

#include <future>
#include <string>
#include <string_view>

#include "wick/backend/gpu/compile/compiler.h"

namespace wick::gpu {

/// Uses the binary's images if they suit the device. Otherwise it compiles the binary's kernel
/// sources, each file on first use. WICK_GPU_IMAGES=off disables the images.
class Code {
 public:
  /// Errors: there are neither images nor a compiler; the message lists what was tried.
  Code(Device device, const GpuInfo& info);

  /// The architecture of the code: "sm_90a", "gfx11-generic".
  const std::string& architecture() const { return architecture_; }
  /// Whether code is compiled at run time.
  bool compiles() const { return compiler_ != nullptr; }
  /// Number of files compiled, and number of files found in the user's cache.
  int compiled() const { return compiled_; }
  int cached() const { return cached_; }

  /// The code object of a file of kernels/, such as "map". Calls must not overlap. Errors: no such
  /// file; it doesn't compile.
  std::string image(std::string_view file);

 private:
  const Device device_;
  const Compiler* compiler_ = nullptr;
  CompilerTarget target_;
  std::future<std::optional<Files>> unpacking_;  // runs while the device starts
  Files images_;
  std::string architecture_;
  int compiled_ = 0, cached_ = 0;
};

/// Whether the binary's images may be used. Errors: WICK_GPU_IMAGES is neither `on` nor `off`.
bool images_allowed();

}  // namespace wick::gpu
