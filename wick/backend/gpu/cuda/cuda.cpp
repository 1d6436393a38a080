// NVIDIA's driver: its names, its contexts, and the numbers of its attributes and errors. Source:
// the CUDA driver API's documentation, 12.0 and later.

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>

#include "wick/backend/gpu/driver.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

constexpr ApiNames kNames = {
    .init = "cuInit",
    .driver_version = "cuDriverGetVersion",
    .device_count = "cuDeviceGetCount",
    .device_name = "cuDeviceGetName",
    .device_memory = "cuDeviceTotalMem_v2",
    .device_attribute = "cuDeviceGetAttribute",
    .can_access_peer = "cuDeviceCanAccessPeer",
    .mem_alloc = "cuMemAlloc_v2",
    .mem_free = "cuMemFree_v2",
    .mem_info = "cuMemGetInfo_v2",
    .host_alloc = "cuMemHostAlloc",
    .host_free = "cuMemFreeHost",
    .copy_to_device = "cuMemcpyHtoDAsync_v2",
    .copy_to_host = "cuMemcpyDtoHAsync_v2",
    .copy_on_device = "cuMemcpyDtoDAsync_v2",
    .set_bytes = "cuMemsetD8Async",
    .stream_create = "cuStreamCreate",
    .stream_destroy = "cuStreamDestroy_v2",
    .stream_synchronize = "cuStreamSynchronize",
    .stream_wait_event = "cuStreamWaitEvent",
    .event_create = "cuEventCreate",
    .event_destroy = "cuEventDestroy_v2",
    .event_record = "cuEventRecord",
    .event_synchronize = "cuEventSynchronize",
    .event_query = "cuEventQuery",
    .event_elapsed = "cuEventElapsedTime",
    .module_load = "cuModuleLoadData",
    .module_unload = "cuModuleUnload",
    .module_function = "cuModuleGetFunction",
    .launch = "cuLaunchKernel",
    .capture_begin = "cuStreamBeginCapture_v2",
    .capture_end = "cuStreamEndCapture",
    .graph_instantiate = "cuGraphInstantiateWithFlags",
    .graph_launch = "cuGraphLaunch",
    .graph_exec_destroy = "cuGraphExecDestroy",
    .graph_destroy = "cuGraphDestroy",
};
static_assert(complete(kNames));

/// What only this vendor has.
struct Extra {
  int (*context_retain)(void** context, int device);
  int (*context_set)(void* context);
  int (*error_name)(int code, const char** name);
  int (*error_string)(int code, const char** text);
  int (*copy_peer)(void* to, void* to_context, const void* from, void* from_context, size_t bytes,
                   void* stream);
  int (*function_set_attribute)(void* function, int attribute, int value);
  int (*launch_extended)(const void* config, void* function, void** arguments, void** extra);
};

/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char all[64];
    int value;
  };
};
struct LaunchConfig {
  unsigned groups[3], items[3], shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

enum Attribute : int {
  kIntegrated = 18,
  kMultiprocessors = 16,
  kMajor = 75,
  kMinor = 76,
  kSharedOptin = 97,
};
constexpr int kProgrammaticSerialization = 6, kMaxDynamicShared = 8;
constexpr int kOutOfMemory = 2;

class CudaDriver final : public Driver {
 public:
  CudaDriver(const Api& functions, const Extra& extra, std::string file)
      : Driver(functions, std::move(file)), extra_(extra) {
    api.device_count(&count_);
    contexts_.resize(static_cast<size_t>(count_));
  }

  std::string version() const override {
    int number = 0;
    api.driver_version(&number);
    return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
  }

  GpuInfo info(int device) const override {
    GpuInfo info;
    char name[256] = {};
    api.device_name(name, sizeof name - 1, device);
    info.name = name;
    api.device_memory(&info.bytes, device);
    info.architecture =
        fmt::format("sm_{}{}", attribute(kMajor, device), attribute(kMinor, device));
    info.processors = attribute(kMultiprocessors, device);
    info.shared_bytes = attribute(kSharedOptin, device);
    info.integrated = attribute(kIntegrated, device) != 0;
    return info;
  }

