// Device properties and attributes.

#include "emu/hip/attributes.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "emu/hip/properties.h"
#include "emu/object/limits.h"

namespace emu::hip {
namespace {

constexpr int kMaxGrid = 0x7fffffff;

/// hipDeviceArch_t: the features of a device. It has 32- and 64-bit atomics, doubles, votes,
/// ballots, shuffles, fences and three-dimensional grids.
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
  p.maxThreadsPerBlock = kMostItems;
  for (int i = 0; i < 3; ++i) p.maxThreadsDim[i] = kMostItems;
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

using Properties = hipDeviceProp_tR0600;

/// Values that don't fit into an attribute's int are clamped.
template <auto kMember>
int member(const Properties& p) {
  return static_cast<int>(std::min<size_t>(static_cast<size_t>(p.*kMember), 0x7fffffff));
}

template <auto kMember, size_t kIndex>
int element(const Properties& p) {
  return (p.*kMember)[kIndex];
}

int images(const Properties& p) { return has_images(p.major) ? 1 : 0; }

template <int kValue>
int constant(const Properties&) {
  return kValue;
}

struct Attribute {
  hipDeviceAttribute_t name;
  int (*value)(const Properties&);
};

constexpr Attribute kAttributes[] = {
    {hipDeviceAttributeEccEnabled, member<&Properties::ECCEnabled>},
    {hipDeviceAttributeAccessPolicyMaxWindowSize, member<&Properties::accessPolicyMaxWindowSize>},
    {hipDeviceAttributeAsyncEngineCount, member<&Properties::asyncEngineCount>},
    {hipDeviceAttributeCanMapHostMemory, member<&Properties::canMapHostMemory>},
    {hipDeviceAttributeCanUseHostPointerForRegisteredMem,
     member<&Properties::canUseHostPointerForRegisteredMem>},
    {hipDeviceAttributeClockRate, member<&Properties::clockRate>},
    {hipDeviceAttributeComputeMode, member<&Properties::computeMode>},
    {hipDeviceAttributeComputePreemptionSupported, member<&Properties::computePreemptionSupported>},
    {hipDeviceAttributeConcurrentKernels, member<&Properties::concurrentKernels>},
    {hipDeviceAttributeConcurrentManagedAccess, member<&Properties::concurrentManagedAccess>},
    {hipDeviceAttributeCooperativeLaunch, member<&Properties::cooperativeLaunch>},
    {hipDeviceAttributeCooperativeMultiDeviceLaunch,
     member<&Properties::cooperativeMultiDeviceLaunch>},
    {hipDeviceAttributeDeviceOverlap, member<&Properties::deviceOverlap>},
    {hipDeviceAttributeDirectManagedMemAccessFromHost,
     member<&Properties::directManagedMemAccessFromHost>},
    {hipDeviceAttributeGlobalL1CacheSupported, member<&Properties::globalL1CacheSupported>},
    {hipDeviceAttributeHostNativeAtomicSupported, member<&Properties::hostNativeAtomicSupported>},
    {hipDeviceAttributeIntegrated, member<&Properties::integrated>},
    {hipDeviceAttributeIsMultiGpuBoard, member<&Properties::isMultiGpuBoard>},
    {hipDeviceAttributeKernelExecTimeout, member<&Properties::kernelExecTimeoutEnabled>},
    {hipDeviceAttributeL2CacheSize, member<&Properties::l2CacheSize>},
    {hipDeviceAttributeLocalL1CacheSupported, member<&Properties::localL1CacheSupported>},
    {hipDeviceAttributeComputeCapabilityMajor, member<&Properties::major>},
    {hipDeviceAttributeComputeCapabilityMinor, member<&Properties::minor>},
    {hipDeviceAttributeManagedMemory, member<&Properties::managedMemory>},
    {hipDeviceAttributeMaxBlocksPerMultiProcessor, member<&Properties::maxBlocksPerMultiProcessor>},
    {hipDeviceAttributeMaxBlockDimX, element<&Properties::maxThreadsDim, 0>},
    {hipDeviceAttributeMaxBlockDimY, element<&Properties::maxThreadsDim, 1>},
    {hipDeviceAttributeMaxBlockDimZ, element<&Properties::maxThreadsDim, 2>},
    {hipDeviceAttributeMaxGridDimX, element<&Properties::maxGridSize, 0>},
    {hipDeviceAttributeMaxGridDimY, element<&Properties::maxGridSize, 1>},
    {hipDeviceAttributeMaxGridDimZ, element<&Properties::maxGridSize, 2>},
    {hipDeviceAttributeMaxTexture1DWidth, member<&Properties::maxTexture1D>},
    {hipDeviceAttributeMaxTexture1DLinear, member<&Properties::maxTexture1DLinear>},
    {hipDeviceAttributeMaxTexture2DWidth, element<&Properties::maxTexture2D, 0>},
    {hipDeviceAttributeMaxTexture2DHeight, element<&Properties::maxTexture2D, 1>},
    {hipDeviceAttributeMaxTexture3DWidth, element<&Properties::maxTexture3D, 0>},
    {hipDeviceAttributeMaxTexture3DHeight, element<&Properties::maxTexture3D, 1>},
    {hipDeviceAttributeMaxTexture3DDepth, element<&Properties::maxTexture3D, 2>},
    {hipDeviceAttributeMaxThreadsDim, element<&Properties::maxThreadsDim, 0>},
    {hipDeviceAttributeMaxThreadsPerBlock, member<&Properties::maxThreadsPerBlock>},
    {hipDeviceAttributeMaxThreadsPerMultiProcessor,
     member<&Properties::maxThreadsPerMultiProcessor>},
    {hipDeviceAttributeMaxPitch, member<&Properties::memPitch>},
    {hipDeviceAttributeMemoryBusWidth, member<&Properties::memoryBusWidth>},
    {hipDeviceAttributeMemoryClockRate, member<&Properties::memoryClockRate>},
    {hipDeviceAttributeMultiprocessorCount, member<&Properties::multiProcessorCount>},
    {hipDeviceAttributePageableMemoryAccess, member<&Properties::pageableMemoryAccess>},
    {hipDeviceAttributePageableMemoryAccessUsesHostPageTables, constant<0>},
    {hipDeviceAttributePciBusId, member<&Properties::pciBusID>},
    {hipDeviceAttributePciDeviceId, member<&Properties::pciDeviceID>},
    {hipDeviceAttributePciDomainID, member<&Properties::pciDomainID>},
    {hipDeviceAttributeMaxRegistersPerBlock, member<&Properties::regsPerBlock>},
    {hipDeviceAttributeMaxRegistersPerMultiprocessor, member<&Properties::regsPerMultiprocessor>},
    {hipDeviceAttributeReservedSharedMemPerBlock, constant<0>},
    {hipDeviceAttributeMaxSharedMemoryPerBlock, member<&Properties::sharedMemPerBlock>},
    {hipDeviceAttributeSharedMemPerBlockOptin, member<&Properties::sharedMemPerBlockOptin>},
    {hipDeviceAttributeSharedMemPerMultiprocessor, member<&Properties::sharedMemPerMultiprocessor>},
    {hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
     member<&Properties::sharedMemPerMultiprocessor>},
    {hipDeviceAttributeSingleToDoublePrecisionPerfRatio,
     member<&Properties::singleToDoublePrecisionPerfRatio>},
    {hipDeviceAttributeStreamPrioritiesSupported, member<&Properties::streamPrioritiesSupported>},
    {hipDeviceAttributeTextureAlignment, member<&Properties::textureAlignment>},
    {hipDeviceAttributeTexturePitchAlignment, member<&Properties::texturePitchAlignment>},
    {hipDeviceAttributeTotalConstantMemory, member<&Properties::totalConstMem>},
    {hipDeviceAttributeTotalGlobalMem, member<&Properties::totalGlobalMem>},
    {hipDeviceAttributeUnifiedAddressing, member<&Properties::unifiedAddressing>},
    {hipDeviceAttributeWarpSize, member<&Properties::warpSize>},
    {hipDeviceAttributeMemoryPoolsSupported, member<&Properties::memoryPoolsSupported>},
    {hipDeviceAttributeVirtualMemoryManagementSupported, constant<1>},
    {hipDeviceAttributeHostRegisterSupported, member<&Properties::hostRegisterSupported>},
    {hipDeviceAttributeMemoryPoolSupportedHandleTypes, constant<0>},
    {hipDeviceAttributeClockInstructionRate, member<&Properties::clockInstructionRate>},
    {hipDeviceAttributeIsLargeBar, member<&Properties::isLargeBar>},
    {hipDeviceAttributeAsicRevision, member<&Properties::asicRevision>},
    {hipDeviceAttributeCanUseStreamWaitValue, constant<1>},
    {hipDeviceAttributeImageSupport, images},
    {hipDeviceAttributePhysicalMultiProcessorCount, member<&Properties::multiProcessorCount>},
    {hipDeviceAttributeFineGrainSupport, constant<1>},
    {hipDeviceAttributeWallClockRate, constant<100000>},
};

}  // namespace

void fill_properties(const Device& d, hipDeviceProp_tR0600& p) {
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

void fill_properties(const Device& d, hipDeviceProp_tR0000& p) {
  fill_common(d, p);
  const Architecture& a = d.architecture;
  p.gcnArch = a.major * 100 + a.minor * 10 + a.stepping;
}

int attribute_of(const Device& d, hipDeviceAttribute_t name) {
  hipDeviceProp_tR0600 p;
  fill_properties(d, p);
  for (const Attribute& attribute : kAttributes) {
    if (attribute.name == name) return attribute.value(p);
  }
  throw Error{hipErrorInvalidValue};
}

}  // namespace emu::hip
