#pragma once

#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/linear/quantized_types.h"
#include "wick/math/half.h"

// Sixteen rows side by side, in the widest registers of the instruction set that this is compiled
// for. Only kernel sources include this header; everything has internal linkage.
//
// F32     16 floats
// Bytes   64 unsigned bytes: four columns of 16 rows
// Quad    four int8 activations, repeated for every row
// Pairs   two int16 of 16 rows
// Factors integers by which the 16 rows' dot products of a block are multiplied, and Scaled, the
//         exact sums of such products: below 2^24, so that floats hold them as well
// Weights what four columns of a type's rows unpack to, and Dot<kQuants>, the sums of their
// products
//         with activations over a block or a part of one. With VNNI that is one instruction.
//         Elsewhere pairs of products are summed in 16 bits, as many quads' as these hold, a lane
//         seeing two products a quad: eight of nibbles, 16·15·127 = 30480 < 2^15; four of five
//         bits, 8·31·127 = 31496; two of six bits, 4·63·127 = 32004. Bytes take twice the work.

#define WICK_LANES static inline __attribute__((always_inline))

namespace wick::cpu::WICK_ISA {
namespace {

#if defined(__AVX512BW__)

using F32 = __m512;
using Bytes = __m512i;
using Quad = __m512i;
using Sums = __m512i;
using Pairs = __m512i;

WICK_LANES F32 zero() { return _mm512_setzero_ps(); }
WICK_LANES F32 splat(float x) { return _mm512_set1_ps(x); }
WICK_LANES F32 load(const float* p) { return _mm512_loadu_ps(p); }
WICK_LANES void store(float* p, F32 v) { _mm512_storeu_ps(p, v); }
WICK_LANES F32 add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
WICK_LANES F32 mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
WICK_LANES F32 fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
WICK_LANES F32 load_f16(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
WICK_LANES Bytes load_bytes(const uint8_t* p) { return _mm512_load_si512(p); }
WICK_LANES void store_bytes(uint8_t* p, Bytes v) { _mm512_store_si512(p, v); }
WICK_LANES Bytes low_nibbles(Bytes v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
WICK_LANES Bytes high_nibbles(Bytes v) {
  return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}
using Halves = uint16_t __attribute__((vector_size(64)));
/// low | bit `bit` of each byte as bit 4.
WICK_LANES Bytes add_bit(Bytes low, Bytes bits, int bit) {
  const auto v = reinterpret_cast<Halves>(bits);
  const auto moved = reinterpret_cast<Bytes>(bit < 4 ? v << (4 - bit) : v >> (bit - 4));
  return _mm512_ternarylogic_epi32(low, moved, _mm512_set1_epi8(16), 0xf8);  // a | (b & c)
}
WICK_LANES Bytes low_six(Bytes v) { return _mm512_and_si512(v, _mm512_set1_epi8(63)); }
/// The top two bits of each byte of a, b and c, those of a lowest.
WICK_LANES Bytes top_pairs(Bytes a, Bytes b, Bytes c) {
  constexpr int kSelect = 0xe4;  // c ? a : b
  const Bytes high = _mm512_ternarylogic_epi32(_mm512_srli_epi16(c, 2), _mm512_srli_epi16(b, 4),
                                               _mm512_set1_epi8(0x30), kSelect);
  const Bytes all =
      _mm512_ternarylogic_epi32(high, _mm512_srli_epi16(a, 6), _mm512_set1_epi8(0x3c), kSelect);
  return low_six(all);
}
WICK_LANES F32 load_u8(const uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
WICK_LANES F32 load_i8(const uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
WICK_LANES Quad load_quad(const uint8_t* p) {
  int32_t q;
  __builtin_memcpy(&q, p, 4);
  return _mm512_set1_epi32(q);
}
WICK_LANES F32 to_f32(Sums v) { return _mm512_cvtepi32_ps(v); }

WICK_LANES Sums zero_sums() { return _mm512_setzero_si512(); }
WICK_LANES Sums add_pairs(Sums sums, Bytes w, Quad x) {
  sums = _mm512_add_epi16(sums, _mm512_maddubs_epi16(w, x));
  // Without this GCC sums all products of a block as a tree, for which it has too few registers.
  asm("" : "+v"(sums));
  return sums;
}
WICK_LANES Sums join_pairs(Sums pairs, int16_t factor, Sums start) {
  return _mm512_add_epi32(_mm512_madd_epi16(pairs, _mm512_set1_epi16(factor)), start);
}
WICK_LANES Sums splat_sums(int32_t x) { return _mm512_set1_epi32(x); }
WICK_LANES Pairs load_pairs(const uint8_t* p) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
WICK_LANES Sums dot_pairs(Pairs w, const uint8_t* x) { return _mm512_madd_epi16(w, load_quad(x)); }
WICK_LANES Sums dot_pairs(Pairs w, const uint8_t* x, Sums sums) {
#if defined(__AVX512VNNI__)
  return _mm512_dpwssd_epi32(sums, w, load_quad(x));
#else
  return _mm512_add_epi32(sums, dot_pairs(w, x));
#endif
}

#elif defined(__AVX2__) && defined(__FMA__)

struct F32 {
  __m256 a, b;
};
struct Bytes {
  __m256i a, b;
};
using Quad = __m256i;
using Sums = Bytes;
using Pairs = Bytes;

WICK_LANES F32 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
WICK_LANES F32 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
WICK_LANES F32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
WICK_LANES void store(float* p, F32 v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
WICK_LANES F32 add(F32 x, F32 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
WICK_LANES F32 mul(F32 x, F32 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
WICK_LANES F32 fma(F32 x, F32 y, F32 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
WICK_LANES F32 load_f16(const uint8_t* p) {
  const auto* half = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(half)), _mm256_cvtph_ps(_mm_loadu_si128(half + 1))};
}
WICK_LANES Bytes load_bytes(const uint8_t* p) {
  const auto* v = reinterpret_cast<const __m256i*>(p);
  return {_mm256_load_si256(v), _mm256_load_si256(v + 1)};
}
WICK_LANES void store_bytes(uint8_t* p, Bytes v) {
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_store_si256(to, v.a);
  _mm256_store_si256(to + 1, v.b);
}
WICK_LANES Bytes low_nibbles(Bytes v) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(v.a, mask), _mm256_and_si256(v.b, mask)};
}
WICK_LANES Bytes high_nibbles(Bytes v) {
  return low_nibbles({_mm256_srli_epi16(v.a, 4), _mm256_srli_epi16(v.b, 4)});
}
using Halves = uint16_t __attribute__((vector_size(32)));
WICK_LANES __m256i add_half_bit(__m256i low, __m256i bits, int bit) {
  const auto v = reinterpret_cast<Halves>(bits);
  const auto moved = reinterpret_cast<__m256i>(bit < 4 ? v << (4 - bit) : v >> (bit - 4));
  return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(16)));
}
/// low | bit `bit` of each byte as bit 4.
WICK_LANES Bytes add_bit(Bytes low, Bytes bits, int bit) {
  return {add_half_bit(low.a, bits.a, bit), add_half_bit(low.b, bits.b, bit)};
}
WICK_LANES Bytes low_six(Bytes v) {
  const __m256i mask = _mm256_set1_epi8(63);
  return {_mm256_and_si256(v.a, mask), _mm256_and_si256(v.b, mask)};
}
WICK_LANES __m256i top_half_pairs(__m256i a, __m256i b, __m256i c) {
  const __m256i low = _mm256_and_si256(_mm256_srli_epi16(a, 6), _mm256_set1_epi8(0x03));
  const __m256i middle = _mm256_and_si256(_mm256_srli_epi16(b, 4), _mm256_set1_epi8(0x0c));
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(c, 2), _mm256_set1_epi8(0x30));
  return _mm256_or_si256(_mm256_or_si256(low, middle), high);
}
/// The top two bits of each byte of a, b and c, those of a lowest.
WICK_LANES Bytes top_pairs(Bytes a, Bytes b, Bytes c) {
  return {top_half_pairs(a.a, b.a, c.a), top_half_pairs(a.b, b.b, c.b)};
}
WICK_LANES __m128i load_eight(const uint8_t* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}
WICK_LANES F32 load_u8(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_eight(p))),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_eight(p + 8)))};
}
WICK_LANES F32 load_i8(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_eight(p))),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_eight(p + 8)))};
}
WICK_LANES Quad load_quad(const uint8_t* p) {
  int32_t q;
  __builtin_memcpy(&q, p, 4);
  return _mm256_set1_epi32(q);
}
WICK_LANES F32 to_f32(Sums v) { return {_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)}; }

