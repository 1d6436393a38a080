#pragma once

// Convenience functions with PyTorch's names and defaults. They are composed of the ops of
// wick/tensor/ops.h, whose conventions hold here, and their gradients follow from those ops.

#include <array>
#include <utility>
#include <vector>

#include "wick/base/export.h"
#include "wick/tensor/ops.h"

namespace wick {

// Elementwise functions. Any shape, kept. Floats, kept; f32 and f64 compute in f64, narrow floats
// in f32, and the result is rounded once.
WICK_API Tensor log2(const Tensor& x);
WICK_API Tensor log10(const Tensor& x);
WICK_API Tensor exp2(const Tensor& x);
WICK_API Tensor tan(const Tensor& x);
WICK_API Tensor sinh(const Tensor& x);
WICK_API Tensor cosh(const Tensor& x);

/// Rounds x towards zero. Any shape, kept. Floats, kept. Class exact.
WICK_API Tensor trunc(const Tensor& x);
/// True where x is neither infinite nor NaN. Any shape, kept. Floats → bool. Class exact.
WICK_API Tensor isfinite(const Tensor& x);

/// Rounds x to `decimals` decimals, ties away from zero; negative decimals round to tens, hundreds
/// and so on. Any shape, kept. Floats, kept; f32 and f64 compute in f64, narrow floats in f32.
/// Errors: decimals outside [-300, 300].
WICK_API Tensor round_to(const Tensor& x, int64_t decimals = 0);

// Activations. Any shape, kept. Floats, kept; 16-bit and 8-bit floats compute in f32.
/// x if x is positive, else negative_slope · x.
WICK_API Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// log(1 + exp(beta · x)) / beta, or x itself where beta · x > threshold.
WICK_API Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// x · tanh(softplus(x)). Source: Misra, "Mish", 2019.
WICK_API Tensor mish(const Tensor& x);
/// scale · elu(x, alpha). Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
WICK_API Tensor selu(const Tensor& x);
/// min(max(x / 6 + 1/2, 0), 1).
WICK_API Tensor hardsigmoid(const Tensor& x);
/// x · hardsigmoid(x).
WICK_API Tensor hardswish(const Tensor& x);

/// The standard deviation over dims, the square root of var. Shapes, dtypes and errors are those of
/// var.
WICK_API Tensor std_dev(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false,
                        int64_t correction = 1);
/// The p-norm (Σ |x|^p)^(1/p) over dims (all dims if none are given). p = infinity gives the
/// largest |x|, p = 0 the number of non-zero elements. Floats, kept; narrow floats are summed in
/// f32. Errors: p is negative.
WICK_API Tensor norm(const Tensor& x, double p = 2, std::span<const int> dims = {},
                     bool keepdim = false);
/// Returns the median along a dim and its index; of an even number of elements, the lower of the
/// two middle ones. If there is a NaN, the median is NaN. The dim is removed, or stays as size 1
/// with keepdim. Errors: the dim is empty.
WICK_API Sorted median(const Tensor& x, int dim, bool keepdim = false);
/// The median of all elements → []. Errors: x has no elements.
WICK_API Tensor median(const Tensor& x);

// Matrix and vector products. Dtypes and class are those of matmul.
/// a [m, k] @ b [k, n] → [m, n]. Errors: an operand doesn't have rank 2; k differs.
WICK_API Tensor mm(const Tensor& a, const Tensor& b);
/// a [b, m, k] @ b [b, k, n] → [b, m, n]. Errors: an operand doesn't have rank 3; b or k differs.
WICK_API Tensor bmm(const Tensor& a, const Tensor& b);
/// a [m, k] @ b [k] → [m]. Errors: wrong ranks; k differs.
WICK_API Tensor mv(const Tensor& a, const Tensor& b);
/// The inner product of a [k] and b [k] → []. Errors: an operand isn't a vector; k differs.
WICK_API Tensor dot(const Tensor& a, const Tensor& b);
/// The outer product of a [m] and b [n] → [m, n]. Errors: an operand isn't a vector.
WICK_API Tensor outer(const Tensor& a, const Tensor& b);

// Functions that change shapes. Real dtypes and bool, kept. Class exact.
/// Returns one view for each position along a dim, without that dim.
[[nodiscard]] WICK_API std::vector<Tensor> unbind(const Tensor& x, int dim = 0);
/// Repeats each slice along a dim `count` times in succession. Errors: count is negative.
WICK_API Tensor repeat_interleave(const Tensor& x, int64_t count, int dim);
/// Repeats slice i along a dim counts[i] times in succession. counts: integers [n] for n slices, or
/// one number. Waits for the device and reads counts. Errors: counts has another shape or dtype, or
/// a negative element.
WICK_API Tensor repeat_interleave(const Tensor& x, const Tensor& counts, int dim);
/// Expands vectors [n₀], [n₁], … to coordinate grids [n₀, n₁, …], one for each vector; `xy` swaps
/// the first two dims of the grids. The results are views. Errors: an operand has a rank above 1.
[[nodiscard]] WICK_API std::vector<Tensor> meshgrid(std::span<const Tensor> vectors,
                                                    bool xy = false);

/// Broadcasts x along new leading dims: the result's shape is `shape` followed by x's shape. A
/// view. Errors: the result has more than 8 dims.
WICK_API Tensor broadcast_left(const Tensor& x, const Shape& shape);
/// Looks up rows of a table [n, d] by ids of any shape → [ids.., d]. ids are u8, u32, i32 or i64.
/// The table has a real dtype, which is kept, or a block dtype, which gives f32. Errors: the table
/// doesn't have rank 2; an id is out of range.
WICK_API Tensor embedding(const Tensor& ids, const Tensor& table);
/// Returns a copy of x in which x[.., where, ..] along a dim is replaced by source; the other sizes
/// of source are x's. If `where` has no stop, the slice ends where source does. Errors: sizes don't
/// fit; dtypes or devices differ; the step is below 1.
WICK_API Tensor slice_scatter(const Tensor& x, const Tensor& source, int dim = 0,
                              const Slice& where = {});
/// Returns a copy of x in which a region is replaced by source, which broadcasts to the region;
/// where[d] slices dim d. Errors: there are more slices than dims; source doesn't broadcast; dtypes
/// or devices differ; a step is below 1.
WICK_API Tensor slice_assign(const Tensor& x, ListOf<Slice> where, const Tensor& source);
/// Moves channels to pixels: x [.., c·r², h, w] → [.., c, h·r, w·r]. Errors: the rank is below 3; r
/// is below 1; r² doesn't divide the channels. Source: Shi et al., "Real-Time Single Image and
/// Video Super-Resolution Using an Efficient Sub-Pixel Convolutional Neural Network", 2016.
WICK_API Tensor pixel_shuffle(const Tensor& x, int64_t r);
/// The inverse of pixel_shuffle: x [.., c, h·r, w·r] → [.., c·r², h, w]. Errors: the rank is below
/// 3; r is below 1; r doesn't divide the sizes.
WICK_API Tensor pixel_unshuffle(const Tensor& x, int64_t r);

// Convolutions and pools.
/// Stride, padding and dilation of conv3d along depth, height and width.
struct ConvParams3d {
  std::array<int64_t, 3> stride{1, 1, 1};
  std::array<int64_t, 3> padding{};          ///< zeros at either side
  std::array<int64_t, 3> dilation{1, 1, 1};  ///< input elements between adjacent kernel taps
  int64_t groups = 1;
};
/// 3D convolution: x [b, c, d, h, w], weight [o, c/groups, kd, kh, kw], bias [o] or undefined → [b,
/// o, od, oh, ow]. Runs one conv2d whose input has the channels of all kd taps, which takes kd
/// times x's memory. Dtypes, class and errors are those of conv2d.
WICK_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                       const ConvParams3d& params = {});
/// Average pooling to `size` windows; window i covers the elements from floor(i · l / size) up to
/// but not including ceil((i + 1) · l / size). x [b, c, l] → [b, c, size]. Floats, kept; narrow
/// floats compute in f32 and are rounded once. Class tree. Errors: x doesn't have rank 3; x is
/// empty; size is below 1.
WICK_API Tensor adaptive_avg_pool1d(const Tensor& x, int64_t size);
/// adaptive_avg_pool1d along both dims of images: x [b, c, h, w] → [b, c, size..].
WICK_API Tensor adaptive_avg_pool2d(const Tensor& x, std::array<int64_t, 2> size);
/// Max pooling over the windows of adaptive_avg_pool1d; NaN wins. The gradient goes to the first of
/// several equal maxima. Real dtypes, kept. Class exact. Shapes and errors are those of
/// adaptive_avg_pool1d.
WICK_API Tensor adaptive_max_pool1d(const Tensor& x, int64_t size);
WICK_API Tensor adaptive_max_pool2d(const Tensor& x, std::array<int64_t, 2> size);
/// Max pools that also return the index of each maximum: u32, row-major in its image [h, w] or line
/// [l]. Of several equal maxima the first one counts; NaN wins. The values and the gradient are
/// those of the pool without indices. Memory: x's size times the number of elements of a window.
/// Shapes and dtypes are those of the pool. Errors: those of the pool; an image has 2^32 elements
/// or more.
WICK_API Sorted max_pool1d_with_indices(const Tensor& x, const PoolParams1d& params);
WICK_API Sorted max_pool2d_with_indices(const Tensor& x, const PoolParams& params);
WICK_API Sorted adaptive_max_pool1d_with_indices(const Tensor& x, int64_t size);
WICK_API Sorted adaptive_max_pool2d_with_indices(const Tensor& x, std::array<int64_t, 2> size);

