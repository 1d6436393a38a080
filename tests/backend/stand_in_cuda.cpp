// A driver that runs nothing and checks every argument: libcuda's part for tests on machines
// without one. Written from the CUDA driver API's documentation. What a real driver refuses is
// refused here, and some things that a real one would let pass.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#define STAND_IN extern "C" __attribute__((visibility("default"))) int

namespace {

enum Code : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
};

constexpr size_t kMemory = size_t{256} << 20;
constexpr unsigned kShared = 48 << 10, kSharedOptin = 227 << 10;

struct Function {
  unsigned shared = kShared;
};
struct Module {
  std::string image;
  std::map<std::string, Function> functions;
};

std::mutex mutex;
bool initialized = false;
int context_object;
thread_local void* current = nullptr;
std::map<uintptr_t, size_t> blocks;
size_t used = 0;
std::set<void*> streams, events, functions, capturing, pinned;
std::map<void*, Module> modules;

int ready() {
  if (!initialized) return kNotInitialized;
  return current == &context_object ? kSuccess : kInvalidContext;
}
bool is_stream(void* stream) { return stream == nullptr || streams.contains(stream); }

/// Whether all of a range is within one block.
bool on_device(const void* data, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  auto block = blocks.upper_bound(at);
  if (block == blocks.begin()) return false;
  --block;
  return at - block->first <= block->second && bytes <= block->second - (at - block->first);
}

template <class Check>
int guarded(const Check& check) {
  std::lock_guard lock(mutex);
  const int code = ready();
  return code != kSuccess ? code : check();
}

int copy(void* to, const void* from, size_t bytes, void* stream, bool to_device, bool from_device) {
  return guarded([&]() -> int {
    if (!is_stream(stream)) return kInvalidHandle;
    if (to_device && !on_device(to, bytes)) return kInvalidValue;
    if (from_device && !on_device(from, bytes)) return kInvalidValue;
    if (bytes != 0) std::memmove(to, from, bytes);
    return kSuccess;
  });
}

int make(std::set<void*>& set, void** handle, unsigned flags, unsigned known) {
  return guarded([&]() -> int {
    if (handle == nullptr || (flags & ~known) != 0) return kInvalidValue;
    *handle = std::malloc(1);
    set.insert(*handle);
    return kSuccess;
  });
}
int destroy(std::set<void*>& set, void* handle) {
  return guarded([&]() -> int {
    if (set.erase(handle) == 0) return kInvalidHandle;
    std::free(handle);
    return kSuccess;
  });
}

int launch(void* function, const unsigned* groups, const unsigned* items, unsigned shared,
           void* stream, void** arguments) {
  return guarded([&]() -> int {
    if (!functions.contains(function) || !is_stream(stream)) return kInvalidHandle;
    const uint64_t all = uint64_t{items[0]} * items[1] * items[2];
    if (all == 0 || all > 1024 || items[2] > 64) return kInvalidValue;
    if (groups[0] == 0 || groups[0] > 0x7fffffff || groups[1] == 0 || groups[1] > 65535 ||
        groups[2] == 0 || groups[2] > 65535) {
      return kInvalidValue;
    }
    if (shared > static_cast<Function*>(function)->shared) return kInvalidValue;
    return arguments == nullptr ? kInvalidValue : kSuccess;
  });
}

}  // namespace

