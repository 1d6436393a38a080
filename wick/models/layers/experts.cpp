#include "wick/models/layers/experts.h"

#include <cmath>

#include "wick/models/layers/grouped.h"
#include "wick/models/observe.h"
#include "wick/tensor/index_ops.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

constexpr int kLastDim[] = {-1}, kChosenDim[] = {1};

/// The rows of x [count, w] that ids [t, n] select: [t, n, w].
Tensor of_ids(const Tensor& x, const Tensor& ids) {
  return index_select(x, ids.reshape({ids.elems()}), 0)
      .reshape({ids.size(0), ids.size(1), x.size(1)});
}

/// Adds each row's bias: y [t, n, w], bias [count, w], ids [t, n].
Tensor biased(const Tensor& y, const Tensor& bias, const Tensor& ids) {
  return bias.defined() ? y + of_ids(bias, ids) : y;
}

}  // namespace

Experts::Experts(const LayerLoader& loader)
    : config_(loader.config.experts),
      activation_(loader.config.activation),
      router_(loader.linear("ffn_gate_inp", config_.count, loader.config.hidden)) {
  const Weights& w = loader.weights;
  const int64_t count = config_.count, width = config_.intermediate, hidden = loader.config.hidden;
  if (constexpr const char* kBias = "exp_probs_b.bias"; w.contains(kBias)) {
    // ERNIE's files have a matrix of one row.
    const Shape shape = w.rank(kBias) == 2 ? Shape{1, count} : Shape{count};
    selection_bias_ = w.floats(kBias, shape).reshape({count}).to(loader.device);
  }
  const auto packed = [&](std::span<const Tensor> parts) {
    return Weight(parts, loader.experts, loader.release);
  };
  const auto named = [&](const char* name) { return w.prefix() + name; };
  down_name_ = {named("ffn_down_exps.weight")};
  if (loader.has("ffn_gate_up_exps")) {
    in_names_ = {named("ffn_gate_up_exps.weight")};
    for (const Tensor& both : w.matrices("ffn_gate_up_exps.weight", count, 2 * width, hidden)) {
      in_.push_back(packed({&both, 1}));
    }
  } else {
    in_names_ = {named("ffn_gate_exps.weight"), named("ffn_up_exps.weight")};
    const std::vector<Tensor> gates = w.matrices("ffn_gate_exps.weight", count, width, hidden);
    const std::vector<Tensor> ups = w.matrices("ffn_up_exps.weight", count, width, hidden);
    for (size_t i = 0; i < gates.size(); ++i) {
      const Tensor both[] = {gates[i], ups[i]};
      in_.push_back(packed(both));
    }
  }
  for (const Tensor& down : w.matrices("ffn_down_exps.weight", count, hidden, width)) {
    down_.push_back(packed({&down, 1}));
  }
  if (w.contains("ffn_gate_exps.bias")) {
    const Tensor biases[] = {w.floats("ffn_gate_exps.bias", {count, width}),
                             w.floats("ffn_up_exps.bias", {count, width})};
    in_bias_ = cat(biases, 1).to(loader.experts);
    down_bias_ = w.floats("ffn_down_exps.bias", {count, hidden}).to(loader.experts);
  }
  load_scales(loader);
  load_updates(loader);
  load_extras(loader);
  if (config_.shared > 0) {
    shared_ = Mlp(loader, config_.shared, "_shexp");
    if (loader.has("ffn_gate_inp_shexp")) {
      // The file has a vector or a matrix of one row.
      const Tensor row = w.rank("ffn_gate_inp_shexp.weight") == 1
                             ? w.vector("ffn_gate_inp_shexp.weight", hidden).unsqueeze(0)
                             : w.matrix("ffn_gate_inp_shexp.weight", 1, hidden);
      shared_gate_ = nn::Linear(row, {}, loader.device, false);
    }
  }
}

