#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wick/backend/backend.h"
#include "wick/base/export.h"
#include "wick/op/op.h"
#include "wick/tensor/index_ops.h"
#include "wick/tensor/random.h"
#include "wick/tensor/recurrent_ops.h"
#include "wick/tensor/shape_ops.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Functions over tensors. Each accepts any layout. The tensors of one call must share dtype and
// device unless stated otherwise; wick doesn't promote dtypes. Errors are wick::Error. ops.def
// names the numeric class of each op; docs/design/numerics.md defines the classes.

// Each comment lists what the function computes, shapes, dtypes, numeric class and errors. All
// functions throw if an operand has a dtype that the row doesn't list, or if dtypes or devices
// differ.

/// Elementwise functions y = f(x): neg abs sqr sqrt …, one function for each row of ops.def. Any
/// shape, kept. The row's dtypes, kept. Class exact.
#define WICK_UNARY(name, ...) WICK_API Tensor name(const Tensor& x);
/// Elementwise predicates: isnan isinf logical_not to_bool. Any shape, kept. The row's dtypes →
/// bool. Class exact.
#define WICK_TEST(name, ...) WICK_API Tensor name(const Tensor& x);
/// Elementwise functions y = f(a, b): add sub mul div maximum minimum …. Shapes broadcast. The
/// row's dtypes, kept. Class exact. Errors: shapes don't broadcast; an integer is divided by zero.
#define WICK_BINARY(name, ...) WICK_API Tensor name(const Tensor& a, const Tensor& b);
/// Elementwise comparisons: eq ne lt le gt ge logical_and …. Shapes broadcast. All ten real dtypes
/// and bool → bool. Class exact. Errors: shapes don't broadcast.
#define WICK_COMPARE(name, ...) WICK_API Tensor name(const Tensor& a, const Tensor& b);
/// Reductions over dims (all dims if none are given): sum prod mean max min. The dims are removed,
/// or stay as size 1 with keepdim. The row's dtypes, kept; sum and prod of bool give i64. Class
/// tree for sum, prod and mean, exact for max and min. Errors: a dim is out of range or given
/// twice; max or min of no elements.
#define WICK_REDUCE(name, ...)                                                                 \
  WICK_API Tensor name(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false); \
  inline Tensor name(const Tensor& x, int dim, bool keepdim = false) {                         \
    return name(x, std::span<const int>(&dim, 1), keepdim);                                    \
  }
/// argmax and argmin over dims (all dims if none are given): the row-major index among the reduced
/// elements. The dims are removed, or stay as size 1 with keepdim. All ten real dtypes and bool →
/// u32. Class exact. Errors: a dim is out of range or given twice; there are no elements, or more
/// than u32 can count.
#define WICK_ARG(name, ...)                                                                    \
  WICK_API Tensor name(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false); \
  inline Tensor name(const Tensor& x, int dim, bool keepdim = false) {                         \
    return name(x, std::span<const int>(&dim, 1), keepdim);                                    \
  }
#include "wick/op/ops.def"

/// Operators for the functions above.
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
// operator== and != aren't defined, because C++ code expects them to return bool; use eq and ne.
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }

/// Operators with a number on either side. The number is converted to the tensor's dtype and
/// broadcast; bits and dtype are those of the function with a tensor of that number. Errors: the
/// tensor has an integer dtype and the number has a fraction or is out of range.
#define WICK_OPERATOR(sign)                                      \
  WICK_API Tensor operator sign(const Tensor& x, Scalar number); \
  WICK_API Tensor operator sign(Scalar number, const Tensor& x);
WICK_OPERATOR(+)
WICK_OPERATOR(-)
WICK_OPERATOR(*)
WICK_OPERATOR(/)
WICK_OPERATOR(<)
WICK_OPERATOR(<=)
WICK_OPERATOR(>)
WICK_OPERATOR(>=)
#undef WICK_OPERATOR
inline Tensor& operator+=(Tensor& x, const Tensor& y) { return x = x + y; }
inline Tensor& operator-=(Tensor& x, const Tensor& y) { return x = x - y; }
inline Tensor& operator*=(Tensor& x, const Tensor& y) { return x = x * y; }
inline Tensor& operator/=(Tensor& x, const Tensor& y) { return x = x / y; }
inline Tensor& operator+=(Tensor& x, Scalar number) { return x = x + number; }
inline Tensor& operator-=(Tensor& x, Scalar number) { return x = x - number; }
inline Tensor& operator*=(Tensor& x, Scalar number) { return x = x * number; }
inline Tensor& operator/=(Tensor& x, Scalar number) { return x = x / number; }

