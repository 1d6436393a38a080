#pragma once

#include <span>
#include <string>

#include "wick/base/export.h"
#include "wick/io/model_file.h"

namespace wick::serve {

/// A digest that tells models apart, as 16 hexadecimal digits. It covers the architecture's keys,
/// the vocabulary, the names, types and shapes of all tensors, some bytes of some tensors, and the
/// beginnings of the adapters' files: reading all weights would take as long as loading them.
WICK_API std::string model_digest(const io::ModelFile& file, std::span<const std::string> adapters);

}  // namespace wick::serve
