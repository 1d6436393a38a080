#pragma once

// A vendor's driver, loaded at run time. Code outside the cuda and hip folders beside this one
// names no vendor's function; those folders have the names and everything in which the vendors
// differ.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wick/backend/custom_kernel.h"
#include "wick/backend/gpu/kernels/layout/copy_map.h"
#include "wick/base/device.h"

namespace wick::gpu {

/// The functions of api.def, as they were found in a library.
struct Api {
#define WICK_GPU_FN(role, arguments) int(*role) arguments = nullptr;
#include "wick/backend/gpu/driver/api.def"
};

/// A vendor's name of each function.
struct ApiNames {
#define WICK_GPU_FN(role, arguments) const char* role = nullptr;
#include "wick/backend/gpu/driver/api.def"
};

/// Whether every role has a name.
constexpr bool complete(const ApiNames& names) {
  bool all = true;
#define WICK_GPU_FN(role, arguments) all = all && names.role != nullptr;
#include "wick/backend/gpu/driver/api.def"
  return all;
}

/// Properties of a device that can be read without using it.
struct GpuInfo {
  std::string name;          ///< "NVIDIA H200"
  std::string architecture;  ///< "sm_90", "gfx1100"
  size_t bytes = 0;          ///< memory
  int multiprocessors = 0;   ///< multiprocessors or compute units
  int wave = 32;             ///< lanes that run in lockstep
  int shared_bytes = 0;      ///< shared memory that a thread block may request
  bool integrated = false;   ///< shares the host's memory
};

/// A tensor of 16-bit elements, and the boxes that tensor copies (TMA) read from it: see
/// device/wgmma.h. Dim 0 is contiguous.
struct CopyBoxes {
  static constexpr size_t kMostDims = 5;
  struct Dim {
    uint64_t size = 0;
    uint64_t bytes = 0;  ///< from one index to the next, a multiple of 16; without meaning in dim 0
    uint32_t box = 1;    ///< size of a box; 64 in dim 0
  };
  const void* data = nullptr;  ///< aligned to 16 bytes
  size_t rank = 0;
  std::array<Dim, kMostDims> dims;
};

/// Launch attributes, which take effect where hardware supports them.
struct LaunchWishes {
  /// Programmatic dependent launch: the kernel may start before the previous kernel has
  /// ended, and calls pdl_wait().
  bool pdl = false;
  /// Thread blocks of a cluster, which run at the same time and access each other's shared memory.
  /// More than one needs Gpu::has(Feature::cluster).
  unsigned cluster = 1;
};

class Driver {
 public:
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// The vendor's driver. Null if it isn't installed or doesn't work; see `missing`. The first call
  /// loads it.
  static Driver* of(DeviceKind kind);
  /// One line that says why there is no driver: which files were tried, and their errors.
  static std::string missing(DeviceKind kind);

  const Api api;
  /// The file that was loaded.
  const std::string library;

  int device_count() const { return count_; }
  /// For example "13.0" or "6.2".
  virtual std::string version() const = 0;
  virtual GpuInfo info(int device) const = 0;
  /// The limits of launches on a device.
  virtual LaunchLimits launch_limits(int device) const = 0;
  /// The bytes of a kernel's arguments, or -1 if the driver doesn't tell.
  virtual int64_t argument_bytes(void*) const { return -1; }
  /// The mark at the end of a launch's list of extra parameters.
  virtual void* end_of_launch_parameters() const = 0;
  /// Makes the device the calling thread's current one. It must precede any driver call that
  /// allocates, copies or launches. Errors: the device can't be used or was lost; this process is a
  /// fork of one that uses it.
  void enter(int device) const;
  /// enter() for destructors: returns false if the device can't be used any more.
  bool try_enter(int device) const noexcept;
  /// Throws if the device was lost or this process is a fork. The thread's current device stays.
  void require_usable(int device) const {
    if (forked() || lost_[static_cast<size_t>(device)].load() != nullptr) fail_lost(device);
  }
  /// Throws for a code that isn't 0; `what` names the attempted call. If the code says that the
  /// device is lost, later uses of the device throw too.
  void check(int code, int device, std::string_view what) const;
  /// The vendor's text for a code: "out of memory (2)".
  virtual std::string text(int code) const = 0;
  /// Whether a code says that memory ran out.
  virtual bool is_out_of_memory(int code) const = 0;
  /// Whether a code says that the driver rejects a kernel image.
  virtual bool is_refused_image(int code) const = 0;
  /// Whether a code says that the device is lost for this process.
  virtual bool is_lost(int code) const = 0;
  /// Allows launches of a function with `bytes` of dynamic shared memory.
  virtual int allow_shared(void* function, int bytes) const = 0;
  /// Launches with those of `wishes` that the driver supports; otherwise like api.launch.
  virtual int launch_with(const LaunchWishes& wishes, void* function, const unsigned (&blocks)[3],
                          unsigned threads, unsigned shared_bytes, void* stream,
                          void** arguments) const;

