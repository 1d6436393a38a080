// Stream-ordered allocation and memory pools.

#include <memory>
#include <utility>

#include "emu/tests/hip_stream_support.h"

namespace {

hipMemPoolProps props_of(int device = 0) {
  hipMemPoolProps props{};
  props.allocType = hipMemAllocationTypePinned;
  props.location = {hipMemLocationTypeDevice, device};
  return props;
}

struct Pool {
  Pool() {
    const hipMemPoolProps props = props_of();
    EXPECT_EQ(hipSuccess, hipMemPoolCreate(&handle, &props));
  }
  ~Pool() {
    if (handle != nullptr) EXPECT_EQ(hipSuccess, hipMemPoolDestroy(handle));
  }
  operator hipMemPool_t() const { return handle; }
  uint64_t get(hipMemPoolAttr attribute) const {
    uint64_t value = ~uint64_t{0};
    EXPECT_EQ(hipSuccess, hipMemPoolGetAttribute(handle, attribute, &value));
    return value;
  }
  uint64_t used() const { return get(hipMemPoolAttrUsedMemCurrent); }
  uint64_t reserved() const { return get(hipMemPoolAttrReservedMemCurrent); }
  hipMemPool_t handle = nullptr;
};

void* from_pool(hipMemPool_t pool, size_t bytes, hipStream_t stream) {
  void* pointer = nullptr;
  EXPECT_EQ(hipSuccess, hipMallocFromPoolAsync(&pointer, bytes, pool, stream));
  EXPECT_NE(nullptr, pointer);
  return pointer;
}

TEST(HipPool, CountsWhatIsUsedAndReserved) {
  const Pool pool;
  const Stream stream;
  EXPECT_EQ(0u, pool.used());
  EXPECT_EQ(0u, pool.reserved());
  void *first = from_pool(pool, 1000, stream), *second = from_pool(pool, 3000, stream);
  EXPECT_EQ(4000u, pool.used());
  EXPECT_GE(pool.reserved(), 4000u);
  Gate gate;
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  HIP_OK(hipFreeAsync(second, stream));
  EXPECT_EQ(1000u, pool.used());
  EXPECT_GE(pool.reserved(), 4000u) << "the stream hasn't come to where it is freed";
  gate.open = true;
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(1000u, pool.used());
  EXPECT_LT(pool.reserved(), 4000u);
  EXPECT_EQ(4000u, pool.get(hipMemPoolAttrUsedMemHigh));
  EXPECT_GE(pool.get(hipMemPoolAttrReservedMemHigh), 4000u);
  HIP_OK(hipFree(first));  // hipFree is counted, too
  EXPECT_EQ(0u, pool.used());
}

TEST(HipPool, HighMarksAreResetEachByItself) {
  const Pool pool;
  const Stream stream;
  HIP_OK(hipFreeAsync(from_pool(pool, 512, stream), stream));
  HIP_OK(hipStreamSynchronize(stream));
  uint64_t value = 0;
  HIP_OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &value));
  EXPECT_EQ(0u, pool.get(hipMemPoolAttrUsedMemHigh));
  EXPECT_GE(pool.get(hipMemPoolAttrReservedMemHigh), 512u);
  HIP_OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemHigh, &value));
  EXPECT_EQ(pool.reserved(), pool.get(hipMemPoolAttrReservedMemHigh));
  value = 1;  // only zero may be set
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &value));
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemHigh, &value));
  value = 0;  // current values can't be set
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &value));
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &value));
}

