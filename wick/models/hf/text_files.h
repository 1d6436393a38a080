#pragma once

#include <string>

#include "wick/io/gguf_metadata.h"
#include "wick/models/hf/config.h"

namespace wick::models::hf {

/// Sets the keys of the tokenizer, the chat template, the tokens that begin and end texts, and the
/// sampler, from the files of a folder that exist: the text of tokenizer.json under
/// tokenizer.huggingface.json; all end tokens under tokenizer.ggml.eos_token_ids. Special tokens
/// are those that tokenizer_config.json or special_tokens_map.json name and, behind them, the ids
/// of generation_config.json or config.json. Errors: a file is invalid or too large.
void text_keys(const std::string& folder, const Config& config, io::GgufMetadata& metadata);

}  // namespace wick::models::hf
