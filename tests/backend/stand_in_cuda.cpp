// A stand-in for libcuda, for tests on machines without one. It runs no kernels and checks every
// argument. Written from the CUDA driver API's documentation. It rejects what a real driver
// rejects, and also some things that a real driver accepts: work on the default stream, and
// unloading a module while work is pending.
//
// Work on a stream runs as late as possible, when somebody waits for it. A caller that forgets to
// wait therefore sees the old data. Errors whose codes would be lost, because destructors ignore
// them, are printed on stderr: "stand-in: …".
//
// WICK_STAND_IN_DEVICES: the number of devices, 1 by default. WICK_STAND_IN_PEERS: "no" if devices
// can't access each other, or "damage" if copies between them corrupt data. WICK_STAND_IN_INIT: the
// code with which initialization fails. WICK_STAND_IN_OLD: rejects images as too new.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define STAND_IN extern "C" __attribute__((visibility("default"))) int

namespace {

enum Code : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kPeerUnsupported = 217,
  kUnsupportedPtx = 222,
  kPeerAlready = 704,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureIsolation = 905,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
};

constexpr size_t kMemory = size_t{256} << 20;
constexpr unsigned kShared = 48 << 10, kSharedOptin = 227 << 10;
constexpr unsigned kEventFlags = 7, kEventWithoutTime = 2;
constexpr int kCaptureGlobal = 0, kCaptureThread = 1, kCaptureRelaxed = 2;

using Work = std::function<void()>;
struct Function {
  unsigned shared = kShared;
};
struct Module {
  std::string image;
  std::map<std::string, Function> functions;
};
using Graph = std::vector<Work>;
struct Stream {
  int device = 0;
  std::deque<Work> waiting;
  bool capturing = false, invalid = false;
  int mode = 0;
  std::thread::id thread;
  Graph captured;
};
struct Event {
  int device = 0;
  bool timed = false, captured = false;
  Stream* recorded_on = nullptr;
  int recorded = 0, finished = 0;  // how often it was recorded, and how often it was reached
  double time_ms = 0;
  bool done() const { return recorded > 0 && finished == recorded; }
};

std::mutex mutex;
bool initialized = false, ended = false;
/// A device. Its address is also its context.
struct Context {
  size_t used = 0;
  std::set<int> reaches;
  int lost_later = 0, lost = 0;  // the error code from the next wait on, and the current one
};
constexpr int kMostDevices = 8;
std::array<Context, kMostDevices> contexts;
thread_local Context* current = nullptr;
struct Block {
  size_t bytes;
  int device;
};
std::map<uintptr_t, Block> blocks;
double clock_ms = 0;
std::map<void*, std::shared_ptr<Stream>> streams;
std::map<void*, std::shared_ptr<Event>> events;
std::map<void*, size_t> pinned;
std::map<void*, Module> modules;
std::set<void*> functions;
std::map<void*, Graph> graphs, execs;

/// Prints at exit what was never released.
struct LeakReport {
  ~LeakReport() {
    if (std::getenv("WICK_STAND_IN_LEAKS") == nullptr) return;
    for (const Context& context : contexts) {
      if (context.lost != 0) return;  // the memory of a lost device can't be freed
    }
    const std::pair<const char*, size_t> left[] = {
        {"blocks of memory", blocks.size()}, {"blocks of pinned memory", pinned.size()},
        {"streams", streams.size()},         {"events", events.size()},
        {"modules", modules.size()},         {"graphs", graphs.size()},
        {"executable graphs", execs.size()}};
    for (const auto& [what, count] : left) {
      if (count != 0) std::fprintf(stderr, "stand-in: %zu %s are left\n", count, what);
    }
  }
} leak_report;

bool is_pinned(const void* at) {
  const auto* const bytes = static_cast<const char*>(at);
  for (const auto& [data, size] : pinned) {
    if (bytes >= data && bytes < static_cast<const char*>(data) + size) return true;
  }
  return false;
}

int complain(int code, const char* what) {
  std::fprintf(stderr, "stand-in: %s\n", what);
  return code;
}