TEST(HipPool, KeepsItsSettings) {
  const Pool pool;
  EXPECT_EQ(0u, pool.get(hipMemPoolAttrReleaseThreshold));
  uint64_t threshold = uint64_t{5} << 32;
  HIP_OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
  EXPECT_EQ(threshold, pool.get(hipMemPoolAttrReleaseThreshold));
  for (const auto attribute :
       {hipMemPoolReuseFollowEventDependencies, hipMemPoolReuseAllowOpportunistic,
        hipMemPoolReuseAllowInternalDependencies}) {
    int value[2] = {-1, 77};  // the attribute is an int, not eight bytes
    HIP_OK(hipMemPoolGetAttribute(pool, attribute, value));
    EXPECT_EQ(1, value[0]);
    EXPECT_EQ(77, value[1]);
    value[0] = 0;
    HIP_OK(hipMemPoolSetAttribute(pool, attribute, value));
    value[0] = -1;
    HIP_OK(hipMemPoolGetAttribute(pool, attribute, value));
    EXPECT_EQ(0, value[0]);
  }
  uint64_t value = 0;
  for (const unsigned unknown : {0u, 9u, 1000u}) {
    const auto attribute = static_cast<hipMemPoolAttr>(unknown);
    HIP_REFUSES(hipErrorInvalidValue, hipMemPoolGetAttribute(pool, attribute, &value));
    HIP_REFUSES(hipErrorInvalidValue, hipMemPoolSetAttribute(pool, attribute, &value));
  }
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemHigh, nullptr));
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, nullptr));
}

/// Trimming a pool doesn't free memory that is in use.
TEST(HipPool, TrimmingSparesWhatIsUsed) {
  const Kernels kernels;
  const Pool pool;
  const Stream stream;
  uint64_t threshold = ~uint64_t{0};
  HIP_OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
  void* kept = from_pool(pool, 128, stream);
  HIP_OK(hipFreeAsync(from_pool(pool, 1 << 20, stream), stream));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, kept, 4));
  HIP_OK(hipStreamSynchronize(stream));
  HIP_OK(hipMemPoolTrimTo(pool, 0));
  EXPECT_GE(pool.reserved(), 128u);
  EXPECT_LT(pool.reserved(), uint64_t{1} << 20);
  int value = 0;
  HIP_OK(hipMemcpy(&value, kept, sizeof value, hipMemcpyDeviceToHost));
  EXPECT_EQ(4, value);
  HIP_OK(hipFreeAsync(kept, stream));
  HIP_OK(hipStreamSynchronize(stream));
}

TEST(HipPool, RefusesWhatCannotBeMade) {
  hipMemPool_t pool = nullptr;
  hipMemPoolProps props = props_of();
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolCreate(nullptr, &props));
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolCreate(&pool, nullptr));
  props.allocType = hipMemAllocationTypeInvalid;
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
  props = props_of();
  props.location.type = hipMemLocationTypeInvalid;
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
  for (const int nowhere : {-1, 1000}) {
    props = props_of(nowhere);
    HIP_REFUSES(hipErrorInvalidValue, hipMemPoolCreate(&pool, &props));
  }
  props = props_of();
  props.handleTypes = hipMemHandleTypePosixFileDescriptor;
  HIP_REFUSES(hipErrorNotSupported, hipMemPoolCreate(&pool, &props));
  EXPECT_EQ(nullptr, pool);
}

TEST(HipPool, DestroyedOnesAreRefused) {
  Pool pool;
  HIP_OK(hipMemPoolDestroy(pool));
  const hipMemPool_t gone = std::exchange(pool.handle, nullptr);
  uint64_t value = 0;
  void* pointer = &value;
  for (const hipMemPool_t bad : {gone, hipMemPool_t{nullptr}}) {
    HIP_REFUSES(hipErrorInvalidValue, hipMemPoolDestroy(bad));
    HIP_REFUSES(hipErrorInvalidValue, hipMemPoolTrimTo(bad, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipDeviceSetMemPool(0, bad));
    HIP_REFUSES(hipErrorInvalidValue,
                hipMemPoolGetAttribute(bad, hipMemPoolAttrUsedMemHigh, &value));
    HIP_REFUSES(hipErrorInvalidValue,
                hipMemPoolSetAttribute(bad, hipMemPoolAttrUsedMemHigh, &value));
    HIP_REFUSES(hipErrorInvalidValue, hipMallocFromPoolAsync(&pointer, 64, bad, nullptr));
    EXPECT_EQ(nullptr, pointer);
  }
}

/// A destroyed pool's blocks remain valid, and freeing them doesn't change another pool's count.
TEST(HipPool, BlocksOutliveTheirPool) {
  const Kernels kernels;
  const Stream stream;
  auto old = std::make_unique<Pool>();
  void* block = from_pool(*old, 256, stream);
  old.reset();
  std::vector<std::unique_ptr<Pool>> others;  // one of them may have the old pool's address
  std::vector<void*> theirs;
  for (int i = 0; i < 20; ++i) {
    others.push_back(std::make_unique<Pool>());
    theirs.push_back(from_pool(*others.back(), 256, stream));
  }
  HIP_OK(launch(kernels["set_to"], 2, 32, 0, stream, block, 3));
  HIP_OK(hipFreeAsync(block, stream));
  HIP_OK(hipStreamSynchronize(stream));
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(256u, others[i]->used()) << i;
    HIP_OK(hipFreeAsync(theirs[i], stream));
  }
  HIP_OK(hipStreamSynchronize(stream));
}

