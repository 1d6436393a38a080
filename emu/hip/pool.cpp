// Memory in a stream's order, and the pools that it comes from.

#include <algorithm>
#include <map>

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

/// A pool takes from its device and counts; it keeps nothing back for itself.
struct Pool {
  explicit Pool(int device) : device(device) {}
  const int device;
  std::mutex mutex;
  uint64_t threshold = 0, used = 0, high = 0;
  int reuse[3] = {1, 1, 1};
  std::map<int, hipMemAccessFlags> access;
};

Handles<Pool>& pools() {
  static auto* all = new Handles<Pool>;
  return *all;
}

struct Defaults {
  std::mutex mutex;
  std::vector<hipMemPool_t> standard, current;  // by device
};

Defaults& defaults() {
  static auto* all = new Defaults;
  std::lock_guard lock(all->mutex);
  while (all->standard.size() < runtime().devices.size()) {
    const int ordinal = static_cast<int>(all->standard.size());
    all->standard.push_back(pools().add<hipMemPool_t>(std::make_shared<Pool>(ordinal)));
    all->current.push_back(all->standard.back());
  }
  return *all;
}

std::shared_ptr<Pool> find_pool(hipMemPool_t handle) {
  std::shared_ptr<Pool> pool = pools().find(handle);
  require(pool != nullptr);
  return pool;
}

void malloc_async(void** pointer, size_t bytes, hipMemPool_t handle, hipStream_t stream_handle) {
  require(pointer != nullptr);
  *pointer = nullptr;
  const StreamPtr stream = find_stream(stream_handle);
  const std::shared_ptr<Pool> pool = find_pool(handle);
  if (bytes == 0) return;
  Allocation wanted;
  wanted.bytes = bytes;
  wanted.device = pool->device;
  wanted.pool = pool.get();
  uintptr_t at = memory().allocate(wanted);
  if (at == 0) {  // what was freed in the stream's order may not be free yet
    stream->wait();
    at = memory().allocate(wanted);
  }
  if (at == 0) throw Error{hipErrorOutOfMemory, std::to_string(bytes) + " bytes are asked for"};
  std::lock_guard lock(pool->mutex);
  pool->used += bytes;
  pool->high = std::max(pool->high, pool->used);
  *pointer = reinterpret_cast<void*>(at);
}

uint64_t* counter(Pool& pool, hipMemPoolAttr attribute) {
  switch (attribute) {
    case hipMemPoolAttrReleaseThreshold:
      return &pool.threshold;
    case hipMemPoolAttrReservedMemCurrent:
    case hipMemPoolAttrUsedMemCurrent:
      return &pool.used;
    case hipMemPoolAttrReservedMemHigh:
    case hipMemPoolAttrUsedMemHigh:
      return &pool.high;
    default:
      return nullptr;
  }
}

bool is_switch(hipMemPoolAttr attribute) {
  return attribute >= hipMemPoolReuseFollowEventDependencies &&
         attribute <= hipMemPoolReuseAllowInternalDependencies;
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream) {
  EMU_CALL({
    Defaults& all = defaults();
    const auto ordinal = static_cast<size_t>(find_stream(stream)->device->ordinal);
    malloc_async(pointer, bytes, all.current[ordinal], stream);
  });
}

EMU_API hipError_t hipMallocFromPoolAsync(void** pointer, size_t bytes, hipMemPool_t pool,
                                          hipStream_t stream) {
  EMU_CALL({ malloc_async(pointer, bytes, pool, stream); });
}

EMU_API hipError_t hipFreeAsync(void* pointer, hipStream_t handle) {
  EMU_CALL({
    require(pointer != nullptr);
    const StreamPtr stream = find_stream(handle);
    const std::optional<Allocation> a = memory().find(address(pointer));
    require(a && a->base == address(pointer) && a->kind == MemoryKind::device);
    if (const std::shared_ptr<Pool> pool = pools().find(a->pool)) {
      std::lock_guard lock(pool->mutex);
      pool->used -= std::min<uint64_t>(pool->used, a->bytes);
    }
    submit(*stream, FreeOp{a->base});
  });
}

EMU_API hipError_t hipMemPoolCreate(hipMemPool_t* pool, const hipMemPoolProps* props) {
  EMU_CALL({
    require(pool != nullptr && props != nullptr);
    require(props->allocType == hipMemAllocationTypePinned);
    require(props->location.type == hipMemLocationTypeDevice);
    require(props->handleTypes == hipMemHandleTypeNone, hipErrorNotSupported);
    const int ordinal = hip::device(props->location.id).ordinal;
    *pool = pools().add<hipMemPool_t>(std::make_shared<Pool>(ordinal));
  });
}