/// Converts the elements to another dtype. Any shape, kept. Any real dtype or bool to any other;
/// float to integer saturates and converts NaN to 0. Class exact. Errors: a block dtype.
WICK_API Tensor cast(const Tensor& x, DType dtype);
/// x * mul + add; the product and the sum are each rounded. Any shape, kept. All ten real dtypes,
/// kept; integers compute in their dtype. Class exact.
WICK_API Tensor affine(const Tensor& x, Scalar mul, Scalar add = 0);
/// min(max(x, low), high). Any shape, kept. All ten real dtypes, kept; NaN stays NaN. For integers,
/// the bounds may have fractions or lie outside the dtype's range. Class exact. Errors: a bound for
/// integers is NaN.
WICK_API Tensor clamp(const Tensor& x, Scalar low, Scalar high);
/// x to the power of a number: pow(x, exponent). Any shape, kept. Floats, kept. Class exact.
WICK_API Tensor powf(const Tensor& x, Scalar exponent);
/// x if x is positive, else alpha · (exp(x) − 1). Any shape, kept. Floats, kept. Class exact.
/// Source: Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units",
/// 2015.
WICK_API Tensor elu(const Tensor& x, Scalar alpha = 1);
/// Selects a where the condition is non-zero, else b. Shapes broadcast. condition is bool, u8, u32
/// or i64; a and b have a real dtype or bool, kept. Class exact. Errors: shapes don't broadcast;
/// the condition has another dtype.
WICK_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
/// Replaces the elements of x where the mask is non-zero by a number, converted to x's dtype. mask
/// broadcasts to x's shape, which is kept. mask is bool, u8, u32 or i64; x has a real dtype or
/// bool, kept. Class exact. Errors: the mask doesn't broadcast to x; the mask has another dtype.
WICK_API Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
/// Concatenates tensors along an existing dim; all other sizes must be equal. All ten real dtypes
/// and bool, kept. Class exact. Errors: no tensors; other sizes differ; the dim is out of range.
WICK_API Tensor cat(std::span<const Tensor> tensors, int dim = 0);
/// Concatenates tensors of one shape along a new dim. All ten real dtypes and bool, kept. Class
/// exact. Errors: no tensors; shapes differ; the dim is out of range; the tensors have rank 8.
WICK_API Tensor stack(std::span<const Tensor> tensors, int dim = 0);
/// Writes `source` to target[.., start : start + size, ..] along `dim` in place; all other sizes
/// must be equal. Real dtypes; source is converted to target's dtype. Class exact. Errors: sizes
/// don't fit; target is mapped; target's storage is shared and target isn't a leaf; a gradient
/// would be needed.
WICK_API void slice_set(Tensor& target, const Tensor& source, int dim, int64_t start);
/// Writes `source`, which broadcasts, to the elements of `where`, a layout made from target's by
/// views: `slice_set(x, y, x.layout().narrow(1, 2, 3))`. Dtypes, class and errors are those of the
/// overload above. source may share target's storage; it is then copied before the write.
WICK_API void slice_set(Tensor& target, const Tensor& source, const Layout& where);
/// Selects slices of x along `dim` by ids of any shape, which replaces the dim; the largest value
/// of an unsigned id dtype selects zeros. ids are u8, u32, i32 or i64. x has a real dtype, which is
/// kept, or a block dtype (rank 2, dim 0), which is dequantised to `dtype`. Class exact. Errors: an
/// id is out of range; the dim is out of range.
WICK_API Tensor index_select(const Tensor& x, const Tensor& ids, int dim = 0,
                             DType dtype = DType::f32);

/// Matrix multiplication: a [.., m, k] @ b [.., k, n] → [.., m, n]; batch dims broadcast. All ten
/// real dtypes, kept; narrow floats accumulate in f32. Class bound; integers are exact and wrap.
/// Errors: the rank is below 2; inner dimensions differ; batch dims don't broadcast.
WICK_API Tensor matmul(const Tensor& a, const Tensor& b);

