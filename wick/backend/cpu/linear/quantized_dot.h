#pragma once

// Dot products of packed weights of 16 rows with int8 activations, over a block or a part of one.
// For kernel sources only (see isa.h).
//
// Dot<kLevels> holds dot products. With VNNI, one instruction multiplies and sums four columns.
// Without it, pairs of products are summed in 16 bits, and the sums are widened after as many
// groups of four columns as 16 bits allow. A lane adds two products per group: eight groups of
// nibbles, 16·15·127 = 30480 < 2^15; four groups of five bits, 8·31·127 = 31496; two groups of six
// bits, 4·63·127 = 32004. Bytes take twice the work.
//
// Factors are the integers by which dot products are multiplied, one for each of the 16 rows, if
// activations share scales; their type is also that of the exact sums of the results. The sums are
// below 2^24, so floats also represent them exactly. Dot products are then of Quants::nibbles,
// whose 16-bit sums the factors multiply: for five bits after each four groups of columns
// (kSharedSteps), for factors of half a block after each half.
//
// quantized_dot_neon.h has the dot products with NEON.

#include <cstdint>

#include "wick/backend/cpu/linear/quantized_types.h"
#include "wick/backend/cpu/simd/int8.h"
#include "wick/math/code_blocks.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// Bytes of the eight unpacked quads of a block.
constexpr int kPlaneBytes = 512;

/// After how many quads `fold` adds the 16-bit sums to the 32-bit sums.
template <Quants kLevels>
constexpr int kPairQuads = kLevels == Quants::six    ? 2
                           : kLevels == Quants::five ? 4
                                                     : 8;

/// A table of 16 bytes.
struct ByteTable {
  alignas(16) uint8_t v[16];
};
/// The entries of a table plus an offset, modulo 256, of which `mask` selects bits after a shift.
constexpr ByteTable byte_table(const math::Code& code, int offset, int shift = 0, int mask = 255) {
  ByteTable table{};
  for (int i = 0; i < 16; ++i) {
    table.v[i] = static_cast<uint8_t>((static_cast<int>(code.values[i]) + offset) >> shift & mask);
  }
  return table;
}
constexpr ByteTable kE2m1Levels = byte_table(math::kE2m1Code, 12);

#if defined(__AVX512VNNI__)

using ByteWeights = U8x64;
constexpr int kBytePlanes = 1;
typedef int32_t __attribute__((may_alias)) Quad;

template <Quants kLevels>
struct Dot {
  I32x16 sums;
};
template <Quants kLevels>
WICK_SIMD void start(Dot<kLevels>& dot, int32_t from) {
  dot.sums = splat_sums(from);
}
template <Quants kLevels>
WICK_SIMD void accumulate(Dot<kLevels>& dot, U8x64 w, I8x4 x) {
  dot.sums = _mm512_dpbusd_epi32(dot.sums, w, x);
}
/// The same with quad k of a block's activations as a memory operand. GCC loads them by an
/// instruction of its own, with which decoding takes up to 7 % longer.
template <Quants kLevels>
WICK_SIMD void accumulate_at(Dot<kLevels>& dot, U8x64 w, const uint8_t* x, int k) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(dot.sums)
      : "v"(w), "m"(*reinterpret_cast<const Quad*>(x + 4 * k)));
}
template <Quants kLevels>
WICK_SIMD void fold(Dot<kLevels>&) {}
template <Quants kLevels>
WICK_SIMD F32x16 finish(const Dot<kLevels>& dot, int32_t) {
  return to_f32(dot.sums);
}

template <class T>
constexpr int kSharedSteps = T::kParts;

WICK_SIMD void clear(F32x16& sums) { sums = splat_16(0.0f); }
WICK_SIMD void clear(I32x16& sums) { sums = zero_sums(); }
WICK_SIMD F32x16 to_floats(F32x16 sums) { return sums; }
WICK_SIMD F32x16 to_floats(I32x16 sums) { return to_f32(sums); }

WICK_SIMD F32x16 load_factors(const uint8_t* p) { return load_u8(p); }
WICK_SIMD void add_scaled(F32x16& sums, const Dot<Quants::nibbles>& dot, F32x16 factors) {
  sums = fma(factors, to_f32(dot.sums), sums);
}
/// Factors of one of two parts. The dot product of two bits and 16 activations fits into 16 bits,
/// and the upper 16 bits are multiplied by 0.
WICK_SIMD I32x16 load_part_factors(const uint8_t* p, int part) {
  const I16x32 pairs = load_pairs(p);
  return _mm512_and_si512(part == 0 ? pairs : _mm512_srli_epi32(pairs, 16), _mm512_set1_epi32(15));
}
WICK_SIMD void add_scaled(I32x16& sums, const Dot<Quants::nibbles>& dot, I32x16 factors) {
  sums = _mm512_dpwssd_epi32(sums, dot.sums, factors);
}

