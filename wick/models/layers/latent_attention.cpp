#include "wick/models/layers/latent_attention.h"

#include "wick/base/block_pages.h"
#include "wick/base/error.h"
#include "wick/models/layers/grouped.h"
#include "wick/models/observe.h"
#include "wick/tensor/ops.h"

namespace wick::models {

nn::KvLayer LatentAttention::cache_of(const DecoderConfig& config) {
  return {.heads = 1,
          .key_size = config.latent.rotated + config.latent.rank,
          .value_size = 0,
          .value_first = config.latent.rotated};
}

LatentAttention::LatentAttention(const LayerLoader& loader)
    : layer_(loader.layer),
      latent_(loader.config.latent),
      options_{.scale = loader.config.attention_scale,
               .causal = true,
               .soft_cap = loader.config.attention_soft_cap} {
  const int64_t hidden = loader.config.hidden, heads = layer_.heads;
  if (latent_.query_rank > 0) {
    query_down_ = loader.linear("attn_q_a", latent_.query_rank, hidden);
    query_norm_ = loader.norm("attn_q_a_norm", latent_.query_rank);
    query_ = loader.linear("attn_q_b", heads * layer_.key_size, latent_.query_rank);
  } else {
    query_ = loader.linear("attn_q", heads * layer_.key_size, hidden);
  }
  key_value_down_ = loader.linear("attn_kv_a_mqa", latent_.rank + latent_.rotated, hidden);
  latent_norm_ = loader.norm("attn_kv_a_norm", latent_.rank);
  load_head_projections(loader);
  load_updates(loader);
  std::vector<uint32_t> numbers;
  for (int64_t i = 0; i < heads; ++i) numbers.push_back(static_cast<uint32_t>(i));
  heads_ = Tensor::from(numbers, {heads}, loader.device);
  output_ = loader.linear("attn_output", hidden, heads * layer_.value_size);
}

void LatentAttention::load_head_projections(const LayerLoader& loader) {
  const Weights& w = loader.weights;
  const int64_t heads = layer_.heads, rank = latent_.rank, values = layer_.value_size;
  const int64_t keys = layer_.key_size - latent_.rotated;
  const auto packed = [&](const Tensor& matrix) {
    return Weight({&matrix, 1}, loader.device, loader.release);
  };
  if (loader.has("attn_k_b")) {
    key_up_name_ = {w.prefix() + "attn_k_b.weight"};
    value_up_name_ = {w.prefix() + "attn_v_b.weight"};
    for (const Tensor& m : w.matrices("attn_k_b.weight", heads, rank, keys)) {
      key_up_.push_back(packed(m));
    }
    for (const Tensor& m : w.matrices("attn_v_b.weight", heads, values, rank)) {
      value_up_.push_back(packed(m));
    }
    return;
  }
  // Older files have both in one matrix, with the keys' part turned the other way.
  const Tensor both = w.matrix("attn_kv_b.weight", heads * (keys + values), rank);
  const Tensor floats = is_block(both.dtype()) ? dequantize(both) : both.to(DType::f32);
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t first = head * (keys + values);
    key_up_.push_back(packed(floats.narrow(0, first, keys).t().contiguous()));
    value_up_.push_back(packed(floats.narrow(0, first + keys, values).contiguous()));
  }
}