STAND_IN cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  initialized = true;
  return kSuccess;
}
STAND_IN cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
STAND_IN cuDeviceGetCount(int* count) {
  *count = 1;
  return initialized ? kSuccess : kNotInitialized;
}
STAND_IN cuDeviceGetName(char* name, int length, int device) {
  if (device != 0 || length < 16) return kInvalidDevice;
  std::strcpy(name, "stand-in");
  return kSuccess;
}
STAND_IN cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = kMemory;
  return device == 0 ? kSuccess : kInvalidDevice;
}
STAND_IN cuDeviceGetAttribute(int* value, int attribute, int device) {
  static const std::map<int, int> kValues = {
      {16, 132}, {18, 0}, {75, 9}, {76, 0}, {97, static_cast<int>(kSharedOptin)}};
  if (device != 0) return kInvalidDevice;
  if (!kValues.contains(attribute)) return kInvalidValue;
  *value = kValues.at(attribute);
  return kSuccess;
}
STAND_IN cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device != 0) return kInvalidDevice;
  *context = &context_object;
  return kSuccess;
}
STAND_IN cuCtxSetCurrent(void* context) {
  if (context != &context_object) return kInvalidContext;
  current = context;
  return kSuccess;
}
STAND_IN cuGetErrorName(int code, const char** name) {
  *name = code == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  return kSuccess;
}
STAND_IN cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory ? "out of memory"
          : code == kNotFound  ? "named symbol not found"
                               : "an error";
  return kSuccess;
}

STAND_IN cuMemAlloc_v2(void** data, size_t bytes) {
  return guarded([&]() -> int {
    if (data == nullptr || bytes == 0) return kInvalidValue;
    if (bytes > kMemory - used) return kOutOfMemory;
    *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    blocks[reinterpret_cast<uintptr_t>(*data)] = bytes;
    used += bytes;
    return kSuccess;
  });
}
STAND_IN cuMemFree_v2(void* data) {
  return guarded([&]() -> int {
    const auto at = blocks.find(reinterpret_cast<uintptr_t>(data));
    if (at == blocks.end()) return kInvalidValue;
    used -= at->second;
    blocks.erase(at);
    std::free(data);
    return kSuccess;
  });
}
STAND_IN cuMemGetInfo_v2(size_t* free, size_t* total) {
  return guarded([&]() -> int {
    if (free == nullptr || total == nullptr) return kInvalidValue;
    *free = kMemory - used;
    *total = kMemory;
    return kSuccess;
  });
}
STAND_IN cuMemHostAlloc(void** data, size_t bytes, unsigned flags) {
  return guarded([&]() -> int {
    if (data == nullptr || bytes == 0 || (flags & ~7u) != 0) return kInvalidValue;
    *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    pinned.insert(*data);
    return kSuccess;
  });
}
STAND_IN cuMemFreeHost(void* data) {
  return guarded([&]() -> int {
    if (pinned.erase(data) == 0) return kInvalidValue;
    std::free(data);
    return kSuccess;
  });
}
STAND_IN cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  return copy(to, from, bytes, stream, true, false);
}
STAND_IN cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  return copy(to, from, bytes, stream, false, true);
}
STAND_IN cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  return copy(to, from, bytes, stream, true, true);
}
STAND_IN cuMemsetD8Async(void* to, unsigned char value, size_t bytes, void* stream) {
  return guarded([&]() -> int {
    if (!is_stream(stream)) return kInvalidHandle;
    if (!on_device(to, bytes)) return kInvalidValue;
    std::memset(to, value, bytes);
    return kSuccess;
  });
}

STAND_IN cuStreamCreate(void** stream, unsigned flags) { return make(streams, stream, flags, 1); }
STAND_IN cuStreamDestroy_v2(void* stream) { return destroy(streams, stream); }
STAND_IN cuStreamSynchronize(void* stream) {
  return guarded([&]() -> int { return is_stream(stream) ? kSuccess : kInvalidHandle; });
}
STAND_IN cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return guarded([&]() -> int {
    if (flags != 0) return kInvalidValue;
    return is_stream(stream) && events.contains(event) ? kSuccess : kInvalidHandle;
  });
}
STAND_IN cuEventCreate(void** event, unsigned flags) { return make(events, event, flags, 7); }
STAND_IN cuEventDestroy_v2(void* event) { return destroy(events, event); }
STAND_IN cuEventRecord(void* event, void* stream) {
  return guarded([&]() -> int {
    return is_stream(stream) && events.contains(event) ? kSuccess : kInvalidHandle;
  });
}
STAND_IN cuEventSynchronize(void* event) { return cuEventRecord(event, nullptr); }
STAND_IN cuEventElapsedTime(float* milliseconds, void* start, void* stop) {
  *milliseconds = 1;
  const int code = cuEventSynchronize(start);
  return code != kSuccess ? code : cuEventSynchronize(stop);
}