/// A weight matrix [n, k], packed into the layout that the device's gemm kernels read. f32, f16,
/// bf16 or any block dtype.
class WICK_API Weight {
 public:
  Weight() = default;
  /// Packs a matrix, or several matrices of one dtype and one k, stacked along n. If `release` is
  /// set, the pages of sources mapped from a file are returned to the system during packing; they
  /// can still be read, slowly. Sources that aren't all mapped are then dropped, and the weight has
  /// no gradient. Errors: no matrix; the rank isn't 2; the dtype isn't supported; dtypes or k
  /// differ; out of memory.
  explicit Weight(const Tensor& matrix, bool release = false)
      : Weight(std::span(&matrix, 1), release) {}
  explicit Weight(std::span<const Tensor> matrices, bool release = false)
      : Weight(matrices, matrices.empty() ? Device() : matrices.front().device(), release) {}
  /// Packs matrices, which may be on any device, for `device`.
  Weight(std::span<const Tensor> matrices, Device device, bool release);

  bool defined() const { return prepared_ != nullptr; }
  DType dtype() const { return prepared().dtype; }
  int64_t n() const { return prepared().n; }
  int64_t k() const { return prepared().k; }
  Device device() const { return device_; }
  /// The most rows of x for which linear gives each row the bits that it has alone on the weight's
  /// device; INT64_MAX for block dtypes. Errors: the weight is undefined.
  int64_t rows_alike() const { return prepared().rows_alike; }
  /// Errors: undefined.
  const PreparedWeight& prepared() const;
  /// Returns the matrix [n, k] on the device, for gradients, from the source matrices that the
  /// weight keeps. Errors: the weight is undefined; dtype isn't f32, f16 or bf16; the source
  /// matrices were dropped.
  Tensor matrix(DType dtype) const;
  /// The source matrices. Float sources may need gradients, which `linear` computes.
  const std::vector<Tensor>& sources() const { return sources_; }
  bool needs_grad() const;

 private:
  std::shared_ptr<const PreparedWeight> prepared_;
  std::vector<Tensor> sources_;
  Device device_;
};

/// x times the transpose of a weight: x [.., k], weight [n, k] → [.., n]. x is f32, f16 or bf16,
/// kept. Class blocked for block dtypes, bound for float weights. Errors: k differs; the weight is
/// undefined.
WICK_API Tensor linear(const Tensor& x, const Weight& weight);

/// Quantises rows to a block dtype by the format's reference rounding. x [.., k], kept; k is a
/// multiple of the block size. f32 → the block dtypes that wick can write. Class exact. Errors:
/// another dtype; k isn't a multiple of the block size.
WICK_API Tensor quantize(const Tensor& x, DType dtype);
/// Dequantises a block dtype. Any shape, kept. Any block dtype → f32, f16 or bf16. Class exact.
/// Errors: another dtype.
WICK_API Tensor dequantize(const Tensor& x, DType dtype = DType::f32);

/// Stride, padding and dilation of conv1d; ConvParams has those of conv2d.
struct ConvParams1d {
  int64_t stride = 1;
  int64_t padding = 0;   ///< zeros at either side
  int64_t dilation = 1;  ///< input elements between adjacent kernel taps
  int64_t groups = 1;
};
struct PoolParams1d {
  int64_t kernel = 1;
  int64_t stride = 0;             ///< 0 stands for the kernel's size
  int64_t padding = 0;            ///< at either side
  bool count_include_pad = true;  ///< avg_pool1d: padding counts as elements that are zero
};

