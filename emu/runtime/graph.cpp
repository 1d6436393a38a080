#include "emu/runtime/graph.h"

#include <algorithm>

#include "emu/runtime/device.h"
#include "emu/runtime/runtime.h"

namespace emu {

Graph::~Graph() {
  {
    std::lock_guard lock(graph_mutex());
    for (const auto& node : nodes) known_nodes().erase(node.get());
    std::erase_if(objects, [](const auto& held) { return !held.first->release(held.second); });
  }
  for (const auto& [object, count] : objects) object->destroy(object->data);
}

bool UserObject::release(int64_t count) {
  references -= count;
  if (references != 0) return false;
  forget(this);
  return true;
}

void Graph::retain(const std::shared_ptr<UserObject>& object, int64_t count) {
  object->references += count;
  objects[object] += count;
}

void Graph::follow(const Graph& before) {
  lanes_ = before.lanes_;
  last_ = before.last_;
}

Node* Graph::add(Operation operation, const std::vector<Node*>& after) {
  static uint64_t made = 0;  // guarded by graph_mutex()
  auto node = std::make_unique<Node>();
  node->serial = ++made;
  node->operation = std::move(operation);
  node->graph = this;
  Node* raw = node.get();
  nodes.push_back(std::move(node));
  known_nodes().insert(raw);
  for (Node* from : after) connect(from, raw);
  return raw;
}

void Graph::remove(Node* node) {
  known_nodes().erase(node);
  for (Node* other : node->after) std::erase(other->before, node);
  for (Node* other : node->before) std::erase(other->after, node);
  std::erase_if(nodes, [&](const auto& held) { return held.get() == node; });
}

bool Graph::holds(const Node* node) const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const auto& held) { return held.get() == node; });
}

bool Graph::connect(Node* from, Node* to) {
  if (std::find(to->after.begin(), to->after.end(), from) != to->after.end()) return false;
  std::vector<const Node*> reached{to};
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == from) return false;
    for (const Node* next : reached[i]->before) {
      if (std::find(reached.begin(), reached.end(), next) == reached.end()) reached.push_back(next);
    }
  }
  to->after.push_back(from);
  from->before.push_back(to);
  return true;
}

bool Graph::disconnect(Node* from, Node* to) {
  std::erase(from->before, to);
  return std::erase(to->after, from) != 0;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  copy->memory = memory;
  for (const auto& [object, count] : objects) copy->retain(object, count);
  std::unordered_map<const Node*, Node*> copies;
  for (const auto& node : nodes) {
    Node* made = copy->add(own(node->operation), {});
    made->origin = node->serial;
    made->enabled = node->enabled;
    copies[node.get()] = made;
  }
  for (const auto& node : nodes) {
    for (const Node* from : node->after) {
      copies[node.get()]->after.push_back(copies[from]);
      copies[from]->before.push_back(copies[node.get()]);
    }
  }
  return copy;
}

std::vector<Node*> Graph::sorted() const {
  std::unordered_map<const Node*, size_t> open;
  std::vector<Node*> order;
  for (const auto& node : nodes) {
    open[node.get()] = node->after.size();
    if (node->after.empty()) order.push_back(node.get());
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (Node* next : order[i]->before) {
      if (--open[next] == 0) order.push_back(next);
    }
  }
  return order;
}

Node* Graph::copy_of(const Node& original) const {
  for (const auto& node : nodes) {
    if (node->origin == original.serial) return node.get();
  }
  return nullptr;
}

