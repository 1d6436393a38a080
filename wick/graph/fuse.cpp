// Fusing patterns around a linear. Each is guarded by what the fused op takes: f32 operands, one
// kind of input step, and a residual of the result's shape.

#include "wick/graph/fuse.h"

#include <algorithm>
#include <optional>

namespace wick::graph {
namespace {

// Operands of a linear with steps around it, as linear_ops.cpp reads them.
constexpr size_t kX = 0, kNorm = 1, kResidual = 2, kOperands = 8;

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), removed_(graph.nodes.size(), false) {}

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_linear(graph_.nodes[i])) continue;
      if (!fuse_norm(i)) fuse_gate(i);
      fuse_residual(i);
    }
    std::vector<Node> kept;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!removed_[i]) kept.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(kept);
  }

 private:
  static bool is_linear(const Node& node) {
    return node.op == Op::linear && node.part == Part::result && node.inputs.size() == 1 &&
           node.inputs[kX].dtype == DType::f32;
  }

  const StorageInfo& storage(const Value& value) const {
    return graph_.storages[static_cast<size_t>(value.storage)];
  }

  /// How many operands of nodes lie in a value's storage.
  int reads(const Value& value) const {
    int count = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (removed_[i]) continue;
      for (const Value& v : graph_.nodes[i].inputs) count += v.storage == value.storage ? 1 : 0;
    }
    return count;
  }

  /// The node that makes a value which only one operand reads and nobody else writes to.
  std::optional<size_t> sole_producer(const Value& value, size_t before) const {
    if (storage(value).kind != StorageInfo::Kind::temporary || reads(value) != 1) return {};
    std::optional<size_t> producer;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (removed_[i]) continue;
      for (const Value& v : graph_.nodes[i].outputs) {
        if (v.storage != value.storage) continue;
        if (producer || i >= before || !(v == value) || graph_.nodes[i].writes) return {};
        producer = i;
      }
    }
    return producer;
  }

  /// Whether nodes strictly between two write to a value's storage.
  bool is_written(const Value& value, size_t after, size_t before) const {
    if (value.storage < 0) return false;
    for (size_t i = after + 1; i < before; ++i) {
      if (removed_[i]) continue;
      const Node& node = graph_.nodes[i];
      // Attention with a cache writes to operands.
      const bool writes_operands = node.part == Part::cached || node.inputs.size() == kOperands;
      for (const Value& v : node.outputs) {
        if (v.storage == value.storage) return true;
      }
      for (const Value& v : node.inputs) {
        if (writes_operands && v.storage == value.storage) return true;
      }
    }
    return false;
  }

  /// The linear's operands and attributes with room for steps.
  static LinearSteps& widen(Node& linear) {
    linear.inputs.resize(kOperands);
    if (!std::holds_alternative<LinearSteps>(linear.attributes)) linear.attributes = LinearSteps{};
    return std::get<LinearSteps>(linear.attributes);
  }

  /// rms_norm(x, norm) → linear.
  bool fuse_norm(size_t at) {
    Node& linear = graph_.nodes[at];
    const auto producer = sole_producer(linear.inputs[kX], at);
    if (!producer || graph_.nodes[*producer].op != Op::rms_norm) return false;
    const Node& norm = graph_.nodes[*producer];
    if (norm.inputs[1].dtype != DType::f32 || is_written(norm.inputs[0], *producer, at) ||
        is_written(norm.inputs[1], *producer, at)) {
      return false;
    }
    widen(linear).eps = std::get<Epsilon>(norm.attributes).eps;
    linear.inputs[kX] = norm.inputs[0];
    linear.inputs[kNorm] = norm.inputs[1];
    removed_[*producer] = true;
    return true;
  }

  /// silu_mul of the two halves of a tensor → linear.
  bool fuse_gate(size_t at) {
    Node& linear = graph_.nodes[at];
    const auto producer = sole_producer(linear.inputs[kX], at);
    if (!producer || graph_.nodes[*producer].op != Op::silu_mul) return false;
    const Node& gate = graph_.nodes[*producer];
    const std::optional<Value> both = joined(gate.inputs[0], gate.inputs[1]);
    if (!both || is_written(*both, *producer, at)) return false;
    widen(linear).silu_mul = true;
    linear.inputs[kX] = *both;
    removed_[*producer] = true;
    return true;
  }

  /// The value whose last dim's halves are a and b.
  static std::optional<Value> joined(const Value& a, const Value& b) {
    const Layout &la = a.layout, &lb = b.layout;
    const int rank = la.rank();
    if (a.storage != b.storage || a.dtype != b.dtype || rank == 0) return {};
    const int64_t k = la.shape().back();
    if (!(la.shape() == lb.shape()) || la.strides() != lb.strides() || la.stride(rank - 1) != 1 ||
        lb.offset() != la.offset() + k) {
      return {};
    }
    return Value{a.storage, a.dtype,
                 Layout(la.shape().with(rank - 1, 2 * k), la.strides(), la.offset())};
  }

  /// linear + residual, in either order of the operands.
  bool fuse_residual(size_t at) {
    const Node& linear = graph_.nodes[at];
    const Value product = linear.outputs[0];
    if (storage(product).kind != StorageInfo::Kind::temporary || reads(product) != 1) return false;
    for (size_t i = at + 1; i < graph_.nodes.size(); ++i) {
      const Node& sum = graph_.nodes[i];
      const bool reads_it = std::any_of(sum.inputs.begin(), sum.inputs.end(), [&](const Value& v) {
        return v.storage == product.storage;
      });
      if (removed_[i] || !reads_it) continue;
      if (sum.op != Op::add || sum.part != Part::result) return false;
      const Value& other = sum.inputs[sum.inputs[0] == product ? 1 : 0];
      const bool fits = (sum.inputs[0] == product || sum.inputs[1] == product) &&
                        other.dtype == DType::f32 && other.layout.shape() == product.layout.shape();
      if (!fits || written_between(linear, at, i)) return false;
      move_into_sum(at, i, other);
      return true;
    }
    return false;
  }

  bool written_between(const Node& node, size_t after, size_t before) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Value& v) { return is_written(v, after, before); });
  }

  /// The linear takes the addition's place, where its residual exists.
  void move_into_sum(size_t at, size_t sum, const Value& residual) {
    Node linear = std::move(graph_.nodes[at]);
    widen(linear);
    linear.inputs[kResidual] = residual;
    linear.outputs = graph_.nodes[sum].outputs;
    graph_.nodes[sum] = std::move(linear);
    removed_[at] = true;
  }

  Graph& graph_;
  std::vector<bool> removed_;
};

}  // namespace

void fuse(Graph& graph) { Fuser(graph).run(); }

}  // namespace wick::graph