WICK_LANES Sums zero_sums() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
WICK_LANES Sums add_pairs(Sums sums, Bytes w, Quad x) {
  sums.a = _mm256_add_epi16(sums.a, _mm256_maddubs_epi16(w.a, x));
  sums.b = _mm256_add_epi16(sums.b, _mm256_maddubs_epi16(w.b, x));
  // Without this GCC sums all products of a block as a tree, for which it has too few registers.
  asm("" : "+x"(sums.a), "+x"(sums.b));
  return sums;
}
WICK_LANES Sums join_pairs(Sums pairs, int16_t factor, Sums start) {
  const __m256i f = _mm256_set1_epi16(factor);
  return {_mm256_add_epi32(_mm256_madd_epi16(pairs.a, f), start.a),
          _mm256_add_epi32(_mm256_madd_epi16(pairs.b, f), start.b)};
}
WICK_LANES Sums splat_sums(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
WICK_LANES Pairs load_pairs(const uint8_t* p) {
  const auto* v = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtepu8_epi16(_mm_loadu_si128(v)), _mm256_cvtepu8_epi16(_mm_loadu_si128(v + 1))};
}
WICK_LANES Sums dot_pairs(Pairs w, const uint8_t* x) {
  const Quad two = load_quad(x);
  return {_mm256_madd_epi16(w.a, two), _mm256_madd_epi16(w.b, two)};
}
WICK_LANES Sums dot_pairs(Pairs w, const uint8_t* x, Sums sums) {
  const Sums more = dot_pairs(w, x);
  return {_mm256_add_epi32(sums.a, more.a), _mm256_add_epi32(sums.b, more.b)};
}

