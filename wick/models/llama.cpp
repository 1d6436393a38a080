#include "wick/models/llama.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "wick/base/error.h"
#include "wick/models/weights.h"
#include "wick/tensor/ops.h"

namespace wick::models {

struct Llama::Step {
  nn::KvCache& cache;
  Tensor cos, sin;  // [t, r/2]
};

Llama::Llama(const io::Gguf& file, const LoadOptions& options)
    : config_(LlamaConfig::from(file)), device_(options.device) {
  const LlamaConfig& c = config_;
  const Weights weights(file, options.device);
  parameters_ = weights.parameters();
  const bool release = options.release_file_pages;

  const Tensor table = weights.matrix("token_embd.weight", c.vocabulary, c.hidden);
  embedding_ = nn::Embedding(table);
  for (int64_t i = 0; i < c.layers; ++i) {
    const Weights w = weights / fmt::format("blk.{}.", i);
    auto group = [&](std::initializer_list<const char*> names,
                     std::initializer_list<int64_t> rows) {
      std::vector<Tensor> matrices, biases;
      auto n = rows.begin();
      for (const char* name : names) {
        matrices.push_back(w.matrix(fmt::format("{}.weight", name), *n, c.hidden));
        biases.push_back(w.optional_vector(fmt::format("{}.bias", name), *n++));
      }
      return nn::Projections(matrices, biases, release);
    };
    auto single = [&](const char* name, int64_t n, int64_t k) {
      return nn::Linear(w.matrix(fmt::format("{}.weight", name), n, k),
                        w.optional_vector(fmt::format("{}.bias", name), n), release);
    };
    auto norm = [&](const char* name) { return nn::RmsNorm(w.vector(name, c.hidden), c.norm_eps); };
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
  output_norm_ = nn::RmsNorm(weights.vector("output_norm.weight", c.hidden), c.norm_eps);
  const bool tied = !weights.contains("output.weight");
  // A tied table is read row by row as the embedding too, from the file: its pages come back as
  // used.
  head_ = nn::Linear(tied ? table : weights.matrix("output.weight", c.vocabulary, c.hidden), {},
                     release);

  nn::RopeOptions rope = c.rope;
  if (const Tensor divisors = weights.optional_vector("rope_freqs.weight", rope.dims / 2);
      divisors.defined()) {
    rope.frequency_divisors = divisors.to_vector<float>();
  }
  try {
    rope_ = nn::RopeTable(rope, device_);
  } catch (const Error& e) {
    throw Error(file.path(), e.what());  // llama.rope.* and rope_freqs.weight
  }
}

nn::KvCache Llama::make_cache(int64_t context, DType dtype) const {
  return nn::KvCache({.layers = config_.layers,
                      .heads = config_.kv_heads,
                      .key_size = config_.head_size,
                      .value_size = config_.value_size,
                      .context = context,
                      .dtype = dtype,
                      .device = device_});
}

void Llama::rotation(int64_t start, int64_t count, Tensor& cos, Tensor& sin) const {
  std::lock_guard lock(rope_mutex_);
  rope_.reserve(start + count);
  cos = rope_.cos(start, count);
  sin = rope_.sin(start, count);
}

Tensor Llama::forward(std::span<const int32_t> tokens, nn::KvCache& cache, Logits logits) const {
  const auto count = static_cast<int64_t>(tokens.size());
  if (count == 0) throw Error("forward", "no tokens");
  for (int32_t id : tokens) {
    if (id < 0 || id >= config_.vocabulary) {
      throw Error("forward", "token id out of range", fmt::format("{}", id),
                  fmt::format("the vocabulary has {}", config_.vocabulary));
    }
  }
  cache.reserve(count);
  Step step{cache, {}, {}};
  rotation(cache.length(), count, step.cos, step.sin);

  Tensor x = embedding_(Tensor::from(tokens, {count}, device_));  // [t, hidden]
  for (int64_t i = 0; i < config_.layers; ++i) {
    const Block& block = blocks_[static_cast<size_t>(i)];
    x = x + attend(block, i, block.attention_norm(x), step);
    x = x + mlp(block, block.mlp_norm(x));
  }
  cache.advance(count);
  if (logits == Logits::last) x = x.narrow(0, count - 1, 1);
  return head_(output_norm_(x));
}

/// x [t, hidden] → [t, hidden]
Tensor Llama::attend(const Block& block, int64_t layer, const Tensor& x, Step& step) const {
  const LlamaConfig& c = config_;
  const int64_t count = x.size(0), keys = step.cache.length() + count;
  auto heads = [&](const Tensor& y, int64_t n, int64_t size) {  // [t, n·size] → [1, n, t, size]
    return y.reshape({1, count, n, size}).transpose(1, 2);
  };
  const std::vector<Tensor> qkv = block.qkv(x);
  const Tensor q = rope_interleaved(heads(qkv[0], c.heads, c.head_size), step.cos, step.sin);
  const Tensor k = rope_interleaved(heads(qkv[1], c.kv_heads, c.head_size), step.cos, step.sin);
  step.cache.append(layer, k, heads(qkv[2], c.kv_heads, c.value_size));
  const AttentionParams params{.scale = c.attention_scale, .causal = true, .window = c.window};
  const Tensor y =
      attention(q, step.cache.keys(layer, keys), step.cache.values(layer, keys), params);
  return block.output(y.transpose(1, 2).reshape({count, c.heads * c.value_size}));
}

/// x [t, hidden] → [t, hidden]
Tensor Llama::mlp(const Block& block, const Tensor& x) const {
  const std::vector<Tensor> gate_up = block.gate_up(x);
  return block.down(silu_mul(gate_up[0], gate_up[1]));
}

}  // namespace wick::models
