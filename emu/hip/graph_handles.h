#pragma once

// Graphs by their handles.

#include <memory>

#include "emu/hip/api.h"

namespace emu::hip {

Handles<Graph>& graphs();
Handles<GraphExec>& graph_execs();

/// All of these throw where the handle isn't known. The graphs' mutex must be held.
std::shared_ptr<Graph> find_graph(hipGraph_t handle);
std::shared_ptr<GraphExec> find_exec(hipGraphExec_t handle);
Node* find_node(hipGraphNode_t handle);
/// A node's counterpart in a graph that is ready to run.
Node* node_of(GraphExec& exec, hipGraphNode_t handle);
hipGraphNode_t handle_of(const Node* node);

/// Adds a node with what it waits for.
void add_node(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count,
              Operation operation);

/// Memory of a graph's own, freed when nothing holds it any more. Throws.
std::shared_ptr<void> graph_block(size_t bytes, int device);
bool is_of_graph(const Allocation& allocation);

/// What of an updated graph no longer fits one that is ready to run; success where it all does.
hipGraphExecUpdateResult compare(const Graph& ready, const Graph& wanted, Node*& culprit);

/// The operation of a node as the type that it must have; throws where it has another.
template <class Op>
Op& operation_of(Node* node) {
  Op* op = std::get_if<Op>(&node->operation);
  require(op != nullptr);
  return *op;
}

}  // namespace emu::hip
