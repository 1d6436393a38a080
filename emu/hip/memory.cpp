// Allocation of device, pinned, managed and registered memory, and pointer attributes.

#include <algorithm>

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

void* allocate(Device& device, size_t bytes, MemoryKind kind, unsigned flags) {
  Allocation wanted;
  wanted.bytes = bytes;
  wanted.kind = kind;
  wanted.device = device.ordinal;
  wanted.flags = flags;
  const uintptr_t at = memory().allocate(wanted);
  if (at == 0) {
    const Memory::Fill fill = memory().fill_of(wanted);
    throw Error{hipErrorOutOfMemory, std::to_string(bytes) + " bytes are asked for, " +
                                         std::to_string(fill.used) + " of " +
                                         std::to_string(fill.total) + " are taken" +
                                         (kind == MemoryKind::host ? " of pinned memory" : "")};
  }
  return reinterpret_cast<void*>(at);
}

void malloc_into(void** pointer, size_t bytes, MemoryKind kind, unsigned flags) {
  require(pointer != nullptr);
  *pointer = nullptr;
  refuse_unsafe_in_capture();
  if (bytes != 0) *pointer = allocate(current_device(), bytes, kind, flags);
}

/// Pinned memory is associated with the calling thread's device.
void host_malloc(void** pointer, size_t bytes, unsigned flags) {
  const unsigned known = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined |
                         hipHostMallocNumaUser | hipHostMallocCoherent | hipHostMallocNonCoherent;
  require(pointer != nullptr && (flags & ~known) == 0);
  require((flags & hipHostMallocCoherent) == 0 || (flags & hipHostMallocNonCoherent) == 0);
  malloc_into(pointer, bytes, MemoryKind::host, flags);
  // The emulator can't observe the host's later writes, so all of the memory counts as written.
  if (*pointer != nullptr) memory().shadow().written(address(*pointer), bytes);
}

bool is_host(MemoryKind kind) { return kind == MemoryKind::host || kind == MemoryKind::registered; }

void free_block(void* pointer) {
  refuse_unsafe_in_capture();
  if (pointer == nullptr) return;
  const std::optional<Allocation> a = memory().find(address(pointer));
  if (!a || a->base != address(pointer) || a->kind == MemoryKind::internal ||
      a->kind == MemoryKind::registered) {
    throw Error{hipErrorInvalidValue,
                "no allocation starts there: " + memory().describe(address(pointer))};
  }
  if (a->mapped) throw Error{hipErrorInvalidValue, "hipMemUnmap ends mappings, not hipFree"};
  // As in the real runtime, freeing waits for the work that still uses the memory.
  for (const auto& d : runtime().devices) {
    if (a->kind == MemoryKind::host || d->ordinal == a->device) d->wait();
  }
  memory().free(a->base);
}

/// This exceeds every device's memory. Sums and products of sizes up to it stay in range.
constexpr size_t kMost = size_t{1} << 46;

/// Allocates rows of `width` bytes, each aligned for kernels. Returns the pitch.
size_t malloc_rows(void** pointer, size_t width, size_t height, size_t depth) {
  require(pointer != nullptr);
  *pointer = nullptr;
  const bool none = width == 0 || height == 0 || depth == 0;
  const bool possible =
      none || (width <= kMost && height <= kMost / width && depth <= kMost / (width * height));
  require(possible, hipErrorOutOfMemory);
  const size_t pitch = (std::min(width, kMost) + 255) / 256 * 256;
  malloc_into(pointer, none ? 0 : pitch * height * depth, MemoryKind::device, 0);
  return pitch;
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipMalloc(void** pointer, size_t bytes) {
  EMU_CALL({ malloc_into(pointer, bytes, MemoryKind::device, 0); });
}

EMU_API hipError_t hipExtMallocWithFlags(void** pointer, size_t bytes, unsigned flags) {
  EMU_CALL({
    require(flags <= hipDeviceMallocUncached);
    require(flags != hipMallocSignalMemory || bytes == 8);
    malloc_into(pointer, bytes, MemoryKind::device, flags);
  });
}

EMU_API hipError_t hipMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  EMU_CALL({
    require(flags == hipMemAttachGlobal || flags == hipMemAttachHost);
    require(bytes != 0);
    malloc_into(pointer, bytes, MemoryKind::managed, flags);
    memory().shadow().written(address(*pointer), bytes);
  });
}

