#pragma once

// Graphs of operations. They are built explicitly or by stream capture, and run in any order that
// their edges allow.

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
  std::vector<Node*> after;   // the nodes that it waits for
  std::vector<Node*> before;  // the nodes that wait for it
  Graph* graph = nullptr;
  uint64_t serial = 0;  // unique in the process; an address may be reused
  uint64_t origin = 0;  // in a copy: the serial of the original node
  bool enabled = true;
};

/// A user object, which lives while anything holds references to it.
struct UserObject {
  void* data = nullptr;
  hipHostFn_t destroy = nullptr;
  int64_t references = 0;
  void (*forget)(const UserObject*) = nullptr;  // removes its handle

  /// Returns true if the last reference was released. The caller then destroys the object without
  /// holding a lock.
  bool release(int64_t count);
};

struct Graph : std::enable_shared_from_this<Graph> {
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::list<std::unique_ptr<Node>> nodes;
  std::map<std::shared_ptr<UserObject>, int64_t> objects;  // with the number of references held
  std::vector<std::shared_ptr<void>> memory;  // memory of its allocation nodes, which copies share

  Node* add(Operation operation, const std::vector<Node*>& after);
  void remove(Node* node);
  bool holds(const Node* node) const;
  /// Returns false if the edge already exists or would close a cycle.
  bool connect(Node* from, Node* to);
  bool disconnect(Node* from, Node* to);
  std::shared_ptr<Graph> clone() const;
  /// Returns the nodes in a topological order.
  std::vector<Node*> sorted() const;
  Node* copy_of(const Node& original) const;
  void retain(const std::shared_ptr<UserObject>& object, int64_t count);
  /// Makes launches of this graph follow those of the graph that it replaces.
  void follow(const Graph& before);
  /// Queues all nodes after the stream's work and `after`. Returns the signal of the last command.
  SignalPtr launch(Stream& stream, std::vector<SignalPtr> after);

 private:
  std::vector<StreamPtr> lanes_;  // streams for nodes that may run concurrently
  SignalPtr last_;                // signal of the previous launch
};

/// An executable graph: a copy that later changes of the original don't affect.
struct GraphExec {
  std::shared_ptr<Graph> graph;
  unsigned long long flags = 0;
  std::vector<uint64_t> first;  // serials of the nodes that it was instantiated from
  // Indexed by those serials, and by those of the last update.
  std::unordered_map<uint64_t, Node*> node_of;
};

/// A stream capture: the streams that record their operations in a graph.
struct Capture {
  std::shared_ptr<Graph> graph;
  Stream* origin = nullptr;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  std::thread::id thread;
  unsigned long long id = 0;
  bool invalid = false;
  bool of_caller = false;  // the graph is one of the caller's, to which the capture adds
  bool ended = false;      // events recorded in an ended capture are no longer valid
  std::unordered_map<const Stream*, std::vector<Node*>>
      frontier;  // nodes that each stream's next operation depends on
  // Nodes that the caller removed from a stream's dependencies.
  std::unordered_set<const Node*> let_go;
  std::vector<StreamPtr> streams;
};

hipGraphNodeType type_of(const Operation& operation);

/// Guards all graphs and captures.
std::recursive_mutex& graph_mutex();

/// All nodes of all graphs, for validating handles. The caller must hold graph_mutex().
std::unordered_set<const Node*>& known_nodes();

/// Returns the operation. If it runs a child graph, the copy has its own clone of that graph.
Operation own(Operation operation);

/// Adds the operation to the graph that the stream's capture builds.
hipError_t capture_operation(Stream& stream, Operation operation);

/// All active captures. The caller must hold graph_mutex().
std::vector<std::shared_ptr<Capture>>& captures();

}  // namespace emu
