// Libraries, which are modules whose kernels have handles of their own, and what else HIP 7 tells
// of modules.

#include <algorithm>
#include <cstring>

#include "emu/hip/launch.h"

namespace emu::hip {
namespace {

hipModule_t module_of(hipLibrary_t library) { return reinterpret_cast<hipModule_t>(library); }

ModulePtr find_library(hipLibrary_t library, hipError_t otherwise = hipErrorInvalidValue) {
  require(library != nullptr, otherwise);
  ModulePtr module = runtime().modules.find(library);
  require(module != nullptr, otherwise);
  return module;
}

std::shared_ptr<Kernel> find_kernel(hipKernel_t handle) {
  require(handle != nullptr);
  std::shared_ptr<Kernel> kernel = runtime().find_kernel(handle);
  require(kernel != nullptr);
  return kernel;
}

/// Throws if options are missing. The runtime ignores what they say.
void check_options(hipLibraryOption** options, unsigned count) {
  require(count == 0 || options != nullptr);
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipLibraryLoadData(hipLibrary_t* library, const void* code, hipJitOption**,
                                      void**, unsigned, hipLibraryOption** options, void**,
                                      unsigned count) {
  EMU_CALL({
    require(library != nullptr && code != nullptr);
    check_options(options, count);
    return hipModuleLoadData(reinterpret_cast<hipModule_t*>(library), code);
  });
}

EMU_API hipError_t hipLibraryLoadFromFile(hipLibrary_t* library, const char* name, hipJitOption**,
                                          void**, unsigned, hipLibraryOption** options, void**,
                                          unsigned count) {
  EMU_CALL({
    require(library != nullptr && name != nullptr);
    check_options(options, count);
    const hipError_t code = hipModuleLoad(reinterpret_cast<hipModule_t*>(library), name);
    return code == hipErrorFileNotFound ? hipErrorInvalidValue : code;
  });
}

EMU_API hipError_t hipLibraryUnload(hipLibrary_t library) {
  EMU_CALL({
    find_library(library, hipErrorInvalidHandle);
    return hipModuleUnload(module_of(library));
  });
}

EMU_API hipError_t hipLibraryGetKernel(hipKernel_t* kernel, hipLibrary_t library,
                                       const char* name) {
  EMU_CALL({
    require(kernel != nullptr && name != nullptr);
    find_library(library);
    return hipModuleGetFunction(reinterpret_cast<hipFunction_t*>(kernel), module_of(library), name);
  });
}

EMU_API hipError_t hipLibraryGetKernelCount(unsigned* count, hipLibrary_t library) {
  EMU_CALL({
    require(count != nullptr);
    *count = static_cast<unsigned>(find_library(library)->kernels().size());
  });
}

EMU_API hipError_t hipLibraryEnumerateKernels(hipKernel_t* kernels, unsigned count,
                                              hipLibrary_t library) {
  EMU_CALL({
    require(kernels != nullptr && count != 0);
    const ModulePtr module = find_library(library);
    unsigned at = 0;
    for (const auto& kernel : module->kernels()) {
      if (at == count) break;
      kernels[at++] = reinterpret_cast<hipKernel_t>(kernel.get());
    }
  });
}

EMU_API hipError_t hipKernelGetLibrary(hipLibrary_t* library, hipKernel_t handle) {
  EMU_CALL({
    require(library != nullptr);
    *library = reinterpret_cast<hipLibrary_t>(find_kernel(handle)->module);
  });
}

EMU_API hipError_t hipKernelGetName(const char** name, hipKernel_t handle) {
  EMU_CALL({
    require(name != nullptr);
    *name = find_kernel(handle)->info.name.c_str();
  });
}

EMU_API hipError_t hipModuleGetFunctionCount(unsigned* count, hipModule_t handle) {
  EMU_CALL({
    require(count != nullptr);
    const ModulePtr module = handle == nullptr ? nullptr : runtime().modules.find(handle);
    require(module != nullptr, hipErrorInvalidHandle);
    *count = static_cast<unsigned>(module->kernels().size());
  });
}

EMU_API hipError_t hipModuleLoadFatBinary(hipModule_t* module, const void* bundle) {
  EMU_CALL({
    require(module != nullptr && bundle != nullptr);
    return hipModuleLoadData(module, bundle);
  });
}

EMU_API hipError_t hipOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                            int groups, int items) {
  EMU_CALL({
    require(bytes != nullptr && groups > 0 && items > 0);
    const std::shared_ptr<Kernel> kernel = find_function(function);
    const Architecture& a = kernel->module->device.architecture;
    require(static_cast<uint32_t>(items) <= kernel->info.max_items);
    size_t low = 0, high = a.lds_bytes - std::min<size_t>(kernel->info.lds_bytes, a.lds_bytes);
    if (resident_groups(*kernel, items, 0) < groups) high = 0;
    while (low < high) {  // the largest size with which so many groups are resident
      const size_t middle = low + (high - low + 1) / 2;
      if (resident_groups(*kernel, items, middle) >= groups) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    *bytes = low;
  });
}

EMU_API const char* hipKernelNameRefByPtr(const void* function, hipStream_t) {
  const char* name = nullptr;
  const hipError_t last = thread().last;
  call(__func__, [&] { name = find_function(function)->info.name.c_str(); });
  thread().last = last;  // the function returns no error code
  return name;
}
