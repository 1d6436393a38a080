// NVIDIA's driver: names of functions, contexts, and values of attributes and errors. Source: the
// CUDA driver API's documentation, 12.0 and later.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "wick/backend/gpu/driver/driver.h"
#include "wick/backend/gpu/trace/counts.h"
#include "wick/backend/gpu/trace/trace.h"

namespace wick::gpu {
namespace {

constexpr ApiNames kNames = {
    .init = "cuInit",
    .driver_version = "cuDriverGetVersion",
    .device_count = "cuDeviceGetCount",
    .device_name = "cuDeviceGetName",
    .device_memory = "cuDeviceTotalMem_v2",
    .device_attribute = "cuDeviceGetAttribute",
    .device_reaches = "cuDeviceCanAccessPeer",
    .mem_alloc = "cuMemAlloc_v2",
    .mem_free = "cuMemFree_v2",
    .mem_info = "cuMemGetInfo_v2",
    .host_alloc = "cuMemHostAlloc",
    .host_free = "cuMemFreeHost",
    .copy_to_device = "cuMemcpyHtoDAsync_v2",
    .copy_to_host = "cuMemcpyDtoHAsync_v2",
    .copy_on_device = "cuMemcpyDtoDAsync_v2",
    .set_bytes = "cuMemsetD8Async",
    .device_synchronize = "cuCtxSynchronize",
    .stream_create = "cuStreamCreate",
    .stream_destroy = "cuStreamDestroy_v2",
    .stream_synchronize = "cuStreamSynchronize",
    .stream_wait_event = "cuStreamWaitEvent",
    .event_create = "cuEventCreate",
    .event_destroy = "cuEventDestroy_v2",
    .event_record = "cuEventRecord",
    .event_synchronize = "cuEventSynchronize",
    .event_elapsed = "cuEventElapsedTime",
    .module_load = "cuModuleLoadData",
    .module_unload = "cuModuleUnload",
    .module_function = "cuModuleGetFunction",
    .function_attribute = "cuFuncGetAttribute",
    .launch = "cuLaunchKernel",
    .capture_begin = "cuStreamBeginCapture_v2",
    .capture_end = "cuStreamEndCapture",
    .graph_instantiate = "cuGraphInstantiateWithFlags",
    .graph_launch = "cuGraphLaunch",
    .graph_exec_destroy = "cuGraphExecDestroy",
    .graph_destroy = "cuGraphDestroy",
};
static_assert(complete(kNames));

/// Functions that only this vendor has.
struct Extra {
  int (*context_retain)(void** context, int device);
  int (*context_set)(void* context);
  int (*context_reach)(void* peer, unsigned flags);
  int (*copy_peer)(void* to, void* to_context, const void* from, void* from_context, size_t bytes,
                   void* stream);
  int (*error_name)(int code, const char** name);
  int (*error_string)(int code, const char** text);
  int (*function_set_attribute)(void* function, int attribute, int value);
  // Drivers from 12.4 on have it; null with others.
  int (*parameter_info)(void* function, size_t index, size_t* offset, size_t* bytes);
  int (*launch_extended)(const void* config, void* function, void** arguments, void** extra);
  // Drivers from 12.0 on have it; null with others.
  int (*encode_copy_map)(void* map, int type, uint32_t rank, const void* data,
                         const uint64_t* sizes, const uint64_t* strides, const uint32_t* box,
                         const uint32_t* steps, int interleave, int swizzle, int promotion,
                         int fill);
};

/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char all[64];
    int value;
    unsigned blocks[3];
  };
};
struct LaunchConfig {
  unsigned blocks[3], threads[3], shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

enum Attribute : int {
  kBlockThreads = 1,
  kBlockX = 2,
  kGridX = 5,
  kIntegrated = 18,
  kMultiprocessors = 16,
  kMajor = 75,
  kMinor = 76,
  kSharedOptin = 97,
};
constexpr int kClusterDimension = 4, kProgrammaticSerialization = 6, kMaxDynamicShared = 8;
constexpr int kOutOfMemory = 2, kInvalidDevice = 101, kReachesAlready = 704;
/// No image, no image for the device, invalid PTX, PTX that is too new, or no PTX compiler.
constexpr std::array kRefusedImage = {200, 209, 218, 221, 222};
/// Uncorrectable errors of memory and links, kernel faults that make their context unusable, a
/// hang, and unknown errors.
constexpr std::array kLost = {214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999};
// Tensor maps: 16-bit elements, 128-byte swizzle, promotion to 256 bytes in L2, zero fill.
constexpr int kWord16 = 1, kNoInterleave = 0, kSwizzle128 = 3, kPromote256 = 3, kFillZeros = 0;

class CudaDriver final : public Driver {
 public:
  CudaDriver(const Api& functions, const Extra& extra, std::string file)
      : Driver(DeviceKind::cuda, functions, std::move(file)), extra_(extra) {}

