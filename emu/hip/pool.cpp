// Memory in a stream's order, and the pools that it comes from.

#include <algorithm>
#include <map>

#include "emu/hip/graph_handles.h"

namespace emu::hip {
namespace {

struct Level {
  uint64_t now = 0, high = 0;
  void add(uint64_t bytes) {
    now += bytes;
    high = std::max(high, now);
  }
};

/// A pool takes from its device and counts; it keeps nothing back for itself, whatever threshold it
/// is given. Memory that is freed in a stream's order isn't used any more, but reserved until the
/// stream has come there.
struct Pool {
  explicit Pool(int device) : device(device) {}
  const int device;
  std::mutex mutex;
  uint64_t threshold = 0;
  Level used, reserved;
  int reuse[3] = {1, 1, 1};
  std::map<int, hipMemAccessFlags> access;
};

using PoolPtr = std::shared_ptr<Pool>;

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

hipMemPool_t current_pool(int ordinal) {
  Defaults& all = defaults();
  std::lock_guard lock(all.mutex);
  return all.current[static_cast<size_t>(ordinal)];
}

PoolPtr find_pool(hipMemPool_t handle) {
  PoolPtr pool = pools().find(handle);
  require(pool != nullptr);
  return pool;
}

/// Blocks of pools, which keep those that are destroyed before them, and what else is to be freed
/// in a stream's order.
struct Block {
  uint64_t serial = 0;  // of the allocation: the address may be another's by now
  uint64_t bytes = 0;
  PoolPtr pool;          // null: of none
  bool leaving = false;  // freed, though the stream may not have come there
};

struct Blocks {
  std::mutex mutex;
  std::map<uintptr_t, Block> by_address;
};

Blocks& blocks() {
  static auto* all = new Blocks;
  return *all;
}

/// Counts a block as freed: by hipFree, where it isn't leaving yet.
void gone(const Block& block) {
  if (block.pool == nullptr) return;
  std::lock_guard lock(block.pool->mutex);
  block.pool->reserved.now -= block.bytes;
  if (!block.leaving) block.pool->used.now -= block.bytes;
}

/// Forgets what was freed by hipFree.
void settle(const PoolPtr& pool) {
  std::lock_guard lock(blocks().mutex);
  std::erase_if(blocks().by_address, [&](const auto& entry) {
    const auto& [base, block] = entry;
    if (block.pool != pool || block.leaving) return false;
    const std::optional<Allocation> a = memory().find(base);
    if (a && a->serial == block.serial) return false;
    gone(block);
    return true;
  });
}

/// The memory of a pool's block is its device's again.
void give_back(void* data) {
  const auto base = reinterpret_cast<uintptr_t>(data);
  std::lock_guard lock(blocks().mutex);
  const auto at = blocks().by_address.find(base);
  memory().free(base);
  if (at == blocks().by_address.end()) return;
  gone(at->second);
  blocks().by_address.erase(at);
}

/// In a capture the memory is the graph's own.
void* capture_malloc(Stream& stream, size_t bytes, int device) {
  const std::shared_ptr<void> block = graph_block(bytes, device);
  hipMemAllocNodeParams asked{};
  asked.poolProps.allocType = hipMemAllocationTypePinned;
  asked.poolProps.location = {hipMemLocationTypeDevice, device};
  asked.bytesize = bytes;
  asked.dptr = block.get();
  submit(stream, AllocOp{address(block.get()), asked});
  stream.capture->graph->memory.push_back(block);
  return block.get();
}

void malloc_async(void** pointer, size_t bytes, hipMemPool_t handle, hipStream_t stream_handle) {
  require(pointer != nullptr);
  *pointer = nullptr;
  const StreamPtr stream = find_stream(stream_handle);
  const PoolPtr pool = find_pool(handle);
  if (bytes == 0) return;
  {
    std::lock_guard lock(graph_mutex());
    if (stream->capture != nullptr) {
      *pointer = capture_malloc(*stream, bytes, pool->device);
      return;
    }
  }
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
  std::lock_guard lock(blocks().mutex);
  Block& block = blocks().by_address[at];
  gone(block);  // hipFree has had what was there before
  block = {memory().find(at)->serial, bytes, pool, false};
  std::lock_guard pool_lock(pool->mutex);
  pool->used.add(bytes);
  pool->reserved.add(bytes);
  *pointer = reinterpret_cast<void*>(at);
}

void free_async(void* pointer, hipStream_t handle) {
  require(pointer != nullptr);
  const StreamPtr stream = find_stream(handle);
  const std::optional<Allocation> a = memory().find(address(pointer));
  require(a && a->base == address(pointer) && a->kind == MemoryKind::device);
  std::lock_guard lock(graph_mutex());
  if (is_of_graph(*a)) {  // that has it until its end: only the order counts
    submit(*stream, FreeOp{a->base, true});
    return;
  }
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    throw Error{hipErrorInvalidValue, "a graph can free no memory but of graphs"};
  }
  std::lock_guard blocks_lock(blocks().mutex);
  Block& block = blocks().by_address[a->base];
  if (block.serial != a->serial) {  // not of a pool
    gone(block);
    block = {a->serial, a->bytes, nullptr, false};
  }
  if (block.leaving) throw Error{hipErrorInvalidValue, "it is freed already: " + describe(*a)};
  submit(*stream, HostOp{give_back, pointer});
  block.leaving = true;
  if (block.pool == nullptr) return;
  std::lock_guard pool_lock(block.pool->mutex);
  block.pool->used.now -= block.bytes;
}

/// The device that a pool's properties or its rights of access name.
int ordinal_of(const hipMemLocation& location) {
  require(location.type == hipMemLocationTypeDevice && location.id >= 0);
  require(static_cast<size_t>(location.id) < runtime().devices.size());
  return location.id;
}

/// A pool's attribute by its place; null for those of the other type, and for what is none.
int* switch_of(Pool& pool, hipMemPoolAttr attribute) {
  const bool known = attribute >= hipMemPoolReuseFollowEventDependencies &&
                     attribute <= hipMemPoolReuseAllowInternalDependencies;
  return known ? &pool.reuse[attribute - hipMemPoolReuseFollowEventDependencies] : nullptr;
}

const uint64_t* count_of(const Pool& pool, hipMemPoolAttr attribute) {
  switch (attribute) {
    case hipMemPoolAttrReleaseThreshold:
      return &pool.threshold;
    case hipMemPoolAttrReservedMemCurrent:
      return &pool.reserved.now;
    case hipMemPoolAttrReservedMemHigh:
      return &pool.reserved.high;
    case hipMemPoolAttrUsedMemCurrent:
      return &pool.used.now;
    case hipMemPoolAttrUsedMemHigh:
      return &pool.used.high;
    default:
      return nullptr;
  }
}

void set_count(Pool& pool, hipMemPoolAttr attribute, uint64_t value) {
  if (attribute == hipMemPoolAttrReleaseThreshold) {
    pool.threshold = value;
    return;
  }
  require(attribute == hipMemPoolAttrReservedMemHigh || attribute == hipMemPoolAttrUsedMemHigh);
  require(value == 0);  // begins anew
  Level& level = attribute == hipMemPoolAttrUsedMemHigh ? pool.used : pool.reserved;
  level.high = level.now;
}

/// Does something with a pool's attributes.
template <class Use>
void with_attributes(hipMemPool_t handle, const void* value, const Use& use) {
  require(value != nullptr);
  const PoolPtr pool = find_pool(handle);
  settle(pool);
  std::lock_guard lock(pool->mutex);
  use(*pool);
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream) {
  EMU_CALL({
    malloc_async(pointer, bytes, current_pool(find_stream(stream)->device->ordinal), stream);
  });
}

EMU_API hipError_t hipMallocFromPoolAsync(void** pointer, size_t bytes, hipMemPool_t pool,
                                          hipStream_t stream) {
  EMU_CALL({ malloc_async(pointer, bytes, pool, stream); });
}

EMU_API hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  EMU_CALL({ free_async(pointer, stream); });
}