// Functions that wait for the device and read values on the host.
/// Whether shapes, dtypes and all elements are equal; NaN equals nothing.
[[nodiscard]] WICK_API bool equal(const Tensor& a, const Tensor& b);
/// Whether |a - b| <= atol + rtol · |b| for all elements; an infinity is close to itself only, and
/// NaN to NaN only if equal_nan.
[[nodiscard]] WICK_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
                                     double atol = 1e-8, bool equal_nan = false);
/// The indices of the non-zero elements in row-major order: i64 [n, rank].
WICK_API Tensor nonzero(const Tensor& x);
/// The elements of x where the mask, which broadcasts to x's shape, is non-zero: [n].
WICK_API Tensor masked_select(const Tensor& x, const Tensor& mask);
/// The distinct elements in ascending order: [n].
WICK_API Tensor unique(const Tensor& x);
struct [[nodiscard]] Unique {
  Tensor values;   ///< unique(x): [n]
  Tensor inverse;  ///< index in `values` of each element of x: i64, of x's shape
  Tensor counts;   ///< number of elements of x that equal each value: i64 [n]
};
/// unique, with the index of each element's value and the number of its occurrences. Each NaN is a
/// value of its own.
WICK_API Unique unique_all(const Tensor& x);

// Functions that make tensors.
/// `count` evenly spaced numbers from start to end, both included. Floats. Errors: count is
/// negative.
WICK_API Tensor linspace(double start, double end, int64_t count, DType dtype = DType::f32,
                         Device device = {});
/// Random integers in [low, high). Errors: high <= low; the range is larger than 2^32.
WICK_API Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype = DType::i64,
                        Device device = {});
/// A random permutation of 0 to n − 1: i64 [n]. Errors: n is negative.
WICK_API Tensor randperm(int64_t n, Device device = {});

}  // namespace wick