int device_count() {
  const char* count = std::getenv("WICK_STAND_IN_DEVICES");
  return count == nullptr ? 1 : std::min(std::atoi(count), kMostDevices);
}
bool is_device(int device) { return device >= 0 && device < device_count(); }
std::string peers() {
  const char* how = std::getenv("WICK_STAND_IN_PEERS");
  return how == nullptr ? "" : how;
}
int device_of(const Context* context) { return static_cast<int>(context - contexts.data()); }
Context* find_context(void* handle) {
  for (Context& context : contexts) {
    if (&context == handle && is_device(device_of(&context))) return &context;
  }
  return nullptr;
}

int ready() {
  if (!initialized) return kNotInitialized;
  if (ended) return kDeinitialized;
  if (current == nullptr) return kInvalidContext;
  return current->lost;
}

/// A wait ends here, and reports earlier errors.
int waited(int device) {
  Context& context = contexts[static_cast<size_t>(device)];
  if (context.lost_later != 0) context.lost = context.lost_later;
  return context.lost;
}

template <class Check>
int guarded(const Check& check) {
  std::lock_guard lock(mutex);
  const int code = ready();
  return code != kSuccess ? code : check();
}

Stream* find_stream(void* stream) {
  const auto at = streams.find(stream);
  return at == streams.end() ? nullptr : at->second.get();
}

void drain(Stream& stream) {
  while (!stream.waiting.empty()) {
    const Work work = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    work();
  }
}
/// Runs a stream's work up to the point where an event was recorded for the nth time. Later work
/// may wait for other streams.
void drain_up_to(const Event& event, int nth) {
  if (event.recorded_on == nullptr) return;
  std::deque<Work>& waiting = event.recorded_on->waiting;
  while (event.finished < nth && !waiting.empty()) {
    const Work work = std::move(waiting.front());
    waiting.pop_front();
    work();
  }
}

/// Puts work on a stream, or into the graph that the stream captures.
int submit(void* handle, Work work) {
  Stream* stream = find_stream(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->device != device_of(current)) return kInvalidContext;
  if (stream->invalid) return kCaptureInvalidated;
  if (stream->capturing) {
    stream->captured.push_back(std::move(work));
  } else {
    stream->waiting.push_back(std::move(work));
  }
  return kSuccess;
}

/// Calls that may synchronize the device are forbidden during a capture, unless both the capture
/// and the thread use the relaxed mode. The capture is invalidated.
int forbidden_while_capturing() {
  int code = kSuccess;
  for (auto& [handle, stream] : streams) {
    const bool mine = stream->thread == std::this_thread::get_id();
    if (!stream->capturing || stream->mode == kCaptureRelaxed) continue;
    if (stream->mode == kCaptureThread && !mine) continue;
    stream->invalid = true;
    code = kCaptureUnsupported;
  }
  return code;
}

/// Returns whether the whole range is within one block of the given device, which is the current
/// one by default.
bool on_device(const void* data, size_t bytes, int device = device_of(current)) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  auto block = blocks.upper_bound(at);
  if (block == blocks.begin()) return false;
  --block;
  const size_t size = block->second.bytes;
  return block->second.device == device && at - block->first <= size &&
         bytes <= size - (at - block->first);
}

void* new_handle() { return std::malloc(1); }

template <class Map>
int destroy(Map& map, void* handle, const char* twice) {
  return guarded([&]() -> int {
    if (map.erase(handle) == 0) return complain(kInvalidHandle, twice);
    std::free(handle);
    return kSuccess;
  });
}

int launch(void* function, const unsigned* blocks, const unsigned* threads, unsigned shared,
           void* stream, void** arguments) {
  return guarded([&]() -> int {
    if (!functions.contains(function)) return kInvalidHandle;
    const uint64_t all = uint64_t{threads[0]} * threads[1] * threads[2];
    if (all == 0 || all > 1024 || threads[2] > 64) return kInvalidValue;
    if (blocks[0] == 0 || blocks[0] > 0x7fffffff || blocks[1] == 0 || blocks[1] > 65535 ||
        blocks[2] == 0 || blocks[2] > 65535) {
      return kInvalidValue;
    }
    if (shared > static_cast<Function*>(function)->shared) return kInvalidValue;
    if (arguments == nullptr) return kInvalidValue;
    return submit(stream, [] { clock_ms += 0.5; });
  });
}

}  // namespace

