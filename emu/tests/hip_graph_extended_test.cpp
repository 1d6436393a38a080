// Graph nodes whose type is in their parameters, nodes of batches, attributes of kernel nodes,
// nodes of the driver API, captures into graphs, and the memory of graphs.

#include "emu/tests/hip_stream_support.h"

namespace {

class HipGraphExtended : public testing::Test {
 protected:
  HipGraphExtended() { EXPECT_EQ(hipSuccess, hipGraphCreate(&graph, 0)); }
  ~HipGraphExtended() override {
    if (exec != nullptr) EXPECT_EQ(hipSuccess, hipGraphExecDestroy(exec));
    EXPECT_EQ(hipSuccess, hipGraphDestroy(graph));
    (void)hipGetLastError();
  }
  void run() {
    if (exec == nullptr)
      EXPECT_EQ(hipSuccess, hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    EXPECT_EQ(hipSuccess, hipGraphLaunch(exec, stream));
    EXPECT_EQ(hipSuccess, hipStreamSynchronize(stream));
  }
  const Stream stream;
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
};

TEST_F(HipGraphExtended, NodesOfAnyType) {
  const Kernels kernels;
  const Buffer<int> data(32), copy(32);
  hipGraphNode_t fill = nullptr, kernel = nullptr, transfer = nullptr, empty = nullptr;
  hipGraphNodeParams p{};
  p.type = hipGraphNodeTypeMemset;
  p.memset = {data.data, 4, 1, 128, 5, 32};
  HIP_OK(hipGraphAddNode(&fill, graph, nullptr, 0, &p));
  int count = 32;
  void* arguments[] = {const_cast<int**>(&data.data), &count};
  hipGraphNodeParams k{};
  k.type = hipGraphNodeTypeKernel;
  k.kernel.func = kernels["add_one"];
  k.kernel.gridDim = {1, 1, 1};
  k.kernel.blockDim = {32, 1, 1};
  k.kernel.kernelParams = arguments;
  HIP_OK(hipGraphAddNode(&kernel, graph, &fill, 1, &k));
  hipGraphNodeParams c{};
  c.type = hipGraphNodeTypeMemcpy;
  c.memcpy.copyParams.srcPtr = {data.data, 128, 128, 1};
  c.memcpy.copyParams.dstPtr = {copy.data, 128, 128, 1};
  c.memcpy.copyParams.extent = {128, 1, 1};
  c.memcpy.copyParams.kind = hipMemcpyDeviceToDevice;
  HIP_OK(hipGraphAddNode(&transfer, graph, &kernel, 1, &c));
  hipGraphNodeParams e{};
  e.type = hipGraphNodeTypeEmpty;
  HIP_OK(hipGraphAddNode(&empty, graph, &transfer, 1, &e));
  run();
  EXPECT_EQ(copy.get(), std::vector<int>(32, 6));
  p.memset.value = 8;
  HIP_OK(hipGraphExecNodeSetParams(exec, fill, &p));
  run();
  EXPECT_EQ(copy.get(), std::vector<int>(32, 9));
  HIP_OK(hipGraphNodeSetParams(fill, &p));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeSetParams(kernel, &p));
  p.type = hipGraphNodeTypeExtSemaphoreWait;
  HIP_REFUSES(hipErrorNotSupported, hipGraphAddNode(&empty, graph, nullptr, 0, &p));
  p.type = static_cast<hipGraphNodeType>(88);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddNode(&empty, graph, nullptr, 0, &p));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddNode(&empty, graph, nullptr, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecNodeSetParams(exec, nullptr, &k));
}

TEST_F(HipGraphExtended, KernelNodesHaveAttributes) {
  const Kernels kernels;
  const Buffer<int> data(32);
  int count = 32;
  void* arguments[] = {const_cast<int**>(&data.data), &count};
  hipKernelNodeParams p{};
  p.func = kernels["add_one"];
  p.gridDim = {1, 1, 1};
  p.blockDim = {32, 1, 1};
  p.kernelParams = arguments;
  hipGraphNode_t one = nullptr, other = nullptr, empty = nullptr;
  HIP_OK(hipGraphAddKernelNode(&one, graph, nullptr, 0, &p));
  HIP_OK(hipGraphAddKernelNode(&other, graph, nullptr, 0, &p));
  HIP_OK(hipGraphAddEmptyNode(&empty, graph, nullptr, 0));
  hipLaunchAttributeValue value{};
  value.priority = -1;
  HIP_OK(hipGraphKernelNodeSetAttribute(one, hipLaunchAttributePriority, &value));
  HIP_OK(hipGraphKernelNodeCopyAttributes(one, other));
  value = {};
  HIP_OK(hipGraphKernelNodeGetAttribute(other, hipLaunchAttributePriority, &value));
  EXPECT_EQ(-1, value.priority);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphKernelNodeCopyAttributes(one, empty));
  HIP_REFUSES(hipErrorInvalidValue,
              hipGraphKernelNodeGetAttribute(one, static_cast<hipLaunchAttributeID>(99), &value));
}

