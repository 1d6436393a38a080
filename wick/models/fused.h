#pragma once

// Compositions of ops that a layer computes as one fused op: a norm in front of a linear map, an
// addition behind it. Both wait for the map, so that a layer is written in plain steps:
// x + map(norm(x)). The bits are those of the steps one after another.

#include <optional>
#include <utility>

#include "wick/nn/layers.h"
#include "wick/tensor/ops.h"

namespace wick::models {

/// norm(x), which the linear maps that read it compute.
struct Normed {
  const Tensor& x;
  FusedLinear fusion;

  Normed(const nn::RmsNorm& norm, const Tensor& of) : x(of), fusion(norm.before()) {}
};

/// The last `count` rows of x.
inline Tensor last_rows(const Tensor& x, int64_t count) {
  return count < x.size(0) ? x.narrow(0, x.size(0) - count, count) : x;
}

/// A linear map of x [t, k] that runs when its result is added to something. Undefined x: nothing
/// is wanted of it.
struct Product {
  const nn::Linear& map;
  Tensor x;
  bool silu_mul = false;                        ///< the gate silu_mul comes first
  std::optional<AttentionStep> attention = {};  ///< cached_attention comes first
  const nn::RmsNorm* post_norm = nullptr;       ///< a norm behind the map; null: none

  Tensor run(const Tensor& residual) const {
    return map(x, {.silu_mul = silu_mul,
                   .residual = residual,
                   .attention = attention ? &*attention : nullptr});
  }
};

/// The sum of y and of as many of x's last rows.
inline Tensor operator+(const Tensor& x, const Product& y) {
  if (!y.x.defined()) return {};
  const Tensor rows = last_rows(x, y.x.size(0));
  return y.post_norm == nullptr ? y.run(rows) : rows + (*y.post_norm)(y.run({}));
}

}  // namespace wick::models