/// 2D convolution (cross-correlation) plus bias. x [b, c, h, w], weight [o, c/groups, kh, kw], bias
/// [o] or undefined → [b, o, oh, ow] with oh = (h + 2·padding - dilation·(kh - 1) - 1) / stride +
/// 1, rounded down. Floats, kept; narrow floats accumulate in f32, and the bias is added to the
/// rounded sum. Class bound. Errors: sizes don't fit; groups doesn't divide c and o; stride,
/// dilation or groups is below 1; padding is negative; the kernel is larger than the padded input.
WICK_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                       const ConvParams& params = {});
/// 1D convolution: x [b, c, l], weight [o, c/groups, k] → [b, o, ol]. Dtypes, class and errors are
/// those of conv2d.
WICK_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                       const ConvParams1d& params = {});
/// Transposed 2D convolution, the gradient of conv2d with respect to its input. x [b, c, h, w],
/// weight [c, o/groups, kh, kw], bias [o] or undefined → [b, o, oh, ow] with oh = (h - 1)·stride -
/// 2·padding + dilation·(kh - 1) + output_padding + 1. Floats, kept; narrow floats accumulate in
/// f32, and the bias is added to the rounded sum. Class bound. Errors: those of conv2d;
/// output_padding is negative, or not below max(stride, dilation); the output is empty.
WICK_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                 const ConvParams& params = {},
                                 std::array<int64_t, 2> output_padding = {0, 0});
/// Transposed 1D convolution: x [b, c, l], weight [c, o/groups, k] → [b, o, ol]. Dtypes, class and
/// errors are those of conv_transpose2d.
WICK_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                 const ConvParams1d& params = {}, int64_t output_padding = 0);
/// The gradient of conv2d with respect to its weight [o, c/groups, kh, kw]; `kernel` is {kh, kw}. x
/// [b, c, h, w]; grad [b, o, oh, ow] has the shape of conv2d's result. Floats, kept. Class bound.
/// Errors: those of conv2d; grad has another shape.
WICK_API Tensor conv2d_weight(const Tensor& x, const Tensor& grad, std::array<int64_t, 2> kernel,
                              const ConvParams& params = {});

/// The largest element of each window; NaN wins, and padding is never chosen. x [b, c, h, w] → [b,
/// c, oh, ow] with oh = (h + 2·padding - kernel) / stride + 1, rounded down. All ten real dtypes,
/// kept. Class exact. Errors: the rank isn't 4; the kernel is below 1; stride or padding is
/// negative; padding is above half the kernel; the kernel is larger than the padded input.
WICK_API Tensor max_pool2d(const Tensor& x, const PoolParams& params);
/// The mean of each window. The sum is divided by kh·kw, or without count_include_pad by the number
/// of elements that aren't padding. Shapes, dtypes and errors are those of max_pool2d; integers
/// divide the exact sum and truncate. Class tree.
WICK_API Tensor avg_pool2d(const Tensor& x, const PoolParams& params);
/// max_pool2d and avg_pool2d in one dimension: x [b, c, l] → [b, c, ol].
WICK_API Tensor max_pool1d(const Tensor& x, const PoolParams1d& params);
WICK_API Tensor avg_pool1d(const Tensor& x, const PoolParams1d& params);
/// The gradient of max_pool2d with respect to x; it goes to the first largest element of each
/// window. `grad` has the shape of the output. Floats, kept. Class tree. Errors: those of
/// max_pool2d; grad has another shape.
WICK_API Tensor max_pool2d_grad(const Tensor& x, const Tensor& grad, const PoolParams& params);
/// The gradient of avg_pool2d with respect to x; each window shares its gradient evenly. Only x's
/// shape is used. Shapes, dtypes, class and errors are those of max_pool2d_grad.
WICK_API Tensor avg_pool2d_grad(const Tensor& x, const Tensor& grad, const PoolParams& params);

/// The result's size along h and w. A non-zero scale factor (outputs per input) replaces the ratio
/// of the sizes in the computation of source positions.
struct UpsampleParams {
  std::array<int64_t, 2> size{};
  std::array<double, 2> scale_factor{};
  bool align_corners = false;  ///< bilinear: the centres of corner elements coincide
};
/// Resizes images x [b, c, h, w] by nearest neighbour: output i takes input floor(i / scale
/// factor), at most the last. All ten real dtypes, kept. Class exact. Errors: the rank isn't 4; a
/// size is below 1; the image is empty; a scale factor isn't a positive number.
WICK_API Tensor upsample_nearest2d(const Tensor& x, const UpsampleParams& params);
/// upsample_nearest2d in one dimension: x [b, c, l] → [b, c, size].
WICK_API Tensor upsample_nearest1d(const Tensor& x, int64_t size, double scale_factor = 0);
/// Resizes images x [b, c, h, w] by bilinear interpolation: output i lies at input position (i +
/// 1/2) / scale factor - 1/2, at least 0, or with align_corners at i · (h - 1) / (oh - 1). Floats,
/// kept. Class exact: the order of operations is fixed. Errors: those of upsample_nearest2d.
WICK_API Tensor upsample_bilinear2d(const Tensor& x, const UpsampleParams& params);
/// The gradients of the two upsamplings with respect to x; only x's shape is used. Floats, kept.
/// Class tree. Errors: those of upsample_nearest2d; grad has another shape.
WICK_API Tensor upsample_nearest2d_grad(const Tensor& x, const Tensor& grad,
                                        const UpsampleParams& params);
