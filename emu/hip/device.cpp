// Devices: how many there are, which one is meant, and what they can do.

#include <cstdio>
#include <cstring>

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

constexpr int kVersion = 60200000 + 41134;  // HIP 6.2
constexpr int kMaxGrid = 0x7fffffff;

/// hipDeviceArch_t: what kernels can count on. Atomics of 32 and 64 bits, doubles, votes, ballots,
/// shuffles, fences, grids of three dimensions.
constexpr unsigned kArchBits = 0x97ff;

template <class Properties>
void fill_common(const Device& d, Properties& p) {
  const Architecture& a = d.architecture;
  std::memset(&p, 0, sizeof p);
  std::snprintf(p.name, sizeof p.name, "%s", a.product);
  std::snprintf(p.gcnArchName, sizeof p.gcnArchName, "%s", a.full_name);
  p.totalGlobalMem = d.bytes;
  p.sharedMemPerBlock = a.lds_bytes;
  p.regsPerBlock = 65536;
  p.warpSize = a.wave;
  p.maxThreadsPerBlock = 1024;
  for (int i = 0; i < 3; ++i) p.maxThreadsDim[i] = 1024;
  p.maxGridSize[0] = kMaxGrid;
  p.maxGridSize[1] = p.maxGridSize[2] = 65536;
  p.clockRate = a.clock_khz;
  p.memoryClockRate = a.memory_clock_khz;
  p.memoryBusWidth = a.bus_bits;
  p.totalConstMem = 0x7fffffff;
  p.major = a.major;
  p.minor = a.minor;
  p.multiProcessorCount = a.processors;
  p.l2CacheSize = a.l2_bytes;
  p.maxThreadsPerMultiProcessor = 2048;
  p.clockInstructionRate = 100000;
  p.arch.bits = kArchBits;
  p.concurrentKernels = 1;
  p.pciBusID = d.ordinal + 1;
  p.maxSharedMemoryPerMultiProcessor = a.processor_lds;
  p.canMapHostMemory = 1;
  p.cooperativeLaunch = 1;
  p.memPitch = 0x7fffffff;
  p.textureAlignment = p.texturePitchAlignment = 256;
  p.isLargeBar = 1;
  p.managedMemory = 1;
  p.concurrentManagedAccess = 1;
  p.directManagedMemAccessFromHost = 1;
  p.maxTexture1D = p.maxTexture2D[0] = p.maxTexture2D[1] = 16384;
  p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = 2048;
  p.maxTexture1DLinear = 16384;
}

void fill_new(const Device& d, hipDeviceProp_tR0600& p) {
  fill_common(d, p);
  const Architecture& a = d.architecture;
  std::snprintf(p.uuid.bytes, sizeof p.uuid.bytes, "wick-emu-%06d", d.ordinal);
  p.deviceOverlap = 1;
  p.asyncEngineCount = 2;
  p.unifiedAddressing = 1;
  p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = a.processor_lds;
  p.sharedMemPerBlockOptin = a.lds_bytes;
  p.regsPerMultiprocessor = a.vgprs * 32 * a.simds;
  p.hostNativeAtomicSupported = 1;
  p.singleToDoublePrecisionPerfRatio = a.generation == 9 ? 1 : 32;
  p.canUseHostPointerForRegisteredMem = 1;
  p.maxBlocksPerMultiProcessor = a.simds * a.waves_per_simd / 2;
  p.hostRegisterSupported = 1;
  p.hostRegisterReadOnlySupported = 1;
  p.memoryPoolsSupported = 1;
}

/// The first device that has as much, the first of all where none has.
template <class Properties>
void choose(int* ordinal, const Properties* wanted) {
  require(ordinal != nullptr && wanted != nullptr);
  const auto fits = [&](const Device& d) {
    const Architecture& a = d.architecture;
    const bool newer =
        a.major != wanted->major ? a.major > wanted->major : a.minor >= wanted->minor;
    return newer && d.bytes >= wanted->totalGlobalMem;
  };
  *ordinal = 0;
  for (const auto& d : runtime().devices) {
    if (!fits(*d)) continue;
    *ordinal = d->ordinal;
    return;
  }
}

