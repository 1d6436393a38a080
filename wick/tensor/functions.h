#pragma once

// Functions that users of other frameworks look for, made of the ops of wick/tensor/ops.h, whose
// conventions hold here; gradients are those of these ops. Their names and defaults are PyTorch's.

#include <array>
#include <utility>
#include <vector>

#include "wick/base/export.h"
#include "wick/tensor/ops.h"

namespace wick {

// Elements. Any shape, kept. Floats, kept; computed in f64 for f32 and f64, else in f32, and
// rounded once.
WICK_API Tensor log2(const Tensor& x);
WICK_API Tensor log10(const Tensor& x);
WICK_API Tensor exp2(const Tensor& x);
WICK_API Tensor tan(const Tensor& x);
WICK_API Tensor sinh(const Tensor& x);
WICK_API Tensor cosh(const Tensor& x);

/// x without its fraction. Any shape, kept. Floats, kept. Class exact.
WICK_API Tensor trunc(const Tensor& x);
/// Neither infinite nor NaN. Any shape, kept. Floats → bool. Class exact.
WICK_API Tensor isfinite(const Tensor& x);

/// x rounded to so many decimals, halves away from zero; negative: to tens, hundreds, …. Any shape,
/// kept. Floats, kept; computed in f64 for f32 and f64, else in f32. Errors: more than 300 decimals
/// either way.
WICK_API Tensor round_to(const Tensor& x, int64_t decimals = 0);

// Activations. Any shape, kept. Floats, kept; steps of 16 and 8 bits are computed in f32.
/// x where positive, else slope · x.
WICK_API Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold.
WICK_API Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
/// x · tanh(softplus(x)). Source: Misra, "Mish", 2019.
WICK_API Tensor mish(const Tensor& x);
/// scale · elu(x, alpha). Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
WICK_API Tensor selu(const Tensor& x);
/// min(max(x / 6 + 1/2, 0), 1).
WICK_API Tensor hardsigmoid(const Tensor& x);
/// x · hardsigmoid(x).
WICK_API Tensor hardswish(const Tensor& x);

/// The square root of var. Shapes and dtypes of var.
WICK_API Tensor std_dev(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false,
                        int64_t correction = 1);
/// (Σ |x|^p)^(1/p) over dims (none named: all); p = infinity gives the largest, 0 the number of
/// elements that aren't 0. Floats, kept; sums in f32 for narrow floats. Errors: a negative p.
WICK_API Tensor norm(const Tensor& x, double p = 2, std::span<const int> dims = {},
                     bool keepdim = false);
/// The middle element along a dim, the lower of two, and where it is; NaN where there is one. The
/// dim vanishes, or stays as size 1 with keepdim. Errors: an empty dim.
WICK_API Sorted median(const Tensor& x, int dim, bool keepdim = false);
/// The middle of all elements: []. Errors: no elements.
WICK_API Tensor median(const Tensor& x);

// Products.
/// a [m, k] @ b [k, n]. Errors: other ranks.
WICK_API Tensor mm(const Tensor& a, const Tensor& b);
/// a [b, m, k] @ b [b, k, n]. Errors: other ranks, another b.
WICK_API Tensor bmm(const Tensor& a, const Tensor& b);
/// a [m, k] @ b [k] → [m]. Errors: other ranks.
WICK_API Tensor mv(const Tensor& a, const Tensor& b);
/// a [k] · b [k] → []. Errors: other ranks.
WICK_API Tensor dot(const Tensor& a, const Tensor& b);
/// a [m], b [n] → [m, n]. Errors: other ranks.
WICK_API Tensor outer(const Tensor& a, const Tensor& b);

// Shapes. Real dtypes and bool, kept. Class exact.
/// Views of x without a dim, one for each place of it.
[[nodiscard]] WICK_API std::vector<Tensor> unbind(const Tensor& x, int dim = 0);
/// Each slice along a dim `count` times. Errors: a negative count.
WICK_API Tensor repeat_interleave(const Tensor& x, int64_t count, int dim);
/// Slice i along a dim counts[i] times. counts: integers [n] for n slices, or one number. Waits for
/// the device, where the result's size lies. Errors: another shape or dtype of counts, a negative
/// count.
WICK_API Tensor repeat_interleave(const Tensor& x, const Tensor& counts, int dim);
/// Grids of vectors [n₀], [n₁], … → [n₀, n₁, …] each; `xy` exchanges the first two dims. Views.
/// Errors: a rank above 1.
[[nodiscard]] WICK_API std::vector<Tensor> meshgrid(std::span<const Tensor> vectors,
                                                    bool xy = false);

/// x repeated along new dims in front: `shape`, then x's sizes. A view. Errors: more than 8 dims.
WICK_API Tensor broadcast_left(const Tensor& x, const Shape& shape);
/// Rows of a table [n, d] that ids of any shape name → [ids.., d]. ids u8 u32 i32 i64; a table of a
/// real dtype, kept, or of a block dtype, which gives f32. Errors: a table of another rank, an id
/// out of range.
WICK_API Tensor embedding(const Tensor& ids, const Tensor& table);
/// x with the elements x[.., where, ..] of a dim replaced by source, of x's other sizes. Without a
/// stop they end where source does. Errors: sizes, dtypes or devices that don't fit, a step
/// below 1.
WICK_API Tensor slice_scatter(const Tensor& x, const Tensor& source, int dim = 0,
                              const Slice& where = {});
/// x with the elements of slices of its first dims replaced by source, which broadcasts. Errors:
/// more slices than dims, a source that doesn't broadcast, dtypes or devices that differ, a step
/// below 1.
WICK_API Tensor slice_assign(const Tensor& x, ListOf<Slice> where, const Tensor& source);
/// Channels to pixels: x [.., c·r², h, w] → [.., c, h·r, w·r]. Errors: a rank below 3, r below 1,
/// channels that r² doesn't divide. Source: Shi et al., "Real-Time Single Image and Video
/// Super-Resolution Using an Efficient Sub-Pixel Convolutional Neural Network", 2016.
WICK_API Tensor pixel_shuffle(const Tensor& x, int64_t r);
/// pixel_shuffle undone: x [.., c, h·r, w·r] → [.., c·r², h, w]. Errors: a rank below 3, r below 1,
/// sizes that r doesn't divide.
WICK_API Tensor pixel_unshuffle(const Tensor& x, int64_t r);

// Convolutions and pools.
/// The kernel's movement over depth, height and width.
struct ConvParams3d {
  std::array<int64_t, 3> stride{1, 1, 1};
  std::array<int64_t, 3> padding{};          ///< zeros at either side
  std::array<int64_t, 3> dilation{1, 1, 1};  ///< inputs from one tap of the kernel to the next
  int64_t groups = 1;
};
/// conv2d in three dimensions: x [b, c, d, h, w], weight [o, c/groups, kd, kh, kw], bias [o] or
/// undefined → [b, o, od, oh, ow]. One conv2d whose channels are those of all kd taps: takes kd
/// times x's size. Dtypes, class and errors of conv2d.
WICK_API Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                       const ConvParams3d& params = {});
/// The mean of each of `size` windows, of which window i covers the elements from floor(i · l /
/// size) to before ceil((i + 1) · l / size). x [b, c, l] → [b, c, size]. Floats, kept; narrow ones
/// computed in f32, rounded once. Class tree. Errors: another rank, an empty x, a size below 1.
WICK_API Tensor adaptive_avg_pool1d(const Tensor& x, int64_t size);
/// The same along both dims of images: x [b, c, h, w] → [b, c, size..].
WICK_API Tensor adaptive_avg_pool2d(const Tensor& x, std::array<int64_t, 2> size);
/// The largest element of each of these windows; NaN wins. The gradient goes to the first of
/// several. Real dtypes, kept. Class exact. Shapes and errors of adaptive_avg_pool1d.
WICK_API Tensor adaptive_max_pool1d(const Tensor& x, int64_t size);
WICK_API Tensor adaptive_max_pool2d(const Tensor& x, std::array<int64_t, 2> size);
/// Max pools with the place of each result: u32, counted row-major in its image [h, w] or line [l].
/// The place is that of the first largest element; NaN wins. The values are those of the pool of
/// the same name, with its gradient. Takes up to a kernel's number of elements times x's size.
/// Shapes, dtypes and errors of the pool, and an image of 2^32 elements or more.
WICK_API Sorted max_pool1d_with_indices(const Tensor& x, const PoolParams1d& params);
WICK_API Sorted max_pool2d_with_indices(const Tensor& x, const PoolParams& params);
WICK_API Sorted adaptive_max_pool1d_with_indices(const Tensor& x, int64_t size);
WICK_API Sorted adaptive_max_pool2d_with_indices(const Tensor& x, std::array<int64_t, 2> size);

