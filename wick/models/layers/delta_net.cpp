#include "wick/models/layers/delta_net.h"

#include <cmath>

#include "wick/models/layers/mamba2.h"
#include "wick/models/layers/mlp.h"

namespace wick::models {
namespace {

constexpr float kLengthEps = 1e-6f;  // is added to the squared lengths of queries and keys

/// The channels of the convolution: q, k and v.
int64_t delta_channels(const RecurrentConfig& r) { return 2 * r.groups * r.state + r.inner; }

/// factor · x / sqrt(Σ x² + eps) of vectors of m elements, as an RMS norm.
nn::Norm length_norm(int64_t m, float factor, Device device) {
  const auto size = static_cast<float>(m);
  const Tensor weight =
      Tensor::full({m}, static_cast<double>(factor / std::sqrt(size)), DType::f32);
  return {nn::NormKind::rms, weight, {}, kLengthEps / size, device};
}

/// The order of the rows of betas and decays, which the file has side by side for each group:
/// betas of all heads, then decays.
std::vector<int64_t> order_of_numbers(const RecurrentConfig& r) {
  const int64_t each = r.heads / r.groups;
  std::vector<int64_t> order;
  for (const int64_t part : {0, 1}) {
    for (int64_t head = 0; head < r.heads; ++head) {
      order.push_back((head / each * 2 + part) * each + head % each);
    }
  }
  return order;
}

}  // namespace

nn::KvLayer DeltaNet::cache_of(const DecoderConfig& config) {
  const RecurrentConfig& r = config.recurrent;
  return {.states = {{r.taps - 1, delta_channels(r)}, {r.heads, r.state, r.inner / r.heads}}};
}

DeltaNet::DeltaNet(const LayerLoader& loader)
    : sizes_(loader.config.recurrent),
      in_(loader.projections({{"attn_qkv", delta_channels(sizes_)},
                              {"attn_gate", sizes_.inner},
                              {"ssm_ba", 2 * sizes_.heads, order_of_numbers(sizes_)}},
                             loader.config.hidden, false)),
      conv_(loader, "ssm_conv1d", delta_channels(sizes_), sizes_.taps),
      query_norm_(length_norm(sizes_.state, 1.0f / std::sqrt(static_cast<float>(sizes_.state)),
                              loader.device)),
      key_norm_(length_norm(sizes_.state, 1.0f, loader.device)),
      a_(loader.vector("ssm_a", sizes_.heads)),
      step_bias_(loader.vector("ssm_dt.bias", sizes_.heads)),
      norm_(loader.norm("ssm_norm", sizes_.inner / sizes_.heads)),
      output_(loader.linear("ssm_out", loader.config.hidden, sizes_.inner)) {}

/// The scan of a run's rows: the convolution's result [t, channels], decays and betas [t, h] → [t,
/// h, e].
Tensor DeltaNet::scanned(const Tensor& mixed, const Tensor& decays, const Tensor& betas,
                         const LayerCache& cache, const Tensor& slots) const {
  const int64_t t = mixed.size(0), shared = sizes_.groups * sizes_.state;
  const int64_t sizes[] = {shared, shared, sizes_.inner};
  const std::vector<Tensor> parts = mixed.split(sizes, -1);
  const auto grouped = [&](const Tensor& x) { return x.reshape({t, sizes_.groups, sizes_.state}); };
  const Tensor v = parts[2].reshape({t, sizes_.heads, sizes_.inner / sizes_.heads});
  return gated_delta_scan(query_norm_(grouped(parts[0])), key_norm_(grouped(parts[1])), v, decays,
                          betas, cache.states[1], slots);
}

Tensor DeltaNet::operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const {
  const int64_t sizes[] = {delta_channels(sizes_), sizes_.inner, sizes_.heads, sizes_.heads};
  const std::vector<Tensor> parts = in_(x, rows.set()).split(sizes, -1);
  const Tensor betas = sigmoid(parts[2]);
  const Tensor decays = a_ * softplus(parts[3] + step_bias_);
  const Tensor y = of_runs(rows, [&](const StepRows::Run& run) {
    const Tensor mixed = silu(conv_(run.of(parts[0]), cache.states[0], run.slots));
    return scanned(mixed, run.of(decays), run.of(betas), cache, run.slots);
  });
  const Tensor gates = parts[1].reshape(y.shape());
  return gated(Activation::silu, gates, norm_(y)).reshape({x.size(0), sizes_.inner});
}

}  // namespace wick::models
