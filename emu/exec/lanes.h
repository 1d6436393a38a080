#pragma once

// Vectors of 32 lanes and the operations on them that the instruction tables need. They use clang's
// vector extension, so that one source serves every instruction set of the host.

#include <cstdint>

namespace emu {

inline constexpr int kLanes = 32;  // a wave of 64 has two halves of 32 lanes

template <class T>
using Vec = T __attribute__((ext_vector_type(kLanes)));

using U8 = Vec<uint8_t>;
using U16 = Vec<uint16_t>;
using I16 = Vec<int16_t>;
using F16 = Vec<_Float16>;
using U32 = Vec<uint32_t>;
using I32 = Vec<int32_t>;
using F32 = Vec<float>;
using U64 = Vec<uint64_t>;
using I64 = Vec<int64_t>;
using F64 = Vec<double>;

/// One bit per lane, in the format of EXEC and VCC.
using LaneMask = uint32_t;
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

#define EMU_INLINE [[gnu::always_inline]] static inline

template <class To, class From>
EMU_INLINE To bits_as(From from) {
  return __builtin_bit_cast(To, from);
}

template <class To, class From>
EMU_INLINE To convert(From from) {
  return __builtin_convertvector(from, To);
}

namespace detail {
using Bools = bool __attribute__((ext_vector_type(kLanes)));
template <class V>
struct ElementOf;
template <class T>
struct ElementOf<Vec<T>> {
  using type = T;
};
template <int kBytes>
struct SignedOf;
template <>
struct SignedOf<1> {
  using type = int8_t;
};
template <>
struct SignedOf<2> {
  using type = int16_t;
};
template <>
struct SignedOf<4> {
  using type = int32_t;
};
template <>
struct SignedOf<8> {
  using type = int64_t;
};
}  // namespace detail

template <class V>
using Element = typename detail::ElementOf<V>::type;
/// The result of comparing two V: each lane has all bits set or none.
template <class V>
using Truth = Vec<typename detail::SignedOf<sizeof(Element<V>)>::type>;

/// Bit i of the mask is set if lane i is true.
template <class T>
EMU_INLINE LaneMask lane_mask(Vec<T> truth) {
  return bits_as<LaneMask>(convert<detail::Bools>(truth != 0));
}

template <class V>
EMU_INLINE V select(LaneMask mask, V yes, V no) {
  const Truth<V> truth = -convert<Truth<V>>(bits_as<detail::Bools>(mask));
  return truth ? yes : no;
}

template <class V>
EMU_INLINE V splat(Element<V> value) {
  return static_cast<V>(value);
}

EMU_INLINE U32 lane_ids() {
  return U32{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
             16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
}

EMU_INLINE F32 fma(F32 a, F32 b, F32 c) { return __builtin_elementwise_fma(a, b, c); }
EMU_INLINE F64 fma(F64 a, F64 b, F64 c) { return __builtin_elementwise_fma(a, b, c); }

EMU_INLINE U64 pair(U32 lo, U32 hi) { return convert<U64>(lo) | convert<U64>(hi) << 32; }

}  // namespace emu
