#include "wick/models/decoder_config.h"

#include <fmt/format.h>

#include <cmath>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::models {
namespace {

constexpr int64_t kMostHeadSize = 576, kMostWindow = 1 << 30, kMostContext = 1 << 30;

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
  } else if (kind != "none" && kind != "llama3") {
    // Llama 3's own scaling comes as divisors in the tensor rope_freqs.weight.
    throw Error(ErrorKind::not_implemented, m.file().path(), "unknown rope scaling",
                fmt::format("'{}'", printable(kind)),
                "this version supports none, linear, yarn and llama3");
  }
  if (rope.scaling == nn::RopeScaling::none) rope.factor = 1.0;
  if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > head_size) {
    m.out_of_range("rope.dimension_count", fmt::format("{}", rope.dims),
                   fmt::format("an even number of 2 to {}", head_size));
  }
  return rope;
}

void read_sizes(DecoderConfig& c, const Metadata& m) {
  c.layers = m.count("block_count", 4096);
  c.hidden = m.count("embedding_length", 1 << 20);
  c.intermediate = m.count("feed_forward_length", 1 << 24);
  c.heads = m.count("attention.head_count", 1 << 16);
  c.kv_heads = m.count("attention.head_count_kv", 1 << 16, c.heads);
  c.context = m.count("context_length", kMostContext);
  if (c.heads % c.kv_heads != 0) {
    throw Error(
        m.file().path(), "heads don't group", fmt::format("{} over {}", c.heads, c.kv_heads),
        fmt::format("{} must be a multiple of head_count_kv", m.key("attention.head_count")));
  }
  if (!m.contains("attention.key_length") && c.hidden % c.heads != 0) {
    throw Error(m.file().path(), "hidden size isn't whole heads",
                fmt::format("{} over {} heads", c.hidden, c.heads));
  }
  const auto head_size = [&](const char* name, int64_t or_else) {
    const int64_t size = m.integer(name, INT64_MIN, INT64_MAX, or_else);
    if (size >= 1 && size <= kMostHeadSize) return size;
    throw Error(m.file().path(), "head size out of range",
                fmt::format("{} = {}", m.key(name), size),
                fmt::format("need 1 to {}", kMostHeadSize));
  };
  c.key_size = head_size("attention.key_length", c.hidden / c.heads);
  c.value_size = head_size("attention.value_length", c.key_size);
  const io::GgufTensor& table = m.file().require_tensor("token_embd.weight");
  if (table.shape.rank() != 2 || table.shape[0] < 1 || table.shape[0] > INT32_MAX) {
    throw Error(m.file().path(), "embedding isn't a matrix", table.str(),
                "need [vocabulary, hidden]");
  }
  c.vocabulary = table.shape[0];
}

}  // namespace

bool DecoderConfig::has_local_rope() const {
  return local_rope.base != rope.base || local_rope.scaling != rope.scaling;
}

DecoderConfig llama_config(const Metadata& m) {
  DecoderConfig c;
  read_sizes(c, m);
  c.norm_eps = m.number("attention.layer_norm_rms_epsilon");
  c.windows.assign(static_cast<size_t>(c.layers),
                   m.integer("attention.sliding_window", 0, kMostWindow, 0));
  const float scale = m.number("attention.scale", 0.0f);
  c.attention_scale = scale != 0.0f ? scale : 1.0f / std::sqrt(static_cast<float>(c.key_size));
  c.rope = rope_options(m, c.key_size, c.context);
  c.local_rope = c.rope;
  return c;
}

void alternate_windows(DecoderConfig& c, const Metadata& m, int64_t period, int64_t window) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  window = m.integer("attention.sliding_window", 0, kMostWindow, window);
  const io::GgufValue* pattern = m.file().find(m.key(kPattern));
  std::vector<bool> local;
  if (pattern != nullptr && pattern->is_array()) {
    local = m.bools(kPattern, c.layers);
  } else {
    period = m.count(kPattern, 4096, period);
    for (int64_t i = 0; i < c.layers; ++i) local.push_back(i % period < period - 1);
  }
  for (size_t i = 0; i < local.size(); ++i) c.windows[i] = local[i] ? window : 0;
}

}  // namespace wick::models
