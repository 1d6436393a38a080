// Fusing patterns. Each checks what the fused op supports: f32 operands, one kind of input step,
// and a residual of the result's shape.

#include "wick/graph/fuse.h"

#include <algorithm>
#include <optional>

#include "wick/graph/uses.h"
#include "wick/tensor/fused.h"

namespace wick::graph {
namespace {

/// Fuses silu(a) * b, in either order of the operands, to silu_mul. Only in f32, because in 16 bits
/// the fused op rounds once less.
void fuse_silu_mul(Uses& uses) {
  for (size_t i = 0; i < uses.count(); ++i) {
    Node& product = uses.node(i);
    if (product.op != Op::mul || product.part != Part::result ||
        product.outputs[0].dtype != DType::f32) {
      continue;
    }
    for (const size_t operand : {0, 1}) {
      const auto silu = uses.sole_producer(product.inputs[operand], i);
      if (!silu || uses.node(*silu).op != Op::silu ||
          !(product.inputs[0].layout.shape() == product.inputs[1].layout.shape()) ||
          uses.is_written(uses.node(*silu).inputs[0], *silu, i)) {
        continue;
      }
      product.op = Op::silu_mul;
      product.inputs = {uses.node(*silu).inputs[0], product.inputs[1 - operand]};
      uses.merge(*silu, i);
      break;
    }
  }
}

/// Whether nodes strictly between `after` and `before` write to an operand of `node`, or read or
/// write the caches that it writes to.
bool written_between(const Uses& uses, const Node& node, size_t after, size_t before) {
  const std::vector<size_t> caches = written_operands(node);
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Value& v) { return uses.is_written(v, after, before); }) ||
         std::any_of(caches.begin(), caches.end(),
                     [&](size_t i) { return uses.is_read(node.inputs[i], after, before); });
}

/// The addition that alone reads a node's result, and its other operand.
struct Sum {
  size_t at;
  Value other;
};
std::optional<Sum> sum_of(const Uses& uses, size_t at) {
  const Value result = uses.node(at).outputs[0];
  if (!uses.is_temporary(result) || uses.reads(result) != 1) return {};
  const size_t reader = uses.first_reader(result);
  const Node& sum = uses.node(reader);
  if (sum.op != Op::add || sum.part != Part::result) return {};
  const bool first = same_elements(sum.inputs[0], result);
  if (!first && !same_elements(sum.inputs[1], result)) return {};
  const bool fits = sum.outputs[0].layout.shape() == result.layout.shape() &&
                    !written_between(uses, uses.node(at), at, reader);
  return fits ? std::optional(Sum{reader, sum.inputs[first ? 1 : 0]}) : std::nullopt;
}

/// Fuses rms_norm(x) + residual, in either order of the operands.
void fuse_norm_add(Uses& uses) {
  for (size_t i = 0; i < uses.count(); ++i) {
    const Node& node = uses.node(i);
    if (uses.is_removed(i) || node.op != Op::rms_norm || node.part != Part::result ||
        node.outputs[0].dtype != DType::f32) {
      continue;
    }
    const std::optional<Sum> sum = sum_of(uses, i);
    if (!sum || sum->other.dtype != DType::f32 ||
        !(sum->other.layout.shape() == node.outputs[0].layout.shape())) {
      continue;
    }
    Node norm = node;
    norm.part = Part::summed;
    norm.called_as = "rms_norm_add";
    norm.inputs.push_back(sum->other);
    norm.outputs = uses.node(sum->at).outputs;
    uses.node(sum->at) = std::move(norm);
    uses.merge(i, sum->at);
  }
}

/// Fuses steps before and after a linear into it.
class LinearFuser {
 public:
  explicit LinearFuser(Uses& uses) : uses_(uses) {}

  void run() {
    for (size_t i = 0; i < uses_.count(); ++i) {
      const Node& node = uses_.node(i);
      if (node.op != Op::linear || node.part != Part::result || node.inputs.size() != 1 ||
          node.inputs[kLinearX].dtype != DType::f32) {
        continue;
      }
      fuse_input(i);
      fuse_residual(i);
    }
  }

 private:
  /// Extends the linear's operands and attributes so that they can hold fused steps.
  static LinearSteps& widen(Node& linear) {
    linear.inputs.resize(kLinearOperands);
    if (!std::holds_alternative<LinearSteps>(linear.attributes)) linear.attributes = LinearSteps{};
    return std::get<LinearSteps>(linear.attributes);
  }