EMU_API hipError_t hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  EMU_CALL({
    require(pitch != nullptr);
    *pitch = malloc_rows(pointer, width, height, 1);
  });
}

EMU_API hipError_t hipMemAllocPitch(hipDeviceptr_t* pointer, size_t* pitch, size_t width,
                                    size_t height, unsigned element_bytes) {
  EMU_CALL({
    require(pitch != nullptr && width != 0 && height != 0);
    require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
    *pitch = malloc_rows(pointer, width, height, 1);
  });
}

EMU_API hipError_t hipMalloc3D(hipPitchedPtr* pitched, hipExtent extent) {
  EMU_CALL({
    require(pitched != nullptr);
    void* pointer = nullptr;
    const size_t pitch = malloc_rows(&pointer, extent.width, extent.height, extent.depth);
    *pitched = {pointer, pitch, extent.width, extent.height};
  });
}

EMU_API hipError_t hipFree(void* pointer) {
  EMU_CALL({ free_block(pointer); });
}

EMU_API hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned flags) {
  EMU_CALL({ host_malloc(pointer, bytes, flags); });
}

EMU_API hipError_t hipHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  EMU_CALL({ host_malloc(pointer, bytes, flags); });
}

EMU_API hipError_t hipMallocHost(void** pointer, size_t bytes) {
  EMU_CALL({ host_malloc(pointer, bytes, 0); });
}

EMU_API hipError_t hipMemAllocHost(void** pointer, size_t bytes) {
  EMU_CALL({ host_malloc(pointer, bytes, 0); });
}

EMU_API hipError_t hipHostFree(void* pointer) {
  EMU_CALL({ free_block(pointer); });
}

EMU_API hipError_t hipFreeHost(void* pointer) {
  EMU_CALL({ free_block(pointer); });
}

EMU_API hipError_t hipHostRegister(void* pointer, size_t bytes, unsigned flags) {
  EMU_CALL({
    const unsigned known = hipHostRegisterPortable | hipHostRegisterMapped |
                           hipHostRegisterIoMemory | hipHostRegisterReadOnly;
    require(pointer != nullptr && bytes != 0 && (flags & ~known) == 0);
    require(bytes <= ~uintptr_t{0} - address(pointer));
    require(!memory().in_arena(address(pointer)), hipErrorHostMemoryAlreadyRegistered);
    require(memory().add_registered(address(pointer), bytes, flags, thread().device),
            hipErrorHostMemoryAlreadyRegistered);
  });
}

EMU_API hipError_t hipHostUnregister(void* pointer) {
  EMU_CALL({
    require(pointer != nullptr);
    refuse_unsafe_in_capture();
    for (const auto& d : runtime().devices) {
      for (const StreamPtr& stream : d->streams()) stream->wait();
    }
    require(memory().remove_registered(address(pointer)), hipErrorHostMemoryNotRegistered);
  });
}

EMU_API hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned flags) {
  EMU_CALL({
    require(device != nullptr && host != nullptr && flags == 0);
    const std::optional<Allocation> a = memory().find(address(host));
    require(a && (is_host(a->kind) || a->kind == MemoryKind::managed));
    *device = host;
  });
}

EMU_API hipError_t hipHostGetFlags(unsigned* flags, void* host) {
  EMU_CALL({
    require(flags != nullptr && host != nullptr);
    const std::optional<Allocation> a = memory().find(address(host));
    require(a && is_host(a->kind));
    *flags = a->flags;
  });
}

EMU_API hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  EMU_CALL({
    require(free != nullptr || total != nullptr);
    const Device& d = current_device();
    if (free != nullptr) *free = d.bytes - memory().used(d.ordinal);
    if (total != nullptr) *total = d.bytes;
  });
}