TEST_F(HipGraphExtended, BatchesAreNodes) {
  const Buffer<uint32_t> data(2);
  hipStreamBatchMemOpParams list[2]{};
  list[0].value = {hipStreamMemOpWriteValue32, data.data, 7, 0, nullptr};
  list[1].value = {hipStreamMemOpWriteValue32, data.data + 1, 8, 0, nullptr};
  hipBatchMemOpNodeParams p{nullptr, 2, list, 0}, got{};
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &p));
  hipGraphNodeType type{};
  HIP_OK(hipGraphNodeGetType(node, &type));
  EXPECT_EQ(hipGraphNodeTypeBatchMemOp, type);
  HIP_OK(hipGraphBatchMemOpNodeGetParams(node, &got));
  EXPECT_EQ(2u, got.count);
  EXPECT_EQ(8u, got.paramArray[1].value.value);
  run();
  EXPECT_EQ(data.get(), (std::vector<uint32_t>{7, 8}));
  list[1].value.value = 9;
  HIP_OK(hipGraphExecBatchMemOpNodeSetParams(exec, node, &p));
  HIP_OK(hipGraphBatchMemOpNodeSetParams(node, &p));
  run();
  EXPECT_EQ(9u, data.get()[1]);
  p.count = 0;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &p));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddBatchMemOpNode(&node, graph, nullptr, 0, nullptr));
}

TEST_F(HipGraphExtended, NodesOfTheDriverApi) {
  const Buffer<char> a(64), b(64);
  hipGraphNode_t fill = nullptr, copy = nullptr;
  hipMemsetParams value{a.data, 1, 1, 64, 3, 64};
  HIP_OK(hipDrvGraphAddMemsetNode(&fill, graph, nullptr, 0, &value, nullptr));
  HIP_MEMCPY3D p{}, got{};
  p.srcMemoryType = p.dstMemoryType = hipMemoryTypeDevice;
  p.srcDevice = a.data;
  p.dstDevice = b.data;
  p.srcPitch = p.dstPitch = 16;
  p.WidthInBytes = 8;
  p.Height = 4;
  p.Depth = 1;
  HIP_OK(hipDrvGraphAddMemcpyNode(&copy, graph, &fill, 1, &p, nullptr));
  HIP_OK(hipDrvGraphMemcpyNodeGetParams(copy, &got));
  EXPECT_EQ(8u, got.WidthInBytes);
  EXPECT_EQ(b.data, got.dstDevice);
  run();
  EXPECT_EQ(3, b.get()[55]);
  EXPECT_EQ(0, b.get()[56]);
  p.WidthInBytes = 16;
  HIP_OK(hipDrvGraphMemcpyNodeSetParams(copy, &p));
  HIP_OK(hipDrvGraphExecMemcpyNodeSetParams(exec, copy, &p, nullptr));
  value.value = 4;
  HIP_OK(hipDrvGraphExecMemsetNodeSetParams(exec, fill, &value, nullptr));
  run();
  EXPECT_EQ(b.get(), std::vector<char>(64, 4));
  HIP_REFUSES(hipErrorInvalidValue,
              hipDrvGraphAddMemcpyNode(&copy, graph, nullptr, 0, nullptr, nullptr));
}

TEST_F(HipGraphExtended, CapturesAddToGraphs) {
  const Buffer<int> data(4);
  hipGraphNode_t first = nullptr;
  hipMemsetParams value{data.data, 4, 1, 16, 1, 4};
  HIP_OK(hipGraphAddMemsetNode(&first, graph, nullptr, 0, &value));
  const Stream captured;
  HIP_OK(hipStreamBeginCaptureToGraph(captured, graph, &first, nullptr, 1,
                                      hipStreamCaptureModeThreadLocal));
  HIP_OK(hipMemsetD32Async(data.data + 1, 2, 1, captured));
  hipGraph_t ended = nullptr;
  HIP_OK(hipStreamEndCapture(captured, &ended));
  EXPECT_EQ(graph, ended);
  size_t count = 0;
  HIP_OK(hipGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(2u, count);
  run();
  EXPECT_EQ(data.get(), (std::vector<int>{1, 2, 1, 1}));
  hipGraphNode_t bad = reinterpret_cast<hipGraphNode_t>(0x1234);
  HIP_REFUSES(hipErrorInvalidValue, hipStreamBeginCaptureToGraph(captured, graph, &bad, nullptr, 1,
                                                                 hipStreamCaptureModeThreadLocal));
  HIP_REFUSES(hipErrorInvalidValue,
              hipStreamBeginCaptureToGraph(captured, nullptr, nullptr, nullptr, 0,
                                           hipStreamCaptureModeThreadLocal));
}

TEST_F(HipGraphExtended, InstantiationTellsItsResult) {
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddEmptyNode(&node, graph, nullptr, 0));
  hipGraphInstantiateParams p{};
  p.result_out = hipGraphInstantiateError;
  HIP_OK(hipGraphInstantiateWithParams(&exec, graph, &p));
  EXPECT_EQ(hipGraphInstantiateSuccess, p.result_out);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphInstantiateWithParams(&exec, graph, nullptr));
}

