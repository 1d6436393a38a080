#pragma once

#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/base/export.h"
#include "wick/op/op.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Functions over tensors. Every one takes every layout; two tensors of one call share dtype and
// device unless said otherwise, since nothing is promoted silently. Errors follow the grammar of
// wick::Error. Numeric classes stand in ops.def and are defined in docs/design/numerics.md.

// y = f(x): neg abs sqr sqrt … one function a row of ops.def.
#define WICK_UNARY(name, ...) WICK_API Tensor name(const Tensor& x);
// y = f(a, b), shapes broadcast: add sub mul div maximum minimum …
#define WICK_BINARY(name, ...) WICK_API Tensor name(const Tensor& a, const Tensor& b);
// Over a set of dims (none named: all), which stay as size 1 with keepdim: sum mean max min.
#define WICK_REDUCE(name, ...)                                                                 \
  WICK_API Tensor name(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false); \
  inline Tensor name(const Tensor& x, int dim, bool keepdim = false) {                         \
    return name(x, std::span<const int>(&dim, 1), keepdim);                                    \
  }
// Along one dim, as u32: argmax argmin.
#define WICK_ARG(name, ...) WICK_API Tensor name(const Tensor& x, int dim, bool keepdim = false);
#include "wick/op/ops.def"

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }

/// The elements converted to another real dtype. Class exact.
WICK_API Tensor cast(const Tensor& x, DType dtype);
/// x * mul + add. Class exact.
WICK_API Tensor affine(const Tensor& x, Scalar mul, Scalar add);
/// Tensors joined along an existing dim; all other sizes are equal. Class exact.
WICK_API Tensor cat(std::span<const Tensor> tensors, int dim);
/// Tensors of one shape joined along a new dim. Class exact.
WICK_API Tensor stack(std::span<const Tensor> tensors, int dim);
/// Writes `source`, converted to target's dtype, over target[.., start : start + size, ..] along
/// `dim`: the way a KV cache grows. Errors: target is mapped, or its storage is shared.
WICK_API void slice_set(Tensor& target, const Tensor& source, int dim, int64_t start);
/// Slices of x along `dim` named by `ids` (u8 u32 i32 i64, any shape): the dim is replaced by the
/// shape of ids. For a block dtype (rank 2, dim 0) rows come out as `dtype` (default f32). Class
/// exact. The largest value of an unsigned id type gives zeros. Errors: any other id out of range.
WICK_API Tensor index_select(const Tensor& x, const Tensor& ids, int dim, DType dtype = DType::f32);

/// a [.., m, k] @ b [.., k, n] → [.., m, n]; batch dims broadcast. Class bound; integers exact.
WICK_API Tensor matmul(const Tensor& a, const Tensor& b);

/// A weight matrix [n, k] in the form its device multiplies fastest.
class WICK_API Weight {
 public:
  Weight() = default;
  /// Packs a matrix, or several of one dtype and k stacked along n. With `release` the pages of
  /// sources that are mapped from a file are given back to the system while packing: they can
  /// still be read, slowly. Other sources stay as they are.
  explicit Weight(const Tensor& matrix, bool release = false)
      : Weight(std::span(&matrix, 1), release) {}
  explicit Weight(std::span<const Tensor> matrices, bool release = false);

  bool defined() const { return prepared_ != nullptr; }
  DType dtype() const { return prepared().dtype; }
  int64_t n() const { return prepared().n; }
  int64_t k() const { return prepared().k; }
  Device device() const { return device_; }
  /// Errors: undefined.
  const PreparedWeight& prepared() const;

 private:
  std::shared_ptr<const PreparedWeight> prepared_;
  Device device_;
};

/// x [.., k] (f32 f16 bf16) times the transpose of a weight [n, k] → [.., n] in x's dtype. Class
/// blocked for block dtypes, bound for float weights.
WICK_API Tensor linear(const Tensor& x, const Weight& weight);
/// f32 [.., k] → a block dtype, k a multiple of its block. Class exact.
WICK_API Tensor quantize(const Tensor& x, DType dtype);
/// A block dtype → f32, f16 or bf16. Class exact.
WICK_API Tensor dequantize(const Tensor& x, DType dtype = DType::f32);

/// exp(x - max) / sum along a dim. Class tree.
WICK_API Tensor softmax(const Tensor& x, int dim);
/// log(softmax(x)), computed without forming it. Class tree.
WICK_API Tensor log_softmax(const Tensor& x, int dim);
/// x / sqrt(mean(x²) + eps) · weight over the last dim; weight [d]. Class tree.
/// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
WICK_API Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps);
/// Rotary embedding: x [.., t, d], cos and sin f32 [t, r/2], r <= d elements rotated in pairs
/// (i, i + r/2). Class exact. Source: Su et al., "RoFormer", 2021.
WICK_API Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin);
/// The same with pairs (2i, 2i + 1).
WICK_API Tensor rope_interleaved(const Tensor& x, const Tensor& cos, const Tensor& sin);
/// q [b, h, m, d], k [b, g, n, d], v [b, g, n, e] → [b, h, m, e]: softmax(scale · q kᵀ + mask) v;
/// h is a multiple of g; k and v share a dtype, of (f32 f16 bf16). Class tree.
WICK_API Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionParams& params);

}  // namespace wick
