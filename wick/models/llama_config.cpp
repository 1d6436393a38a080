#include <fmt/format.h>

#include <cmath>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/models/llama.h"

namespace wick::models {
namespace {

/// A required count of at least one.
int64_t count(const io::Gguf& file, const char* key, int64_t most) {
  const int64_t value = file.get_i64(key);
  if (value < 1 || value > most) {
    throw Error(file.path(), "value out of range", fmt::format("{} = {}", key, value),
                fmt::format("need 1 to {}", most));
  }
  return value;
}

/// A number above `least`, or the default if the key is missing.
double above(const io::Gguf& file, const char* key, float or_else, float least = 0.0f) {
  const float value = file.get_f32(key, or_else);
  if (!(value > least) || !std::isfinite(value)) {
    throw Error(file.path(), "value out of range", fmt::format("{} = {}", key, value),
                fmt::format("need a finite number above {}", least));
  }
  return static_cast<double>(value);
}

nn::RopeOptions rope_options(const io::Gguf& file, int64_t head_size, int64_t context) {
  nn::RopeOptions rope;
  rope.dims = file.get_i64("llama.rope.dimension_count", head_size);
  rope.base = above(file, "llama.rope.freq_base", 10000.0f, 1.0f);
  // Older files have only the linear factor.
  const double linear = above(file, "llama.rope.scale_linear", 1.0f);
  const std::string_view kind =
      file.get_string("llama.rope.scaling.type", linear != 1.0 ? "linear" : "none");
  rope.factor = above(file, "llama.rope.scaling.factor", static_cast<float>(linear));
  constexpr const char* kOriginal = "llama.rope.scaling.original_context_length";
  rope.original_context = file.contains(kOriginal) ? count(file, kOriginal, 1 << 30) : context;
  rope.attention_factor = above(file, "llama.rope.scaling.attn_factor", 1.0f);
  rope.beta_fast = above(file, "llama.rope.scaling.yarn_beta_fast", 32.0f);
  rope.beta_slow = above(file, "llama.rope.scaling.yarn_beta_slow", 1.0f);
  if (kind == "linear") {
    rope.scaling = nn::RopeScaling::linear;
  } else if (kind == "yarn") {
    rope.scaling = nn::RopeScaling::yarn;
  } else if (kind != "none" && kind != "llama3") {
    // Llama 3's own scaling comes as divisors in the tensor rope_freqs.weight.
    throw Error(ErrorKind::not_implemented, file.path(), "unknown rope scaling",
                fmt::format("'{}'", printable(kind)),
                "this version knows none, linear, yarn and llama3");
  }
  if (rope.scaling == nn::RopeScaling::none) rope.factor = 1.0;
  if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > head_size) {
    throw Error(file.path(), "value out of range",
                fmt::format("llama.rope.dimension_count = {}", rope.dims),
                fmt::format("need an even number of 2 to {}", head_size));
  }
  return rope;
}

}  // namespace

LlamaConfig LlamaConfig::from(const io::Gguf& file) {
  LlamaConfig c{};
  c.layers = count(file, "llama.block_count", 4096);
  c.hidden = count(file, "llama.embedding_length", 1 << 20);
  c.intermediate = count(file, "llama.feed_forward_length", 1 << 24);
  c.heads = count(file, "llama.attention.head_count", 1 << 16);
  c.kv_heads = file.contains("llama.attention.head_count_kv")
                   ? count(file, "llama.attention.head_count_kv", 1 << 16)
                   : c.heads;
  c.context = count(file, "llama.context_length", 1 << 30);
  if (c.heads % c.kv_heads != 0) {
    throw Error(file.path(), "heads don't group", fmt::format("{} over {}", c.heads, c.kv_heads),
                "llama.attention.head_count must be a multiple of head_count_kv");
  }
  if (!file.contains("llama.attention.key_length") && c.hidden % c.heads != 0) {
    throw Error(file.path(), "hidden size isn't whole heads",
                fmt::format("{} over {} heads", c.hidden, c.heads));
  }
  constexpr int64_t kMostHeadSize = 512;
  auto head_size = [&](const char* key, int64_t or_else) {
    const int64_t size = file.get_i64(key, or_else);
    if (size < 1 || size > kMostHeadSize) {
      throw Error(file.path(), "head size out of range", fmt::format("{} = {}", key, size),
                  fmt::format("need 1 to {}", kMostHeadSize));
    }
    return size;
  };
  c.head_size = head_size("llama.attention.key_length", c.hidden / c.heads);
  c.value_size = head_size("llama.attention.value_length", c.head_size);
  const io::GgufTensor& table = file.require_tensor("token_embd.weight");
  if (table.shape.rank() != 2 || table.shape[0] < 1 || table.shape[0] > INT32_MAX) {
    throw Error(file.path(), "embedding isn't a matrix", table.str(), "need [vocabulary, hidden]");
  }
  c.vocabulary = table.shape[0];
  c.norm_eps = file.get_f32("llama.attention.layer_norm_rms_epsilon");
  if (!(c.norm_eps >= 0.0f) || !std::isfinite(c.norm_eps)) {
    throw Error(file.path(), "value out of range",
                fmt::format("llama.attention.layer_norm_rms_epsilon = {}", c.norm_eps));
  }
  c.window = file.get_i64("llama.attention.sliding_window", 0);
  if (c.window < 0) {
    throw Error(file.path(), "value out of range",
                fmt::format("llama.attention.sliding_window = {}", c.window), "need 0 or more");
  }
  const float scale = file.get_f32("llama.attention.scale", 0.0f);
  c.attention_scale = scale != 0.0f ? scale : 1.0f / std::sqrt(static_cast<float>(c.head_size));
  if (!std::isfinite(c.attention_scale)) {
    throw Error(file.path(), "value out of range",
                fmt::format("llama.attention.scale = {}", scale));
  }
  c.rope = rope_options(file, c.head_size, c.context);
  return c;
}

}  // namespace wick::models