  std::string version() const override {
    int number = 0;
    api.driver_version(&number);
    return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
  }

  GpuInfo info(int device) const override {
    GpuInfo info = basic_info(device);
    info.architecture =
        fmt::format("sm_{}{}", attribute(kMajor, device), attribute(kMinor, device));
    info.multiprocessors = attribute(kMultiprocessors, device);
    info.shared_bytes = attribute(kSharedOptin, device);
    info.integrated = attribute(kIntegrated, device) != 0;
    return info;
  }

  LaunchLimits launch_limits(int device) const override {
    const int64_t all = INT64_MAX;  // blocks along each axis are the only limit
    return {.block_threads = limit(kBlockThreads, device, 1024),
            .threads = limits(kBlockX, device, {1024, 1024, 64}),
            .blocks = limits(kGridX, device, {INT32_MAX, 65535, 65535}),
            .in_grid = {all, all, all},
            .shared_bytes = limit(kSharedOptin, device, 48 << 10),
            .warp = 32,
            .multiprocessors = attribute(kMultiprocessors, device)};
  }
  int64_t argument_bytes(void* function) const override {
    if (extra_.parameter_info == nullptr) return -1;
    constexpr size_t kMostParameters = 4096;
    int64_t all = 0;
    for (size_t i = 0; i < kMostParameters; ++i) {
      size_t offset = 0, bytes = 0;
      if (extra_.parameter_info(function, i, &offset, &bytes) != 0) break;  // there is none
      all = static_cast<int64_t>(offset + bytes);
    }
    return all;
  }
  void* end_of_launch_parameters() const override { return nullptr; }

  std::string text(int code) const override {
    const char *name = nullptr, *words = nullptr;
    extra_.error_name(code, &name);
    extra_.error_string(code, &words);
    if (name == nullptr || words == nullptr) return fmt::format("error {}", code);
    return fmt::format("{} ({})", words, name);
  }

  bool is_out_of_memory(int code) const override { return code == kOutOfMemory; }
  bool is_refused_image(int code) const override {
    return std::find(kRefusedImage.begin(), kRefusedImage.end(), code) != kRefusedImage.end();
  }
  bool is_lost(int code) const override {
    return std::find(kLost.begin(), kLost.end(), code) != kLost.end();
  }

  int reach(int peer) const override {
    void* other = nullptr;
    const int code = context(peer, other);
    if (code != 0) return code;
    const int reached = extra_.context_reach(other, 0);
    return reached == kReachesAlready ? 0 : reached;
  }
  int copy_from_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                     void* stream) const override {
    void *here = nullptr, *there = nullptr;
    int code = context(to_device, here);
    if (code == 0) code = context(from_device, there);
    return code == 0 ? extra_.copy_peer(to, here, from, there, bytes, stream) : code;
  }

  int allow_shared(void* function, int bytes) const override {
    return extra_.function_set_attribute(function, kMaxDynamicShared, bytes);
  }

