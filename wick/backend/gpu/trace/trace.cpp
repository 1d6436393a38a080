#include "wick/backend/gpu/trace/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wick/backend/gpu/trace/trace_file.h"
#include "wick/base/environment.h"

namespace wick::gpu {
namespace {

thread_local Device current_device;

double host_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

/// What ran, between two events.
struct Span {
  std::string name;
  const char* category;
  std::string arguments;
  void* start;
  void* stop;
};

/// A stream's row, and what is on its way there. Times are counted from an anchor, an event on the
/// stream that moves along: the driver's milliseconds are floats, too coarse for long stretches.
struct Stream {
  Device device;
  TraceRow row;
  void* anchor = nullptr;
  double anchor_us = 0;
  double last_us = 0;  ///< where the last span ended
  std::vector<Span> pending;
  bool capturing = false;
  int captured = 0;  ///< calls since the capture began
};

/// A device in use: its events' common base, and events to use again.
struct TracedDevice {
  int process = 0;
  int streams = 0;
  void* base = nullptr;
  double base_us = 0;
  std::vector<void*> events;
};

/// More spans than this aren't kept waiting for somebody to synchronise.
constexpr size_t kMostPending = 8192;

/// All state, behind one lock that a call holds while it submits: else the events of one thread
/// could get between those of another.
class Tracer {
 public:
  explicit Tracer(const std::string& path) : file_(path), process_(getpid()) {}

  std::mutex mutex;
  std::unordered_map<void*, std::string> functions;
  std::unordered_map<void*, int> graphs;  ///< calls in each, and in each that can be launched

  /// The stream's state; null for work that leaves no trace.
  Stream* find(const Api& api, DeviceKind kind, void* handle);
  /// An event, recorded; null where that fails.
  void* mark(const Api& api, Stream& stream, void* handle);
  void put_back(const Stream& stream, void* event);
  void add(Stream& stream, Span span) { stream.pending.push_back(std::move(span)); }
  /// Reads the times of the first spans, which must have ended, and writes them.
  void resolve(const Api& api, Stream& stream, size_t count);
  void forget(const Api& api, DeviceKind kind, void* handle);
  /// At the end of the process: waits for what is on its way and ends the file.
  void finish() noexcept;

  const Api* apis[3] = {};

 private:
  TracedDevice& device(Device which);
  bool anchor(const Api& api, Stream& stream, void* handle);
  double since(const Api& api, void* from, void* to, bool& known) const;

