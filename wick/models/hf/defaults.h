#pragma once

// What config.json files may leave out: the defaults of transformers' configuration classes, except
// sizes that each model has of its own. A member that is null isn't left out.

#include <string_view>

namespace wick::models::hf::defaults {

constexpr std::string_view kLlama = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048})";
constexpr std::string_view kMistral = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 131072,
    "num_key_value_heads": 8, "sliding_window": 4096})";
constexpr std::string_view kMixtral = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
    "num_key_value_heads": 8, "rope_theta": 1e6, "num_experts_per_tok": 2,
    "num_local_experts": 8})";
constexpr std::string_view kMinistral3 = R"({"rms_norm_eps": 1e-5,
    "max_position_embeddings": 262144, "num_key_value_heads": 8, "head_dim": 128,
    "rope_theta": 1e6})";
constexpr std::string_view kLlama4 = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
    "num_key_value_heads": 8, "head_dim": 128, "rope_theta": 5e5, "num_experts_per_tok": 1,
    "num_local_experts": 16})";
constexpr std::string_view kQwen2 = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
    "num_key_value_heads": 32})";
constexpr std::string_view kQwen2Moe = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
    "num_key_value_heads": 16, "num_experts_per_tok": 4, "num_experts": 60,
    "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
    "norm_topk_prob": false})";
constexpr std::string_view kQwen3 = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
    "num_key_value_heads": 32, "head_dim": 128})";
constexpr std::string_view kQwen3Moe = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
    "num_key_value_heads": 4, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
    "norm_topk_prob": false})";
constexpr std::string_view kQwen3Next = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
    "num_key_value_heads": 2, "head_dim": 256, "partial_rotary_factor": 0.25,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "num_experts_per_tok": 10,
    "num_experts": 512, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
    "norm_topk_prob": true})";
constexpr std::string_view kGemma = R"({"tie_word_embeddings": true, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 8192, "num_key_value_heads": 16, "head_dim": 256})";
constexpr std::string_view kGemma2 = R"({"tie_word_embeddings": true, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 8192, "num_key_value_heads": 4, "head_dim": 256,
    "query_pre_attn_scalar": 256, "sliding_window": 4096, "final_logit_softcapping": 30.0,
    "attn_logit_softcapping": 50.0})";
constexpr std::string_view kGemma3 = R"({"tie_word_embeddings": true, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 131072, "num_attention_heads": 8, "num_key_value_heads": 4,
    "head_dim": 256, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window": 4096,
    "query_pre_attn_scalar": 256})";
constexpr std::string_view kGemma4 = R"({"tie_word_embeddings": true, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 131072, "num_key_value_heads": 4, "head_dim": 256,
    "sliding_window": 512, "hidden_size_per_layer_input": 256})";
constexpr std::string_view kPhi = R"({"layer_norm_eps": 1e-5, "max_position_embeddings": 2048,
    "partial_rotary_factor": 0.5})";
constexpr std::string_view kPhi3 = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 4096})";
constexpr std::string_view kGpt2 = R"({"tie_word_embeddings": true, "layer_norm_epsilon": 1e-5,
    "n_positions": 1024})";
constexpr std::string_view kGptNeoX = R"({"layer_norm_eps": 1e-5, "max_position_embeddings": 2048,
    "rotary_pct": 0.25})";
constexpr std::string_view kStarcoder2 = R"({"tie_word_embeddings": true, "norm_epsilon": 1e-5,
    "max_position_embeddings": 4096, "num_key_value_heads": 2})";
constexpr std::string_view kStableLm = R"({"layer_norm_eps": 1e-5, "max_position_embeddings": 4096,
    "num_key_value_heads": 32, "rope_pct": 0.25})";
constexpr std::string_view kNemotron = R"({"norm_eps": 1e-5, "max_position_embeddings": 4096,
    "partial_rotary_factor": 0.5})";
constexpr std::string_view kOlmo2 = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 2048})";
constexpr std::string_view kOlmoe = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 4096,
    "num_experts_per_tok": 8, "num_experts": 64, "norm_topk_prob": false})";
constexpr std::string_view kGranite = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048,
    "attention_multiplier": 1.0})";
constexpr std::string_view kGraniteMoe = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048,
    "attention_multiplier": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2})";
constexpr std::string_view kCohere = R"({"tie_word_embeddings": true, "layer_norm_eps": 1e-5,
    "max_position_embeddings": 8192, "rope_theta": 5e5, "logit_scale": 0.0625})";
constexpr std::string_view kCohere2 = R"({"tie_word_embeddings": true, "layer_norm_eps": 1e-5,
    "max_position_embeddings": 8192, "sliding_window": 4096, "logit_scale": 0.0625})";
constexpr std::string_view kDeepSeekV2 = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "topk_method": "greedy"})";
constexpr std::string_view kDeepSeekV3 = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 4096,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8,
    "first_k_dense_replace": 3, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
    "norm_topk_prob": true})";
constexpr std::string_view kGptOss = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
    "num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128, "rope_theta": 150000,
    "num_experts_per_tok": 4})";
constexpr std::string_view kGlm4 = R"({"rms_norm_eps": 1.5625e-7,
    "max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128,
    "partial_rotary_factor": 0.5})";
constexpr std::string_view kSmolLm3 = R"({"tie_word_embeddings": true, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 32768, "num_key_value_heads": 4, "rope_theta": 2e6})";
constexpr std::string_view kExaone4 = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 2048,
    "num_key_value_heads": 32, "sliding_window": 4096, "sliding_window_pattern": 4})";
constexpr std::string_view kErnie45 = R"({"tie_word_embeddings": true, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128,
    "rope_theta": 5e5})";
constexpr std::string_view kErnie45Moe = R"({"tie_word_embeddings": true, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 131072, "num_key_value_heads": 4, "rope_theta": 5e5, "moe_k": 6,
    "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
    "moe_intermediate_size": 1536})";
constexpr std::string_view kHunyuan = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 2048})";
constexpr std::string_view kBert = R"({"layer_norm_eps": 1e-12, "max_position_embeddings": 512})";
// The authors' configuration has other names for most members, which come first.
constexpr std::string_view kNomicBert = R"({"norm_epsilon": 1e-12, "n_ctx": 2048,
    "rotary_emb_base": 1000})";
constexpr std::string_view kModernBert = R"({"max_position_embeddings": 8192,
    "global_rope_theta": 160000, "local_rope_theta": 10000, "local_attention": 128,
    "norm_eps": 1e-5})";
// The context isn't limited.
constexpr std::string_view kMamba2 = R"({"num_attention_heads": 0,
    "max_position_embeddings": 1048576, "layer_norm_epsilon": 1e-5, "n_groups": 8})";
constexpr std::string_view kFalconH1 = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 8192,
    "num_key_value_heads": 8})";
constexpr std::string_view kLfm2 = R"({"tie_word_embeddings": true, "norm_eps": 1e-5,
    "max_position_embeddings": 128000, "num_key_value_heads": 8, "rope_theta": 1e6,
    "conv_L_cache": 3})";

}  // namespace wick::models::hf::defaults
