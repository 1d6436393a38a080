#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wick/io/model_file.h"
#include "wick/tensor/tensor.h"

namespace wick::models::hf {

/// The factors of one matrix of a LoRA adapter, under the matrix's GGUF name.
struct PeftFactors {
  std::string name;    ///< "blk.0.attn_q.weight"
  std::string module;  ///< PEFT's name of the matrix, for error messages
  Tensor a;            ///< f32 [rank, k]
  Tensor b;            ///< f32 [n, rank], with the rows in the GGUF file's order
  float scale = 1;     ///< of b·a
};

/// Reads an adapter as PEFT writes it: a folder with adapter_config.json and
/// adapter_model.safetensors. `architecture` and `model` tell how the matrices are named and their
/// rows ordered. Errors: a file is missing or invalid; the adapter isn't LoRA, or uses a variant of
/// it that changes more than b·a; a tensor has no place in the architecture; factors are missing or
/// don't fit.
std::vector<PeftFactors> read_peft(const std::string& folder, std::string_view architecture,
                                   const io::ModelFile& model);

}  // namespace wick::models::hf