  TraceFile file_;
  const pid_t process_;
  bool finished_ = false;
  std::map<std::pair<DeviceKind, void*>, Stream> streams_;
  std::map<std::pair<DeviceKind, int>, TracedDevice> devices_;
};

/// Never destroyed: what has static storage may still use a device while the process ends.
Tracer* tracer() {
  static Tracer* const only = new Tracer(std::string(environment("WICK_TRACE")));
  return only;
}

TracedDevice& Tracer::device(Device which) {
  const auto [at, added] = devices_.try_emplace({which.kind, which.index});
  TracedDevice& found = at->second;
  if (added) {
    found.process = static_cast<int>(devices_.size());
    const GpuInfo info = Driver::of(which.kind)->info(which.index);
    file_.name_process(found.process,
                       fmt::format("{} {} ({})", which.str(), info.name, info.architecture));
  }
  return found;
}

Stream* Tracer::find(const Api& api, DeviceKind kind, void* handle) {
  // A child of fork has none of the devices, and the file is its parent's.
  if (finished_ || getpid() != process_ || current_device.kind != kind) return nullptr;
  const auto [at, added] = streams_.try_emplace({kind, handle});
  Stream& stream = at->second;
  if (added) {
    TracedDevice& on = device(current_device);
    stream.device = current_device;
    stream.row = {on.process, ++on.streams};
    file_.name_thread(stream.row, fmt::format("stream {}", stream.row.thread));
  }
  if (!stream.capturing && stream.anchor == nullptr && !anchor(api, stream, handle)) return nullptr;
  return &stream;
}

double Tracer::since(const Api& api, void* from, void* to, bool& known) const {
  float milliseconds = 0;
  known = known && api.event_elapsed(&milliseconds, from, to) == 0;
  return 1000.0 * static_cast<double>(milliseconds);
}

/// The stream's first anchor. The first of a device tells when that was on the host's clock.
bool Tracer::anchor(const Api& api, Stream& stream, void* handle) {
  TracedDevice& on = device(stream.device);
  if (on.base == nullptr) {
    on.base = mark(api, stream, handle);
    if (on.base == nullptr || api.event_synchronize(on.base) != 0) return false;
    on.base_us = host_us();
  }
  void* const event = mark(api, stream, handle);
  if (event == nullptr || api.event_synchronize(event) != 0) return false;
  bool known = true;
  stream.anchor_us = stream.last_us = on.base_us + since(api, on.base, event, known);
  if (known) stream.anchor = event;
  return known;
}

void* Tracer::mark(const Api& api, Stream& stream, void* handle) {
  std::vector<void*>& free = device(stream.device).events;
  void* event = nullptr;
  if (!free.empty()) {
    event = free.back();
    free.pop_back();
  } else if (api.event_create(&event, 0) != 0) {
    return nullptr;
  }
  if (api.event_record(event, handle) == 0) return event;
  free.push_back(event);
  return nullptr;
}

void Tracer::put_back(const Stream& stream, void* event) {
  if (event != nullptr) device(stream.device).events.push_back(event);
}

void Tracer::resolve(const Api& api, Stream& stream, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Span& span = stream.pending[i];
    bool known = true;
    const double start = stream.anchor_us + since(api, stream.anchor, span.start, known);
    const double stop = stream.anchor_us + since(api, stream.anchor, span.stop, known);
    put_back(stream, span.start);
    if (!known) {  // a capture that began elsewhere
      put_back(stream, span.stop);
      continue;
    }
    // Spans of a row must not overlap, as they could by a rounding of the float.
    const double from = std::max(start, stream.last_us), to = std::max(stop, from);
    file_.span(stream.row, span.name, span.category, from, to - from, span.arguments);
    stream.last_us = to;
    put_back(stream, std::exchange(stream.anchor, span.stop));
    stream.anchor_us = stop;
  }
  stream.pending.erase(stream.pending.begin(),
                       stream.pending.begin() + static_cast<std::ptrdiff_t>(count));
  file_.flush();
}

void Tracer::forget(const Api& api, DeviceKind kind, void* handle) {
  const auto at = streams_.find({kind, handle});
  if (at == streams_.end()) return;
  Stream& stream = at->second;
  resolve(api, stream, stream.pending.size());
  put_back(stream, stream.anchor);
  // The device's last stream takes its events along.
  TracedDevice& on = device(stream.device);
  streams_.erase(at);
  const bool others = std::any_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
    return entry.second.row.process == on.process;
  });
  if (others) return;
  if (on.base != nullptr) on.events.push_back(std::exchange(on.base, nullptr));
  for (void* event : on.events) api.event_destroy(event);
  on.events.clear();
}

void Tracer::finish() noexcept try {
  std::lock_guard lock(mutex);
  if (finished_ || getpid() != process_) return;
  finished_ = true;
  for (auto& [key, stream] : streams_) {
    if (stream.pending.empty()) continue;
    const Api& api = *apis[static_cast<size_t>(key.first)];
    Driver::of(key.first)->enter(stream.device.index);
    if (api.event_synchronize(stream.pending.back().stop) == 0) {
      resolve(api, stream, stream.pending.size());
    }
  }
  file_.close();
} catch (...) {
  file_.close();
}

/// A vendor's functions with events around them.
template <DeviceKind kKind>
struct Traced {
  static inline Api real;

