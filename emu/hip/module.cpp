// Modules: loading, lookup, function attributes and occupancy.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "emu/hip/launch.h"
#include "emu/hip/program.h"
#include "emu/object/bundle.h"

namespace emu::hip {
namespace {

std::vector<uint8_t> read_file(const char* name) {
  std::ifstream file(name, std::ios::binary);
  std::error_code error;
  const bool folder = std::filesystem::is_directory(name, error);
  if (!file || folder) {
    const std::string why = folder ? " is a directory" : " can't be read";
    throw Error{hipErrorFileNotFound, std::string(name) + why};
  }
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  require(!bytes.empty(), hipErrorInvalidImage);
  return bytes;
}

void load(hipModule_t* handle, Bytes bytes) {
  require(handle != nullptr);
  *handle = nullptr;
  refuse_unsafe_in_capture();
  ModulePtr module = load_module(current_device(), bytes);
  *handle = runtime().modules.add<hipModule_t>(std::move(module));
}

ModulePtr find_module(hipModule_t handle) {
  require(handle != nullptr, hipErrorInvalidHandle);
  ModulePtr module = runtime().modules.find(handle);
  require(module != nullptr, hipErrorInvalidHandle);
  return module;
}

void occupancy(int* groups, const void* function, int items, size_t lds, unsigned flags) {
  require(groups != nullptr && items > 0);
  require(flags == hipOccupancyDefault || flags == hipOccupancyDisableCachingOverride);
  const std::shared_ptr<Kernel> kernel = find_function(function);
  if (static_cast<uint32_t>(items) > kernel->info.max_items) {
    *groups = 0;
    return;
  }
  *groups = resident_groups(*kernel, items, lds);
}

void best_block(int* grid, int* block, const void* function, size_t lds, int limit) {
  require(grid != nullptr && block != nullptr && limit >= 0);
  const std::shared_ptr<Kernel> kernel = find_function(function);
  const int wave = kernel->descriptor.wave32() ? 32 : 64;
  int largest = static_cast<int>(kernel->info.max_items);
  if (limit > 0) largest = std::min(largest, limit);
  int best = 0;
  for (int items = std::max(largest / wave * wave, std::min(largest, wave)); items > 0;
       items -= wave) {
    const int groups = resident_groups(*kernel, items, lds);
    if (groups * items <= best) continue;
    best = groups * items;
    *block = items;
    *grid = groups * kernel->module->device.architecture.processors;
  }
  require(best > 0, hipErrorLaunchOutOfResources);
}

int attribute_of(const Kernel& kernel, hipFunction_attribute attribute) {
  const KernelInfo& info = kernel.info;
  switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(info.max_items);
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(info.lds_bytes);
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return 0;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(info.scratch_bytes);
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(info.vgprs);
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 30;
    case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      return 0;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return static_cast<int>(kernel.module->device.architecture.lds_bytes - info.lds_bytes);
    case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return 0;
    default:
      throw Error{hipErrorInvalidValue};
  }
}

}  // namespace

std::shared_ptr<Kernel> find_function(const void* handle) {
  require(handle != nullptr, hipErrorInvalidDeviceFunction);
  if (std::shared_ptr<Kernel> kernel = runtime().find_kernel(handle)) return kernel;
  std::shared_ptr<Kernel> kernel = Registry::get().kernel(handle, current_device());
  require(kernel != nullptr, hipErrorInvalidDeviceFunction);
  return kernel;
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipModuleLoad(hipModule_t* module, const char* name) {
  EMU_CALL({
    require(name != nullptr);
    load(module, read_file(name));
  });
}

EMU_API hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  EMU_CALL({
    require(image != nullptr);
    load(module, copy_image(image));
  });
}

EMU_API hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned,
                                       hipJitOption*, void**) {
  EMU_CALL({
    require(image != nullptr);
    load(module, copy_image(image));
  });
}

EMU_API hipError_t hipModuleUnload(hipModule_t handle) {
  EMU_CALL({
    const ModulePtr module = find_module(handle);
    refuse_unsafe_in_capture();
    for (const StreamPtr& stream : module->device.streams()) stream->wait();
    runtime().drop_kernels(*module);
    runtime().modules.remove(handle);
  });
}