TEST_F(HipGraphExtended, MemoryIsCounted) {
  uint64_t before = 0, now = 0, high = 0;
  HIP_OK(hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &before));
  hipMemAllocNodeParams p{};
  p.poolProps.allocType = hipMemAllocationTypePinned;
  p.poolProps.location = {hipMemLocationTypeDevice, 0};
  p.bytesize = 4096;
  hipGraphNode_t node = nullptr, gone = nullptr;
  HIP_OK(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  HIP_OK(hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &now));
  EXPECT_EQ(before + 4096, now);
  HIP_OK(hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &high));
  EXPECT_GE(high, now);
  HIP_OK(hipDrvGraphAddMemFreeNode(&gone, graph, &node, 1, p.dptr));
}

/// Threads read and restart the counters while another one allocates. ThreadSanitizer finds
/// accesses without the lock; without it, this checks the values.
TEST_F(HipGraphExtended, MemoryIsCountedInThreads) {
  uint64_t before = 0;
  HIP_OK(hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &before));
  constexpr uint64_t kBytes = 4096, kNodes = 200;
  std::atomic<bool> done{false};
  std::atomic<int> odd{0};
  const auto watch = [&](hipGraphMemAttributeType attribute, bool restarts) {
    while (!done) {
      uint64_t value = 0, zero = 0;
      if (hipDeviceGetGraphMemAttribute(0, attribute, &value) != hipSuccess) ++odd;
      if (value < before || (value - before) % kBytes != 0) ++odd;
      if (restarts && hipDeviceSetGraphMemAttribute(0, attribute, &zero) != hipSuccess) ++odd;
    }
  };
  std::thread high(watch, hipGraphMemAttrUsedMemHigh, true);
  std::thread now(watch, hipGraphMemAttrUsedMemCurrent, false);
  hipMemAllocNodeParams p{};
  p.poolProps.allocType = hipMemAllocationTypePinned;
  p.poolProps.location = {hipMemLocationTypeDevice, 0};
  p.bytesize = kBytes;
  hipGraphNode_t node = nullptr;
  for (uint64_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(hipSuccess, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  }
  done = true;
  high.join();
  now.join();
  EXPECT_EQ(0, odd);
  uint64_t most = 0;
  HIP_OK(hipDeviceGetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &most));
  EXPECT_EQ(before + kNodes * kBytes, most);
}

TEST_F(HipGraphExtended, CopiesOfVariablesChange) {
  Program program;
  const void* table = program.variable("table", 256);
  const Buffer<int> data(64);
  int values[2] = {5, 6}, got[2] = {};
  hipGraphNode_t in = nullptr, out = nullptr;
  HIP_OK(hipGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, table, values, 8, 0,
                                       hipMemcpyHostToDevice));
  HIP_OK(hipGraphAddMemcpyNodeFromSymbol(&out, graph, &in, 1, got, table, 8, 0,
                                         hipMemcpyDeviceToHost));
  HIP_OK(hipGraphMemcpyNodeSetParamsToSymbol(in, table, values, 4, 4, hipMemcpyHostToDevice));
  HIP_OK(hipGraphMemcpyNodeSetParamsFromSymbol(out, got, table, 4, 4, hipMemcpyDeviceToHost));
  run();
  EXPECT_EQ(5, got[0]);
  HIP_OK(hipGraphExecMemcpyNodeSetParamsToSymbol(exec, in, table, values, 8, 0,
                                                 hipMemcpyHostToDevice));
  HIP_OK(hipGraphExecMemcpyNodeSetParamsFromSymbol(exec, out, got, table, 8, 0,
                                                   hipMemcpyDeviceToHost));
  run();
  EXPECT_EQ(6, got[1]);
}

}  // namespace
