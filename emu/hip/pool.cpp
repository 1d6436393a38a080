// Stream-ordered allocation and memory pools.

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

/// A pool allocates from its device and counts. It doesn't cache memory, whatever its release
/// threshold. Memory that is freed in stream order is no longer used, but it stays reserved until
/// the stream reaches the free.
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
  std::vector<hipMemPool_t> standard, current;  // indexed by device
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

/// Blocks of pools, which keep destroyed pools alive, and other memory that is to be freed in
/// stream order.
struct Block {
  uint64_t serial = 0;  // serial of the allocation: its address may be reused
  uint64_t bytes = 0;
  PoolPtr pool;          // null: not from a pool
  bool leaving = false;  // freed, although the stream may not have reached the free
};

struct Blocks {
  std::mutex mutex;
  std::map<uintptr_t, Block> by_address;
};

Blocks& blocks() {
  static auto* all = new Blocks;
  return *all;
}

/// Counts a block as freed. It was freed by hipFree if it isn't leaving.
void gone(const Block& block) {
  if (block.pool == nullptr) return;
  std::lock_guard lock(block.pool->mutex);
  block.pool->reserved.now -= block.bytes;
  if (!block.leaving) block.pool->used.now -= block.bytes;
}

/// Removes the entries of blocks that hipFree has freed.
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

/// Returns the memory of a pool's block to its device.
void give_back(void* data) {
  const auto base = reinterpret_cast<uintptr_t>(data);
  std::lock_guard lock(blocks().mutex);
  const auto at = blocks().by_address.find(base);
  memory().free(base);
  if (at == blocks().by_address.end()) return;
  gone(at->second);
  blocks().by_address.erase(at);
}

/// In a capture, the graph owns the memory.
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
  if (at == 0) {  // memory that was freed in stream order may not be released yet
    stream->wait();
    at = memory().allocate(wanted);
  }
  if (at == 0) throw Error{hipErrorOutOfMemory, std::to_string(bytes) + " bytes are asked for"};
  std::lock_guard lock(blocks().mutex);
  Block& block = blocks().by_address[at];
  gone(block);  // hipFree has freed the earlier block at this address
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
  require(a && a->base == address(pointer) && a->kind == MemoryKind::device && !a->mapped);
  std::lock_guard lock(graph_mutex());
  if (is_of_graph(*a)) {  // the graph owns the memory until its end: the node only orders
    submit(*stream, FreeOp{a->base, true});
    return;
  }
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    throw Error{hipErrorInvalidValue, "a graph can free no memory but of graphs"};
  }
  std::lock_guard blocks_lock(blocks().mutex);
  Block& block = blocks().by_address[a->base];
  if (block.serial != a->serial) {  // the block isn't from a pool
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

/// Returns the device that a pool's properties or access rights name.
int ordinal_of(const hipMemLocation& location) {
  require(location.type == hipMemLocationTypeDevice && location.id >= 0);
  require(static_cast<size_t>(location.id) < runtime().devices.size());
  return location.id;
}

/// Returns a pointer to a pool's attribute of type int, or null for other attributes.
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
  require(value == 0);  // the counter restarts
  Level& level = attribute == hipMemPoolAttrUsedMemHigh ? pool.used : pool.reserved;
  level.high = level.now;
}

/// Calls `use` with the pool and its attributes.
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

// A pool doesn't cache memory, so there is nothing to release.
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
