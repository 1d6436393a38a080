#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/models/hf/config.h"

namespace wick::models::hf {

/// The text of a special token ("bos_token"): a string, or an object with "content". Nothing if
/// there is none.
std::optional<std::string> token_text(const Config& config, const char* name);

/// The ids of tokens in the text of a tokenizer.json: of added tokens or, without one, of the
/// model's. Tokens that the text lacks have no id. Mistakes in the text aren't reported.
std::vector<std::optional<int64_t>> token_ids(std::string_view tokenizer_json,
                                              std::span<const std::string> tokens);

}  // namespace wick::models::hf