TEST(HipPool, DevicesHaveADefaultAndACurrentOne) {
  hipMemPool_t standard = nullptr, current = nullptr;
  HIP_OK(hipDeviceGetDefaultMemPool(&standard, 0));
  HIP_OK(hipDeviceGetMemPool(&current, 0));
  EXPECT_EQ(standard, current);
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolDestroy(standard));
  {
    const Pool pool;
    const Stream stream;
    HIP_OK(hipDeviceSetMemPool(0, pool));
    HIP_OK(hipDeviceGetMemPool(&current, 0));
    EXPECT_EQ(pool.handle, current);
    void* pointer = nullptr;
    HIP_OK(hipMallocAsync(&pointer, 640, stream));
    EXPECT_EQ(640u, pool.used());
    HIP_OK(hipFreeAsync(pointer, stream));
    HIP_OK(hipStreamSynchronize(stream));
  }
  HIP_OK(hipDeviceGetMemPool(&current, 0));
  EXPECT_EQ(standard, current) << "the current pool was destroyed";
  HIP_REFUSES(hipErrorInvalidValue, hipDeviceGetMemPool(nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipDeviceGetDefaultMemPool(nullptr, 0));
  for (const int nowhere : {-1, 1000}) {
    HIP_REFUSES(hipErrorInvalidDevice, hipDeviceGetMemPool(&current, nowhere));
    HIP_REFUSES(hipErrorInvalidDevice, hipDeviceGetDefaultMemPool(&current, nowhere));
    HIP_REFUSES(hipErrorInvalidDevice, hipDeviceSetMemPool(nowhere, standard));
  }
}

TEST(HipPool, AccessIsOfThePoolsDeviceAtFirst) {
  const Pool pool;
  hipMemLocation here{hipMemLocationTypeDevice, 0};
  hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
  HIP_OK(hipMemPoolGetAccess(&flags, pool, &here));
  EXPECT_EQ(hipMemAccessFlagsProtReadWrite, flags);
  hipMemAccessDesc wanted{here, hipMemAccessFlagsProtReadWrite};
  HIP_OK(hipMemPoolSetAccess(pool, &wanted, 1));
  HIP_OK(hipMemPoolSetAccess(pool, nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, nullptr, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolSetAccess(nullptr, &wanted, 1));
  wanted.flags = hipMemAccessFlagsProtNone;  // its own device always has access
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, &wanted, 1));
  wanted.flags = static_cast<hipMemAccessFlags>(2);
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, &wanted, 1));
  wanted = {{hipMemLocationTypeInvalid, 0}, hipMemAccessFlagsProtReadWrite};
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolSetAccess(pool, &wanted, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolGetAccess(nullptr, pool, &here));
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, pool, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, nullptr, &here));
  here.id = 1000;
  HIP_REFUSES(hipErrorInvalidValue, hipMemPoolGetAccess(&flags, pool, &here));
  HIP_OK(hipMemPoolGetAccess(&flags, pool, &(here = {hipMemLocationTypeDevice, 0})));
  EXPECT_EQ(hipMemAccessFlagsProtReadWrite, flags) << "a refused call changes nothing";
}

