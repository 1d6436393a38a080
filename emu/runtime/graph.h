#pragma once

// Graphs of operations: made by hand or by watching streams, and run with no more order than their
// edges give.

#include <list>
#include <memory>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "emu/runtime/operation.h"

namespace emu {

struct Node {
  Operation operation;
  std::vector<Node*> after;   // what it waits for
  std::vector<Node*> before;  // what waits for it
  Graph* graph = nullptr;
  const Node* origin = nullptr;  // of a copy
  bool enabled = true;
};

struct UserObject {
  void* data = nullptr;
  hipHostFn_t destroy = nullptr;
  int references = 0;
};

struct Graph {
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::list<std::unique_ptr<Node>> nodes;
  std::vector<std::shared_ptr<UserObject>> objects;
  std::vector<std::shared_ptr<void>> memory;  // of its allocation nodes, shared with copies
  const Graph* origin = nullptr;

  Node* add(Operation operation, const std::vector<Node*>& after);
  void remove(Node* node);
  bool holds(const Node* node) const;
  /// False where the edge would be there twice, or close a circle.
  bool connect(Node* from, Node* to);
  bool disconnect(Node* from, Node* to);
  std::shared_ptr<Graph> clone() const;
  /// In an order that the edges allow.
  std::vector<Node*> sorted() const;
  Node* copy_of(const Node* original) const;
  /// Queues all nodes behind the stream's work and `after`; the signal is that of the stream's
  /// last.
  SignalPtr launch(Stream& stream, std::vector<SignalPtr> after);

 private:
  std::vector<StreamPtr> lanes_;  // run what the edges leave free to run at once
  SignalPtr last_;                // of the launch before
};

/// A graph ready to be run: a copy that later changes of the original don't reach.
struct GraphExec {
  std::shared_ptr<Graph> graph;
  const Graph* source = nullptr;
  unsigned long long flags = 0;
  std::unordered_map<const Node*, Node*> node_of;  // by the original's
};

/// Streams being watched for a graph.
struct Capture {
  std::shared_ptr<Graph> graph;
  Stream* origin = nullptr;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  std::thread::id thread;
  unsigned long long id = 0;
  bool invalid = false;
  std::unordered_map<const Stream*, std::vector<Node*>>
      frontier;  // what comes next waits for these
  std::vector<StreamPtr> streams;
};

hipGraphNodeType type_of(const Operation& operation);

/// Guards all graphs and captures.
std::recursive_mutex& graph_mutex();

/// Every node of every graph, so that a handle can be held against them; the guard must be held.
std::unordered_set<const Node*>& known_nodes();

/// Adds the operation to the graph that the stream is watched for.
hipError_t capture_operation(Stream& stream, Operation operation);

/// The captures that are going on; the guard must be held.
std::vector<std::shared_ptr<Capture>>& captures();

}  // namespace emu
