#include "wick/graph/uses.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "wick/tensor/fused.h"

namespace wick::graph {
std::vector<size_t> written_operands(const Node& node) {
  if (node.custom != nullptr) return {};  // the target of an in-place op is its output
  if (node.part == Part::cached) return {kCachedKeys, kCachedValues};
  if (is_recurrence(node.op)) return {kRecurrentState};
  const bool with_cache =
      node.inputs.size() == kLinearOperands && node.inputs[kLinearKeys].storage >= 0;
  if (with_cache) return {kLinearKeys, kLinearValues};
  return {};
}

bool same_elements(const Value& a, const Value& b) {
  const Layout &la = a.layout, &lb = b.layout;
  if (a.storage != b.storage || a.dtype != b.dtype || la.offset() != lb.offset() ||
      !(la.shape() == lb.shape())) {
    return false;
  }
  for (int d = 0; d < la.rank(); ++d) {
    if (la.shape()[d] > 1 && la.stride(d) != lb.stride(d)) return false;
  }
  return true;
}

template <class ForEachUse>
Uses::ByStorage Uses::list(const Graph& graph, ForEachUse&& for_each_use) {
  ByStorage result;
  result.starts.assign(graph.storages.size() + 1, 0);
  for (const Node& node : graph.nodes) {
    for_each_use(node, [&](const Value& v) {
      if (v.storage >= 0) ++result.starts[static_cast<size_t>(v.storage) + 1];
    });
  }
  std::partial_sum(result.starts.begin(), result.starts.end(), result.starts.begin());
  result.nodes.resize(result.starts.back());
  std::vector<uint32_t> next(result.starts.begin(), result.starts.end() - 1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for_each_use(graph.nodes[i], [&](const Value& v) {
      if (v.storage < 0) return;
      result.nodes[next[static_cast<size_t>(v.storage)]++] = static_cast<uint32_t>(i);
    });
  }
  return result;
}

Uses::Uses(Graph& graph)
    : graph_(graph),
      readers_(list(graph,
                    [](const Node& node, auto&& use) {
                      for (const Value& v : node.inputs) use(v);
                    })),
      writers_(list(graph,
                    [](const Node& node, auto&& use) {
                      for (const Value& v : node.outputs) use(v);
                      for (const size_t i : written_operands(node)) use(node.inputs[i]);
                    })),
      place_(graph.nodes.size()) {
  std::iota(place_.begin(), place_.end(), uint32_t{0});
}

uint32_t Uses::place(uint32_t i) const {
  while (i != kRemoved && place_[i] != i) i = place_[i];
  return i;
}

bool Uses::any_between(std::span<const uint32_t> nodes, size_t after, size_t before) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](uint32_t i) {
    const uint32_t at = place(i);
    return at != kRemoved && at > after && at < before;
  });
}

bool Uses::is_temporary(const Value& value) const {
  return value.storage >= 0 &&
         graph_.storages[static_cast<size_t>(value.storage)].kind == StorageInfo::Kind::temporary;
}

size_t Uses::reads(const Value& value) const {
  const std::span<const uint32_t> all = readers_.of(value);
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [&](uint32_t i) { return place(i) != kRemoved; }));
}

size_t Uses::first_reader(const Value& value) const {
  uint32_t first = kRemoved;
  for (const uint32_t i : readers_.of(value)) first = std::min(first, place(i));
  return first;
}

std::optional<size_t> Uses::producer(const Value& value, size_t before) const {
  if (!is_temporary(value)) return {};
  std::optional<size_t> found;
  for (const uint32_t i : writers_.of(value)) {
    if (is_removed(i)) continue;
    if (found || i >= before || graph_.nodes[i].writes) return {};
    found = i;
  }
  return found;
}

std::optional<size_t> Uses::sole_producer(const Value& value, size_t before) const {
  const std::optional<size_t> found = producer(value, before);
  if (!found || reads(value) != 1) return {};
  const std::vector<Value>& made = graph_.nodes[*found].outputs;
  const bool whole = std::any_of(made.begin(), made.end(),
                                 [&](const Value& v) { return same_elements(v, value); });
  return whole ? found : std::nullopt;
}

std::optional<size_t> Uses::last_writer(const Value& value, size_t before) const {
  std::optional<size_t> found;
  for (const uint32_t i : writers_.of(value)) {
    const uint32_t at = place(i);
    if (at != kRemoved && at < before && (!found || at > *found)) found = at;
  }
  return found;
}

bool Uses::is_written(const Value& value, size_t after, size_t before) const {
  return value.storage >= 0 && any_between(writers_.of(value), after, before);
}

bool Uses::is_read(const Value& value, size_t after, size_t before) const {
  return value.storage >= 0 && any_between(readers_.of(value), after, before);
}

void Uses::sweep() {
  std::vector<Node> kept;
  kept.reserve(graph_.nodes.size());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!is_removed(i)) kept.push_back(std::move(graph_.nodes[i]));
  }
  graph_.nodes = std::move(kept);
  place_.resize(graph_.nodes.size());
  std::iota(place_.begin(), place_.end(), uint32_t{0});
}

}  // namespace wick::graph