STAND_IN cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  if (const char* code = std::getenv("WICK_STAND_IN_INIT")) return std::atoi(code);
  initialized = true;
  return kSuccess;
}
STAND_IN cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
STAND_IN cuDeviceGetCount(int* count) {
  *count = device_count();
  return initialized ? kSuccess : kNotInitialized;
}
STAND_IN cuDeviceGetName(char* name, int length, int device) {
  if (!is_device(device) || length < 16) return kInvalidDevice;
  std::strcpy(name, "stand-in");
  return kSuccess;
}
STAND_IN cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = kMemory;
  return is_device(device) ? kSuccess : kInvalidDevice;
}
STAND_IN cuDeviceGetAttribute(int* value, int attribute, int device) {
  static const std::map<int, int> kValues = {
      {16, 132}, {18, 0}, {75, 9}, {76, 0}, {97, static_cast<int>(kSharedOptin)}};
  if (!is_device(device)) return kInvalidDevice;
  if (!kValues.contains(attribute)) return kInvalidValue;
  *value = kValues.at(attribute);
  return kSuccess;
}
STAND_IN cuDeviceCanAccessPeer(int* whether, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return kInvalidDevice;
  *whether = device != peer && peers() != "no" ? 1 : 0;
  return kSuccess;
}
STAND_IN cuDevicePrimaryCtxRetain(void** context, int device) {
  if (!is_device(device)) return kInvalidDevice;
  // After this point of the process's exit, the driver can't be used any more.
  static const int once = std::atexit([] { ended = true; });
  if (once != 0) return kOutOfMemory;
  *context = &contexts[static_cast<size_t>(device)];
  return kSuccess;
}
STAND_IN cuCtxSetCurrent(void* context) {
  Context* const found = find_context(context);
  if (found == nullptr) return kInvalidContext;
  current = found;
  return kSuccess;
}
STAND_IN cuCtxEnablePeerAccess(void* peer, unsigned flags) {
  return guarded([&]() -> int {
    Context* const found = find_context(peer);
    if (found == nullptr || found == current) return kInvalidContext;
    if (flags != 0) return kInvalidValue;
    if (peers() == "no") return kPeerUnsupported;
    return current->reaches.insert(device_of(found)).second ? kSuccess : kPeerAlready;
  });
}
/// For tests: makes the device's work fail with this code, which the next wait reports.
STAND_IN stand_in_lose(int device, int code) {
  std::lock_guard lock(mutex);
  contexts[static_cast<size_t>(device)].lost_later = code;
  return kSuccess;
}
STAND_IN cuGetErrorName(int code, const char** name) {
  *name = code == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  return kSuccess;
}
STAND_IN cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory          ? "out of memory"
          : code == kNotFound           ? "named symbol not found"
          : code == kCaptureUnsupported ? "operation not permitted when stream is capturing"
                                        : "an error";
  return kSuccess;
}

