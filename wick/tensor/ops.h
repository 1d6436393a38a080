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
#include "wick/tensor/shape_ops.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Functions over tensors. Every one takes every layout; two tensors of one call share dtype and
// device unless said otherwise, since nothing is promoted silently. Errors follow the grammar of
// wick::Error. Numeric classes stand in ops.def and are defined in docs/design/numerics.md.

// A comment says: what it computes; shapes; dtypes; numeric class; errors beyond a dtype that the
// row doesn't name and operands of unlike dtype or device.

/// y = f(x): neg abs sqr sqrt …, one function a row of ops.def. Any shape, kept. The row's dtypes,
/// kept. Class exact.
#define WICK_UNARY(name, ...) WICK_API Tensor name(const Tensor& x);
/// A property of each element: isnan isinf logical_not to_bool. Any shape, kept. The row's dtypes →
/// bool. Class exact.
#define WICK_TEST(name, ...) WICK_API Tensor name(const Tensor& x);
/// y = f(a, b): add sub mul div maximum minimum …. Shapes broadcast to one. The row's dtypes, kept.
/// Class exact. Errors: shapes don't broadcast, an integer divided by zero.
#define WICK_BINARY(name, ...) WICK_API Tensor name(const Tensor& a, const Tensor& b);
/// Elementwise comparison: eq ne lt le gt ge logical_and …. Shapes broadcast to one. All ten real
/// dtypes and bool → bool. Class exact. Errors: shapes don't broadcast.
#define WICK_COMPARE(name, ...) WICK_API Tensor name(const Tensor& a, const Tensor& b);
/// sum prod mean max min over a set of dims (none named: all), which vanish, or stay as size 1 with
/// keepdim. The row's dtypes, kept; sum and prod of bool give i64. Classes: sum, prod and mean
/// tree, max and min exact. Errors: a dim out of range or named twice, max or min of nothing.
#define WICK_REDUCE(name, ...)                                                                 \
  WICK_API Tensor name(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false); \
  inline Tensor name(const Tensor& x, int dim, bool keepdim = false) {                         \
    return name(x, std::span<const int>(&dim, 1), keepdim);                                    \
  }
/// argmax argmin over a set of dims (none named: all), which vanish, or stay as size 1 with
/// keepdim: the place among their elements, counted in row-major order. All ten real dtypes and
/// bool → u32.
/// Class exact. Errors: a dim out of range or named twice, the best of nothing, of more than u32
/// counts.
#define WICK_ARG(name, ...)                                                                    \
  WICK_API Tensor name(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false); \
  inline Tensor name(const Tensor& x, int dim, bool keepdim = false) {                         \
    return name(x, std::span<const int>(&dim, 1), keepdim);                                    \
  }
#include "wick/op/ops.def"

/// The functions above by their signs.
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }
// No == and !=, which would have to be yes or no: eq and ne.
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }

/// The functions above with a number at either side. The number is converted to the tensor's dtype
/// and broadcast: bits and dtype are those of the function with a tensor of that number. Errors: a
/// number with a fraction for integers, or one that they can't hold.
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