int attribute_of(const Device& d, hipDeviceAttribute_t attribute) {
  hipDeviceProp_tR0600 p;
  fill_new(d, p);
  switch (attribute) {
    case hipDeviceAttributeEccEnabled:
      return p.ECCEnabled;
    case hipDeviceAttributeAccessPolicyMaxWindowSize:
      return p.accessPolicyMaxWindowSize;
    case hipDeviceAttributeAsyncEngineCount:
      return p.asyncEngineCount;
    case hipDeviceAttributeCanMapHostMemory:
      return p.canMapHostMemory;
    case hipDeviceAttributeCanUseHostPointerForRegisteredMem:
      return p.canUseHostPointerForRegisteredMem;
    case hipDeviceAttributeClockRate:
      return p.clockRate;
    case hipDeviceAttributeComputeMode:
      return p.computeMode;
    case hipDeviceAttributeComputePreemptionSupported:
      return p.computePreemptionSupported;
    case hipDeviceAttributeConcurrentKernels:
      return p.concurrentKernels;
    case hipDeviceAttributeConcurrentManagedAccess:
      return p.concurrentManagedAccess;
    case hipDeviceAttributeCooperativeLaunch:
      return p.cooperativeLaunch;
    case hipDeviceAttributeCooperativeMultiDeviceLaunch:
      return p.cooperativeMultiDeviceLaunch;
    case hipDeviceAttributeDeviceOverlap:
      return p.deviceOverlap;
    case hipDeviceAttributeDirectManagedMemAccessFromHost:
      return p.directManagedMemAccessFromHost;
    case hipDeviceAttributeGlobalL1CacheSupported:
      return p.globalL1CacheSupported;
    case hipDeviceAttributeHostNativeAtomicSupported:
      return p.hostNativeAtomicSupported;
    case hipDeviceAttributeIntegrated:
      return p.integrated;
    case hipDeviceAttributeIsMultiGpuBoard:
      return p.isMultiGpuBoard;
    case hipDeviceAttributeKernelExecTimeout:
      return p.kernelExecTimeoutEnabled;
    case hipDeviceAttributeL2CacheSize:
      return p.l2CacheSize;
    case hipDeviceAttributeLocalL1CacheSupported:
      return p.localL1CacheSupported;
    case hipDeviceAttributeComputeCapabilityMajor:
      return p.major;
    case hipDeviceAttributeComputeCapabilityMinor:
      return p.minor;
    case hipDeviceAttributeManagedMemory:
      return p.managedMemory;
    case hipDeviceAttributeMaxBlocksPerMultiProcessor:
      return p.maxBlocksPerMultiProcessor;
    case hipDeviceAttributeMaxBlockDimX:
      return p.maxThreadsDim[0];
    case hipDeviceAttributeMaxBlockDimY:
      return p.maxThreadsDim[1];
    case hipDeviceAttributeMaxBlockDimZ:
      return p.maxThreadsDim[2];
    case hipDeviceAttributeMaxGridDimX:
      return p.maxGridSize[0];
    case hipDeviceAttributeMaxGridDimY:
      return p.maxGridSize[1];
    case hipDeviceAttributeMaxGridDimZ:
      return p.maxGridSize[2];
    case hipDeviceAttributeMaxTexture1DWidth:
      return p.maxTexture1D;
    case hipDeviceAttributeMaxTexture1DLinear:
      return p.maxTexture1DLinear;
    case hipDeviceAttributeMaxTexture2DWidth:
      return p.maxTexture2D[0];
    case hipDeviceAttributeMaxTexture2DHeight:
      return p.maxTexture2D[1];
    case hipDeviceAttributeMaxTexture3DWidth:
      return p.maxTexture3D[0];
    case hipDeviceAttributeMaxTexture3DHeight:
      return p.maxTexture3D[1];
    case hipDeviceAttributeMaxTexture3DDepth:
      return p.maxTexture3D[2];
    case hipDeviceAttributeMaxThreadsDim:
      return p.maxThreadsDim[0];
    case hipDeviceAttributeMaxThreadsPerBlock:
      return p.maxThreadsPerBlock;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor:
      return p.maxThreadsPerMultiProcessor;
    case hipDeviceAttributeMaxPitch:
      return static_cast<int>(p.memPitch);
    case hipDeviceAttributeMemoryBusWidth:
      return p.memoryBusWidth;
    case hipDeviceAttributeMemoryClockRate:
      return p.memoryClockRate;
    case hipDeviceAttributeMultiprocessorCount:
      return p.multiProcessorCount;
    case hipDeviceAttributePageableMemoryAccess:
      return p.pageableMemoryAccess;
    case hipDeviceAttributePageableMemoryAccessUsesHostPageTables:
      return 0;
    case hipDeviceAttributePciBusId:
      return p.pciBusID;
    case hipDeviceAttributePciDeviceId:
      return p.pciDeviceID;
    case hipDeviceAttributePciDomainID:
      return p.pciDomainID;
    case hipDeviceAttributeMaxRegistersPerBlock:
      return p.regsPerBlock;
    case hipDeviceAttributeMaxRegistersPerMultiprocessor:
      return p.regsPerMultiprocessor;
    case hipDeviceAttributeReservedSharedMemPerBlock:
      return 0;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
      return static_cast<int>(p.sharedMemPerBlock);
    case hipDeviceAttributeSharedMemPerBlockOptin:
      return static_cast<int>(p.sharedMemPerBlockOptin);
    case hipDeviceAttributeSharedMemPerMultiprocessor:
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(p.sharedMemPerMultiprocessor);
    case hipDeviceAttributeSingleToDoublePrecisionPerfRatio:
      return p.singleToDoublePrecisionPerfRatio;
    case hipDeviceAttributeStreamPrioritiesSupported:
      return p.streamPrioritiesSupported;
    case hipDeviceAttributeTextureAlignment:
      return static_cast<int>(p.textureAlignment);
    case hipDeviceAttributeTexturePitchAlignment:
      return static_cast<int>(p.texturePitchAlignment);
    case hipDeviceAttributeTotalConstantMemory:
      return static_cast<int>(p.totalConstMem);
    case hipDeviceAttributeTotalGlobalMem:
      return static_cast<int>(std::min<size_t>(p.totalGlobalMem, 0x7fffffff));
    case hipDeviceAttributeUnifiedAddressing:
      return p.unifiedAddressing;
    case hipDeviceAttributeWarpSize:
      return p.warpSize;
    case hipDeviceAttributeMemoryPoolsSupported:
      return p.memoryPoolsSupported;
    case hipDeviceAttributeVirtualMemoryManagementSupported:
      return 0;
    case hipDeviceAttributeHostRegisterSupported:
      return p.hostRegisterSupported;
    case hipDeviceAttributeMemoryPoolSupportedHandleTypes:
      return 0;
    case hipDeviceAttributeClockInstructionRate:
      return p.clockInstructionRate;
    case hipDeviceAttributeIsLargeBar:
      return p.isLargeBar;
    case hipDeviceAttributeAsicRevision:
      return p.asicRevision;
    case hipDeviceAttributeCanUseStreamWaitValue:
      return 1;
    case hipDeviceAttributeImageSupport:
      return 0;
    case hipDeviceAttributePhysicalMultiProcessorCount:
      return p.multiProcessorCount;
    case hipDeviceAttributeFineGrainSupport:
      return 1;
    case hipDeviceAttributeWallClockRate:
      return 100000;
    default:
      throw Error{hipErrorInvalidValue};
  }
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipInit(unsigned flags) {
  EMU_CALL({ require(flags == 0); });
}

EMU_API hipError_t hipDriverGetVersion(int* version) {
  EMU_CALL({
    require(version != nullptr);
    *version = kVersion;
  });
}

EMU_API hipError_t hipRuntimeGetVersion(int* version) {
  EMU_CALL({
    require(version != nullptr);
    *version = kVersion;
  });
}

EMU_API hipError_t hipGetDeviceCount(int* count) {
  if (count != nullptr) *count = static_cast<int>(Runtime::get().devices.size());
  EMU_CALL({ require(count != nullptr); });
}

EMU_API hipError_t hipSetDevice(int ordinal) {
  EMU_CALL({
    hip::device(ordinal);
    thread().device = ordinal;
  });
}

EMU_API hipError_t hipGetDevice(int* ordinal) {
  EMU_CALL({
    require(ordinal != nullptr);
    *ordinal = thread().device;
  });
}

EMU_API hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  EMU_CALL({
    require(device != nullptr);
    *device = hip::device(ordinal).ordinal;
  });
}

