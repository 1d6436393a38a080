"""The tiny models: name → (class, configuration class, configuration, tensors of constants). Windows and contexts are
shorter than the tests' 24 tokens, soft caps are small and rope angles large, so that each of them affects the
logits."""

COMMON = {
    "vocab_size": 40, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 96, "rms_norm_eps": 1e-5,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False,
}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32}


def sizes(without=(), **more):
    options = {k: v for k, v in COMMON.items() if k not in without} | {"rope_parameters": dict(ROPE)} | more
    return {k: v for k, v in options.items() if v is not None}


# Models whose logits depend on the number of tokens: that number, the positions whose logits are stored, and how
# transformers gets the tokens: all at once, one at a time with one cache, or as choices of generate(), which drops the
# cache where LongRoPE's factors change. Their descriptions are in data/long.
LONG = {
    "llama4-chunks": (600, [100, 255, 256, 257, 300, 511, 512, 599], "at once"),
    "llama-dynamic": (150, [20, 31, 32, 33, 64, 100, 149], "one by one"),
    "phi3-longrope-generated": (24, [5, 14, 15, 16, 17, 23], "generated"),
}
LONGROPE = {
    "rope_type": "longrope", "original_max_position_embeddings": 16,
    "short_factor": [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5],
    "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
}

MODELS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", sizes(rope_parameters=ROPE | {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}), ["rope_freqs"]),
    "llama-linear": ("LlamaForCausalLM", "LlamaConfig", sizes(
        tie_word_embeddings=True, rope_parameters=ROPE | {"rope_type": "linear", "factor": 4.0}), []),
    "mistral": ("MistralForCausalLM", "MistralConfig", sizes(sliding_window=None, head_dim=24), []),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", sizes(
        num_local_experts=6, num_experts_per_tok=2, sliding_window=None), []),
    "ministral3": ("Ministral3ForCausalLM", "Ministral3Config", sizes(sliding_window=None, rope_parameters=ROPE | {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 4.0, "beta_slow": 1.0,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.3}), []),
    "llama4": ("Llama4ForCausalLM", "Llama4TextConfig", sizes(
        num_hidden_layers=4, intermediate_size_mlp=80, num_local_experts=4, num_experts_per_tok=1,
        interleave_moe_layer_step=2, no_rope_layer_interval=4, attention_chunk_size=8192, use_qk_norm=True,
        attn_temperature_tuning=True, floor_scale=8192, attn_scale=0.1), []),
    "llama4-chunks": ("Llama4ForCausalLM", "Llama4TextConfig", sizes(
        num_hidden_layers=4, intermediate_size_mlp=80, num_local_experts=4, num_experts_per_tok=1,
        interleave_moe_layer_step=2, no_rope_layer_interval=4, attention_chunk_size=256, use_qk_norm=True,
        attn_temperature_tuning=True, floor_scale=8192, attn_scale=0.1, max_position_embeddings=1024), []),
    "llama-dynamic": ("LlamaForCausalLM", "LlamaConfig", sizes(
        max_position_embeddings=32, rope_parameters=ROPE | {"rope_type": "dynamic", "factor": 8.0}), []),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", sizes(without=["head_dim"]), []),
    "qwen2-yarn": ("Qwen2ForCausalLM", "Qwen2Config", sizes(
        without=["head_dim"], tie_word_embeddings=True, rope_parameters={
            "rope_type": "yarn", "rope_theta": 100.0, "factor": 3.0, "original_max_position_embeddings": 32}), []),
    "qwen2moe": ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", sizes(
        **EXPERTS, without=["head_dim"], shared_expert_intermediate_size=48, decoder_sparse_step=1,
        norm_topk_prob=False), []),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", sizes(
        head_dim=24, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6}), []),
    "qwen3moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", sizes(
        **EXPERTS, decoder_sparse_step=1, norm_topk_prob=True), []),
    "qwen3next": ("Qwen3NextForCausalLM", "Qwen3NextConfig", sizes(
        **EXPERTS, num_hidden_layers=4, shared_expert_intermediate_size=48, decoder_sparse_step=1,
        norm_topk_prob=True, partial_rotary_factor=0.5, linear_conv_kernel_dim=4, linear_key_head_dim=8,
        linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
        layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"]), []),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", sizes(
        num_key_value_heads=1, head_dim=32, tie_word_embeddings=True, hidden_activation="gelu_pytorch_tanh"), []),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", sizes(
        num_hidden_layers=3, sliding_window=5, tie_word_embeddings=True, query_pre_attn_scalar=16,
        attn_logit_softcapping=1.5, final_logit_softcapping=3.0), []),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", sizes(
        num_hidden_layers=7, hidden_size=32, intermediate_size=48, num_key_value_heads=1, sliding_window=5,
        tie_word_embeddings=True, query_pre_attn_scalar=16, rope_parameters={
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}), []),
    "gemma4": ("Gemma4ForCausalLM", "Gemma4TextConfig", sizes(
        num_hidden_layers=6, sliding_window=5, tie_word_embeddings=True, hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=40, num_kv_shared_layers=2, global_head_dim=32, final_logit_softcapping=3.0,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2,
        rope_parameters={
            "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}), ["rope_freqs"]),
    "gemma4-moe": ("Gemma4ForCausalLM", "Gemma4TextConfig", sizes(
        num_hidden_layers=3, sliding_window=5, tie_word_embeddings=True, hidden_size_per_layer_input=0,
        num_kv_shared_layers=0, global_head_dim=32, attention_k_eq_v=True, num_global_key_value_heads=1,
        enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=32,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        rope_parameters={
            "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}), ["rope_freqs"]),
    "phi2": ("PhiForCausalLM", "PhiConfig", sizes(
        without=["head_dim", "rms_norm_eps"], intermediate_size=256, num_key_value_heads=4, partial_rotary_factor=0.5,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.5}), []),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", sizes(
        without=["head_dim"], num_key_value_heads=4, sliding_window=7, partial_rotary_factor=0.75,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.75}), []),
    "phi3-longrope": ("Phi3ForCausalLM", "Phi3Config", sizes(
        without=["head_dim"], sliding_window=None, original_max_position_embeddings=16,
        rope_parameters=ROPE | LONGROPE), ["rope_factors"]),
    "phi3-longrope-generated": ("Phi3ForCausalLM", "Phi3Config", sizes(
        without=["head_dim"], sliding_window=None, original_max_position_embeddings=16,
        rope_parameters=ROPE | LONGROPE), ["rope_factors"]),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {
        "vocab_size": 40, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 96,
        "bos_token_id": 1, "eos_token_id": 2}, [], {"n_ctx": 96}),
    "gptneox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", sizes(
        without=["head_dim", "rms_norm_eps", "num_key_value_heads"], use_parallel_residual=True, rotary_pct=0.5,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.5}), [], {"rotary_pct": 0.5}),
    "gptneox-sequential": ("GPTNeoXForCausalLM", "GPTNeoXConfig", sizes(
        without=["head_dim", "rms_norm_eps", "num_key_value_heads"], use_parallel_residual=False, rotary_pct=1.0),
        [], {"rotary_pct": 1.0}),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", sizes(
        without=["head_dim", "rms_norm_eps"], norm_epsilon=1e-5, use_bias=True, sliding_window=None), []),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", sizes(
        without=["head_dim", "rms_norm_eps"], use_qkv_bias=True, partial_rotary_factor=0.25,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.25}), []),
    "stablelm-parallel": ("StableLmForCausalLM", "StableLmConfig", sizes(
        without=["head_dim", "rms_norm_eps"], use_parallel_residual=True, qk_layernorm=True,
        partial_rotary_factor=0.25, rope_parameters=ROPE | {"partial_rotary_factor": 0.25}), []),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", sizes(without=["head_dim"]), []),
    "olmoe": ("OlmoeForCausalLM", "OlmoeConfig", sizes(
        without=["head_dim"], intermediate_size=32, num_experts=6, num_experts_per_tok=2), []),
    "granite": ("GraniteForCausalLM", "GraniteConfig", sizes(
        without=["head_dim"], embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2,
        logits_scaling=2.5), []),
    "granitemoe": ("GraniteMoeForCausalLM", "GraniteMoeConfig", sizes(
        without=["head_dim"], intermediate_size=32, num_local_experts=6, num_experts_per_tok=2,
        embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=2.5), []),
    "granitemoe-shared": ("GraniteMoeSharedForCausalLM", "GraniteMoeSharedConfig", sizes(
        without=["head_dim"], intermediate_size=32, num_local_experts=6, num_experts_per_tok=2,
        shared_intermediate_size=48, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2,
        logits_scaling=2.5), []),
    "command-r": ("CohereForCausalLM", "CohereConfig", sizes(
        without=["head_dim", "rms_norm_eps"], logit_scale=0.25, tie_word_embeddings=True), []),
    "cohere2": ("Cohere2ForCausalLM", "Cohere2Config", sizes(
        without=["rms_norm_eps"], logit_scale=0.25, tie_word_embeddings=True, num_hidden_layers=4, sliding_window=5,
        sliding_window_pattern=4), [], {"rotary_pct": 1.0}),
    "deepseek2-lite": ("DeepseekV2ForCausalLM", "DeepseekV2Config", sizes(
        without=["head_dim"], num_key_value_heads=4, num_hidden_layers=3, first_k_dense_replace=1, kv_lora_rank=32,
        q_lora_rank=None, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24, n_routed_experts=6,
        num_experts_per_tok=2, n_shared_experts=2, moe_intermediate_size=32, topk_method="greedy", n_group=1,
        topk_group=1, norm_topk_prob=False, routed_scaling_factor=1.5), []),
    "deepseek3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", sizes(
        without=["head_dim"], num_key_value_heads=4, num_hidden_layers=3, first_k_dense_replace=1, kv_lora_rank=32,
        q_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24, n_routed_experts=8,
        num_experts_per_tok=3, n_shared_experts=1, moe_intermediate_size=32, n_group=4, topk_group=2,
        norm_topk_prob=True, routed_scaling_factor=2.5, rope_interleave=True, rope_parameters=ROPE | {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32,
            "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}), [], {"scoring_func": "sigmoid"}),
    "gpt-oss": ("GptOssForCausalLM", "GptOssConfig", sizes(
        num_local_experts=6, num_experts_per_tok=2, intermediate_size=32, sliding_window=5, rope_parameters={
            "rope_type": "yarn", "rope_theta": 1500.0, "factor": 4.0, "original_max_position_embeddings": 16,
            "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}), []),
    "glm4": ("Glm4ForCausalLM", "Glm4Config", sizes(
        attention_bias=True, partial_rotary_factor=0.5, rope_parameters=ROPE | {"partial_rotary_factor": 0.5}), []),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", sizes(
        without=["head_dim"], num_hidden_layers=4, no_rope_layer_interval=4), []),
    "exaone4": ("Exaone4ForCausalLM", "Exaone4Config", sizes(
        num_hidden_layers=2, sliding_window=None, layer_types=["full_attention"] * 2), []),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", sizes(
        without=["rms_norm_eps"], norm_eps=1e-5, partial_rotary_factor=0.5,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.5}), []),
    "ernie4_5": ("Ernie4_5ForCausalLM", "Ernie4_5Config", sizes(), []),
    "ernie4_5-moe": ("Ernie4_5_MoeForCausalLM", "Ernie4_5_MoeConfig", sizes(
        without=["head_dim"], num_hidden_layers=3, moe_num_experts=6, moe_k=2, moe_intermediate_size=32,
        moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=-1, moe_layer_interval=1), []),
    "hunyuan-dense": ("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Config", sizes(), []),
    "hunyuan-moe": ("HunYuanMoEV1ForCausalLM", "HunYuanMoEV1Config", sizes(
        num_experts=6, moe_topk=[2, 2], moe_intermediate_size=[96, 96], num_shared_expert=[1, 1]), []),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", sizes(
        without=["head_dim", "rms_norm_eps"], norm_eps=1e-5, conv_L_cache=3, block_auto_adjust_ff_dim=False,
        num_hidden_layers=4, layer_types=["conv", "full_attention", "conv", "full_attention"]), []),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", {
        "vocab_size": 40, "hidden_size": 64, "state_size": 16, "num_heads": 8, "head_dim": 16, "expand": 2,
        "n_groups": 2, "conv_kernel": 4, "num_hidden_layers": 2, "layer_norm_epsilon": 1e-5, "chunk_size": 8,
        "tie_word_embeddings": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}, []),
    "falcon-h1": ("FalconH1ForCausalLM", "FalconH1Config", sizes(
        mamba_d_ssm=64, mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=16, mamba_d_conv=4,
        mamba_chunk_size=8, mamba_expand=1, mamba_rms_norm=False, mamba_norm_before_gate=False,
        embedding_multiplier=1.0, lm_head_multiplier=1.0), []),
    "falcon-h1-multipliers": ("FalconH1ForCausalLM", "FalconH1Config", sizes(
        mamba_d_ssm=64, mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=16, mamba_d_conv=4,
        mamba_chunk_size=8, mamba_expand=1, mamba_rms_norm=True, mamba_norm_before_gate=False,
        embedding_multiplier=2.0, lm_head_multiplier=0.5, attention_in_multiplier=2.0, attention_out_multiplier=0.5,
        key_multiplier=4.0, ssm_in_multiplier=0.5, ssm_out_multiplier=2.0, mlp_multipliers=[2.0, 0.25],
        ssm_multipliers=[2.0, 0.5, 4.0, 0.25, 8.0]), []),
    # Makers of embeddings.
    "bert": ("BertModel", "BertConfig", {
        "vocab_size": 40, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 96, "max_position_embeddings": 96, "type_vocab_size": 2, "pad_token_id": 0}, []),
    "nomic-bert": ("NomicBertModel", "NomicBertConfig", sizes(
        without=["head_dim", "rms_norm_eps", "num_key_value_heads"], type_vocab_size=2), [], {
            "n_positions": 2048, "max_trained_positions": 2048, "n_layer": 2, "n_inner": 96, "n_head": 4, "n_embd": 64,
            "activation_function": "swiglu", "rotary_emb_base": 10000.0, "rotary_emb_fraction": 1.0,
            "layer_norm_epsilon": 1e-12, "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
            "causal": False, "prenorm": False, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None}),
    "modern-bert": ("ModernBertModel", "ModernBertConfig", sizes(
        without=["head_dim", "rms_norm_eps", "num_key_value_heads"], rope_parameters=None, num_hidden_layers=4,
        local_attention=6, global_attn_every_n_layers=3), [], {"layer_norm_eps": 1e-5}),
    "gemma-embedding": ("Gemma3TextModel", "Gemma3TextConfig", sizes(
        num_hidden_layers=7, hidden_size=32, intermediate_size=48, num_key_value_heads=1, sliding_window=6,
        tie_word_embeddings=True, query_pre_attn_scalar=16, use_bidirectional_attention=True, rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}), []),
    "qwen3-embedding": ("Qwen3Model", "Qwen3Config", sizes(tie_word_embeddings=True), []),
    # Not in the registry: tests/models/added adds it.
    "arcee": ("ArceeForCausalLM", "ArceeConfig", sizes(head_dim=16), []),
}