WICK_API Tensor upsample_bilinear2d_grad(const Tensor& x, const Tensor& grad,
                                         const UpsampleParams& params);

/// exp(x - max) / sum(exp(x - max)) along a dim. Any shape, kept. Floats, kept. Class tree. Errors:
/// the dim is out of range.
WICK_API Tensor softmax(const Tensor& x, int dim = -1);
/// log(softmax(x)), computed without the softmax. Shapes, dtypes, class and errors are those of
/// softmax.
WICK_API Tensor log_softmax(const Tensor& x, int dim = -1);
/// x / sqrt(mean(x²) + eps) · weight over the last dim. x [.., d], kept; weight [d]. Floats, kept;
/// weight has x's dtype or f32. Class tree. Errors: the weight has another size. Source: Zhang and
/// Sennrich, "Root Mean Square Layer Normalization", 2019.
WICK_API Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps = 1e-5f);
/// (x − mean) / sqrt(variance + eps) · weight + bias over the last dim. x [.., d], kept; weight and
/// bias [d]; an undefined weight is 1, an undefined bias 0. Floats, kept; weight and bias have x's
/// dtype or f32. Class tree. Errors: weight or bias has another size. Source: Ba et al., "Layer
/// Normalization", 2016.
WICK_API Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                           float eps = 1e-5f);
/// Normalises each group of channels, with all elements of these channels, to mean 0 and variance
/// 1, then applies weight and bias per channel. x [b, c, ..], kept; weight and bias [c], or
/// undefined. Floats, kept; weight and bias have x's dtype or f32. Class tree. Errors: `groups`
/// doesn't divide the channels; weight or bias has another size. Source: Wu and He, "Group
/// Normalization", 2018.
WICK_API Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight = {},
                           const Tensor& bias = {}, float eps = 1e-5f);
/// (x − mean) · (weight / sqrt(variance + eps)) + bias per channel. x [b, c, ..], kept; mean,
/// variance, weight and bias [c]; an undefined weight is 1, an undefined bias 0. Floats, kept; the
/// vectors have x's dtype or f32. Class exact. Errors: a vector has another size. Source: Ioffe and
/// Szegedy, "Batch Normalization", 2015.
WICK_API Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance,
                           const Tensor& weight = {}, const Tensor& bias = {}, float eps = 1e-5f);
/// The result of batch_norm_of_batch. mean and variance are rounded to x's dtype; y is computed
/// from the values before this rounding.
struct [[nodiscard]] BatchNorm {
  Tensor y, mean, variance;
};
WICK_API BatchNorm batch_norm_of_batch(const Tensor& x, const Tensor& weight = {},
                                       const Tensor& bias = {}, float eps = 1e-5f);
/// The gradient of softmax along a dim with respect to its operand: y · (grad − Σ grad · y). y is
/// the result of softmax. Any shape, kept; grad has y's shape. Floats, kept. Class tree. Errors:
/// grad doesn't fit y; the dim is out of range.
WICK_API Tensor softmax_grad(const Tensor& y, const Tensor& grad, int dim = -1);
/// The gradient of log_softmax: grad − exp(y) · Σ grad. Shapes, dtypes, class and errors are those
/// of softmax_grad.
WICK_API Tensor log_softmax_grad(const Tensor& y, const Tensor& grad, int dim = -1);
/// The gradient of a norm with respect to x, and the statistics of x's rows.
struct [[nodiscard]] NormGradient {
  Tensor x;           ///< of x's shape and dtype
  Tensor statistics;  ///< means and 1 / sqrt(variance + eps) in f32, or f64 for f64
};
/// The gradient of a norm with respect to x: of group_norm if `groups` isn't 0, else of layer_norm,
/// or of rms_norm if not `centred` (means are 0, the variance is mean(x²)). x [.., d], or with
/// groups [b, c, ..]; grad has x's shape; weight [d] or [c], or undefined. Statistics: [2, ..]
/// without x's last dim, or with groups [2, b, c]. Floats, kept; weight has x's dtype or f32. Class
/// tree. Errors: grad or weight doesn't fit x; `groups` doesn't divide the channels.
WICK_API NormGradient norm_grad(const Tensor& x, const Tensor& grad, const Tensor& weight = {},
                                int64_t groups = 0, bool centred = true, float eps = 1e-5f);