  void enter(int device) const override {
    const int code = extra_.context_set(context(device));
    if (code != 0)
      throw Error("cuda", "the device can't be used", fmt::format("cuda:{}", device), text(code));
  }

  std::string text(int code) const override {
    const char *name = nullptr, *words = nullptr;
    extra_.error_name(code, &name);
    extra_.error_string(code, &words);
    if (name == nullptr || words == nullptr) return fmt::format("error {}", code);
    return fmt::format("{} ({})", words, name);
  }

  bool is_out_of_memory(int code) const override { return code == kOutOfMemory; }

  /// Device lost, and the errors after which a context is of no use: illegal address or
  /// instruction, launch failures and the like.
  bool is_lost(int code) const override {
    return (code >= 700 && code <= 702) || (code >= 709 && code <= 720) || code == 46 ||
           code == 214;
  }

  int copy_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                void* stream) const override {
    return extra_.copy_peer(to, context(to_device), from, context(from_device), bytes, stream);
  }

  int allow_shared(void* function, int bytes) const override {
    return extra_.function_set_attribute(function, kMaxDynamicShared, bytes);
  }

  int launch_early(void* function, const unsigned (&groups)[3], unsigned items,
                   unsigned shared_bytes, void* stream, void** arguments) const override {
    LaunchAttribute attribute = {};
    attribute.id = kProgrammaticSerialization;
    attribute.value = 1;
    const LaunchConfig config = {
        {groups[0], groups[1], groups[2]}, {items, 1, 1}, shared_bytes, stream, &attribute, 1};
    return extra_.launch_extended(&config, function, arguments, nullptr);
  }

 private:
  int attribute(int which, int device) const {
    int value = 0;
    api.device_attribute(&value, which, device);
    return value;
  }

  /// The device's primary context, which libraries share.
  void* context(int device) const {
    std::lock_guard lock(mutex_);
    void*& context = contexts_[static_cast<size_t>(device)];
    if (context == nullptr) {
      const int code = extra_.context_retain(&context, device);
      if (code != 0) {
        throw Error("cuda", "the device can't be used", fmt::format("cuda:{}", device), text(code));
      }
    }
    return context;
  }

  const Extra extra_;
  mutable std::mutex mutex_;
  mutable std::vector<void*> contexts_;
};

bool find_extra(const Library& library, Extra& extra, std::string& trace) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.symbol(name));
    if (function == nullptr)
      trace += library.file() + " has no " + name + ": the driver is too old";
    return function != nullptr;
  };
  return find(extra.context_retain, "cuDevicePrimaryCtxRetain") &&
         find(extra.context_set, "cuCtxSetCurrent") && find(extra.error_name, "cuGetErrorName") &&
         find(extra.error_string, "cuGetErrorString") &&
         find(extra.copy_peer, "cuMemcpyPeerAsync") &&
         find(extra.function_set_attribute, "cuFuncSetAttribute") &&
         find(extra.launch_extended, "cuLaunchKernelEx");
}

}  // namespace

std::unique_ptr<Driver> open_cuda(std::string& trace) {
  const char* chosen = std::getenv("WICK_CUDA_LIBRARY");
  const auto library = Library::open(chosen != nullptr ? std::vector<std::string>{chosen}
                                                       : std::vector<std::string>{"libcuda.so.1"},
                                     trace);
  Api api;
  Extra extra;
  if (library == nullptr || !find_functions(*library, kNames, api, trace) ||
      !find_extra(*library, extra, trace)) {
    return nullptr;
  }
  const auto words = [&](int code) {
    const char* text = nullptr;
    extra.error_string(code, &text);
    return fmt::format("{}: {}", library->file(), text == nullptr ? "unknown error" : text);
  };
  if (const int code = api.init(0); code != 0) {
    trace += words(code);
    return nullptr;
  }
  auto driver = std::make_unique<CudaDriver>(api, extra, library->file());
  if (driver->device_count() == 0) {
    trace += library->file() + ": no device";
    return nullptr;
  }
  return driver;
}

}  // namespace wick::gpu
