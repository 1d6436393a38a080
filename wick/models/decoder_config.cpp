#include "wick/models/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::models {
namespace {

constexpr int64_t kMostHeadSize = 576, kMostWindow = 1 << 30, kMostContext = 1 << 30;
constexpr int64_t kMostHidden = 1 << 20, kMostIntermediate = 1 << 24, kMostHeads = 1 << 16;
constexpr int64_t kMostLayers = 4096, kMostExperts = 4096;

nn::RopeOptions rope_options(const Metadata& m, int64_t head_size, int64_t context) {
  nn::RopeOptions rope;
  rope.dims = m.integer("rope.dimension_count", 1, kMostHeadSize, head_size);
  rope.base = m.number_above("rope.freq_base", 1.0f, 10000.0f);
  // Older files have only the linear factor.
  const double linear = m.number_above("rope.scale_linear", 0.0f, 1.0f);
  const std::string_view kind = m.string("rope.scaling.type", linear != 1.0 ? "linear" : "none");
  rope.factor = m.number_above("rope.scaling.factor", 0.0f, static_cast<float>(linear));
  rope.original_context = m.count("rope.scaling.original_context_length", kMostContext, context);
  rope.attention_factor = m.number_above("rope.scaling.attn_factor", 0.0f, 1.0f);
  rope.beta_fast = m.number_above("rope.scaling.yarn_beta_fast", 0.0f, 32.0f);
  rope.beta_slow = m.number_above("rope.scaling.yarn_beta_slow", 0.0f, 1.0f);
  if (kind == "linear") {
    rope.scaling = nn::RopeScaling::linear;
  } else if (kind == "yarn") {
    rope.scaling = nn::RopeScaling::yarn;
  } else if (kind == "dynamic") {  // wick's own name: llama.cpp's files have no such scaling
    rope.scaling = nn::RopeScaling::dynamic;
  } else if (kind != "none" && kind != "llama3" && kind != "longrope") {
    // Llama 3's and LongRoPE's scalings come as tensors of divisors.
    throw Error(ErrorKind::not_implemented, m.file().path(), "unknown rope scaling",
                fmt::format("'{}'", printable(kind)),
                "this version supports none, linear, yarn, llama3, longrope and dynamic");
  }
  if (rope.scaling == nn::RopeScaling::none) rope.factor = 1.0;
  if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > head_size) {
    m.out_of_range("rope.dimension_count", fmt::format("{}", rope.dims),
                   fmt::format("an even number of 2 to {}", head_size));
  }
  return rope;
}

int64_t head_size(const Metadata& m, const char* name, int64_t or_else) {
  const int64_t size = m.integer(name, INT64_MIN, INT64_MAX, or_else);
  if (size >= 1 && size <= kMostHeadSize) return size;
  throw Error(m.file().path(), "head size out of range", fmt::format("{} = {}", m.key(name), size),
              fmt::format("need 1 to {}", kMostHeadSize));
}

/// `least`: the least number of heads and width of an MLP, 0 or 1.
void read_layers(DecoderConfig& c, const Metadata& m, int64_t least) {
  const int64_t layers = m.count("block_count", kMostLayers);
  const std::vector<int64_t> heads = m.counts("attention.head_count", layers, kMostHeads, least);
  const std::vector<int64_t> kv_heads =
      m.contains("attention.head_count_kv")
          ? m.counts("attention.head_count_kv", layers, kMostHeads, least)
          : heads;
  const std::vector<int64_t> widths =
      m.counts("feed_forward_length", layers, kMostIntermediate, least);
  const int64_t window = m.integer("attention.sliding_window", 0, kMostWindow, 0);
  for (int64_t i = 0; i < layers; ++i) {
    const auto at = static_cast<size_t>(i);
    LayerConfig layer{
        .heads = heads[at], .kv_heads = kv_heads[at], .window = window, .intermediate = widths[at]};
    if (layer.heads == 0 || layer.kv_heads == 0) {
      layer.heads = layer.kv_heads = 0;
      layer.rope = LayerConfig::kNoRope;
      c.layers.push_back(layer);
      continue;
    }
    if (layer.heads % layer.kv_heads != 0) {
      throw Error(
          m.file().path(), "heads don't group",
          fmt::format("{} over {}", layer.heads, layer.kv_heads),
          fmt::format("{} must be a multiple of head_count_kv", m.key("attention.head_count")));
    }
    if (!m.contains("attention.key_length") && c.hidden % layer.heads != 0) {
      throw Error(m.file().path(), "hidden size isn't whole heads",
                  fmt::format("{} over {} heads", c.hidden, layer.heads));
    }
    layer.key_size = head_size(m, "attention.key_length", c.hidden / layer.heads);
    layer.value_size = head_size(m, "attention.value_length", layer.key_size);
    c.layers.push_back(layer);
  }
}

/// Everything except the norms.
DecoderConfig read_config(const Metadata& m, int64_t least = 1) {
  DecoderConfig c;
  c.hidden = m.count("embedding_length", kMostHidden);
  c.context = m.count("context_length", kMostContext);
  c.makes_logits = m.flag("has_output", true);
  read_layers(c, m, least);
  const io::GgufTensor& table = m.file().require_tensor("token_embd.weight");
  if (table.shape.rank() != 2 || table.shape[0] < 1 || table.shape[0] > INT32_MAX) {
    throw Error(m.file().path(), "embedding isn't a matrix", table.str(),
                "need [vocabulary, hidden]");
  }
  c.vocabulary = table.shape[0];
  const auto attends = std::find_if(c.layers.begin(), c.layers.end(),
                                    [](const LayerConfig& layer) { return layer.heads > 0; });
  if (attends == c.layers.end()) return c;
  const int64_t key_size = attends->key_size;
  const float scale = m.number("attention.scale", 0.0f);
  c.attention_scale = scale != 0.0f ? scale : 1.0f / std::sqrt(static_cast<float>(key_size));
  c.ropes = {rope_options(m, key_size, c.context)};
  return c;
}