/// The factors of the experts' matrices.
void Experts::load_scales(const LayerLoader& loader) {
  const Weights& w = loader.weights;
  const int64_t count = config_.count, width = config_.intermediate;
  const Tensor down = w.optional_scales("ffn_down_exps", count);
  if (down.defined()) down_scales_ = down.unsqueeze(-1).to(loader.experts);
  const Tensor gates = w.optional_scales("ffn_gate_exps", count);
  const Tensor ups = w.optional_scales("ffn_up_exps", count);
  if (!gates.defined() && !ups.defined()) return;
  const Tensor ones = Tensor::ones({count}, DType::f32);
  const auto wide = [&](const Tensor& x) {
    return (x.defined() ? x : ones).unsqueeze(-1).broadcast_to({count, width});
  };
  const Tensor both[] = {wide(gates), wide(ups)};
  in_scales_ = cat(both, 1).to(loader.experts);
}

void Experts::load_updates(const LayerLoader& loader) {
  const int64_t count = config_.count, width = config_.intermediate, hidden = loader.config.hidden;
  const auto add = [&](StackUpdates& to, const char* name, int64_t n, int64_t k, int64_t offset) {
    to.add(loader.weights.prefix() + name, count, n, k, offset, loader.adapters, loader.experts);
  };
  add(in_updates_, "ffn_gate_exps.weight", width, hidden, 0);
  add(in_updates_, "ffn_up_exps.weight", width, hidden, width);
  if (loader.has("ffn_gate_up_exps")) {
    add(in_updates_, "ffn_gate_up_exps.weight", 2 * width, hidden, 0);
  }
  add(down_updates_, "ffn_down_exps.weight", hidden, width, 0);
}

/// Gemma 4's norms.
void Experts::load_extras(const LayerLoader& loader) {
  const Weights& w = loader.weights;
  const int64_t hidden = loader.config.hidden;
  if (w.contains("ffn_gate_inp.scale")) {
    const float root = 1.0f / std::sqrt(static_cast<float>(hidden));
    router_norm_ = nn::Norm(nn::NormKind::rms, w.vector("ffn_gate_inp.scale", hidden) * root, {},
                            loader.config.norm_eps, loader.device);
  }
  if (!config_.beside_mlp) return;
  mlp_norm_ = loader.norm("ffn_norm", hidden);
  mlp_post_norm_ = loader.norm("post_ffw_norm_1", hidden);
  norm_ = loader.norm("pre_ffw_norm_2", hidden);
  post_norm_ = loader.norm("post_ffw_norm_2", hidden);
  shared_ = Mlp(loader, loader.layer.intermediate);
}

/// Sets the scores of experts outside the best groups to −inf. A group's score is the sum of its
/// two best, or, for softmax scores, its best (DeepSeek-V2).
Tensor Experts::within_groups(const Tensor& selection) const {
  const int64_t t = selection.size(0), groups = config_.groups, each = config_.count / groups;
  const Tensor grouped = selection.reshape({t, groups, each});
  const bool best_two = config_.gating == Gating::sigmoid;
  const Tensor scores = sum(topk(grouped, best_two ? 2 : 1, -1).values, kLastDim);
  const Tensor ids = topk(scores, config_.groups_used, -1).indices;
  const Tensor zeros = Tensor::zeros({t, groups}, DType::f32, selection.device());
  const Tensor ones = Tensor::ones(ids.shape(), DType::f32, selection.device());
  const Tensor used = scatter(zeros, ids, ones, -1).unsqueeze(-1).broadcast_to({t, groups, each});
  const Tensor out = Tensor::full({t, groups, each}, -INFINITY, DType::f32, selection.device());
  return where(used.to(DType::boolean), grouped, out).reshape({t, config_.count});
}