  int launch_with(const LaunchWishes& wishes, void* function, const unsigned (&blocks)[3],
                  unsigned threads, unsigned shared_bytes, void* stream,
                  void** arguments) const override {
    LaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (wishes.pdl && !tracing()) {
      attributes[count].id = kProgrammaticSerialization;
      attributes[count++].value = 1;
    }
    if (wishes.cluster > 1) {
      attributes[count].id = kClusterDimension;
      attributes[count].blocks[0] = wishes.cluster;
      attributes[count].blocks[1] = 1;
      attributes[count++].blocks[2] = 1;
    }
    const LaunchConfig config = {{blocks[0], blocks[1], blocks[2]},
                                 {threads, 1, 1},
                                 shared_bytes,
                                 stream,
                                 attributes,
                                 count};
    const auto launch = [&] {
      return extra_.launch_extended(&config, function, arguments, nullptr);
    };
    count_launch();
    if (!tracing()) return launch();
    return trace_launch(DeviceKind::cuda, function, blocks, threads, shared_bytes, stream, launch);
  }

  bool make_copy_map(CopyMap& map, const CopyBoxes& of) const override {
    if (extra_.encode_copy_map == nullptr) return false;
    uint64_t sizes[CopyBoxes::kMostDims], strides[CopyBoxes::kMostDims];
    uint32_t box[CopyBoxes::kMostDims], steps[CopyBoxes::kMostDims];
    uint64_t extent = 2;  // bytes of the dims so far
    for (size_t i = 0; i < of.rank; ++i) {
      const CopyBoxes::Dim& dim = of.dims[i];
      sizes[i] = dim.size;
      box[i] = dim.box;
      steps[i] = 1;
      // The stride of a single index is meaningless, but the driver checks it.
      const uint64_t bytes = i == 0 ? 2 : dim.size > 1 ? dim.bytes : (extent + 15) / 16 * 16;
      if (i > 0) strides[i - 1] = bytes;
      extent = bytes * dim.size;
    }
    return extra_.encode_copy_map(&map, kWord16, static_cast<uint32_t>(of.rank), of.data, sizes,
                                  strides, box, steps, kNoInterleave, kSwizzle128, kPromote256,
                                  kFillZeros) == 0;
  }

 private:
  /// Uses the device's primary context, which other libraries share.
  int set_current(int device) const override {
    void* own = nullptr;
    const int code = context(device, own);
    return code == 0 ? extra_.context_set(own) : code;
  }

  int context(int device, void*& own) const {
    if (device < 0 || device >= kMostDevices) return kInvalidDevice;
    std::atomic<void*>& kept = contexts_[static_cast<size_t>(device)];
    own = kept.load(std::memory_order_acquire);
    if (own != nullptr) return 0;
    // If two threads get here, both receive the same context.
    const int code = extra_.context_retain(&own, device);
    if (code == 0) kept.store(own, std::memory_order_release);
    return code;
  }

  static constexpr int kMostDevices = 256;
  const Extra extra_;
  mutable std::array<std::atomic<void*>, kMostDevices> contexts_{};
};

bool find_extra(const Library& library, Extra& extra, std::string& trace) {
  const auto find = [&](auto& function, const char* name) {
    return find_function(library, name, function, trace);
  };
  extra.encode_copy_map =
      reinterpret_cast<decltype(extra.encode_copy_map)>(library.symbol("cuTensorMapEncodeTiled"));
  extra.parameter_info =
      reinterpret_cast<decltype(extra.parameter_info)>(library.symbol("cuFuncGetParamInfo"));
  return find(extra.context_retain, "cuDevicePrimaryCtxRetain") &&
         find(extra.context_set, "cuCtxSetCurrent") &&
         find(extra.context_reach, "cuCtxEnablePeerAccess") &&
         find(extra.copy_peer, "cuMemcpyPeerAsync") && find(extra.error_name, "cuGetErrorName") &&
         find(extra.error_string, "cuGetErrorString") &&
         find(extra.function_set_attribute, "cuFuncSetAttribute") &&
         find(extra.launch_extended, "cuLaunchKernelEx");
}

}  // namespace

std::unique_ptr<Driver> open_cuda(std::string& trace) {
  const auto library = Library::open_chosen("WICK_CUDA_LIBRARY", {"libcuda.so.1"}, trace);
  Api api;
  Extra extra;
  if (library == nullptr || !find_functions(*library, kNames, api, trace) ||
      !find_extra(*library, extra, trace)) {
    return nullptr;
  }
  return std::make_unique<CudaDriver>(api, extra, library->file());
}

}  // namespace wick::gpu
