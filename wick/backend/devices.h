#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/export.h"

namespace wick {

/// A GPU as its driver tells of it; it isn't used for that.
struct GpuDescription {
  Device device;
  std::string name;          ///< "NVIDIA H200"
  std::string architecture;  ///< "sm_90", "gfx1100"
  std::string kernels;       ///< whose kernels of this binary it runs; empty: there are none for it
  std::string compiler;      ///< what makes its kernels at their first use where there are none
  size_t memory_bytes = 0;
  bool integrated = false;  ///< shares the host's memory
  int wave = 0;             ///< lanes that run in lockstep
  int processors = 0;
};

/// A vendor's driver, found or not.
struct DriverDescription {
  DeviceKind kind = DeviceKind::cuda;
  bool found = false;
  std::string library;  ///< the file that was loaded
  std::string version;
  std::string missing;  ///< why it isn't there
};

/// A vendor's library that wick uses where it is there and does without where it isn't.
struct LibraryDescription {
  DeviceKind kind = DeviceKind::cuda;
  std::string name;  ///< "rocBLAS"
  std::string use;   ///< "products of matrices"
  bool found = false;
  std::string library;  ///< the file that was loaded
  std::string version;
  std::string missing;  ///< why it isn't there
};

/// Where models run best: the GPU with kernels that has the most memory of its own, else one that
/// shares the host's, else the CPU. Loads the drivers that are there.
WICK_API Device best_device();

/// All GPUs of all drivers. Loads the drivers that are there.
WICK_API std::vector<GpuDescription> gpus();
WICK_API std::vector<DriverDescription> gpu_drivers();
/// The optional libraries of the vendors whose driver is there. Loads those that are found.
WICK_API std::vector<LibraryDescription> gpu_libraries();

/// A line for each environment variable that names a driver which can't be used:
/// "WICK_HIP_LIBRARY: no driver: …". Loads the drivers that are there.
WICK_API std::vector<std::string> unusable_drivers();
/// A line for each environment variable that names another library of the device's vendor which
/// can't be used: "WICK_ROCBLAS_LIBRARY: not used: …". Loads the vendor's libraries where such a
/// variable has a value.
WICK_API std::vector<std::string> unusable_libraries(Device device);

}  // namespace wick
