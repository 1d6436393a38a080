// Sections of emu_codes: virtual memory, sharing, peers, pools, and functions of HIP 7.

#include "emu/tests/codes.h"

namespace {

constexpr size_t kUnit = size_t{2} << 20;

hipMemAllocationProp properties() {
  hipMemAllocationProp prop{};
  prop.type = hipMemAllocationTypePinned;
  prop.location = {hipMemLocationTypeDevice, 0};
  return prop;
}

/// ROCr's hook has no virtual memory: only bad arguments can be judged.
void virtual_memory() {
  hipMemAllocationProp prop = properties();
  const auto minimum = hipMemAllocationGranularityMinimum;
  size_t bytes = 0;
  void* at = nullptr;
  hipMemGenericAllocationHandle_t handle = nullptr;
  const auto ask = HIP(hipMemGetAllocationGranularity);
  say("hipMemGetAllocationGranularity", ask(&bytes, &prop, minimum));
  say("hipMemGetAllocationGranularity without properties", ask(&bytes, nullptr, minimum));
  say("hipMemGetAllocationGranularity without a result", ask(nullptr, &prop, minimum));
  prop.location.id = 99;
  say("hipMemGetAllocationGranularity of no device", ask(&bytes, &prop, minimum));
  prop = properties();
  prop.type = hipMemAllocationTypeInvalid;
  say("hipMemGetAllocationGranularity of no type", ask(&bytes, &prop, minimum));
  prop = properties();
  const auto reserve = HIP(hipMemAddressReserve);
  say("hipMemAddressReserve of nothing", reserve(nullptr, kUnit, 0, nullptr, 0));
  say("hipMemAddressReserve with flags", reserve(&at, kUnit, 0, nullptr, 1));
  const auto create = HIP(hipMemCreate);
  say("hipMemCreate of 0 bytes", create(&handle, 0, &prop, 0));
  say("hipMemCreate without a handle", create(nullptr, kUnit, &prop, 0));
  say("hipMemCreate without properties", create(&handle, kUnit, nullptr, 0));
  say("hipMemCreate of 1000 bytes", create(&handle, 1000, &prop, 0));
  say("hipMemCreate with flags", create(&handle, kUnit, &prop, 1));
  say("hipMemCreate of too much", create(&handle, size_t{1} << 45, &prop, 0));
  prop.location.id = 99;
  say("hipMemCreate on no device", create(&handle, kUnit, &prop, 0));
  prop = properties();
  prop.requestedHandleTypes = hipMemHandleTypeWin32;
  say("hipMemCreate to be shared on Windows", create(&handle, kUnit, &prop, 0));
}

void virtual_memory_of_null() {
  const auto file = hipMemHandleTypePosixFileDescriptor;
  say("hipMemAddressFree of null", HIP(hipMemAddressFree)(nullptr, kUnit));
  say("hipMemUnmap of null", HIP(hipMemUnmap)(nullptr, kUnit));
  say("hipMemRelease of null", HIP(hipMemRelease)(nullptr));
  say("hipMemMap of null", HIP(hipMemMap)(nullptr, kUnit, 0, nullptr, 0));
  say("hipMemSetAccess of null", HIP(hipMemSetAccess)(nullptr, kUnit, nullptr, 0));
  say("hipMemGetAccess of null", HIP(hipMemGetAccess)(nullptr, nullptr, nullptr));
  say("hipMemRetainAllocationHandle of null", HIP(hipMemRetainAllocationHandle)(nullptr, nullptr));
  say("hipMemExportToShareableHandle of null",
      HIP(hipMemExportToShareableHandle)(nullptr, nullptr, file, 0));
  say("hipMemGetAllocationPropertiesFromHandle of null",
      HIP(hipMemGetAllocationPropertiesFromHandle)(nullptr, nullptr));
  say("hipMemMapArrayAsync of null", HIP(hipMemMapArrayAsync)(nullptr, 0, nullptr));
}

void shared_events() {
  hipEvent_t event = nullptr;
  hipIpcEventHandle_t handle{};
  HIP(hipEventCreateWithFlags)(&event, hipEventDisableTiming);
  say("hipIpcGetEventHandle of an event that isn't shared",
      HIP(hipIpcGetEventHandle)(&handle, event));
  say("hipEventCreateWithFlags, shared with times",
      HIP(hipEventCreateWithFlags)(&event, hipEventInterprocess));
  say("hipEventCreateWithFlags, shared",
      HIP(hipEventCreateWithFlags)(&event, hipEventInterprocess | hipEventDisableTiming));
}

void peers() {
  int value = 7;
  say("hipDeviceCanAccessPeer of itself", HIP(hipDeviceCanAccessPeer)(&value, 0, 0));
  say_number("whether it can", static_cast<unsigned>(value));
  say("hipDeviceCanAccessPeer of no device", HIP(hipDeviceCanAccessPeer)(&value, 0, 9));
  say("hipDeviceEnablePeerAccess of itself", HIP(hipDeviceEnablePeerAccess)(0, 0));
  say("hipDeviceEnablePeerAccess of no device", HIP(hipDeviceEnablePeerAccess)(9, 0));
  say("hipDeviceEnablePeerAccess with flags", HIP(hipDeviceEnablePeerAccess)(0, 1));
  say("hipDeviceDisablePeerAccess of itself", HIP(hipDeviceDisablePeerAccess)(0));
  say("hipDeviceDisablePeerAccess of no device", HIP(hipDeviceDisablePeerAccess)(9));
  void *to = nullptr, *from = nullptr;
  HIP(hipMalloc)(&to, 4096);
  HIP(hipMalloc)(&from, 4096);
  const auto copy = HIP(hipMemcpyPeer);
  say("hipMemcpyPeer within a device", copy(to, 0, from, 0, 4096));
  say("hipMemcpyPeer to no device", copy(to, 9, from, 0, 4096));
  say("hipMemcpyPeer to null", copy(nullptr, 0, from, 0, 4096));
  say("hipMemcpyPeer of 0 bytes", copy(to, 0, from, 0, 0));
  say("hipMemcpyPeerAsync from no device", HIP(hipMemcpyPeerAsync)(to, 0, from, -1, 4096, nullptr));
  const auto ask = HIP(hipDeviceGetP2PAttribute);
  say("hipDeviceGetP2PAttribute of itself", ask(&value, hipDevP2PAttrAccessSupported, 0, 0));
  say("hipDeviceGetP2PAttribute of no device", ask(&value, hipDevP2PAttrAccessSupported, 0, 9));
  say("hipDeviceGetP2PAttribute without a result",
      ask(nullptr, hipDevP2PAttrAccessSupported, 0, 0));
  uint32_t type = 0, hops = 0;
  const auto link = HIP(hipExtGetLinkTypeAndHopCount);
  say("hipExtGetLinkTypeAndHopCount of itself", link(0, 0, &type, &hops));
  say("hipExtGetLinkTypeAndHopCount of no device", link(0, 9, &type, &hops));
}

void processors() {
  hipStream_t stream = nullptr;
  uint32_t mask[4] = {};
  HIP(hipStreamCreate)(&stream);
  const auto ask = HIP(hipExtStreamGetCUMask);
  say("hipExtStreamGetCUMask", ask(stream, 4, mask));
  say("hipExtStreamGetCUMask of the null stream", ask(nullptr, 4, mask));
  say("hipExtStreamGetCUMask of 0 words", ask(stream, 0, mask));
  say("hipExtStreamGetCUMask without a result", ask(stream, 4, nullptr));
}

void pools() {
  hipMemPool_t standard = nullptr, pool = nullptr;
  int file = -1;
  const auto type = hipMemHandleTypePosixFileDescriptor;
  HIP(hipDeviceGetDefaultMemPool)(&standard, 0);
  const auto share = HIP(hipMemPoolExportToShareableHandle);
  say("hipMemPoolExportToShareableHandle of the default pool", share(&file, standard, type, 0));
  hipMemPoolProps props{};
  props.allocType = hipMemAllocationTypePinned;
  props.location = {hipMemLocationTypeDevice, 0};
  say("hipMemPoolCreate", HIP(hipMemPoolCreate)(&pool, &props));
  say("hipMemPoolExportToShareableHandle of a pool that isn't shared", share(&file, pool, type, 0));
  say("hipMemPoolExportToShareableHandle without a result", share(nullptr, pool, type, 0));
  say("hipMemPoolExportToShareableHandle of null", share(&file, nullptr, type, 0));
}

void memory_of_graphs() {
  uint64_t value = 9;
  const auto get = HIP(hipDeviceGetGraphMemAttribute);
  const auto set = HIP(hipDeviceSetGraphMemAttribute);
  say("hipDeviceGetGraphMemAttribute", get(0, hipGraphMemAttrUsedMemCurrent, &value));
  say_number("its value", value);
  say("hipDeviceGetGraphMemAttribute without a result",
      get(0, hipGraphMemAttrUsedMemCurrent, nullptr));
  say("hipDeviceGetGraphMemAttribute of no device", get(9, hipGraphMemAttrUsedMemCurrent, &value));
  say("hipDeviceGetGraphMemAttribute of no attribute",
      get(0, static_cast<hipGraphMemAttributeType>(9), &value));
  value = 0;
  say("hipDeviceSetGraphMemAttribute of what is used",
      set(0, hipGraphMemAttrUsedMemCurrent, &value));
  say("hipDeviceSetGraphMemAttribute to 0", set(0, hipGraphMemAttrUsedMemHigh, &value));
  value = 3;
  say("hipDeviceSetGraphMemAttribute to 3", set(0, hipGraphMemAttrUsedMemHigh, &value));
  say("hipDeviceSetGraphMemAttribute to nothing", set(0, hipGraphMemAttrUsedMemHigh, nullptr));
}

void pointers() {
  void* memory = nullptr;
  unsigned value = 1;
  int on_host = 0;
  HIP(hipMalloc)(&memory, 64);
  const auto set = HIP(hipPointerSetAttribute);
  const auto sync = HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS;
  say("hipPointerSetAttribute", set(&value, sync, memory));
  say("hipPointerSetAttribute of another attribute",
      set(&value, HIP_POINTER_ATTRIBUTE_CONTEXT, memory));
  say("hipPointerSetAttribute without a value", set(nullptr, sync, memory));
  say("hipPointerSetAttribute of null", set(&value, sync, nullptr));
  say("hipPointerSetAttribute of host memory", set(&value, sync, &on_host));
}

void external() {
  hipExternalMemory_t memory = nullptr;
  alignas(8) const int description[64] = {1, 0, -1};  // a file descriptor, which isn't one
  void* at = nullptr;
  const auto* semaphore = reinterpret_cast<const hipExternalSemaphoreHandleDesc*>(description);
  say("hipImportExternalMemory without a result",
      HIP(hipImportExternalMemory)(
          nullptr, reinterpret_cast<const hipExternalMemoryHandleDesc*>(description)));
  say("hipImportExternalMemory of null", HIP(hipImportExternalMemory)(&memory, nullptr));
  say("hipDestroyExternalMemory of null", HIP(hipDestroyExternalMemory)(nullptr));
  say("hipExternalMemoryGetMappedBuffer of null",
      HIP(hipExternalMemoryGetMappedBuffer)(&at, nullptr, nullptr));
  say("hipImportExternalSemaphore of null", HIP(hipImportExternalSemaphore)(nullptr, nullptr));
  say("hipImportExternalSemaphore", HIP(hipImportExternalSemaphore)(&memory, semaphore));
  say("hipDestroyExternalSemaphore of null", HIP(hipDestroyExternalSemaphore)(nullptr));
  say("hipSignalExternalSemaphoresAsync of none",
      HIP(hipSignalExternalSemaphoresAsync)(nullptr, nullptr, 0, nullptr));
  say("hipWaitExternalSemaphoresAsync of none",
      HIP(hipWaitExternalSemaphoresAsync)(nullptr, nullptr, 0, nullptr));
}

void graphics() {
  unsigned count = 5;
  int ordinals[4];
  hipGraphicsResource_t resource = nullptr;
  say("hipGLGetDevices", HIP(hipGLGetDevices)(&count, ordinals, 4, hipGLDeviceListAll));
  say("hipGraphicsGLRegisterBuffer", HIP(hipGraphicsGLRegisterBuffer)(&resource, 1, 0));
  say("hipGraphicsUnregisterResource of null", HIP(hipGraphicsUnregisterResource)(nullptr));
}

// --- HIP 7

void attributes_of_streams() {
  hipStream_t stream = nullptr;
  hipLaunchAttributeValue value{};
  HIP(hipStreamCreate)(&stream);
  const auto get = HIP(hipStreamGetAttribute);
  const auto set = HIP(hipStreamSetAttribute);
  say("hipStreamGetAttribute of the priority", get(stream, hipLaunchAttributePriority, &value));
  const auto policy = hipLaunchAttributeSynchronizationPolicy;
  say("hipStreamGetAttribute of the policy", get(stream, policy, &value));
  say_number("the policy", value.syncPolicy);
  const auto window = hipLaunchAttributeAccessPolicyWindow;
  say("hipStreamGetAttribute of the window", get(stream, window, &value));
  say("hipStreamGetAttribute without a result", get(stream, policy, nullptr));
  say("hipStreamSetAttribute of the priority", set(stream, hipLaunchAttributePriority, &value));
  value.syncPolicy = hipSyncPolicySpin;
  say("hipStreamSetAttribute of the policy", set(stream, policy, &value));
  say("hipStreamSetAttribute of the window", set(stream, window, &value));
  say("hipStreamSetAttribute of nothing",
      set(stream, static_cast<hipLaunchAttributeID>(99), &value));
  unsigned long long id = 0;
  say("hipStreamGetId", HIP(hipStreamGetId)(stream, &id));
  say("hipStreamGetId without a result", HIP(hipStreamGetId)(stream, nullptr));
}

void copies_in_space() {
  void *to = nullptr, *from = nullptr;
  HIP(hipMalloc)(&to, 4096);
  HIP(hipMalloc)(&from, 4096);
  hipMemcpy3DPeerParms p{};
  p.srcPtr = {from, 64, 64, 1};
  p.dstPtr = {to, 64, 64, 1};
  p.extent = {64, 1, 1};
  const auto copy = HIP(hipMemcpy3DPeer);
  say("hipMemcpy3DPeer", copy(&p));
  say("hipMemcpy3DPeer of null", copy(nullptr));
  p.dstDevice = 9;
  say("hipMemcpy3DPeer to no device", copy(&p));
  p.dstDevice = 0;
  say("hipMemcpy3DPeerAsync", HIP(hipMemcpy3DPeerAsync)(&p, nullptr));
  p.extent = {0, 0, 0};
  say("hipMemcpy3DPeer of nothing", copy(&p));
  p.extent = {64, 1, 1};
  p.dstPtr.ptr = nullptr;
  say("hipMemcpy3DPeer to null", copy(&p));
}

void batches() {
  void *to = nullptr, *from = nullptr;
  HIP(hipMalloc)(&to, 4096);
  HIP(hipMalloc)(&from, 4096);
  hipStream_t stream = nullptr;
  HIP(hipStreamCreate)(&stream);
  size_t bytes = 64, index = 0, failed = 7;
  hipMemcpyAttributes attributes{};
  attributes.srcAccessOrder = 1;
  const auto copy = HIP(hipMemcpyBatchAsync);
  say("hipMemcpyBatchAsync with attributes",
      copy(&to, &from, &bytes, 1, &attributes, &index, 1, &failed, stream));
  say("hipMemcpyBatchAsync of none",
      copy(&to, &from, &bytes, 0, &attributes, &index, 1, &failed, stream));
  say("hipMemcpyBatchAsync without attributes",
      copy(&to, &from, &bytes, 1, nullptr, nullptr, 0, &failed, stream));
  say("hipMemcpyBatchAsync to nothing",
      copy(nullptr, &from, &bytes, 1, &attributes, &index, 1, &failed, stream));
}

void libraries() {
  hipLibrary_t library_handle = nullptr;
  hipKernel_t kernel = nullptr;
  unsigned count = 0;
  say("hipLibraryLoadData of null",
      HIP(hipLibraryLoadData)(&library_handle, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
  say("hipLibraryLoadFromFile of no file",
      HIP(hipLibraryLoadFromFile)(&library_handle, "/none", nullptr, nullptr, 0, nullptr, nullptr,
                                  0));
  say("hipLibraryUnload of null", HIP(hipLibraryUnload)(nullptr));
  say("hipLibraryGetKernelCount of null", HIP(hipLibraryGetKernelCount)(&count, nullptr));
  say("hipLibraryGetKernel of null", HIP(hipLibraryGetKernel)(&kernel, nullptr, "kernel"));
  hipModule_t module = nullptr;
  say("hipModuleLoadFatBinary of null", HIP(hipModuleLoadFatBinary)(&module, nullptr));
  say("hipModuleLoadFatBinary of no code",
      HIP(hipModuleLoadFatBinary)(&module, "no code at all, but long enough to look at"));
  say("hipModuleGetFunctionCount of null", HIP(hipModuleGetFunctionCount)(&count, nullptr));
}

void devices_to_prefer() {
  int list[2] = {0, 0};
  const auto set = HIP(hipSetValidDevices);
  say("hipSetValidDevices", set(list, 1));
  say("hipSetValidDevices of none", set(nullptr, 0));
  say("hipSetValidDevices of null", set(nullptr, 1));
  say("hipSetValidDevices of too many", set(list, 99));
  say("hipSetValidDevices of fewer than none", set(list, -1));
  list[0] = 9;
  say("hipSetValidDevices of no device", set(list, 1));
}

void advice() {
  void* memory = nullptr;
  HIP(hipMallocManaged)(&memory, kUnit, hipMemAttachGlobal);
  const hipMemLocation location{hipMemLocationTypeDevice, 0};
  say("hipMemAdvise_v2", HIP(hipMemAdvise_v2)(memory, kUnit, hipMemAdviseSetReadMostly, location));
  say("hipMemPrefetchAsync_v2", HIP(hipMemPrefetchAsync_v2)(memory, kUnit, location, 0, nullptr));
}

}  // namespace

std::vector<void (*)()> sections_of_6() {
  return {virtual_memory, virtual_memory_of_null, shared_events, peers,    processors,
          pools,          memory_of_graphs,       pointers,      external, graphics};
}

std::vector<void (*)()> sections_of_7() {
  return {attributes_of_streams, copies_in_space, batches, libraries, devices_to_prefer, advice};
}
