#pragma once

// What matrix instructions share: the types of elements, and the places where the lanes of gfx9
// hold results. There, lane l holds row (of A) or column (of B) l % size of a block, for some
// consecutive k, and each result register holds one row for each set of lanes.

#include <bit>
#include <cstring>

#include "emu/exec/float8.h"
#include "emu/exec/track.h"
#include "emu/exec/valu.h"

namespace emu {
namespace {

/// xf32 is f32 of which the instruction reads 10 bits of fraction. fp8 and bf8 are the FNUZ
/// formats, ofp8 and obf8 those of OCP. The formats of 6 and 4 bits have no infinity and no NaN.
enum class In : uint8_t {
  f32,
  xf32,
  f16,
  bf16,
  i8,
  u8,
  i4,
  u4,
  f64,
  fp8,
  bf8,
  ofp8,
  obf8,
  e2m3,
  e3m2,
  e2m1
};

/// Returns the FNUZ format of the same size as fp8 or bf8 of OCP.
constexpr In fnuz_of(In ocp) { return ocp == In::ofp8 ? In::fp8 : In::bf8; }

template <In kIn>
inline constexpr int kBitsOf = kIn == In::f64                                      ? 64
                               : kIn == In::f32 || kIn == In::xf32                 ? 32
                               : kIn == In::f16 || kIn == In::bf16                 ? 16
                               : kIn == In::e2m3 || kIn == In::e3m2                ? 6
                               : kIn == In::e2m1 || kIn == In::i4 || kIn == In::u4 ? 4
                                                                                   : 8;

/// The type in which products are summed.
template <In kIn>
using SumOf = std::conditional_t<kIn == In::i8 || kIn == In::u8 || kIn == In::i4 || kIn == In::u4,
                                 int32_t, std::conditional_t<kIn == In::f64, double, float>>;

EMU_INLINE uint32_t dword_of(Wave* w, uint32_t offset, int reg, int lane) {
  const uint32_t half = lane / 32 != 0 ? w->half_bytes : 0;
  return at<uint32_t>(
      w, offset + half + 128 * static_cast<uint32_t>(reg) + 4 * static_cast<uint32_t>(lane % 32));
}

/// Rounds to the nearest number with 10 bits of fraction, ties to even.
EMU_INLINE float rounded_to_xf32(uint32_t bits) {
  constexpr uint32_t kDropped = 0x1fff;
  const bool finite = (bits & 0x7f800000) != 0x7f800000;
  if (finite) bits += 0xfff + (bits >> 13 & 1);
  const bool is_nan = !finite && (bits & 0x7fffff) != 0;
  return std::bit_cast<float>((bits | (is_nan ? 0x400000u : 0)) & ~kDropped);
}

/// The value of a float with a sign, `kExponent` bits of exponent and `kFraction` of fraction.
template <int kExponent, int kFraction>
constexpr float small_float(uint32_t bits) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  const int exponent = static_cast<int>(bits >> kFraction & ((1u << kExponent) - 1));
  const uint32_t fraction = bits & ((1u << kFraction) - 1);
  auto value = static_cast<float>(exponent == 0 ? fraction : fraction | 1u << kFraction);
  const int power = (exponent == 0 ? 1 : exponent) - kBias - kFraction;
  for (int i = 0; i < power; ++i) value *= 2;
  for (int i = power; i < 0; ++i) value /= 2;
  return (bits >> (kExponent + kFraction) & 1) != 0 ? -value : value;
}

template <int kExponent, int kFraction>
inline constexpr auto kSmallFloats = [] {
  std::array<float, 1 << (1 + kExponent + kFraction)> values{};
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = small_float<kExponent, kFraction>(i);
  return values;
}();

/// Returns element `index` of those that the lane holds.
template <In kIn>
EMU_INLINE SumOf<kIn> element(Wave* w, uint32_t offset, int lane, int index) {
  constexpr int kBits = kBitsOf<kIn>;
  const int bit = index * kBits;
  uint32_t bits = dword_of(w, offset, bit / 32, lane) >> (bit % 32);
  if constexpr (kBits == 6) {  // an element may lie in two registers
    if (bit % 32 > 26) bits |= dword_of(w, offset, bit / 32 + 1, lane) << (32 - bit % 32);
    bits &= 63;
  }
  if constexpr (kIn == In::f64) {
    const uint64_t upper = dword_of(w, offset, 2 * index + 1, lane);
    return std::bit_cast<double>(upper << 32 | dword_of(w, offset, 2 * index, lane));
  } else if constexpr (kIn == In::f32) {
    return std::bit_cast<float>(bits);
  } else if constexpr (kIn == In::xf32) {
    return rounded_to_xf32(bits);
  } else if constexpr (kIn == In::f16) {
    return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  } else if constexpr (kIn == In::bf16) {
    return std::bit_cast<float>(bits << 16);
  } else if constexpr (kIn == In::fp8) {
    return kFloat8Values<Fp8Fnuz>[bits & 0xff];
  } else if constexpr (kIn == In::bf8) {
    return kFloat8Values<Bf8Fnuz>[bits & 0xff];
  } else if constexpr (kIn == In::ofp8) {
    return kFloat8Values<Fp8Ocp>[bits & 0xff];
  } else if constexpr (kIn == In::obf8) {
    return kFloat8Values<Bf8Ocp>[bits & 0xff];
  } else if constexpr (kIn == In::e2m3) {
    return kSmallFloats<2, 3>[bits];
  } else if constexpr (kIn == In::e3m2) {
    return kSmallFloats<3, 2>[bits];
  } else if constexpr (kIn == In::e2m1) {
    return kSmallFloats<2, 1>[bits & 15];
  } else if constexpr (kIn == In::u8) {
    return static_cast<int32_t>(bits & 0xff);
  } else if constexpr (kIn == In::u4) {
    return static_cast<int32_t>(bits & 15);
  } else if constexpr (kIn == In::i4) {
    return static_cast<int32_t>(bits << 28) >> 28;
  } else {
    return static_cast<int8_t>(bits);
  }
}

struct Place {
  int block, row, column;
};

/// Returns the position of the lane's result number `index` in matrices of kSize columns.
template <int kSize, bool kWide>
constexpr Place place_of(int lane, int index) {
  if constexpr (kWide && kSize == 16) return {0, 4 * index + lane / 16, lane % 16};
  if constexpr (kWide) return {lane / 4 % 4, lane / 16, lane % 4};
  if constexpr (kSize == 4) return {lane / 4, index, lane % 4};
  constexpr int kGroups = 64 / kSize;  // each holds four consecutive rows
  constexpr int kOfBlock = kSize * kSize / 64;
  const int of_block = index % kOfBlock;
  return {index / kOfBlock, of_block / 4 * 4 * kGroups + lane / kSize * 4 + of_block % 4,
          lane % kSize};
}

template <class V>
EMU_INLINE void store_result(Wave* w, uint32_t offset, int lane, int index, V value) {
  constexpr int kDwords = sizeof(V) / 4;
  const uint32_t half = lane / 32 != 0 ? w->half_bytes : 0;
  const auto first = offset + half + 4 * static_cast<uint32_t>(lane % 32);
  uint32_t dwords[kDwords];
  std::memcpy(dwords, &value, sizeof value);
  for (int i = 0; i < kDwords; ++i) {
    at<uint32_t>(w, first + 128 * static_cast<uint32_t>(index * kDwords + i)) = dwords[i];
  }
}

template <class V>
EMU_INLINE void multiply_into(V& sum, V x, V y) {
  if constexpr (std::is_integral_v<V>) {
    sum = static_cast<V>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(x * y));
  } else {
    sum = __builtin_elementwise_fma(x, y, sum);
  }
}

}  // namespace
}  // namespace emu
