// The order of commands of different streams. Under WICK_EMU_SEED, commands run when the host
// waits, in a random order, so that a missing event or wait shows. Runs with several seeds.

#include <set>

#include "emu/tests/hip_stream_support.h"

namespace {

/// Fills in one stream and copies in another. Returns what was copied.
int fill_and_copy(bool ordered) {
  const Stream writer, reader;
  const Event filled;
  const Buffer<int> data(16);
  int* seen = nullptr;
  EXPECT_EQ(hipSuccess, hipHostMalloc(reinterpret_cast<void**>(&seen), 64, 0));
  EXPECT_EQ(hipSuccess, hipMemsetD32Async(data.data, 7, 16, writer));
  if (ordered) {
    EXPECT_EQ(hipSuccess, hipEventRecord(filled, writer));
    EXPECT_EQ(hipSuccess, hipStreamWaitEvent(reader, filled, 0));
  }
  EXPECT_EQ(hipSuccess, hipMemcpyAsync(seen, data.data, 64, hipMemcpyDeviceToHost, reader));
  EXPECT_EQ(hipSuccess, hipStreamSynchronize(reader));
  EXPECT_EQ(hipSuccess, hipStreamSynchronize(writer));
  const int result = seen[15];
  EXPECT_EQ(hipSuccess, hipHostFree(seen));
  return result;
}

TEST(HipInterleave, AMissingEventShows) {
  std::set<int> seen;
  for (int round = 0; round < 40; ++round) seen.insert(fill_and_copy(false));
  EXPECT_EQ(seen, (std::set<int>{0, 7}));
}

TEST(HipInterleave, EventsOrder) {
  for (int round = 0; round < 40; ++round) ASSERT_EQ(7, fill_and_copy(true));
}

/// Without a wait, the host doesn't see what a stream has been told to do.
TEST(HipInterleave, AMissingWaitShows) {
  const Stream stream;
  int* seen = nullptr;
  HIP_OK(hipHostMalloc(reinterpret_cast<void**>(&seen), 64, 0));
  for (int round = 1; round <= 5; ++round) {
    *seen = 0;
    HIP_OK(hipMemsetD32Async(seen, round, 1, stream));
    EXPECT_EQ(0, *static_cast<volatile int*>(seen));
    HIP_OK(hipStreamSynchronize(stream));
    EXPECT_EQ(round, *seen);
  }
  HIP_OK(hipHostFree(seen));
}

TEST(HipInterleave, TheNullStreamOrdersBlockingStreams) {
  const Kernels kernels;
  for (int round = 0; round < 10; ++round) {
    const Stream one(hipStreamDefault), other(hipStreamDefault);
    const Buffer<int> data(64);
    HIP_OK(launch(kernels["set_to"], 1, 64, 0, one, data.data, round));
    HIP_OK(launch(kernels["add_one"], 1, 64, 0, nullptr, data.data, 64));
    HIP_OK(launch(kernels["add_one"], 1, 64, 0, other, data.data, 64));
    HIP_OK(hipStreamSynchronize(other));
    std::vector<int> got(64);
    HIP_OK(hipMemcpy(got.data(), data.data, 256, hipMemcpyDeviceToHost));
    EXPECT_EQ(got, std::vector<int>(64, round + 2));
  }
}

/// A host that only watches memory, and one that only asks, come to an end.
TEST(HipInterleave, HostsThatDontWaitGetResults) {
  const Stream stream;
  int* seen = nullptr;
  HIP_OK(hipHostMalloc(reinterpret_cast<void**>(&seen), 64, 0));
  *seen = 0;
  HIP_OK(hipMemsetD32Async(seen, 1, 1, stream));
  while (*static_cast<volatile int*>(seen) == 0) std::this_thread::yield();
  HIP_OK(hipMemsetD32Async(seen, 2, 1, stream));
  while (hipStreamQuery(stream) == hipErrorNotReady) std::this_thread::yield();
  EXPECT_EQ(2, *seen);
  (void)hipGetLastError();
  HIP_OK(hipHostFree(seen));
}

/// A command that waits for one of another stream doesn't hold that one up.
TEST(HipInterleave, WaitsForValuesDontBlockOthers) {
  const Stream waiter, writer;
  const Buffer<uint32_t> flag(1);
  HIP_OK(hipStreamWaitValue32(waiter, flag.data, 1, hipStreamWaitValueEq, ~0u));
  HIP_OK(hipStreamWriteValue32(writer, flag.data, 1, 0));
  HIP_OK(hipStreamSynchronize(waiter));
  EXPECT_EQ(1u, flag.get()[0]);
}

TEST(HipInterleave, GraphsRunInAnyOrderOfTheirEdges) {
  const Buffer<int> data(1);
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  hipGraphNode_t first = nullptr, second = nullptr, third = nullptr;
  HIP_OK(hipGraphCreate(&graph, 0));
  hipMemsetParams fill{data.data, 4, 1, 4, 1, 1};
  HIP_OK(hipGraphAddMemsetNode(&first, graph, nullptr, 0, &fill));
  fill.value = 2;
  HIP_OK(hipGraphAddMemsetNode(&second, graph, &first, 1, &fill));
  fill.value = 3;
  HIP_OK(hipGraphAddMemsetNode(&third, graph, &second, 1, &fill));
  HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  const Stream stream;
  for (int round = 0; round < 10; ++round) {
    HIP_OK(hipGraphLaunch(exec, stream));
    HIP_OK(hipStreamSynchronize(stream));
    EXPECT_EQ(3, data.get()[0]);
  }
  HIP_OK(hipGraphExecDestroy(exec));
  HIP_OK(hipGraphDestroy(graph));
}

}  // namespace
