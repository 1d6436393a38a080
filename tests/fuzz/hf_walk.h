#pragma once

#include <cstddef>
#include <span>

namespace wick::models::hf::test {

/// How many readers of a Hugging Face directory's files accept some bytes.
struct Accepted {
  bool config = false, index = false, safetensors = false;
};

/// Reads `bytes` as config.json, down to the metadata of the model; as
/// model.safetensors.index.json; and as a safetensors file, down to the last byte of its tensors,
/// whose names are mapped to those of GGUF files. Readers may throw Error.
Accepted walk_hf(std::span<const std::byte> bytes);

}  // namespace wick::models::hf::test
