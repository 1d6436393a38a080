#pragma once

#include <string>
#include <vector>

#include "wick/models/hf/description.h"
#include "wick/models/hf/int4.h"
#include "wick/models/hf/shards.h"

namespace wick::models::hf {

/// One stored tensor, with its scales if it has any.
struct Source {
  Stored stored;
  Stored scale = {nullptr, nullptr};
  Int4Tensors int4 = {};  ///< of weights of GPTQ and AWQ; `stored` has the codes
};

/// A tensor of the GGUF file.
struct Named {
  std::string name;
  Form form;
  bool stacked;  ///< the sources are the parts of another dim, which is the first
  std::vector<Source> sources;
};

/// A tensor's name, taken apart.
struct TensorName {
  int64_t layer = -1;       ///< -1: outside the layers
  std::string stem;         ///< with "*" for a number
  int64_t number = -1;      ///< for the "*"
  std::string_view suffix;  ///< ".weight", ".bias" or empty
};
TensorName parse_name(std::string_view name);

/// Finds what each stored tensor is in the GGUF file. The result is in the order in which a model
/// reads its weights. Errors: a tensor has no place in the family; two have the same; a tensor of a
/// stack is missing; the model doesn't have its layer.
std::vector<Named> name_tensors(const Description& description, const std::vector<Stored>& tensors);

/// Throws an error about a tensor.
[[noreturn]] void wrong_tensor(const Stored& stored, std::string_view what, std::string_view rule);

}  // namespace wick::models::hf
