#pragma once

// Conversion of scalars to kernel arguments, and types by dtype.

#include "wick/backend/view.h"
#include "wick/math/half.h"

namespace wick::gpu {

/// Converts a number by the rules of cast.
template <class T>
T convert(const Scalar& value) {
  return value.is_integer ? math::cast<T>(static_cast<math::i64>(value.i)) : math::cast<T>(value.f);
}

/// Calls body(zero of the dtype's storage type) for a real dtype.
template <class Body>
void with_storage_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::u8:
      return body(math::u8{});
    case DType::u32:
      return body(math::u32{});
    case DType::i16:
      return body(math::i16{});
    case DType::i32:
      return body(math::i32{});
    case DType::i64:
      return body(math::i64{});
    case DType::bf16:
      return body(math::bf16{});
    case DType::f16:
      return body(math::f16{});
    case DType::f32:
      return body(float{});
    case DType::f64:
      return body(double{});
    default:
      return body(math::f8e4m3{});
  }
}

/// Calls body(zero of the dtype's compute type) for a real dtype.
template <class Body>
void with_compute_type(DType dtype, Body&& body) {
  with_storage_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (math::detail::kStorage<T>) {
      body(float{});
    } else {
      body(T{});
    }
  });
}

}  // namespace wick::gpu