/// The elements converted. Any shape, kept. Any real dtype to any other; float to integer saturates
/// and makes 0 of NaN. Class exact. Errors: a block dtype.
WICK_API Tensor cast(const Tensor& x, DType dtype);
/// x * mul + add, each step rounded. Any shape, kept. All ten real dtypes, kept; integers compute
/// in the dtype. Class exact.
WICK_API Tensor affine(const Tensor& x, Scalar mul, Scalar add);
/// min(max(x, low), high). Any shape, kept. All ten real dtypes, kept; NaN passes; of integers the
/// bounds may lie outside the dtype, or between two numbers. Class exact. Errors: a NaN bound for
/// integers.
WICK_API Tensor clamp(const Tensor& x, Scalar low, Scalar high);
/// x to the power of a number: pow(x, exponent). Any shape, kept. Floats, kept. Class exact.
WICK_API Tensor powf(const Tensor& x, Scalar exponent);
/// x where positive, else alpha · (exp(x) − 1). Any shape, kept. Floats, kept. Class exact.
/// Source: Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units",
/// 2015.
WICK_API Tensor elu(const Tensor& x, Scalar alpha = 1);
/// a where the condition is non-zero, else b. Shapes broadcast to one. condition bool u8 u32 i64; a
/// and b of a real dtype or bool, kept. Class exact. Errors: shapes don't broadcast, a condition of
/// another dtype.
WICK_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
/// A number, converted to x's dtype, where the mask is non-zero, else x. mask broadcasts to x's
/// shape, which is kept. mask bool u8 u32 i64; x of a real dtype or bool, kept. Class exact.
/// Errors: shapes that don't fit, a mask of another dtype.
WICK_API Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
/// Tensors joined along an existing dim; all other sizes are equal. All ten real dtypes and bool,
/// kept. Class exact. Errors: no tensors, other sizes differ, the dim is out of range.
WICK_API Tensor cat(std::span<const Tensor> tensors, int dim);
/// Tensors of one shape joined along a new dim. All ten real dtypes, kept. Class exact. Errors: no
/// tensors, shapes differ, the dim is out of range, rank 8.
WICK_API Tensor stack(std::span<const Tensor> tensors, int dim);
/// Writes `source` over target[.., start : start + size, ..] along `dim`, the way a KV cache grows;
/// all other sizes are equal. Real dtypes; source is converted to target's. Class exact. Errors:
/// sizes that don't fit, target is mapped, or its storage is shared and it is no leaf; a gradient
/// is wanted.
WICK_API void slice_set(Tensor& target, const Tensor& source, int dim, int64_t start);
/// Writes `source`, which broadcasts, over the elements of `where`, a layout made from target's by
/// views: `slice_set(x, y, x.layout().narrow(1, 2, 3))`. dtypes, class and errors of slice_set;
/// source may share target's storage, and is then read before anything is written.
WICK_API void slice_set(Tensor& target, const Tensor& source, const Layout& where);
/// Slices of x along `dim` named by ids of any shape, which replaces the dim; the largest value of
/// an unsigned id type gives zeros. ids u8 u32 i32 i64; x of a real dtype, kept, or of a block
/// dtype (rank 2, dim 0), whose rows come out as `dtype`. Class exact. Errors: any other id out of
/// range, the dim is out of range.
WICK_API Tensor index_select(const Tensor& x, const Tensor& ids, int dim, DType dtype = DType::f32);

/// The matrix product. a [.., m, k] @ b [.., k, n] → [.., m, n]; batch dims broadcast. All ten real
/// dtypes, kept; narrow floats accumulate in f32. Class bound; integers are exact and wrap. Errors:
/// a rank below 2, inner dimensions differ, batches don't broadcast.
WICK_API Tensor matmul(const Tensor& a, const Tensor& b);

/// A weight matrix [n, k] in the form its device multiplies fastest. f32 f16 bf16
/// or any block dtype.
class WICK_API Weight {
 public:
  Weight() = default;
  /// Packs a matrix, or several of one dtype and k stacked along n. With `release` the pages of
  /// sources that are mapped from a file are given back to the system while packing: they can
  /// still be read, slowly. Sources of which one isn't mapped aren't kept then, and there is no
  /// gradient through the weight. Errors: no matrix, a rank other than 2, another dtype, dtypes or
  /// k that differ, no memory.
  explicit Weight(const Tensor& matrix, bool release = false)
      : Weight(std::span(&matrix, 1), release) {}
  explicit Weight(std::span<const Tensor> matrices, bool release = false)
      : Weight(matrices, matrices.empty() ? Device() : matrices.front().device(), release) {}
  /// The same on a device, wherever the matrices are.
  Weight(std::span<const Tensor> matrices, Device device, bool release);