/// Adapters have the factors of each head's matrices, or those of the matrix from which both come.
void LatentAttention::load_updates(const LayerLoader& loader) {
  const int64_t heads = layer_.heads, rank = latent_.rank, values = layer_.value_size;
  const int64_t keys = layer_.key_size - latent_.rotated;
  const std::string& prefix = loader.weights.prefix();
  key_updates_.add(prefix + "attn_k_b.weight", heads, rank, keys, 0, loader.adapters,
                   loader.device);
  value_updates_.add(prefix + "attn_v_b.weight", heads, values, rank, 0, loader.adapters,
                     loader.device);
  for (size_t i = 0; i < loader.adapters.size(); ++i) {
    const Adapter& adapter = loader.adapters[i];
    const std::string name = prefix + "attn_kv_b.weight";
    const MatrixChange* const change = adapter.find(name, heads * (keys + values), rank);
    if (change == nullptr) continue;
    if (!change->a.defined() || change->magnitude.defined() || change->shift.defined() ||
        change->bias.defined()) {
      throw Error(ErrorKind::not_implemented, adapter.path(),
                  "only factors of this matrix are supported", name);
    }
    const int64_t inner = change->a.size(0);
    const Tensor a = change->a.unsqueeze(0).broadcast_to({heads, inner, rank});
    const Tensor b = change->b.reshape({heads, keys + values, inner});
    // The matrix of the keys is transposed, and with it the product of the factors.
    key_updates_.add(static_cast<int64_t>(i), b.narrow(1, 0, keys).transpose(1, 2),
                     a.transpose(1, 2), 0, loader.device);
    value_updates_.add(static_cast<int64_t>(i), a, b.narrow(1, keys, values), 0, loader.device);
  }
}

/// x [t, hidden] → [t, h, d]
Tensor LatentAttention::queries(const Tensor& x, Runs runs) const {
  const Tensor in = query_down_ ? (*query_norm_)((*query_down_)(x, runs)) : x;
  return query_(in, runs).reshape({x.size(0), layer_.heads, layer_.key_size});
}

Tensor LatentAttention::by_head(const Tensor& x, const std::vector<Weight>& weights,
                                const std::vector<std::string>& names, const StackUpdates& updates,
                                Runs runs) const {
  const int64_t t = x.size(0), h = x.size(1);
  const Tensor ids = heads_.unsqueeze(0).broadcast_to({t, h}).reshape({t * h, 1});
  const Tensor rows = x.reshape({t * h, x.size(2)});
  if (InputObserver* const observer = input_observer(); observer != nullptr && !names.empty()) {
    observer->on_input(names, h, rows, ids);
  }
  const Tensor y = grouped_of_runs(rows, weights, ids, runs).reshape({t, h, weights.front().n()});
  return updates(y, rows, ids, runs);
}

Tensor LatentAttention::operator()(const Tensor& x, const StepRows& rows,
                                   const LayerCache& cache) const {
  const int64_t plain = layer_.key_size - latent_.rotated, t = x.size(0);
  const Tensor q = queries(x, rows.set());
  const Tensor of_latent =
      by_head(q.narrow(2, 0, plain), key_up_, key_up_name_, key_updates_, rows.set());
  const Tensor rotated[] = {q.narrow(2, plain, latent_.rotated), of_latent};
  const Tensor full = cat(rotated, 2);  // [t, h, rotated + rank]
  const Tensor down = key_value_down_(x, rows.set());
  const Tensor stored[] = {down.narrow(1, latent_.rank, latent_.rotated),
                           latent_norm_(down.narrow(1, 0, latent_.rank))};
  const Tensor keys = cat(stored, 1).unsqueeze(1);  // [t, 1, rotated + rank]
  // The values are elements of the keys. Pages of blocks have a dim of blocks.
  constexpr int64_t kBlock = BlockPages::kValues;
  const bool of_blocks = BlockPages::of(cache.keys.dtype(), cache.keys.shape()).has_value();
  const Tensor values = of_blocks
                            ? cache.keys.narrow(2, latent_.rotated / kBlock, latent_.rank / kBlock)
                            : cache.keys.transpose(2, 3).narrow(3, latent_.rotated, latent_.rank);
  std::vector<Tensor> ys;
  for (const StepRows::Run& run : rows.runs) {
    Tensor of_q = run.of(full);
    if (layer_.temperature) of_q = of_q * run.temperature;
    ys.push_back(nn::attend(of_q, run.of(keys), {}, run.rows,
                            run.rotations[static_cast<size_t>(layer_.rope)], cache.keys, values,
                            options_));
  }
  const Tensor y = ys.size() == 1 ? ys.front() : cat(ys, 0);
  return by_head(y.reshape({t, layer_.heads, latent_.rank}), value_up_, value_up_name_,
                 value_updates_, rows.set())
      .reshape({t, layer_.heads * layer_.value_size});
}

}  // namespace wick::models