  /// Does something on a stream, between two events.
  template <class Do>
  static int submit(void* handle, const char* category, std::string name, std::string arguments,
                    const Do& act) {
    Tracer& t = *tracer();
    std::lock_guard lock(t.mutex);
    Stream* const stream = t.find(real, kKind, handle);
    if (stream == nullptr) return act();
    if (stream->capturing) {
      ++stream->captured;
      return act();
    }
    if (stream->pending.size() >= kMostPending) {
      const size_t half = kMostPending / 2;
      if (real.event_synchronize(stream->pending[half - 1].stop) == 0)
        t.resolve(real, *stream, half);
    }
    void* const start = t.mark(real, *stream, handle);
    const int code = act();
    void* const stop = code == 0 && start != nullptr ? t.mark(real, *stream, handle) : nullptr;
    if (stop == nullptr) {
      t.put_back(*stream, start);
    } else {
      t.add(*stream, {std::move(name), category, std::move(arguments), start, stop});
    }
    return code;
  }

  template <class Do>
  static int copy(const char* name, size_t bytes, void* stream, const Do& act) {
    return submit(stream, "copy", name, fmt::format("\"bytes\":{}", bytes), act);
  }

  static int copy_to_device(void* to, const void* from, size_t bytes, void* stream) {
    return copy("copy to device", bytes, stream,
                [&] { return real.copy_to_device(to, from, bytes, stream); });
  }
  static int copy_to_host(void* to, const void* from, size_t bytes, void* stream) {
    return copy("copy to host", bytes, stream,
                [&] { return real.copy_to_host(to, from, bytes, stream); });
  }
  static int copy_on_device(void* to, const void* from, size_t bytes, void* stream) {
    return copy("copy on device", bytes, stream,
                [&] { return real.copy_on_device(to, from, bytes, stream); });
  }
  static int set_bytes(void* to, unsigned char value, size_t bytes, void* stream) {
    return copy("fill", bytes, stream, [&] { return real.set_bytes(to, value, bytes, stream); });
  }

  static int module_function(void** function, void* module, const char* name) {
    const int code = real.module_function(function, module, name);
    if (code != 0) return code;
    Tracer& t = *tracer();
    std::lock_guard lock(t.mutex);
    t.functions[*function] = name;
    return code;
  }
  static int launch(void* function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                    unsigned threads_x, unsigned threads_y, unsigned threads_z,
                    unsigned shared_bytes, void* stream, void** arguments, void** extra) {
    const unsigned blocks[3] = {blocks_x, blocks_y, blocks_z};
    return submit_kernel(
        function, blocks, threads_x * threads_y * threads_z, shared_bytes, stream, [&] {
          return real.launch(function, blocks_x, blocks_y, blocks_z, threads_x, threads_y,
                             threads_z, shared_bytes, stream, arguments, extra);
        });
  }
  static int submit_kernel(void* function, const unsigned (&blocks)[3], unsigned threads,
                           unsigned shared_bytes, void* stream, const std::function<int()>& act) {
    std::string name = "kernel";
    {
      Tracer& t = *tracer();
      std::lock_guard lock(t.mutex);
      if (const auto at = t.functions.find(function); at != t.functions.end()) name = at->second;
    }
    return submit(stream, "kernel", std::move(name),
                  fmt::format(R"("blocks":"{}x{}x{}","threads":{},"shared_bytes":{})", blocks[0],
                              blocks[1], blocks[2], threads, shared_bytes),
                  act);
  }

  static int stream_synchronize(void* handle) {
    const int code = real.stream_synchronize(handle);
    Tracer& t = *tracer();
    std::lock_guard lock(t.mutex);
    Stream* const stream = code == 0 ? t.find(real, kKind, handle) : nullptr;
    // What other threads have added since then may still run.
    if (stream != nullptr && !stream->pending.empty() &&
        real.event_synchronize(stream->pending.back().stop) == 0) {
      t.resolve(real, *stream, stream->pending.size());
    }
    return code;
  }
  static int stream_destroy(void* handle) {
    Tracer& t = *tracer();
    std::lock_guard lock(t.mutex);
    if (real.stream_synchronize(handle) == 0) t.forget(real, kKind, handle);
    return real.stream_destroy(handle);
  }