STAND_IN cuMemAlloc_v2(void** data, size_t bytes) {
  return guarded([&]() -> int {
    if (data == nullptr || bytes == 0) return kInvalidValue;
    if (const int code = forbidden_while_capturing(); code != kSuccess) return code;
    if (bytes > kMemory - current->used) return kOutOfMemory;
    *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(*data, 0xcd, bytes);  // memory isn't zeroed
    blocks[reinterpret_cast<uintptr_t>(*data)] = {bytes, device_of(current)};
    current->used += bytes;
    return kSuccess;
  });
}
STAND_IN cuMemFree_v2(void* data) {
  return guarded([&]() -> int {
    const auto at = blocks.find(reinterpret_cast<uintptr_t>(data));
    if (at == blocks.end()) return complain(kInvalidValue, "memory that isn't there is freed");
    if (const int code = forbidden_while_capturing(); code != kSuccess) {
      return complain(code, "memory is freed during a capture");
    }
    for (auto& [handle, stream] : streams) drain(*stream);
    contexts[static_cast<size_t>(at->second.device)].used -= at->second.bytes;
    blocks.erase(at);
    std::free(data);
    return kSuccess;
  });
}
STAND_IN cuMemGetInfo_v2(size_t* free, size_t* total) {
  return guarded([&]() -> int {
    if (free == nullptr || total == nullptr) return kInvalidValue;
    *free = kMemory - current->used;
    *total = kMemory;
    return kSuccess;
  });
}
STAND_IN cuMemHostAlloc(void** data, size_t bytes, unsigned flags) {
  return guarded([&]() -> int {
    if (data == nullptr || bytes == 0 || (flags & ~7u) != 0) return kInvalidValue;
    *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    std::memset(*data, 0xcd, bytes);
    pinned[*data] = bytes;
    return kSuccess;
  });
}
STAND_IN cuMemFreeHost(void* data) {
  return guarded([&]() -> int {
    if (pinned.erase(data) == 0) {
      return complain(kInvalidValue, "pinned memory that isn't there is freed");
    }
    for (const auto& [handle, stream] : streams) {
      if (!stream->waiting.empty()) complain(kInvalidValue, "pinned memory goes while work waits");
    }
    std::free(data);
    return kSuccess;
  });
}
STAND_IN cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  return guarded([&]() -> int {
    if (!on_device(to, bytes) || on_device(from, 1)) return kInvalidValue;
    // For unpinned memory the source may change as soon as the call returns. A graph reads the
    // source when it runs.
    const Stream* const found = find_stream(stream);
    if (found != nullptr && (found->capturing || is_pinned(from))) {
      return submit(stream, [=] { std::memcpy(to, from, bytes); });
    }
    auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
    return submit(stream, [=] { std::memcpy(to, staged->data(), bytes); });
  });
}
STAND_IN cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  return guarded([&]() -> int {
    if (!on_device(from, bytes) || on_device(to, 1)) return kInvalidValue;
    const int code = submit(stream, [=] { std::memcpy(to, from, bytes); });
    // A copy to unpinned memory returns when the copy is complete.
    if (code == kSuccess && !find_stream(stream)->capturing && !is_pinned(to)) {
      drain(*find_stream(stream));
    }
    return code;
  });
}
STAND_IN cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  return guarded([&]() -> int {
    if (!on_device(to, bytes) || !on_device(from, bytes)) return kInvalidValue;
    const char *const a = static_cast<const char*>(from), *const b = static_cast<char*>(to);
    if (bytes != 0 && a < b + bytes && b < a + bytes) return kInvalidValue;
    return submit(stream, [=] {
      std::memcpy(to, from, bytes);
      clock_ms += 0.25;
    });
  });
}
STAND_IN cuMemcpyPeerAsync(void* to, void* to_context, const void* from, void* from_context,
                           size_t bytes, void* stream) {
  return guarded([&]() -> int {
    const Context *const here = find_context(to_context), *const there = find_context(from_context);
    if (here == nullptr || there == nullptr) return kInvalidContext;
    if (!on_device(to, bytes, device_of(here)) || !on_device(from, bytes, device_of(there))) {
      return kInvalidValue;
    }
    return submit(stream, [=, wrong = peers() == "damage"] {
      std::memcpy(to, from, bytes);
      if (wrong && bytes > 64) static_cast<char*>(to)[bytes / 2] ^= 1;
      clock_ms += 0.25;
    });
  });
}
STAND_IN cuMemsetD8Async(void* to, unsigned char value, size_t bytes, void* stream) {
  return guarded([&]() -> int {
    if (!on_device(to, bytes)) return kInvalidValue;
    return submit(stream, [=] { std::memset(to, value, bytes); });
  });
}

STAND_IN cuStreamCreate(void** stream, unsigned flags) {
  return guarded([&]() -> int {
    if (stream == nullptr || flags > 1) return kInvalidValue;
    *stream = new_handle();
    streams[*stream] = std::make_shared<Stream>();
    streams[*stream]->device = device_of(current);
    return kSuccess;
  });
}
STAND_IN cuStreamDestroy_v2(void* stream) {
  {
    std::lock_guard lock(mutex);
    if (Stream* found = find_stream(stream)) {
      if (found->capturing && current != nullptr && current->lost == 0) {
        return complain(kCaptureUnsupported, "a stream goes that captures");
      }
      drain(*found);
      for (auto& [handle, event] : events) {
        if (event->recorded_on == found) event->recorded_on = nullptr;
      }
    }
  }
  return destroy(streams, stream, "a stream is destroyed that isn't there");
}
STAND_IN cuCtxSynchronize() {
  return guarded([&]() -> int {
    if (current == nullptr) return kInvalidContext;
    const int device = device_of(current);
    for (auto& [handle, stream] : streams) {
      if (stream->device == device && stream->capturing) return kCaptureUnsupported;
    }
    for (auto& [handle, stream] : streams) {
      if (stream->device == device) drain(*stream);
    }
    return waited(device);
  });
}
STAND_IN cuStreamSynchronize(void* stream) {
  return guarded([&]() -> int {
    Stream* const found = find_stream(stream);
    if (found == nullptr) return kInvalidHandle;
    if (found->capturing) {
      found->invalid = true;
      return kCaptureUnsupported;
    }
    drain(*found);
    return waited(found->device);
  });
}