/// The gradients of a norm's weight and bias: Σ grad · ((x − mean) · scale) and Σ grad over dims;
/// all dims if none is given. Without a mean the terms are (grad · x) · scale. x of any shape; grad
/// has x's shape; mean and scale broadcast to x. The result is [2, ..] without the dims. Floats;
/// mean, scale and the result are f32, or f64 for f64. Class tree. Errors: an operand doesn't fit
/// x; a dim is out of range or given twice.
WICK_API Tensor norm_sums(const Tensor& x, const Tensor& grad, const Tensor& scale,
                          std::span<const int> dims, const Tensor& mean = {});
/// Rotary embedding of the first r <= d elements of each head, in pairs (i, i + r/2). x [.., t, d],
/// kept; cos and sin [t, r/2], or [b, t, r/2] for x [b, .., t, d], or [.., t, r/2] that broadcast.
/// Floats, kept; cos and sin f32. Class exact. Errors: sizes don't fit. Source: Su et al.,
/// "RoFormer", 2021.
WICK_API Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin);
/// rope with pairs (2i, 2i + 1). Shapes, dtypes, class and errors are those of rope.
WICK_API Tensor rope_interleaved(const Tensor& x, const Tensor& cos, const Tensor& sin);
/// Scale, soft cap and visibility of keys in attention.
struct AttentionOptions {
  std::optional<float> scale = {};  ///< factor of q·k; 1 / sqrt(d) if not set
  bool causal = false;              ///< query i sees only keys j <= i + (keys - queries)
  int64_t window = 0;               ///< > 0: query i sees only j > i + (keys - queries) - window
  float soft_cap = 0.0f;            ///< > 0: score = cap * tanh(score / cap), before masks
};
/// softmax(scale · q kᵀ + bias) v with grouped heads. q [b, h, m, d], k [b, g, n, d], v [b, g, n,
/// e] → [b, h, m, e]; h is a multiple of g. mask broadcasts to [b, h, m, n]: an f32, f16 or
/// bf16 mask is added, a bool or u8 mask hides the keys where it is 0. slopes [h] f32 add slope ·
/// (j − i − (n − m)) to the scores (ALiBi). sinks [h] f32 are a score without a key for each head:
/// exp(sink) is added to the sum of exponentials of its queries; a sink of −inf adds nothing. mask,
/// slopes and sinks may be undefined. A query that sees no key gives 0. f32, f16 or bf16: q's
/// dtype, kept; k and v share a dtype. Class tree; the gradients are of class bound. Errors: sizes
/// don't fit. Source: Vaswani et al., "Attention Is All You Need", 2017; Press et al., "Train
/// Short, Test Long", 2022 (ALiBi); Xiao et al., "Efficient Streaming Language Models with
/// Attention Sinks", 2024.
WICK_API Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionOptions& options = {}, const Tensor& mask = {},
                          const Tensor& slopes = {}, const Tensor& sinks = {});
/// Attention of sequences concatenated along the first dim. q [t, h, d], k [s, g, d], v [s, g, e] →
/// [t, h, e]. Sequence i has the queries [query_starts[i], query_starts[i + 1]) and the keys
/// [key_starts[i], key_starts[i + 1]). slopes and sinks as in attention. Dtypes, class and errors
/// are those of attention; starts that don't ascend from 0 to the number of rows are an error.
WICK_API Tensor attention_of_lengths(const Tensor& q, const Tensor& k, const Tensor& v,
                                     std::span<const int64_t> query_starts,
                                     std::span<const int64_t> key_starts,
                                     const AttentionOptions& options = {},
                                     const Tensor& slopes = {}, const Tensor& sinks = {});