EMU_API hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int ordinal) {
  EMU_CALL({
    require(properties != nullptr);
    fill_new(hip::device(ordinal), *properties);
  });
}

EMU_API hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int ordinal) {
  EMU_CALL({
    require(properties != nullptr);
    const Device& d = hip::device(ordinal);
    fill_common(d, *properties);
    const Architecture& a = d.architecture;
    properties->gcnArch = a.major * 100 + a.minor * 10 + a.stepping;
  });
}

EMU_API hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int ordinal) {
  EMU_CALL({
    require(value != nullptr);
    *value = attribute_of(hip::device(ordinal), attribute);
  });
}

EMU_API hipError_t hipChooseDeviceR0600(int* ordinal, const hipDeviceProp_tR0600* wanted) {
  EMU_CALL({ choose(ordinal, wanted); });
}

EMU_API hipError_t hipChooseDevice(int* ordinal, const hipDeviceProp_tR0000* wanted) {
  EMU_CALL({ choose(ordinal, wanted); });
}

EMU_API hipError_t hipDeviceGetName(char* name, int length, hipDevice_t ordinal) {
  EMU_CALL({
    const Device& d = hip::device(ordinal);
    require(name != nullptr && length > 0);
    std::snprintf(name, static_cast<size_t>(length), "%s", d.architecture.product);
  });
}

