// Graph nodes of each kind: their effect, reading their parameters, and changing them in a graph
// and in an executable graph.

#include <chrono>
#include <memory>

#include "emu/tests/hip_graph_support.h"

namespace {

TEST(HipGraph, KernelNodes) {
  const Kernels kernels;
  const Buffer<int> data(64);
  const Graph graph;
  int value = 3;
  int* at = data.data;
  void* list[] = {&at, &value};
  hipKernelNodeParams params{{32}, nullptr, kernels["set_to"], {1}, list, 0};
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  value = 4;  // the arguments were copied when the node was added
  const Exec exec(graph);
  exec.run();
  EXPECT_EQ(3, data.get()[31]);
  EXPECT_EQ(0, data.get()[32]);

  hipKernelNodeParams told{};
  HIP_OK(hipGraphKernelNodeGetParams(node, &told));
  EXPECT_EQ(params.func, told.func);
  EXPECT_EQ(32u, told.blockDim.x);
  EXPECT_EQ(1u, told.gridDim.x);
  EXPECT_EQ(data.data, *static_cast<int**>(told.kernelParams[0]));
  EXPECT_EQ(3, *static_cast<int*>(told.kernelParams[1]));

  told.gridDim = {2};  // parameters that were read can be changed and set
  HIP_OK(hipGraphKernelNodeSetParams(node, &told));
  exec.run();
  EXPECT_EQ(0, data.get()[32]) << "what is ready isn't changed with the graph";
  // The pointers that were read before are invalid now.
  HIP_OK(hipGraphKernelNodeGetParams(node, &told));
  HIP_OK(hipGraphExecKernelNodeSetParams(exec, node, &told));
  exec.run();
  EXPECT_EQ(std::vector<int>(64, 3), data.get());

  const hipGraphNode_t other = graph.empty();
  HIP_REFUSES(hipErrorInvalidValue, hipGraphKernelNodeSetParams(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphKernelNodeSetParams(nullptr, &params));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphKernelNodeSetParams(other, &params));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphKernelNodeGetParams(other, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphKernelNodeGetParams(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(exec, other, &params));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(exec, node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecKernelNodeSetParams(nullptr, node, &params));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, graph, nullptr, 0, nullptr));
  params.blockDim = {0};
  HIP_REFUSES(hipErrorInvalidConfiguration,
              hipGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  params.blockDim = {32};
  params.func = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  params.func = &value;
  HIP_REFUSES(hipErrorInvalidDeviceFunction, hipGraphKernelNodeSetParams(node, &params));
}

hipMemcpy3DParms box(int* to, const int* from, size_t width, size_t height, size_t depth) {
  hipMemcpy3DParms parms{};
  parms.srcPtr = {const_cast<int*>(from), 32, 8, 4};
  parms.dstPtr = {to, 32, 8, 4};
  parms.extent = {width * 4, height, depth};
  parms.kind = hipMemcpyDeviceToDevice;
  return parms;
}

TEST(HipGraph, CopyNodesOfBoxes) {
  Buffer<int> from(64), to(64);
  std::vector<int> numbers(64);
  for (int i = 0; i < 64; ++i) numbers[static_cast<size_t>(i)] = i + 1;
  from.set(numbers);
  const Graph graph;
  hipMemcpy3DParms parms = box(to.data, from.data, 2, 3, 2);
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &parms));
  EXPECT_EQ(hipGraphNodeTypeMemcpy, type_of(node));
  const Exec exec(graph);
  exec.run();
  const std::vector<int> out = to.get();
  for (size_t i = 0; i < 64; ++i) {
    const bool within = i % 8 < 2 && i / 8 % 4 < 3;
    ASSERT_EQ(within ? numbers[i] : 0, out[i]) << i;
  }
  hipMemcpy3DParms told{};
  HIP_OK(hipGraphMemcpyNodeGetParams(node, &told));
  EXPECT_EQ(to.data, told.dstPtr.ptr);
  EXPECT_EQ(from.data, told.srcPtr.ptr);
  EXPECT_EQ(32u, told.srcPtr.pitch);
  EXPECT_EQ(8u, told.extent.width);
  EXPECT_EQ(3u, told.extent.height);
  EXPECT_EQ(2u, told.extent.depth);
  EXPECT_EQ(hipMemcpyDeviceToDevice, told.kind);
  told.dstPos = {8, 1, 1};
  told.extent = {4, 1, 1};
  HIP_OK(hipGraphExecMemcpyNodeSetParams(exec, node, &told));
  exec.run();
  EXPECT_EQ(1, to.get()[32 + 8 + 2]);
  HIP_OK(hipGraphMemcpyNodeSetParams(node, &told));
  HIP_OK(hipGraphMemcpyNodeGetParams(node, &parms));
  EXPECT_EQ(1u, parms.dstPos.z);

  const hipGraphNode_t other = graph.empty();
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemcpyNode(&node, graph, nullptr, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemcpyNodeGetParams(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemcpyNodeGetParams(other, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams(other, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams(exec, node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams(exec, other, &told));
  told.extent.depth = 9;  // beyond its end
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemcpyNodeSetParams(node, &told));
}

TEST(HipGraph, CopyNodesOfRanges) {
  Buffer<int> from(32), to(32);
  from.set(std::vector<int>(32, 6));
  const Graph graph;
  const hipGraphNode_t node = graph.copy(to.data, from.data, 8);
  const Exec exec(graph);
  exec.run();
  EXPECT_EQ(6, to.get()[7]);
  EXPECT_EQ(0, to.get()[8]);
  HIP_OK(hipGraphExecMemcpyNodeSetParams1D(exec, node, to.data + 16, from.data, 64,
                                           hipMemcpyDeviceToDevice));
  exec.run();
  EXPECT_EQ(6, to.get()[16]);
  EXPECT_EQ(0, to.get()[8]);
  HIP_OK(hipGraphMemcpyNodeSetParams1D(node, to.data + 8, from.data, 4, hipMemcpyDefault));
  hipMemcpy3DParms told{};
  HIP_OK(hipGraphMemcpyNodeGetParams(node, &told));
  EXPECT_EQ(to.data + 8, told.dstPtr.ptr);
  EXPECT_EQ(4u, told.extent.width);

  constexpr auto kKind = hipMemcpyDeviceToDevice;
  hipGraphNode_t none = nullptr;
  const hipGraphNode_t other = graph.empty();
  const auto bad = static_cast<hipMemcpyKind>(77);
  const auto add = [&](int* at, size_t bytes, hipMemcpyKind kind) {
    return hipGraphAddMemcpyNode1D(&none, graph, nullptr, 0, at, from.data, bytes, kind);
  };
  HIP_REFUSES(hipErrorInvalidValue, add(to.data, 0, kKind));
  HIP_REFUSES(hipErrorInvalidValue, add(nullptr, 4, kKind));
  HIP_REFUSES(hipErrorInvalidValue, add(to.data, 129, kKind));
  HIP_REFUSES(hipErrorInvalidMemcpyDirection, add(to.data, 4, bad));
  EXPECT_EQ(nullptr, none);
  const auto set = [&](hipGraphNode_t which, size_t bytes) {
    return hipGraphMemcpyNodeSetParams1D(which, to.data, from.data, bytes, kKind);
  };
  HIP_REFUSES(hipErrorInvalidValue, set(node, 0));
  HIP_REFUSES(hipErrorInvalidValue, set(other, 4));
  HIP_REFUSES(hipErrorInvalidValue, set(nullptr, 4));
  const auto set_ready = [&](hipGraphExec_t ready, hipGraphNode_t which, size_t bytes) {
    return hipGraphExecMemcpyNodeSetParams1D(ready, which, to.data, from.data, bytes, kKind);
  };
  HIP_REFUSES(hipErrorInvalidValue, set_ready(exec, node, 0));
  HIP_REFUSES(hipErrorInvalidValue, set_ready(exec, other, 4));
  HIP_REFUSES(hipErrorInvalidValue, set_ready(nullptr, node, 4));
}

TEST(HipGraph, CopyNodesOfVariables) {
  Program program;
  const void* counter = program.variable("counter", 4);
  Buffer<int> from(1), to(1);
  from.set({321});
  const Graph graph;
  hipGraphNode_t in = nullptr, out = nullptr;
  HIP_OK(hipGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, counter, from.data, 4, 0,
                                       hipMemcpyDeviceToDevice));
  HIP_OK(hipGraphAddMemcpyNodeFromSymbol(&out, graph, &in, 1, to.data, counter, 4, 0,
                                         hipMemcpyDeviceToDevice));
  Exec(graph).run();
  EXPECT_EQ(321, to.get()[0]);
  int value = 0;
  const auto write = [&](const void* symbol, size_t bytes, size_t offset) {
    return hipGraphAddMemcpyNodeToSymbol(&in, graph, nullptr, 0, symbol, from.data, bytes, offset,
                                         hipMemcpyDeviceToDevice);
  };
  const auto read = [&](const void* symbol, size_t bytes, size_t offset) {
    return hipGraphAddMemcpyNodeFromSymbol(&out, graph, nullptr, 0, to.data, symbol, bytes, offset,
                                           hipMemcpyDeviceToDevice);
  };
  HIP_REFUSES(hipErrorInvalidSymbol, write(nullptr, 4, 0));
  HIP_REFUSES(hipErrorInvalidSymbol, write(&value, 4, 0));
  HIP_REFUSES(hipErrorInvalidValue, write(counter, 4, 1));
  HIP_REFUSES(hipErrorInvalidSymbol, read(nullptr, 4, 0));
  HIP_REFUSES(hipErrorInvalidSymbol, read(&value, 4, 0));
  HIP_REFUSES(hipErrorInvalidValue, read(counter, 2, 3));
}

TEST(HipGraph, FillNodes) {
  const Buffer<int> data(64);
  const Graph graph;
  hipMemsetParams params{data.data, 2, 2, 64, 0x12345, 3};  // two rows of three 16-bit elements
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
  const Exec exec(graph);
  exec.run();
  std::vector<int> out = data.get();
  EXPECT_EQ(0x23452345, out[0]);
  EXPECT_EQ(0x2345, out[1]);
  EXPECT_EQ(0, out[2]);
  EXPECT_EQ(0x2345, out[17]);
  hipMemsetParams told{};
  HIP_OK(hipGraphMemsetNodeGetParams(node, &told));
  EXPECT_EQ(data.data, told.dst);
  EXPECT_EQ(2u, told.elementSize);
  EXPECT_EQ(2u, told.height);
  EXPECT_EQ(64u, told.pitch);
  EXPECT_EQ(3u, told.width);
  EXPECT_EQ(0x12345u, told.value);
  told = {data.data + 32, 1, 1, 4, 0x17, 4};
  HIP_OK(hipGraphExecMemsetNodeSetParams(exec, node, &told));
  exec.run();
  EXPECT_EQ(0x17171717, data.get()[32]);
  HIP_OK(hipGraphMemsetNodeSetParams(node, &told));
  HIP_OK(hipGraphMemsetNodeGetParams(node, &params));
  EXPECT_EQ(0x17u, params.value);

  const hipGraphNode_t other = graph.empty();
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemsetNode(&node, graph, nullptr, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemsetNodeGetParams(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemsetNodeGetParams(other, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemsetNodeSetParams(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphMemsetNodeSetParams(other, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(exec, node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(exec, other, &told));
  const hipMemsetParams bad[] = {{data.data, 3, 1, 0, 0, 1},  // elements of three bytes
                                 {nullptr, 4, 1, 0, 0, 1},
                                 {data.data, 4, 2, 4, 0, 2},    // overlapping rows
                                 {data.data, 4, 1, 0, 0, 65}};  // beyond its end
  for (const hipMemsetParams& each : bad) {
    SCOPED_TRACE(&each - bad);
    HIP_REFUSES(hipErrorInvalidValue, hipGraphMemsetNodeSetParams(node, &each));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphExecMemsetNodeSetParams(exec, node, &each));
  }
}

TEST(HipGraph, HostNodes) {
  const Graph graph;
  int number = 0, second = 0;
  const hipGraphNode_t node = graph.host(&add_ten, &number);
  const Exec exec(graph);
  exec.run();
  EXPECT_EQ(10, number);
  hipHostNodeParams told{};
  HIP_OK(hipGraphHostNodeGetParams(node, &told));
  EXPECT_EQ(&add_ten, told.fn);
  EXPECT_EQ(&number, told.userData);
  told = {&add_one_hundred, &second};
  HIP_OK(hipGraphHostNodeSetParams(node, &told));
  exec.run();
  EXPECT_EQ(20, number);
  HIP_OK(hipGraphExecHostNodeSetParams(exec, node, &told));
  exec.run();
  EXPECT_EQ(20, number);
  EXPECT_EQ(100, second);
  const hipGraphNode_t other = graph.empty();
  hipGraphNode_t none = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphHostNodeGetParams(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphHostNodeGetParams(other, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphHostNodeSetParams(other, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(exec, other, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddHostNode(&none, graph, nullptr, 0, nullptr));
  told.fn = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddHostNode(&none, graph, nullptr, 0, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphHostNodeSetParams(node, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(exec, node, &told));
}

TEST(HipGraph, EventNodesRecord) {
  const Graph graph;
  const Event first, second;
  Gate gate;
  const hipGraphNode_t held = graph.host(&Gate::wait, &gate);
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddEventRecordNode(&node, graph, &held, 1, first));
  EXPECT_EQ(hipGraphNodeTypeEventRecord, type_of(node));
  hipEvent_t told = nullptr;
  HIP_OK(hipGraphEventRecordNodeGetEvent(node, &told));
  EXPECT_EQ(first.handle, told);
  const Exec exec(graph);
  HIP_OK(hipGraphLaunch(exec, exec.stream));
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(first));
  gate.open = true;
  HIP_OK(hipEventSynchronize(first));
  HIP_OK(hipGraphEventRecordNodeSetEvent(node, second));
  HIP_OK(hipGraphEventRecordNodeGetEvent(node, &told));
  EXPECT_EQ(second.handle, told);
  HIP_OK(hipGraphExecEventRecordNodeSetEvent(exec, node, second));
  gate.open = false;
  HIP_OK(hipGraphLaunch(exec, exec.stream));
  HIP_OK(hipEventQuery(first));
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(second));
  gate.open = true;
  HIP_OK(hipEventSynchronize(second));

  HIP_REFUSES(hipErrorInvalidHandle, hipGraphAddEventRecordNode(&node, graph, nullptr, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphEventRecordNodeGetEvent(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphEventRecordNodeGetEvent(held, &told));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphEventRecordNodeSetEvent(held, first));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecEventRecordNodeSetEvent(exec, held, first));
  const hipEvent_t gone = destroyed_event();
  HIP_REFUSES(hipErrorInvalidHandle, hipGraphEventRecordNodeSetEvent(node, gone));
  HIP_REFUSES(hipErrorInvalidHandle, hipGraphExecEventRecordNodeSetEvent(exec, node, gone));
}

TEST(HipGraph, EventNodesWait) {
  const Graph graph;
  const Event first, second;
  const Stream held;
  int number = 0;
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddEventWaitNode(&node, graph, nullptr, 0, first));
  EXPECT_EQ(hipGraphNodeTypeWaitEvent, type_of(node));
  graph.host(&add_ten, &number, {node});
  const Exec exec(graph);
  exec.run();  // the event was never recorded, so there is nothing to wait for
  EXPECT_EQ(10, number);
  hipEvent_t told = nullptr;
  HIP_OK(hipGraphEventWaitNodeSetEvent(node, second));
  HIP_OK(hipGraphEventWaitNodeGetEvent(node, &told));
  EXPECT_EQ(second.handle, told);
  HIP_OK(hipGraphExecEventWaitNodeSetEvent(exec, node, second));
  Gate gate;
  HIP_OK(hipLaunchHostFunc(held, &Gate::wait, &gate));
  HIP_OK(hipEventRecord(second, held));
  HIP_OK(hipGraphLaunch(exec, exec.stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  HIP_REFUSES(hipErrorNotReady, hipStreamQuery(exec.stream));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(exec.stream));
  EXPECT_EQ(20, number);
  HIP_REFUSES(hipErrorInvalidHandle,
              hipGraphAddEventWaitNode(&node, graph, nullptr, 0, destroyed_event()));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphEventWaitNodeGetEvent(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphEventRecordNodeGetEvent(node, &told));
  HIP_REFUSES(hipErrorInvalidHandle, hipGraphEventWaitNodeSetEvent(node, nullptr));
  HIP_REFUSES(hipErrorInvalidHandle, hipGraphExecEventWaitNodeSetEvent(exec, node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecEventWaitNodeSetEvent(nullptr, node, first));
}

TEST(HipGraph, ChildNodesAreCopies) {
  int number = 0;
  const Graph graph;
  auto child = std::make_unique<Graph>();
  const hipGraphNode_t inner = child->host(&add_ten, &number);
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, *child));
  EXPECT_EQ(hipGraphNodeTypeGraph, type_of(node));
  graph.host(&add_one_hundred, &number, {node});
  child->host(&add_ten, &number, {inner});  // the graph has a clone made before this change
  const Exec exec(graph);
  exec.run();
  EXPECT_EQ(110, number);
  hipGraph_t told = nullptr;
  HIP_OK(hipGraphChildGraphNodeGetGraph(node, &told));
  EXPECT_NE(child->handle, told);
  EXPECT_EQ(1u, Graph::list(&hipGraphGetNodes, told).size());
  HIP_REFUSES(hipErrorInvalidValue, hipGraphChildGraphNodeGetGraph(node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphChildGraphNodeGetGraph(inner, &told));
  HIP_REFUSES(hipErrorInvalidValue,
              hipGraphAddChildGraphNode(&node, graph, nullptr, 0, destroyed_graph()));
}

TEST(HipGraph, ChildrenAreExchangedForSuchOfTheirForm) {
  int number = 0;
  const Graph graph, child, same, longer, other_type;
  child.host(&add_ten, &number);
  same.host(&add_one_hundred, &number);
  longer.host(&add_ten, &number, {longer.host(&add_ten, &number)});
  other_type.empty();
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  const Exec exec(graph);
  HIP_OK(hipGraphExecChildGraphNodeSetParams(exec, node, same));
  exec.run();
  EXPECT_EQ(100, number);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecChildGraphNodeSetParams(exec, node, longer));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecChildGraphNodeSetParams(exec, node, other_type));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecChildGraphNodeSetParams(exec, node, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecChildGraphNodeSetParams(nullptr, node, same));
  exec.run();
  EXPECT_EQ(200, number);
}

hipMemAllocNodeParams block_of(size_t bytes) {
  hipMemAllocNodeParams params{};
  params.poolProps.allocType = hipMemAllocationTypePinned;
  params.poolProps.location = {hipMemLocationTypeDevice, 0};
  params.bytesize = bytes;
  return params;
}

TEST(HipGraph, MemoryNodes) {
  const Buffer<int> out(32);
  hipMemAllocNodeParams params = block_of(128);
  size_t before = 0, after = 0;
  HIP_OK(hipMemGetInfo(&before, nullptr));
  {
    const Graph graph;
    hipGraphNode_t had = nullptr, given = nullptr;
    HIP_OK(hipGraphAddMemAllocNode(&had, graph, nullptr, 0, &params));
    EXPECT_EQ(hipGraphNodeTypeMemAlloc, type_of(had));
    auto* block = static_cast<int*>(params.dptr);
    ASSERT_NE(nullptr, block);
    const hipGraphNode_t used = graph.copy(out.data, block, 32, {graph.fill(block, 9, 32, {had})});
    HIP_OK(hipGraphAddMemFreeNode(&given, graph, &used, 1, block));
    EXPECT_EQ(hipGraphNodeTypeMemFree, type_of(given));
    hipMemAllocNodeParams told{};
    HIP_OK(hipGraphMemAllocNodeGetParams(had, &told));
    EXPECT_EQ(block, told.dptr);
    EXPECT_EQ(128u, told.bytesize);
    void* freed = nullptr;
    HIP_OK(hipGraphMemFreeNodeGetParams(given, &freed));
    EXPECT_EQ(block, freed);
    const Exec exec(graph);
    for (int i = 0; i < 2; ++i) {
      HIP_OK(hipMemset(out.data, 0, 128));
      HIP_OK(hipDeviceSynchronize());
      exec.run();
      EXPECT_EQ(std::vector<int>(32, 9), out.get());
    }
    HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&given, graph, nullptr, 0, block));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&given, graph, nullptr, 0, nullptr));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemFreeNode(&given, graph, nullptr, 0, out.data));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphMemFreeNodeGetParams(given, nullptr));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphMemFreeNodeGetParams(had, &freed));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphMemAllocNodeGetParams(had, nullptr));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphMemAllocNodeGetParams(used, &told));
  }
  HIP_OK(hipDeviceGraphMemTrim(0));
  HIP_REFUSES(hipErrorInvalidDevice, hipDeviceGraphMemTrim(1000));
  HIP_OK(hipMemGetInfo(&after, nullptr));
  EXPECT_EQ(before, after) << "the memory goes with the graph";
}