TEST(HipPool, FreesOnceAndOnlyWholeBlocks) {
  const Pool pool;
  const Stream stream;
  auto* block = static_cast<char*>(from_pool(pool, 1024, stream));
  Gate gate;
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  HIP_REFUSES(hipErrorInvalidValue, hipFreeAsync(block + 256, stream));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipFreeAsync(block, destroyed_stream()));
  HIP_OK(hipFreeAsync(block, stream));
  // Freed already, although it isn't released yet.
  HIP_REFUSES(hipErrorInvalidValue, hipFreeAsync(block, stream));
  EXPECT_EQ(0u, pool.used());
  gate.open = true;
  HIP_OK(hipStreamSynchronize(stream));
  HIP_REFUSES(hipErrorInvalidValue, hipFreeAsync(block, stream));
  HIP_REFUSES(hipErrorInvalidValue, hipFreeAsync(nullptr, stream));
  int ordinary = 0;
  HIP_REFUSES(hipErrorInvalidValue, hipFreeAsync(&ordinary, stream));
}

TEST(HipPool, MemoryOfHipMallocCanBeFreedInAStreamsOrder) {
  const Kernels kernels;
  const Stream stream;
  void* data = nullptr;
  HIP_OK(hipMalloc(&data, 128));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, data, 3));
  Gate gate;
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  HIP_OK(hipFreeAsync(data, stream));
  HIP_REFUSES(hipErrorInvalidValue, hipFreeAsync(data, stream));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(stream));
  size_t bytes = 0;
  HIP_REFUSES(hipErrorNotFound, hipMemGetAddressRange(nullptr, &bytes, data));
}

TEST(HipPool, GivesNothingForNothingAndNotMoreThanThereIs) {
  const Pool pool;
  const Stream stream;
  void* pointer = &pointer;
  HIP_OK(hipMallocFromPoolAsync(&pointer, 0, pool, stream));
  EXPECT_EQ(nullptr, pointer);
  HIP_REFUSES(hipErrorInvalidValue, hipMallocFromPoolAsync(nullptr, 64, pool, stream));
  HIP_REFUSES(hipErrorInvalidValue, hipMallocAsync(nullptr, 64, stream));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipMallocAsync(&pointer, 64, destroyed_stream()));
  size_t total = 0;
  HIP_OK(hipMemGetInfo(nullptr, &total));
  for (const size_t bytes : {total + 1, ~size_t{0}}) {
    pointer = &pointer;
    HIP_REFUSES(hipErrorOutOfMemory, hipMallocFromPoolAsync(&pointer, bytes, pool, stream));
    EXPECT_EQ(nullptr, pointer);
  }
  EXPECT_EQ(0u, pool.used());
  EXPECT_EQ(0u, pool.get(hipMemPoolAttrUsedMemHigh));
}

/// Allocates more in total than the device has: a stream can reuse what it has freed.
TEST(HipPool, StreamsReuseWhatTheyFreed) {
  const Pool pool;
  const Stream stream, other;
  size_t free = 0;
  HIP_OK(hipMemGetInfo(&free, nullptr));
  const size_t bytes = free / 4 * 3;
  const Event freed;
  for (int i = 0; i < 4; ++i) {
    const hipStream_t first = i % 2 == 0 ? stream : other, second = i % 2 == 0 ? other : stream;
    void* block = from_pool(pool, bytes, first);
    ASSERT_NE(nullptr, block);
    HIP_OK(hipMemsetAsync(block, i, 4096, first));
    HIP_OK(hipFreeAsync(block, first));
    HIP_OK(hipEventRecord(freed, first));
    HIP_OK(hipStreamWaitEvent(second, freed, 0));  // a stream that waits for it can, too
  }
  HIP_OK(hipStreamSynchronize(stream));
  HIP_OK(hipStreamSynchronize(other));
  EXPECT_EQ(bytes, pool.get(hipMemPoolAttrUsedMemHigh));
}