  static int capture_begin(void* handle, int mode) {
    Tracer& t = *tracer();
    std::lock_guard lock(t.mutex);
    Stream* const stream = t.find(real, kKind, handle);
    const int code = real.capture_begin(handle, mode);
    if (code == 0 && stream != nullptr) {
      stream->capturing = true;
      stream->captured = 0;
    }
    return code;
  }
  static int capture_end(void* handle, void** graph) {
    Tracer& t = *tracer();
    std::lock_guard lock(t.mutex);
    const int code = real.capture_end(handle, graph);
    Stream* const stream = t.find(real, kKind, handle);
    if (stream == nullptr) return code;
    stream->capturing = false;
    if (code == 0) t.graphs[*graph] = stream->captured;
    return code;
  }
  static int graph_instantiate(void** exec, void* graph, unsigned long long flags) {
    const int code = real.graph_instantiate(exec, graph, flags);
    Tracer& t = *tracer();
    std::lock_guard lock(t.mutex);
    if (code == 0) t.graphs[*exec] = t.graphs[graph];
    return code;
  }
  static int graph_launch(void* exec, void* stream) {
    int calls = 0;
    {
      Tracer& t = *tracer();
      std::lock_guard lock(t.mutex);
      calls = t.graphs[exec];
    }
    return submit(stream, "graph", "graph", fmt::format("\"calls\":{}", calls),
                  [&] { return real.graph_launch(exec, stream); });
  }
};

template <DeviceKind kKind>
Api wrap(const Api& functions) {
  using T = Traced<kKind>;
  T::real = functions;
  tracer()->apis[static_cast<size_t>(kKind)] = &T::real;
  Api api = functions;
  api.copy_to_device = T::copy_to_device;
  api.copy_to_host = T::copy_to_host;
  api.copy_on_device = T::copy_on_device;
  api.set_bytes = T::set_bytes;
  api.module_function = T::module_function;
  api.launch = T::launch;
  api.stream_synchronize = T::stream_synchronize;
  api.stream_destroy = T::stream_destroy;
  api.capture_begin = T::capture_begin;
  api.capture_end = T::capture_end;
  api.graph_instantiate = T::graph_instantiate;
  api.graph_launch = T::graph_launch;
  return api;
}

}  // namespace

bool tracing() {
  static const bool on = !environment("WICK_TRACE").empty();
  return on;
}

Api traced(DeviceKind kind, const Api& functions) {
  if (!tracing()) return functions;
  Api api = kind == DeviceKind::cuda ? wrap<DeviceKind::cuda>(functions)
                                     : wrap<DeviceKind::hip>(functions);
  std::atexit([] { tracer()->finish(); });  // where no device is used
  return api;
}

void trace_device(Device device) {
  if (!tracing()) return;
  current_device = device;
  // After what the driver registered when it began to use a device: so before that.
  static const int once = std::atexit([] { tracer()->finish(); });
  (void)once;
}

int trace_launch(DeviceKind kind, void* function, const unsigned (&blocks)[3], unsigned threads,
                 unsigned shared_bytes, void* stream, const std::function<int()>& act) {
  if (!tracing()) return act();
  return kind == DeviceKind::cuda ? Traced<DeviceKind::cuda>::submit_kernel(
                                        function, blocks, threads, shared_bytes, stream, act)
                                  : Traced<DeviceKind::hip>::submit_kernel(
                                        function, blocks, threads, shared_bytes, stream, act);
}

int trace_work(DeviceKind kind, void* stream, const char* category, const std::string& name,
               const std::string& arguments, const std::function<int()>& act) {
  if (!tracing()) return act();
  return kind == DeviceKind::cuda
             ? Traced<DeviceKind::cuda>::submit(stream, category, name, arguments, act)
             : Traced<DeviceKind::hip>::submit(stream, category, name, arguments, act);
}

}  // namespace wick::gpu