STAND_IN cuModuleLoadData(void** module, const void* image) {
  return guarded([&]() -> int {
    // An ELF file of machine code; how long it is its section table says, which comes last.
    const auto* bytes = static_cast<const unsigned char*>(image);
    if (image == nullptr || std::memcmp(bytes, "\177ELF", 4) != 0) return kInvalidImage;
    uint64_t sections;
    uint16_t size, count;
    std::memcpy(&sections, bytes + 0x28, sizeof sections);
    std::memcpy(&size, bytes + 0x3a, sizeof size);
    std::memcpy(&count, bytes + 0x3c, sizeof count);
    *module = std::malloc(1);
    modules[*module].image.assign(static_cast<const char*>(image), sections + size * count);
    return kSuccess;
  });
}
STAND_IN cuModuleUnload(void* module) {
  return guarded([&]() -> int {
    const auto at = modules.find(module);
    if (at == modules.end()) return kInvalidHandle;
    for (auto& [name, function] : at->second.functions) functions.erase(&function);
    modules.erase(at);
    std::free(module);
    return kSuccess;
  });
}
STAND_IN cuModuleGetFunction(void** function, void* module, const char* name) {
  return guarded([&]() -> int {
    const auto at = modules.find(module);
    if (at == modules.end()) return kInvalidHandle;
    // Each kernel has a section of its own.
    if (at->second.image.find(std::string(".text.") + name + '\0') == std::string::npos)
      return kNotFound;
    *function = &at->second.functions[name];
    functions.insert(*function);
    return kSuccess;
  });
}
STAND_IN cuFuncSetAttribute(void* function, int attribute, int value) {
  return guarded([&]() -> int {
    if (!functions.contains(function)) return kInvalidHandle;
    if (attribute != 8 || value < 0 || value > static_cast<int>(kSharedOptin)) return kInvalidValue;
    static_cast<Function*>(function)->shared = static_cast<unsigned>(value);
    return kSuccess;
  });
}
STAND_IN cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, void* stream, void** arguments,
                        void** extra) {
  if (extra != nullptr) return kInvalidValue;
  const unsigned groups[] = {gx, gy, gz}, items[] = {bx, by, bz};
  return launch(function, groups, items, shared, stream, arguments);
}
STAND_IN cuLaunchKernelEx(const void* config, void* function, void** arguments, void** extra) {
  struct Config {
    unsigned groups[3], items[3], shared;
    void* stream;
    const int* attributes;
    unsigned count;
  } c;
  std::memcpy(&c, config, sizeof c);
  // The one attribute that is in use: programmatic serialisation, allowed.
  if (extra != nullptr || c.count != 1 || c.attributes[0] != 6 || c.attributes[2] != 1) {
    return kInvalidValue;
  }
  return launch(function, c.groups, c.items, c.shared, c.stream, arguments);
}

STAND_IN cuStreamBeginCapture_v2(void* stream, int mode) {
  return guarded([&]() -> int {
    if (!streams.contains(stream) || mode < 0 || mode > 2) return kInvalidValue;
    return capturing.insert(stream).second ? kSuccess : kInvalidValue;
  });
}
STAND_IN cuStreamEndCapture(void* stream, void** graph) {
  return guarded([&]() -> int {
    *graph = stream;
    return capturing.erase(stream) == 1 ? kSuccess : kInvalidValue;
  });
}
STAND_IN cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  *exec = graph;
  return flags == 0 && graph != nullptr ? ready() : kInvalidValue;
}
STAND_IN cuGraphLaunch(void* exec, void*) { return exec != nullptr ? ready() : kInvalidValue; }
STAND_IN cuGraphExecDestroy(void* exec) { return exec != nullptr ? ready() : kInvalidValue; }
STAND_IN cuGraphDestroy(void* graph) { return graph != nullptr ? ready() : kInvalidValue; }