STAND_IN cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return guarded([&]() -> int {
    const auto at = events.find(event);
    const Stream* const found = find_stream(stream);
    if (flags != 0) return kInvalidValue;
    if (found == nullptr || at == events.end()) return kInvalidHandle;
    // A stream that doesn't capture would join the event's capture, which no caller here intends.
    if (at->second->captured != found->capturing) return kCaptureIsolation;
    // An event that was never recorded counts as complete.
    return submit(stream, [e = at->second, nth = at->second->recorded] { drain_up_to(*e, nth); });
  });
}
STAND_IN cuEventCreate(void** event, unsigned flags) {
  return guarded([&]() -> int {
    if (event == nullptr || (flags & ~kEventFlags) != 0) return kInvalidValue;
    *event = new_handle();
    events[*event] = std::make_shared<Event>();
    events[*event]->device = device_of(current);
    events[*event]->timed = (flags & kEventWithoutTime) == 0;
    return kSuccess;
  });
}
STAND_IN cuEventDestroy_v2(void* event) {
  return destroy(events, event, "an event is destroyed that isn't there");
}
STAND_IN cuEventRecord(void* event, void* stream) {
  return guarded([&]() -> int {
    const auto at = events.find(event);
    Stream* const found = find_stream(stream);
    if (at == events.end() || found == nullptr) return kInvalidHandle;
    if (at->second->device != found->device) return kInvalidHandle;
    const std::shared_ptr<Event> e = at->second;
    e->captured = found->capturing;
    e->recorded_on = found;
    ++e->recorded;
    return submit(stream, [e, nth = e->recorded] {
      e->finished = nth;
      e->time_ms = clock_ms;
    });
  });
}
STAND_IN cuEventSynchronize(void* event) {
  return guarded([&]() -> int {
    const auto at = events.find(event);
    if (at == events.end()) return kInvalidHandle;
    if (at->second->captured) return kCapturedEvent;
    drain_up_to(*at->second, at->second->recorded);
    return waited(at->second->device);
  });
}
STAND_IN cuEventElapsedTime(float* milliseconds, void* start, void* stop) {
  return guarded([&]() -> int {
    const auto first = events.find(start), last = events.find(stop);
    if (milliseconds == nullptr) return kInvalidValue;
    if (first == events.end() || last == events.end()) return kInvalidHandle;
    for (const Event* event : {first->second.get(), last->second.get()}) {
      if (event->captured) return kCapturedEvent;
      if (!event->timed) return kInvalidHandle;
      if (!event->done()) return event->recorded_on == nullptr ? kInvalidHandle : kNotReady;
    }
    *milliseconds = static_cast<float>(last->second->time_ms - first->second->time_ms);
    return kSuccess;
  });
}

