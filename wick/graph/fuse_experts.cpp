// Fuses the steps around a mixture of experts: the choice of experts, the gate before the second
// grouped_linear, and the weighted sum of the experts' results.

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "wick/graph/fuse.h"
#include "wick/graph/uses.h"
#include "wick/tensor/fused.h"

namespace wick::graph {
namespace {

constexpr uint32_t kLastOfTwo = 1u << 1, kMiddle = 1u << 1;

Node fused_node(Op op, Part part, const char* name, std::vector<Value> inputs,
                std::vector<Value> outputs) {
  Node node;
  node.op = op;
  node.part = part;
  node.called_as = name;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

bool is_result(const Node& node, Op op) { return node.op == op && node.part == Part::result; }

/// Whether a node works along the last of two dims.
bool along_rows(const Node& node) {
  const auto* along = std::get_if<AlongDim>(&node.attributes);
  return along != nullptr && along->dim == 1;
}

/// A number that a fill makes for one call. It has at most one dim, so that a call that takes it
/// keeps the rank of the other operand.
struct FilledNumber {
  double value;
  size_t fill;
};
std::optional<FilledNumber> find_number(const Uses& uses, const Value& value, size_t reader) {
  if (!uses.is_temporary(value) || uses.reads(value) != 1 || value.dtype != DType::f32 ||
      value.layout.rank() > 1 || value.layout.shape().elems() != 1) {
    return {};
  }
  const auto fill = uses.last_writer(value, reader);
  if (!fill || !is_result(uses.node(*fill), Op::fill) ||
      !same_elements(uses.node(*fill).outputs[0], value)) {
    return {};
  }
  return FilledNumber{std::get<Numbers>(uses.node(*fill).attributes).p.f, *fill};
}

/// Matches the choice of experts, from the gather of their scores on.
class RouteMatch {
 public:
  RouteMatch(Uses& uses, size_t gather) : uses_(uses), gather_(gather) {}

  bool found() {
    const Node& gather = uses_.node(gather_);
    if (!is_result(gather, Op::gather) || !along_rows(gather) ||
        gather.outputs[0].dtype != DType::f32 || gather.outputs[0].layout.rank() != 2) {
      return false;
    }
    scores_ = gather.inputs[0];
    return find_topk(gather.inputs[1]) && find_scores() && find_weights() && ids_are_read_later();
  }

  void replace() {
    const Value ids = uses_.node(topk_).outputs[1], weights = uses_.node(last_).outputs[0];
    Node fused =
        fused_node(Op::topk, Part::routed, "route_experts", {logits_, bias_}, {ids, weights});
    fused.attributes = routing_;
    uses_.node(last_) = std::move(fused);
    for (const size_t i : merged_) {
      if (i != last_) uses_.merge(i, last_);
    }
  }

 private:
  /// Finds the topk of the scores, or of their sum with a bias, that makes the ids.
  bool find_topk(const Value& ids) {
    const auto topk = uses_.producer(ids, gather_);
    if (!topk || !is_result(uses_.node(*topk), Op::topk)) return false;
    const Node& node = uses_.node(*topk);
    const auto& sorting = std::get<Sorting>(node.attributes);
    if (sorting.dim != 1 || !sorting.descending || !same_elements(ids, node.outputs[1]) ||
        uses_.reads(node.outputs[0]) != 0 || !uses_.is_temporary(node.outputs[0])) {
      return false;
    }
    topk_ = *topk;
    routing_.used = sorting.count;
    merged_ = {gather_, topk_};
    if (same_elements(node.inputs[0], scores_)) return true;
    const auto sum = uses_.sole_producer(node.inputs[0], topk_);
    if (!sum || !is_result(uses_.node(*sum), Op::add)) return false;
    const std::vector<Value>& terms = uses_.node(*sum).inputs;
    const size_t bias = same_elements(terms[0], scores_) ? 1 : 0;
    const Layout& of_bias = terms[bias].layout;
    if (!same_elements(terms[1 - bias], scores_) || of_bias.rank() != 1 ||
        of_bias.shape()[0] != scores_.layout.shape()[1] ||
        uses_.is_written(terms[bias], *sum, gather_)) {
      return false;
    }
    bias_ = terms[bias];
    merged_.push_back(*sum);
    return true;
  }

  /// Finds the op that makes scores of logits; without one, the scores are the logits.
  bool find_scores() {
    logits_ = scores_;
    routing_.scores = ExpertRouting::Scores::logits;
    const auto made = uses_.producer(scores_, gather_);
    if (!made || uses_.reads(scores_) != 2) return true;
    const Node& node = uses_.node(*made);
    const bool softmax = is_result(node, Op::softmax) && along_rows(node);
    if (!softmax && !is_result(node, Op::sigmoid)) return true;
    if (!same_elements(node.outputs[0], scores_)) return true;
    routing_.scores = softmax ? ExpertRouting::Scores::softmax : ExpertRouting::Scores::sigmoid;
    logits_ = node.inputs[0];
    merged_.push_back(*made);
    return true;
  }

  /// Takes the ops that change the weights, as far as there are any.
  bool find_weights() {
    last_ = gather_;
    if (const auto next = sole_reader();
        next && is_result(uses_.node(*next), Op::softmax) && along_rows(uses_.node(*next))) {
      routing_.softmax_of_chosen = true;
      take(*next);
    }
    find_normalization();
    if (const auto next = sole_reader(); next && is_result(uses_.node(*next), Op::mul)) {
      if (const auto scale = find_number(uses_, uses_.node(*next).inputs[1], *next)) {
        routing_.scaled = true;
        routing_.scale = scale->value;
        merged_.push_back(scale->fill);
        take(*next);
      }
    }
    const bool dense = uses_.node(topk_).outputs[1].layout.is_contiguous() &&
                       uses_.node(last_).outputs[0].layout.is_contiguous();
    return dense && !written_before_last(logits_) && !written_before_last(bias_);
  }

  /// The division of the weights by their sum.
  void find_normalization() {
    const Value weights = uses_.node(last_).outputs[0];
    if (!uses_.is_temporary(weights) || uses_.reads(weights) != 2) return;
    const size_t sum = uses_.first_reader(weights);
    const Node& node = uses_.node(sum);
    const auto* over = std::get_if<Reduction>(&node.attributes);
    if (!is_result(node, Op::sum) || over == nullptr || over->dims != kLastOfTwo ||
        !over->keepdim || !same_elements(node.inputs[0], weights) ||
        !uses_.is_temporary(node.outputs[0]) || uses_.reads(node.outputs[0]) != 1) {
      return;
    }
    const size_t division = uses_.first_reader(node.outputs[0]);
    const Node& quotient = uses_.node(division);
    if (!is_result(quotient, Op::div) || !same_elements(quotient.inputs[0], weights) ||
        !same_elements(quotient.inputs[1], node.outputs[0])) {
      return;
    }
    routing_.normalize = true;
    merged_.push_back(sum);
    take(division);
  }

  /// The node that alone reads the last node's result, if its operand is the whole result.
  std::optional<size_t> sole_reader() const {
    const Value& made = uses_.node(last_).outputs[0];
    if (!uses_.is_temporary(made) || uses_.reads(made) != 1) return {};
    const size_t reader = uses_.first_reader(made);
    if (!same_elements(uses_.node(reader).inputs[0], made)) return {};
    return reader;
  }
  void take(size_t node) {
    last_ = node;
    merged_.push_back(node);
  }
  /// The ids exist only after the last node.
  bool ids_are_read_later() const {
    const Value& ids = uses_.node(topk_).outputs[1];
    return !uses_.is_read(ids, topk_, gather_) && !uses_.is_read(ids, gather_, last_);
  }
  bool written_before_last(const Value& value) const {
    size_t first = last_;
    for (const size_t i : merged_) first = std::min(first, i);
    return uses_.is_written(value, first, last_);
  }

  Uses& uses_;
  size_t gather_, topk_ = 0, last_ = 0;
  std::vector<size_t> merged_;
  Value scores_, logits_, bias_;
  ExpertRouting routing_;
};

/// Fuses silu_mul of the halves of a tensor before a grouped_linear, whose x [t·n, k] is the
/// silu_mul's result [t, n, k] as a matrix.
void fuse_gate(Uses& uses, size_t at) {
  Node& grouped = uses.node(at);
  if (grouped.part != Part::grouped || grouped.inputs[0].dtype != DType::f32) return;
  const Value& x = grouped.inputs[0];
  const auto gate = uses.producer(x, at);
  if (!gate || uses.reads(x) != 1 || !is_result(uses.node(*gate), Op::silu_mul)) return;
  const Node& product = uses.node(*gate);
  const Layout& made = product.outputs[0].layout;
  const bool whole = made.is_contiguous() && x.layout.is_contiguous() &&
                     made.offset() == x.layout.offset() &&
                     made.shape().elems() == x.layout.shape().elems() &&
                     made.shape().back() == x.layout.shape().back();
  const std::optional<Value> both = joined(product.inputs[0], product.inputs[1]);
  if (!whole || !both || uses.is_written(*both, *gate, at)) return;
  const Shape rows = x.layout.shape().with(1, 2 * x.layout.shape().back());
  const std::optional<Layout> as_rows = both->layout.reshape(rows);
  if (!as_rows) return;
  grouped.inputs[0] = {both->storage, both->dtype, *as_rows};
  std::get<LinearSteps>(grouped.attributes).silu_mul = true;
  uses.merge(*gate, at);
}

/// y + the bias of each row's expert, as models write it.
struct BiasMatch {
  Value y, bias, ids;
  size_t sum, select;

  /// Whether an operand is written before node `before`, which is to read it.
  bool is_written(const Uses& uses, size_t before) const {
    return uses.is_written(y, sum, before) || uses.is_written(bias, select, before) ||
           uses.is_written(ids, select, before);
  }
};

/// Matches what makes `value` [t, n, k], whose storage has `reads` readers: the addition of rows
/// that ids select of a bias [experts, k].
std::optional<BiasMatch> find_bias(const Uses& uses, const Value& value, size_t reads,
                                   size_t before) {
  const auto sum = uses.producer(value, before);
  if (!sum || uses.reads(value) != reads || !is_result(uses.node(*sum), Op::add)) return {};
  const Node& addition = uses.node(*sum);
  const Shape& shape = addition.outputs[0].layout.shape();
  if (shape.rank() != 3 || addition.outputs[0].dtype != DType::f32 ||
      !same_elements(addition.outputs[0], value)) {
    return {};
  }
  for (const size_t of : {0, 1}) {
    const Value& rows = addition.inputs[of];
    const Value& y = addition.inputs[1 - of];
    const auto select = uses.producer(rows, *sum);
    if (!select || uses.reads(rows) != 1 || !is_result(uses.node(*select), Op::index_select) ||
        !(rows.layout.shape() == shape) || !(y.layout.shape() == shape)) {
      continue;
    }
    const Node& selection = uses.node(*select);
    const Value &bias = selection.inputs[0], &ids = selection.inputs[1],
                &made = selection.outputs[0];
    const bool fits = std::get<Selection>(selection.attributes).dim == 0 &&
                      bias.dtype == DType::f32 && bias.layout.rank() == 2 &&
                      bias.layout.shape()[1] == shape[2] && bias.layout.is_contiguous() &&
                      ids.dtype == DType::u32 && ids.layout.rank() == 1 &&
                      ids.layout.is_contiguous() && made.layout.is_contiguous() &&
                      rows.layout.is_contiguous() && made.layout.offset() == rows.layout.offset() &&
                      made.layout.shape().elems() == shape.elems();
    if (fits) return BiasMatch{y, bias, ids, *sum, *select};
  }
  return {};
}

/// Matches the clamped SwiGLU of the halves of a tensor, from its last product on.
class GateMatch {
 public:
  GateMatch(Uses& uses, size_t last) : uses_(uses), last_(last) {}

  bool found() {
    const Node& product = uses_.node(last_);
    if (!is_result(product, Op::mul) || product.outputs[0].layout.rank() != 3 ||
        product.outputs[0].dtype != DType::f32) {
      return false;
    }
    // (g · sigmoid(g · alpha)) · (u + 1)
    const auto gated = take(product.inputs[0], Op::mul), up = take(product.inputs[1], Op::add);
    const auto one = up ? take_number(*up) : std::nullopt;
    if (!gated || one != 1) return false;
    const Value& g = uses_.node(*gated).inputs[0];
    const auto s = take(uses_.node(*gated).inputs[1], Op::sigmoid);
    const auto times = s ? take(uses_.node(*s).inputs[0], Op::mul) : s;
    const auto alpha = times ? take_number(*times) : std::nullopt;
    if (!alpha || !same_elements(uses_.node(*times).inputs[0], g)) return false;
    const auto clamped = uses_.producer(g, last_);
    const auto u = take(uses_.node(*up).inputs[0], Op::clamp);
    if (!clamped || !u || !is_result(uses_.node(*clamped), Op::clamp) || uses_.reads(g) != 2 ||
        !same_elements(uses_.node(*clamped).outputs[0], g)) {
      return false;
    }
    alpha_ = *alpha;
    limit_ = numbers(*clamped).q.f;
    merged_.push_back(*clamped);
    if (numbers(*clamped).p.f != -INFINITY || !numbers_are(*u, -limit_, limit_)) return false;
    const std::optional<Value> both =
        joined(uses_.node(*clamped).inputs[0], uses_.node(*u).inputs[0]);
    if (!both || !both->layout.is_contiguous()) return false;
    y_ = *both;
    first_ = std::min(*clamped, *u);
    if (uses_.is_written(y_, first_, last_)) return false;
    bias_ = find_bias(uses_, y_, 2, first_);
    return !bias_ || !bias_->is_written(uses_, last_);
  }

  void replace() {
    Node fused = fused_node(Op::mul, Part::gated, "gate_experts", {y_, Value{}, Value{}},
                            uses_.node(last_).outputs);
    fused.attributes = Numbers{alpha_, limit_};
    if (bias_) {
      fused.inputs = {bias_->y, bias_->bias, bias_->ids};
      merged_.push_back(bias_->sum);
      merged_.push_back(bias_->select);
    }
    uses_.node(last_) = std::move(fused);
    for (const size_t i : merged_) uses_.merge(i, last_);
  }

 private:
  const Numbers& numbers(size_t node) const {
    return std::get<Numbers>(uses_.node(node).attributes);
  }
  bool numbers_are(size_t node, double p, double q) const {
    return numbers(node).p.f == p && numbers(node).q.f == q;
  }
  /// The node of this op that makes a value which nothing else reads.
  std::optional<size_t> take(const Value& value, Op op) {
    const auto made = uses_.sole_producer(value, last_);
    if (!made || !is_result(uses_.node(*made), op)) return {};
    merged_.push_back(*made);
    return made;
  }

  /// The number that is the second operand of a node.
  std::optional<double> take_number(size_t node) {
    const auto number = find_number(uses_, uses_.node(node).inputs[1], node);
    if (!number) return {};
    merged_.push_back(number->fill);
    return number->value;
  }

  Uses& uses_;
  size_t last_, first_ = 0;
  std::vector<size_t> merged_;
  Value y_;
  std::optional<BiasMatch> bias_;
  double alpha_ = 0, limit_ = 0;
};

/// The f32 addition that alone reads the result of node `at`, and has its shape.
std::optional<size_t> find_residual(const Uses& uses, size_t at) {
  const Value& result = uses.node(at).outputs[0];
  if (!uses.is_temporary(result) || uses.reads(result) != 1) return {};
  const size_t reader = uses.first_reader(result);
  const Node& addition = uses.node(reader);
  if (!is_result(addition, Op::add) || addition.outputs[0].dtype != DType::f32 ||
      !(addition.outputs[0].layout.shape() == result.layout.shape())) {
    return {};
  }
  const bool whole =
      same_elements(addition.inputs[0], result) || same_elements(addition.inputs[1], result);
  return whole ? std::optional(reader) : std::nullopt;
}

/// Fuses the sum over the middle dim of y [t, n, k] times weights [t, n, 1], and an addition after
/// it.
void fuse_sum(Uses& uses, size_t at) {
  const Node& sum = uses.node(at);
  const auto* over = std::get_if<Reduction>(&sum.attributes);
  if (!is_result(sum, Op::sum) || over == nullptr || over->dims != kMiddle || over->keepdim ||
      sum.outputs[0].dtype != DType::f32 || sum.inputs[0].layout.rank() != 3) {
    return;
  }
  const auto product = uses.sole_producer(sum.inputs[0], at);
  if (!product || !is_result(uses.node(*product), Op::mul)) return;
  const Value &y = uses.node(*product).inputs[0], &weights = uses.node(*product).inputs[1];
  const Shape& shape = sum.inputs[0].layout.shape();
  if (!(y.layout.shape() == shape) || !(weights.layout.shape() == shape.with(2, 1)) ||
      uses.is_written(y, *product, at) || uses.is_written(weights, *product, at)) {
    return;
  }
  size_t last = at;
  Value residual;
  if (const auto addition = find_residual(uses, at)) {
    if (!uses.is_written(y, at, *addition) && !uses.is_written(weights, at, *addition)) {
      last = *addition;
      const std::vector<Value>& terms = uses.node(last).inputs;
      residual = terms[same_elements(terms[0], sum.outputs[0]) ? 1 : 0];
      residual.layout = residual.layout.broadcast_to(sum.outputs[0].layout.shape());
    }
  }
  Node fused = fused_node(Op::sum, Part::combined, "combine_experts",
                          {y, weights, residual, Value{}, Value{}}, uses.node(last).outputs);
  const std::optional<BiasMatch> biased = find_bias(uses, y, 1, *product);
  if (biased && !biased->is_written(uses, last)) {
    fused.inputs[0] = biased->y;
    fused.inputs[3] = biased->bias;
    fused.inputs[4] = biased->ids;
    uses.merge(biased->sum, last);
    uses.merge(biased->select, last);
  }
  uses.node(last) = std::move(fused);
  uses.merge(*product, last);
  if (last != at) uses.merge(at, last);
}

}  // namespace

void fuse_experts(Uses& uses) {
  for (size_t i = 0; i < uses.count(); ++i) {
    if (uses.is_removed(i)) continue;
    if (RouteMatch match(uses, i); match.found()) {
      match.replace();
      continue;
    }
    if (GateMatch match(uses, i); match.found()) {
      match.replace();
      continue;
    }
    fuse_gate(uses, i);
    fuse_sum(uses, i);
  }
}

}  // namespace wick::graph