EMU_API hipError_t hipMemPoolCreate(hipMemPool_t* pool, const hipMemPoolProps* props) {
  EMU_CALL({
    require(pool != nullptr && props != nullptr);
    require(props->allocType == hipMemAllocationTypePinned);
    const int ordinal = ordinal_of(props->location);
    require(props->handleTypes == hipMemHandleTypeNone, hipErrorNotSupported);
    *pool = pools().add<hipMemPool_t>(std::make_shared<Pool>(ordinal));
  });
}

EMU_API hipError_t hipMemPoolDestroy(hipMemPool_t handle) {
  EMU_CALL({
    Defaults& all = defaults();
    const PoolPtr pool = find_pool(handle);
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
    *pool = current_pool(ordinal);
  });
}

EMU_API hipError_t hipDeviceSetMemPool(int ordinal, hipMemPool_t handle) {
  EMU_CALL({
    hip::device(ordinal);
    const PoolPtr pool = find_pool(handle);
    require(pool->device == ordinal, hipErrorInvalidDevice);
    Defaults& all = defaults();
    std::lock_guard lock(all.mutex);
    all.current[static_cast<size_t>(ordinal)] = handle;
  });
}

// There is never anything that could be released.
EMU_API hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t) {
  EMU_CALL({ find_pool(pool); });
}

