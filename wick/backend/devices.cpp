#include "wick/backend/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wick/backend/gpu/compile/code.h"
#include "wick/backend/gpu/compile/images.h"
#include "wick/backend/gpu/driver/driver.h"
#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/backend/gpu/linear/prepared_size.h"
#include "wick/backend/gpu/spatial/convolution_library.h"
#include "wick/base/environment.h"

namespace wick {
namespace {

constexpr DeviceKind kGpuKinds[] = {DeviceKind::cuda, DeviceKind::hip};

constexpr std::string_view kRunTimeCompiler = "run-time compiler";

/// The environment variable for a library with this name in gpu_libraries().
std::string library_variable(const LibraryDescription& library) {
  if (library.name == kRunTimeCompiler) {
    return library.kind == DeviceKind::cuda ? "WICK_NVRTC_LIBRARY" : "WICK_HIPRTC_LIBRARY";
  }
  std::string name = library.name;
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "WICK_" + name + "_LIBRARY";
}

/// Whether the environment names a library other than the driver.
bool names_libraries() {
  constexpr const char* kVariables[] = {
      "WICK_NVRTC_LIBRARY",  "WICK_CUBLASLT_LIBRARY",  "WICK_CUDNN_LIBRARY",  "WICK_HIPRTC_LIBRARY",
      "WICK_MIOPEN_LIBRARY", "WICK_HIPBLASLT_LIBRARY", "WICK_ROCBLAS_LIBRARY"};
  return std::any_of(std::begin(kVariables), std::end(kVariables),
                     [](const char* variable) { return !environment(variable).empty(); });
}

}  // namespace

std::vector<GpuDescription> gpus() {
  std::vector<GpuDescription> all;
  for (const DeviceKind kind : kGpuKinds) {
    const gpu::Driver* driver = gpu::Driver::of(kind);
    for (int i = 0; driver != nullptr && i < driver->device_count(); ++i) {
      const gpu::GpuInfo info = driver->info(i);
      GpuDescription description{
          Device{kind, i}, info.name, info.architecture,   "", "", info.bytes,
          info.integrated, info.wave, info.multiprocessors};
      if (!gpu::images_allowed() || !gpu::has_images(info.architecture, description.kernels)) {
        description.kernels.clear();
        if (const auto* compiler = gpu::Compiler::of(kind)) description.compiler = compiler->name;
      }
      all.push_back(std::move(description));
    }
  }
  return all;
}

Device best_device() {
  std::optional<GpuDescription> best;
  for (const GpuDescription& gpu : gpus()) {
    if (gpu.kernels.empty() && gpu.compiler.empty()) continue;
    const auto rank = [](const GpuDescription& g) {
      return std::pair(!g.integrated, g.memory_bytes);
    };
    if (!best || rank(gpu) > rank(*best)) best = gpu;
  }
  return best ? best->device : Device::cpu();
}

std::vector<DriverDescription> gpu_drivers() {
  std::vector<DriverDescription> all;
  for (const DeviceKind kind : kGpuKinds) {
    const gpu::Driver* driver = gpu::Driver::of(kind);
    if (driver == nullptr) {
      all.push_back({kind, false, "", "", gpu::Driver::missing(kind)});
    } else {
      all.push_back({kind, true, driver->library, driver->version(), ""});
    }
  }
  return all;
}

std::vector<LibraryDescription> gpu_libraries() {
  constexpr const char *kCompiles = "kernels of custom ops, and those that this binary lacks",
                       *kMultiplies = "products of float matrices",
                       *kConvolves = "convolutions, where it was measured to be faster";
  std::vector<LibraryDescription> all;
  for (const DeviceKind kind : kGpuKinds) {
    if (gpu::Driver::of(kind) == nullptr) continue;
    if (const gpu::Compiler* compiler = gpu::Compiler::of(kind)) {
      const size_t space = compiler->name.find(' ');
      all.push_back({kind, compiler->name.substr(0, space), kCompiles, true, compiler->library,
                     compiler->name.substr(space + 1), ""});
    } else {
      all.push_back({kind, std::string(kRunTimeCompiler), kCompiles, false, "", "",
                     gpu::Compiler::missing(kind)});
    }
    for (const auto& library : gpu::MatrixLibrary::of(kind)) {
      all.push_back(
          {kind, library->name, kMultiplies, true, library->library, library->version(), ""});
    }
    for (const auto& missing : gpu::MatrixLibrary::missing(kind)) {
      all.push_back({kind, missing.name, kMultiplies, false, "", "", missing.reason});
    }
    if (const auto* library = gpu::ConvolutionLibrary::of(kind)) {
      all.push_back(
          {kind, library->name, kConvolves, true, library->library, library->version(), ""});
    } else {
      const auto missing = gpu::ConvolutionLibrary::missing(kind);
      all.push_back({kind, missing.name, kConvolves, false, "", "", missing.reason});
    }
  }
  return all;
}

std::vector<std::string> unusable_drivers() {
  std::vector<std::string> lines;
  for (const DeviceKind kind : kGpuKinds) {
    const char* const variable =
        kind == DeviceKind::cuda ? "WICK_CUDA_LIBRARY" : "WICK_HIP_LIBRARY";
    if (environment(variable).empty() || gpu::Driver::of(kind) != nullptr) continue;
    lines.push_back(fmt::format("{}: no driver: {}", variable, gpu::Driver::missing(kind)));
  }
  return lines;
}

std::vector<std::string> unusable_libraries(std::span<const Device> devices) {
  std::vector<std::string> lines;
  const auto uses = [&](DeviceKind kind) {
    return std::any_of(devices.begin(), devices.end(), [&](Device d) { return d.kind == kind; });
  };
  const bool uses_gpu = std::any_of(std::begin(kGpuKinds), std::end(kGpuKinds), uses);
  if (!uses_gpu || !names_libraries()) return lines;
  for (const LibraryDescription& library : gpu_libraries()) {
    if (library.found || !uses(library.kind)) continue;
    const std::string variable = library_variable(library);
    if (environment(variable.c_str()).empty()) continue;
    lines.push_back(fmt::format("{}: not used: {}", variable, library.missing));
  }
  return lines;
}

size_t prepared_bytes(DType dtype, int64_t n, int64_t k, Device device) {
  if (device.kind != DeviceKind::cpu) return gpu::prepared_size(device.kind, dtype, n, k);
  return static_cast<size_t>(n * bytes_of(dtype, k));
}

}  // namespace wick
