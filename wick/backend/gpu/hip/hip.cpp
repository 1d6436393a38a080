// AMD's HIP runtime: names of functions, and values of attributes and errors. Source: the HIP
// runtime API's documentation, 5.2 and later.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "wick/backend/gpu/driver/driver.h"
#include "wick/base/environment.h"

namespace wick::gpu {
namespace {

constexpr ApiNames kNames = {
    .init = "hipInit",
    .driver_version = "hipRuntimeGetVersion",
    .device_count = "hipGetDeviceCount",
    .device_name = "hipDeviceGetName",
    .device_memory = "hipDeviceTotalMem",
    .device_attribute = "hipDeviceGetAttribute",
    .device_reaches = "hipDeviceCanAccessPeer",
    .mem_alloc = "hipMalloc",
    .mem_free = "hipFree",
    .mem_info = "hipMemGetInfo",
    .host_alloc = "hipHostMalloc",
    .host_free = "hipHostFree",
    .copy_to_device = "hipMemcpyHtoDAsync",
    .copy_to_host = "hipMemcpyDtoHAsync",
    .copy_on_device = "hipMemcpyDtoDAsync",
    .set_bytes = "hipMemsetD8Async",
    .device_synchronize = "hipDeviceSynchronize",
    .stream_create = "hipStreamCreateWithFlags",
    .stream_destroy = "hipStreamDestroy",
    .stream_synchronize = "hipStreamSynchronize",
    .stream_wait_event = "hipStreamWaitEvent",
    .event_create = "hipEventCreateWithFlags",
    .event_destroy = "hipEventDestroy",
    .event_record = "hipEventRecord",
    .event_synchronize = "hipEventSynchronize",
    .event_elapsed = "hipEventElapsedTime",
    .module_load = "hipModuleLoadData",
    .module_unload = "hipModuleUnload",
    .module_function = "hipModuleGetFunction",
    .function_attribute = "hipFuncGetAttribute",
    .launch = "hipModuleLaunchKernel",
    .capture_begin = "hipStreamBeginCapture",
    .capture_end = "hipStreamEndCapture",
    .graph_instantiate = "hipGraphInstantiateWithFlags",
    .graph_launch = "hipGraphLaunch",
    .graph_exec_destroy = "hipGraphExecDestroy",
    .graph_destroy = "hipGraphDestroy",
};
static_assert(complete(kNames));

/// Functions that only this vendor has.
struct Extra {
  int (*set_device)(int device);
  int (*reach)(int peer, unsigned flags);
  int (*copy_peer)(void* to, int to_device, const void* from, int from_device, size_t bytes,
                   void* stream);
  const char* (*error_name)(int code);
  const char* (*error_string)(int code);
  int (*properties)(void* properties, int device);      // hipDeviceProp_tR0600; null before HIP 6
  int (*old_properties)(void* properties, int device);  // HIP 5
};

enum Attribute : int {
  kIntegrated = 16,
  kBlockX = 26,
  kGridX = 29,
  kBlockThreads = 56,
  kMultiprocessors = 63,
  kSharedPerBlock = 74,
  kWave = 87,
};
constexpr int kOutOfMemory = 2, kInvalidImage = 200, kNoBinaryForGpu = 209, kReachesAlready = 704;
/// Uncorrectable errors of memory, kernel faults that make the device unusable, a hang, and unknown
/// errors.
constexpr std::array kLost = {214, 700, 702, 709, 710, 718, 719, 999};
/// Offsets of the architecture's name in the two versions of the properties.
constexpr size_t kArchitectureAt = 1160, kOldArchitectureAt = 396;

class HipDriver final : public Driver {
 public:
  HipDriver(const Api& functions, const Extra& extra, std::string file)
      : Driver(DeviceKind::hip, functions, std::move(file)), extra_(extra) {}

