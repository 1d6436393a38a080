#include "wick/models/decoder_lm.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "wick/base/error.h"
#include "wick/models/fused.h"
#include "wick/tensor/ops.h"

namespace wick::models {

namespace {

/// The number of slices that a layer's rows are cut into. Each slice goes through the whole layer
/// before the next one, so that its intermediates stay in caches. Rows are independent, so the
/// number doesn't change their bits. Float weights get one slice: they are unpacked again for each,
/// which costs more than the caches save.
int64_t slice_count(const Batch& batch, Device device, bool blocks) {
  const int64_t rows = rows_in_cache(device);
  if (rows == 0 || !blocks) return 1;
  const bool one_sequence = batch.runs.size() == 1 && batch.runs.front().tables.size(0) == 1;
  return one_sequence ? std::max<int64_t>(1, batch.rows() / rows) : 1;
}

/// y [t, n · size] → [t, n, size]
Tensor split_heads(const Tensor& y, int64_t size) {
  return y.reshape({y.size(0), y.size(1) / size, size});
}

const nn::RmsNorm* or_null(const std::optional<nn::RmsNorm>& norm) {
  return norm ? &*norm : nullptr;
}

}  // namespace

struct DecoderLm::Step {
  struct Rotation {
    Tensor cos, sin;  // [positions that the cache reaches to, r/2]
  };
  const nn::KvCache& cache;
  std::array<Rotation, 2> rotation = {};  // of layers that see all keys, of those with a window

  const Rotation& of(int64_t window) const {
    return rotation[window > 0 && rotation[1].cos.defined() ? 1 : 0];
  }
};

// ---- Computing ----

Tensor DecoderLm::forward(const Batch& batch, nn::KvCache& cache) const {
  require_file("forward");  // also reinstalls the SIGBUS handler
  const Step step = step_of(cache);
  const int64_t slices = slice_count(batch, device_, block_weights_), rows = batch.rows();
  std::vector<Batch> parts;
  std::vector<Tensor> xs;  // [t, hidden] each
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t begin = rows * i / slices, end = rows * (i + 1) / slices;
    parts.push_back(batch.slice(begin, end - begin));
    xs.push_back(embed(parts.back().tokens));
  }
  for (const Block& block : blocks_) {
    for (size_t i = 0; i < xs.size(); ++i) xs[i] = layer(block, std::move(xs[i]), parts[i], step);
  }
  Tensor result = head(xs.size() > 1 ? cat(xs, 0) : xs.front());
  require_file("forward");
  return result;
}

/// ids [t] → [t, hidden]
Tensor DecoderLm::embed(const Tensor& ids) const {
  const Tensor x = embedding_(ids);
  return config_.embedding_scale == 1.0f ? x : x * config_.embedding_scale;
}

/// x [t, hidden] → [t, hidden]; behind the last layer only the wanted rows.
Tensor DecoderLm::layer(const Block& block, Tensor x, const Batch& batch, const Step& step) const {
  const bool wanted = block.index + 1 == config_.layers && !batch.all_wanted;
  const Product y = attention(block, {block.attention_norm, x}, batch, wanted, step);
  x = (wanted ? batch.wanted_of(x) : x) + y;
  return x + mlp(block, {block.mlp_norm, x});
}

/// x [t, hidden] → [t, hidden]; of the wanted rows if only those are. Stores keys and values in the
/// cache.
Product DecoderLm::attention(const Block& block, const Normed& x, const Batch& batch, bool wanted,
                             const Step& step) const {
  const int64_t window = config_.windows[static_cast<size_t>(block.index)];
  const auto step_of_run = [&](const Batch::Run& run) {
    return AttentionStep{.cos = step.of(window).cos,
                         .sin = step.of(window).sin,
                         .positions = batch.positions.narrow(0, run.first, run.rows),
                         .keys = step.cache.keys(block.index),
                         .values = step.cache.values(block.index),
                         .params = params(window),
                         .tables = run.tables};
  };
  Tensor qkv = queries_keys_values(block, x);
  Product product{.map = block.output, .x = {}, .post_norm = or_null(block.attention_post_norm)};
  if (batch.runs.size() == 1 && !wanted) {
    product.x = std::move(qkv);
    product.attention = step_of_run(batch.runs.front());
    return product;
  }
  std::vector<Tensor> ys;
  for (const Batch::Run& run : batch.runs) {
    ys.push_back(cached_attention(qkv.narrow(0, run.first, run.rows), step_of_run(run)));
  }
  product.x = ys.size() == 1 ? std::move(ys.front()) : cat(ys, 0);
  if (wanted) product.x = batch.wanted_of(product.x);
  return product;
}