/// Memory allocated in a capture belongs to the graph and is available at every launch.
TEST(HipPool, CapturedMemoryIsTheGraphs) {
  const Kernels kernels;
  Buffer<int> out(32);
  const Stream stream;
  hipGraph_t graph = nullptr;
  HIP_OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  int* block = nullptr;
  HIP_OK(hipMallocAsync(reinterpret_cast<void**>(&block), 128, stream));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, block, 8));
  HIP_OK(hipMemcpyAsync(out.data, block, 128, hipMemcpyDeviceToDevice, stream));
  HIP_OK(hipFreeAsync(block, stream));
  HIP_OK(hipStreamEndCapture(stream, &graph));
  hipGraphNode_t nodes[4];
  size_t count = 4;
  HIP_OK(hipGraphGetNodes(graph, nodes, &count));
  ASSERT_EQ(4u, count);
  hipGraphNodeType types[4];
  for (int i = 0; i < 4; ++i) HIP_OK(hipGraphNodeGetType(nodes[i], &types[i]));
  EXPECT_EQ(hipGraphNodeTypeMemAlloc, types[0]);
  EXPECT_EQ(hipGraphNodeTypeMemFree, types[3]);
  hipMemAllocNodeParams params{};
  HIP_OK(hipGraphMemAllocNodeGetParams(nodes[0], &params));
  EXPECT_EQ(block, params.dptr);
  EXPECT_EQ(128u, params.bytesize);
  hipGraphExec_t exec = nullptr;
  HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 3; ++i) {
    out.set(std::vector<int>(32, 0));
    HIP_OK(hipGraphLaunch(exec, stream));
    HIP_OK(hipStreamSynchronize(stream));
    EXPECT_EQ(std::vector<int>(32, 8), out.get()) << i;
  }
  HIP_OK(hipGraphExecDestroy(exec));
  HIP_OK(hipGraphDestroy(graph));
}

TEST(HipPool, CapturesFreeOnlyGraphsMemory) {
  const Pool pool;
  const Stream stream;
  void* block = from_pool(pool, 64, stream);
  hipGraph_t graph = nullptr;
  HIP_OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  HIP_REFUSES(hipErrorInvalidValue, hipFreeAsync(block, stream));
  HIP_REFUSES(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(stream, &graph));
  HIP_OK(hipFreeAsync(block, stream));
  HIP_OK(hipStreamSynchronize(stream));
}

// The following tests run with two devices.

TEST(HipDevices, PoolsAreOfTheirDevice) {
  hipMemPool_t pool = nullptr, first = nullptr, second = nullptr;
  const hipMemPoolProps props = props_of(1);
  HIP_OK(hipMemPoolCreate(&pool, &props));
  HIP_REFUSES(hipErrorInvalidDevice, hipDeviceSetMemPool(0, pool));
  HIP_OK(hipDeviceGetDefaultMemPool(&first, 0));
  HIP_OK(hipDeviceGetDefaultMemPool(&second, 1));
  EXPECT_NE(first, second);
  HIP_OK(hipDeviceSetMemPool(1, pool));
  const Stream stream;  // a stream of device 0 may allocate from another device's pool
  void* block = from_pool(pool, 256, stream);
  hipPointerAttribute_t attributes;
  HIP_OK(hipPointerGetAttributes(&attributes, block));
  EXPECT_EQ(1, attributes.device);
  hipMemLocation location{hipMemLocationTypeDevice, 0};
  hipMemAccessFlags flags = hipMemAccessFlagsProtRead;
  HIP_OK(hipMemPoolGetAccess(&flags, pool, &location));
  EXPECT_EQ(hipMemAccessFlagsProtNone, flags);
  for (const auto wanted : {hipMemAccessFlagsProtReadWrite, hipMemAccessFlagsProtRead}) {
    const hipMemAccessDesc access{location, wanted};
    HIP_OK(hipMemPoolSetAccess(pool, &access, 1));
    HIP_OK(hipMemPoolGetAccess(&flags, pool, &location));
    EXPECT_EQ(wanted, flags);
  }
  HIP_OK(hipFreeAsync(block, stream));
  HIP_OK(hipStreamSynchronize(stream));
  HIP_OK(hipMemPoolDestroy(pool));
}

}  // namespace
