#pragma once

#include <string>

#include "wick/base/export.h"
#include "wick/io/gguf_metadata.h"
#include "wick/io/model_file.h"

namespace wick::serve {

/// Gives the keys of a new GGUF file the vocabulary of a folder's tokenizer.json in the form that
/// llama.cpp reads (tokenizer.ggml.*). The text of tokenizer.json stays beside it, and is what wick
/// uses, unless both give the same ids. Returns why it stays; empty if it doesn't, or if `from`
/// has no tokenizer.json or has the keys already.
WICK_API std::string convert_vocabulary(const io::ModelFile& from, io::GgufMetadata& to);

}  // namespace wick::serve
