// The functions that use the calling thread's default stream in place of the null stream.

#include <cstring>

#include "emu/tests/hip_stream_support.h"

namespace {

/// A copy, a fill and a launch in the thread's stream don't wait for other threads' streams, and
/// the null stream waits for them.
TEST(HipThreadStream, HasAnOrderOfItsOwn) {
  const Kernels kernels;
  const Buffer<int> data(64);
  Gate gate;
  std::thread other([&] {
    EXPECT_EQ(hipSuccess, hipLaunchHostFunc_spt(nullptr, Gate::wait, &gate));
    while (!gate.reached) std::this_thread::yield();
  });
  other.join();  // its stream still waits at the gate
  std::vector<int> values(64, 5);
  HIP_OK(hipMemcpy_spt(data.data, values.data(), 256, hipMemcpyHostToDevice));
  HIP_OK(launch(kernels["add_one"], 1, 64, 0, hipStreamPerThread, data.data, 64));
  HIP_OK(hipMemcpy_spt(values.data(), data.data, 256, hipMemcpyDeviceToHost));
  EXPECT_EQ(values, std::vector<int>(64, 6));
  HIP_OK(hipStreamQuery_spt(nullptr));
  HIP_REFUSES(hipErrorNotReady, hipStreamQuery(nullptr));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(nullptr));
  HIP_OK(hipStreamSynchronize_spt(nullptr));
}

