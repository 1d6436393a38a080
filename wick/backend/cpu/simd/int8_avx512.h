#pragma once

// int8 arithmetic in registers of 64 bytes: AVX-512 BW, with or without VNNI; simd/int8.h says what
// the types and functions are.

#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/simd/vec16.h"

namespace wick::cpu::WICK_ISA {
namespace {

using U8x64 = __m512i;
using I8x4 = __m512i;
using I32x16 = __m512i;
using I16x32 = __m512i;

WICK_SIMD U8x64 load_bytes(const uint8_t* p) { return _mm512_load_si512(p); }
WICK_SIMD void store_bytes(uint8_t* p, U8x64 v) { _mm512_store_si512(p, v); }
WICK_SIMD U8x64 low_nibbles(U8x64 v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
WICK_SIMD U8x64 high_nibbles(U8x64 v) {
  return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}
using Halves = uint16_t __attribute__((vector_size(64)));
/// low | bit `bit` of each byte as bit 4.
WICK_SIMD U8x64 add_bit(U8x64 low, U8x64 bits, int bit) {
  const auto v = reinterpret_cast<Halves>(bits);
  const auto moved = reinterpret_cast<U8x64>(bit < 4 ? v << (4 - bit) : v >> (bit - 4));
  return _mm512_ternarylogic_epi32(low, moved, _mm512_set1_epi8(16), 0xf8);  // a | (b & c)
}
/// (v >> shift) & mask of each byte.
WICK_SIMD U8x64 bit_field(U8x64 v, int shift, int mask) {
  const auto moved = reinterpret_cast<U8x64>(reinterpret_cast<Halves>(v) >> shift);
  return _mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(mask)));
}
/// The top two bits of each byte of `low`, and bit 6 + `bit` of `high` as bit 2.
WICK_SIMD U8x64 top_three(U8x64 low, U8x64 high, int bit) {
  constexpr int kSelect = 0xe4;  // c ? a : b
  const auto third = reinterpret_cast<U8x64>(reinterpret_cast<Halves>(high) >> (4 + bit));
  const U8x64 all =
      _mm512_ternarylogic_epi32(third, _mm512_srli_epi16(low, 6), _mm512_set1_epi8(0x3c), kSelect);
  return _mm512_and_si512(all, _mm512_set1_epi8(7));
}
/// Entries of a table of 16 bytes.
WICK_SIMD U8x64 look_up(const uint8_t* table, U8x64 nibbles) {
  const __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(v), nibbles);
}
WICK_SIMD U8x64 low_six(U8x64 v) { return _mm512_and_si512(v, _mm512_set1_epi8(63)); }
/// The top two bits of each byte of a, b and c, those of a lowest.
WICK_SIMD U8x64 top_pairs(U8x64 a, U8x64 b, U8x64 c) {
  constexpr int kSelect = 0xe4;  // c ? a : b
  const U8x64 high = _mm512_ternarylogic_epi32(_mm512_srli_epi16(c, 2), _mm512_srli_epi16(b, 4),
                                               _mm512_set1_epi8(0x30), kSelect);
  const U8x64 all =
      _mm512_ternarylogic_epi32(high, _mm512_srli_epi16(a, 6), _mm512_set1_epi8(0x3c), kSelect);
  return low_six(all);
}
WICK_SIMD F32x16 to_f32(I32x16 v) {
  return {{reinterpret_cast<Vec<float>>(_mm512_cvtepi32_ps(v))}};
}
WICK_SIMD F32x16 load_u8(const uint8_t* p) {
  return to_f32(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
WICK_SIMD F32x16 load_i8(const uint8_t* p) {
  return to_f32(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
/// 2^(e − 128) of 16 bytes e. For e above 1 the first operand, the exponent field, is larger; the
/// second is the mantissa of the denormals.
WICK_SIMD F32x16 load_e8m0(const uint8_t* p) {
  const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i bits = _mm512_max_epi32(_mm512_slli_epi32(_mm512_sub_epi32(e, one), 23),
                                        _mm512_slli_epi32(_mm512_add_epi32(e, one), 21));
  return {{reinterpret_cast<Vec<float>>(bits)}};
}
WICK_SIMD I8x4 load_quad(const uint8_t* p) {
  int32_t q;
  __builtin_memcpy(&q, p, 4);
  return _mm512_set1_epi32(q);
}

WICK_SIMD I32x16 zero_sums() { return _mm512_setzero_si512(); }
WICK_SIMD I32x16 add_pairs(I32x16 sums, U8x64 w, I8x4 x) {
  sums = _mm512_add_epi16(sums, _mm512_maddubs_epi16(w, x));
  // Without this GCC sums all products of a block as a tree, for which it has too few registers.
  asm("" : "+v"(sums));
  return sums;
}
WICK_SIMD I32x16 combine_pairs(I32x16 pairs, int16_t factor, I32x16 start) {
  return _mm512_add_epi32(_mm512_madd_epi16(pairs, _mm512_set1_epi16(factor)), start);
}
WICK_SIMD I32x16 splat_sums(int32_t x) { return _mm512_set1_epi32(x); }
WICK_SIMD I16x32 load_pairs(const uint8_t* p) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
WICK_SIMD I16x32 load_nibble_pairs(const uint8_t* p, int half) {
  const I16x32 v = load_pairs(p);
  return half == 0 ? _mm512_and_si512(v, _mm512_set1_epi16(15)) : _mm512_srli_epi16(v, 4);
}
WICK_SIMD I32x16 dot_pairs(I16x32 w, const uint8_t* x) {
  return _mm512_madd_epi16(w, load_quad(x));
}
WICK_SIMD I32x16 dot_pairs(I16x32 w, const uint8_t* x, I32x16 sums) {
#if defined(__AVX512VNNI__)
  return _mm512_dpwssd_epi32(sums, w, load_quad(x));
#else
  return _mm512_add_epi32(sums, dot_pairs(w, x));
#endif
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
