// Graphs: nodes and edges, clones, executable graphs and their updates, and user objects.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "emu/tests/hip_graph_support.h"

namespace {

TEST(HipGraph, ListsNodesAndEdges) {
  const Graph graph;
  const hipGraphNode_t a = graph.empty(), b = graph.empty({a}), c = graph.empty({a}),
                       d = graph.empty({b, c});
  EXPECT_EQ((Nodes{a, b, c, d}), graph.nodes());
  EXPECT_EQ(Nodes{a}, graph.roots());
  EXPECT_EQ(Nodes{}, Graph::before(a));
  EXPECT_EQ((Nodes{b, c}), Graph::after(a));
  EXPECT_EQ((Nodes{b, c}), Graph::before(d));
  EXPECT_EQ(Nodes{}, Graph::after(d));
  size_t count = 0;
  HIP_OK(hipGraphGetEdges(graph, nullptr, nullptr, &count));
  ASSERT_EQ(4u, count);
  Nodes from(4), to(4);
  HIP_OK(hipGraphGetEdges(graph, from.data(), to.data(), &count));
  std::set<std::pair<hipGraphNode_t, hipGraphNode_t>> edges;
  for (size_t i = 0; i < 4; ++i) edges.emplace(from[i], to[i]);
  EXPECT_EQ((decltype(edges){{a, b}, {a, c}, {b, d}, {c, d}}), edges);
}

/// A list with less room is filled; one with more room gets null handles at its end.
TEST(HipGraph, ListsAsMuchAsThereIsRoomFor) {
  const Graph graph;
  const hipGraphNode_t a = graph.empty(), b = graph.empty({a}), c = graph.empty({b});
  Nodes few(3, c);
  size_t count = 2;
  HIP_OK(hipGraphGetNodes(graph, few.data(), &count));
  EXPECT_EQ(2u, count);
  EXPECT_EQ((Nodes{a, b, c}), few);
  Nodes many(5, c);
  count = 5;
  HIP_OK(hipGraphGetNodes(graph, many.data(), &count));
  EXPECT_EQ(3u, count);
  EXPECT_EQ((Nodes{a, b, c, nullptr, nullptr}), many);
  Nodes from(2, c), to(2, a);
  count = 1;
  HIP_OK(hipGraphGetEdges(graph, from.data(), to.data(), &count));
  EXPECT_EQ(1u, count);
  EXPECT_EQ((Nodes{a, c}), from);
  EXPECT_EQ((Nodes{b, a}), to);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphGetEdges(graph, from.data(), nullptr, &count));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphGetEdges(graph, nullptr, nullptr, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphGetNodes(graph, nullptr, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphGetRootNodes(graph, nullptr, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetDependencies(a, nullptr, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetDependentNodes(a, nullptr, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetType(a, nullptr));
}

TEST(HipGraph, EdgesComeAndGo) {
  const Graph graph, other;
  const hipGraphNode_t a = graph.empty(), b = graph.empty(), foreign = other.empty();
  HIP_OK(hipGraphAddDependencies(graph, &a, &b, 1));
  EXPECT_EQ(Nodes{a}, Graph::before(b));
  // The edge already exists.
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, &b, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &b, &a, 1));  // a cycle
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, &a, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, &foreign, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddDependencies(graph, nullptr, &b, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &a, nullptr, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddDependencies(nullptr, &a, &b, 1));
  HIP_OK(hipGraphAddDependencies(graph, nullptr, nullptr, 0));
  EXPECT_EQ(Nodes{b}, Graph::after(a));
  HIP_OK(hipGraphRemoveDependencies(graph, &a, &b, 1));
  EXPECT_EQ(Nodes{}, Graph::before(b));
  EXPECT_EQ(Nodes{}, Graph::after(a));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphRemoveDependencies(graph, &a, &b, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphRemoveDependencies(graph, nullptr, &b, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphRemoveDependencies(nullptr, &a, &b, 1));
  // There is no such edge in the other direction.
  HIP_OK(hipGraphAddDependencies(graph, &b, &a, 1));
  EXPECT_EQ(Nodes{b}, graph.roots());
}

TEST(HipGraph, LongCirclesAreRefused) {
  const Graph graph;
  Nodes chain{graph.empty()};
  for (int i = 0; i < 50; ++i) chain.push_back(graph.empty({chain.back()}));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddDependencies(graph, &chain.back(), &chain[0], 1));
  HIP_OK(hipGraphAddDependencies(graph, &chain[0], &chain.back(), 1));
}

TEST(HipGraph, NodesAreRefusedAfterWhatIsNone) {
  const Graph graph, other;
  const hipGraphNode_t a = graph.empty(), foreign = other.empty();
  hipGraphNode_t node = nullptr;
  const hipGraphNode_t twice[] = {a, a}, none[] = {nullptr};
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddEmptyNode(nullptr, graph, nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, nullptr, nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, destroyed_graph(), nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, nullptr, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, none, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, twice, 2));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphAddEmptyNode(&node, graph, &foreign, 1));
  EXPECT_EQ(Nodes{a}, graph.nodes());
  EXPECT_EQ(nullptr, node);
}