#else

// Plain loops over 16 rows, which a compiler turns into what the processor has.
#define WICK_PORTABLE_LANES 1

struct F32 {
  float v[16];
};
struct Bytes {
  uint8_t v[64];
};
struct Quad {
  int16_t v[8];  // twice
};
struct Sums {
  int32_t v[16];
};
struct Pairs {
  int16_t v[32];
};

WICK_LANES F32 splat(float x) {
  F32 y;
  for (float& e : y.v) e = x;
  return y;
}
WICK_LANES F32 zero() { return splat(0.0f); }
WICK_LANES F32 load(const float* p) {
  F32 y;
  __builtin_memcpy(&y, p, sizeof y);
  return y;
}
WICK_LANES void store(float* p, const F32& v) { __builtin_memcpy(p, &v, sizeof v); }
WICK_LANES F32 add(F32 a, const F32& b) {
  for (int r = 0; r < 16; ++r) a.v[r] += b.v[r];
  return a;
}
WICK_LANES F32 mul(F32 a, const F32& b) {
  for (int r = 0; r < 16; ++r) a.v[r] *= b.v[r];
  return a;
}
WICK_LANES F32 fma(const F32& a, const F32& b, F32 c) {
  for (int r = 0; r < 16; ++r) c.v[r] = math::fma(a.v[r], b.v[r], c.v[r]);
  return c;
}
WICK_LANES F32 load_f16(const uint8_t* p) {
  math::f16 half[16];
  __builtin_memcpy(half, p, sizeof half);
  F32 y;
  for (int r = 0; r < 16; ++r) y.v[r] = math::to_f32(half[r]);
  return y;
}
WICK_LANES Bytes load_bytes(const uint8_t* p) {
  Bytes y;
  __builtin_memcpy(&y, p, sizeof y);
  return y;
}
WICK_LANES void store_bytes(uint8_t* p, const Bytes& v) { __builtin_memcpy(p, &v, sizeof v); }
WICK_LANES Bytes low_nibbles(Bytes v) {
  for (uint8_t& e : v.v) e = static_cast<uint8_t>(e & 15);
  return v;
}
WICK_LANES Bytes high_nibbles(Bytes v) {
  for (uint8_t& e : v.v) e = static_cast<uint8_t>(e >> 4);
  return v;
}
/// low | bit `bit` of each byte as bit 4.
WICK_LANES Bytes add_bit(Bytes low, const Bytes& bits, int bit) {
  for (int i = 0; i < 64; ++i) {
    low.v[i] = static_cast<uint8_t>(low.v[i] | (bits.v[i] >> bit & 1) << 4);
  }
  return low;
}
WICK_LANES Bytes low_six(Bytes v) {
  for (uint8_t& e : v.v) e = static_cast<uint8_t>(e & 63);
  return v;
}
/// The top two bits of each byte of a, b and c, those of a lowest.
WICK_LANES Bytes top_pairs(Bytes a, const Bytes& b, const Bytes& c) {
  for (int i = 0; i < 64; ++i) {
    a.v[i] = static_cast<uint8_t>(a.v[i] >> 6 | b.v[i] >> 6 << 2 | c.v[i] >> 6 << 4);
  }
  return a;
}
WICK_LANES F32 load_u8(const uint8_t* p) {
  F32 y;
  for (int r = 0; r < 16; ++r) y.v[r] = static_cast<float>(p[r]);
  return y;
}
WICK_LANES F32 load_i8(const uint8_t* p) {
  F32 y;
  for (int r = 0; r < 16; ++r) y.v[r] = static_cast<float>(static_cast<int8_t>(p[r]));
  return y;
}
WICK_LANES Quad load_quad(const uint8_t* p) {
  int8_t x[4];
  __builtin_memcpy(x, p, sizeof x);
  Quad q;
  for (int i = 0; i < 8; ++i) q.v[i] = x[i & 3];
  return q;
}
WICK_LANES F32 to_f32(const Sums& v) {
  F32 y;
  for (int r = 0; r < 16; ++r) y.v[r] = static_cast<float>(v.v[r]);
  return y;
}
WICK_LANES Pairs load_pairs(const uint8_t* p) {
  Pairs y;
  for (int i = 0; i < 32; ++i) y.v[i] = p[i];
  return y;
}
WICK_LANES Sums dot_pairs(const Pairs& w, const uint8_t* x, Sums sums) {
  int16_t two[2];
  __builtin_memcpy(two, x, sizeof two);
  for (int r = 0; r < 16; ++r) sums.v[r] += w.v[2 * r] * two[0] + w.v[2 * r + 1] * two[1];
  return sums;
}
WICK_LANES Sums dot_pairs(const Pairs& w, const uint8_t* x) { return dot_pairs(w, x, Sums{}); }