  /// Makes a tensor map with the swizzle that wgmma kernels expect. False if the driver can't, for
  /// example because a distance is negative.
  virtual bool make_copy_map(CopyMap& map, const CopyBoxes& of) const;

  /// Enables access from the calling thread's device to a peer's memory. Returns 0 if it is enabled
  /// already.
  virtual int reach(int peer) const = 0;
  /// Copies from a peer's memory to the calling thread's device, on a stream of that device.
  virtual int copy_from_peer(void* to, int to_device, const void* from, int from_device,
                             size_t bytes, void* stream) const = 0;

  /// Whether this process was forked from one that uses a driver. The fork can't use it.
  static bool forked() noexcept;

  /// Initialises the driver and counts its devices. Returns false, with a reason in `trace`, if it
  /// doesn't work or has no devices.
  bool start(std::string& trace);

 protected:
  /// Errors: those of traced().
  Driver(DeviceKind kind, const Api& functions, std::string file);
  int attribute(int which, int device) const;
  /// The part of `info` that is the same for all vendors: name and memory.
  GpuInfo basic_info(int device) const;
  /// An attribute that is positive on every device, or `otherwise` if the driver doesn't know it.
  int64_t limit(int which, int device, int64_t otherwise) const;
  /// Three such attributes with consecutive numbers: the limits along x, y and z.
  std::array<int64_t, 3> limits(int first, int device, std::array<int64_t, 3> otherwise) const;

 private:
  /// Makes the device the calling thread's current one; returns the vendor's code.
  virtual int set_current(int device) const = 0;

  [[noreturn]] void fail_lost(int device) const;

  const DeviceKind kind_;
  int count_ = 0;
  /// Why each device was lost; null if it works. Never freed.
  mutable std::vector<std::atomic<const std::string*>> lost_;
};

/// A loaded library. It stays loaded until the process ends.
class Library {
 public:
  /// Opens the first of `names` that loads. `trace` gets the error of each that doesn't.
  static std::unique_ptr<Library> open(const std::vector<std::string>& names, std::string& trace);
  /// Opens the file that an environment variable names, or else the first of `names` that loads.
  static std::unique_ptr<Library> open_chosen(const char* variable,
                                              const std::vector<std::string>& names,
                                              std::string& trace);
  void* symbol(const char* name) const;
  const std::string& file() const { return file_; }

 private:
  Library(void* handle, std::string file) : handle_(handle), file_(std::move(file)) {}
  void* handle_;
  std::string file_;
};

/// Finds a function. Returns false, with a reason in `trace`, if the library lacks it.
template <class F>
bool find_function(const Library& library, const char* name, F*& function, std::string& trace) {
  function = reinterpret_cast<F*>(library.symbol(name));
  if (function == nullptr) {
    trace += library.file() + " has no " + name + ": too old, or another library";
  }
  return function != nullptr;
}
/// Finds all functions of api.def.
bool find_functions(const Library& library, const ApiNames& names, Api& api, std::string& trace);

/// The vendors' drivers, not started. Null, with a reason in `trace`, if there is none.
std::unique_ptr<Driver> open_cuda(std::string& trace);
std::unique_ptr<Driver> open_hip(std::string& trace);

}  // namespace wick::gpu