TEST(HipGraph, NodesGoWithTheirEdges) {
  int number = 0;
  const Graph graph;
  const hipGraphNode_t a = graph.host(&add_ten, &number), b = graph.host(&add_ten, &number, {a}),
                       c = graph.host(&add_one_hundred, &number, {b});
  const Exec before(graph);
  HIP_OK(hipGraphDestroyNode(b));
  EXPECT_EQ((Nodes{a, c}), graph.nodes());
  EXPECT_EQ(Nodes{}, Graph::before(c));
  EXPECT_EQ(Nodes{}, Graph::after(a));
  hipGraphNodeType type;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphDestroyNode(b));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphDestroyNode(nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetType(b, &type));
  Exec(graph).run();
  EXPECT_EQ(110, number);
  before.run();
  EXPECT_EQ(230, number);
  // A new node isn't known to an older executable graph, even if it has the old node's address.
  const hipHostNodeParams params{&add_ten, &number};
  for (int i = 0; i < 20; ++i) {
    const hipGraphNode_t made = graph.empty();
    HIP_REFUSES(hipErrorInvalidValue, hipGraphExecHostNodeSetParams(before, made, &params));
    HIP_OK(hipGraphDestroyNode(made));
  }
}

TEST(HipGraph, DestroyedOnesAreRefused) {
  hipGraph_t graph = nullptr;
  size_t count = 0;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphCreate(nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphCreate(&graph, 1));
  hipGraphNode_t node = nullptr;
  {
    const Graph short_lived;
    node = short_lived.empty();
    graph = short_lived;
  }
  hipGraphExec_t exec = nullptr;
  for (const hipGraph_t bad : {graph, hipGraph_t{nullptr}}) {
    hipGraph_t copy = nullptr;
    HIP_REFUSES(hipErrorInvalidValue, hipGraphDestroy(bad));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphClone(&copy, bad));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphGetNodes(bad, nullptr, &count));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphGetRootNodes(bad, nullptr, &count));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphGetEdges(bad, nullptr, nullptr, &count));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphInstantiate(&exec, bad, nullptr, nullptr, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphInstantiateWithFlags(&exec, bad, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphDebugDotPrint(bad, "/dev/null", 0));
  }
  EXPECT_EQ(nullptr, exec);
  HIP_REFUSES(hipErrorInvalidValue, hipGraphDestroyNode(node));  // it was destroyed with its graph
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetDependencies(node, nullptr, &count));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetDependentNodes(node, nullptr, &count));
}

TEST(HipGraph, CopiesAreTheirOwn) {
  int number = 0;
  const Graph graph;
  const hipGraphNode_t a = graph.host(&add_ten, &number), b = graph.host(&add_ten, &number, {a});
  hipGraph_t made = nullptr;
  HIP_OK(hipGraphClone(&made, graph));
  const Graph copy(made);
  hipGraphNode_t a_there = nullptr, b_there = nullptr;
  HIP_OK(hipGraphNodeFindInClone(&a_there, a, copy));
  HIP_OK(hipGraphNodeFindInClone(&b_there, b, copy));
  EXPECT_EQ((Nodes{a_there, b_there}), copy.nodes());
  EXPECT_EQ(Nodes{a_there}, Graph::before(b_there));
  EXPECT_NE(a, a_there);
  const hipHostNodeParams params{&add_one_hundred, &number};
  HIP_OK(hipGraphHostNodeSetParams(b_there, &params));
  Exec(copy).run();
  EXPECT_EQ(110, number);
  Exec(graph).run();
  EXPECT_EQ(130, number);
  const hipGraphNode_t later = graph.empty();
  hipGraphNode_t found = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, later, copy));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, a_there, copy));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, a, graph));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeFindInClone(nullptr, a, copy));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, nullptr, copy));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeFindInClone(&found, a, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphClone(nullptr, graph));
  EXPECT_EQ(nullptr, found);
}

