#pragma once

// int8 arithmetic in pairs of registers of 32 bytes: AVX2; simd/int8.h says what the types and
// functions are.

#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/simd/vec16.h"

namespace wick::cpu::WICK_ISA {
namespace {

struct U8x64 {
  __m256i a, b;
};
using I8x4 = __m256i;
using I32x16 = U8x64;
using I16x32 = U8x64;

WICK_SIMD U8x64 load_bytes(const uint8_t* p) {
  const auto* v = reinterpret_cast<const __m256i*>(p);
  return {_mm256_load_si256(v), _mm256_load_si256(v + 1)};
}
WICK_SIMD void store_bytes(uint8_t* p, U8x64 v) {
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_store_si256(to, v.a);
  _mm256_store_si256(to + 1, v.b);
}
WICK_SIMD U8x64 low_nibbles(U8x64 v) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(v.a, mask), _mm256_and_si256(v.b, mask)};
}
WICK_SIMD U8x64 high_nibbles(U8x64 v) {
  return low_nibbles({_mm256_srli_epi16(v.a, 4), _mm256_srli_epi16(v.b, 4)});
}
using Halves = uint16_t __attribute__((vector_size(32)));
WICK_SIMD __m256i add_half_bit(__m256i low, __m256i bits, int bit) {
  const auto v = reinterpret_cast<Halves>(bits);
  const auto moved = reinterpret_cast<__m256i>(bit < 4 ? v << (4 - bit) : v >> (bit - 4));
  return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(16)));
}
/// low | bit `bit` of each byte as bit 4.
WICK_SIMD U8x64 add_bit(U8x64 low, U8x64 bits, int bit) {
  return {add_half_bit(low.a, bits.a, bit), add_half_bit(low.b, bits.b, bit)};
}
WICK_SIMD __m256i half_field(__m256i v, int shift, int mask) {
  const auto moved = reinterpret_cast<__m256i>(reinterpret_cast<Halves>(v) >> shift);
  return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(mask)));
}
/// (v >> shift) & mask of each byte.
WICK_SIMD U8x64 bit_field(U8x64 v, int shift, int mask) {
  return {half_field(v.a, shift, mask), half_field(v.b, shift, mask)};
}
/// The top two bits of each byte of `low`, and bit 6 + `bit` of `high` as bit 2.
WICK_SIMD U8x64 top_three(U8x64 low, U8x64 high, int bit) {
  const U8x64 two = bit_field(low, 6, 3), third = bit_field(high, 4 + bit, 4);
  return {_mm256_or_si256(two.a, third.a), _mm256_or_si256(two.b, third.b)};
}
/// Entries of a table of 16 bytes.
WICK_SIMD U8x64 look_up(const uint8_t* table, U8x64 nibbles) {
  const __m256i t =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
  return {_mm256_shuffle_epi8(t, nibbles.a), _mm256_shuffle_epi8(t, nibbles.b)};
}
WICK_SIMD U8x64 low_six(U8x64 v) {
  const __m256i mask = _mm256_set1_epi8(63);
  return {_mm256_and_si256(v.a, mask), _mm256_and_si256(v.b, mask)};
}
WICK_SIMD __m256i top_half_pairs(__m256i a, __m256i b, __m256i c) {
  const __m256i low = _mm256_and_si256(_mm256_srli_epi16(a, 6), _mm256_set1_epi8(0x03));
  const __m256i middle = _mm256_and_si256(_mm256_srli_epi16(b, 4), _mm256_set1_epi8(0x0c));
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(c, 2), _mm256_set1_epi8(0x30));
  return _mm256_or_si256(_mm256_or_si256(low, middle), high);
}
/// The top two bits of each byte of a, b and c, those of a lowest.
WICK_SIMD U8x64 top_pairs(U8x64 a, U8x64 b, U8x64 c) {
  return {top_half_pairs(a.a, b.a, c.a), top_half_pairs(a.b, b.b, c.b)};
}
WICK_SIMD __m128i load_eight(const uint8_t* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}
WICK_SIMD F32x16 to_f32(I32x16 v) {
  return {{reinterpret_cast<Vec<float>>(_mm256_cvtepi32_ps(v.a)),
           reinterpret_cast<Vec<float>>(_mm256_cvtepi32_ps(v.b))}};
}
WICK_SIMD F32x16 load_u8(const uint8_t* p) {
  return to_f32({_mm256_cvtepu8_epi32(load_eight(p)), _mm256_cvtepu8_epi32(load_eight(p + 8))});
}
WICK_SIMD F32x16 load_i8(const uint8_t* p) {
  return to_f32({_mm256_cvtepi8_epi32(load_eight(p)), _mm256_cvtepi8_epi32(load_eight(p + 8))});
}
WICK_SIMD Vec<float> load_half_e8m0(const uint8_t* p) {
  const __m256i e = _mm256_cvtepu8_epi32(load_eight(p)), one = _mm256_set1_epi32(1);
  return reinterpret_cast<Vec<float>>(
      _mm256_max_epi32(_mm256_slli_epi32(_mm256_sub_epi32(e, one), 23),
                       _mm256_slli_epi32(_mm256_add_epi32(e, one), 21)));
}
/// 2^(e − 128) of 16 bytes e. For e above 1 the exponent field is larger than the second operand,
/// the mantissa of the denormals.
WICK_SIMD F32x16 load_e8m0(const uint8_t* p) {
  return {{load_half_e8m0(p), load_half_e8m0(p + 8)}};
}
WICK_SIMD I8x4 load_quad(const uint8_t* p) {
  int32_t q;
  __builtin_memcpy(&q, p, 4);
  return _mm256_set1_epi32(q);
}

WICK_SIMD I32x16 zero_sums() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
WICK_SIMD I32x16 add_pairs(I32x16 sums, U8x64 w, I8x4 x) {
  sums.a = _mm256_add_epi16(sums.a, _mm256_maddubs_epi16(w.a, x));
  sums.b = _mm256_add_epi16(sums.b, _mm256_maddubs_epi16(w.b, x));
  // Without this GCC sums all products of a block as a tree, for which it has too few registers.
  asm("" : "+x"(sums.a), "+x"(sums.b));
  return sums;
}
WICK_SIMD I32x16 combine_pairs(I32x16 pairs, int16_t factor, I32x16 start) {
  const __m256i f = _mm256_set1_epi16(factor);
  return {_mm256_add_epi32(_mm256_madd_epi16(pairs.a, f), start.a),
          _mm256_add_epi32(_mm256_madd_epi16(pairs.b, f), start.b)};
}
WICK_SIMD I32x16 splat_sums(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
WICK_SIMD I16x32 load_pairs(const uint8_t* p) {
  const auto* v = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtepu8_epi16(_mm_loadu_si128(v)), _mm256_cvtepu8_epi16(_mm_loadu_si128(v + 1))};
}
WICK_SIMD I16x32 load_nibble_pairs(const uint8_t* p, int half) {
  const I16x32 v = load_pairs(p);
  if (half == 0) return low_nibbles(v);
  return {_mm256_srli_epi16(v.a, 4), _mm256_srli_epi16(v.b, 4)};
}
WICK_SIMD I32x16 dot_pairs(I16x32 w, const uint8_t* x) {
  const I8x4 two = load_quad(x);
  return {_mm256_madd_epi16(w.a, two), _mm256_madd_epi16(w.b, two)};
}
WICK_SIMD I32x16 dot_pairs(I16x32 w, const uint8_t* x, I32x16 sums) {
  const I32x16 more = dot_pairs(w, x);
  return {_mm256_add_epi32(sums.a, more.a), _mm256_add_epi32(sums.b, more.b)};
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
