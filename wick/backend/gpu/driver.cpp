#include "wick/backend/gpu/driver.h"

#include <dlfcn.h>

#include <array>

namespace wick::gpu {
namespace {

/// Never destroyed: tensors with static storage may outlive any order of destruction.
struct Found {
  std::unique_ptr<Driver> driver;
  std::string trace;
};

const Found& found(DeviceKind kind) {
  const auto open = [](auto* function) {
    auto* result = new Found;
    result->driver = function(result->trace);
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

Driver* Driver::of(DeviceKind kind) { return found(kind).driver.get(); }

std::string Driver::missing(DeviceKind kind) { return found(kind).trace; }

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

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }

bool find_functions(const Library& library, const ApiNames& names, Api& api, std::string& trace) {
#define WICK_GPU_FN(role, arguments)                                               \
  api.role = reinterpret_cast<int(*) arguments>(library.symbol(names.role));       \
  if (api.role == nullptr) {                                                       \
    trace += library.file() + " has no " + names.role + ": the driver is too old"; \
    return false;                                                                  \
  }
#include "wick/backend/gpu/api.def"
  return true;
}

}  // namespace wick::gpu
