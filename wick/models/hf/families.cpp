// The supported model types: one row each.
#include "wick/models/hf/families.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/models/hf/defaults.h"

namespace wick::models::hf {
namespace {

constexpr NameRule kRules[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q", Form::query_rows},
    {"self_attn.k_proj", "attn_k", Form::key_rows},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.dense", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.query_layernorm", "attn_q_norm"},
    {"self_attn.key_layernorm", "attn_k_norm"},
    {"self_attn.q_layernorm.norms.*", "attn_q_norm"},
    {"self_attn.k_layernorm.norms.*", "attn_k_norm"},
    {"self_attn.sinks", "attn_sinks.weight"},
    {"post_attention_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.fc2", "ffn_down"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
    // Mixtures of experts
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.gate.wg", "ffn_gate_inp"},
    {"mlp.router", "ffn_gate_inp"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.*.up_proj", "ffn_up_exps"},
    {"mlp.experts.*.down_proj", "ffn_down_exps"},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", Form::first_half},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", Form::second_half},
    {"mlp.experts.down_proj", "ffn_down_exps.weight"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps"},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps"},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", Form::first_half},
    {"block_sparse_moe.input_linear", "ffn_up_exps", Form::second_half},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
    {"mlp.shared_mlp.down_proj", "ffn_down_shexp"},
    {"shared_mlp.input_linear", "ffn_gate_shexp", Form::first_half},
    {"shared_mlp.input_linear", "ffn_up_shexp", Form::second_half},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
    // Latent attention
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_k_b", Form::latent_keys},
    {"self_attn.kv_b_proj", "attn_v_b", Form::latent_values},
};

constexpr NameRule kNormAfterAttention[] = {{"post_attention_layernorm", "post_attention_norm"}};

constexpr NameRule kGlm4[] = {
    {"post_self_attn_layernorm", "post_attention_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
};

constexpr NameRule kLlama4[] = {
    {"feed_forward.gate_proj", "ffn_gate"},
    {"feed_forward.up_proj", "ffn_up"},
    {"feed_forward.down_proj", "ffn_down"},
    {"feed_forward.router", "ffn_gate_inp"},
    {"feed_forward.experts.gate_up_proj", "ffn_gate_exps.weight", Form::transposed_first_half},
    {"feed_forward.experts.gate_up_proj", "ffn_up_exps.weight", Form::transposed_second_half},
    {"feed_forward.experts.down_proj", "ffn_down_exps.weight", Form::transposed},
    {"feed_forward.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"feed_forward.shared_expert.up_proj", "ffn_up_shexp"},
    {"feed_forward.shared_expert.down_proj", "ffn_down_shexp"},
};

constexpr NameRule kGpt2[] = {
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.c_attn", "attn_qkv", Form::transposed},
    {"attn.c_proj", "attn_output", Form::transposed},
    {"mlp.c_fc", "ffn_up", Form::transposed},
    {"mlp.c_proj", "ffn_down", Form::transposed},
};

constexpr NameRule kGptNeoX[] = {
    {"attention.query_key_value", "attn_qkv", Form::qkv_of_heads},
    {"attention.dense", "attn_output"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.dense_4h_to_h", "ffn_down"},
};

constexpr NameRule kGptOss[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", Form::even},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", Form::odd},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", Form::even},
    {"mlp.experts.gate_up_proj_bias", "ffn_up_exps.bias", Form::odd},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", Form::transposed},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
    {"mlp.experts.gate_up_proj_blocks", "ffn_gate_exps.weight", Form::mxfp4_even},
    {"mlp.experts.gate_up_proj_blocks", "ffn_up_exps.weight", Form::mxfp4_odd},
    {"mlp.experts.down_proj_blocks", "ffn_down_exps.weight", Form::mxfp4},
};

constexpr NameRule kBert[] = {
    {"attention.self.query", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.output.dense", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"intermediate.dense", "ffn_up"},
    {"output.dense", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
};

constexpr NameRule kNomicBert[] = {
    {"attn.Wqkv", "attn_qkv"},      {"attn.out_proj", "attn_output"}, {"mlp.fc11", "ffn_up"},
    {"mlp.fc12", "ffn_gate"},       {"mlp.fc2", "ffn_down"},          {"norm1", "attn_output_norm"},
    {"norm2", "layer_output_norm"},
};

constexpr NameRule kModernBert[] = {
    {"attn_norm", "attn_norm"}, {"attn.Wqkv", "attn_qkv"}, {"attn.Wo", "attn_output"},
    {"mlp_norm", "ffn_norm"},   {"mlp.Wi", "ffn_up"},      {"mlp.Wo", "ffn_down"},
};

constexpr NameRule kGemma4[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"layer_scalar", "layer_output_scale.weight"},
    {"per_layer_input_gate", "inp_gate"},
    {"per_layer_projection", "proj"},
    {"post_per_layer_input_norm", "post_norm"},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
    {"router.proj", "ffn_gate_inp"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
    {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"experts.down_proj", "ffn_down_exps.weight"},
};

constexpr NameRule kMamba2[] = {
    {"norm", "attn_norm"},
    {"mixer.in_proj", "ssm_in"},
    {"mixer.conv1d", "ssm_conv1d", Form::squeezed},
    {"mixer.A_log", "ssm_a", Form::column},
    {"mixer.D", "ssm_d", Form::column},
    {"mixer.dt_bias", "ssm_dt.bias"},
    {"mixer.norm", "ssm_norm", Form::state_groups},
    {"mixer.out_proj", "ssm_out"},
};

constexpr NameRule kFalconH1[] = {
    {"feed_forward.gate_proj", "ffn_gate"},
    {"feed_forward.up_proj", "ffn_up"},
    {"feed_forward.down_proj", "ffn_down"},
    {"pre_ff_layernorm", "ffn_norm", Form::same, true},
    {"mamba.in_proj", "ssm_in"},
    {"mamba.conv1d", "ssm_conv1d", Form::squeezed},
    {"mamba.A_log", "ssm_a", Form::column},
    {"mamba.D", "ssm_d", Form::column},
    {"mamba.dt_bias", "ssm_dt.bias"},
    {"mamba.norm", "ssm_norm", Form::state_groups},
    {"mamba.out_proj", "ssm_out"},
};

constexpr NameRule kLfm2[] = {
    {"operator_norm", "attn_norm"},
    {"ffn_norm", "ffn_norm"},
    {"conv.conv", "shortconv.conv", Form::squeezed},
    {"conv.in_proj", "shortconv.in_proj"},
    {"conv.out_proj", "shortconv.out_proj"},
    {"self_attn.q_layernorm", "attn_q_norm"},
    {"self_attn.k_layernorm", "attn_k_norm"},
    {"self_attn.out_proj", "attn_output"},
    {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w2", "ffn_down"},
    {"feed_forward.w3", "ffn_up"},
};

constexpr NameRule kQwen3Next[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"linear_attn.in_proj_qkvz", "attn_qkv", Form::linear_qkv},
    {"linear_attn.in_proj_qkvz", "attn_gate", Form::linear_gate},
    {"linear_attn.in_proj_ba", "ssm_ba"},
    {"linear_attn.conv1d", "ssm_conv1d", Form::squeezed},
    {"linear_attn.A_log", "ssm_a"},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.norm", "ssm_norm"},
    {"linear_attn.out_proj", "ssm_out"},
};

constexpr std::string_view kSilu = "silu swish", kTanh = "gelu_pytorch_tanh gelu_new gelu_fast",
                           kGelu = "gelu gelu_fast";

/// The model_type of a Gemma 3 whose rows see all others.
constexpr std::string_view kEmbeddingGemma = "gemma3_text, bidirectional";

constexpr Family kFamilies[] = {
    {"llama", "llama", llama_keys, kSilu, defaults::kLlama, {}, true},
    {"mistral", "llama", llama_keys, kSilu, defaults::kMistral, {}, true},
    {"mixtral", "llama", llama_keys, kSilu, defaults::kMixtral, {}, true},
    {"ministral3", "mistral3", mistral3_keys, kSilu, defaults::kMinistral3, {}, true},
    {"llama4_text", "llama4", llama4_keys, kSilu, defaults::kLlama4, kLlama4},
    {"qwen2", "qwen2", qwen_keys, kSilu, defaults::kQwen2},
    {"qwen2_moe", "qwen2moe", qwen_keys, kSilu, defaults::kQwen2Moe},
    {"qwen3", "qwen3", qwen_keys, kSilu, defaults::kQwen3},
    {"qwen3_moe", "qwen3moe", qwen_keys, kSilu, defaults::kQwen3Moe},
    {"gemma", "gemma", gemma_keys, kTanh, defaults::kGemma, {}, false, true},
    {"gemma2", "gemma2", gemma_keys, kTanh, defaults::kGemma2, kNormAfterAttention, false, true},
    {"gemma3_text", "gemma3", gemma_keys, kTanh, defaults::kGemma3, kNormAfterAttention, false,
     true},
    {"phi", "phi2", phi2_keys, kTanh, defaults::kPhi},
    {"phi3", "phi3", phi3_keys, kSilu, defaults::kPhi3},
    {"gpt2", "gpt2", gpt2_keys, kTanh, defaults::kGpt2, kGpt2},
    {"gpt_neox", "gptneox", gptneox_keys, kGelu, defaults::kGptNeoX, kGptNeoX},
    {"starcoder2", "starcoder2", llama_keys, kTanh, defaults::kStarcoder2},
    {"stablelm", "stablelm", stablelm_keys, kSilu, defaults::kStableLm},
    {"nemotron", "nemotron", partial_rope_keys, "relu2", defaults::kNemotron, {}, false, true},
    {"olmo2", "olmo2", no_keys, kSilu, defaults::kOlmo2, kNormAfterAttention},
    {"olmoe", "olmoe", olmoe_keys, kSilu, defaults::kOlmoe},
    {"granite", "granite", granite_keys, kSilu, defaults::kGranite, {}, true},
    {"granitemoe", "granitemoe", granite_keys, kSilu, defaults::kGraniteMoe, {}, true},
    {"granitemoeshared", "granitemoe", granite_keys, kSilu, defaults::kGraniteMoe, {}, true},
    {"cohere", "command-r", cohere_keys, kSilu, defaults::kCohere},
    {"cohere2", "cohere2", cohere2_keys, kSilu, defaults::kCohere2},
    {"deepseek_v2", "deepseek2", deepseek_keys, kSilu, defaults::kDeepSeekV2},
    {"deepseek_v3", "deepseek2", deepseek_keys, kSilu, defaults::kDeepSeekV3},
    {"kimi_k2", "deepseek2", deepseek_keys, kSilu, defaults::kDeepSeekV3},
    {"gpt_oss", "gpt-oss", gpt_oss_keys, kSilu, defaults::kGptOss, kGptOss},
    {"glm4", "glm4", no_keys, kSilu, defaults::kGlm4, kGlm4},
    {"smollm3", "smollm3", smollm3_keys, kSilu, defaults::kSmolLm3, {}, true},
    {"exaone4", "exaone4", exaone4_keys, kSilu, defaults::kExaone4, kNormAfterAttention},
    {"ernie4_5", "ernie4_5", no_keys, kSilu, defaults::kErnie45},
    {"ernie4_5_moe", "ernie4_5-moe", ernie_experts_keys, kSilu, defaults::kErnie45Moe},
    {.model_type = "hunyuan_v1_dense",
     .architecture = "hunyuan-dense",
     .keys = hunyuan_keys,
     .activations = kSilu,
     .defaults = defaults::kHunyuan,
     .own_rope_scaling = true},
    {.model_type = "hunyuan_v1_moe",
     .architecture = "hunyuan-moe",
     .keys = hunyuan_keys,
     .activations = kSilu,
     .defaults = defaults::kHunyuan,
     .own_rope_scaling = true},
    {.model_type = "bert",
     .architecture = "bert",
     .keys = bert_keys,
     .activations = "gelu",
     .defaults = defaults::kBert,
     .rules = kBert,
     .encodes = true},
    {.model_type = "nomic_bert",
     .architecture = "nomic-bert",
     .keys = nomic_bert_keys,
     .activations = "silu swiglu",
     .defaults = defaults::kNomicBert,
     .rules = kNomicBert,
     .encodes = true},
    {.model_type = "modernbert",
     .architecture = "modern-bert",
     .keys = modern_bert_keys,
     .activations = "gelu silu",
     .defaults = defaults::kModernBert,
     .rules = kModernBert,
     .encodes = true},
    {.model_type = kEmbeddingGemma,
     .architecture = "gemma-embedding",
     .keys = gemma_keys,
     .activations = kTanh,
     .defaults = defaults::kGemma3,
     .rules = kNormAfterAttention,
     .adds_one = true,
     .encodes = true},
    {.model_type = "gemma4_text",
     .architecture = "gemma4",
     .keys = gemma4_keys,
     .activations = kTanh,
     .defaults = defaults::kGemma4,
     .rules = kGemma4},
    {.model_type = "mamba2",
     .architecture = "mamba2",
     .keys = mamba2_keys,
     .activations = kSilu,
     .defaults = defaults::kMamba2,
     .rules = kMamba2},
    {.model_type = "falcon_h1",
     .architecture = "falcon-h1",
     .keys = falcon_h1_keys,
     .activations = kSilu,
     .defaults = defaults::kFalconH1,
     .rules = kFalconH1,
     .factors = falcon_h1_factors},
    {.model_type = "lfm2",
     .architecture = "lfm2",
     .keys = lfm2_keys,
     .activations = kSilu,
     .defaults = defaults::kLfm2,
     .rules = kLfm2},
    {.model_type = "qwen3_next",
     .architecture = "qwen3next",
     .keys = qwen3_next_keys,
     .activations = kSilu,
     .defaults = defaults::kQwen3Next,
     .rules = kQwen3Next,
     .adds_one = true},
};

struct OuterName {
  std::string_view from, to;
};
constexpr OuterName kOuter[] = {
    {"embed_tokens", "token_embd"},
    {"wte", "token_embd"},
    {"embed_in", "token_embd"},
    {"wpe", "position_embd"},
    {"norm", "output_norm"},
    {"final_layernorm", "output_norm"},
    {"final_layer_norm", "output_norm"},
    {"ln_f", "output_norm"},
    {"lm_head", "output"},
    {"embed_out", "output"},
    {"norm_f", "output_norm"},
    {"final_norm", "output_norm"},
    {"embeddings", "token_embd"},
    {"embedding_norm", "token_embd_norm"},  // LFM 2's last norm
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"embeddings.norm", "token_embd_norm"},
    {"emb_ln", "token_embd_norm"},
    {"embed_tokens_per_layer", "per_layer_token_embd"},
    {"per_layer_model_projection", "per_layer_model_proj"},
    {"per_layer_projection_norm", "per_layer_proj_norm"},
};

}  // namespace

const Family& find_family(const Config& config) {
  std::string wanted = config.text({"model_type"}).value_or("");
  const bool is_gemma3 = wanted == "gemma3_text";
  if (is_gemma3 && config.flag("use_bidirectional_attention", false)) wanted = kEmbeddingGemma;
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.model_type == wanted) return family;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.model_type);
  }
  if (wanted.empty()) throw Error(printable(config.path()), "value is missing", "model_type");
  throw Error(ErrorKind::not_implemented, printable(config.path()), "unsupported model_type",
              fmt::format("'{}'", printable(wanted, 60)),
              fmt::format("this version supports {}", known));
}

const Family* family_of(std::string_view architecture) {
  const auto* const at =
      std::find_if(std::begin(kFamilies), std::end(kFamilies),
                   [&](const Family& family) { return family.architecture == architecture; });
  return at == std::end(kFamilies) ? nullptr : at;
}

std::vector<NameRule> rules_for(const Family& family, std::string_view stem) {
  std::vector<NameRule> found;
  for (const std::span<const NameRule> rules : {family.rules, std::span<const NameRule>(kRules)}) {
    for (const NameRule& rule : rules) {
      if (rule.from == stem) found.push_back(rule);
    }
    if (!found.empty()) break;
  }
  for (NameRule& rule : found) {
    const bool rotates = rule.form == Form::query_rows || rule.form == Form::key_rows;
    if (rotates && !family.permutes) rule.form = Form::same;
  }
  return found;
}

std::string_view outer_name(std::string_view stem) {
  for (const OuterName& name : kOuter) {
    if (name.from == stem) return name.to;
  }
  return {};
}

}  // namespace wick::models::hf