EMU_API hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t ordinal) {
  EMU_CALL({
    require(uuid != nullptr);
    hipDeviceProp_tR0600 p;
    fill_new(hip::device(ordinal), p);
    *uuid = p.uuid;
  });
}

EMU_API hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t ordinal) {
  EMU_CALL({
    require(bytes != nullptr);
    *bytes = hip::device(ordinal).bytes;
  });
}

EMU_API hipError_t hipDeviceComputeCapability(int* major, int* minor, hipDevice_t ordinal) {
  EMU_CALL({
    require(major != nullptr && minor != nullptr);
    const Architecture& a = hip::device(ordinal).architecture;
    *major = a.major;
    *minor = a.minor;
  });
}

EMU_API hipError_t hipDeviceGetPCIBusId(char* id, int length, int ordinal) {
  EMU_CALL({
    hip::device(ordinal);
    require(id != nullptr && length > 0);
    std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", ordinal + 1);
  });
}

EMU_API hipError_t hipDeviceGetByPCIBusId(int* ordinal, const char* id) {
  EMU_CALL({
    require(ordinal != nullptr && id != nullptr);
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    int end = 0;
    const int parts =
        std::sscanf(id, "%x:%x:%x%n.%x%n", &domain, &bus, &slot, &end, &function, &end);
    require(parts >= 3 && id[end] == 0);
    require(
        domain == 0 && slot == 0 && function == 0 && bus != 0 && bus <= runtime().devices.size(),
        hipErrorInvalidDevice);
    *ordinal = static_cast<int>(bus) - 1;
  });
}