  std::string version() const override {
    int number = 0;
    api.driver_version(&number);
    return fmt::format("{}.{}", number / 10'000'000, number / 100'000 % 100);
  }

  GpuInfo info(int device) const override {
    GpuInfo info = basic_info(device);
    info.architecture = architecture(device);
    info.multiprocessors = attribute(kMultiprocessors, device);
    info.wave = attribute(kWave, device);
    info.shared_bytes = attribute(kSharedPerBlock, device);
    info.integrated = attribute(kIntegrated, device) != 0;
    return info;
  }

  LaunchLimits launch_limits(int device) const override {
    // Grids are sizes in work-items of 32 bits.
    const int64_t items = UINT32_MAX;
    return {.block_threads = limit(kBlockThreads, device, 1024),
            .threads = limits(kBlockX, device, {1024, 1024, 1024}),
            .blocks = limits(kGridX, device, {INT32_MAX, INT32_MAX, INT32_MAX}),
            .in_grid = {items, items, items},
            .shared_bytes = limit(kSharedPerBlock, device, 64 << 10),
            .warp = attribute(kWave, device),
            .multiprocessors = attribute(kMultiprocessors, device)};
  }
  void* end_of_launch_parameters() const override {
    constexpr uintptr_t kEnd = 3;  // HIP_LAUNCH_PARAM_END
    return reinterpret_cast<void*>(kEnd);
  }

  std::string text(int code) const override {
    const char *name = extra_.error_name(code), *words = extra_.error_string(code);
    if (name == nullptr || words == nullptr) return fmt::format("error {}", code);
    return fmt::format("{} ({})", words, name);
  }

  bool is_out_of_memory(int code) const override { return code == kOutOfMemory; }
  bool is_refused_image(int code) const override {
    return code == kInvalidImage || code == kNoBinaryForGpu;
  }
  bool is_lost(int code) const override {
    return std::find(kLost.begin(), kLost.end(), code) != kLost.end();
  }

  int reach(int peer) const override {
    const int code = extra_.reach(peer, 0);
    return code == kReachesAlready ? 0 : code;
  }
  int copy_from_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                     void* stream) const override {
    return extra_.copy_peer(to, to_device, from, from_device, bytes, stream);
  }

  int allow_shared(void*, int) const override { return 0; }  // no limit needs to be raised

 private:
  int set_current(int device) const override { return extra_.set_device(device); }

  /// The architecture without its features: "gfx90a".
  std::string architecture(int device) const {
    alignas(16) char properties[4096] = {};
    const bool now = extra_.properties != nullptr;
    const int code =
        now ? extra_.properties(properties, device) : extra_.old_properties(properties, device);
    if (code != 0) return "";
    const char* text = properties + (now ? kArchitectureAt : kOldArchitectureAt);
    const std::string_view all(text, strnlen(text, 256));
    return std::string(all.substr(0, all.find(':')));
  }

  const Extra extra_;
};

bool find_extra(const Library& library, Extra& extra, std::string& trace) {
  const auto find = [&](auto& function, const char* name) {
    return find_function(library, name, function, trace);
  };
  std::string ignored;
  const bool now = find_function(library, "hipGetDevicePropertiesR0600", extra.properties, ignored);
  return (now || find(extra.old_properties, "hipGetDeviceProperties")) &&
         find(extra.set_device, "hipSetDevice") && find(extra.reach, "hipDeviceEnablePeerAccess") &&
         find(extra.copy_peer, "hipMemcpyPeerAsync") && find(extra.error_name, "hipGetErrorName") &&
         find(extra.error_string, "hipGetErrorString");
}

/// Without a card the runtime starts slowly, so the kernel driver's device files are checked first.
bool no_card(std::string& trace) {
  if (access("/dev/kfd", F_OK) == 0 || access("/dev/dxg", F_OK) == 0) return false;
  trace += "no AMD GPU: there is no /dev/kfd";
  return true;
}

}  // namespace

std::unique_ptr<Driver> open_hip(std::string& trace) {
  if (environment("WICK_HIP_LIBRARY").empty() && no_card(trace)) return nullptr;
  const auto library = Library::open_chosen(
      "WICK_HIP_LIBRARY", {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}, trace);
  Api api;
  Extra extra;
  if (library == nullptr || !find_functions(*library, kNames, api, trace) ||
      !find_extra(*library, extra, trace)) {
    return nullptr;
  }
  return std::make_unique<HipDriver>(api, extra, library->file());
}

}  // namespace wick::gpu
