// Functions of the runtime by name.

#include <dlfcn.h>

#include <string>

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

constexpr uint64_t kDefaultStream = 0, kLegacyStream = 1, kStreamOfThread = 2;

void* function_named(const std::string& name) {
  static void* const library = [] {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&function_named), &info) == 0)
      return static_cast<void*>(nullptr);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return library == nullptr ? nullptr : dlsym(library, name.c_str());
}

/// The symbol behind a function's name: the public headers rename two functions from HIP 6 on, and
/// functions for a thread's default stream have a suffix. version: of HIP, as hipRuntimeGetVersion
/// gives it, or a hundred times its major version.
std::string symbol_of(const std::string& name, int version, uint64_t flags) {
  const bool six = version >= 60'000'000 || (version >= 600 && version < 10'000);
  if (six && (name == "hipGetDeviceProperties" || name == "hipChooseDevice")) return name + "R0600";
  if (flags == kStreamOfThread && function_named(name + "_spt") != nullptr) return name + "_spt";
  return name;
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipGetProcAddress(const char* name, void** function, int version, uint64_t flags,
                                     hipDriverProcAddressQueryResult* result) {
  EMU_CALL({
    require(name != nullptr && *name != 0 && function != nullptr);
    require(flags == kDefaultStream || flags == kLegacyStream || flags == kStreamOfThread);
    *function = function_named(symbol_of(name, version, flags));
    if (result != nullptr) {
      *result = *function != nullptr ? HIP_GET_PROC_ADDRESS_SUCCESS
                                     : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    require(*function != nullptr);
  });
}

namespace {

hipError_t entry_point(const char* function_name, const char* name, void** function,
                       unsigned long long flags, hipDriverEntryPointQueryResult* result,
                       bool of_thread) {
  return emu::hip::call(function_name, [&] {
    require(name != nullptr && *name != 0 && function != nullptr);
    require(flags <= kStreamOfThread);
    if (of_thread && flags == kDefaultStream) flags = kStreamOfThread;
    *function = function_named(symbol_of(name, emu::hip::version(), flags));
    if (result != nullptr) {
      *result =
          *function != nullptr ? hipDriverEntryPointSuccess : hipDriverEntryPointSymbolNotFound;
    }
    require(*function != nullptr);
  });
}

}  // namespace

EMU_API hipError_t hipGetDriverEntryPoint(const char* name, void** function,
                                          unsigned long long flags,
                                          hipDriverEntryPointQueryResult* result) {
  return entry_point(__func__, name, function, flags, result, false);
}

EMU_API hipError_t hipGetDriverEntryPoint_spt(const char* name, void** function,
                                              unsigned long long flags,
                                              hipDriverEntryPointQueryResult* result) {
  return entry_point(__func__, name, function, flags, result, true);
}