SignalPtr Graph::launch(Stream& stream, std::vector<SignalPtr> after) {
  // The roots wait for the previous launch of this graph, and for everything that the stream waits
  // for.
  if (last_ != nullptr) after.push_back(last_);
  const SignalPtr start = stream.push([] { return hipSuccess; }, std::move(after));
  // The node's signal and its lane.
  std::unordered_map<const Node*, std::pair<SignalPtr, size_t>> signals;
  std::vector<const Node*> lane_tail;
  std::vector<SignalPtr> ends;
  for (Node* node : sorted()) {
    std::vector<SignalPtr> waits;
    size_t lane = lane_tail.size();
    for (const Node* from : node->after) {
      const auto& [signal, of_lane] = signals[from];
      waits.push_back(signal);
      if (lane == lane_tail.size() && lane_tail[of_lane] == from) lane = of_lane;
    }
    if (waits.empty()) waits.push_back(start);
    if (lane == lane_tail.size()) {
      lane_tail.push_back(nullptr);
      // An earlier launch that still uses a lane doesn't add an order of its own, since launches of
      // a graph follow each other anyway.
      if (lane == lanes_.size()) {
        lanes_.push_back(std::make_shared<Stream>(stream.device, hipStreamNonBlocking, 0));
      }
    }
    lane_tail[lane] = node;
    const Operation operation = node->enabled ? node->operation : Operation(EmptyOp{});
    Stream& on = *lanes_[lane];
    SignalPtr signal = enqueue(on, operation, std::move(waits));
    signals[node] = {signal, lane};
    if (node->before.empty()) ends.push_back(std::move(signal));
  }
  last_ = stream.push(
      [lanes = lanes_, self = shared_from_this()] {  // keeps the graph's memory until it has run
        hipError_t first = hipSuccess;
        for (const StreamPtr& lane : lanes) {
          const hipError_t error = lane->take_error();
          if (first == hipSuccess) first = error;
        }
        return first;
      },
      std::move(ends));
  return last_;
}

hipGraphNodeType type_of(const Operation& operation) {
  struct Type {
    hipGraphNodeType operator()(const KernelOp&) { return hipGraphNodeTypeKernel; }
    hipGraphNodeType operator()(const CopyOp&) { return hipGraphNodeTypeMemcpy; }
    hipGraphNodeType operator()(const FillOp&) { return hipGraphNodeTypeMemset; }
    hipGraphNodeType operator()(const HostOp&) { return hipGraphNodeTypeHost; }
    hipGraphNodeType operator()(const CallbackOp&) { return hipGraphNodeTypeHost; }
    hipGraphNodeType operator()(const RecordOp&) { return hipGraphNodeTypeEventRecord; }
    hipGraphNodeType operator()(const WaitOp&) { return hipGraphNodeTypeWaitEvent; }
    hipGraphNodeType operator()(const EmptyOp&) { return hipGraphNodeTypeEmpty; }
    hipGraphNodeType operator()(const GraphOp&) { return hipGraphNodeTypeGraph; }
    hipGraphNodeType operator()(const FreeOp&) { return hipGraphNodeTypeMemFree; }
    hipGraphNodeType operator()(const AllocOp&) { return hipGraphNodeTypeMemAlloc; }
    hipGraphNodeType operator()(const ValueOp&) { return hipGraphNodeTypeEmpty; }
    hipGraphNodeType operator()(const BatchOp&) { return hipGraphNodeTypeBatchMemOp; }
  };
  return std::visit(Type{}, operation);
}

std::recursive_mutex& graph_mutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

std::unordered_set<const Node*>& known_nodes() {
  static auto* all = new std::unordered_set<const Node*>;
  return *all;
}

std::vector<std::shared_ptr<Capture>>& captures() {
  static auto* all = new std::vector<std::shared_ptr<Capture>>;
  return *all;
}

Operation own(Operation operation) {
  if (auto* child = std::get_if<GraphOp>(&operation)) child->graph = child->graph->clone();
  return operation;
}

hipError_t capture_operation(Stream& stream, Operation operation) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return hipErrorStreamCaptureInvalidated;
  std::vector<Node*>& frontier = capture.frontier[&stream];
  if (auto* record = std::get_if<RecordOp>(&operation); record != nullptr && !record->external) {
    std::lock_guard lock(record->event->mutex);
    record->event->capture = stream.capture;
    record->event->nodes = frontier;
    record->event->signal = nullptr;
    return hipSuccess;
  }
  if (std::holds_alternative<ValueOp>(operation)) {
    capture.invalid = true;
    return hipErrorStreamCaptureUnsupported;
  }
  frontier = {capture.graph->add(own(std::move(operation)), frontier)};
  return hipSuccess;
}

}  // namespace emu
