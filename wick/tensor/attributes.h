#pragma once

// Attributes are the arguments of an op that aren't tensors. There is one struct for each kind of
// op; an OpCall holds one of them.

#include <array>
#include <cstdint>
#include <variant>

#include "wick/backend/backend.h"
#include "wick/base/shape.h"
#include "wick/tensor/ops.h"

namespace wick {

/// Attributes of affine, clamp, powf and elu (p, q), of fill (p is the value) and of iota (p is the
/// start, q the step).
struct Numbers {
  Scalar p = 0, q = 0;
};

/// Attributes of ops along one dim, which is counted from the front.
struct AlongDim {
  int dim = 0;
};

/// Attributes of reductions over dims.
struct Reduction {
  uint32_t dims = 0;     ///< bit d is set for each reduced dim d
  bool keepdim = false;  ///< reduced dims stay as size 1
};

/// Attributes of ops whose caller chooses the dtype of the result.
struct Conversion {
  DType dtype = DType::f32;
};

/// Attributes of index_select.
struct Selection {
  int dim = 0;
  DType dtype = DType::f32;  ///< dtype of the result if the operand has a block dtype
};

/// Attributes of one_hot.
struct OneHot {
  int64_t depth = 0;
};

/// Attributes of sort, argsort and topk.
struct Sorting {
  int dim = 0;
  bool descending = false;
  int64_t count = 0;  ///< elements of the sorted dim that are kept
};

/// Attributes of uniform (over [a, b)) and normal (mean a, standard deviation b).
struct Distribution {
  uint64_t seed = 0, first = 0;  ///< the generator's seed, and the counter of the first element
  Scalar a = 0, b = 1;
};

/// Attributes of rms_norm, layer_norm and batch_norm.
struct Epsilon {
  float eps = 0;
};

/// Attributes of group_norm.
struct Groups {
  int64_t count = 1;
  float eps = 0;
};

/// Attributes of conv_transpose2d.
struct ConvTranspose {
  ConvParams params;
  std::array<int64_t, 2> output_padding{};
};

/// Attributes of conv2d_weight.
struct ConvWeight {
  ConvParams params;
  std::array<int64_t, 2> kernel{};  ///< the last two sizes of the weight
};

/// Attributes of linear: the steps that are fused before and after the gemm.
struct LinearSteps {
  bool silu_mul = false;     ///< silu_mul of the halves of x [.., 2k] comes first
  bool gelu_mul = false;     ///< the same with gelu; only in graphs (graph/fuse.cpp)
  bool attention = false;    ///< x is the qkv of cached_attention, whose result goes into the gemm
  float eps = 0;             ///< epsilon of the fused rms_norm
  AttentionParams params{};  ///< parameters of the fused attention
  int64_t each = 0;          ///< rows of each matrix in x, see FusedLinear and ExpertRows
  int64_t of_token = 1;      ///< of grouped_linear, see ExpertRows
};

/// Attributes of attention's gradient: which gradients the result holds.
struct AttentionGradient {
  AttentionParams params;
  bool of_q = true, of_keys = true;  ///< of_keys: those of k and v
  bool of_sinks = false;             ///< whether there is a second result, for the sinks
};

/// A list of dims: the rolled dims of roll, the order of permute, or the pair that transpose swaps.
struct DimOrder {
  std::array<int, Shape::kMaxRank> dims{};
  int count = 0;
};
/// Attributes of roll.
struct Shifts {
  std::array<int64_t, Shape::kMaxRank> shifts{};
  DimOrder along;
};
/// Attributes of repeat: counts of the last `count` dims; `count` may exceed the operand's rank.
struct Repeats {
  std::array<int64_t, Shape::kMaxRank> counts{};
  int count = 0;
};
/// Attributes of pad: padding of the last `count` dims.
struct PadParams {
  std::array<Padding, Shape::kMaxRank> padding{};
  int count = 0;
  PadMode mode = PadMode::constant;
  Scalar value = 0;
};
/// Attributes of tril and triu.
struct Diagonal {
  int64_t diagonal = 0;
};

// Attributes of views, which their gradient rules read.

/// The elements start, start + step, … before stop along a dim.
struct SliceRange {
  int dim;
  int64_t start, stop, step;
};

/// The attributes of one call; monostate if the op has none. Trivially copyable.
using Attributes = std::variant<std::monostate, Numbers, AlongDim, Reduction, Conversion, Selection,
                                OneHot, Sorting, Distribution, Epsilon, Groups, NormKind,
                                ConvParams, ConvTranspose, ConvWeight, ExpertRouting, PoolParams,
                                UpsampleParams, AttentionParams, AttentionGradient, LinearSteps,
                                SliceRange, DimOrder, Shifts, Repeats, PadParams, Diagonal>;

}  // namespace wick
