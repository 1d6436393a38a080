#pragma once

// Graphs of operations: made by hand or by watching streams, and run with no more order than their
// edges give.

#include <list>
#include <map>
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
  uint64_t serial = 0;  // of no other node of the process, as its address may be one day
  uint64_t origin = 0;  // of a copy: the original's serial
  bool enabled = true;
};

/// An object of the caller's that lives as long as something holds references to it.
struct UserObject {
  void* data = nullptr;
  hipHostFn_t destroy = nullptr;
  int64_t references = 0;
  void (*forget)(const UserObject*) = nullptr;  // takes its handle back

  /// True where the last is gone: then it is to be destroyed, with no lock held.
  bool release(int64_t count);
};

struct Graph : std::enable_shared_from_this<Graph> {
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::list<std::unique_ptr<Node>> nodes;
  std::map<std::shared_ptr<UserObject>, int64_t> objects;  // with the references held
  std::vector<std::shared_ptr<void>> memory;  // of its allocation nodes, shared with copies

  Node* add(Operation operation, const std::vector<Node*>& after);
  void remove(Node* node);
  bool holds(const Node* node) const;
  /// False where the edge would be there twice, or close a circle.
  bool connect(Node* from, Node* to);
  bool disconnect(Node* from, Node* to);
  std::shared_ptr<Graph> clone() const;
  /// In an order that the edges allow.
  std::vector<Node*> sorted() const;
  Node* copy_of(const Node& original) const;
  void retain(const std::shared_ptr<UserObject>& object, int64_t count);
  /// Has its launches follow those of the graph that it takes the place of.
  void follow(const Graph& before);
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
  unsigned long long flags = 0;
  std::vector<uint64_t> first;                  // serials of the nodes that it was made of
  std::unordered_map<uint64_t, Node*> node_of;  // by those, and those of its last update
};

/// Streams being watched for a graph.
struct Capture {
  std::shared_ptr<Graph> graph;
  Stream* origin = nullptr;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  std::thread::id thread;
  unsigned long long id = 0;
  bool invalid = false;
  bool ended = false;  // what events marked in it they no longer mark
  std::unordered_map<const Stream*, std::vector<Node*>>
      frontier;                            // what comes next waits for these
  std::unordered_set<const Node*> let_go;  // that its caller took out of a frontier
  std::vector<StreamPtr> streams;
};

hipGraphNodeType type_of(const Operation& operation);

/// Guards all graphs and captures.
std::recursive_mutex& graph_mutex();

/// Every node of every graph, so that a handle can be held against them; the guard must be held.
std::unordered_set<const Node*>& known_nodes();

/// The operation with a graph of its own where it runs one.
Operation own(Operation operation);

/// Adds the operation to the graph that the stream is watched for.
hipError_t capture_operation(Stream& stream, Operation operation);

/// The captures that are going on; the guard must be held.
std::vector<std::shared_ptr<Capture>>& captures();

}  // namespace emu
