#pragma once

// Helpers that the graph tests share.

#include "emu/tests/hip_stream_support.h"

using Nodes = std::vector<hipGraphNode_t>;

/// A graph, built explicitly or by capture, that is destroyed at the end of its scope.
struct Graph {
  Graph() { EXPECT_EQ(hipSuccess, hipGraphCreate(&handle, 0)); }
  explicit Graph(hipGraph_t made) : handle(made) {}
  ~Graph() { EXPECT_EQ(hipSuccess, hipGraphDestroy(handle)); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  operator hipGraph_t() const { return handle; }

  hipGraphNode_t empty(const Nodes& after = {}) const {
    hipGraphNode_t node = nullptr;
    EXPECT_EQ(hipSuccess, hipGraphAddEmptyNode(&node, handle, after.data(), after.size()));
    return node;
  }
  hipGraphNode_t host(hipHostFn_t function, void* data, const Nodes& after = {}) const {
    const hipHostNodeParams params{function, data};
    hipGraphNode_t node = nullptr;
    EXPECT_EQ(hipSuccess, hipGraphAddHostNode(&node, handle, after.data(), after.size(), &params));
    return node;
  }
  /// Adds a node that fills `count` ints.
  hipGraphNode_t fill(int* to, unsigned value, size_t count, const Nodes& after = {}) const {
    const hipMemsetParams params{to, 4, 1, count * 4, value, count};
    hipGraphNode_t node = nullptr;
    EXPECT_EQ(hipSuccess,
              hipGraphAddMemsetNode(&node, handle, after.data(), after.size(), &params));
    return node;
  }
  hipGraphNode_t copy(int* to, const int* from, size_t count, const Nodes& after = {}) const {
    hipGraphNode_t node = nullptr;
    EXPECT_EQ(hipSuccess, hipGraphAddMemcpyNode1D(&node, handle, after.data(), after.size(), to,
                                                  from, count * 4, hipMemcpyDeviceToDevice));
    return node;
  }

  Nodes nodes() const { return list(&hipGraphGetNodes, handle); }
  Nodes roots() const { return list(&hipGraphGetRootNodes, handle); }
  static Nodes before(hipGraphNode_t node) { return list(&hipGraphNodeGetDependencies, node); }
  static Nodes after(hipGraphNode_t node) { return list(&hipGraphNodeGetDependentNodes, node); }

  /// Returns everything that a list function returns, obtained in two calls.
  template <class Handle>
  static Nodes list(hipError_t (*function)(Handle, hipGraphNode_t*, size_t*), Handle handle) {
    size_t count = 0;
    EXPECT_EQ(hipSuccess, function(handle, nullptr, &count));
    Nodes nodes(count);
    EXPECT_EQ(hipSuccess, function(handle, nodes.data(), &count));
    EXPECT_EQ(nodes.size(), count);
    return nodes;
  }

  hipGraph_t handle = nullptr;
};

/// An executable graph, and its launch.
struct Exec {
  explicit Exec(hipGraph_t graph) {
    EXPECT_EQ(hipSuccess, hipGraphInstantiate(&handle, graph, nullptr, nullptr, 0));
  }
  ~Exec() { EXPECT_EQ(hipSuccess, hipGraphExecDestroy(handle)); }
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  operator hipGraphExec_t() const { return handle; }
  void run() const {
    EXPECT_EQ(hipSuccess, hipGraphLaunch(handle, stream));
    EXPECT_EQ(hipSuccess, hipStreamSynchronize(stream));
  }
  hipGraphExec_t handle = nullptr;
  const Stream stream;
};

inline void add_ten(void* to) { *static_cast<int*>(to) += 10; }
inline void add_one_hundred(void* to) { *static_cast<int*>(to) += 100; }

inline hipGraphNodeType type_of(hipGraphNode_t node) {
  hipGraphNodeType type = hipGraphNodeTypeCount;
  EXPECT_EQ(hipSuccess, hipGraphNodeGetType(node, &type));
  return type;
}

/// Returns the handle of a destroyed graph.
inline hipGraph_t destroyed_graph() { return Graph().handle; }