#endif

/// Eight quads of a block, unpacked.
constexpr int kPlaneBytes = 512;

/// After how many quads a Dot is folded, where sums of pairs need it.
template <Quants kQuants>
constexpr int kPairQuads = kQuants == Quants::six    ? 2
                           : kQuants == Quants::five ? 4
                                                     : 8;

#if defined(__AVX512VNNI__)

using ByteWeights = Bytes;
constexpr int kBytePlanes = 1;

template <Quants kQuants>
struct Dot {
  Sums sums;
};
template <Quants kQuants>
WICK_LANES void start(Dot<kQuants>& dot, int32_t from) {
  dot.sums = splat_sums(from);
}
template <Quants kQuants>
WICK_LANES void accumulate(Dot<kQuants>& dot, Bytes w, Quad x) {
  dot.sums = _mm512_dpbusd_epi32(dot.sums, w, x);
}
template <Quants kQuants>
WICK_LANES void fold(Dot<kQuants>&) {}
template <Quants kQuants>
WICK_LANES F32 finish(const Dot<kQuants>& dot, int32_t) {
  return to_f32(dot.sums);
}

using Factors = F32;
using Scaled = F32;
WICK_LANES Factors load_factors(const uint8_t* p) { return load_u8(p); }
WICK_LANES Scaled zero_scaled() { return zero(); }
WICK_LANES void add_scaled(Scaled& sums, const Dot<Quants::nibbles>& dot, Factors factors) {
  sums = fma(factors, to_f32(dot.sums), sums);
}
WICK_LANES F32 to_floats(Scaled sums) { return sums; }

WICK_LANES ByteWeights byte_weights(Bytes v) { return v; }
WICK_LANES ByteWeights load_weights(const uint8_t* p) { return load_bytes(p); }
WICK_LANES void store_weights(uint8_t* p, ByteWeights w) { store_bytes(p, w); }

#elif defined(WICK_PORTABLE_LANES)

using ByteWeights = Bytes;
constexpr int kBytePlanes = 1;