/// Attention over keys and values in pages, which are read in place. q [b, h, m, d], key_pages [p,
/// g, size, d], value_pages [p, g, size, e]; tables [b, n] of an id dtype hold the page numbers of
/// each sequence, lengths u32 [b] the number of its keys → [b, h, m, e]. slopes and sinks as in
/// attention. Dtypes, class and errors are those of attention; it is an error if a length exceeds
/// the pages in its table, or if a page number is out of range (reported by a GPU at the next
/// synchronisation). If a gradient is needed, the pages are gathered first. Pages may also be u8
/// tensors of q8_0 or q4_0 blocks (BlockPages); the result then is that of f16 pages with the
/// dequantised values, and has no gradient. Source: Kwon et al., "PagedAttention", 2023.
WICK_API Tensor attention_of_pages(const Tensor& q, const Tensor& key_pages,
                                   const Tensor& value_pages, const Tensor& tables,
                                   const Tensor& lengths, const AttentionOptions& options = {},
                                   const Tensor& slopes = {}, const Tensor& sinks = {});
/// Writes rows [t, g, d] to pages [p, g, size, d] in place, for attention_of_pages. Row i belongs
/// to sequence i / (t / b) and is stored at its position positions[i]; tables u32 [b, n] hold the
/// page numbers of each sequence; positions u32 [t] ascend by one within a sequence. f32, f16 and
/// bf16, converted to the pages' dtype, or quantised if these are pages of blocks (BlockPages).
/// Class exact. Errors: sizes don't fit; the pages are mapped;
/// a gradient would be needed; a position has no page or doesn't follow the previous one; a page
/// number is out of range; two sequences write to one page (a GPU reports the last three at the
/// next synchronisation).
WICK_API void store_in_pages(const Tensor& pages, const Tensor& rows, const Tensor& tables,
                             const Tensor& positions);

// Functions composed of the functions above; their gradients follow from those.

/// The variance over dims (all dims if none are given): sum((x − mean)²) / (n − correction). Shapes
/// are those of sum. Floats, kept; narrow floats compute in f32 and are rounded once. Class tree.
/// Errors: those of sum.
WICK_API Tensor var(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false,
                    int64_t correction = 1);
/// log(sum(exp(x))) over dims (all dims if none are given), computed without overflow. Shapes are
/// those of sum. Floats, kept; narrow floats compute in f32 and are rounded once. Class tree.
/// Errors: those of max.
WICK_API Tensor logsumexp(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false);
/// Whether any element, or all elements, are non-zero over dims; NaN counts as non-zero. Shapes are
/// those of sum. All ten real dtypes and bool → bool. Class exact. Of no elements, any gives false
/// and all gives true.
WICK_API Tensor any(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false);
WICK_API Tensor all(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false);
/// Sums products of elements by an equation in Einstein notation, such as "bij,bjk->bik". Each
/// letter names a dim; letters that are missing from the result are summed. All ten real dtypes,
/// kept. Class bound. Errors: the equation can't be parsed or doesn't fit the operands; a letter
/// occurs twice in one operand.
WICK_API Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
/// rope of x [.., t, h, d], in which heads follow tokens; the shape is kept. Dtypes, class and
/// errors are those of rope.
WICK_API Tensor rope_of_tokens(const Tensor& x, const Tensor& cos, const Tensor& sin,
                               bool interleaved = false);
/// linear with a weight chosen for each row (mixture of experts). x [t, k], chosen u32 [t, n] → [t,
/// n, width]: row i of x times weight chosen[i, j]. Dtypes and class are those of linear. Each row
/// has the bits that linear gives it alone, except on GPUs with many rows and f16 or bf16 weights:
/// there all rows count as one sequence (see ExpertRows). Errors: those of linear; the weights'
/// sizes or devices differ; an index is out of range (on a GPU the error is raised at the next
/// synchronisation, and the row is zeros). The host reads `chosen` if a gradient is needed outside
/// of compiled functions, or if the weights' dtypes differ; each row then has the bits that it has
/// alone.
WICK_API Tensor grouped_linear(const Tensor& x, std::span<const Weight> experts,
                               const Tensor& chosen);

}  // namespace wick