  bool defined() const { return prepared_ != nullptr; }
  DType dtype() const { return prepared().dtype; }
  int64_t n() const { return prepared().n; }
  int64_t k() const { return prepared().k; }
  Device device() const { return device_; }
  /// Most rows of x whose product gives each row the bits that it has alone, on the weight's
  /// device: INT64_MAX for block dtypes. Errors: undefined.
  int64_t rows_alike() const { return prepared().rows_alike; }
  /// Errors: undefined.
  const PreparedWeight& prepared() const;
  /// The matrix [n, k] itself on the device, for gradients: from the matrices it was made of, which
  /// it keeps. Errors: undefined, a dtype that isn't f32, f16 or bf16, its matrices weren't kept.
  Tensor matrix(DType dtype) const;
  /// The matrices that it was made of. Floats among them may need gradients, which `linear` gives.
  const std::vector<Tensor>& sources() const { return sources_; }
  bool needs_grad() const;

 private:
  std::shared_ptr<const PreparedWeight> prepared_;
  std::vector<Tensor> sources_;
  Device device_;
};

/// x times the transpose of a weight. x [.., k], weight [n, k] → [.., n]. x f32 f16 bf16, kept.
/// Class blocked for block dtypes, bound for float weights. Errors: k differs, an undefined weight.
WICK_API Tensor linear(const Tensor& x, const Weight& weight);

/// Rounded to a weight dtype by the format's reference. [.., k], kept, k a multiple of the block.
/// f32 → the block dtypes that are written. Class exact. Errors: another dtype, k no multiple of
/// the block.
WICK_API Tensor quantize(const Tensor& x, DType dtype);
/// The values that blocks stand for. Any shape, kept. Any block dtype →
/// f32 f16 bf16. Class exact.
/// Errors: another dtype.
WICK_API Tensor dequantize(const Tensor& x, DType dtype = DType::f32);

/// The kernel's movement in one dimension; ConvParams and PoolParams are of two.
struct ConvParams1d {
  int64_t stride = 1;
  int64_t padding = 0;   ///< zeros at either side
  int64_t dilation = 1;  ///< inputs from one tap of the kernel to the next
  int64_t groups = 1;
};
struct PoolParams1d {
  int64_t kernel = 1;
  int64_t stride = 0;             ///< 0: the kernel's size
  int64_t padding = 0;            ///< at either side
  bool count_include_pad = true;  ///< avg: padding counts as elements that are 0
};

/// Kernels slid over an image, each output the sum of products of the kernel with what lies under
/// it (a cross-correlation), plus the bias. x [b, c, h, w], weight [o, c/groups, kh, kw], bias [o]
/// or undefined → [b, o, oh, ow] with oh = (h + 2·padding - dilation·(kh - 1) - 1) / stride + 1,
/// rounded down. Floats, kept; narrow ones accumulate in f32, and the bias is added to the rounded
/// sum. Class bound. Errors: sizes that don't fit, c or o no multiple of groups, a stride, dilation
/// or group count below 1, negative padding, a kernel larger than the padded input.
WICK_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                       const ConvParams& params = {});
/// conv2d in one dimension: x [b, c, l], weight [o, c/groups, k] → [b, o, ol]. Dtypes, class and
/// errors of conv2d.
WICK_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                       const ConvParams1d& params = {});
/// The gradient of conv2d's x as a function of its own: every element of x spreads its kernel over
/// the output, stride apart. x [b, c, h, w], weight [c, o/groups, kh, kw], bias [o] or undefined →
/// [b, o, oh, ow] with oh = (h - 1)·stride - 2·padding + dilation·(kh - 1) + output_padding + 1.
/// Floats, kept; as conv2d. Class bound. Errors: those of conv2d; output_padding negative, or not
/// below the larger of stride and dilation; nothing left of the output.
WICK_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                 const ConvParams& params = {},
                                 std::array<int64_t, 2> output_padding = {0, 0});
