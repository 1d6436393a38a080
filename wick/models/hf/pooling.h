#pragma once

#include <string>
#include <string_view>

#include "wick/io/gguf_metadata.h"

namespace wick::models::hf {

/// Sets "ARCHITECTURE.pooling_type" if modules.json, which sentence-transformers writes, has a
/// pooling: 1 mean, 2 first row, 3 last row. Dense layers after it aren't read, as llama.cpp's
/// converter doesn't read them by default. Errors: a file is invalid; the pooling isn't one of
/// these.
void pooling_key(const std::string& folder, std::string_view architecture,
                 io::GgufMetadata& metadata);

}  // namespace wick::models::hf