// --- executable graphs

TEST(HipGraph, MadeReadyWithFlags) {
  const Graph graph;
  graph.empty();
  for (const unsigned flags : {0, 1, 2, 8, 11}) {
    hipGraphExec_t exec = nullptr;
    unsigned long long told = 99;
    HIP_OK(hipGraphInstantiateWithFlags(&exec, graph, flags));
    HIP_OK(hipGraphExecGetFlags(exec, &told));
    EXPECT_EQ(flags, told);
    HIP_REFUSES(hipErrorInvalidValue, hipGraphExecGetFlags(exec, nullptr));
    HIP_OK(hipGraphExecDestroy(exec));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphExecDestroy(exec));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphExecGetFlags(exec, &told));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphLaunch(exec, nullptr));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphUpload(exec, nullptr));
  }
  hipGraphExec_t exec = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphInstantiateWithFlags(&exec, graph, 16));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphInstantiateWithFlags(nullptr, graph, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphInstantiate(nullptr, graph, nullptr, nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecDestroy(nullptr));
  char log[4] = "abc";
  hipGraphNode_t culprit = graph.nodes()[0];
  HIP_OK(hipGraphInstantiate(&exec, graph, &culprit, log, sizeof log));
  EXPECT_STREQ("", log);
  EXPECT_EQ(nullptr, culprit);
  HIP_OK(hipGraphExecDestroy(exec));
}

TEST(HipGraph, UploadsAndLaunches) {
  int number = 0;
  const Graph graph;
  graph.host(&add_ten, &number);
  const Exec exec(graph);
  HIP_OK(hipGraphUpload(exec, exec.stream));
  HIP_OK(hipStreamSynchronize(exec.stream));
  EXPECT_EQ(0, number);
  HIP_OK(hipGraphLaunch(exec, nullptr));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(10, number);
  HIP_REFUSES(hipErrorContextIsDestroyed, hipGraphUpload(exec, destroyed_stream()));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipGraphLaunch(exec, destroyed_stream()));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphLaunch(nullptr, exec.stream));
}

