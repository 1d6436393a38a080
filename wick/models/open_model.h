#pragma once

#include <memory>
#include <string>

#include "wick/base/export.h"
#include "wick/io/model_file.h"

namespace wick::models {

/// Opens a model: a GGUF file, any part of a split one, or a folder with config.json and
/// safetensors files as Hugging Face's transformers writes them. `name` is a path, or the name of a
/// model in the user's cache (find_model.h). Errors: those of find_model() and io::open_gguf; a
/// file of the folder is missing or invalid; the folder's model_type isn't supported.
WICK_API std::shared_ptr<const io::ModelFile> open_model(const std::string& name);

}  // namespace wick::models
