#include "wick/backend/gpu/driver/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>

#include "wick/backend/gpu/trace/counts.h"
#include "wick/backend/gpu/trace/trace.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

std::atomic<bool> in_child = false;

/// Never destroyed, because tensors with static storage may outlive any order of destruction.
struct Found {
  std::unique_ptr<Driver> driver;
  std::string trace;
};

const Found& found(DeviceKind kind) {
  const auto open = [](auto* function) {
    auto* result = new Found;
    result->driver = function(result->trace);
    if (result->driver != nullptr && !result->driver->start(result->trace)) result->driver.reset();
    return result;
  };
  static const Found none;
  if (kind == DeviceKind::cuda) {
    static const Found* const cuda = open(&open_cuda);
    return *cuda;
  }
  if (kind == DeviceKind::hip) {
    static const Found* const hip = open(&open_hip);
    return *hip;
  }
  return none;
}

}  // namespace

Driver::Driver(DeviceKind kind, const Api& functions, std::string file)
    : api(counted(kind, traced(kind, functions))), library(std::move(file)), kind_(kind) {}

Driver* Driver::of(DeviceKind kind) { return found(kind).driver.get(); }

std::string Driver::missing(DeviceKind kind) { return found(kind).trace; }

bool Driver::start(std::string& trace) {
  int code = api.init(0);
  if (code == 0) code = api.device_count(&count_);
  if (code != 0) {
    trace += fmt::format("{}: {}", library, text(code));
  } else if (count_ <= 0) {
    trace += library + ": no device";
  }
  if (code != 0 || count_ <= 0) return false;
  lost_ = std::vector<std::atomic<const std::string*>>(static_cast<size_t>(count_));
  static const int once = pthread_atfork(nullptr, nullptr, [] { in_child = true; });
  return once == 0;
}

bool Driver::forked() noexcept { return in_child.load(std::memory_order_relaxed); }

void Driver::enter(int device) const {
  require_usable(device);
  const int code = set_current(device);
  trace_device({kind_, device});
  count_device({kind_, device});
  if (code == 0) return;
  check(code, device, "entering it");
}

bool Driver::try_enter(int device) const noexcept {
  if (forked()) return false;
  const int code = set_current(device);
  trace_device({kind_, device});
  count_device({kind_, device});
  return code == 0;
}

void Driver::fail_lost(int device) const {
  const std::string which = Device{kind_, device}.str();
  if (forked()) {
    throw Error(ErrorKind::runtime, which, "a child of fork can't use the device", "",
                "its parent does: start another program, or fork before the first use");
  }
  throw Error(ErrorKind::runtime, which, "the device was lost",
              *lost_[static_cast<size_t>(device)].load(),
              "it does nothing more for this process: start it again");
}

void Driver::check(int code, int device, std::string_view what) const {
  if (code == 0) return;
  std::atomic<const std::string*>& lost = lost_[static_cast<size_t>(device)];
  if (lost.load() != nullptr) fail_lost(device);
  if (!is_lost(code)) {
    throw Error(ErrorKind::runtime, Device{kind_, device}.str(), fmt::format("{} failed", what),
                basic_info(device).name, text(code));
  }
  const std::string* none = nullptr;
  const auto* const reason = new std::string(fmt::format("{} failed: {}", what, text(code)));
  if (!lost.compare_exchange_strong(none, reason)) delete reason;
  fail_lost(device);
}

int Driver::launch_with(const LaunchWishes&, void* function, const unsigned (&blocks)[3],
                        unsigned threads, unsigned shared_bytes, void* stream,
                        void** arguments) const {
  return api.launch(function, blocks[0], blocks[1], blocks[2], threads, 1, 1, shared_bytes, stream,
                    arguments, nullptr);
}

bool Driver::make_copy_map(CopyMap&, const CopyBoxes&) const { return false; }

int Driver::attribute(int which, int device) const {
  int value = 0;
  api.device_attribute(&value, which, device);
  return value;
}

int64_t Driver::limit(int which, int device, int64_t otherwise) const {
  const int value = attribute(which, device);
  return value > 0 ? value : otherwise;
}

std::array<int64_t, 3> Driver::limits(int first, int device,
                                      std::array<int64_t, 3> otherwise) const {
  for (int64_t& value : otherwise) value = limit(first++, device, value);
  return otherwise;
}

GpuInfo Driver::basic_info(int device) const {
  GpuInfo info;
  char name[256] = {};
  api.device_name(name, sizeof name - 1, device);
  info.name = name;
  api.device_memory(&info.bytes, device);
  return info;
}

std::unique_ptr<Library> Library::open(const std::vector<std::string>& names, std::string& trace) {
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return std::unique_ptr<Library>(new Library(handle, name));
    }
    const char* reason = dlerror();
    if (!trace.empty()) trace += "; ";
    trace += reason == nullptr ? name + " can't be opened" : reason;
  }
  return nullptr;
}

std::unique_ptr<Library> Library::open_chosen(const char* variable,
                                              const std::vector<std::string>& names,
                                              std::string& trace) {
  const std::string chosen(environment(variable));
  return open(chosen.empty() ? names : std::vector{chosen}, trace);
}

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }

bool find_functions(const Library& library, const ApiNames& names, Api& api, std::string& trace) {
#define WICK_GPU_FN(role, arguments) \
  if (!find_function(library, names.role, api.role, trace)) return false;
#include "wick/backend/gpu/driver/api.def"
  return true;
}

}  // namespace wick::gpu