// What waits for the device and reads values.
/// Whether shapes, dtypes and all elements are equal; NaN equals nothing.
[[nodiscard]] WICK_API bool equal(const Tensor& a, const Tensor& b);
/// Whether |a - b| <= atol + rtol · |b| everywhere; infinities equal themselves, NaN nothing unless
/// equal_nan.
[[nodiscard]] WICK_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5,
                                     double atol = 1e-8, bool equal_nan = false);
/// The places of elements that aren't 0, in row-major order: i64 [n, rank].
WICK_API Tensor nonzero(const Tensor& x);
/// The elements where a mask, which broadcasts to x's shape, isn't 0: [n].
WICK_API Tensor masked_select(const Tensor& x, const Tensor& mask);
/// The different elements in ascending order: [n].
WICK_API Tensor unique(const Tensor& x);
struct [[nodiscard]] Unique {
  Tensor values;   ///< unique(x): [n]
  Tensor inverse;  ///< where each element of x is among the values: i64, of x's shape
  Tensor counts;   ///< how many elements of x each value is: i64 [n]
};
/// unique with where its values came from. Each NaN is a value of its own.
WICK_API Unique unique_all(const Tensor& x);

// Making tensors.
/// `count` numbers from start to end, both included. Floats. Errors: a negative count.
WICK_API Tensor linspace(double start, double end, int64_t count, DType dtype = DType::f32,
                         Device device = {});
/// Whole numbers in [low, high) at random. Errors: high <= low, more than 2^32 numbers.
WICK_API Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype = DType::i64,
                        Device device = {});
/// 0 to n − 1 in random order: i64 [n]. Errors: a negative n.
WICK_API Tensor randperm(int64_t n, Device device = {});

}  // namespace wick
