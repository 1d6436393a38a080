#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wick/io/gguf_metadata.h"

namespace wick::models::hf {

/// Reads modules.json, which sentence-transformers writes, if the folder has it. Sets
/// "ARCHITECTURE.pooling_type" if there is a pooling: 1 mean, 2 first row, 3 last row; and for each
/// dense layer after it "ARCHITECTURE.dense_I_feat_in" and "_out", I = 2, 3. Returns the folders of
/// the dense layers. Errors: a file is invalid; the pooling isn't one of these; there are more than
/// two dense layers, or one has an activation.
std::vector<std::string> read_modules(const std::string& folder, std::string_view architecture,
                                      io::GgufMetadata& metadata);

}  // namespace wick::models::hf
