#pragma once

#include <cstdint>

#include "wick/base/dtype.h"
#include "wick/models/hf/config.h"
#include "wick/models/hf/forms.h"
#include "wick/models/hf/shards.h"
#include "wick/tensor/tensor.h"

// Weights that GPTQ and AWQ store in four bits: factor · (code − zero) with a factor and a zero for
// each group of inputs. Sources: Frantar et al., "GPTQ", 2022; Lin et al., "AWQ", 2023.
namespace wick::models::hf {

/// Codes of a stored word, and elements of a block of q4_0.
constexpr int64_t kInt4PerWord = 8, kInt4Block = 32;

/// What quantization_config says of such weights.
struct Int4Config {
  enum class Method : uint8_t { none, gptq, awq };
  Method method = Method::none;
  int64_t group = 0;       ///< inputs of a group; 0: all
  bool symmetric = false;  ///< zeros are 8, and groups are neighbouring inputs
  bool adds_one = false;   ///< stored zeros are one less
};

/// The tensors of a weight [n, k].
struct Int4Tensors {
  Stored codes = {nullptr, nullptr};   ///< i32: "X.qweight"
  Stored zeros = {nullptr, nullptr};   ///< i32: "X.qzeros"
  Stored scales = {nullptr, nullptr};  ///< floats [groups, n]: "X.scales"
  Stored order = {nullptr, nullptr};   ///< i32 [k]: "X.g_idx", the group of each input, or null
};

/// Reads quantization_config. Errors: the weights don't have four bits; they are packed in another
/// layout.
Int4Config int4_config(const Config& config);

/// The number of groups of a weight.
int64_t int4_groups(const Int4Config& config, int64_t inputs);

/// [n, k]. Errors: a tensor is missing; the types or shapes don't fit.
Shape int4_shape(const Int4Config& config, const Int4Tensors& tensors);
/// q4_0 if its blocks have the values exactly, else f16. `shape` is int4_shape()'s.
DType int4_dtype(const Int4Config& config, const Int4Tensors& tensors, const Shape& shape,
                 Form form);
/// The weight in the order of a form, of dtype int4_dtype(). f16 rounds factor · (code − zero)
/// once. Errors: a group of g_idx doesn't exist; groups or zeros aren't those that the
/// configuration says.
Tensor int4_weight(const Int4Config& config, const Int4Tensors& tensors, Form form,
                   const Sizes& sizes);

}  // namespace wick::models::hf
