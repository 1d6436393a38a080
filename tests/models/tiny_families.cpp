// Tiny models of the architectures. Windows and contexts are shorter than the tests' prompts, soft
// caps are small, and rope angles are large, so that each of them affects the logits.
#include <cmath>

#include "tests/models/tiny_llama.h"

namespace wick::test {
namespace {

/// Returns Llama 3.1's divisors of rope frequencies: slow pairs rotate `factor` times slower.
std::vector<float> llama3_divisors(int64_t dims, double base, double factor, double low,
                                   double high, double context) {
  std::vector<float> divisors;
  for (int64_t i = 0; i < dims / 2; ++i) {
    const double frequency =
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
    const double turns = context * frequency / (2.0 * M_PI);
    const double keep = std::min(1.0, std::max(0.0, (turns - low) / (high - low)));
    divisors.push_back(static_cast<float>(1.0 / (keep + (1.0 - keep) / factor)));
  }
  return divisors;
}

}  // namespace

const std::map<std::string, TinyLlama>& TinyLlama::families() {
  static const std::map<std::string, TinyLlama> all = {
      {"llama", {.rope_divisors = llama3_divisors(16, 10000.0, 8.0, 1.0, 4.0, 32.0)}},
      {"llama-linear", {.rope_factor = 4.0, .rope_scaling = "linear", .tied = true}},
      {"qwen2", {.architecture = "qwen2", .qkv_biases = true}},
      {"qwen2-yarn",
       {.rope_base = 100.0,
        .rope_factor = 3.0,
        .rope_scaling = "yarn",
        .original_context = 32,
        .tied = true,
        .architecture = "qwen2",
        .qkv_biases = true}},
      {"qwen3",
       {.key_size = 24,
        .value_size = 24,
        .rope_dims = 24,
        .rope_base = 1e6,
        .tied = true,
        .architecture = "qwen3",
        .query_key_norm = true}},
      {"phi3",
       {.kv_heads = 4,
        .window = 7,
        .rope_dims = 12,
        .architecture = "phi3",
        .fused_qkv = true,
        .fused_gate_up = true}},
      {"gemma",
       {.kv_heads = 1,
        .key_size = 32,
        .value_size = 32,
        .rope_dims = 32,
        .tied = true,
        .architecture = "gemma"}},
      {"gemma2",
       {.layers = 3,
        .window = 5,
        .tied = true,
        .architecture = "gemma2",
        .post_norms = true,
        .attention_soft_cap = 1.5f,
        .logit_soft_cap = 3.0f}},
      {"gemma3",
       {.layers = 7,
        .hidden = 32,
        .intermediate = 48,
        .kv_heads = 1,
        .window = 5,
        .rope_base = 1e6,
        .rope_factor = 8.0,
        .rope_scaling = "linear",
        .tied = true,
        .architecture = "gemma3",
        .query_key_norm = true,
        .post_norms = true}},
  };
  return all;
}

}  // namespace wick::test
