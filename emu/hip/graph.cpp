// Graphs: construction, inspection, instantiation and launch.

#include "emu/runtime/graph.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "emu/hip/graph_handles.h"

namespace emu::hip {
namespace {

/// Copies node handles to the caller's list, up to its capacity, and fills the rest with null.
void put_nodes(const std::vector<Node*>& found, hipGraphNode_t* list, size_t* count) {
  require(count != nullptr);
  if (list != nullptr) {
    for (size_t i = 0; i < *count; ++i) list[i] = i < found.size() ? handle_of(found[i]) : nullptr;
    *count = std::min(*count, found.size());
  } else {
    *count = found.size();
  }
}

std::vector<Node*> all_nodes(const Graph& graph) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes) nodes.push_back(node.get());
  return nodes;
}

/// Replaces the graph that `exec` runs by a copy.
void set_graph(GraphExec& exec, std::shared_ptr<Graph> copy) {
  exec.node_of.clear();
  size_t place = 0;
  for (const auto& node : copy->nodes) {
    exec.node_of[node->origin] = exec.node_of[exec.first[place++]] = node.get();
  }
  exec.graph = std::move(copy);
}

void instantiate(hipGraphExec_t* handle, hipGraph_t graph_handle, unsigned long long flags) {
  constexpr unsigned long long known =
      hipGraphInstantiateFlagAutoFreeOnLaunch | hipGraphInstantiateFlagUpload |
      hipGraphInstantiateFlagDeviceLaunch | hipGraphInstantiateFlagUseNodePriority;
  require(handle != nullptr && (flags & ~known) == 0);
  std::lock_guard lock(graph_mutex());
  const std::shared_ptr<Graph> graph = find_graph(graph_handle);
  require(graph->sorted().size() == graph->nodes.size());
  auto exec = std::make_shared<GraphExec>();
  exec->flags = flags;
  for (const auto& node : graph->nodes) exec->first.push_back(node->serial);
  set_graph(*exec, graph->clone());
  *handle = graph_execs().add<hipGraphExec_t>(std::move(exec));
}

void connect_all(hipGraph_t handle, const hipGraphNode_t* from, const hipGraphNode_t* to,
                 size_t count, bool connect) {
  std::lock_guard lock(graph_mutex());
  const std::shared_ptr<Graph> graph = find_graph(handle);
  require(count == 0 || (from != nullptr && to != nullptr));
  for (size_t i = 0; i < count; ++i) {
    Node *first = find_node(from[i]), *second = find_node(to[i]);
    require(graph->holds(first) && graph->holds(second));
    require(connect ? graph->connect(first, second) : graph->disconnect(first, second));
  }
}

/// Returns, for each node, the indices of the nodes that it depends on.
std::vector<std::set<size_t>> edges_of(const Graph& graph) {
  std::unordered_map<const Node*, size_t> place;
  std::vector<std::set<size_t>> edges;
  for (const auto& node : graph.nodes) place.emplace(node.get(), place.size());
  for (const auto& node : graph.nodes) {
    edges.emplace_back();
    for (const Node* from : node->after) edges.back().insert(place[from]);
  }
  return edges;
}

/// Returns whether a node of an executable graph can be updated to another operation of the same
/// type.
hipGraphExecUpdateResult compare_operations(const Operation& now, const Operation& then) {
  if (const auto* kernel = std::get_if<KernelOp>(&now)) {
    const Device& device = std::get<KernelOp>(then).kernel->module->device;
    if (&device != &kernel->kernel->module->device) {
      return hipGraphExecUpdateErrorUnsupportedFunctionChange;
    }
  }
  if (const auto* copy = std::get_if<CopyOp>(&now)) {
    if (copy->kind != std::get<CopyOp>(then).kind) return hipGraphExecUpdateErrorParametersChanged;
  }
  if (const auto* child = std::get_if<GraphOp>(&now)) {
    Node* within = nullptr;
    return compare(*child->graph, *std::get<GraphOp>(then).graph, within);
  }
  return hipGraphExecUpdateSuccess;
}

