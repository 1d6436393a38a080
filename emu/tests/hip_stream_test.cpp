#include <chrono>
#include <thread>

#include "emu/tests/hip_stream_support.h"

namespace {

TEST(HipStream, WorkOfOneStreamIsInOrder) {
  const Kernels kernels;
  Buffer<int> data(256);
  Stream stream;
  for (int value = 1; value <= 20; ++value) {
    HIP_OK(launch(kernels["slow_set"], 8, 32, 0, stream, data.data, value, 100));
  }
  HIP_OK(launch(kernels["add_one"], 8, 32, 0, stream, data.data, 256));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get(), std::vector<int>(256, 21));
}

// The order must not be stronger than required: unawaited work must not have run.
TEST(HipStream, TheHostRunsAhead) {
  (void)hipGetLastError();  // clears the errors of earlier tests
  const Kernels kernels;
  Buffer<int> data(32);
  Stream stream;
  Gate gate;
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, data.data, 9));
  EXPECT_EQ(hipErrorNotReady, hipStreamQuery(stream));
  EXPECT_EQ(hipErrorNotReady, hipGetLastError());
  EXPECT_EQ(data.data[0], 0);  // the host sees that nothing has run
  gate.open = true;
  HIP_OK(hipStreamSynchronize(stream));
  HIP_OK(hipStreamQuery(stream));
  EXPECT_EQ(data.data[0], 9);
}

TEST(HipStream, StreamsDontWaitForEachOther) {
  const Kernels kernels;
  Buffer<int> data(32);
  Stream held, free;
  Gate gate;
  HIP_OK(hipLaunchHostFunc(held, &Gate::wait, &gate));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, free, data.data, 4));
  HIP_OK(hipStreamSynchronize(free));  // would never end if it waited for `held`
  EXPECT_EQ(data.data[0], 4);
  gate.open = true;
  HIP_OK(hipStreamSynchronize(held));
}

TEST(HipStream, WaitsForEvents) {
  const Kernels kernels;
  Buffer<int> data(32);
  Stream first, second;
  Event event;
  Gate gate;
  // The event was never recorded, so there is nothing to wait for.
  HIP_OK(hipStreamWaitEvent(second, event, 0));
  HIP_OK(hipStreamSynchronize(second));
  HIP_OK(hipLaunchHostFunc(first, &Gate::wait, &gate));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, first, data.data, 4));
  HIP_OK(hipEventRecord(event, first));
  HIP_OK(hipStreamWaitEvent(second, event, 0));
  HIP_OK(launch(kernels["add_one"], 1, 32, 0, second, data.data, 32));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(hipErrorNotReady, hipStreamQuery(second));
  EXPECT_EQ(hipErrorNotReady, hipEventQuery(event));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(second));
  EXPECT_EQ(data.data[0], 5);
}

TEST(HipStream, TheNullStreamWaitsForBlockingOnes) {
  const Kernels kernels;
  Buffer<int> data(32);
  Stream blocking(hipStreamDefault), other(hipStreamDefault), free;
  Gate gate, second_gate;
  HIP_OK(hipLaunchHostFunc(blocking, &Gate::wait, &gate));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, blocking, data.data, 1));
  HIP_OK(launch(kernels["add_one"], 1, 32, 0, nullptr, data.data, 32));
  HIP_OK(launch(kernels["add_one"], 1, 32, 0, other, data.data, 32));  // runs after the null stream
  HIP_OK(hipLaunchHostFunc(free, &Gate::wait, &second_gate));  // not ordered by the null stream
  while (!second_gate.reached) std::this_thread::yield();
  second_gate.open = true;
  EXPECT_EQ(hipErrorNotReady, hipStreamQuery(nullptr));
  EXPECT_EQ(hipErrorNotReady, hipStreamQuery(other));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(other));
  HIP_OK(hipStreamSynchronize(free));
  EXPECT_EQ(data.data[0], 3);
}

TEST(HipStream, ThreadsHaveStreamsOfTheirOwn) {
  Gate gate;
  HIP_OK(hipLaunchHostFunc(hipStreamPerThread, &Gate::wait, &gate));
  std::thread([] { EXPECT_EQ(hipSuccess, hipStreamSynchronize(hipStreamPerThread)); }).join();
  EXPECT_EQ(hipErrorNotReady, hipStreamQuery(hipStreamPerThread));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(hipStreamPerThread));
}