EMU_API hipError_t hipDeviceSynchronize() {
  EMU_CALL({
    refuse_in_any_capture();
    return current_device().synchronize();
  });
}

EMU_API hipError_t hipSetDeviceFlags(unsigned flags) {
  EMU_CALL({
    const unsigned known = hipDeviceScheduleMask | hipDeviceMapHost | hipDeviceLmemResizeToMax;
    require((flags & ~known) == 0);
    const unsigned schedule = flags & hipDeviceScheduleMask;
    require((schedule & (schedule - 1)) == 0);
    Device& d = current_device();
    std::lock_guard lock(d.settings);
    d.flags = flags;
  });
}

EMU_API hipError_t hipGetDeviceFlags(unsigned* flags) {
  EMU_CALL({
    require(flags != nullptr);
    Device& d = current_device();
    std::lock_guard lock(d.settings);
    *flags = d.flags;
  });
}

EMU_API hipError_t hipDeviceGetLimit(size_t* value, hipLimit_t limit) {
  EMU_CALL({
    require(value != nullptr);
    require(limit < hipLimitRange, hipErrorUnsupportedLimit);
    Device& d = current_device();
    std::lock_guard lock(d.settings);
    *value = d.limits[limit];
  });
}

EMU_API hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value) {
  EMU_CALL({
    require(limit < hipLimitRange, hipErrorUnsupportedLimit);
    Device& d = current_device();
    std::lock_guard lock(d.settings);
    d.limits[limit] = value;
  });
}

EMU_API hipError_t hipDeviceGetCacheConfig(hipFuncCache_t* config) {
  EMU_CALL({
    require(config != nullptr);
    *config = hipFuncCachePreferNone;
  });
}

EMU_API hipError_t hipDeviceSetCacheConfig(hipFuncCache_t config) {
  EMU_CALL({ require(config <= hipFuncCachePreferEqual); });
}

EMU_API hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig* config) {
  EMU_CALL({
    require(config != nullptr);
    *config = hipSharedMemBankSizeFourByte;
  });
}

EMU_API hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig config) {
  EMU_CALL({ require(config <= hipSharedMemBankSizeEightByte); });
}

EMU_API hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  EMU_CALL({
    if (least != nullptr) *least = 1;
    if (greatest != nullptr) *greatest = -1;
  });
}

EMU_API hipError_t hipDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  EMU_CALL({
    require(can != nullptr);
    hip::device(ordinal);
    hip::device(peer);
    *can = ordinal != peer ? 1 : 0;
  });
}

EMU_API hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  EMU_CALL({
    hip::device(peer);
    require(flags == 0);
    Device& d = current_device();
    require(peer != d.ordinal, hipErrorInvalidDevice);
    std::lock_guard lock(d.settings);
    require(!d.peers[static_cast<size_t>(peer)], hipErrorPeerAccessAlreadyEnabled);
    d.peers[static_cast<size_t>(peer)] = true;
  });
}

EMU_API hipError_t hipDeviceDisablePeerAccess(int peer) {
  EMU_CALL({
    hip::device(peer);
    Device& d = current_device();
    std::lock_guard lock(d.settings);
    require(d.peers[static_cast<size_t>(peer)], hipErrorPeerAccessNotEnabled);
    d.peers[static_cast<size_t>(peer)] = false;
  });
}

EMU_API hipError_t hipDeviceGetP2PAttribute(int* value, hipDeviceP2PAttr attribute, int from,
                                            int to) {
  EMU_CALL({
    require(value != nullptr && attribute <= hipDevP2PAttrHipArrayAccessSupported);
    hip::device(from);
    hip::device(to);
    require(from != to, hipErrorInvalidDevice);
    *value = attribute == hipDevP2PAttrAccessSupported ||
             attribute == hipDevP2PAttrNativeAtomicSupported;
  });
}

EMU_API hipError_t hipProfilerStart() { return hipSuccess; }
EMU_API hipError_t hipProfilerStop() { return hipSuccess; }
