#include "wick/models/llama.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "wick/base/error.h"
#include "wick/models/weights.h"
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

}  // namespace

struct Llama::Step {
  const nn::KvCache& cache;
  Tensor cos, sin;  // [positions that the cache reaches to, r/2]
};

Llama::Llama(const io::Gguf& file, const LoadOptions& options)
    : config_(LlamaConfig::from(file)), device_(options.device) {
  const LlamaConfig& c = config_;
  if (device_.kind == DeviceKind::cpu) file_ = file.bytes();
  const Weights weights(file, options.device);
  parameters_ = weights.parameters();
  const bool release = options.release_file_pages;

  const Tensor table = weights.matrix("token_embd.weight", c.vocabulary, c.hidden);
  embedding_ = nn::Embedding(table, device_);
  for (int64_t i = 0; i < c.layers; ++i) {
    const Weights w = weights / fmt::format("blk.{}.", i);
    auto group = [&](std::initializer_list<const char*> names,
                     std::initializer_list<int64_t> rows) {
      std::vector<Tensor> matrices, biases;
      auto n = rows.begin();
      for (const char* name : names) {
        matrices.push_back(w.matrix(fmt::format("{}.weight", name), *n, c.hidden));
        biases.push_back(w.optional_vector(fmt::format("{}.bias", name), *n++));
        block_weights_ = block_weights_ || is_block(matrices.back().dtype());
      }
      return nn::Projections(matrices, biases, device_, release);
    };
    auto single = [&](const char* name, int64_t n, int64_t k) {
      return nn::Linear(w.matrix(fmt::format("{}.weight", name), n, k),
                        w.optional_vector(fmt::format("{}.bias", name), n), device_, release);
    };
    auto norm = [&](const char* name) {
      return nn::RmsNorm(w.vector(name, c.hidden), c.norm_eps, device_);
    };
    blocks_.push_back({
        .attention_norm = norm("attn_norm.weight"),
        .mlp_norm = norm("ffn_norm.weight"),
        .qkv = group({"attn_q", "attn_k", "attn_v"},
                     {c.heads * c.head_size, c.kv_heads * c.head_size, c.kv_heads * c.value_size}),
        .gate_up = group({"ffn_gate", "ffn_up"}, {c.intermediate, c.intermediate}),
        .output = single("attn_output", c.hidden, c.heads * c.value_size),
        .down = single("ffn_down", c.hidden, c.intermediate),
    });
    if (options.progress) options.progress(i + 1, c.layers);
  }
  output_norm_ = nn::RmsNorm(weights.vector("output_norm.weight", c.hidden), c.norm_eps, device_);
  const bool tied = !weights.contains("output.weight");
  // The embedding reads rows of a tied table from the file, too: the system fetches released pages
  // again when they are used.
  head_ = nn::Linear(tied ? table : weights.matrix("output.weight", c.vocabulary, c.hidden), {},
                     device_, release);

  nn::RopeOptions rope = c.rope;
  if (const Tensor divisors = weights.optional_vector("rope_freqs.weight", rope.dims / 2);
      divisors.defined()) {
    rope.frequency_divisors = divisors.to_vector<float>();
  }
  try {
    rope_ = nn::RopeTable(rope, device_);
  } catch (const Error& e) {
    throw Error(e.kind(), file.path(), e.what());  // llama.rope.* and rope_freqs.weight
  }
}

nn::KvCache Llama::make_cache(int64_t context, DType dtype, int64_t sequences,
                              int64_t positions) const {
  return nn::KvCache({.layers = config_.layers,
                      .heads = config_.kv_heads,
                      .key_size = config_.head_size,
                      .value_size = config_.value_size,
                      .context = context,
                      .dtype = dtype,
                      .device = device_,
                      .sequences = sequences,
                      .positions = positions});
}

Llama::Step Llama::step_of(const nn::KvCache& cache) const {
  std::lock_guard lock(rope_mutex_);
  rope_.reserve(cache.reach());
  return {cache, rope_.cos(0, cache.reach()), rope_.sin(0, cache.reach())};
}

void Llama::require_file(std::string_view op) const {
  if (file_ != nullptr) file_->require_unchanged(op);
}

Tensor Llama::forward(const Batch& batch, nn::KvCache& cache) const {
  require_file("forward");  // also reinstalls the SIGBUS handler
  const Step step = step_of(cache);
  const int64_t slices = slice_count(batch, device_, block_weights_), rows = batch.rows();
  std::vector<Batch> parts;
  std::vector<Tensor> xs;  // [t, hidden] each
  for (int64_t s = 0; s < slices; ++s) {
    const int64_t begin = rows * s / slices, end = rows * (s + 1) / slices;
    parts.push_back(batch.slice(begin, end - begin));
    xs.push_back(embedding_(parts.back().tokens));
  }
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    for (size_t s = 0; s < xs.size(); ++s) {
      xs[s] = mlp(blocks_[static_cast<size_t>(layer)], attention(layer, xs[s], parts[s], step));
    }
  }
  Tensor result = head_(xs.size() > 1 ? cat(xs, 0) : xs.front(), output_norm_.before());
  require_file("forward");
  return result;
}

/// x [t, hidden] → x + attention(norm(x)); of the last layer only the wanted rows.
Tensor Llama::attention(int64_t layer, const Tensor& x, const Batch& batch,
                        const Step& step) const {
  const Block& block = blocks_[static_cast<size_t>(layer)];
  const Tensor qkv = block.qkv.joined(x, block.attention_norm.before());
  const auto step_of_run = [&](const Batch::Run& run) {
    return AttentionStep{
        .cos = step.cos,
        .sin = step.sin,
        .positions = batch.positions.narrow(0, run.first, run.rows),
        .keys = step.cache.keys(layer),
        .values = step.cache.values(layer),
        .params = {.scale = config_.attention_scale, .causal = true, .window = config_.window},
        .tables = run.tables};
  };
  const bool all_wanted = batch.all_wanted || layer + 1 < config_.layers;
  if (batch.runs.size() == 1 && all_wanted) {
    const AttentionStep all = step_of_run(batch.runs.front());
    return block.output(qkv, {.residual = x, .attention = &all});
  }
  std::vector<Tensor> ys;
  for (const Batch::Run& run : batch.runs) {
    ys.push_back(cached_attention(qkv.narrow(0, run.first, run.rows), step_of_run(run)));
  }
  const Tensor y = ys.size() == 1 ? ys.front() : cat(ys, 0);
  if (all_wanted) return block.output(y, {.residual = x});
  return block.output(batch.wanted_of(y), {.residual = batch.wanted_of(x)});
}

/// x [t, hidden] → x + MLP(norm(x))
Tensor Llama::mlp(const Block& block, const Tensor& x) {
  const Tensor gate_up = block.gate_up.joined(x, block.mlp_norm.before());
  return block.down(gate_up, {.silu_mul = true, .residual = x});
}

}  // namespace wick::models