/// x [t, hidden] → the projections of all heads side by side, [t, queries, keys and values],
/// queries and keys after their norms.
Tensor DecoderLm::queries_keys_values(const Block& block, const Normed& x) const {
  const DecoderConfig& c = config_;
  Tensor qkv = block.qkv.joined(x.x, x.fusion);
  if (!block.query_norm && !block.key_norm) return qkv;
  const int64_t sizes[] = {c.heads * c.key_size, c.kv_heads * c.key_size,
                           c.kv_heads * c.value_size};
  std::vector<Tensor> parts = qkv.split(sizes, -1);
  const auto by_head = [&](const nn::RmsNorm& norm, const Tensor& y) {
    return norm(split_heads(y, c.key_size)).flatten(1);
  };
  if (block.query_norm) parts[0] = by_head(*block.query_norm, parts[0]);
  if (block.key_norm) parts[1] = by_head(*block.key_norm, parts[1]);
  return cat(parts, -1);
}

/// x [t, hidden] → [t, hidden]
Product DecoderLm::mlp(const Block& block, const Normed& x) const {
  const nn::RmsNorm* post_norm = or_null(block.mlp_post_norm);
  const Tensor gate_up = block.gate_up.joined(x.x, x.fusion);
  if (config_.activation == Activation::silu) {
    return {.map = block.down, .x = gate_up, .silu_mul = true, .post_norm = post_norm};
  }
  const std::vector<Tensor> halves = gate_up.chunk(2, -1);
  return {.map = block.down, .x = gelu(halves[0]) * halves[1], .post_norm = post_norm};
}

/// x [t, hidden] → logits [t, vocabulary]
Tensor DecoderLm::head(const Tensor& x) const {
  const Tensor logits = head_(x, output_norm_.before());
  const float cap = config_.logit_soft_cap;
  return cap > 0.0f ? tanh(logits / cap) * cap : logits;
}

AttentionParams DecoderLm::params(int64_t window) const {
  return {.scale = config_.attention_scale,
          .causal = true,
          .window = window,
          .soft_cap = config_.attention_soft_cap};
}

// ---- Loading ----

DecoderLm::DecoderLm(const io::Gguf& file, const Architecture& architecture,
                     const LoadOptions& options)
    : config_(architecture.configure(Metadata(file))), device_(options.device) {
  const DecoderConfig& c = config_;
  if (device_.kind == DeviceKind::cpu) file_ = file.bytes();
  const Weights weights(file, options.device);
  parameters_ = weights.parameters();
  const bool release = options.release_file_pages;

  const Tensor table = weights.matrix("token_embd.weight", c.vocabulary, c.hidden);
  embedding_ = nn::Embedding(table, device_);
  for (int64_t i = 0; i < c.layers; ++i) {
    blocks_.push_back(
        load_block(weights / fmt::format("blk.{}.", i), architecture.tensors, i, release));
    if (options.progress) options.progress(i + 1, c.layers);
  }
  output_norm_ = nn::RmsNorm(weights.vector("output_norm.weight", c.hidden), c.norm_eps, device_);
  const bool tied = !weights.contains("output.weight");
  // The embedding reads rows of a tied table from the file, too: the system fetches released pages
  // again when they are used.
  head_ = nn::Linear(tied ? table : weights.matrix("output.weight", c.vocabulary, c.hidden), {},
                     device_, release);
  load_rope(weights, file);
}

DecoderLm::Block DecoderLm::load_block(const Weights& w, const TensorNames& names, int64_t index,
                                       bool release) {
  const DecoderConfig& c = config_;
  const auto norm = [&](std::string_view name) {
    return nn::RmsNorm(w.vector(fmt::format("{}.weight", name), c.hidden), c.norm_eps, device_);
  };
  const auto optional_norm = [&](std::string_view name) {
    return name.empty() ? std::nullopt : std::optional(norm(name));
  };
  // Rotated together are elements i and i + r/2 of a head: the file's order is changed.
  const auto head_norm = [&](std::string_view name) -> std::optional<nn::RmsNorm> {
    if (name.empty()) return std::nullopt;
    const Tensor weight = w.vector(fmt::format("{}.weight", name), c.key_size);
    return nn::RmsNorm(reordered(weight, rotated_order(1)), c.norm_eps, device_);
  };
  const auto linear = [&](std::string_view name, int64_t n, int64_t k) {
    return nn::Linear(w.matrix(fmt::format("{}.weight", name), n, k),
                      w.optional_vector(fmt::format("{}.bias", name), n), device_, release);
  };
  return {
      .index = index,
      .attention_norm = norm(names.attention_norm),
      .mlp_norm = norm(names.mlp_norm),
      .query_norm = head_norm(names.query_norm),
      .key_norm = head_norm(names.key_norm),
      .attention_post_norm = optional_norm(names.attention_post_norm),
      .mlp_post_norm = optional_norm(names.mlp_post_norm),
      .qkv = load_qkv(w, names, release),
      .gate_up = load_gate_up(w, names, release),
      .output = linear(names.attention_output, c.hidden, c.heads * c.value_size),
      .down = linear(names.down, c.hidden, c.intermediate),
  };
}