/// conv_transpose2d in one dimension: x [b, c, l], weight [c, o/groups, k] → [b, o, ol]. Dtypes,
/// class and errors of conv_transpose2d.
WICK_API Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                 const ConvParams1d& params = {}, int64_t output_padding = 0);
/// The gradient of conv2d's weight [o, c/groups, kh, kw], whose last sizes are `kernel`. x
/// [b, c, h, w], grad [b, o, oh, ow] as conv2d gives it. Floats, kept. Class bound. Errors: those
/// of conv2d, a grad of another shape.
WICK_API Tensor conv2d_weight(const Tensor& x, const Tensor& grad, std::array<int64_t, 2> kernel,
                              const ConvParams& params = {});

/// The largest element of each window; NaN wins, padding never does. x [b, c, h, w] →
/// [b, c, oh, ow] with oh = (h + 2·padding - kernel) / stride + 1, rounded down. All ten real
/// dtypes, kept. Class exact. Errors: another rank, a kernel below 1, a negative stride or padding,
/// padding above half the kernel, a kernel larger than the padded input.
WICK_API Tensor max_pool2d(const Tensor& x, const PoolParams& params);
/// The mean of each window, of kh·kw elements, or with count_include_pad off of those that aren't
/// padding. Shapes, dtypes and errors of max_pool2d; integers: the exact sum divided, truncated.
/// Class tree.
WICK_API Tensor avg_pool2d(const Tensor& x, const PoolParams& params);
/// The same in one dimension: x [b, c, l] → [b, c, ol].
WICK_API Tensor max_pool1d(const Tensor& x, const PoolParams1d& params);
WICK_API Tensor avg_pool1d(const Tensor& x, const PoolParams1d& params);
/// The gradient of max_pool2d's x by that of its output: goes to the first largest element of each
/// window. Floats, kept. Class tree. Errors: those of max_pool2d, a grad of another shape.
WICK_API Tensor max_pool2d_grad(const Tensor& x, const Tensor& grad, const PoolParams& params);
/// The gradient of avg_pool2d's x, so, too: shared evenly. x gives the shape alone.
WICK_API Tensor avg_pool2d_grad(const Tensor& x, const Tensor& grad, const PoolParams& params);

/// How an image's size changes: to `size` along h and w. A scale factor (outputs for each input)
/// that isn't 0 replaces the sizes' ratio where places are computed.
struct UpsampleParams {
  std::array<int64_t, 2> size{};
  std::array<double, 2> scale_factor{};
  bool align_corners = false;  ///< bilinear: the corners of both images lie on each other
};
/// x [b, c, h, w] at another size, larger or smaller: output i takes input floor(i / scale factor),
/// at most the last. All ten real dtypes, kept. Class exact. Errors: another rank, a size below 1,
/// an empty image, a scale factor that isn't a positive number.
WICK_API Tensor upsample_nearest2d(const Tensor& x, const UpsampleParams& params);
/// The same in one dimension: x [b, c, l] → [b, c, size].
WICK_API Tensor upsample_nearest1d(const Tensor& x, int64_t size, double scale_factor = 0);
/// x [b, c, h, w] at another size, interpolated between the four nearest elements: output i lies at
/// (i + 1/2) / scale factor - 1/2, at least 0, or with align_corners at i · (h - 1) / (oh - 1).
/// Floats, kept. Class exact: the order is written. Errors: those of upsample_nearest2d.
WICK_API Tensor upsample_bilinear2d(const Tensor& x, const UpsampleParams& params);
/// The gradients of both by that of the output; x gives the shape alone. Floats, kept. Class tree.
/// Errors: those of upsample_nearest2d, a grad of another shape.
WICK_API Tensor upsample_nearest2d_grad(const Tensor& x, const Tensor& grad,
                                        const UpsampleParams& params);
WICK_API Tensor upsample_bilinear2d_grad(const Tensor& x, const Tensor& grad,
                                         const UpsampleParams& params);