TEST(HipStream, EventsTellTheTime) {
  Stream stream;
  Event start, stop, timeless(hipEventDisableTiming);
  float milliseconds = 0;
  EXPECT_EQ(hipErrorInvalidHandle, hipEventElapsedTime(&milliseconds, start, stop));
  HIP_OK(hipEventRecord(start, stream));
  HIP_OK(hipLaunchHostFunc(
      stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }, nullptr));
  HIP_OK(hipEventRecord(stop, stream));
  HIP_OK(hipEventSynchronize(stop));
  HIP_OK(hipEventElapsedTime(&milliseconds, start, stop));
  EXPECT_GE(milliseconds, 29.f);
  EXPECT_LT(milliseconds, 3000.f);
  HIP_OK(hipEventRecord(timeless, stream));
  HIP_OK(hipEventSynchronize(timeless));
  EXPECT_EQ(hipErrorInvalidHandle, hipEventElapsedTime(&milliseconds, start, timeless));
}

TEST(HipStream, RefusesWhatIsNone) {
  hipStream_t stream = nullptr;
  EXPECT_EQ(hipErrorInvalidValue, hipStreamCreateWithFlags(&stream, 64));
  EXPECT_EQ(hipErrorInvalidValue, hipStreamCreate(nullptr));
  HIP_OK(hipStreamCreate(&stream));
  HIP_OK(hipStreamDestroy(stream));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipStreamDestroy(stream));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipStreamSynchronize(stream));
  EXPECT_EQ(hipErrorInvalidHandle, hipEventDestroy(reinterpret_cast<hipEvent_t>(stream)));
  hipEvent_t event = nullptr;
  EXPECT_EQ(hipErrorInvalidValue, hipEventCreateWithFlags(&event, 0x100));
  (void)hipGetLastError();
}

TEST(HipStream, ValuesInMemoryOrderStreams) {
  Buffer<uint32_t> flag(1);
  Stream waiting, writing;
  HIP_OK(hipStreamWaitValue32(waiting, flag.data, 3, hipStreamWaitValueEq, 0xffffffff));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(hipErrorNotReady, hipStreamQuery(waiting));
  HIP_OK(hipStreamWriteValue32(writing, flag.data, 3, 0));
  HIP_OK(hipStreamSynchronize(waiting));
}

TEST(HipStream, DestroyedStreamsFinishTheirWork) {
  const Kernels kernels;
  Buffer<int> data(32);
  hipStream_t stream = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  Gate gate;
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, data.data, 6));
  HIP_OK(hipStreamDestroy(stream));
  gate.open = true;
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(data.data[0], 6);
}

// --- graphs