TEST(HipThreadStream, CopiesAndFillsAllForms) {
  const Buffer<char> data(4 * 64);
  std::vector<char> host(4 * 64, 1), got(4 * 64);
  HIP_OK(hipMemcpy2D_spt(data.data, 64, host.data(), 64, 32, 4, hipMemcpyHostToDevice));
  HIP_OK(hipMemset_spt(data.data, 2, 8));
  HIP_OK(hipMemset2D_spt(data.data + 32, 64, 3, 8, 4));
  HIP_OK(hipMemset3D_spt({data.data + 48, 64, 64, 4}, 4, {8, 4, 1}));
  HIP_OK(hipMemsetAsync_spt(data.data + 8, 5, 8, nullptr));
  HIP_OK(hipMemset2DAsync_spt(data.data + 64, 64, 6, 4, 1, nullptr));
  HIP_OK(hipMemset3DAsync_spt({data.data + 68, 64, 64, 4}, 7, {4, 1, 1}, nullptr));
  HIP_OK(hipMemcpyAsync_spt(got.data(), data.data, 64, hipMemcpyDeviceToHost, nullptr));
  HIP_OK(hipMemcpy2DAsync_spt(got.data() + 64, 64, data.data + 64, 64, 64, 3, hipMemcpyDeviceToHost,
                              nullptr));
  HIP_OK(hipStreamSynchronize_spt(nullptr));
  EXPECT_EQ(2, got[0]);
  EXPECT_EQ(5, got[8]);
  EXPECT_EQ(1, got[16]);
  EXPECT_EQ(3, got[32]);
  EXPECT_EQ(0, got[40]);
  EXPECT_EQ(4, got[48]);
  EXPECT_EQ(6, got[64]);
  EXPECT_EQ(7, got[68]);
  EXPECT_EQ(3, got[3 * 64 + 39]);
  hipMemcpy3DParms parms{};
  parms.srcPtr = {data.data, 64, 64, 4};
  parms.dstPtr = {got.data(), 64, 64, 4};
  parms.extent = {64, 4, 1};
  parms.kind = hipMemcpyDeviceToHost;
  std::fill(got.begin(), got.end(), 0);
  HIP_OK(hipMemcpy3D_spt(&parms));
  EXPECT_EQ(4, got[48]);
  HIP_OK(hipMemcpy3DAsync_spt(&parms, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipMemcpy3D_spt(nullptr));
}

TEST(HipThreadStream, VariablesLaunchesAndQueries) {
  Program program;
  const void* add_one = program.kernel("add_one");
  const void* counter = program.variable("counter", 4);
  int value = 20;
  HIP_OK(hipMemcpyToSymbol_spt(counter, &value, 4, 0, hipMemcpyHostToDevice));
  void* at = nullptr;
  HIP_OK(hipGetSymbolAddress(&at, counter));
  int count = 1;
  void* arguments[] = {&at, &count};
  HIP_OK(hipLaunchKernel_spt(add_one, {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr));
  HIP_OK(hipLaunchCooperativeKernel_spt(add_one, {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr));
  HIP_OK(hipMemcpyFromSymbol_spt(&value, counter, 4, 0, hipMemcpyDeviceToHost));
  EXPECT_EQ(22, value);
  HIP_OK(hipMemcpyFromSymbolAsync_spt(&value, counter, 4, 0, hipMemcpyDeviceToHost, nullptr));
  HIP_OK(hipMemcpyToSymbolAsync_spt(counter, &value, 4, 0, hipMemcpyHostToDevice, nullptr));
  unsigned flags = 9;
  int priority = 9;
  HIP_OK(hipStreamGetFlags_spt(nullptr, &flags));
  HIP_OK(hipStreamGetPriority_spt(nullptr, &priority));
  EXPECT_EQ(0u, flags);
  EXPECT_EQ(0, priority);
  const Event event;
  HIP_OK(hipEventRecord_spt(event, nullptr));
  HIP_OK(hipStreamWaitEvent_spt(nullptr, event, 0));
  HIP_OK(hipStreamSynchronize_spt(nullptr));
}

/// The null stream can't be captured, and the thread's stream can.
TEST(HipThreadStream, CanBeCaptured) {
  const Buffer<int> data(4);
  HIP_OK(hipStreamBeginCapture_spt(nullptr, hipStreamCaptureModeThreadLocal));
  hipStreamCaptureStatus status{};
  unsigned long long id = 0, again = 0;
  HIP_OK(hipStreamIsCapturing_spt(nullptr, &status));
  EXPECT_EQ(hipStreamCaptureStatusActive, status);
  HIP_OK(hipStreamGetCaptureInfo_spt(nullptr, &status, &id));
  HIP_OK(hipStreamGetCaptureInfo_v2_spt(nullptr, &status, &again, nullptr, nullptr, nullptr));
  EXPECT_EQ(id, again);
  HIP_OK(hipMemsetAsync_spt(data.data, 1, 16, nullptr));
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
  HIP_OK(hipStreamEndCapture_spt(nullptr, &graph));
  HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  HIP_OK(hipGraphLaunch_spt(exec, nullptr));
  HIP_OK(hipStreamSynchronize_spt(nullptr));
  EXPECT_EQ(0x01010101, data.get()[0]);
  HIP_OK(hipGraphExecDestroy(exec));
  HIP_OK(hipGraphDestroy(graph));
}

TEST(HipThreadStream, IsGivenByTheFunctionsNames) {
  void *null = nullptr, *own = nullptr;
  hipDriverEntryPointQueryResult result{};
  HIP_OK(hipGetDriverEntryPoint("hipMemcpy", &null, 0, &result));
  EXPECT_EQ(hipDriverEntryPointSuccess, result);
  HIP_OK(hipGetDriverEntryPoint_spt("hipMemcpy", &own, 0, nullptr));
  EXPECT_EQ(reinterpret_cast<void*>(&hipMemcpy), null);
  EXPECT_EQ(reinterpret_cast<void*>(&hipMemcpy_spt), own);
  HIP_REFUSES(hipErrorInvalidValue, hipGetDriverEntryPoint("hipNone", &null, 0, &result));
  EXPECT_EQ(hipDriverEntryPointSymbolNotFound, result);
  HIP_REFUSES(hipErrorInvalidValue, hipGetDriverEntryPoint(nullptr, &null, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGetDriverEntryPoint("hipMemcpy", &null, 7, nullptr));
}

}  // namespace
