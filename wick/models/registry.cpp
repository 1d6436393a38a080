// The supported architectures: one row each, and how their configurations differ from Llama's.
#include "wick/models/registry.h"

#include <fmt/format.h>

#include <cmath>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/split_file.h"

namespace wick::models {
namespace {

DecoderConfig neox(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.rope_style = RopeStyle::neox;
  return c;
}

DecoderConfig qwen2(const Metadata& m) {
  DecoderConfig c = neox(m);
  c.qkv_biases = true;
  return c;
}

DecoderConfig phi3(const Metadata& m) {
  if (m.file().find_tensor("rope_factors_long.weight") != nullptr) {
    throw Error(ErrorKind::not_implemented, m.file().path(), "unknown rope scaling", "'longrope'",
                "this version supports none, linear, yarn and llama3");
  }
  return neox(m);
}

DecoderConfig gemma(const Metadata& m) {
  DecoderConfig c = neox(m);
  c.activation = Activation::gelu;
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden));
  return c;
}

/// Gemma 2 and 3. The 27B model, recognised by its number of layers, derives the attention scale
/// from its hidden size.
DecoderConfig scaled_gemma(const Metadata& m, int64_t layers_of_27b) {
  DecoderConfig c = gemma(m);
  if (c.layers == layers_of_27b && !m.contains("attention.scale")) {
    c.attention_scale =
        1.0f / std::sqrt(static_cast<float>(c.hidden) / static_cast<float>(c.heads));
  }
  return c;
}

DecoderConfig gemma2(const Metadata& m) {
  DecoderConfig c = scaled_gemma(m, 46);
  c.attention_soft_cap = m.number("attn_logit_softcapping", 50.0f);
  c.logit_soft_cap = m.number("final_logit_softcapping", 30.0f);
  alternate_windows(c, m, 2, 4096);
  return c;
}

DecoderConfig gemma3(const Metadata& m) {
  DecoderConfig c = scaled_gemma(m, 62);
  c.logit_soft_cap = m.number("final_logit_softcapping", 0.0f);
  if (!m.contains("rope.freq_base")) c.rope.base = 1e6;
  alternate_windows(c, m, 6, 1024);
  c.local_rope = {.dims = c.rope.dims,
                  .base = m.number_above("rope.freq_base_swa", 1.0f, 10000.0f)};
  return c;
}

constexpr TensorNames kQueryKeyNorm{.query_norm = "attn_q_norm", .key_norm = "attn_k_norm"};
constexpr TensorNames kPhi3{.qkv = "attn_qkv", .gate_up = "ffn_up"};
constexpr TensorNames kGemma2{.attention_post_norm = "post_attention_norm",
                              .mlp_post_norm = "post_ffw_norm"};
constexpr TensorNames kGemma3{.attention_post_norm = "post_attention_norm",
                              .query_norm = "attn_q_norm",
                              .key_norm = "attn_k_norm",
                              .mlp_post_norm = "post_ffw_norm"};

constexpr Architecture kArchitectures[] = {
    {"llama", "Llama 3, Mistral, SmolLM", llama_config},
    {"qwen2", "Qwen 2 and 2.5", qwen2},
    {"qwen3", "Qwen 3", neox, kQueryKeyNorm},
    {"phi3", "Phi 3", phi3, kPhi3},
    {"gemma", "Gemma", gemma},
    {"gemma2", "Gemma 2", gemma2, kGemma2},
    {"gemma3", "Gemma 3", gemma3, kGemma3},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture& find_architecture(const io::Gguf& file) {
  io::require_whole(file);  // only the first part of a split model names the architecture
  const std::string_view wanted = file.get_string("general.architecture");
  std::string known;
  for (const Architecture& a : kArchitectures) {
    if (a.name == wanted) return a;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", a.name, a.models);
  }
  throw Error(ErrorKind::not_implemented, file.path(), "unsupported architecture",
              fmt::format("'{}'", printable(wanted, 60)),
              fmt::format("this version supports {}", known));
}

}  // namespace wick::models