WICK_SIMD I16x32 no_offset() { return _mm512_setzero_si512(); }
/// v·factor + offset of each byte, if the results are bytes: two products in 16 bits don't disturb
/// each other. Both halves of a row's word hold the factor; two bytes of them hold the offset.
WICK_SIMD U8x64 fold_factor(U8x64 v, I16x32 factor, I16x32 offset) {
  return _mm512_add_epi16(_mm512_mullo_epi16(v, factor), offset);
}
/// An integer of each row in both halves of its word.
WICK_SIMD I16x32 twice_each(I32x16 v) {
  return _mm512_or_si512(_mm512_and_si512(v, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(v, 16));
}
/// The offset of fold_factor for quants with an offset: `sum` − offset·factor in each byte.
WICK_SIMD I16x32 fold_offset(I16x32 factor, int offset, int sum) {
  const I16x32 v = _mm512_mullo_epi16(factor, _mm512_set1_epi16(static_cast<int16_t>(-offset)));
  return _mm512_mullo_epi16(_mm512_add_epi16(v, _mm512_set1_epi16(static_cast<int16_t>(sum))),
                            _mm512_set1_epi16(257));
}
WICK_SIMD I16x32 load_signed_factors(const uint8_t* p) {
  return twice_each(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

constexpr ByteTable kNormalLevels = byte_table(math::kNormalCode, 128);
WICK_SIMD ByteWeights normal_weights(U8x64 nibbles) { return look_up(kNormalLevels.v, nibbles); }
WICK_SIMD ByteWeights byte_weights(U8x64 v) { return v; }
WICK_SIMD ByteWeights load_weights(const uint8_t* p) { return load_bytes(p); }
WICK_SIMD void store_weights(uint8_t* p, ByteWeights w) { store_bytes(p, w); }

#elif defined(WICK_NEON_INT8)

}  // namespace
}  // namespace wick::cpu::WICK_ISA

#include "wick/backend/cpu/linear/quantized_dot_neon.h"

namespace wick::cpu::WICK_ISA {
namespace {

#elif defined(WICK_PORTABLE_INT8)

using ByteWeights = U8x64;
constexpr int kBytePlanes = 1;

/// One sum for each byte of a vector, so that a loop over them needs no shuffles. Sums of up to
/// five bits fit 16 bits (8·31·127), and so do products of bytes (255·127).
template <class Sum>
struct ByteSums {
  Sum v[64];
};
template <Quants kLevels>
struct Dot : ByteSums<int32_t> {};
template <>
struct Dot<Quants::nibbles> : ByteSums<int16_t> {};

template <Quants kLevels>
WICK_SIMD void start(Dot<kLevels>& dot, int32_t) {
  for (auto& sum : dot.v) sum = 0;
}
template <Quants kLevels>
WICK_SIMD void fold(Dot<kLevels>&) {}
template <class Sum>
WICK_SIMD void accumulate(ByteSums<Sum>& dot, const U8x64& w, const I8x4& x) {
  for (int i = 0; i < 64; i += 8) {
    for (int j = 0; j < 8; ++j) {
      const auto product = static_cast<int16_t>(w.v[i + j] * x.v[j]);
      dot.v[i + j] = static_cast<Sum>(dot.v[i + j] + product);
    }
  }
}
template <class Sum>
WICK_SIMD F32x16 finish(const ByteSums<Sum>& dot, int32_t from) {
  I32x16 sums;
  for (int r = 0; r < 16; ++r) {
    sums.v[r] = from + dot.v[4 * r] + dot.v[4 * r + 1] + dot.v[4 * r + 2] + dot.v[4 * r + 3];
  }
  return to_f32(sums);
}

template <class T>
constexpr int kSharedSteps = T::kParts;

WICK_SIMD void clear(F32x16& sums) { sums = splat_16(0.0f); }
WICK_SIMD F32x16 to_floats(const F32x16& sums) { return sums; }
WICK_SIMD F32x16 load_factors(const uint8_t* p) { return load_u8(p); }
WICK_SIMD F32x16 load_part_factors(const uint8_t* p, int part) {
  float y[16];
  for (int r = 0; r < 16; ++r) y[r] = static_cast<float>(p[2 * r + part] & 15);
  return load_16(y);
}
/// Exact, so without fma, which is a function call here.
WICK_SIMD void add_scaled(F32x16& sums, const Dot<Quants::nibbles>& dot, const F32x16& factors) {
  sums = add(sums, mul(factors, finish(dot, 0)));
}

constexpr ByteTable kNormalLevels = byte_table(math::kNormalCode, 128);
WICK_SIMD ByteWeights normal_weights(const U8x64& nibbles) {
  return look_up(kNormalLevels.v, nibbles);
}
WICK_SIMD ByteWeights byte_weights(const U8x64& v) { return v; }
WICK_SIMD ByteWeights load_weights(const uint8_t* p) { return load_bytes(p); }
WICK_SIMD void store_weights(uint8_t* p, const ByteWeights& w) { store_bytes(p, w); }

#else

/// Five and six bits: 16-bit sums of pairs, which are folded in between.
template <Quants kLevels>
struct Dot {
  I32x16 pairs, sums;
};
template <Quants kLevels>
WICK_SIMD void start(Dot<kLevels>& dot, int32_t from) {
  dot.pairs = zero_sums();
  dot.sums = splat_sums(from);
}
template <Quants kLevels>
WICK_SIMD void accumulate(Dot<kLevels>& dot, U8x64 w, I8x4 x) {
  dot.pairs = add_pairs(dot.pairs, w, x);
}
template <Quants kLevels>
WICK_SIMD void fold(Dot<kLevels>& dot) {
  dot.sums = combine_pairs(dot.pairs, 1, dot.sums);
  dot.pairs = zero_sums();
}
template <Quants kLevels>
WICK_SIMD F32x16 finish(const Dot<kLevels>& dot, int32_t) {
  return to_f32(dot.sums);
}

/// Nibbles: 16-bit sums of pairs hold a whole block.
template <>
struct Dot<Quants::nibbles> {
  I32x16 pairs;
};
WICK_SIMD void start(Dot<Quants::nibbles>& dot, int32_t) { dot.pairs = zero_sums(); }
WICK_SIMD void accumulate(Dot<Quants::nibbles>& dot, U8x64 w, I8x4 x) {
  dot.pairs = add_pairs(dot.pairs, w, x);
}
WICK_SIMD void fold(Dot<Quants::nibbles>&) {}
WICK_SIMD F32x16 finish(const Dot<Quants::nibbles>& dot, int32_t from) {
  return to_f32(combine_pairs(dot.pairs, 1, splat_sums(from)));
}

template <class T>
constexpr int kSharedSteps =
    T::kParts > 8 / kPairQuads<T::kLevels> ? T::kParts : 8 / kPairQuads<T::kLevels>;

/// Factors are in both halves of a word: they multiply 16-bit sums of pairs, which the
/// multiplication adds.
WICK_SIMD void clear(I32x16& sums) { sums = zero_sums(); }
WICK_SIMD F32x16 to_floats(I32x16 sums) { return to_f32(sums); }

constexpr int kBytePlanes = 2;

#if defined(__AVX512BW__)

WICK_SIMD I16x32 load_factors(const uint8_t* p) {
  const __m512i v = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm512_or_si512(v, _mm512_slli_epi32(v, 16));
}
/// Factors of one of two parts.
WICK_SIMD I16x32 load_part_factors(const uint8_t* p, int part) {
  const I16x32 v = load_nibble_pairs(p, 0);
  return part == 0
             ? _mm512_or_si512(_mm512_and_si512(v, _mm512_set1_epi32(15)), _mm512_slli_epi32(v, 16))
             : _mm512_or_si512(_mm512_srli_epi32(v, 16),
                               _mm512_and_si512(v, _mm512_set1_epi32(15 << 16)));
}
WICK_SIMD void add_scaled(I32x16& sums, const Dot<Quants::nibbles>& dot, I16x32 factors) {
  sums = _mm512_add_epi32(sums, _mm512_madd_epi16(dot.pairs, factors));
}

/// Bytes as two nibbles: u = low + 16·high.
struct ByteWeights {
  U8x64 low, high;
};
template <>
struct Dot<Quants::bytes> {
  I32x16 low, high;
};
WICK_SIMD void fold(Dot<Quants::bytes>&) {}
WICK_SIMD void start(Dot<Quants::bytes>& dot, int32_t) { dot.low = dot.high = zero_sums(); }
WICK_SIMD void accumulate(Dot<Quants::bytes>& dot, ByteWeights w, I8x4 x) {
  dot.low = add_pairs(dot.low, w.low, x);
  dot.high = add_pairs(dot.high, w.high, x);
}
WICK_SIMD F32x16 finish(const Dot<Quants::bytes>& dot, int32_t from) {
  return to_f32(combine_pairs(dot.low, 1, combine_pairs(dot.high, 16, splat_sums(from))));
}
WICK_SIMD ByteWeights byte_weights(U8x64 v) { return {low_nibbles(v), high_nibbles(v)}; }
constexpr ByteTable kNormalLow = byte_table(math::kNormalCode, 128, 0, 15);
constexpr ByteTable kNormalHigh = byte_table(math::kNormalCode, 128, 4, 15);
WICK_SIMD ByteWeights normal_weights(U8x64 nibbles) {
  return {look_up(kNormalLow.v, nibbles), look_up(kNormalHigh.v, nibbles)};
}
WICK_SIMD ByteWeights load_weights(const uint8_t* p) {
  return {load_bytes(p), load_bytes(p + kPlaneBytes)};
}
WICK_SIMD void store_weights(uint8_t* p, ByteWeights w) {
  store_bytes(p, w.low);
  store_bytes(p + kPlaneBytes, w.high);
}

#else

WICK_SIMD __m256i twice_each(__m128i bytes) {
  const __m256i v = _mm256_cvtepu8_epi32(bytes);
  return _mm256_or_si256(v, _mm256_slli_epi32(v, 16));
}
WICK_SIMD I16x32 load_factors(const uint8_t* p) {
  return {twice_each(load_eight(p)), twice_each(load_eight(p + 8))};
}
WICK_SIMD __m256i twice_part(__m256i pairs, int part) {
  const __m256i low = _mm256_set1_epi32(0xffff);
  return part == 0 ? _mm256_or_si256(_mm256_and_si256(pairs, low), _mm256_slli_epi32(pairs, 16))
                   : _mm256_or_si256(_mm256_srli_epi32(pairs, 16), _mm256_andnot_si256(low, pairs));
}
/// Factors of one of two parts.
WICK_SIMD I16x32 load_part_factors(const uint8_t* p, int part) {
  const I16x32 v = load_nibble_pairs(p, 0);
  return {twice_part(v.a, part), twice_part(v.b, part)};
}
WICK_SIMD void add_scaled(I32x16& sums, const Dot<Quants::nibbles>& dot, I16x32 factors) {
  sums.a = _mm256_add_epi32(sums.a, _mm256_madd_epi16(dot.pairs.a, factors.a));
  sums.b = _mm256_add_epi32(sums.b, _mm256_madd_epi16(dot.pairs.b, factors.b));
}

/// Bytes as magnitudes and signs; the signs are applied to the activations. Two products of 128·127
/// fit into 16 bits. The packed offset of 128 has been subtracted, so sums start from 0.
struct ByteWeights {
  U8x64 magnitude, value;
};
template <>
struct Dot<Quants::bytes> {
  I32x16 sums;
};
WICK_SIMD void fold(Dot<Quants::bytes>&) {}
WICK_SIMD void start(Dot<Quants::bytes>& dot, int32_t) { dot.sums = zero_sums(); }
WICK_SIMD __m256i signed_quads(__m256i sums, __m256i magnitude, __m256i value, I8x4 x) {
  const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, value));
  sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  asm("" : "+x"(sums));  // as in add_pairs
  return sums;
}
WICK_SIMD void accumulate(Dot<Quants::bytes>& dot, ByteWeights w, I8x4 x) {
  dot.sums.a = signed_quads(dot.sums.a, w.magnitude.a, w.value.a, x);
  dot.sums.b = signed_quads(dot.sums.b, w.magnitude.b, w.value.b, x);
}
WICK_SIMD F32x16 finish(const Dot<Quants::bytes>& dot, int32_t) { return to_f32(dot.sums); }
WICK_SIMD ByteWeights signed_weights(U8x64 value) {
  return {{_mm256_abs_epi8(value.a), _mm256_abs_epi8(value.b)}, value};
}
WICK_SIMD ByteWeights byte_weights(U8x64 v) {
  const __m256i flip = _mm256_set1_epi8(-128);
  return signed_weights({_mm256_xor_si256(v.a, flip), _mm256_xor_si256(v.b, flip)});
}
constexpr ByteTable kNormalValues = byte_table(math::kNormalCode, 0);
WICK_SIMD ByteWeights normal_weights(U8x64 nibbles) {
  return signed_weights(look_up(kNormalValues.v, nibbles));
}
WICK_SIMD ByteWeights load_weights(const uint8_t* p) {
  return {load_bytes(p), load_bytes(p + kPlaneBytes)};
}
WICK_SIMD void store_weights(uint8_t* p, ByteWeights w) {
  store_bytes(p, w.magnitude);
  store_bytes(p + kPlaneBytes, w.value);
}

#endif
#endif

/// How many dot products a tile of kColumns columns has: products of matrices have an even number.
#if defined(WICK_MATRIX_INT8)
template <int kColumns>
constexpr int kDotColumns = kColumns == 1 ? 1 : (kColumns + 1) / 2 * 2;
#else
template <int kColumns>
constexpr int kDotColumns = kColumns;
#endif

}  // namespace
}  // namespace wick::cpu::WICK_ISA
