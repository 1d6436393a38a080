#pragma once

// Finds graphs and nodes by their handles.

#include <memory>

#include "emu/hip/api.h"

namespace emu::hip {

Handles<Graph>& graphs();
Handles<GraphExec>& graph_execs();

/// These functions throw if the handle is unknown. The caller must hold graph_mutex().
std::shared_ptr<Graph> find_graph(hipGraph_t handle);
std::shared_ptr<GraphExec> find_exec(hipGraphExec_t handle);
Node* find_node(hipGraphNode_t handle);
/// Returns the node of an executable graph that corresponds to the original graph's node.
Node* node_of(GraphExec& exec, hipGraphNode_t handle);
hipGraphNode_t handle_of(const Node* node);

/// Adds a node and its dependencies.
void add_node(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count,
              Operation operation);

/// Allocates memory that belongs to a graph and is freed with the last reference. Throws if there
/// is none left.
std::shared_ptr<void> graph_block(size_t bytes, int device);
bool is_of_graph(const Allocation& allocation);

/// What all graphs together have allocated on a device, now and at most.
struct GraphMemory {
  uint64_t now = 0, high = 0;
};
GraphMemory graph_memory(int device);
/// Makes what is allocated now the highest use.
void restart_graph_memory(int device);

/// Returns the first change of an updated graph that an executable graph can't adopt, or success.
hipGraphExecUpdateResult compare(const Graph& ready, const Graph& wanted, Node*& culprit);

/// Returns the node's operation as an `Op`; throws if the node has another type.
template <class Op>
Op& operation_of(Node* node) {
  Op* op = std::get_if<Op>(&node->operation);
  require(op != nullptr);
  return *op;
}

/// Sets the operation of a node.
template <class Op, class Make>
void change(hipGraphNode_t node, const Make& make) {
  std::lock_guard lock(graph_mutex());
  operation_of<Op>(find_node(node)) = make();
}

/// Sets the operation of an executable graph's node, which is identified by the original graph's
/// node.
template <class Op, class Make>
void change(hipGraphExec_t exec, hipGraphNode_t node, const Make& make) {
  std::lock_guard lock(graph_mutex());
  operation_of<Op>(node_of(*find_exec(exec), node)) = make();
}

}  // namespace emu::hip