bool can_be_disabled(const Node& node) {
  return type_of(node.operation) <= hipGraphNodeTypeMemset;  // kernels, copies and fills
}

std::string dot(const Graph& graph) {
  static constexpr const char* kNames[] = {
      "kernel", "memcpy", "memset", "host", "graph", "empty", "wait event", "record event",
      "",       "",       "alloc",  "free", "",      "",      "batch"};
  std::string text = "digraph hip {\n";
  const std::vector<Node*> nodes = all_nodes(graph);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::string label = kNames[type_of(nodes[i]->operation)];
    if (const auto* kernel = std::get_if<KernelOp>(&nodes[i]->operation)) {
      label += " " + kernel->kernel->info.name;
    }
    text += "  n" + std::to_string(i) + " [label=\"" + label + "\"];\n";
    for (const Node* from : nodes[i]->after) {
      const auto at = std::find(nodes.begin(), nodes.end(), from) - nodes.begin();
      text += "  n" + std::to_string(at) + " -> n" + std::to_string(i) + ";\n";
    }
  }
  return text + "}\n";
}

}  // namespace

hipGraphExecUpdateResult compare(const Graph& ready, const Graph& wanted, Node*& culprit) {
  culprit = nullptr;
  const std::vector<Node*> now = all_nodes(ready), then = all_nodes(wanted);
  if (now.size() != then.size()) return hipGraphExecUpdateErrorTopologyChanged;
  const std::vector<std::set<size_t>> edges_now = edges_of(ready), edges_then = edges_of(wanted);
  for (size_t i = 0; i < now.size(); ++i) {
    culprit = then[i];
    if (type_of(now[i]->operation) != type_of(then[i]->operation)) {
      return hipGraphExecUpdateErrorNodeTypeChanged;
    }
    if (edges_now[i] != edges_then[i]) return hipGraphExecUpdateErrorTopologyChanged;
    const auto result = compare_operations(now[i]->operation, then[i]->operation);
    if (result != hipGraphExecUpdateSuccess) return result;
  }
  culprit = nullptr;
  return hipGraphExecUpdateSuccess;
}

Handles<Graph>& graphs() {
  static auto* all = new Handles<Graph>;
  return *all;
}

Handles<GraphExec>& graph_execs() {
  static auto* all = new Handles<GraphExec>;
  return *all;
}

std::shared_ptr<Graph> find_graph(hipGraph_t handle) {
  std::shared_ptr<Graph> graph = graphs().find(handle);
  require(graph != nullptr);
  return graph;
}

std::shared_ptr<GraphExec> find_exec(hipGraphExec_t handle) {
  std::shared_ptr<GraphExec> exec = graph_execs().find(handle);
  require(exec != nullptr);
  return exec;
}

Node* find_node(hipGraphNode_t handle) {
  auto* node = reinterpret_cast<Node*>(handle);
  require(node != nullptr && known_nodes().contains(node));
  return node;
}

Node* node_of(GraphExec& exec, hipGraphNode_t handle) {
  const auto at = exec.node_of.find(find_node(handle)->serial);
  require(at != exec.node_of.end());
  return at->second;
}

hipGraphNode_t handle_of(const Node* node) {
  return reinterpret_cast<hipGraphNode_t>(const_cast<Node*>(node));
}

void add_node(hipGraphNode_t* node, hipGraph_t handle, const hipGraphNode_t* after, size_t count,
              Operation operation) {
  std::lock_guard lock(graph_mutex());
  const std::shared_ptr<Graph> graph = find_graph(handle);
  require(node != nullptr && (count == 0 || after != nullptr));
  std::vector<Node*> nodes;
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back(find_node(after[i]));
    require(graph->holds(nodes.back()));
    require(std::count(nodes.begin(), nodes.end(), nodes.back()) == 1);
  }
  *node = handle_of(graph->add(std::move(operation), nodes));
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipGraphCreate(hipGraph_t* graph, unsigned flags) {
  EMU_CALL({
    require(graph != nullptr && flags == 0);
    *graph = graphs().add<hipGraph_t>(std::make_shared<Graph>());
  });
}

