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

/// The number of slices that a layer's tokens are cut into. Each slice goes through the whole layer
/// before the next one, so that its intermediates stay in caches. Rows are independent, so the
/// number doesn't change their bits. Float weights get one slice: they are unpacked again for each,
/// which costs more than the caches save.
int64_t slice_count(int64_t tokens, Device device, bool blocks) {
  const int64_t rows = rows_in_cache(device);
  if (rows == 0 || !blocks) return 1;
  return std::max<int64_t>(1, tokens / rows);
}

}  // namespace

struct Llama::Step {
  nn::KvCache& cache;
  Tensor cos, sin;   // [t, r/2]; [capacity of the cache, r/2] if positions are defined
  Tensor positions;  // u32 [t] on GPUs, for cached_attention; undefined on the CPU
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

void Llama::require_file(std::string_view op) const {
  if (file_ != nullptr) file_->require_unchanged(op);
}

Tensor Llama::forward(std::span<const int32_t> tokens, nn::KvCache& cache, Logits logits) const {
  const auto count = static_cast<int64_t>(tokens.size());
  if (count == 0) throw Error("forward", "no tokens");
  for (int32_t id : tokens) {
    if (id < 0 || id >= config_.vocabulary) {
      throw Error(ErrorKind::index, "forward", "token id out of range", fmt::format("{}", id),
                  fmt::format("the vocabulary has {}", config_.vocabulary));
    }
  }
  require_file("forward");  // also reinstalls the SIGBUS handler
  cache.reserve(count);
  Step step{cache, {}, {}, {}};
  if (device_.kind == DeviceKind::cpu) {
    rotation(cache.length(), count, step.cos, step.sin);
  } else {
    rotation(0, cache.capacity(), step.cos, step.sin);
    step.positions = Tensor::arange(cache.length(), count, 1, DType::u32, device_);
  }

  const int64_t slices = slice_count(count, device_, block_weights_);
  const auto begin_of = [&](int64_t slice) { return count * slice / slices; };
  std::vector<Tensor> xs;  // [t, hidden] each
  for (int64_t s = 0; s < slices; ++s) {
    const int64_t begin = begin_of(s), rows = begin_of(s + 1) - begin;
    const auto ids = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(rows));
    xs.push_back(embedding_(Tensor::from(ids, {rows}, device_)));
  }
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    // Logits::last needs only the last row of the last layer.
    const bool last_row = logits == Logits::last && layer + 1 == config_.layers;
    for (int64_t s = 0; s < slices; ++s) {
      Tensor& x = xs[static_cast<size_t>(s)];
      const int64_t wanted = !last_row ? x.size(0) : (s + 1 == slices ? 1 : 0);
      x = run(layer, std::move(x), begin_of(s), wanted, step);
    }
  }
  const bool joined = slices > 1 && logits == Logits::all;
  Tensor result = head_(joined ? cat(xs, 0) : xs.back(), output_norm_.before());
  require_file("forward");
  cache.advance(count);
  return result;
}

/// One layer: x [t, hidden], whose first row is token `begin` of the call → the output's last
/// `wanted` rows. With wanted == 0 it only stores keys and values and returns an undefined tensor.
Tensor Llama::run(int64_t layer, Tensor x, int64_t begin, int64_t wanted, Step& step) const {
  const LlamaConfig& c = config_;
  const Block& block = blocks_[static_cast<size_t>(layer)];
  if (step.positions.defined()) {
    const AttentionStep attention{
        .cos = step.cos,
        .sin = step.sin,
        .positions = step.positions,
        .keys = step.cache.key_room(layer),
        .values = step.cache.value_room(layer),
        .params = {.scale = c.attention_scale, .causal = true, .window = c.window}};
    const Tensor qkv = block.qkv.joined(x, block.attention_norm.before());
    const Tensor y = block.output(qkv, {.residual = x, .attention = &attention});
    return mlp(block, y.narrow(0, x.size(0) - wanted, wanted));
  }
  const Tensor y = attend(layer, x, begin, wanted, step);
  if (wanted == 0) return {};
  if (wanted < x.size(0)) x = x.narrow(0, x.size(0) - wanted, wanted);
  return mlp(block, block.output(y, {.residual = x}));
}

/// x [t, hidden] → x + MLP(norm(x))
Tensor Llama::mlp(const Block& block, const Tensor& x) {
  const Tensor gate_up = block.gate_up.joined(x, block.mlp_norm.before());
  return block.down(gate_up, {.silu_mul = true, .residual = x});
}

Tensor Llama::decode(const Tensor& token, const Tensor& position, nn::KvCache& cache) const {
  require_file("decode");
  Step step{cache, {}, {}, position};
  rotation(0, cache.capacity(), step.cos, step.sin);
  Tensor x = embedding_(token);
  for (int64_t layer = 0; layer < config_.layers; ++layer) x = run(layer, std::move(x), 0, 1, step);
  Tensor result = head_(x, output_norm_.before());
  require_file("decode");
  return result;
}

/// x [t, hidden] before the norm → attention of its last `wanted` rows [wanted, heads · value_size]
Tensor Llama::attend(int64_t layer, const Tensor& x, int64_t begin, int64_t wanted,
                     Step& step) const {
  const LlamaConfig& c = config_;
  const int64_t count = x.size(0), skipped = count - wanted;
  const auto heads = [](const Tensor& y, int64_t n, int64_t size) {  // → [1, n, t, size]
    return y.reshape({1, y.size(0), n, size}).transpose(1, 2);
  };
  const Block& block = blocks_[static_cast<size_t>(layer)];
  const Tensor cos = step.cos.narrow(0, begin, count), sin = step.sin.narrow(0, begin, count);
  const std::vector<Tensor> qkv = block.qkv(x, block.attention_norm.before());
  const Tensor k = rope_interleaved(heads(qkv[1], c.kv_heads, c.head_size), cos, sin);
  step.cache.append(layer, k, heads(qkv[2], c.kv_heads, c.value_size), begin);
  if (wanted == 0) return {};
  const Tensor q = rope_interleaved(heads(qkv[0].narrow(0, skipped, wanted), c.heads, c.head_size),
                                    cos.narrow(0, skipped, wanted), sin.narrow(0, skipped, wanted));
  const int64_t keys = step.cache.length() + begin + count;
  const AttentionParams params{.scale = c.attention_scale, .causal = true, .window = c.window};
  const Tensor y =
      attention(q, step.cache.keys(layer, keys), step.cache.values(layer, keys), params);
  return y.transpose(1, 2).reshape({wanted, c.heads * c.value_size});
}

}  // namespace wick::models
