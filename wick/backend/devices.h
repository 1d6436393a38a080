#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/dtype.h"
#include "wick/base/export.h"

namespace wick {

/// A GPU as its driver describes it. Querying doesn't start work on the GPU.
struct GpuDescription {
  Device device;
  std::string name;          ///< "NVIDIA H200"
  std::string architecture;  ///< "sm_90", "gfx1100"
  std::string kernels;       ///< architecture of the embedded kernels for it; empty: none
  std::string compiler;      ///< run-time compiler that is used if the binary has no kernels for it
  size_t memory_bytes = 0;
  bool integrated = false;  ///< whether it shares the host's memory
  int wave = 0;             ///< warp size (wave size on AMD)
  int processors = 0;
};

/// A vendor's driver.
struct DriverDescription {
  DeviceKind kind = DeviceKind::cuda;
  bool found = false;
  std::string library;  ///< the file that was loaded
  std::string version;
  std::string missing;  ///< reason if it wasn't found
};

/// An optional library of a vendor.
struct LibraryDescription {
  DeviceKind kind = DeviceKind::cuda;
  std::string name;  ///< "rocBLAS"
  std::string use;   ///< what wick uses it for: "products of matrices"
  bool found = false;
  std::string library;  ///< the file that was loaded
  std::string version;
  std::string missing;  ///< reason if it wasn't found
};

/// Returns the best device for models: the GPU with usable kernels and the most dedicated memory,
/// else a GPU that shares the host's memory, else the CPU. Loads the installed drivers.
WICK_API Device best_device();

/// Lists the GPUs of all drivers. Loads the installed drivers.
WICK_API std::vector<GpuDescription> gpus();
WICK_API std::vector<DriverDescription> gpu_drivers();
/// Lists the optional libraries of the vendors whose driver is installed. Loads the installed
/// libraries.
WICK_API std::vector<LibraryDescription> gpu_libraries();

/// About how many bytes of a device's memory Backend::prepare takes for a matrix [n, k].
size_t prepared_bytes(DType dtype, int64_t n, int64_t k, Device device);

/// Returns a line for each environment variable that names an unusable driver: "WICK_HIP_LIBRARY:
/// no driver: …". Loads the installed drivers.
WICK_API std::vector<std::string> unusable_drivers();
/// Returns a line for each environment variable that names an unusable library of the vendor of one
/// of the devices: "WICK_ROCBLAS_LIBRARY: not used: …". Loads a vendor's libraries if such a
/// variable is set.
WICK_API std::vector<std::string> unusable_libraries(std::span<const Device> devices);

}  // namespace wick