EMU_API hipError_t hipGraphDestroy(hipGraph_t graph) {
  EMU_CALL({
    // Destroyed after the locks are released: it may call functions of user objects.
    std::shared_ptr<Graph> gone;
    std::lock_guard lock(graph_mutex());
    gone = graphs().remove(graph);
    require(gone != nullptr);
  });
}

EMU_API hipError_t hipGraphClone(hipGraph_t* copy, hipGraph_t original) {
  EMU_CALL({
    require(copy != nullptr);
    std::lock_guard lock(graph_mutex());
    *copy = graphs().add<hipGraph_t>(find_graph(original)->clone());
  });
}

EMU_API hipError_t hipGraphNodeFindInClone(hipGraphNode_t* node, hipGraphNode_t original,
                                           hipGraph_t clone) {
  EMU_CALL({
    require(node != nullptr && original != nullptr);
    std::lock_guard lock(graph_mutex());
    const Node* found = find_graph(clone)->copy_of(*find_node(original));
    require(found != nullptr);
    *node = handle_of(found);
  });
}

EMU_API hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    put_nodes(all_nodes(*find_graph(graph)), nodes, count);
  });
}

EMU_API hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    std::vector<Node*> roots = all_nodes(*find_graph(graph));
    std::erase_if(roots, [](const Node* node) { return !node->after.empty(); });
    put_nodes(roots, nodes, count);
  });
}

EMU_API hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t* from, hipGraphNode_t* to,
                                    size_t* count) {
  EMU_CALL({
    require(count != nullptr && (from == nullptr) == (to == nullptr));
    std::lock_guard lock(graph_mutex());
    std::vector<Node*> first, second;
    for (Node* node : all_nodes(*find_graph(graph))) {
      for (Node* before : node->after) {
        first.push_back(before);
        second.push_back(node);
      }
    }
    size_t room = *count;
    put_nodes(first, from, &room);
    put_nodes(second, to, count);
  });
}

EMU_API hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t* nodes,
                                               size_t* count) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    put_nodes(find_node(node)->after, nodes, count);
  });
}

EMU_API hipError_t hipGraphNodeGetDependentNodes(hipGraphNode_t node, hipGraphNode_t* nodes,
                                                 size_t* count) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    put_nodes(find_node(node)->before, nodes, count);
  });
}

EMU_API hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* type) {
  EMU_CALL({
    require(type != nullptr);
    std::lock_guard lock(graph_mutex());
    *type = type_of(find_node(node)->operation);
  });
}

EMU_API hipError_t hipGraphDestroyNode(hipGraphNode_t node) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    Node* found = find_node(node);
    found->graph->remove(found);
  });
}

EMU_API hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t* from,
                                           const hipGraphNode_t* to, size_t count) {
  EMU_CALL({ connect_all(graph, from, to, count, true); });
}

EMU_API hipError_t hipGraphRemoveDependencies(hipGraph_t graph, const hipGraphNode_t* from,
                                              const hipGraphNode_t* to, size_t count) {
  EMU_CALL({ connect_all(graph, from, to, count, false); });
}

EMU_API hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph,
                                       hipGraphNode_t* culprit, char* log, size_t log_bytes) {
  if (culprit != nullptr) *culprit = nullptr;
  if (log != nullptr && log_bytes != 0) *log = 0;
  EMU_CALL({ instantiate(exec, graph, 0); });
}

EMU_API hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* exec, hipGraph_t graph,
                                                unsigned long long flags) {
  EMU_CALL({ instantiate(exec, graph, flags); });
}

