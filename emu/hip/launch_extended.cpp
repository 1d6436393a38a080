// Launches with attributes, launches on several devices, and the interface with which programs
// launched kernels before HIP 3.

#include <cstring>
#include <span>

#include "emu/hip/launch.h"

namespace emu::hip {
namespace {

/// Returns whether the attributes ask for a cooperative launch. The others change no result.
bool cooperative(const hipLaunchAttribute* list, unsigned count) {
  require(list != nullptr || count == 0);
  bool found = false;
  for (const hipLaunchAttribute& one : std::span(list, count)) {
    switch (one.id) {
      case hipLaunchAttributeCooperative:
        found = one.value.cooperative != 0;
        break;
      case hipLaunchAttributeAccessPolicyWindow:
      case hipLaunchAttributeSynchronizationPolicy:
      case hipLaunchAttributePriority:
      case hipLaunchAttributeMemSyncDomainMap:
      case hipLaunchAttributeMemSyncDomain:
        break;
      default:
        throw Error{hipErrorInvalidValue};
    }
  }
  return found;
}

/// The arguments of the next hipLaunchByPtr of this thread.
std::vector<uint8_t>& arguments() {
  thread_local std::vector<uint8_t> bytes;
  return bytes;
}

constexpr size_t kMostArguments = 1 << 20;

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipLaunchKernelExC(const hipLaunchConfig_t* config, const void* function,
                                      void** params) {
  EMU_CALL({
    require(config != nullptr);
    require(function != nullptr, hipErrorInvalidDeviceFunction);
    LaunchRequest r = request_of(
        {config->blockDim, nullptr, const_cast<void*>(function), config->gridDim, params, 0});
    r.lds = config->dynamicSmemBytes;
    r.cooperative = cooperative(config->attrs, config->numAttrs);
    submit_launch(r, config->stream);
  });
}

EMU_API hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG* config, hipFunction_t function,
                                        void** params, void** extra) {
  EMU_CALL({
    require(config != nullptr);
    require(function != nullptr, hipErrorInvalidImage);
    const dim3 block{config->blockDimX, config->blockDimY, config->blockDimZ};
    const dim3 grid{config->gridDimX, config->gridDimY, config->gridDimZ};
    LaunchRequest r = request_of({block, extra, function, grid, params, config->sharedMemBytes});
    r.cooperative = cooperative(config->attrs, config->numAttrs);
    submit_launch(r, config->hStream);
  });
}

EMU_API hipError_t hipModuleLaunchCooperativeKernelMultiDevice(hipFunctionLaunchParams* list,
                                                               unsigned count, unsigned flags) {
  EMU_CALL({
    require(list != nullptr && count <= runtime().devices.size());
    std::vector<hipLaunchParams> launches;
    for (const hipFunctionLaunchParams& p : std::span(list, count)) {
      launches.push_back({p.function,
                          {p.gridDimX, p.gridDimY, p.gridDimZ},
                          {p.blockDimX, p.blockDimY, p.blockDimZ},
                          p.kernelParams,
                          p.sharedMemBytes,
                          p.hStream});
    }
    launch_all(launches.data(), static_cast<int>(count), flags, true);
  });
}

EMU_API hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t lds, hipStream_t stream) {
  EMU_CALL({
    arguments().clear();
    thread().calls.push_back({grid, block, lds, stream});
  });
}

EMU_API hipError_t hipSetupArgument(const void* argument, size_t bytes, size_t offset) {
  EMU_CALL({
    require(!thread().calls.empty(), hipErrorMissingConfiguration);
    require(argument != nullptr && bytes <= kMostArguments && offset <= kMostArguments);
    std::vector<uint8_t>& all = arguments();
    if (all.size() < offset + bytes) all.resize(offset + bytes);
    std::memcpy(all.data() + offset, argument, bytes);
  });
}

EMU_API hipError_t hipLaunchByPtr(const void* function) {
  EMU_CALL({
    require(!thread().calls.empty(), hipErrorMissingConfiguration);
    const CallConfiguration call = thread().calls.back();
    thread().calls.pop_back();
    require(function != nullptr, hipErrorInvalidDeviceFunction);
    std::vector<uint8_t> bytes = std::move(arguments());
    size_t size = bytes.size();
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, bytes.data(), HIP_LAUNCH_PARAM_BUFFER_SIZE,
                     &size, HIP_LAUNCH_PARAM_END};
    LaunchRequest r =
        request_of({call.block, extra, const_cast<void*>(function), call.grid, nullptr, 0});
    r.lds = call.lds;
    submit_launch(r, call.stream);
  });
}
