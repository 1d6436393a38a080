#pragma once

#include "wick/tensor/tensor.h"

namespace wick::models {

/// What an adapter changes of a matrix W [n, k]. At scale c, the product y = W x becomes y + c ·
/// (y' − y), where y' is the product with the adapted matrix, plus `shift`:
/// - `a` and `b`: y' = y + B·A·x. Source: Hu et al., "LoRA", 2021;
/// - with `magnitude`: y' = magnitude / ‖rows of W + B·A‖ · (y + B·A·x). Source: Liu et al., 2024
///   ("DoRA");
/// - `whole`: y' = whole · x.
///
/// `bias` replaces the matrix's bias. Members that an adapter doesn't have are undefined.
struct MatrixChange {
  Tensor a;  ///< f32 [rank, k]; of a stack of matrices [count, rank, k]; of a table [n, rank]
  Tensor b;  ///< f32 [n, rank], times the scale in the file; of a stack [count, n, rank]; of
             ///< a table [k, rank]
  Tensor magnitude;  ///< f32 [n]
  Tensor whole;      ///< floats [n, k]
  Tensor shift;      ///< f32 [n], added to y'
  Tensor bias;       ///< f32 [n], instead of the matrix's bias
};

}  // namespace wick::models
