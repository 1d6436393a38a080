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

/// A linear map of x [t, k] that runs when its result is added to something.
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

inline Tensor operator+(const Tensor& x, const Product& y) {
  return y.post_norm == nullptr ? y.run(x) : x + (*y.post_norm)(y.run({}));
}

}  // namespace wick::models