  void fuse_input(size_t at) {
    const auto producer = uses_.sole_producer(uses_.node(at).inputs[kLinearX], at);
    if (!producer || written_between(uses_, uses_.node(*producer), *producer, at)) return;
    const Node& step = uses_.node(*producer);
    const bool norm = step.op == Op::rms_norm && step.part == Part::result;
    const bool fused = norm                        ? fuse_norm(uses_.node(at), step)
                       : step.op == Op::silu_mul   ? fuse_gate(uses_.node(at), step)
                       : step.op == Op::mul        ? fuse_gelu(at, *producer)
                       : step.part == Part::cached ? fuse_attention(at, *producer)
                                                   : false;
    if (fused) uses_.merge(*producer, at);
  }

  static bool fuse_norm(Node& linear, const Node& norm) {
    if (norm.inputs[1].dtype != DType::f32) return false;
    widen(linear).eps = std::get<Epsilon>(norm.attributes).eps;
    linear.inputs[kLinearX] = norm.inputs[0];
    linear.inputs[kLinearNorm] = norm.inputs[1];
    return true;
  }

  /// Fuses silu_mul of the two halves of one tensor.
  static bool fuse_gate(Node& linear, const Node& gate) {
    const std::optional<Value> both = joined(gate.inputs[0], gate.inputs[1]);
    if (!both) return false;
    widen(linear).silu_mul = true;
    linear.inputs[kLinearX] = *both;
    return true;
  }

  /// Fuses gelu(a) * b, in either order of the operands, if a and b are the halves of one tensor.
  bool fuse_gelu(size_t at, size_t producer) {
    const Node& product = uses_.node(producer);
    for (const size_t operand : {0, 1}) {
      const auto gelu = uses_.sole_producer(product.inputs[operand], producer);
      if (!gelu || uses_.node(*gelu).op != Op::gelu) continue;
      const Value& in = uses_.node(*gelu).inputs[0];
      const std::optional<Value> both = joined(in, product.inputs[1 - operand]);
      if (!both || uses_.is_written(in, *gelu, at)) continue;
      Node& linear = uses_.node(at);
      widen(linear).gelu_mul = true;
      linear.inputs[kLinearX] = *both;
      uses_.merge(*gelu, at);
      return true;
    }
    return false;
  }

  /// Fuses cached_attention, whose caches are then written at the linear's position.
  bool fuse_attention(size_t at, size_t producer) {
    const Node& attention = uses_.node(producer);
    Node& linear = uses_.node(at);
    LinearSteps& steps = widen(linear);
    steps.attention = true;
    steps.params = std::get<AttentionParams>(attention.attributes);
    linear.inputs[kLinearX] = attention.inputs[kCachedQkv];
    std::copy(attention.inputs.begin() + kCachedCos, attention.inputs.end(),
              linear.inputs.begin() + kLinearCos);
    return true;
  }

  /// Fuses linear + residual, in either order of the operands. A bias is a residual that is
  /// broadcast to all rows.
  void fuse_residual(size_t at) {
    const std::optional<Sum> sum = sum_of(uses_, at);
    if (!sum || sum->other.dtype != DType::f32) return;
    Value other = sum->other;
    other.layout = other.layout.broadcast_to(uses_.node(at).outputs[0].layout.shape());
    move_into_sum(at, sum->at, other);
  }

  /// Replaces the addition by the linear, because the residual exists at that position.
  void move_into_sum(size_t at, size_t sum, const Value& residual) {
    Node linear = uses_.node(at);
    widen(linear);
    linear.inputs[kLinearResidual] = residual;
    linear.outputs = uses_.node(sum).outputs;
    uses_.node(sum) = std::move(linear);
    uses_.merge(at, sum);
  }

  Uses& uses_;
};

/// Removes nodes whose results aren't read, and then nodes that only those read.
void drop_unread(Uses& uses) {
  for (size_t i = uses.count(); i-- > 0;) {
    const Node& node = uses.node(i);
    if (uses.is_removed(i) || node.writes) continue;
    const bool unread = std::all_of(node.outputs.begin(), node.outputs.end(), [&](const Value& v) {
      return uses.is_temporary(v) && uses.reads(v) == 0;
    });
    if (unread && written_operands(node).empty()) uses.remove(i);
  }
}

template <class Pass>
void run(Graph& graph, Pass&& pass) {
  Uses uses(graph);
  pass(uses);
  uses.sweep();
}

}  // namespace

std::optional<Value> joined(const Value& a, const Value& b) {
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

void fuse(Graph& graph) {
  run(graph, fuse_cached_attention);
  run(graph, fuse_silu_mul);
  run(graph, fuse_norm_add);
  run(graph, [](Uses& uses) { LinearFuser(uses).run(); });
  run(graph, fuse_experts);
  run(graph, drop_unread);
}

}  // namespace wick::graph