TEST(HipGraph, CapturesAndRepeats) {
  const Kernels kernels;
  Buffer<int> data(32);
  Stream stream, side;
  Event fork, join;
  Buffer<int> other(32);
  HIP_OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  HIP_OK(launch(kernels["add_one"], 1, 32, 0, stream, data.data, 32));
  HIP_OK(hipEventRecord(fork, stream));
  HIP_OK(hipStreamWaitEvent(side, fork, 0));
  HIP_OK(launch(kernels["add_one"], 1, 32, 0, side, other.data, 32));
  HIP_OK(hipEventRecord(join, side));
  HIP_OK(launch(kernels["add_one"], 1, 32, 0, stream, data.data, 32));
  HIP_OK(hipStreamWaitEvent(stream, join, 0));
  hipGraph_t graph = nullptr;
  HIP_OK(hipStreamEndCapture(stream, &graph));
  EXPECT_EQ(data.get()[0], 0) << "captured work must not run";
  size_t count = 0;
  HIP_OK(hipGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(count, 3u);
  hipGraphExec_t exec = nullptr;
  HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  HIP_OK(hipGraphDestroy(graph));
  for (int i = 0; i < 10; ++i) HIP_OK(hipGraphLaunch(exec, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get(), std::vector<int>(32, 20));
  EXPECT_EQ(other.get(), std::vector<int>(32, 10));
  HIP_OK(hipGraphExecDestroy(exec));
}

TEST(HipGraph, BranchesRunAtOnce) {
  // Each branch opens the gate at which the other branch waits.
  struct Pair {
    Gate here, there;
  } gates;
  hipGraph_t graph = nullptr;
  HIP_OK(hipGraphCreate(&graph, 0));
  hipGraphNode_t nodes[3];
  hipHostNodeParams first{[](void* p) {
                            static_cast<Pair*>(p)->there.open = true;
                            Gate::wait(&static_cast<Pair*>(p)->here);
                          },
                          &gates};
  hipHostNodeParams second{[](void* p) {
                             static_cast<Pair*>(p)->here.open = true;
                             Gate::wait(&static_cast<Pair*>(p)->there);
                           },
                           &gates};
  HIP_OK(hipGraphAddHostNode(&nodes[0], graph, nullptr, 0, &first));
  HIP_OK(hipGraphAddHostNode(&nodes[1], graph, nullptr, 0, &second));
  HIP_OK(hipGraphAddEmptyNode(&nodes[2], graph, nodes, 2));
  hipGraphExec_t exec = nullptr;
  HIP_OK(hipGraphInstantiateWithFlags(&exec, graph, 0));
  Stream stream;
  HIP_OK(hipGraphLaunch(exec, stream));
  HIP_OK(hipStreamSynchronize(stream));
  HIP_OK(hipGraphExecDestroy(exec));
  HIP_OK(hipGraphDestroy(graph));
}

TEST(HipGraph, NodesCanBeChangedAndUpdated) {
  const Kernels kernels;
  Buffer<int> data(32);
  hipGraph_t graph = nullptr;
  HIP_OK(hipGraphCreate(&graph, 0));
  hipGraphNode_t clear, set;
  hipMemsetParams fill{data.data, 4, 1, 0, 77, 32};
  HIP_OK(hipGraphAddMemsetNode(&clear, graph, nullptr, 0, &fill));
  int value = 5;
  void* list[] = {&data.data, &value};
  hipKernelNodeParams params{{16, 1, 1}, nullptr, kernels["set_to"], {1, 1, 1}, list, 0};
  HIP_OK(hipGraphAddKernelNode(&set, graph, &clear, 1, &params));
  EXPECT_EQ(hipErrorInvalidValue, hipGraphAddDependencies(graph, &set, &clear, 1));  // a cycle
  hipGraphExec_t exec = nullptr;
  HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  Stream stream;
  HIP_OK(hipGraphLaunch(exec, stream));
  value = 6;
  HIP_OK(hipGraphExecKernelNodeSetParams(exec, set, &params));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get()[0], 5);
  EXPECT_EQ(data.get()[16], 77);
  HIP_OK(hipGraphLaunch(exec, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get()[0], 6);
  value = 8;
  HIP_OK(hipGraphKernelNodeSetParams(set, &params));
  hipGraphNode_t culprit = nullptr;
  hipGraphExecUpdateResult result;
  HIP_OK(hipGraphExecUpdate(exec, graph, &culprit, &result));
  HIP_OK(hipGraphLaunch(exec, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(data.get()[0], 8);
  hipGraphNode_t more;
  HIP_OK(hipGraphAddEmptyNode(&more, graph, nullptr, 0));
  EXPECT_EQ(hipErrorGraphExecUpdateFailure, hipGraphExecUpdate(exec, graph, &culprit, &result));
  EXPECT_EQ(result, hipGraphExecUpdateErrorTopologyChanged);
  HIP_OK(hipGraphExecDestroy(exec));
  HIP_OK(hipGraphDestroy(graph));
  (void)hipGetLastError();
}

TEST(HipGraph, CaptureHasItsRules) {
  Stream stream, side;
  Event event;
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipErrorIllegalState, hipStreamEndCapture(stream, &graph));
  EXPECT_EQ(hipErrorStreamCaptureUnsupported,
            hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal));
  HIP_OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  EXPECT_EQ(hipErrorStreamCaptureUnsupported, hipStreamSynchronize(stream));
  EXPECT_EQ(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(stream, &graph));
  HIP_OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  HIP_OK(hipEventRecord(event, stream));
  EXPECT_EQ(hipErrorCapturedEvent, hipEventQuery(event));
  EXPECT_EQ(hipErrorStreamCaptureInvalidated, hipStreamEndCapture(stream, &graph));
  HIP_OK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  HIP_OK(hipEventRecord(event, stream));
  HIP_OK(hipStreamWaitEvent(side, event, 0));
  HIP_OK(hipLaunchHostFunc(
      side, [](void*) {}, nullptr));
  EXPECT_EQ(hipErrorStreamCaptureUnmatched, hipStreamEndCapture(side, &graph));
  EXPECT_EQ(hipErrorStreamCaptureUnjoined, hipStreamEndCapture(stream, &graph));
  (void)hipGetLastError();
}

}  // namespace