/// exp(x - max) / sum along a dim. Any shape, kept. Floats, kept. Class tree. Errors: the dim is
/// out of range.
WICK_API Tensor softmax(const Tensor& x, int dim);
/// log(softmax(x)), computed without forming it. Shapes, dtypes, class and errors of softmax.
WICK_API Tensor log_softmax(const Tensor& x, int dim);
/// x / sqrt(mean(x²) + eps) · weight over the last dim. x [.., d], kept; weight [d]. Floats, kept;
/// weight of x's dtype or f32. Class tree. Errors: the weight has another size.
/// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
WICK_API Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps);
/// (x − mean) / sqrt(variance + eps) · weight + bias over the last dim. x [.., d], kept; weight and
/// bias [d], or undefined: 1 and 0. Floats, kept; weight and bias of x's dtype or f32. Class tree.
/// Errors: a weight or bias of another size. Source: Ba et al., "Layer Normalization", 2016.
WICK_API Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                           float eps = 1e-5f);
/// layer_norm of each group of channels with all that lies under them, weight and bias by channel.
/// x [b, c, ..], kept; weight and bias [c], or undefined. Floats, kept; weight and bias of x's
/// dtype or f32. Class tree. Errors: channels that don't divide, other sizes. Source: Wu and He,
/// "Group Normalization", 2018.
WICK_API Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight = {},
                           const Tensor& bias = {}, float eps = 1e-5f);
/// (x − mean) · (weight / sqrt(variance + eps)) + bias by channel. x [b, c, ..], kept; mean,
/// variance, weight and bias [c], the last two may be undefined: 1 and 0. Floats, kept; the vectors
/// of x's dtype or f32. Class exact. Errors: other sizes. Source: Ioffe and Szegedy, "Batch
/// Normalization", 2015.
WICK_API Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance,
                           const Tensor& weight = {}, const Tensor& bias = {}, float eps = 1e-5f);
/// The same with mean and variance (without correction) of the batch itself, which come along:
/// rounded to x's dtype, where y is made of what they were before.
struct BatchNorm {
  Tensor y, mean, variance;
};
WICK_API BatchNorm batch_norm_of_batch(const Tensor& x, const Tensor& weight = {},
                                       const Tensor& bias = {}, float eps = 1e-5f);
/// Rotary embedding of r <= d elements in pairs (i, i + r/2). x [.., t, d], kept; cos and sin
/// [t, r/2], or [b, t, r/2] for x [b, .., t, d], or [.., t, r/2] that broadcast. Floats, kept; cos
/// and sin f32. Class exact. Errors: sizes that don't fit. Source: Su et al., "RoFormer", 2021.
WICK_API Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin);
/// The same with pairs (2i, 2i + 1). Shapes, dtypes, class and errors of rope.
WICK_API Tensor rope_interleaved(const Tensor& x, const Tensor& cos, const Tensor& sin);
/// Which keys a query sees in attention, and how scores are shaped.
struct AttentionOptions {
  std::optional<float> scale = {};  ///< times q·k; none: 1 / sqrt(d)
  bool causal = false;              ///< query i sees keys j <= i + (keys - queries)
  int64_t window = 0;               ///< > 0: and j > i + (keys - queries) - window
  float soft_cap = 0.0f;            ///< > 0: score = cap * tanh(score / cap), before masks
};
/// softmax(scale · q kᵀ + bias) v with grouped heads. q [b, h, m, d], k [b, g, n, d], v [b, g, n,
/// e] → [b, h, m, e]; h is a multiple of g. mask broadcasts to [b, h, m, n]: f32 is added, where
/// bool or u8 is 0 a key isn't seen; slopes [h] f32 times (j − i − (n − m)) are added (ALiBi);
/// either may be undefined. A query that sees no key gives 0. f32 f16 bf16: q's dtype, kept; k and
/// v share one. Class tree. Errors: sizes that don't fit. Source: Vaswani et al., "Attention Is All
/// You Need", 2017; Press et al., "Train Short, Test Long", 2022 (ALiBi).
WICK_API Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionOptions& options = {}, const Tensor& mask = {},
                          const Tensor& slopes = {});