nn::Projections DecoderLm::load_qkv(const Weights& w, const TensorNames& names, bool release) {
  const DecoderConfig& c = config_;
  const int64_t values = c.kv_heads * c.value_size;
  if (!names.qkv.empty()) {
    std::vector<int64_t> order = rotated_order(c.heads + c.kv_heads);
    const auto rotated = static_cast<int64_t>(order.size());
    if (rotated > 0) {
      for (int64_t i = 0; i < values; ++i) order.push_back(rotated + i);
    }
    const int64_t all = (c.heads + c.kv_heads) * c.key_size + values;
    return load_projections(w, {{names.qkv, all, std::move(order)}}, c.qkv_biases, release);
  }
  return load_projections(w,
                          {{names.query, c.heads * c.key_size, rotated_order(c.heads)},
                           {names.key, c.kv_heads * c.key_size, rotated_order(c.kv_heads)},
                           {names.value, values, {}}},
                          c.qkv_biases, release);
}

nn::Projections DecoderLm::load_gate_up(const Weights& w, const TensorNames& names, bool release) {
  const int64_t n = config_.intermediate;
  if (!names.gate_up.empty()) return load_projections(w, {{names.gate_up, 2 * n}}, false, release);
  return load_projections(w, {{names.gate, n}, {names.up, n}}, false, release);
}

nn::Projections DecoderLm::load_projections(const Weights& w, std::vector<Projection> projections,
                                            bool need_biases, bool release) {
  std::vector<Tensor> matrices, biases;
  for (const auto& [name, rows, order] : projections) {
    const std::string bias = fmt::format("{}.bias", name);
    matrices.push_back(
        reordered(w.matrix(fmt::format("{}.weight", name), rows, config_.hidden), order));
    biases.push_back(
        reordered(need_biases ? w.vector(bias, rows) : w.optional_vector(bias, rows), order));
    block_weights_ = block_weights_ || is_block(matrices.back().dtype());
  }
  return nn::Projections(matrices, biases, device_, release);
}

/// The rows of `heads` heads in the order in which rope_interleaved rotates them; empty: the
/// file's.
std::vector<int64_t> DecoderLm::rotated_order(int64_t heads) const {
  if (config_.rope_style == RopeStyle::interleaved) return {};
  const int64_t size = config_.key_size, rotated = config_.rope.dims;
  std::vector<int64_t> order;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t from = i >= rotated ? i : i / 2 + (i % 2) * (rotated / 2);
      order.push_back(head * size + from);
    }
  }
  return order;
}

void DecoderLm::load_rope(const Weights& weights, const io::Gguf& file) {
  nn::RopeOptions rope = config_.rope;
  if (const Tensor divisors = weights.optional_vector("rope_freqs.weight", rope.dims / 2);
      divisors.defined()) {
    rope.frequency_divisors = divisors.to_vector<float>();
  }
  try {
    rope_[0] = nn::RopeTable(rope, device_);
    if (config_.has_local_rope()) rope_[1] = nn::RopeTable(config_.local_rope, device_);
  } catch (const Error& e) {
    throw Error(e.kind(), file.path(), e.what());  // keys of rope, and rope_freqs.weight
  }
}

nn::KvCache DecoderLm::make_cache(int64_t context, DType dtype, int64_t sequences,
                                  int64_t positions) const {
  return nn::KvCache({.layers = config_.layers,
                      .heads = config_.kv_heads,
                      .key_size = config_.key_size,
                      .value_size = config_.value_size,
                      .context = context,
                      .dtype = dtype,
                      .device = device_,
                      .sequences = sequences,
                      .positions = positions});
}

/// With the cosines and sines of all positions that the cache reaches to.
DecoderLm::Step DecoderLm::step_of(const nn::KvCache& cache) const {
  const int64_t reach = cache.reach();
  Step step{cache};
  std::lock_guard lock(rope_mutex_);
  for (size_t i = 0; i < (config_.has_local_rope() ? 2 : 1); ++i) {
    rope_[i].reserve(reach);
    step.rotation[i] = {rope_[i].cos(0, reach), rope_[i].sin(0, reach)};
  }
  return step;
}

void DecoderLm::require_file(std::string_view op) const {
  if (file_ != nullptr) file_->require_unchanged(op);
}

}  // namespace wick::models
