#pragma once

#include <cstdint>

#include "wick/models/hf/forms.h"
#include "wick/models/hf/shards.h"
#include "wick/tensor/tensor.h"

// Weights that files store in few bits.
namespace wick::models::hf {

/// The rows and columns that share a scale.
struct ScaleBlock {
  int64_t rows = 128, columns = 128;
};

/// Whether f8_to_bf16() accepts a scale.
bool scales_fit(const Shape& weight, const Shape& scale, const ScaleBlock& block);

/// weight [.., n, k] of f8e4m3, or of f16 with the values of F8_E5M2, multiplied by its scales,
/// rounded to bf16. `scale`, a float tensor, has one element, one for each row ([.., n] or [.., n,
/// 1]), or one for each block; an undefined scale is 1. The shapes must fit (scales_fit).
Tensor f8_to_bf16(const Tensor& weight, const Tensor& scale, const ScaleBlock& block);

/// Whether a tensor has the type F8_E5M2, which no dtype stands for.
bool is_e5m2(const io::SafeTensor& tensor);
/// The values of such a tensor, all of which f16 has.
Tensor e5m2_to_f16(const Stored& stored);

/// Blocks of GGML's MXFP4 [e, n, k] from `blocks` u8 [e, n, k/32, 16], whose bytes hold the
/// elements 2i (low bits) and 2i + 1, and `scales` u8 [e, n, k/32]. The form selects the rows.
Tensor mxfp4_of(Form form, const Tensor& blocks, const Tensor& scales);

}  // namespace wick::models::hf