/// One sum for each byte of a vector, so that a loop over them needs no shuffles; nibbles' sums fit
/// into 16 bits (8·15·127), bytes' products do (255·127).
template <class Sum>
struct ByteSums {
  Sum v[64];
};
template <Quants kQuants>
struct Dot : ByteSums<int32_t> {};
template <>
struct Dot<Quants::nibbles> : ByteSums<int16_t> {};

template <Quants kQuants>
WICK_LANES void start(Dot<kQuants>& dot, int32_t) {
  for (auto& sum : dot.v) sum = 0;
}
template <Quants kQuants>
WICK_LANES void fold(Dot<kQuants>&) {}
template <class Sum>
WICK_LANES void accumulate(ByteSums<Sum>& dot, const Bytes& w, const Quad& x) {
  for (int i = 0; i < 64; i += 8) {
    for (int j = 0; j < 8; ++j) {
      const auto product = static_cast<int16_t>(w.v[i + j] * x.v[j]);
      dot.v[i + j] = static_cast<Sum>(dot.v[i + j] + product);
    }
  }
}
template <class Sum>
WICK_LANES F32 finish(const ByteSums<Sum>& dot, int32_t from) {
  Sums sums;
  for (int r = 0; r < 16; ++r) {
    sums.v[r] = from + dot.v[4 * r] + dot.v[4 * r + 1] + dot.v[4 * r + 2] + dot.v[4 * r + 3];
  }
  return to_f32(sums);
}

using Factors = F32;
using Scaled = F32;
WICK_LANES Factors load_factors(const uint8_t* p) { return load_u8(p); }
WICK_LANES Scaled zero_scaled() { return zero(); }
/// Not fma, which is a call here: nothing is rounded.
WICK_LANES void add_scaled(Scaled& sums, const Dot<Quants::nibbles>& dot, const Factors& factors) {
  sums = add(sums, mul(factors, finish(dot, 0)));
}
WICK_LANES F32 to_floats(const Scaled& sums) { return sums; }

WICK_LANES ByteWeights byte_weights(const Bytes& v) { return v; }
WICK_LANES ByteWeights load_weights(const uint8_t* p) { return load_bytes(p); }
WICK_LANES void store_weights(uint8_t* p, const ByteWeights& w) { store_bytes(p, w); }

#else

/// Five and six bits, by sums of pairs that are folded in between.
template <Quants kQuants>
struct Dot {
  Sums pairs, sums;
};
template <Quants kQuants>
WICK_LANES void start(Dot<kQuants>& dot, int32_t from) {
  dot.pairs = zero_sums();
  dot.sums = splat_sums(from);
}
template <Quants kQuants>
WICK_LANES void accumulate(Dot<kQuants>& dot, Bytes w, Quad x) {
  dot.pairs = add_pairs(dot.pairs, w, x);
}
template <Quants kQuants>
WICK_LANES void fold(Dot<kQuants>& dot) {
  dot.sums = join_pairs(dot.pairs, 1, dot.sums);
  dot.pairs = zero_sums();
}
template <Quants kQuants>
WICK_LANES F32 finish(const Dot<kQuants>& dot, int32_t) {
  return to_f32(dot.sums);
}

/// Nibbles, by sums of pairs that hold a whole block.
template <>
struct Dot<Quants::nibbles> {
  Sums pairs;
};
WICK_LANES void start(Dot<Quants::nibbles>& dot, int32_t) { dot.pairs = zero_sums(); }
WICK_LANES void accumulate(Dot<Quants::nibbles>& dot, Bytes w, Quad x) {
  dot.pairs = add_pairs(dot.pairs, w, x);
}
WICK_LANES void fold(Dot<Quants::nibbles>&) {}
WICK_LANES F32 finish(const Dot<Quants::nibbles>& dot, int32_t from) {
  return to_f32(join_pairs(dot.pairs, 1, splat_sums(from)));
}

/// A block's factors where its sums of pairs, of 16 bits, are joined: in both halves of a word.
using Factors = Bytes;
using Scaled = Sums;
WICK_LANES Scaled zero_scaled() { return zero_sums(); }
WICK_LANES F32 to_floats(Scaled sums) { return to_f32(sums); }

constexpr int kBytePlanes = 2;

#if defined(__AVX512BW__)