TEST(HipGraph, MemoryNodesThatCannotBe) {
  const Graph graph;
  hipGraphNode_t node = nullptr;
  size_t before = 0, after = 0, total = 0;
  HIP_OK(hipMemGetInfo(&before, &total));
  hipMemAllocNodeParams params = block_of(0);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  params = block_of(total + 1);
  HIP_REFUSES(hipErrorOutOfMemory, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  params = block_of(64);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 1, &params));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemAllocNode(nullptr, graph, nullptr, 0, &params));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, nullptr, nullptr, 0, &params));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, nullptr));
  EXPECT_EQ(nullptr, params.dptr);
  params.poolProps.location.type = hipMemLocationTypeInvalid;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  params = block_of(64);
  params.poolProps.allocType = hipMemAllocationTypeInvalid;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  HIP_OK(hipMemGetInfo(&after, nullptr));
  EXPECT_EQ(before, after) << "what is refused takes nothing";
  EXPECT_TRUE(graph.nodes().empty());
}

/// A graph's memory stays with the graph when the caller frees it in stream order.
TEST(HipGraph, MemoryFreedOutsideIsThereAtTheNextLaunch) {
  const Kernels kernels;
  const Graph graph;
  hipMemAllocNodeParams params = block_of(128);
  hipGraphNode_t node = nullptr;
  HIP_OK(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  auto* block = static_cast<int*>(params.dptr);
  graph.fill(block, 5, 32, {node});
  const Exec exec(graph);
  for (int i = 0; i < 2; ++i) {
    exec.run();
    EXPECT_EQ(5, block[31]);
    HIP_OK(hipFreeAsync(block, exec.stream));
    HIP_OK(hipStreamSynchronize(exec.stream));
  }
}

/// A running graph keeps its memory when its last handle is destroyed.
TEST(HipGraph, MemoryStaysUntilTheGraphHasRun) {
  const Buffer<int> out(32);
  const Stream stream;
  Gate gate;
  size_t before = 0, held = 0, after = 0;
  HIP_OK(hipMemGetInfo(&before, nullptr));
  hipGraphExec_t exec = nullptr;
  {
    const Graph graph;
    hipMemAllocNodeParams params = block_of(128);
    hipGraphNode_t had = nullptr;
    HIP_OK(hipGraphAddMemAllocNode(&had, graph, nullptr, 0, &params));
    auto* block = static_cast<int*>(params.dptr);
    const hipGraphNode_t waiting = graph.host(&Gate::wait, &gate, {had});
    graph.copy(out.data, block, 32, {graph.fill(block, 3, 32, {waiting})});
    HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  }
  HIP_OK(hipGraphLaunch(exec, stream));
  HIP_OK(hipGraphExecDestroy(exec));
  HIP_OK(hipMemGetInfo(&held, nullptr));
  EXPECT_LT(held, before);
  gate.open = true;
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(std::vector<int>(32, 3), out.get());
  HIP_OK(hipMemGetInfo(&after, nullptr));
  EXPECT_EQ(before, after);
}

}  // namespace