STAND_IN cuModuleLoadData(void** module, const void* image) {
  return guarded([&]() -> int {
    if (std::getenv("WICK_STAND_IN_OLD") != nullptr) return kUnsupportedPtx;
    // The image is an ELF file. Its section table, which comes last, determines its size.
    const auto* bytes = static_cast<const unsigned char*>(image);
    if (image == nullptr || std::memcmp(bytes, "\177ELF", 4) != 0) return kInvalidImage;
    if (const int code = forbidden_while_capturing(); code != kSuccess) return code;
    uint64_t sections;
    uint16_t size, count;
    std::memcpy(&sections, bytes + 0x28, sizeof sections);
    std::memcpy(&size, bytes + 0x3a, sizeof size);
    std::memcpy(&count, bytes + 0x3c, sizeof count);
    *module = new_handle();
    modules[*module].image.assign(static_cast<const char*>(image), sections + size * count);
    return kSuccess;
  });
}
STAND_IN cuModuleUnload(void* module) {
  return guarded([&]() -> int {
    const auto at = modules.find(module);
    if (at == modules.end()) return complain(kInvalidHandle, "a module goes that isn't there");
    for (const auto& [handle, stream] : streams) {
      if (!stream->waiting.empty()) complain(kInvalidValue, "a module goes while work waits");
    }
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
    // Each kernel has its own section.
    if (at->second.image.find(std::string(".text.") + name + '\0') == std::string::npos)
      return kNotFound;
    *function = &at->second.functions[name];
    functions.insert(*function);
    return kSuccess;
  });
}
STAND_IN cuFuncGetAttribute(int* value, int attribute, void* function) {
  return guarded([&]() -> int {
    if (!functions.contains(function)) return kInvalidHandle;
    if (attribute != 0 && attribute != 1) return kInvalidValue;
    *value = attribute == 0 ? 1024 : 0;
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
  const unsigned blocks[] = {gx, gy, gz}, threads[] = {bx, by, bz};
  if (extra != nullptr) {
    // Keys of CU_LAUNCH_PARAM_*, each followed by a pointer: the arguments (1), their size (2). 0
    // ends the list.
    const auto is = [&](int i, uintptr_t key) {
      return extra[i] == reinterpret_cast<void*>(key) && (key == 0 || extra[i + 1] != nullptr);
    };
    if (arguments != nullptr || !is(0, 1) || !is(2, 2) || !is(4, 0)) return kInvalidValue;
    arguments = extra;
  }
  return launch(function, blocks, threads, shared, stream, arguments);
}
STAND_IN cuLaunchKernelEx(const void* config, void* function, void** arguments, void** extra) {
  struct Config {
    unsigned blocks[3], threads[3], shared;
    void* stream;
    const int* attributes;
    unsigned count;
  } c;
  std::memcpy(&c, config, sizeof c);
  // The supported attributes are programmatic stream serialization and clusters of up to 8 along
  // the first axis.
  if (extra != nullptr || c.count > 2) return kInvalidValue;
  for (unsigned i = 0; i < c.count; ++i) {
    const int* const attribute = c.attributes + i * 18;
    const bool pdl = attribute[0] == 6 && attribute[2] == 1;
    const bool parts = attribute[0] == 4 && attribute[2] > 0 && attribute[2] <= 8 &&
                       c.blocks[0] % static_cast<unsigned>(attribute[2]) == 0 &&
                       attribute[3] == 1 && attribute[4] == 1;
    if (!pdl && !parts) return kInvalidValue;
  }
  return launch(function, c.blocks, c.threads, c.shared, c.stream, arguments);
}

STAND_IN cuStreamBeginCapture_v2(void* stream, int mode) {
  return guarded([&]() -> int {
    Stream* const found = find_stream(stream);
    if (found == nullptr) return kInvalidHandle;
    if (mode < kCaptureGlobal || mode > kCaptureRelaxed || found->capturing) return kInvalidValue;
    found->capturing = true;
    found->invalid = false;
    found->mode = mode;
    found->thread = std::this_thread::get_id();
    found->captured.clear();
    return kSuccess;
  });
}
STAND_IN cuStreamEndCapture(void* stream, void** graph) {
  return guarded([&]() -> int {
    Stream* const found = find_stream(stream);
    if (found == nullptr) return kInvalidHandle;
    if (graph == nullptr || !found->capturing) return kInvalidValue;
    if (found->mode != kCaptureRelaxed && found->thread != std::this_thread::get_id()) {
      return kCaptureWrongThread;
    }
    *graph = nullptr;
    found->capturing = false;
    if (std::exchange(found->invalid, false)) return kCaptureInvalidated;
    *graph = new_handle();
    graphs[*graph] = std::exchange(found->captured, {});
    return kSuccess;
  });
}
STAND_IN cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  return guarded([&]() -> int {
    const auto at = graphs.find(graph);
    if (exec == nullptr || at == graphs.end() || flags != 0) return kInvalidValue;
    *exec = new_handle();
    execs[*exec] = at->second;
    return kSuccess;
  });
}
STAND_IN cuGraphLaunch(void* exec, void* stream) {
  return guarded([&]() -> int {
    const auto at = execs.find(exec);
    if (at == execs.end()) return kInvalidValue;
    return submit(stream, [graph = at->second] {
      for (const Work& work : graph) work();
    });
  });
}
STAND_IN cuGraphExecDestroy(void* exec) {
  return destroy(execs, exec, "an executable graph is destroyed that isn't there");
}
STAND_IN cuGraphDestroy(void* graph) {
  return destroy(graphs, graph, "a graph is destroyed that isn't there");
}
