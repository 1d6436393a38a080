#pragma once

#include "wick/models/decoder_config.h"

// How the configurations of the architectures differ from Llama's. Each function makes a
// configuration from a file's metadata. Errors: those of Metadata; the sizes contradict each other.
namespace wick::models {

// llama.cpp
DecoderConfig llama(const Metadata& metadata);
DecoderConfig llama4(const Metadata& metadata);
DecoderConfig mistral3(const Metadata& metadata);
DecoderConfig smollm3(const Metadata& metadata);
DecoderConfig granite(const Metadata& metadata);
DecoderConfig granite_experts(const Metadata& metadata);

// qwen.cpp
DecoderConfig qwen2(const Metadata& metadata);
DecoderConfig qwen2_experts(const Metadata& metadata);
DecoderConfig qwen3(const Metadata& metadata);
DecoderConfig qwen3_experts(const Metadata& metadata);

// gemma.cpp
DecoderConfig gemma(const Metadata& metadata);
DecoderConfig gemma2(const Metadata& metadata);
DecoderConfig gemma3(const Metadata& metadata);
DecoderConfig gemma4(const Metadata& metadata);

// gpt.cpp: decoders with layer norms
DecoderConfig gpt2(const Metadata& metadata);
DecoderConfig gpt_neox(const Metadata& metadata);
DecoderConfig phi2(const Metadata& metadata);
DecoderConfig starcoder2(const Metadata& metadata);
DecoderConfig stablelm(const Metadata& metadata);
DecoderConfig nemotron(const Metadata& metadata);
DecoderConfig command_r(const Metadata& metadata);
DecoderConfig cohere2(const Metadata& metadata);

// encoders.cpp
DecoderConfig bert(const Metadata& metadata);
DecoderConfig nomic_bert(const Metadata& metadata);
DecoderConfig modern_bert(const Metadata& metadata);
DecoderConfig gemma_embedding(const Metadata& metadata);

// others.cpp
DecoderConfig phi3(const Metadata& metadata);
DecoderConfig olmo2(const Metadata& metadata);
DecoderConfig olmo_experts(const Metadata& metadata);
DecoderConfig glm4(const Metadata& metadata);
DecoderConfig exaone4(const Metadata& metadata);
DecoderConfig ernie4_5(const Metadata& metadata);
DecoderConfig ernie4_5_experts(const Metadata& metadata);
DecoderConfig hunyuan(const Metadata& metadata);
DecoderConfig hunyuan_experts(const Metadata& metadata);
DecoderConfig gpt_oss(const Metadata& metadata);
DecoderConfig deepseek2(const Metadata& metadata);

// recurrent.cpp
DecoderConfig mamba2(const Metadata& metadata);
DecoderConfig falcon_h1(const Metadata& metadata);
DecoderConfig lfm2(const Metadata& metadata);
DecoderConfig qwen3_next(const Metadata& metadata);

}  // namespace wick::models
