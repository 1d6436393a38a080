#pragma once

#include <memory>
#include <string>

#include "wick/base/export.h"
#include "wick/io/model_file.h"

namespace wick::models {

/// Opens a model: a GGUF file, or any part of a split one. Errors: those of io::open_gguf.
WICK_API std::shared_ptr<const io::ModelFile> open_model(const std::string& path);

}  // namespace wick::models