EMU_API hipError_t hipGraphInstantiateWithParams(hipGraphExec_t* exec, hipGraph_t graph,
                                                 hipGraphInstantiateParams* params) {
  EMU_CALL({
    require(exec != nullptr && params != nullptr);
    params->errNode_out = nullptr;
    params->result_out = hipGraphInstantiateError;
    instantiate(exec, graph, params->flags);
    if ((params->flags & hipGraphInstantiateFlagUpload) != 0) find_stream(params->uploadStream);
    params->result_out = hipGraphInstantiateSuccess;
  });
}

EMU_API hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  EMU_CALL({
    std::shared_ptr<GraphExec> gone;  // destroyed after the locks are released
    std::lock_guard lock(graph_mutex());
    gone = graph_execs().remove(exec);
    require(gone != nullptr);
  });
}

EMU_API hipError_t hipGraphLaunch(hipGraphExec_t handle, hipStream_t stream_handle) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<GraphExec> exec = find_exec(handle);
    const StreamPtr stream = find_stream(stream_handle);
    submit(*stream, GraphOp{exec->graph});
  });
}

EMU_API hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    find_exec(exec);
    find_stream(stream);
  });
}

EMU_API hipError_t hipGraphExecGetFlags(hipGraphExec_t exec, unsigned long long* flags) {
  EMU_CALL({
    require(flags != nullptr);
    std::lock_guard lock(graph_mutex());
    *flags = find_exec(exec)->flags;
  });
}

EMU_API hipError_t hipGraphExecUpdate(hipGraphExec_t handle, hipGraph_t graph,
                                      hipGraphNode_t* culprit_out,
                                      hipGraphExecUpdateResult* result_out) {
  EMU_CALL({
    require(culprit_out != nullptr && result_out != nullptr);
    std::shared_ptr<Graph> before;  // destroyed after the locks are released
    std::lock_guard lock(graph_mutex());
    const std::shared_ptr<GraphExec> exec = find_exec(handle);
    before = exec->graph;
    const std::shared_ptr<Graph> wanted = find_graph(graph);
    Node* culprit = nullptr;
    *result_out = compare(*exec->graph, *wanted, culprit);
    *culprit_out = handle_of(culprit);
    require(*result_out == hipGraphExecUpdateSuccess, hipErrorGraphExecUpdateFailure);
    // Launches of the previous graph that still run keep its resources alive.
    const std::shared_ptr<Graph> fresh = wanted->clone();
    const std::vector<Node*> now = all_nodes(*exec->graph), then = all_nodes(*fresh);
    for (size_t i = 0; i < now.size(); ++i) then[i]->enabled = now[i]->enabled;
    fresh->follow(*exec->graph);
    set_graph(*exec, fresh);
  });
}

EMU_API hipError_t hipGraphNodeSetEnabled(hipGraphExec_t handle, hipGraphNode_t node,
                                          unsigned enabled) {
  EMU_CALL({
    std::lock_guard lock(graph_mutex());
    Node* found = node_of(*find_exec(handle), node);
    require(can_be_disabled(*found));
    found->enabled = enabled != 0;
  });
}

EMU_API hipError_t hipGraphNodeGetEnabled(hipGraphExec_t handle, hipGraphNode_t node,
                                          unsigned* enabled) {
  EMU_CALL({
    require(enabled != nullptr);
    std::lock_guard lock(graph_mutex());
    const Node* found = node_of(*find_exec(handle), node);
    require(can_be_disabled(*found));
    *enabled = found->enabled ? 1 : 0;
  });
}

EMU_API hipError_t hipGraphDebugDotPrint(hipGraph_t graph, const char* path, unsigned) {
  EMU_CALL({
    require(path != nullptr);
    std::lock_guard lock(graph_mutex());
    const std::string text = dot(*find_graph(graph));
    std::FILE* file = std::fopen(path, "w");
    require(file != nullptr, hipErrorOperatingSystem);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  });
}
