#pragma once

// A vendor's driver, found at run time. Nothing here or above names a vendor's function: the two
// folders beside this file hold the names, and what is different between the two.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wick/backend/gpu/kernels/layout/copy_map.h"
#include "wick/base/device.h"

namespace wick::gpu {

/// The functions of api.def as they were found in a library.
struct Api {
#define WICK_GPU_FN(role, arguments) int(*role) arguments = nullptr;
#include "wick/backend/gpu/driver/api.def"
};

/// The name of each of them at a vendor.
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

/// What is known of a device without using it.
struct GpuInfo {
  std::string name;          ///< "NVIDIA H200"
  std::string architecture;  ///< "sm_90", "gfx1100"
  size_t bytes = 0;          ///< memory
  int multiprocessors = 0;   ///< multiprocessors or compute units
  int wave = 32;             ///< lanes that run in lockstep
  int shared_bytes = 0;      ///< shared memory that a block may ask for
  bool integrated = false;   ///< shares the host's memory
};

/// Matrices of 16-bit elements, of which a device copies boxes by itself: see device_wgmma.h.
struct CopyBoxes {
  const void* data = nullptr;  ///< on 16 bytes
  uint64_t columns = 0, rows = 0, matrices = 1;
  uint64_t row_bytes = 0, matrix_bytes = 0;  ///< from one to the next; multiples of 16
  uint32_t box_rows = 0;                     ///< by 64 columns
};

/// What kernels may be launched with where hardware has it.
struct LaunchWishes {
  /// The kernel may start before the one in front of it in the stream has ended, and waits for it
  /// itself.
  bool pdl = false;
  /// So many neighbouring thread blocks run at the same time and reach each other's shared memory.
  /// More than one only where Gpu::has(Feature::parts).
  unsigned cluster = 1;
};

class Driver {
 public:
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// The vendor's driver; null where it isn't installed or doesn't work, see `missing`. Loaded at
  /// the first call, once.
  static Driver* of(DeviceKind kind);
  /// One line that says why there is no driver: what was tried, and what each said.
  static std::string missing(DeviceKind kind);

  const Api api;
  /// The file that was loaded.
  const std::string library;

  int device_count() const { return count_; }
  /// "13.0", "6.2".
  virtual std::string version() const = 0;
  virtual GpuInfo info(int device) const = 0;
  /// Makes the device the calling thread's: before any call of the driver that allocates, copies or
  /// launches. Errors: the device can't be used, or was lost; this process is a fork of one that
  /// uses it.
  void enter(int device) const;
  /// The same for destructors: false where the device can't be used any more.
  bool try_enter(int device) const noexcept;
  /// Throws where a device was lost or this is a fork, and leaves the thread's device as it is.
  void require_usable(int device) const {
    if (forked() || lost_[static_cast<size_t>(device)].load() != nullptr) fail_lost(device);
  }
  /// Throws for a code that isn't 0; `what` was attempted. A code that says that the device does
  /// nothing more for this process is kept: whoever uses it later is told of it.
  void check(int code, int device, std::string_view what) const;
  /// What a code means, in the vendor's words: "out of memory (2)".
  virtual std::string text(int code) const = 0;
  /// Whether a code says that memory ran out.
  virtual bool is_out_of_memory(int code) const = 0;
  /// Whether a code says that the driver doesn't take a kernel's image.
  virtual bool is_refused_image(int code) const = 0;
  /// Whether a code says that the device does nothing more for this process.
  virtual bool is_lost(int code) const = 0;
  /// Lets a function be launched with so much dynamic shared memory.
  virtual int allow_shared(void* function, int bytes) const = 0;
  /// Launches with what the driver can do of `wishes`; otherwise as api.launch.
  virtual int launch_with(const LaunchWishes& wishes, void* function, const unsigned (&blocks)[3],
                          unsigned threads, unsigned shared_bytes, void* stream,
                          void** arguments) const;

  /// Describes matrices to kernels that copy boxes of them, whose pieces are mixed as those kernels
  /// expect. False where the driver can't.
  virtual bool make_copy_map(CopyMap& map, const CopyBoxes& of) const;

  /// Lets the calling thread's device reach another one's memory. 0 if it may already.
  virtual int reach(int peer) const = 0;
  /// Copies from another device's memory to the calling thread's, on a stream of the latter.
  virtual int copy_from_peer(void* to, int to_device, const void* from, int from_device,
                             size_t bytes, void* stream) const = 0;

  /// Whether this process came by fork from one that uses a driver: it can't.
  static bool forked() noexcept;

  /// Initialises the driver and counts its devices. False with a reason in `trace` where it doesn't
  /// work or has none.
  bool start(std::string& trace);

 protected:
  /// Errors: see traced.
  Driver(DeviceKind kind, const Api& functions, std::string file);
  int attribute(int which, int device) const;
  /// What `info` says the same way at every vendor: name and memory.
  GpuInfo basic_info(int device) const;

 private:
  /// Makes the device the calling thread's, and gives the vendor's code.
  virtual int set_current(int device) const = 0;

  [[noreturn]] void fail_lost(int device) const;

  const DeviceKind kind_;
  int count_ = 0;
  /// Of each device what it was lost by; null: it works. Never freed.
  mutable std::vector<std::atomic<const std::string*>> lost_;
};

/// A library that was opened; kept open until the process ends.
class Library {
 public:
  /// Opens the first of these names that works. `trace` takes a line for each that doesn't.
  static std::unique_ptr<Library> open(const std::vector<std::string>& names, std::string& trace);
  /// Opens the file that an environment variable names, else one of these.
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

/// Finds a function. False where the library lacks it, which `trace` then says.
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

/// The vendors' drivers, not started; null with a reason in `trace` where there is none.
std::unique_ptr<Driver> open_cuda(std::string& trace);
std::unique_ptr<Driver> open_hip(std::string& trace);

}  // namespace wick::gpu