EMU_API hipError_t hipMemPtrGetInfo(void* pointer, size_t* bytes) {
  EMU_CALL({
    require(bytes != nullptr);
    *bytes = 0;
    if (pointer == nullptr) return;
    const std::optional<Allocation> a = memory().find(address(pointer));
    require(a.has_value());
    *bytes = a->bytes;
  });
}

EMU_API hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* bytes,
                                         hipDeviceptr_t pointer) {
  EMU_CALL({
    const std::optional<Allocation> a = memory().find(address(pointer));
    require(a.has_value(), hipErrorNotFound);
    if (base != nullptr) *base = reinterpret_cast<void*>(a->base);
    if (bytes != nullptr) *bytes = a->bytes;
  });
}

EMU_API hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  EMU_CALL({
    require(attributes != nullptr && (pointer != nullptr || of_hip_7()));
    const std::optional<Allocation> a = memory().find(address(pointer));
    *attributes = {};
    if (!a) {  // any memory of the process may be asked for
      attributes->type = hipMemoryTypeUnregistered;
      attributes->device = -2;
      return;
    }
    void* at = const_cast<void*>(pointer);
    attributes->type = is_host(a->kind)                 ? hipMemoryTypeHost
                       : a->kind == MemoryKind::managed ? hipMemoryTypeManaged
                                                        : hipMemoryTypeDevice;
    attributes->device = a->device;
    attributes->devicePointer = at;
    attributes->hostPointer = is_host(a->kind) || a->kind == MemoryKind::managed ? at : nullptr;
    attributes->isManaged = a->kind == MemoryKind::managed;
    attributes->allocationFlags = a->flags;
  });
}

namespace {

/// Writes one attribute to the caller's memory. For unknown pointers, it writes zero to attributes
/// that allow it.
bool put_attribute(void* data, hipPointer_attribute attribute, hipDeviceptr_t pointer) {
  const std::optional<Allocation> a = memory().find(address(pointer));
  const auto put = [&](auto value) { *static_cast<decltype(value)*>(data) = value; };
  const bool host = a && is_host(a->kind);
  switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_CONTEXT:
      put(static_cast<void*>(nullptr));
      break;
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put(!a ? hipMemoryTypeUnregistered : host ? hipMemoryTypeHost : hipMemoryTypeDevice);
      break;
    case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
      put(a ? pointer : nullptr);
      break;
    case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
      put(host ? pointer : nullptr);
      break;
    case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
      put(static_cast<unsigned>(a ? a->serial : 0));
      break;
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
      put(a && a->kind == MemoryKind::managed);
      break;
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put(a ? a->device : -2);
      break;
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      put(reinterpret_cast<void*>(a ? a->base : 0));
      break;
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
      put(static_cast<unsigned>(a ? a->bytes : 0));
      break;
    case HIP_POINTER_ATTRIBUTE_MAPPED:
      put(a.has_value());
      break;
    case HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put(const_cast<void*>(a ? a->pool : nullptr));
      break;
    default:
      throw Error{hipErrorNotSupported};
  }
  return a.has_value();
}

}  // namespace

EMU_API hipError_t hipPointerGetAttribute(void* data, hipPointer_attribute attribute,
                                          hipDeviceptr_t pointer) {
  EMU_CALL({
    require(data != nullptr && pointer != nullptr);
    require(put_attribute(data, attribute, pointer));
  });
}

// The attribute asks that synchronous copies of the memory have ended when they return. They have,
// except within a device, and there the null stream orders them.
EMU_API hipError_t hipPointerSetAttribute(const void* value, hipPointer_attribute attribute,
                                          hipDeviceptr_t pointer) {
  EMU_CALL({
    require(value != nullptr && pointer != nullptr);
    require(attribute == HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    require(memory().find(address(pointer)).has_value(), hipErrorInvalidDevicePointer);
  });
}

EMU_API hipError_t hipDrvPointerGetAttributes(unsigned count, hipPointer_attribute* attributes,
                                              void** data, hipDeviceptr_t pointer) {
  EMU_CALL({
    require(count != 0 && attributes != nullptr && data != nullptr && pointer != nullptr);
    for (unsigned i = 0; i < count; ++i) {
      require(data[i] != nullptr);
      put_attribute(data[i], attributes[i], pointer);
    }
  });
}
