#pragma once

// The element types of the dtypes, for the kernel tables that are generated from dtypes.def.
// Included by kernel sources only (see isa.h).

#include <cstdint>

#include "wick/base/dtype.h"
#include "wick/math/half.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// The type that holds one element of a real dtype.
template <DType kDType>
struct StorageType;
#define WICK_STORAGE_TYPE(dtype, T)  \
  template <>                        \
  struct StorageType<DType::dtype> { \
    using type = T;                  \
  };
WICK_STORAGE_TYPE(u8, math::u8)
WICK_STORAGE_TYPE(u32, math::u32)
WICK_STORAGE_TYPE(i16, math::i16)
WICK_STORAGE_TYPE(i32, math::i32)
WICK_STORAGE_TYPE(i64, math::i64)
WICK_STORAGE_TYPE(bf16, math::bf16)
WICK_STORAGE_TYPE(f16, math::f16)
WICK_STORAGE_TYPE(f32, float)
WICK_STORAGE_TYPE(f64, double)
WICK_STORAGE_TYPE(f8e4m3, math::f8e4m3)
#undef WICK_STORAGE_TYPE
template <DType kDType>
using Storage = typename StorageType<kDType>::type;

/// The unsigned integer type of kBytes bytes, for the bits of elements.
template <int kBytes>
struct UnsignedType;
#define WICK_UNSIGNED_TYPE(T)      \
  template <>                      \
  struct UnsignedType<sizeof(T)> { \
    using type = T;                \
  };
WICK_UNSIGNED_TYPE(uint8_t)
WICK_UNSIGNED_TYPE(uint16_t)
WICK_UNSIGNED_TYPE(uint32_t)
WICK_UNSIGNED_TYPE(uint64_t)
#undef WICK_UNSIGNED_TYPE
template <int kBytes>
using UnsignedOf = typename UnsignedType<kBytes>::type;

}  // namespace
}  // namespace wick::cpu::WICK_ISA
