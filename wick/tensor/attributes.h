#pragma once

// Attributes of ops: what a call is given beside its tensors. One struct for each kind of
// attributes; OpCall holds one of them.

#include <array>
#include <cstdint>
#include <variant>

#include "wick/backend/backend.h"
#include "wick/base/shape.h"
#include "wick/tensor/ops.h"

namespace wick {

/// Of an elementwise function of one operand and one number or two; of fill (p) and of iota
/// (p is the start, q the step).
struct Numbers {
  Scalar p = 0, q = 0;
};

/// Of an op along one dim, counted from the front.
struct AlongDim {
  int dim = 0;
};

/// Of a reduction over dims.
struct Reduction {
  uint32_t dims = 0;     ///< bit d for dim d
  bool keepdim = false;  ///< reduced dims stay as size 1
};

/// Of an op whose result has a dtype that the caller names.
struct Conversion {
  DType dtype = DType::f32;
};

/// Of index_select.
struct Selection {
  int dim = 0;
  DType dtype = DType::f32;  ///< of the result, where the operand has a block dtype
};

/// Of one_hot.
struct OneHot {
  int64_t depth = 0;
};

/// Of sort, argsort and topk.
struct Sorting {
  int dim = 0;
  bool descending = false;
  int64_t count = 0;  ///< elements kept of the sorted dim
};

/// Of uniform (in [a, b)) and normal (mean a, deviation b).
struct Distribution {
  uint64_t seed = 0, first = 0;  ///< the generator's seed, and the counter of the first element
  Scalar a = 0, b = 1;
};

/// Of rms_norm, layer_norm and batch_norm.
struct Epsilon {
  float eps = 0;
};

/// Of group_norm.
struct Groups {
  int64_t count = 1;
  float eps = 0;
};

/// Of conv_transpose2d.
struct ConvTranspose {
  ConvParams params;
  std::array<int64_t, 2> output_padding{};
};

/// Of conv2d_weight.
struct ConvWeight {
  ConvParams params;
  std::array<int64_t, 2> kernel{};  ///< the weight's last sizes
};

/// Of linear: what is computed before and after the product.
struct LinearSteps {
  bool silu_mul = false;   ///< x is [.., 2k]
  bool attention = false;  ///< x is the qkv of cached_attention
  float eps = 0;           ///< of the norm
  AttentionParams params;  ///< of the attention
  int64_t each = 0;        ///< rows of a matrix of x, see FusedLinear
};

/// Dims of roll; of views dims in another order, or a pair that changed places.
struct DimOrder {
  std::array<int, Shape::kMaxRank> dims{};
  int count = 0;
};
/// Of roll.
struct Shifts {
  std::array<int64_t, Shape::kMaxRank> shifts{};
  DimOrder along;
};
/// Of repeat: of the last `count` dims, or of more than there are.
struct Repeats {
  std::array<int64_t, Shape::kMaxRank> counts{};
  int count = 0;
};
/// Of pad: of the last `count` dims.
struct PadParams {
  std::array<Padding, Shape::kMaxRank> padding{};
  int count = 0;
  PadMode mode = PadMode::constant;
  Scalar value = 0;
};
/// Of tril and triu.
struct Diagonal {
  int64_t diagonal = 0;
};

// Of views, for their gradients.

/// Elements start, start + step, … before stop of a dim.
struct SliceRange {
  int dim;
  int64_t start, stop, step;
};

/// One kind of attributes, or none. Trivially copyable.
using Attributes =
    std::variant<std::monostate, Numbers, AlongDim, Reduction, Conversion, Selection, OneHot,
                 Sorting, Distribution, Epsilon, Groups, ConvParams, ConvTranspose, ConvWeight,
                 PoolParams, UpsampleParams, AttentionParams, LinearSteps, SliceRange, DimOrder,
                 Shifts, Repeats, PadParams, Diagonal>;

}  // namespace wick