TEST(HipGraph, NodesAreSwitchedOffAndOn) {
  const Buffer<int> data(32);
  const Graph graph;
  const hipGraphNode_t first = graph.fill(data.data, 1, 32),
                       second = graph.fill(data.data, 2, 16, {first}), other = graph.empty();
  const Exec exec(graph);
  unsigned enabled = 99;
  HIP_OK(hipGraphNodeGetEnabled(exec, second, &enabled));
  EXPECT_EQ(1u, enabled);
  HIP_OK(hipGraphNodeSetEnabled(exec, second, 0));
  HIP_OK(hipGraphNodeGetEnabled(exec, second, &enabled));
  EXPECT_EQ(0u, enabled);
  exec.run();
  EXPECT_EQ(1, data.get()[0]);
  // Setting parameters leaves the node disabled.
  const hipMemsetParams params{data.data, 4, 1, 0, 3, 16};
  HIP_OK(hipGraphExecMemsetNodeSetParams(exec, second, &params));
  exec.run();
  EXPECT_EQ(1, data.get()[0]);
  HIP_OK(hipGraphNodeSetEnabled(exec, second, 1));
  exec.run();
  EXPECT_EQ(3, data.get()[0]);
  EXPECT_EQ(1, data.get()[16]);
  // Nodes of this type can't be disabled.
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeSetEnabled(exec, other, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetEnabled(exec, other, &enabled));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetEnabled(exec, second, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeSetEnabled(exec, nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeSetEnabled(nullptr, second, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphNodeGetEnabled(nullptr, second, &enabled));
}

/// Tries an update that must fail, and returns its result.
hipGraphExecUpdateResult failure(hipGraphExec_t exec, hipGraph_t wanted, hipGraphNode_t* culprit) {
  hipGraphExecUpdateResult result = hipGraphExecUpdateSuccess;
  HIP_REFUSES(hipErrorGraphExecUpdateFailure, hipGraphExecUpdate(exec, wanted, culprit, &result));
  return result;
}

TEST(HipGraph, UpdatesThatDontFitAreRefusedWhole) {
  int number = 0;
  const Buffer<int> data(32);
  const Graph graph, longer, other_edges, other_type, other_kind;
  const auto build = [&](const Graph& g, bool chained) {
    const hipGraphNode_t a = g.host(&add_ten, &number);
    return g.copy(data.data, data.data + 16, 4, chained ? Nodes{a} : Nodes{});
  };
  build(graph, true);
  const Exec exec(graph);
  hipGraphNode_t culprit = nullptr;
  build(longer, true);
  longer.empty();
  EXPECT_EQ(hipGraphExecUpdateErrorTopologyChanged, failure(exec, longer, &culprit));
  const hipGraphNode_t alone = build(other_edges, false);
  EXPECT_EQ(hipGraphExecUpdateErrorTopologyChanged, failure(exec, other_edges, &culprit));
  EXPECT_EQ(alone, culprit);
  const hipGraphNode_t filled =
      other_type.fill(data.data, 1, 4, {other_type.host(&add_one_hundred, &number)});
  EXPECT_EQ(hipGraphExecUpdateErrorNodeTypeChanged, failure(exec, other_type, &culprit));
  EXPECT_EQ(filled, culprit);
  const hipGraphNode_t copied = build(other_kind, true);
  HIP_OK(hipGraphMemcpyNodeSetParams1D(copied, data.data, data.data + 16, 16, hipMemcpyDefault));
  EXPECT_EQ(hipGraphExecUpdateErrorParametersChanged, failure(exec, other_kind, &culprit));
  EXPECT_EQ(copied, culprit);
  exec.run();
  EXPECT_EQ(10, number) << "a refused update changes nothing";
  hipGraphExecUpdateResult result;
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecUpdate(nullptr, graph, &culprit, &result));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecUpdate(exec, nullptr, &culprit, &result));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecUpdate(exec, graph, nullptr, &result));
  HIP_REFUSES(hipErrorInvalidValue, hipGraphExecUpdate(exec, graph, &culprit, nullptr));
}

TEST(HipGraph, UpdatesReachIntoChildren) {
  int number = 0;
  const auto with_child = [&](const Graph& outer, hipHostFn_t function, bool two) {
    const Graph child;
    const hipGraphNode_t a = child.host(function, &number);
    if (two) child.host(function, &number, {a});
    hipGraphNode_t node = nullptr;
    EXPECT_EQ(hipSuccess, hipGraphAddChildGraphNode(&node, outer, nullptr, 0, child));
    return node;
  };
  const Graph graph, same, longer;
  with_child(graph, &add_ten, false);
  const hipGraphNode_t wanted = with_child(same, &add_one_hundred, false);
  const hipGraphNode_t too_long = with_child(longer, &add_ten, true);
  const Exec exec(graph);
  hipGraphNode_t culprit = nullptr;
  EXPECT_EQ(hipGraphExecUpdateErrorTopologyChanged, failure(exec, longer, &culprit));
  EXPECT_EQ(too_long, culprit);
  hipGraphExecUpdateResult result;
  HIP_OK(hipGraphExecUpdate(exec, same, &culprit, &result));
  EXPECT_EQ(hipGraphExecUpdateSuccess, result);
  EXPECT_EQ(nullptr, culprit);
  hipGraph_t child = nullptr;  // changing the graph no longer affects the executable graph
  HIP_OK(hipGraphChildGraphNodeGetGraph(wanted, &child));
  const hipHostNodeParams params{&add_ten, &number};
  HIP_OK(hipGraphHostNodeSetParams(Graph::list(&hipGraphGetNodes, child)[0], &params));
  exec.run();
  EXPECT_EQ(100, number);
}

/// Nodes are found by the graph that was instantiated and by the graph of the last update.
TEST(HipGraph, NodesAreKnownAfterAnUpdate) {
  const Buffer<int> data(32);
  const Graph graph, next;
  const hipGraphNode_t first = graph.fill(data.data, 1, 32), second = next.fill(data.data, 2, 32);
  const Exec exec(graph);
  HIP_OK(hipGraphNodeSetEnabled(exec, first, 0));
  hipGraphNode_t culprit = nullptr;
  hipGraphExecUpdateResult result;
  HIP_OK(hipGraphExecUpdate(exec, next, &culprit, &result));
  exec.run();
  EXPECT_EQ(0, data.get()[0]) << "what was off stays so";
  HIP_OK(hipGraphNodeSetEnabled(exec, second, 1));
  exec.run();
  EXPECT_EQ(2, data.get()[0]);
  const hipMemsetParams params{data.data, 4, 1, 0, 5, 32};
  HIP_OK(hipGraphExecMemsetNodeSetParams(exec, first, &params));
  exec.run();
  EXPECT_EQ(5, data.get()[0]);
}