/// llama.cpp's numbers: 0 none, 1 mean, 2 first (CLS), 3 last, 4 a classifier's score.
void read_pooling(DecoderConfig& c, const Metadata& m) {
  constexpr const char* kPooling = "pooling_type";
  const int64_t kind = m.integer(kPooling, 0, 4, 0);
  if (kind == 4) m.out_of_range(kPooling, "4", "none, mean, first or last; this is a reranker");
  constexpr Pooling kPoolings[] = {Pooling::mean, Pooling::first, Pooling::last};
  if (kind > 0) c.pooling = kPoolings[kind - 1];
}

}  // namespace

DecoderConfig llama_config(const Metadata& m) {
  DecoderConfig c = read_config(m);
  c.norm_eps = m.number("attention.layer_norm_rms_epsilon");
  read_pooling(c, m);
  return c;
}

DecoderConfig hybrid_config(const Metadata& m) {
  DecoderConfig c = read_config(m, 0);
  c.norm_eps = m.number("attention.layer_norm_rms_epsilon");
  return c;
}

void read_recurrent(DecoderConfig& c, const Metadata& m) {
  RecurrentConfig& r = c.recurrent;
  r.taps = m.count("ssm.conv_kernel", 64);
  r.inner = m.count("ssm.inner_size", kMostIntermediate);
  r.heads = m.count("ssm.time_step_rank", kMostHeads);
  r.groups = m.count("ssm.group_count", r.heads);
  r.state = m.count("ssm.state_size", 4096);
  if (r.inner % r.heads != 0) {
    m.out_of_range("ssm.inner_size", fmt::format("{}", r.inner),
                   fmt::format("a multiple of the {} heads", r.heads));
  }
  if (r.heads % r.groups != 0) {
    m.out_of_range("ssm.group_count", fmt::format("{}", r.groups),
                   fmt::format("a divisor of the {} heads", r.heads));
  }
}

DecoderConfig layer_norm_config(const Metadata& m) {
  DecoderConfig c = read_config(m);
  c.norm = nn::NormKind::layer;
  c.norm_eps = m.number("attention.layer_norm_epsilon");
  return c;
}

void make_encoder(DecoderConfig& c, const Metadata& m) {
  c.causal = false;
  c.pooling = Pooling::mean;
  read_pooling(c, m);
}

void alternate_windows(DecoderConfig& c, const Metadata& m, int64_t period, int64_t window) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  const auto layers = static_cast<int64_t>(c.layers.size());
  window = m.integer("attention.sliding_window", 0, kMostWindow, window);
  const io::GgufValue* pattern = m.file().find(m.key(kPattern));
  std::vector<bool> local;
  if (pattern != nullptr && pattern->is_array()) {
    local = m.bools(kPattern, layers);
  } else {
    period = m.count(kPattern, 4096, period);
    for (int64_t i = 0; i < layers; ++i) local.push_back(i % period < period - 1);
  }
  for (size_t i = 0; i < local.size(); ++i) c.layers[i].window = local[i] ? window : 0;
}

void read_experts(DecoderConfig& c, const Metadata& m) {
  ExpertsConfig& e = c.experts;
  e.count = m.count("expert_count", kMostExperts);
  e.used = m.count("expert_used_count", e.count);
  const int64_t usual = e.intermediate > 0 ? e.intermediate : c.layers.front().intermediate;
  e.intermediate = m.count("expert_feed_forward_length", kMostIntermediate, usual);
  e.shared = m.integer("expert_shared_feed_forward_length", 0, kMostIntermediate, 0);
  if (e.shared == 0) {
    e.shared = m.integer("expert_shared_count", 0, 1024, 0) * e.intermediate;
  }
  e.normalize = m.flag("expert_weights_norm", e.normalize);
  e.scale = m.number("expert_weights_scale", e.scale);
  if (e.scale == 0.0f) e.scale = 1.0f;
  // llama.cpp's numbers: 1 softmax, 2 sigmoid, 3 softmax of the chosen.
  if (const int64_t gating = m.integer("expert_gating_func", 0, 3, 0); gating > 0) {
    constexpr Gating kGatings[] = {Gating::softmax, Gating::sigmoid, Gating::softmax_of_chosen};
    e.gating = kGatings[gating - 1];
  }
  e.groups = std::max<int64_t>(1, m.integer("expert_group_count", 0, e.count, 1));
  e.groups_used = m.integer("expert_group_used_count", 1, e.groups, e.groups);
  if (e.count % e.groups != 0 || e.used > e.groups_used * (e.count / e.groups)) {
    m.out_of_range(
        "expert_group_count", fmt::format("{}", e.groups),
        fmt::format("groups that divide {} experts, of which {} are used", e.count, e.used));
  }
  const int64_t dense = m.integer("leading_dense_block_count", 0, kMostLayers, 0);
  const int64_t step = m.count("interleave_moe_layer_step", kMostLayers, 1);
  for (size_t i = 0; i < c.layers.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    c.layers[i].experts = layer >= dense && (layer + 1) % step == 0;
  }
}

}  // namespace wick::models
