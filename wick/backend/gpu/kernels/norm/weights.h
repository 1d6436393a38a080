#pragma once

// Weights and biases of norms, and the last step of layer_norm and group_norm.

#include "wick/backend/gpu/kernels/device/uniform.h"
#include "wick/backend/gpu/kernels/norm/norm_abi.h"
#include "wick/backend/gpu/kernels/reduce/rows.h"

namespace wick::gpu {

/// The number with index i of a vector whose dtype is T or f32. kUniform: i is the same in all
/// active lanes of the wave.
template <class T, bool kUniform = false>
WICK_DEVICE Compute<T> number_at(const Weights& numbers, i64 i) {
  const i64 where = i * numbers.step;
  if constexpr (kUniform) {
    return numbers.f32 != 0
               ? Compute<T>(load_uniform(static_cast<const float*>(numbers.data) + where))
               : widen(load_uniform(static_cast<const T*>(numbers.data) + where));
  } else {
    return numbers.f32 != 0 ? Compute<T>(static_cast<const float*>(numbers.data)[where])
                            : widen(static_cast<const T*>(numbers.data)[where]);
  }
}

/// Index of the first weight of a row.
WICK_DEVICE u32 first_weight(const Affine& affine, u32 row) {
  const u32 index = row + affine.first_group;
  return (index - affine.groups.divide(index) * affine.groups.by) * affine.channels;
}

/// (c · r) · weight + bias, with weight and bias number i. A missing weight or bias isn't applied.
template <class T>
WICK_DEVICE Compute<T> scaled(const Affine& affine, i64 i, Compute<T> c, Compute<T> r) {
  Compute<T> y = c * r;
  if (affine.weight.data != nullptr) y = y * number_at<T>(affine.weight, i);
  if (affine.bias.data != nullptr) y = y + number_at<T>(affine.bias, i);
  return y;
}

/// 1 / sqrt(squares / n + eps).
template <class A>
WICK_DEVICE A inverse_deviation(A squares, u64 n, float eps) {
  return A(1) / sqrt(squares / static_cast<A>(n) + static_cast<A>(eps));
}

}  // namespace wick::gpu