WICK_LANES Factors load_factors(const uint8_t* p) {
  const __m512i v = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm512_or_si512(v, _mm512_slli_epi32(v, 16));
}
WICK_LANES void add_scaled(Scaled& sums, const Dot<Quants::nibbles>& dot, Factors factors) {
  sums = _mm512_add_epi32(sums, _mm512_madd_epi16(dot.pairs, factors));
}

/// Bytes as two nibbles: u = low + 16·high.
struct ByteWeights {
  Bytes low, high;
};
template <>
struct Dot<Quants::bytes> {
  Sums low, high;
};
WICK_LANES void fold(Dot<Quants::bytes>&) {}
WICK_LANES void start(Dot<Quants::bytes>& dot, int32_t) { dot.low = dot.high = zero_sums(); }
WICK_LANES void accumulate(Dot<Quants::bytes>& dot, ByteWeights w, Quad x) {
  dot.low = add_pairs(dot.low, w.low, x);
  dot.high = add_pairs(dot.high, w.high, x);
}
WICK_LANES F32 finish(const Dot<Quants::bytes>& dot, int32_t from) {
  return to_f32(join_pairs(dot.low, 1, join_pairs(dot.high, 16, splat_sums(from))));
}
WICK_LANES ByteWeights byte_weights(Bytes v) { return {low_nibbles(v), high_nibbles(v)}; }
WICK_LANES ByteWeights load_weights(const uint8_t* p) {
  return {load_bytes(p), load_bytes(p + kPlaneBytes)};
}
WICK_LANES void store_weights(uint8_t* p, ByteWeights w) {
  store_bytes(p, w.low);
  store_bytes(p + kPlaneBytes, w.high);
}

#else

WICK_LANES __m256i twice_each(__m128i bytes) {
  const __m256i v = _mm256_cvtepu8_epi32(bytes);
  return _mm256_or_si256(v, _mm256_slli_epi32(v, 16));
}
WICK_LANES Factors load_factors(const uint8_t* p) {
  return {twice_each(load_eight(p)), twice_each(load_eight(p + 8))};
}
WICK_LANES void add_scaled(Scaled& sums, const Dot<Quants::nibbles>& dot, Factors factors) {
  sums.a = _mm256_add_epi32(sums.a, _mm256_madd_epi16(dot.pairs.a, factors.a));
  sums.b = _mm256_add_epi32(sums.b, _mm256_madd_epi16(dot.pairs.b, factors.b));
}

/// Bytes as magnitudes and signs, the signs given to the activations: two products of 128·127 still
/// fit into 16 bits. The packed offset of 128 is gone, so sums start from 0.
struct ByteWeights {
  Bytes magnitude, value;
};
template <>
struct Dot<Quants::bytes> {
  Sums sums;
};
WICK_LANES void fold(Dot<Quants::bytes>&) {}
WICK_LANES void start(Dot<Quants::bytes>& dot, int32_t) { dot.sums = zero_sums(); }
WICK_LANES __m256i signed_quads(__m256i sums, __m256i magnitude, __m256i value, Quad x) {
  const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, value));
  sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  asm("" : "+x"(sums));  // as in add_pairs
  return sums;
}
WICK_LANES void accumulate(Dot<Quants::bytes>& dot, ByteWeights w, Quad x) {
  dot.sums.a = signed_quads(dot.sums.a, w.magnitude.a, w.value.a, x);
  dot.sums.b = signed_quads(dot.sums.b, w.magnitude.b, w.value.b, x);
}
WICK_LANES F32 finish(const Dot<Quants::bytes>& dot, int32_t) { return to_f32(dot.sums); }
WICK_LANES ByteWeights byte_weights(Bytes v) {
  const __m256i flip = _mm256_set1_epi8(-128);
  const Bytes value = {_mm256_xor_si256(v.a, flip), _mm256_xor_si256(v.b, flip)};
  return {{_mm256_abs_epi8(value.a), _mm256_abs_epi8(value.b)}, value};
}
WICK_LANES ByteWeights load_weights(const uint8_t* p) {
  return {load_bytes(p), load_bytes(p + kPlaneBytes)};
}
WICK_LANES void store_weights(uint8_t* p, ByteWeights w) {
  store_bytes(p, w.magnitude);
  store_bytes(p + kPlaneBytes, w.value);
}

#endif
#endif

}  // namespace
}  // namespace wick::cpu::WICK_ISA
