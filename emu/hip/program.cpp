#include "emu/hip/program.h"

#include <algorithm>
#include <cstring>

#include "emu/hip/copy.h"
#include "emu/object/bundle.h"

namespace emu::hip {

Registry& Registry::get() {
  // Functions are registered before main and unregistered after it.
  static auto* program = new Registry;
  return *program;
}

RegisteredCode* Registry::add_code(const void* image) {
  std::lock_guard lock(mutex_);
  codes_.push_back(std::make_unique<RegisteredCode>());
  codes_.back()->image = image;
  return codes_.back().get();
}

void Registry::remove_code(RegisteredCode* code) {
  std::lock_guard lock(mutex_);
  const auto of_code = [&](const auto& entry) { return entry.second.code == code; };
  std::erase_if(functions_, of_code);
  std::erase_if(variables_, of_code);
  std::erase_if(managed_, [&](const Managed& managed) { return managed.code == code; });
  for (const ModulePtr& module : code->modules) {
    if (module != nullptr) runtime().drop_kernels(*module);
  }
  std::erase_if(codes_, [&](const auto& held) { return held.get() == code; });
}

void Registry::add_function(RegisteredCode* code, const void* function, const char* name) {
  std::lock_guard lock(mutex_);
  functions_[function] = {code, name};
}

void Registry::add_variable(RegisteredCode* code, const void* variable, const char* name,
                            size_t bytes) {
  std::lock_guard lock(mutex_);
  variables_[variable] = {code, name, bytes};
}

void Registry::add_managed(RegisteredCode* code, void** pointer, const void* initial,
                           const char* name, size_t bytes) {
  if (runtime().devices.empty()) return;
  std::lock_guard lock(mutex_);
  Allocation wanted;
  wanted.bytes = bytes;
  wanted.kind = MemoryKind::internal;
  wanted.label = std::string("managed variable ") + name;
  const uintptr_t at = memory().allocate(wanted);
  if (at == 0) return complain("no memory for " + wanted.label);
  std::memcpy(reinterpret_cast<void*>(at), initial, bytes);
  memory().shadow().written(at, bytes);
  *pointer = reinterpret_cast<void*>(at);
  managed_.push_back({code, pointer, name, bytes});
}

ModulePtr Registry::module(RegisteredCode& code, Device& device) {
  const auto ordinal = static_cast<size_t>(device.ordinal);
  if (code.modules.size() <= ordinal) code.modules.resize(ordinal + 1);
  if (code.modules[ordinal] != nullptr) return code.modules[ordinal];
  const ModulePtr module = load_module(device, copy_image(code.image));
  for (const Managed& managed : managed_) {
    if (managed.code != &code) continue;
    // Kernels access the variable through a pointer in the code object.
    const Module::Global place = module->variable(managed.name);
    if (place.bytes >= sizeof(void*)) {
      std::memcpy(reinterpret_cast<void*>(place.address), managed.pointer, sizeof(void*));
    }
  }
  code.modules[ordinal] = module;
  return module;
}

std::shared_ptr<Kernel> Registry::kernel(const void* function, Device& device) {
  std::lock_guard lock(mutex_);
  const auto at = functions_.find(function);
  if (at == functions_.end()) return nullptr;
  const ModulePtr loaded = module(*at->second.code, device);
  Kernel* kernel = loaded->kernel(at->second.name);
  if (kernel == nullptr) {
    throw Error{hipErrorInvalidDeviceFunction, "the code has no kernel " + at->second.name};
  }
  return {loaded, kernel};
}

Module::Global Registry::variable(const void* variable, Device& device) {
  std::lock_guard lock(mutex_);
  for (const Managed& managed : managed_) {
    if (managed.pointer == variable) return {address(*managed.pointer), managed.bytes};
  }
  const auto at = variables_.find(variable);
  if (at == variables_.end()) throw Error{hipErrorInvalidSymbol};
  const Module::Global found = module(*at->second.code, device)->variable(at->second.name);
  if (found.address == 0) throw Error{hipErrorInvalidSymbol, "no variable " + at->second.name};
  return found;
}

std::string Registry::name(const void* function) {
  std::lock_guard lock(mutex_);
  const auto at = functions_.find(function);
  return at == functions_.end() ? "" : at->second.name;
}

ModulePtr load_module(Device& device, Bytes bytes) {
  auto module = std::make_shared<Module>(
      device, memory(), select_image(bytes, device.target),
      CodeKind{.checked = runtime().options.checks(), .profiled = runtime().profile != nullptr});
  runtime().add_kernels(module);
  return module;
}

void* symbol_address(const void* symbol, size_t offset, size_t bytes) {
  require(symbol != nullptr, hipErrorInvalidSymbol);
  const Module::Global found = Registry::get().variable(symbol, current_device());
  require(offset <= found.bytes && bytes <= found.bytes - offset);
  return reinterpret_cast<void*>(found.address + offset);
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

namespace {

/// The structure that compilers embed in a program: a magic number, a version, and the address of
/// the bundle.
struct Wrapper {
  uint32_t magic, version;
  const void* image;
  const void* unused;
};
constexpr uint32_t kWrapperMagic = 0x48495046;  // HIPF

RegisteredCode* code_of(void** handle) { return reinterpret_cast<RegisteredCode*>(handle); }

}  // namespace

EMU_API void** __hipRegisterFatBinary(const void* data) {
  const auto* wrapper = static_cast<const Wrapper*>(data);
  if (wrapper == nullptr || wrapper->magic != kWrapperMagic || wrapper->version != 1) {
    complain("__hipRegisterFatBinary: the program's code isn't in a known form");
    return nullptr;
  }
  return reinterpret_cast<void**>(Registry::get().add_code(wrapper->image));
}

EMU_API void __hipUnregisterFatBinary(void** handle) {
  if (handle != nullptr) Registry::get().remove_code(code_of(handle));
}

EMU_API void __hipRegisterFunction(void** handle, const void* function, char*, const char* name,
                                   unsigned, uint3*, uint3*, dim3*, dim3*, int*) {
  if (handle != nullptr) Registry::get().add_function(code_of(handle), function, name);
}

EMU_API void __hipRegisterVar(void** handle, void* variable, char*, char* name, int, size_t bytes,
                              int, int) {
  if (handle != nullptr) Registry::get().add_variable(code_of(handle), variable, name, bytes);
}

EMU_API void __hipRegisterManagedVar(void* handle, void** pointer, void* initial, const char* name,
                                     size_t bytes, unsigned) {
  if (handle == nullptr) return;
  Registry::get().add_managed(static_cast<RegisteredCode*>(handle), pointer, initial, name, bytes);
}

// Programs whose headers declare textures or surfaces register them. The emulator doesn't support
// their use.
EMU_API void __hipRegisterTexture(void**, void*, char*, char*, int, int, int) {}
EMU_API void __hipRegisterSurface(void**, void*, char*, char*, int, int) {}

EMU_API hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds,
                                              hipStream_t stream) {
  thread().calls.push_back({grid, block, lds, stream});
  return hipSuccess;
}

EMU_API hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* lds,
                                             hipStream_t* stream) {
  EMU_CALL({
    require(!thread().calls.empty(), hipErrorMissingConfiguration);
    require(grid != nullptr && block != nullptr && lds != nullptr && stream != nullptr);
    const CallConfiguration call = thread().calls.back();
    thread().calls.pop_back();
    *grid = call.grid;
    *block = call.block;
    *lds = call.lds;
    *stream = call.stream;
  });
}

EMU_API hipError_t hipGetSymbolAddress(void** pointer, const void* symbol) {
  EMU_CALL({
    require(pointer != nullptr);
    *pointer = symbol_address(symbol, 0, 0);
  });
}

EMU_API hipError_t hipGetSymbolSize(size_t* bytes, const void* symbol) {
  EMU_CALL({
    require(bytes != nullptr);
    require(symbol != nullptr, hipErrorInvalidSymbol);
    *bytes = Registry::get().variable(symbol, current_device()).bytes;
  });
}