/// An update during a launch doesn't change the launch, which finishes before later launches.
TEST(HipGraph, UpdatesDontReachWhatRuns) {
  Gate gate;
  int number = 1;
  const Graph graph, next;
  const auto build = [&](const Graph& g, hipHostFn_t function) {
    g.host(function, &number, {g.host(&Gate::wait, &gate)});
  };
  build(graph, &add_ten);
  build(next, [](void* to) { *static_cast<int*>(to) *= 2; });
  const Exec exec(graph);
  HIP_OK(hipGraphLaunch(exec, exec.stream));
  hipGraphNode_t culprit = nullptr;
  hipGraphExecUpdateResult result;
  HIP_OK(hipGraphExecUpdate(exec, next, &culprit, &result));
  const Stream other;
  HIP_OK(hipGraphLaunch(exec, other));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(exec.stream));
  HIP_OK(hipStreamSynchronize(other));
  EXPECT_EQ(22, number);
}

TEST(HipGraph, DrawnAsText) {
  const Kernels kernels;
  const Graph graph;
  int value = 0;
  const Buffer<int> data(32);
  void* list[] = {const_cast<int**>(&data.data), &value};
  const hipKernelNodeParams params{{32}, nullptr, kernels["set_to"], {1}, list, 0};
  hipGraphNode_t node = nullptr;
  const hipGraphNode_t root = graph.empty();
  HIP_OK(hipGraphAddKernelNode(&node, graph, &root, 1, &params));
  const std::string path = testing::TempDir() + "wick_emu_graph.dot";
  HIP_OK(hipGraphDebugDotPrint(graph, path.c_str(), 0));
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(0u, text.find("digraph")) << text;
  EXPECT_NE(std::string::npos, text.find("set_to")) << text;
  EXPECT_EQ(1, std::count(text.begin(), text.end(), '>')) << text;
  std::remove(path.c_str());
  HIP_REFUSES(hipErrorInvalidValue, hipGraphDebugDotPrint(graph, nullptr, 0));
  HIP_REFUSES(hipErrorOperatingSystem, hipGraphDebugDotPrint(graph, "/no/such/folder/file", 0));
}

// --- user objects

hipUserObject_t object_of(int* destroyed, unsigned references = 1) {
  hipUserObject_t object = nullptr;
  EXPECT_EQ(hipSuccess, hipUserObjectCreate(&object, destroyed, &add_ten, references,
                                            hipUserObjectNoDestructorSync));
  return object;
}

