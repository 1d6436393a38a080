// Device count, selection, properties and settings.

#include <dlfcn.h>

#include <cstdio>
#include <string_view>

#include "emu/hip/properties.h"

namespace emu::hip {
namespace {

/// The version of the runtime whose name this library was loaded by: libamdhip64.so.5, .6 or .7.
/// Programs compare it with the version that they were built for.
int find_version() {
  constexpr int kFive = 50'700'000 + 31921, kSix = 60'200'000 + 41134, kSeven = 70'200'000 + 53211;
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&find_version), &info) == 0) return kSix;
  const std::string_view name = info.dli_fname == nullptr ? "" : info.dli_fname;
  if (name.ends_with(".so.5")) return kFive;
  return name.ends_with(".so.7") ? kSeven : kSix;
}

/// Chooses the first device that has the wanted properties, or device 0 if none has them.
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

}  // namespace

int version() {
  static const int number = find_version();
  return number;
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipInit(unsigned flags) {
  EMU_CALL({ require(flags == 0); });
}

EMU_API hipError_t hipDriverGetVersion(int* version) {
  EMU_CALL({
    require(version != nullptr);
    *version = hip::version();
  });
}

EMU_API hipError_t hipRuntimeGetVersion(int* version) {
  EMU_CALL({
    require(version != nullptr);
    *version = hip::version();
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
    fill_properties(hip::device(ordinal), *properties);
  });
}

EMU_API hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int ordinal) {
  EMU_CALL({
    require(properties != nullptr);
    fill_properties(hip::device(ordinal), *properties);
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
    fill_properties(hip::device(ordinal), p);
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
    require(peer != d.ordinal, hipErrorInvalidDevice);
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

EMU_API hipError_t hipExtGetLinkTypeAndHopCount(int from, int to, uint32_t* type, uint32_t* hops) {
  constexpr uint32_t kPcie = 2;  // as HSA_AMD_LINK_INFO_TYPE_PCIE
  EMU_CALL({
    hip::device(from);
    hip::device(to);
    require(type != nullptr && hops != nullptr && from != to);
    *type = kPcie;
    *hops = 1;
  });
}

// The order of devices that a thread prefers. No function chooses a device for a thread, so it has
// no effect.
EMU_API hipError_t hipSetValidDevices(int* list, int count) {
  EMU_CALL({
    require(count >= 0 && static_cast<size_t>(count) <= runtime().devices.size());
    require(list != nullptr || count == 0);
    for (int i = 0; i < count; ++i) hip::device(list[i]);
  });
}

EMU_API hipError_t hipProfilerStart() { return hipSuccess; }
EMU_API hipError_t hipProfilerStop() { return hipSuccess; }
