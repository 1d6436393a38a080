// Handles of memory and events that processes pass each other. The emulator's devices belong to one
// process: a handle can be opened in the process that made it, and in no other.

#include <unistd.h>

#include <cstring>
#include <map>

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

constexpr uint64_t kMagicMemory = 0x6d656d656b636977, kMagicEvent = 0x746e65766b636977;

/// What is in the bytes of a handle.
struct Shared {
  uint64_t magic, process, address, serial, offset;
};
static_assert(sizeof(Shared) <= sizeof(hipIpcMemHandle_t));

template <class Handle>
void put(Handle* handle, const Shared& shared) {
  *handle = {};
  std::memcpy(handle, &shared, sizeof shared);
}

/// Throws if the bytes aren't a handle of this kind, or if another process has made it.
template <class Handle>
Shared take(const Handle& handle, uint64_t magic) {
  Shared shared;
  std::memcpy(&shared, &handle, sizeof shared);
  require(shared.magic == magic);
  if (shared.process != static_cast<uint64_t>(getpid())) {
    throw Error{hipErrorNotSupported, "processes can't share memory or events"};
  }
  return shared;
}

/// How often the memory at each address has been opened and not been closed.
struct Opened {
  std::mutex mutex;
  std::map<uintptr_t, size_t> counts;
};

Opened& opened() {
  static auto* all = new Opened;
  return *all;
}

/// Numbers the events that have been shared, since the address of a destroyed one may be reused.
struct SharedEvents {
  std::mutex mutex;
  uint64_t made = 0;
  std::map<uint64_t, std::weak_ptr<Event>> by_number;
};

SharedEvents& shared_events() {
  static auto* all = new SharedEvents;
  return *all;
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* handle, void* pointer) {
  EMU_CALL({
    require(handle != nullptr && pointer != nullptr);
    const std::optional<Allocation> a = memory().find(address(pointer));
    require(a && a->kind == MemoryKind::device && !a->mapped);
    const auto process = static_cast<uint64_t>(getpid());
    put(handle, Shared{kMagicMemory, process, a->base, a->serial, address(pointer) - a->base});
  });
}

EMU_API hipError_t hipIpcOpenMemHandle(void** pointer, hipIpcMemHandle_t handle, unsigned flags) {
  EMU_CALL({
    require(pointer != nullptr && flags <= hipIpcMemLazyEnablePeerAccess);
    const Shared shared = take(handle, kMagicMemory);
    const std::optional<Allocation> a = memory().find(shared.address);
    const bool there = a && a->serial == shared.serial && shared.offset < a->bytes;
    if (!there) throw Error{hipErrorInvalidDevicePointer, "the handle's memory has been freed"};
    std::lock_guard lock(opened().mutex);
    ++opened().counts[shared.address + shared.offset];
    *pointer = reinterpret_cast<void*>(shared.address + shared.offset);
  });
}

EMU_API hipError_t hipIpcCloseMemHandle(void* pointer) {
  EMU_CALL({
    require(pointer != nullptr);
    std::lock_guard lock(opened().mutex);
    const auto at = opened().counts.find(address(pointer));
    require(at != opened().counts.end());
    if (--at->second == 0) opened().counts.erase(at);
  });
}

EMU_API hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t* handle, hipEvent_t event_handle) {
  EMU_CALL({
    require(handle != nullptr && event_handle != nullptr);
    const EventPtr event = find_event(event_handle);
    require((event->flags & hipEventInterprocess) != 0, hipErrorInvalidConfiguration);
    SharedEvents& all = shared_events();
    std::lock_guard lock(all.mutex);
    std::erase_if(all.by_number, [](const auto& one) { return one.second.expired(); });
    all.by_number[++all.made] = event;
    put(handle, Shared{kMagicEvent, static_cast<uint64_t>(getpid()), 0, all.made, 0});
  });
}

EMU_API hipError_t hipIpcOpenEventHandle(hipEvent_t* event, hipIpcEventHandle_t handle) {
  EMU_CALL({
    require(event != nullptr);
    const Shared shared = take(handle, kMagicEvent);
    SharedEvents& all = shared_events();
    std::lock_guard lock(all.mutex);
    const auto at = all.by_number.find(shared.serial);
    EventPtr original = at == all.by_number.end() ? nullptr : at->second.lock();
    require(original != nullptr);
    auto opened = std::make_shared<Event>(original->flags, original->device);
    opened->original = std::move(original);
    *event = runtime().events.add<hipEvent_t>(std::move(opened));
  });
}

EMU_API hipError_t hipMemGetHandleForAddressRange(void* handle, hipDeviceptr_t pointer,
                                                  size_t bytes, hipMemRangeHandleType type,
                                                  unsigned long long flags) {
  EMU_CALL({
    require(handle != nullptr && pointer != nullptr && bytes != 0 && flags == 0);
    require(type == hipMemRangeHandleTypeDmaBufFd);
    throw Error{hipErrorNotSupported, "the emulator has no DMA buffers"};
  });
}

// No pool can be created whose memory is to be shared:
// hipDeviceAttributeMemoryPoolSupportedHandleTypes is 0.

EMU_API hipError_t hipMemPoolExportToShareableHandle(void*, hipMemPool_t,
                                                     hipMemAllocationHandleType, unsigned) {
  EMU_CALL({ throw Error{hipErrorInvalidValue, "the pool isn't one that can be shared"}; });
}

EMU_API hipError_t hipMemPoolImportFromShareableHandle(hipMemPool_t* pool, void*,
                                                       hipMemAllocationHandleType, unsigned) {
  EMU_CALL({
    require(pool != nullptr);
    throw Error{hipErrorNotSupported, "processes can't share pools"};
  });
}

EMU_API hipError_t hipMemPoolExportPointer(hipMemPoolPtrExportData*, void*) {
  EMU_CALL({ throw Error{hipErrorInvalidValue, "the pool isn't one that can be shared"}; });
}

EMU_API hipError_t hipMemPoolImportPointer(void** pointer, hipMemPool_t, hipMemPoolPtrExportData*) {
  EMU_CALL({
    require(pointer != nullptr);
    throw Error{hipErrorInvalidValue, "no process has exported such a pointer"};
  });
}
