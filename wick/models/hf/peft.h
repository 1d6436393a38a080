#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wick/io/model_file.h"
#include "wick/models/matrix_change.h"

namespace wick::models::hf {

/// What a LoRA adapter changes of one matrix, or of a stack of experts' matrices.
struct PeftChange {
  std::string name;  ///< of the matrix in a GGUF file: "blk.0.attn_q.weight"
  MatrixChange change;
};

/// Reads an adapter as PEFT writes it: a folder with adapter_config.json and
/// adapter_model.safetensors. `architecture` and `model` tell how the matrices are named and their
/// rows ordered. Errors: a file is missing or invalid; the adapter isn't LoRA, or is of a variant
/// that isn't supported; a tensor has no place in the architecture; factors are missing or don't
/// fit.
std::vector<PeftChange> read_peft(const std::string& folder, std::string_view architecture,
                                  const io::ModelFile& model);

}  // namespace wick::models::hf