TEST(HipGraph, ObjectsGoWithTheirLastReference) {
  int destroyed = 0;
  const hipUserObject_t object = object_of(&destroyed, 2);
  HIP_OK(hipUserObjectRetain(object, 3));
  HIP_OK(hipUserObjectRelease(object, 4));
  EXPECT_EQ(0, destroyed);
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRelease(object, 2));  // more references than exist
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRelease(object, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRetain(object, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRelease(object, ~0u));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRetain(object, 1u << 31));
  HIP_OK(hipUserObjectRelease(object, 1));
  EXPECT_EQ(10, destroyed);
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRelease(object, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRetain(object, 1));
  hipUserObject_t none = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectCreate(nullptr, &destroyed, &add_ten, 1, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectCreate(&none, &destroyed, nullptr, 1, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectCreate(&none, &destroyed, &add_ten, 0, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectCreate(&none, &destroyed, &add_ten, ~0u, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectCreate(&none, &destroyed, &add_ten, 1, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRelease(nullptr, 1));
  EXPECT_EQ(10, destroyed);
}

/// References that a graph has taken over are released with the graph and the graphs made from it.
TEST(HipGraph, ObjectsLiveAsLongAsGraphsHoldThem) {
  int destroyed = 0;
  auto graph = std::make_unique<Graph>();
  graph->empty();
  const hipUserObject_t object = object_of(&destroyed);
  HIP_OK(hipGraphRetainUserObject(*graph, object, 1, hipGraphUserObjectMove));
  hipGraph_t made = nullptr;
  HIP_OK(hipGraphClone(&made, *graph));
  auto copy = std::make_unique<Graph>(made);
  auto exec = std::make_unique<Exec>(*graph);
  graph.reset();
  EXPECT_EQ(0, destroyed);
  copy.reset();
  EXPECT_EQ(0, destroyed);
  exec->run();
  exec.reset();
  EXPECT_EQ(10, destroyed);
  HIP_REFUSES(hipErrorInvalidValue, hipUserObjectRetain(object, 1));
}

TEST(HipGraph, ObjectsAreTheCallersToo) {
  int destroyed = 0;
  const hipUserObject_t object = object_of(&destroyed);
  {
    const Graph graph;
    HIP_OK(hipGraphRetainUserObject(graph, object, 2, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphReleaseUserObject(graph, object, 3));
    HIP_OK(hipGraphReleaseUserObject(graph, object, 1));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphReleaseUserObject(graph, object, 2));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphReleaseUserObject(graph, object, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphRetainUserObject(graph, object, 0, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphRetainUserObject(graph, object, ~0u, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphRetainUserObject(graph, object, 1, 2));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphRetainUserObject(nullptr, object, 1, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphRetainUserObject(graph, nullptr, 1, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphReleaseUserObject(nullptr, object, 1));
    HIP_REFUSES(hipErrorInvalidValue, hipGraphReleaseUserObject(graph, nullptr, 1));
  }
  EXPECT_EQ(0, destroyed) << "the caller's own is left";
  HIP_OK(hipUserObjectRelease(object, 1));
  EXPECT_EQ(10, destroyed);
}

/// The destroy function is called without locks, since it may wait for a thread that is in a call.
TEST(HipGraph, ObjectsAreDestroyedWhileOthersCall) {
  const hipHostFn_t call_elsewhere = [](void* called) {
    std::thread([called] {
      const Graph graph;
      graph.empty();
      *static_cast<bool*>(called) = true;
    }).join();
  };
  bool called[2] = {};
  hipUserObject_t objects[2];
  for (int i = 0; i < 2; ++i) {
    HIP_OK(hipUserObjectCreate(&objects[i], &called[i], call_elsewhere, 1, 1));
  }
  HIP_OK(hipUserObjectRelease(objects[0], 1));
  EXPECT_TRUE(called[0]);
  {
    const Graph graph;
    HIP_OK(hipGraphRetainUserObject(graph, objects[1], 1, hipGraphUserObjectMove));
  }
  EXPECT_TRUE(called[1]);
}

TEST(HipGraph, ObjectsStayUntilTheGraphHasRun) {
  int destroyed = 0;
  Gate gate;
  const Stream stream;
  hipGraphExec_t exec = nullptr;
  {
    const Graph graph;
    graph.host(&Gate::wait, &gate);
    HIP_OK(hipGraphRetainUserObject(graph, object_of(&destroyed), 1, hipGraphUserObjectMove));
    HIP_OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  }
  HIP_OK(hipGraphLaunch(exec, stream));
  HIP_OK(hipGraphExecDestroy(exec));
  EXPECT_EQ(0, destroyed);
  gate.open = true;
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(10, destroyed);
}

// The following tests run with two devices.

TEST(HipDevices, UpdatesKeepKernelsOnTheirDevice) {
  const char* const files[] = {"basic.gfx1100.hsaco", "basic.gfx90a.hsaco"};
  const Graph graphs[2];
  std::vector<std::unique_ptr<Kernels>> kernels;
  hipGraphNode_t nodes[2] = {};
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipSetDevice(device));
    kernels.push_back(std::make_unique<Kernels>(files[device]));
    void* data = nullptr;
    int value = 1;
    void* list[] = {&data, &value};
    const hipKernelNodeParams params{{32}, nullptr, (*kernels.back())["set_to"], {1}, list, 0};
    HIP_OK(hipGraphAddKernelNode(&nodes[device], graphs[device], nullptr, 0, &params));
  }
  HIP_OK(hipSetDevice(0));
  const Exec exec(graphs[0]);
  hipGraphNode_t culprit = nullptr;
  EXPECT_EQ(hipGraphExecUpdateErrorUnsupportedFunctionChange, failure(exec, graphs[1], &culprit));
  EXPECT_EQ(nodes[1], culprit);
}

}  // namespace
