#pragma once

// Where the code of a device's kernels comes from.

#include <future>
#include <string>
#include <string_view>

#include "wick/backend/gpu/compile/compiler.h"

namespace wick::gpu {

/// The images of the binary where they do for the device, else its sources, a file compiled when it
/// is first asked for. WICK_GPU_IMAGES=off leaves the images out.
class Code {
 public:
  /// Errors: neither images nor a compiler, with what was tried.
  Code(Device device, const GpuInfo& info);

  /// Whose code it is: "sm_90a", "gfx11-generic".
  const std::string& architecture() const { return architecture_; }
  /// Whether it is compiled here.
  bool compiles() const { return compiler_ != nullptr; }
  /// How many files went through the compiler, and how many were in the user's cache.
  int compiled() const { return compiled_; }
  int cached() const { return cached_; }

  /// The code object of a file of kernels/, e.g. "map". One call at a time. Errors: no such file;
  /// it doesn't compile.
  std::string image(std::string_view file);

 private:
  const Device device_;
  const Compiler* compiler_ = nullptr;
  CompilerTarget target_;
  std::future<std::optional<Files>> unpacking_;  // while the device starts
  Files images_;
  std::string architecture_;
  int compiled_ = 0, cached_ = 0;
};

/// Whether the binary's images are to be used. Errors: WICK_GPU_IMAGES is neither `on` nor `off`.
bool images_allowed();

}  // namespace wick::gpu