EMU_API hipError_t hipMemPoolDestroy(hipMemPool_t handle) {
  EMU_CALL({
    Defaults& all = defaults();
    const std::shared_ptr<Pool> pool = find_pool(handle);
    std::lock_guard lock(all.mutex);
    const auto ordinal = static_cast<size_t>(pool->device);
    require(all.standard[ordinal] != handle);
    if (all.current[ordinal] == handle) all.current[ordinal] = all.standard[ordinal];
    pools().remove(handle);
  });
}

EMU_API hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int ordinal) {
  EMU_CALL({
    require(pool != nullptr);
    hip::device(ordinal);
    *pool = defaults().standard[static_cast<size_t>(ordinal)];
  });
}

EMU_API hipError_t hipDeviceGetMemPool(hipMemPool_t* pool, int ordinal) {
  EMU_CALL({
    require(pool != nullptr);
    hip::device(ordinal);
    *pool = defaults().current[static_cast<size_t>(ordinal)];
  });
}

EMU_API hipError_t hipDeviceSetMemPool(int ordinal, hipMemPool_t handle) {
  EMU_CALL({
    hip::device(ordinal);
    const std::shared_ptr<Pool> pool = find_pool(handle);
    require(pool->device == ordinal, hipErrorInvalidDevice);
    Defaults& all = defaults();
    std::lock_guard lock(all.mutex);
    all.current[static_cast<size_t>(ordinal)] = handle;
  });
}

EMU_API hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t) {
  EMU_CALL({ find_pool(pool); });
}

EMU_API hipError_t hipMemPoolSetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute,
                                          void* value) {
  EMU_CALL({
    require(value != nullptr);
    const std::shared_ptr<Pool> pool = find_pool(handle);
    std::lock_guard lock(pool->mutex);
    if (is_switch(attribute)) {
      pool->reuse[attribute - 1] = *static_cast<int*>(value);
    } else if (attribute == hipMemPoolAttrReleaseThreshold) {
      pool->threshold = *static_cast<uint64_t*>(value);
    } else {
      require(attribute == hipMemPoolAttrReservedMemHigh || attribute == hipMemPoolAttrUsedMemHigh);
      require(*static_cast<uint64_t*>(value) == 0);
      pool->high = pool->used;
    }
  });
}

EMU_API hipError_t hipMemPoolGetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute,
                                          void* value) {
  EMU_CALL({
    require(value != nullptr);
    const std::shared_ptr<Pool> pool = find_pool(handle);
    std::lock_guard lock(pool->mutex);
    if (is_switch(attribute)) {
      *static_cast<int*>(value) = pool->reuse[attribute - 1];
      return;
    }
    const uint64_t* found = counter(*pool, attribute);
    require(found != nullptr);
    *static_cast<uint64_t*>(value) = *found;
  });
}

EMU_API hipError_t hipMemPoolSetAccess(hipMemPool_t handle, const hipMemAccessDesc* list,
                                       size_t count) {
  EMU_CALL({
    require(list != nullptr || count == 0);
    const std::shared_ptr<Pool> pool = find_pool(handle);
    std::lock_guard lock(pool->mutex);
    for (size_t i = 0; i < count; ++i) {
      require(list[i].location.type == hipMemLocationTypeDevice);
      const int ordinal = hip::device(list[i].location.id).ordinal;
      require(ordinal != pool->device || list[i].flags == hipMemAccessFlagsProtReadWrite);
      pool->access[ordinal] = list[i].flags;
    }
  });
}

EMU_API hipError_t hipMemPoolGetAccess(hipMemAccessFlags* flags, hipMemPool_t handle,
                                       hipMemLocation* location) {
  EMU_CALL({
    require(flags != nullptr && location != nullptr);
    require(location->type == hipMemLocationTypeDevice);
    const int ordinal = hip::device(location->id).ordinal;
    const std::shared_ptr<Pool> pool = find_pool(handle);
    std::lock_guard lock(pool->mutex);
    const auto at = pool->access.find(ordinal);
    *flags = at != pool->access.end()  ? at->second
             : ordinal == pool->device ? hipMemAccessFlagsProtReadWrite
                                       : hipMemAccessFlagsProtNone;
  });
}