/// Attention of sequences that lie one behind another. q [t, h, d], k [s, g, d], v [s, g, e] →
/// [t, h, e]; sequence i has the queries [query_starts[i], query_starts[i + 1]) and the keys of
/// key_starts; slopes as in attention. dtypes, class and errors of attention; starts that don't
/// rise from 0 to the number of rows.
WICK_API Tensor attention_of_lengths(const Tensor& q, const Tensor& k, const Tensor& v,
                                     std::span<const int64_t> query_starts,
                                     std::span<const int64_t> key_starts,
                                     const AttentionOptions& options = {},
                                     const Tensor& slopes = {});
/// Attention to keys and values in pages, read where they lie. q [b, h, m, d], key_pages [p, g,
/// size, d], value_pages [p, g, size, e], tables of page numbers [b, n] (an id dtype), lengths u32
/// [b]: the keys of each sequence → [b, h, m, e]. dtypes, class and errors of attention; a length
/// that its table has no pages for, a page out of range (on a GPU at the next synchronisation).
/// With gradients the pages are gathered first. Source: Kwon et al., "PagedAttention", 2023.
WICK_API Tensor attention_of_pages(const Tensor& q, const Tensor& key_pages,
                                   const Tensor& value_pages, const Tensor& tables,
                                   const Tensor& lengths, const AttentionOptions& options = {},
                                   const Tensor& slopes = {});
/// Writes rows [t, g, d] to pages [p, g, size, d], where attention_of_pages reads them: row i
/// belongs to sequence i / (t / b) and goes to its position positions[i]; tables u32 [b, n] name
/// the pages of each sequence, positions u32 [t] ascend by one in a sequence. Activations,
/// converted as by cast. Class exact. Errors: sizes that don't fit, pages that are mapped, a
/// gradient is wanted; a position without a page or that doesn't follow the one in front, a page
/// out of range, a page that two sequences write to (on a GPU at the next synchronisation).
WICK_API void store_in_pages(const Tensor& pages, const Tensor& rows, const Tensor& tables,
                             const Tensor& positions);

// Made of the functions above, and so are their gradients.

/// Mean squared deviation over a set of dims (none named: all): sum((x − mean)²) / (n −
/// correction). Shapes of sum. Floats, kept: narrow ones compute in f32, rounded once. Class tree.
/// Errors of sum.
WICK_API Tensor var(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false,
                    int64_t correction = 1);
/// log(sum(exp(x))) over a set of dims, without overflow. Shapes of sum. Floats, kept: narrow ones
/// compute in f32, rounded once. Class tree.
/// Errors of max.
WICK_API Tensor logsumexp(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false);
/// Whether any element, or all of them, aren't 0 (NaN isn't), over a set of dims. Shapes of sum.
/// All ten real dtypes and bool → bool. Class exact. Of nothing: any gives false, all true.
WICK_API Tensor any(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false);
WICK_API Tensor all(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false);
/// Sums of products as an equation says: "bij,bjk->bik". A letter a dim; letters that the result
/// doesn't have are summed. All ten real dtypes, kept. Class bound. Errors: an equation that can't
/// be read or doesn't fit, a letter twice in one operand.
WICK_API Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
/// rope of x [.., t, h, d], heads inside of tokens; kept. dtypes, class and errors of rope.
WICK_API Tensor rope_of_tokens(const Tensor& x, const Tensor& cos, const Tensor& sin,
                               bool interleaved = false);
/// linear with a weight of its own for each row, of several (a mixture of experts). x [t, k],
/// chosen u32 [t, n] → [t, n, width]: row i of x times weight chosen[i, j]. dtypes, class and
/// errors of linear, and the bits that it gives each row alone; weights of several sizes or
/// devices, a weight that isn't there (on a GPU at the next synchronisation; the row is zeros). The
/// host reads `chosen` where a gradient is wanted, of more than 64 rows on a GPU outside of
/// compiled functions, and of weights of several dtypes.
WICK_API Tensor grouped_linear(const Tensor& x, std::span<const Weight> experts,
                               const Tensor& chosen);

}  // namespace wick
