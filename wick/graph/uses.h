#pragma once

// Finds the nodes that read and write each storage of a graph, for passes that replace nodes.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wick/graph/graph.h"

namespace wick::graph {

/// Whether two values refer to the same elements in the same order.
bool same_elements(const Value& a, const Value& b);

/// The indices of operands that a node writes to: the caches of attention, the state of
/// recurrences.
std::vector<size_t> written_operands(const Node& node);

/// The uses of a graph's storages while a pass replaces nodes. Removed nodes are ignored, and the
/// operands of merged nodes count as those of the node that has their work. Other changes become
/// visible only to the next pass, which makes a new Uses.
class Uses {
 public:
  explicit Uses(Graph& graph);

  Graph& graph() { return graph_; }
  Node& node(size_t at) { return graph_.nodes[at]; }
  const Node& node(size_t at) const { return graph_.nodes[at]; }
  size_t count() const { return graph_.nodes.size(); }
  void remove(size_t at) { place_[at] = kRemoved; }
  /// Removes a node whose work node `into` does from now on, with the same operands.
  void merge(size_t at, size_t into) { place_[at] = static_cast<uint32_t>(into); }
  bool is_removed(size_t at) const { return place_[at] != at; }

  /// Whether only nodes of the graph read or write a value's storage.
  bool is_temporary(const Value& value) const;
  /// The number of node operands in a value's storage.
  size_t reads(const Value& value) const;
  /// The first node that reads a value's storage.
  size_t first_reader(const Value& value) const;
  /// The node before `before` that makes a temporary, if no other node writes to its storage. The
  /// value may be a view of the node's result.
  std::optional<size_t> producer(const Value& value, size_t before) const;
  /// The producer of a value that isn't a view, if only one operand reads its storage.
  std::optional<size_t> sole_producer(const Value& value, size_t before) const;
  /// The last node before `before` that writes to a value's storage.
  std::optional<size_t> last_writer(const Value& value, size_t before) const;
  /// Whether a node strictly between `after` and `before` writes to a value's storage.
  bool is_written(const Value& value, size_t after, size_t before) const;
  /// Whether a node strictly between `after` and `before` reads a value's storage.
  bool is_read(const Value& value, size_t after, size_t before) const;

  /// Erases the removed nodes from the graph.
  void sweep();

 private:
  /// Nodes listed by storage, in order, as one array with the start of each storage's list.
  struct ByStorage {
    std::vector<uint32_t> starts, nodes;
    std::span<const uint32_t> of(const Value& value) const {
      const auto storage = static_cast<size_t>(value.storage);
      return std::span(nodes).subspan(starts[storage], starts[storage + 1] - starts[storage]);
    }
  };
  template <class ForEachUse>
  static ByStorage list(const Graph& graph, ForEachUse&& for_each_use);

  static constexpr uint32_t kRemoved = UINT32_MAX;
  /// The node that does node i's work; kRemoved if there is none.
  uint32_t place(uint32_t i) const;
  bool any_between(std::span<const uint32_t> nodes, size_t after, size_t before) const;

  Graph& graph_;
  ByStorage readers_, writers_;  ///< a node is listed as a reader once for each operand
  std::vector<uint32_t> place_;  ///< of each node: itself, the node it was merged into, or kRemoved
};

}  // namespace wick::graph
