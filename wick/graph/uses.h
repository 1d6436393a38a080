#pragma once

// Which nodes read and write each storage of a graph, for passes that replace nodes.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wick/graph/graph.h"

namespace wick::graph {

/// Whether two values are the same elements in the same order.
bool same_elements(const Value& a, const Value& b);

/// The places of operands that a node writes to: the caches of attention.
std::vector<size_t> written_operands(const Node& node);

/// A graph while a pass replaces its nodes. Nodes that a pass removed don't count; what it changes
/// otherwise is seen by the next pass.
class Uses {
 public:
  explicit Uses(Graph& graph);

  Graph& graph() { return graph_; }
  Node& node(size_t at) { return graph_.nodes[at]; }
  const Node& node(size_t at) const { return graph_.nodes[at]; }
  size_t count() const { return graph_.nodes.size(); }
  void remove(size_t at) { removed_[at] = true; }
  bool is_removed(size_t at) const { return removed_[at]; }

  /// Whether only nodes see a value's storage.
  bool is_temporary(const Value& value) const;
  /// How many operands of nodes lie in a value's storage.
  size_t reads(const Value& value) const;
  /// The first node that reads a value's storage.
  size_t first_reader(const Value& value) const;
  /// The node that makes a temporary, which nobody else writes to, before a node. The value may be
  /// a view of what it makes.
  std::optional<size_t> producer(const Value& value, size_t before) const;
  /// The same for a value as it was made, which only one operand reads.
  std::optional<size_t> sole_producer(const Value& value, size_t before) const;
  /// The last node in front of another that writes to a value's storage.
  std::optional<size_t> last_writer(const Value& value, size_t before) const;
  /// Whether nodes strictly between two write to a value's storage.
  bool is_written(const Value& value, size_t after, size_t before) const;
  /// Whether nodes strictly between two read it.
  bool is_read(const Value& value, size_t after, size_t before) const;

  /// Takes the removed nodes out of the graph.
  void sweep();

 private:
  /// Nodes by the storage that they use, those of a storage side by side and in order.
  struct ByStorage {
    std::vector<uint32_t> starts, nodes;
    std::span<const uint32_t> of(const Value& value) const {
      const auto storage = static_cast<size_t>(value.storage);
      return std::span(nodes).subspan(starts[storage], starts[storage + 1] - starts[storage]);
    }
  };
  template <class ForEachUse>
  static ByStorage list(const Graph& graph, ForEachUse&& for_each_use);

  Graph& graph_;
  ByStorage readers_, writers_;  ///< readers once for each operand
  std::vector<bool> removed_;
};

}  // namespace wick::graph
