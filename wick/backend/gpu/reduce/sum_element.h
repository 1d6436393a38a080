#pragma once

// The key of kernels that accumulate elements: reductions, cumulative sums and products, and
// scatter_add.

#include <array>
#include <string_view>

#include "wick/base/dtype.h"

namespace wick::gpu {

/// The suffix of these kernels: the dtype of floats, the width of integers, whose sums and products
/// don't depend on the sign.
enum class SumElement { f32, f64, f16, bf16, f8e4m3, int8, int16, int32, int64 };
constexpr std::array<std::string_view, 9> kernel_labels(SumElement) {
  return {"f32", "f64", "f16", "bf16", "f8e4m3", "u8", "u16", "u32", "u64"};
}

/// The kernels of a dtype that can be summed.
constexpr SumElement sum_element(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return SumElement::f64;
    case DType::f16:
      return SumElement::f16;
    case DType::bf16:
      return SumElement::bf16;
    case DType::f8e4m3:
      return SumElement::f8e4m3;
    case DType::u32:
    case DType::i32:
      return SumElement::int32;
    case DType::i16:
      return SumElement::int16;
    case DType::u8:
      return SumElement::int8;
    case DType::i64:
      return SumElement::int64;
    default:
      return SumElement::f32;
  }
}

}  // namespace wick::gpu