Experts::Chosen Experts::choose(const Tensor& x, Runs runs) const {
  const Tensor logits = router_(router_norm_ ? (*router_norm_)(x) : x, runs);
  Tensor scores = logits;
  if (config_.gating == Gating::softmax) scores = softmax(logits, -1);
  if (config_.gating == Gating::sigmoid) scores = sigmoid(logits);
  Tensor selection = selection_bias_.defined() ? scores + selection_bias_ : scores;
  if (config_.groups_used < config_.groups) selection = within_groups(selection);
  const Tensor ids = topk(selection, config_.used, -1).indices;
  Tensor weights = gather(scores, ids, -1);
  if (config_.gating == Gating::softmax_of_chosen) weights = softmax(weights, -1);
  if (config_.normalize) weights = weights / sum(weights, kLastDim, true);
  if (config_.scale != 1.0f) weights = weights * config_.scale;
  return {ids, weights};
}

Tensor Experts::grouped(const Tensor& x, const std::vector<Weight>& weights,
                        const std::vector<std::string>& names, const Tensor& ids, Runs runs) const {
  if (InputObserver* const observer = input_observer()) {
    observer->on_input(names, config_.count, x, ids);
  }
  return grouped_of_runs(x, weights, ids, runs);
}

Tensor Experts::through_experts(const Tensor& x, const Chosen& chosen, Runs runs) const {
  const auto& [ids, weights] = chosen;
  const int64_t t = x.size(0), n = config_.used, rows = t * n;
  const Tensor of_rows = ids.reshape({rows, 1});
  const Tensor factors = weights.unsqueeze(-1);  // [t, n, 1]
  Tensor y;
  if (config_.weigh_inputs) {
    const Tensor weighed = (x.unsqueeze(1) * factors).reshape({rows, x.size(1)});
    y = grouped(weighed, in_, in_names_, of_rows, runs).reshape({t, n, in_.front().n()});
    if (in_scales_.defined()) y = y * of_ids(in_scales_, ids);
    y = in_updates_(y, weighed, of_rows, runs);
  } else {
    y = grouped(x, in_, in_names_, ids, runs);
    if (in_scales_.defined()) y = y * of_ids(in_scales_, ids);
    y = in_updates_(y, x, ids, runs);
  }
  const std::vector<Tensor> halves = biased(y, in_bias_, ids).chunk(2, -1);
  const Tensor inner = gated(activation_, halves[0], halves[1]);
  const Tensor inner_rows = inner.reshape({rows, config_.intermediate});
  y = grouped(inner_rows, down_, down_name_, of_rows, runs).reshape({t, n, x.size(1)});
  const auto scaled = [&](const Tensor& product) {
    return down_scales_.defined() ? product * of_ids(down_scales_, ids) : product;
  };
  const auto updated = [&](const Tensor& product) {
    return down_updates_(product, inner_rows, of_rows, runs);
  };
  // Gemma 4's factors are those of the experts' results. Other files have factors of the matrices,
  // which adapters don't see.
  y = config_.beside_mlp ? scaled(updated(y)) : updated(scaled(y));
  y = biased(y, down_bias_, ids);
  if (!config_.weigh_inputs) y = y * factors;
  return sum(y, kChosenDim);
}

Tensor Experts::operator()(const Tensor& x, Runs runs) const {
  const Routed routed = route(x, runs);
  return finish(through_experts(routed.x, routed.chosen, runs), routed.shared);
}

Experts::Routed Experts::route(const Tensor& x, Runs runs) const {
  Routed routed{.x = config_.beside_mlp ? (*norm_)(x) : x, .chosen = choose(x, runs), .shared = {}};
  if (!shared_) return routed;
  if (config_.beside_mlp) {
    routed.shared = (*mlp_post_norm_)((*shared_)((*mlp_norm_)(x), runs));
    return routed;
  }
  routed.shared = (*shared_)(x, runs);
  if (shared_gate_) {
    routed.shared = routed.shared * sigmoid((*shared_gate_)(x, runs.sequences));
  }
  return routed;
}

Tensor Experts::finish(const Tensor& of_experts, const Tensor& shared) const {
  if (config_.beside_mlp) return shared + (*post_norm_)(of_experts);
  return shared.defined() ? of_experts + shared : of_experts;
}

}  // namespace wick::models
