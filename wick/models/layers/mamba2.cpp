#include "wick/models/layers/mamba2.h"

#include "wick/models/layers/mlp.h"

namespace wick::models {
namespace {

/// The channels of the convolution: x, b and c.
int64_t mamba_channels(const RecurrentConfig& r) { return r.inner + 2 * r.groups * r.state; }

}  // namespace

Tensor softplus(const Tensor& x) { return relu(x) + log1p(exp(neg(abs(x)))); }

nn::KvLayer Mamba2::cache_of(const DecoderConfig& config) {
  const RecurrentConfig& r = config.recurrent;
  return {.states = {{r.taps - 1, mamba_channels(r)}, {r.heads, r.state, r.inner / r.heads}}};
}

Mamba2::Mamba2(const LayerLoader& loader)
    : sizes_(loader.config.recurrent),
      in_(loader.linear("ssm_in", sizes_.inner + mamba_channels(sizes_) + sizes_.heads,
                        loader.config.hidden)),
      conv_(loader, "ssm_conv1d", mamba_channels(sizes_), sizes_.taps),
      a_(loader.vector("ssm_a", sizes_.heads)),
      d_(loader.vector("ssm_d", sizes_.heads)),
      step_bias_(loader.vector("ssm_dt.bias", sizes_.heads)),
      output_(loader.linear("ssm_out", loader.config.hidden, sizes_.inner)) {
  if (!loader.has("ssm_norm")) return;
  norm_ = loader.head_norm("ssm_norm", sizes_.groups, sizes_.inner / sizes_.groups, {});
}

/// The scan of a run's rows: the convolution's result [t, channels] and steps [t, h] → [t, h · p].
Tensor Mamba2::scanned(const Tensor& mixed, const Tensor& steps, const LayerCache& cache,
                       const Tensor& slots) const {
  const int64_t t = mixed.size(0), shared = sizes_.groups * sizes_.state;
  const int64_t sizes[] = {sizes_.inner, shared, shared};
  const std::vector<Tensor> parts = mixed.split(sizes, -1);
  const auto grouped = [&](const Tensor& x) { return x.reshape({t, sizes_.groups, sizes_.state}); };
  const Tensor x = parts[0].reshape({t, sizes_.heads, sizes_.inner / sizes_.heads});
  return ssm_scan(x, steps, a_, grouped(parts[1]), grouped(parts[2]), cache.states[1], slots, d_)
      .reshape({t, sizes_.inner});
}

Tensor Mamba2::operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const {
  const int64_t sizes[] = {sizes_.inner, mamba_channels(sizes_), sizes_.heads};
  const std::vector<Tensor> parts = in_(x, rows.set()).split(sizes, -1);
  const Tensor steps = softplus(parts[2] + step_bias_);
  const Tensor y = of_runs(rows, [&](const StepRows::Run& run) {
    const Tensor mixed = silu(conv_(run.of(parts[1]), cache.states[0], run.slots));
    return scanned(mixed, run.of(steps), cache, run.slots);
  });
  const Tensor heads = gated(Activation::silu, parts[0], y);
  if (!norm_) return heads;
  return (*norm_)(heads.reshape({x.size(0), sizes_.groups, sizes_.inner / sizes_.groups}))
      .reshape(heads.shape());
}

nn::KvLayer AttentionAndMamba2::cache_of(const DecoderConfig& config, const LayerConfig& layer) {
  nn::KvLayer both = GroupedAttention::cache_of(layer);
  both.states = Mamba2::cache_of(config).states;
  return both;
}

AttentionAndMamba2::AttentionAndMamba2(const LayerLoader& loader)
    : attention_width_(loader.layer.heads * loader.layer.value_size),
      attention_(loader),
      mamba_(loader) {}

Tensor AttentionAndMamba2::operator()(const Tensor& x, const StepRows& rows,
                                      const LayerCache& cache) const {
  const Tensor heads[] = {attention_(x, rows, cache), mamba_(x, rows, cache)};
  return cat(heads, 1);
}

Tensor AttentionAndMamba2::output(const Tensor& heads, Runs runs) const {
  const int64_t rest = heads.size(1) - attention_width_;
  return attention_.output(heads.narrow(1, 0, attention_width_), runs) +
         mamba_.output(heads.narrow(1, attention_width_, rest), runs);
}

}  // namespace wick::models
