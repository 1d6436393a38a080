#pragma once

// The GGML block formats of 32 values in their file layout, and the arithmetic that defines them.
// Sources of formats and rounding: github.com/ggml-org/ggml, docs/gguf.md and the reference
// quantisers.

#include "wick/math/half.h"
#include "wick/math/scalar.h"

namespace wick::math {

/// Values per block of the formats in this header.
inline constexpr int kBlock = 32;
/// Values per block of any format.
template <class Block>
inline constexpr int kBlockValues = kBlock;

/// value = d·(q − 8); byte j holds q of value j (low nibble) and of value j + 16 (high nibble).
struct BlockQ4_0 {
  f16 d;
  u8 qs[16];
};
/// value = d·q + m; nibbles as in Q4_0.
struct BlockQ4_1 {
  f16 d, m;
  u8 qs[16];
};
/// value = d·(q − 16); nibbles as in Q4_0, bit j of qh (little-endian) is the fifth bit of value j.
struct BlockQ5_0 {
  f16 d;
  u8 qh[4];
  u8 qs[16];
};
/// value = d·q + m; bits as in Q5_0.
struct BlockQ5_1 {
  f16 d, m;
  u8 qh[4];
  u8 qs[16];
};
/// value = d·q.
struct BlockQ8_0 {
  f16 d;
  i8 qs[32];
};
/// Bytes of the scale d, which is in front of a block's quants in Q4_0 and Q8_0.
inline constexpr u32 kBlockScaleBytes = sizeof(f16);

static_assert(sizeof(BlockQ4_0) == 18 && alignof(BlockQ4_0) == 2);
static_assert(sizeof(BlockQ4_1) == 20 && alignof(BlockQ4_1) == 2);
static_assert(sizeof(BlockQ5_0) == 22 && alignof(BlockQ5_0) == 2);
static_assert(sizeof(BlockQ5_1) == 24 && alignof(BlockQ5_1) == 2);
static_assert(sizeof(BlockQ8_0) == 34 && alignof(BlockQ8_0) == 2);

/// Writes the 32 values of a block. Every bit pattern; exact, except that d·q + m is rounded once.
WICK_FN void dequantize(const BlockQ4_0& b, float* out) {
  const float d = to_f32(b.d);
  for (int j = 0; j < 16; ++j) out[j] = d * static_cast<float>((b.qs[j] & 15) - 8);
  for (int j = 0; j < 16; ++j) out[j + 16] = d * static_cast<float>((b.qs[j] >> 4) - 8);
}
WICK_FN void dequantize(const BlockQ4_1& b, float* out) {
  const float d = to_f32(b.d), m = to_f32(b.m);
  for (int j = 0; j < 16; ++j) out[j] = fma(d, static_cast<float>(b.qs[j] & 15), m);
  for (int j = 0; j < 16; ++j) out[j + 16] = fma(d, static_cast<float>(b.qs[j] >> 4), m);
}

namespace detail {

/// The fifth bits of the values j and j + 16 of a Q5 block, shifted to bit 4.
struct FifthBits {
  u32 low, high;
};
WICK_FN FifthBits fifth_bits(const u8* qh, int j) {
  const u32 all = qh[0] | u32{qh[1]} << 8 | u32{qh[2]} << 16 | u32{qh[3]} << 24;
  return {(all >> j & 1u) << 4, (all >> (j + 16) & 1u) << 4};
}

}  // namespace detail

WICK_FN void dequantize(const BlockQ5_0& b, float* out) {
  const float d = to_f32(b.d);
  for (int j = 0; j < 16; ++j) {
    const detail::FifthBits h = detail::fifth_bits(b.qh, j);
    out[j] = d * static_cast<float>(static_cast<i32>((b.qs[j] & 15u) | h.low) - 16);
    out[j + 16] = d * static_cast<float>(static_cast<i32>((u32{b.qs[j]} >> 4) | h.high) - 16);
  }
}
WICK_FN void dequantize(const BlockQ5_1& b, float* out) {
  const float d = to_f32(b.d), m = to_f32(b.m);
  for (int j = 0; j < 16; ++j) {
    const detail::FifthBits h = detail::fifth_bits(b.qh, j);
    out[j] = fma(d, static_cast<float>(static_cast<i32>((b.qs[j] & 15u) | h.low)), m);
    out[j + 16] = fma(d, static_cast<float>(static_cast<i32>((u32{b.qs[j]} >> 4) | h.high)), m);
  }
}
WICK_FN void dequantize(const BlockQ8_0& b, float* out) {
  const float d = to_f32(b.d);
  for (int j = 0; j < kBlock; ++j) out[j] = d * static_cast<float>(b.qs[j]);
}

/// Value j of a block, equal to what dequantize writes.
WICK_FN float value_of(const BlockQ4_0& b, int j) {
  const int q = b.qs[j & 15] >> (j < 16 ? 0 : 4) & 15;
  return to_f32(b.d) * static_cast<float>(q - 8);
}
WICK_FN float value_of(const BlockQ4_1& b, int j) {
  const int q = b.qs[j & 15] >> (j < 16 ? 0 : 4) & 15;
  return fma(to_f32(b.d), static_cast<float>(q), to_f32(b.m));
}
WICK_FN float value_of(const BlockQ5_0& b, int j) {
  const int q = (b.qs[j & 15] >> (j < 16 ? 0 : 4) & 15) | (b.qh[j / 8] >> j % 8 & 1) << 4;
  return to_f32(b.d) * static_cast<float>(q - 16);
}
WICK_FN float value_of(const BlockQ5_1& b, int j) {
  const int q = (b.qs[j & 15] >> (j < 16 ? 0 : 4) & 15) | (b.qh[j / 8] >> j % 8 & 1) << 4;
  return fma(to_f32(b.d), static_cast<float>(q), to_f32(b.m));
}
WICK_FN float value_of(const BlockQ8_0& b, int j) {
  return to_f32(b.d) * static_cast<float>(b.qs[j]);
}

namespace detail {

/// 1/d, or 0 if d is 0.
WICK_FN float recip_or_zero(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

/// Truncates and clamps to 0..largest; NaN gives 0.
WICK_FN u8 to_quant(float x, float largest) {
  float y = x > 0.0f ? x : 0.0f;
  y = y < largest ? y : largest;
  return static_cast<u8>(static_cast<i32>(y));
}
WICK_FN u8 to_nibble(float x) { return to_quant(x, 15.0f); }

/// Writes the low four bits of 32 quants as Q4_0 stores them.
WICK_FN void write_nibbles(const u8* q, u8* qs) {
  for (int j = 0; j < 16; ++j) qs[j] = static_cast<u8>((q[j] & 15) | (q[j + 16] & 15) << 4);
}
/// Writes the fifth bits of 32 quants as Q5_0 stores them.
WICK_FN void write_fifth_bits(const u8* q, u8* qh) {
  u32 all = 0;
  for (int j = 0; j < 32; ++j) all |= (u32{q[j]} >> 4 & 1) << j;
  for (int i = 0; i < 4; ++i) qh[i] = static_cast<u8>(all >> 8 * i);
}

}  // namespace detail

/// Quantises 32 values: d = (the first value of largest magnitude)/−8, q = trunc(x/d + 8.5) ≤ 15,
/// with a product by 1/d and a separate sum. Finite values; anything else gives unspecified quants.
WICK_FN void quantize(const float* in, BlockQ4_0* out) {
  float largest = in[0];
  for (int j = 1; j < kBlock; ++j) largest = abs(in[j]) > abs(largest) ? in[j] : largest;
  const float d = largest / -8.0f;
  const float inverse = detail::recip_or_zero(d);
  out->d = from_f32<f16>(d);
  u8 q[kBlock];
  for (int j = 0; j < kBlock; ++j) q[j] = detail::to_nibble(in[j] * inverse + 8.5f);
  detail::write_nibbles(q, out->qs);
}

/// Quantises 32 values: m = min, d = (max − min)/15, q = trunc((x − min)/d + 0.5) ≤ 15, with a
/// product by 1/d and a separate sum. Finite values; anything else gives unspecified quants.
WICK_FN void quantize(const float* in, BlockQ4_1* out) {
  float low = in[0], high = in[0];
  for (int j = 1; j < kBlock; ++j) {
    low = in[j] < low ? in[j] : low;
    high = in[j] > high ? in[j] : high;
  }
  const float d = (high - low) / 15.0f;
  const float inverse = detail::recip_or_zero(d);
  out->d = from_f32<f16>(d);
  out->m = from_f32<f16>(low);
  u8 q[kBlock];
  for (int j = 0; j < kBlock; ++j) q[j] = detail::to_nibble((in[j] - low) * inverse + 0.5f);
  detail::write_nibbles(q, out->qs);
}

/// Quantises 32 values: d = (the first value of largest magnitude)/−16, q = trunc(x/d + 16.5) ≤ 31,
/// with a product by 1/d and a separate sum. Finite values; anything else gives unspecified quants.
WICK_FN void quantize(const float* in, BlockQ5_0* out) {
  float largest = in[0];
  for (int j = 1; j < kBlock; ++j) largest = abs(in[j]) > abs(largest) ? in[j] : largest;
  const float d = largest / -16.0f;
  const float inverse = detail::recip_or_zero(d);
  out->d = from_f32<f16>(d);
  u8 q[kBlock];
  for (int j = 0; j < kBlock; ++j) q[j] = detail::to_quant(in[j] * inverse + 16.5f, 31.0f);
  detail::write_nibbles(q, out->qs);
  detail::write_fifth_bits(q, out->qh);
}

/// Quantises 32 values: m = min, d = (max − min)/31, q = trunc((x − min)/d + 0.5) ≤ 31, with a
/// product by 1/d and a separate sum. Finite values; anything else gives unspecified quants.
WICK_FN void quantize(const float* in, BlockQ5_1* out) {
  float low = in[0], largest = in[0];
  for (int j = 1; j < kBlock; ++j) {
    low = in[j] < low ? in[j] : low;
    largest = in[j] > largest ? in[j] : largest;
  }
  const float d = (largest - low) / 31.0f;
  const float inverse = detail::recip_or_zero(d);
  out->d = from_f32<f16>(d);
  out->m = from_f32<f16>(low);
  u8 q[kBlock];
  for (int j = 0; j < kBlock; ++j) q[j] = detail::to_quant((in[j] - low) * inverse + 0.5f, 31.0f);
  detail::write_nibbles(q, out->qs);
  detail::write_fifth_bits(q, out->qh);
}

/// Quantises 32 values: d = max|x|/127, q = x/d rounded half away from zero, with a product by 1/d.
/// Finite values; anything else gives unspecified quants.
WICK_FN void quantize(const float* in, BlockQ8_0* out) {
  float largest = 0.0f;
  for (int j = 0; j < kBlock; ++j) largest = abs(in[j]) > largest ? abs(in[j]) : largest;
  const float d = largest / 127.0f;
  const float inverse = detail::recip_or_zero(d);
  out->d = from_f32<f16>(d);
  for (int j = 0; j < kBlock; ++j) {
    out->qs[j] = static_cast<i8>(cast<i16>(round(in[j] * inverse)));
  }
}

}  // namespace wick::math