EMU_API hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t handle,
                                        const char* name) {
  EMU_CALL({
    require(function != nullptr && name != nullptr);
    *function = nullptr;
    Kernel* kernel = find_module(handle)->kernel(name);
    require(kernel != nullptr, hipErrorNotFound);
    *function = reinterpret_cast<hipFunction_t>(kernel);
  });
}

EMU_API hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, size_t* bytes, hipModule_t handle,
                                      const char* name) {
  EMU_CALL({
    require(name != nullptr && (pointer != nullptr || bytes != nullptr));
    const Module::Global found = find_module(handle)->variable(name);
    require(found.address != 0, hipErrorNotFound);
    if (pointer != nullptr) *pointer = reinterpret_cast<void*>(found.address);
    if (bytes != nullptr) *bytes = found.bytes;
  });
}

EMU_API hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute,
                                       hipFunction_t function) {
  EMU_CALL({
    require(value != nullptr);
    *value = attribute_of(*find_function(function), attribute);
  });
}

EMU_API hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* function) {
  EMU_CALL({
    require(attributes != nullptr);
    const std::shared_ptr<Kernel> kernel = find_function(function);
    *attributes = {};
    attributes->binaryVersion = attributes->ptxVersion = 30;
    attributes->localSizeBytes = kernel->info.scratch_bytes;
    attributes->sharedSizeBytes = kernel->info.lds_bytes;
    attributes->maxThreadsPerBlock = static_cast<int>(kernel->info.max_items);
    attributes->numRegs = static_cast<int>(kernel->info.vgprs);
    attributes->maxDynamicSharedSizeBytes =
        attribute_of(*kernel, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  });
}

EMU_API hipError_t hipFuncSetAttribute(const void* function, hipFuncAttribute attribute,
                                       int value) {
  EMU_CALL({
    const std::shared_ptr<Kernel> kernel = find_function(function);
    if (attribute == hipFuncAttributePreferredSharedMemoryCarveout) {
      return require(value >= -1 && value <= 100);
    }
    require(attribute == hipFuncAttributeMaxDynamicSharedMemorySize);
    require(value >= 0 &&
            value <= attribute_of(*kernel, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  });
}

EMU_API hipError_t hipFuncSetCacheConfig(const void* function, hipFuncCache_t config) {
  EMU_CALL({
    find_function(function);
    require(config <= hipFuncCachePreferEqual);
  });
}

EMU_API hipError_t hipFuncSetSharedMemConfig(const void* function, hipSharedMemConfig config) {
  EMU_CALL({
    find_function(function);
    require(config <= hipSharedMemBankSizeEightByte);
  });
}

EMU_API hipError_t hipGetFuncBySymbol(hipFunction_t* function, const void* symbol) {
  EMU_CALL({
    require(function != nullptr);
    *function = reinterpret_cast<hipFunction_t>(find_function(symbol).get());
  });
}

EMU_API const char* hipKernelNameRef(hipFunction_t function) {
  const std::shared_ptr<Kernel> kernel = runtime().find_kernel(function);
  return kernel == nullptr ? nullptr : kernel->info.name.c_str();
}

EMU_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* groups,
                                                                      hipFunction_t function,
                                                                      int items, size_t lds) {
  EMU_CALL({ occupancy(groups, function, items, lds, 0); });
}

EMU_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* groups, hipFunction_t function, int items, size_t lds, unsigned flags) {
  EMU_CALL({ occupancy(groups, function, items, lds, flags); });
}

EMU_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, const void* function,
                                                                int items, size_t lds) {
  EMU_CALL({ occupancy(groups, function, items, lds, 0); });
}

EMU_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* groups,
                                                                         const void* function,
                                                                         int items, size_t lds,
                                                                         unsigned flags) {
  EMU_CALL({ occupancy(groups, function, items, lds, flags); });
}

EMU_API hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block,
                                                           hipFunction_t function, size_t lds,
                                                           int limit) {
  EMU_CALL({ best_block(grid, block, function, lds, limit); });
}

EMU_API hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                                    hipFunction_t function,
                                                                    size_t lds, int limit,
                                                                    unsigned flags) {
  EMU_CALL({
    require(flags <= hipOccupancyDisableCachingOverride);
    best_block(grid, block, function, lds, limit);
  });
}

EMU_API hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* function,
                                                     size_t lds, int limit) {
  EMU_CALL({ best_block(grid, block, function, lds, limit); });
}
