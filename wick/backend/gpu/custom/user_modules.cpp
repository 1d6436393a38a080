#include "wick/backend/gpu/custom/user_modules.h"

#include <fmt/format.h>

#include "wick/backend/gpu/custom/code_metadata.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

// Attributes of functions; CUDA and HIP have the same numbers.
constexpr int kMostThreads = 0, kStaticShared = 1;

}  // namespace

UserModule::UserModule(Gpu& gpu, const std::string& image, std::string_view op,
                       std::string_view what)
    : gpu_(gpu), argument_bytes_(kernel_argument_bytes(image)) {
  gpu_.enter();
  const int code =
      gpu_.with_room([&] { return gpu_.driver.api.module_load(&handle_, image.c_str()); });
  if (code == 0) return;
  if (!gpu_.driver.is_lost(code) && !gpu_.driver.is_out_of_memory(code)) {
    throw Error(
        op, "the driver rejects the code", fmt::format("{} on {}", what, gpu_.device.str()),
        fmt::format("{}: need code for {}", gpu_.driver.text(code), gpu_.info.architecture));
  }
  gpu_.check(code, fmt::format("loading {} of {}", what, op));
}

UserModule::~UserModule() {
  // A kernel of the module may still be queued.
  gpu_.quiesce();
  if (gpu_.driver.try_enter(gpu_.device.index)) gpu_.driver.api.module_unload(handle_);
}

UserFunction UserModule::function(const std::string& name, std::string_view op) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = functions_.try_emplace(name);
  UserFunction& function = at->second.function;
  if (!is_new) return function;
  const Api& api = gpu_.driver.api;
  const int code = api.module_function(&function.handle, handle_, name.c_str());
  if (code != 0) {
    functions_.erase(at);
    if (gpu_.driver.is_lost(code)) gpu_.check(code, "finding a kernel");
    throw Error(op, "no such kernel in the code", name,
                fmt::format("{}: declare the kernel extern \"C\"", gpu_.driver.text(code)));
  }
  int value = 0;
  if (api.function_attribute(&value, kMostThreads, function.handle) == 0) {
    function.most_threads = value;
  }
  if (api.function_attribute(&value, kStaticShared, function.handle) == 0) {
    function.static_shared_bytes = value;
  }
  function.argument_bytes = gpu_.driver.argument_bytes(function.handle);
  const auto bytes = argument_bytes_.find(name);
  if (bytes != argument_bytes_.end()) function.argument_bytes = bytes->second;
  return function;
}

void UserModule::allow_shared(const std::string& name, int64_t shared_bytes) {
  const std::lock_guard lock(mutex_);
  Entry& entry = functions_.at(name);
  if (shared_bytes <= entry.allowed_shared_bytes) return;
  gpu_.check(gpu_.driver.allow_shared(entry.function.handle, static_cast<int>(shared_bytes)),
             fmt::format("asking for {} bytes of shared memory for {}", shared_bytes, name));
  entry.allowed_shared_bytes = shared_bytes;
}

std::shared_ptr<UserModule> UserModules::kept(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->module;
}

std::shared_ptr<UserModule> UserModules::find(
    const std::string& key, const std::function<std::shared_ptr<UserModule>()>& make) {
  if (auto found = kept(key)) return found;
  std::list<Entry> dropped;  // destroyed after the locks are released
  const std::lock_guard loading(loading_);
  if (auto found = kept(key)) return found;
  std::shared_ptr<UserModule> made = make();
  ++loaded_;
  const std::lock_guard lock(mutex_);
  entries_.push_front({key, made});
  by_key_[key] = entries_.begin();
  // Drivers refuse to unload while the thread captures; the next load drops the modules then.
  while (entries_.size() > most_ && !gpu_.captures()) {
    by_key_.erase(entries_.back().key);
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
  return made;
}

}  // namespace wick::gpu