EMU_API hipError_t hipMemPoolSetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute,
                                          void* value) {
  EMU_CALL({
    with_attributes(handle, value, [&](Pool& pool) {
      int* found = switch_of(pool, attribute);
      if (found == nullptr) return set_count(pool, attribute, *static_cast<uint64_t*>(value));
      *found = *static_cast<int*>(value) != 0 ? 1 : 0;
    });
  });
}

EMU_API hipError_t hipMemPoolGetAttribute(hipMemPool_t handle, hipMemPoolAttr attribute,
                                          void* value) {
  EMU_CALL({
    with_attributes(handle, value, [&](Pool& pool) {
      if (const int* found = switch_of(pool, attribute)) {
        *static_cast<int*>(value) = *found;
        return;
      }
      const uint64_t* found = count_of(pool, attribute);
      require(found != nullptr);
      *static_cast<uint64_t*>(value) = *found;
    });
  });
}

EMU_API hipError_t hipMemPoolSetAccess(hipMemPool_t handle, const hipMemAccessDesc* list,
                                       size_t count) {
  EMU_CALL({
    require(list != nullptr || count == 0);
    const PoolPtr pool = find_pool(handle);
    std::map<int, hipMemAccessFlags> wanted;
    for (size_t i = 0; i < count; ++i) {
      const int ordinal = ordinal_of(list[i].location);
      const hipMemAccessFlags flags = list[i].flags;
      require(flags == hipMemAccessFlagsProtNone || flags == hipMemAccessFlagsProtRead ||
              flags == hipMemAccessFlagsProtReadWrite);
      require(ordinal != pool->device || flags == hipMemAccessFlagsProtReadWrite);
      wanted[ordinal] = flags;
    }
    std::lock_guard lock(pool->mutex);
    for (const auto& [ordinal, flags] : wanted) pool->access[ordinal] = flags;
  });
}

EMU_API hipError_t hipMemPoolGetAccess(hipMemAccessFlags* flags, hipMemPool_t handle,
                                       hipMemLocation* location) {
  EMU_CALL({
    require(flags != nullptr && location != nullptr);
    const int ordinal = ordinal_of(*location);
    const PoolPtr pool = find_pool(handle);
    std::lock_guard lock(pool->mutex);
    const auto at = pool->access.find(ordinal);
    *flags = at != pool->access.end()  ? at->second
             : ordinal == pool->device ? hipMemAccessFlagsProtReadWrite
                                       : hipMemAccessFlagsProtNone;
  });
}
