#pragma once

// The GGML block formats of 256 values ("K-quants") in their file layout, and the arithmetic that
// defines them. Source: github.com/ggml-org/ggml, docs/gguf.md. The formats define the values of
// blocks, but not how floats are quantised. The quantisers here are wick's own and of class exact:
// the order of all steps is fixed, so all backends make the same blocks.

#include "wick/math/blocks.h"

namespace wick::math {

/// Values per superblock: eight blocks of 32, each with its own scale.
inline constexpr int kSuperblock = 256;

/// value = (d·sc)·q − dmin·m with a 6-bit sc and m for each 32 values. Byte 32·p + l of qs holds q
/// of value 64·p + l (low nibble) and of value 64·p + 32 + l (high nibble).
struct BlockQ4_K {
  f16 d, dmin;
  u8 scales[12];
  u8 qs[128];
};
/// value = (d·sc)·(q − 32) with an int8 sc for each 16 values. Value 128·n + 32·r + l has its low
/// four bits in a nibble of ql[64·n + 32·(r mod 2) + l] (the low nibble for r < 2), and its high
/// two bits in qh[32·n + l] from bit 2·r on.
struct BlockQ6_K {
  u8 ql[128];
  u8 qh[64];
  i8 scales[16];
  f16 d;
};
/// value = (d·sc)·q − dmin·m; sc and m are the low and the high nibble of the scale of each 16
/// values. Value 128·n + 32·r + l has its two bits in qs[32·n + l] from bit 2·r on.
struct BlockQ2_K {
  u8 scales[16];
  u8 qs[64];
  f16 d, dmin;
};
/// value = (d·(sc − 32))·(q − 4) with a 6-bit sc for each 16 values. The low two bits of q are
/// stored as in Q2_K; the third bit of value 32·r + l is bit r of hmask[l].
struct BlockQ3_K {
  u8 hmask[32];
  u8 qs[64];
  u8 scales[12];
  f16 d;
};
/// Like Q4_K with a fifth bit: that of value 32·r + l is bit r of qh[l].
struct BlockQ5_K {
  f16 d, dmin;
  u8 scales[12];
  u8 qh[32];
  u8 qs[128];
};
static_assert(sizeof(BlockQ2_K) == 84 && alignof(BlockQ2_K) == 2);
static_assert(sizeof(BlockQ3_K) == 110 && alignof(BlockQ3_K) == 2);
static_assert(sizeof(BlockQ5_K) == 176 && alignof(BlockQ5_K) == 2);
static_assert(sizeof(BlockQ4_K) == 144 && alignof(BlockQ4_K) == 2);
static_assert(sizeof(BlockQ6_K) == 210 && alignof(BlockQ6_K) == 2);
template <>
inline constexpr int kBlockValues<BlockQ4_K> = kSuperblock;
template <>
inline constexpr int kBlockValues<BlockQ6_K> = kSuperblock;
template <>
inline constexpr int kBlockValues<BlockQ2_K> = kSuperblock;
template <>
inline constexpr int kBlockValues<BlockQ3_K> = kSuperblock;
template <>
inline constexpr int kBlockValues<BlockQ5_K> = kSuperblock;

/// The 6-bit scale and the 6-bit minimum of a block of 32.
struct SixBits {
  u8 scale, minimum;
};

/// Unpacks pair `block` of the eight pairs of 6 bits in 12 bytes. The first four pairs are in the
/// low bits of bytes 0–3 (scales) and 4–7 (minima). The low four bits of the others are in bytes
/// 8–11, their high two bits are the high bits of bytes 0–7.
WICK_FN SixBits read_six_bits(const u8* packed, int block) {
  const u32 a = packed[block & 3], b = packed[(block & 3) + 4], c = packed[(block & 3) + 8];
  const bool first = block < 4;
  const u32 scale = first ? a & 63 : (c & 15) | a >> 6 << 4;
  const u32 minimum = first ? b & 63 : c >> 4 | b >> 6 << 4;
  return {static_cast<u8>(scale), static_cast<u8>(minimum)};
}

WICK_FN void write_six_bits(const SixBits* pairs, u8* packed) {
  for (int j = 0; j < 4; ++j) {
    const SixBits low = pairs[j], high = pairs[j + 4];
    packed[j] = static_cast<u8>(low.scale | high.scale >> 4 << 6);
    packed[j + 4] = static_cast<u8>(low.minimum | high.minimum >> 4 << 6);
    packed[j + 8] = static_cast<u8>((high.scale & 15) | (high.minimum & 15) << 4);
  }
}

/// Writes the 256 values of a superblock. Every bit pattern; the difference is rounded once.
WICK_FN void dequantize(const BlockQ4_K& b, float* out) {
  const float d = to_f32(b.d), dmin = to_f32(b.dmin);
  for (int block = 0; block < 8; ++block) {
    const SixBits bits = read_six_bits(b.scales, block);
    // The product is exact: 11 bits times 6 bits, and times 4 more bits below.
    const float scale = d * static_cast<float>(bits.scale);
    const float minimum = -(dmin * static_cast<float>(bits.minimum));
    const u8* qs = b.qs + block / 2 * 32;
    const int shift = block % 2 * 4;
    for (int l = 0; l < 32; ++l) {
      out[32 * block + l] = fma(scale, static_cast<float>(qs[l] >> shift & 15), minimum);
    }
  }
}

/// Writes the 256 values of a superblock. Every bit pattern; exact.
WICK_FN void dequantize(const BlockQ6_K& b, float* out) {
  const float d = to_f32(b.d);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(b.scales[part]);
    const int n = part / 8, r = part / 2 % 4, at = part % 2 * 16;
    const u8* ql = b.ql + 64 * n + 32 * (r % 2) + at;
    const u8* qh = b.qh + 32 * n + at;
    for (int l = 0; l < 16; ++l) {
      const int q = (ql[l] >> (r / 2 * 4) & 15) | (qh[l] >> (2 * r) & 3) << 4;
      out[16 * part + l] = scale * static_cast<float>(q - 32);
    }
  }
}

/// Value j of a superblock, equal to what dequantize writes.
WICK_FN float value_of(const BlockQ4_K& b, int j) {
  const SixBits bits = read_six_bits(b.scales, j / 32);
  const int q = b.qs[j / 64 * 32 + j % 32] >> (j / 32 % 2 * 4) & 15;
  const float minimum = -(to_f32(b.dmin) * static_cast<float>(bits.minimum));
  return fma(to_f32(b.d) * static_cast<float>(bits.scale), static_cast<float>(q), minimum);
}
WICK_FN float value_of(const BlockQ6_K& b, int j) {
  const int n = j / 128, r = j / 32 % 4, l = j % 32;
  const int q = (b.ql[64 * n + 32 * (r % 2) + l] >> (r / 2 * 4) & 15) |
                (b.qh[32 * n + l] >> (2 * r) & 3) << 4;
  return to_f32(b.d) * static_cast<float>(b.scales[j / 16]) * static_cast<float>(q - 32);
}

/// The scale and minimum of a group of values that shares a 4-bit or 6-bit multiple of the block's
/// d and dmin: value = scale·level + minimum. Both are exact.
struct PartScale {
  float scale, minimum;
};

WICK_FN PartScale part_of(const BlockQ2_K& b, int part) {
  const int bits = b.scales[part];
  return {to_f32(b.d) * static_cast<float>(bits & 15),
          -(to_f32(b.dmin) * static_cast<float>(bits >> 4))};
}
WICK_FN float level_of(const BlockQ2_K& b, int part, int l) {
  return static_cast<float>(b.qs[part / 8 * 32 + part % 2 * 16 + l] >> part / 2 % 4 * 2 & 3);
}
/// The factor of d of 16 values: −32 … 31.
WICK_FN int factor_of(const BlockQ3_K& b, int part) {
  // The low four bits are nibbles of the first eight bytes; each of the other four bytes has the
  // high two bits of four scales.
  const int low = b.scales[part % 8] >> part / 8 * 4 & 15;
  const int high = b.scales[8 + part % 4] >> part / 4 * 2 & 3;
  return (low | high << 4) - 32;
}
WICK_FN float scale_of(const BlockQ3_K& b, int part) {
  return to_f32(b.d) * static_cast<float>(factor_of(b, part));
}
WICK_FN float level_of(const BlockQ3_K& b, int part, int l) {
  const int at = part % 2 * 16 + l;
  const int low = b.qs[part / 8 * 32 + at] >> part / 2 % 4 * 2 & 3;
  return static_cast<float>((low | (b.hmask[at] >> part / 2 & 1) << 2) - 4);
}
WICK_FN PartScale part_of(const BlockQ5_K& b, int part) {
  const SixBits bits = read_six_bits(b.scales, part);
  return {to_f32(b.d) * static_cast<float>(bits.scale),
          -(to_f32(b.dmin) * static_cast<float>(bits.minimum))};
}
WICK_FN float level_of(const BlockQ5_K& b, int part, int l) {
  const int low = b.qs[part / 2 * 32 + l] >> part % 2 * 4 & 15;
  return static_cast<float>(low | (b.qh[l] >> part & 1) << 4);
}

/// Every bit pattern; the difference is rounded once.
WICK_FN float value_of(const BlockQ2_K& b, int j) {
  const PartScale part = part_of(b, j / 16);
  return fma(part.scale, level_of(b, j / 16, j % 16), part.minimum);
}
WICK_FN void dequantize(const BlockQ2_K& b, float* out) {
  for (int i = 0; i < 16; ++i) {
    const PartScale part = part_of(b, i);
    for (int l = 0; l < 16; ++l) {
      out[16 * i + l] = fma(part.scale, level_of(b, i, l), part.minimum);
    }
  }
}
/// Every bit pattern; exact.
WICK_FN float value_of(const BlockQ3_K& b, int j) {
  return scale_of(b, j / 16) * level_of(b, j / 16, j % 16);
}
WICK_FN void dequantize(const BlockQ3_K& b, float* out) {
  for (int i = 0; i < 16; ++i) {
    const float scale = scale_of(b, i);
    for (int l = 0; l < 16; ++l) out[16 * i + l] = scale * level_of(b, i, l);
  }
}
/// Every bit pattern; the difference is rounded once.
WICK_FN float value_of(const BlockQ5_K& b, int j) {
  const PartScale part = part_of(b, j / 32);
  return fma(part.scale, level_of(b, j / 32, j % 32), part.minimum);
}
WICK_FN void dequantize(const BlockQ5_K& b, float* out) {
  for (int i = 0; i < 8; ++i) {
    const PartScale part = part_of(b, i);
    for (int l = 0; l < 32; ++l) {
      out[32 * i + l] = fma(part.scale, level_of(b, i, l), part.minimum);
    }
  }
}

namespace detail {

/// Σ t[i] over n values, a power of two. Repeatedly adds the upper half to the lower half, an order
/// that vector code can use, too. Overwrites t.
template <int n>
WICK_FN float halving_sum(float* t) {
  for (int half = n / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) t[i] = t[i] + t[i + half];
  }
  return t[0];
}

/// Rounds to an integer and clamps to low … high; NaN gives low.
WICK_FN float to_level(float x, float low, float high) {
  const float y = rint(x);
  const float z = y > low ? y : low;
  return z < high ? z : high;
}

/// Weights of the errors of n values: larger for larger values, 0 if all values are 0.
template <int n>
WICK_FN void error_weights(const float* x, float* w) {
  float t[n];
  for (int i = 0; i < n; ++i) t[i] = x[i] * x[i];
  const float typical = sqrt(halving_sum<n>(t) / static_cast<float>(n));
  for (int i = 0; i < n; ++i) w[i] = typical + abs(x[i]);
}

/// value ≈ scale·q − minimum.
struct Fit {
  float scale, minimum;
};

/// Σ w·(scale·q − minimum − x)².
template <int n>
WICK_FN float squared_error(const float* x, const float* w, const float* q, Fit fit) {
  float t[n];
  for (int i = 0; i < n; ++i) {
    const float error = fma(fit.scale, q[i], -fit.minimum) - x[i];
    t[i] = w[i] * error * error;
  }
  return halving_sum<n>(t);
}

/// Weighted sums over points (q, x): of the weights, of x, q, q² and x·q.
struct LineSums {
  float all, x, q, qq, xq;
};
/// The least-squares line through points. If a negative minimum isn't allowed, a line that would
/// have one goes through the origin. Returns `otherwise` if all q are equal.
WICK_FN Fit line_of(const LineSums& sum, bool any_minimum, Fit otherwise) {
  const float determinant = sum.all * sum.qq - sum.q * sum.q;
  if (!(determinant > 0.0f)) return otherwise;
  const Fit line = {(sum.all * sum.xq - sum.x * sum.q) / determinant,
                    (sum.q * sum.xq - sum.qq * sum.x) / determinant};
  if (any_minimum || line.minimum >= 0.0f) return line;
  return sum.qq > 0.0f ? Fit{sum.xq / sum.qq, 0.0f} : otherwise;
}

/// The least-squares line through n points (q, x) without a negative minimum.
template <int n>
WICK_FN Fit fit_line(const float* x, const float* w, const float* q, Fit otherwise) {
  float sw[n], sx[n], sq[n], sqq[n], sxq[n];
  for (int i = 0; i < n; ++i) {
    sw[i] = w[i];
    sx[i] = w[i] * x[i];
    sq[i] = w[i] * q[i];
    sqq[i] = sq[i] * q[i];
    sxq[i] = sq[i] * x[i];
  }
  const LineSums sums = {halving_sum<n>(sw), halving_sum<n>(sx), halving_sum<n>(sq),
                         halving_sum<n>(sqq), halving_sum<n>(sxq)};
  return line_of(sums, false, otherwise);
}

/// Finds a scale ≥ 0 and a minimum ≥ 0 for n values with q in 0 … levels. Tries the lines through
/// 21 roundings of the values, whose step sizes are near the one that covers the range, and takes
/// the line with the least weighted error.
template <int n>
WICK_FN Fit fit_affine(const float* x, float levels) {
  float low = 0.0f, high = x[0];
  for (int i = 0; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  if (!(high > low)) return {0.0f, -low};
  float w[n], q[n];
  error_weights<n>(x, w);
  const float range = high - low;
  Fit best = {range / levels, -low};
  float least = 0.0f;
  // Candidate 0 has the step size that covers the range; the other candidates are near it.
  for (int candidate = 0; candidate <= 21; ++candidate) {
    const float off = candidate == 0 ? 0.0f : static_cast<float>(candidate - 11) * 0.1f;
    const float inverse = (levels + off) / range;
    for (int i = 0; i < n; ++i) q[i] = to_level((x[i] - low) * inverse, 0.0f, levels);
    const Fit fit = candidate == 0 ? best : fit_line<n>(x, w, q, best);
    const float error = squared_error<n>(x, w, q, fit);
    const bool better = candidate == 0 || (error < least && fit.scale > 0.0f);
    best = better ? fit : best;
    least = better ? error : least;
  }
  return best;
}

/// Finds a scale, of either sign, for n values with q in −levels … levels − 1. Tries the
/// least-squares scales of 19 roundings and takes the one with the least error, weighted by the
/// squares of the values.
template <int n>
WICK_FN float fit_scale(const float* x, float levels) {
  float largest = x[0];
  for (int i = 1; i < n; ++i) largest = abs(x[i]) > abs(largest) ? x[i] : largest;
  if (largest == 0.0f) return 0.0f;
  float w[n], q[n], sqq[n], sxq[n];
  for (int i = 0; i < n; ++i) {
    const float relative = x[i] / largest;  // squares of the values themselves could underflow
    w[i] = relative * relative;
  }
  float best = largest / -levels, least = 0.0f;
  for (int candidate = 0; candidate <= 19; ++candidate) {
    const float off = candidate == 0 ? 0.0f : static_cast<float>(candidate - 10) * 0.1f;
    const float inverse = -(levels + off) / largest;
    for (int i = 0; i < n; ++i) {
      q[i] = to_level(x[i] * inverse, -levels, levels - 1.0f);
      sqq[i] = w[i] * q[i] * q[i];
      sxq[i] = w[i] * q[i] * x[i];
    }
    const float q2 = halving_sum<n>(sqq), xq = halving_sum<n>(sxq);
    const float scale = candidate == 0 || q2 == 0.0f ? best : xq / q2;
    const float error = squared_error<n>(x, w, q, {scale, 0.0f});
    const bool better = candidate == 0 || error < least;
    best = better ? scale : best;
    least = better ? error : least;
  }
  return best;
}

/// Writes the 256 quants, 0 … 63, of a block.
WICK_FN void write_six_bit_quants(const u8* q, BlockQ6_K* out) {
  for (int n = 0; n < 2; ++n) {
    const u8* v = q + 128 * n;
    for (int l = 0; l < 64; ++l) {
      out->ql[64 * n + l] = static_cast<u8>((v[l] & 15) | (v[l + 64] & 15) << 4);
    }
    for (int l = 0; l < 32; ++l) {
      out->qh[32 * n + l] = static_cast<u8>(v[l] >> 4 | v[l + 32] >> 4 << 2 | v[l + 64] >> 4 << 4 |
                                            v[l + 96] >> 4 << 6);
    }
  }
}

/// 1/x, or 0 if that isn't finite.
WICK_FN float finite_recip(float x) { return abs(x) >= 0x1p-126f ? 1.0f / x : 0.0f; }

}  // namespace detail

/// Quantises 256 values. Fits a line to each block of 32 (fit_affine), sets d and dmin to the
/// largest scale and minimum divided by 63, and rounds the values again with the lines that the
/// 6-bit scales represent. Finite values; other values give unspecified quants.
WICK_FN void quantize(const float* in, BlockQ4_K* out) {
  detail::Fit fits[8];
  float scale = 0.0f, minimum = 0.0f;
  for (int block = 0; block < 8; ++block) {
    fits[block] = detail::fit_affine<32>(in + 32 * block, 15.0f);
    scale = fits[block].scale > scale ? fits[block].scale : scale;
    minimum = fits[block].minimum > minimum ? fits[block].minimum : minimum;
  }
  out->d = from_f32<f16>(scale / 63.0f);
  out->dmin = from_f32<f16>(minimum / 63.0f);
  const float d = to_f32(out->d), dmin = to_f32(out->dmin);
  const float per_d = detail::finite_recip(d), per_dmin = detail::finite_recip(dmin);
  SixBits bits[8];
  for (int block = 0; block < 8; ++block) {
    const float sc = detail::to_level(fits[block].scale * per_d, 0.0f, 63.0f);
    const float m = detail::to_level(fits[block].minimum * per_dmin, 0.0f, 63.0f);
    bits[block] = {static_cast<u8>(static_cast<i32>(sc)), static_cast<u8>(static_cast<i32>(m))};
    const float inverse = detail::finite_recip(d * sc), offset = dmin * m;
    u8* qs = out->qs + block / 2 * 32;
    for (int l = 0; l < 32; ++l) {
      const float level = detail::to_level((in[32 * block + l] + offset) * inverse, 0.0f, 15.0f);
      const auto q = static_cast<u32>(static_cast<i32>(level));
      qs[l] = static_cast<u8>(block % 2 == 0 ? q : qs[l] | q << 4);
    }
  }
  write_six_bits(bits, out->scales);
}

/// Quantises 256 values. Fits a scale to each 16 values (fit_scale), sets d to the largest scale
/// divided by −128, and rounds the values again with the scales that 8 bits represent. Finite
/// values; other values give unspecified quants.
WICK_FN void quantize(const float* in, BlockQ6_K* out) {
  float fits[16], largest = 0.0f;
  for (int part = 0; part < 16; ++part) {
    fits[part] = detail::fit_scale<16>(in + 16 * part, 32.0f);
    largest = abs(fits[part]) > abs(largest) ? fits[part] : largest;
  }
  out->d = from_f32<f16>(largest / -128.0f);
  const float d = to_f32(out->d), per_d = detail::finite_recip(d);
  u8 q[kSuperblock];
  for (int part = 0; part < 16; ++part) {
    const float sc = detail::to_level(fits[part] * per_d, -128.0f, 127.0f);
    out->scales[part] = static_cast<i8>(static_cast<i32>(sc));
    const float inverse = detail::finite_recip(d * sc);
    for (int l = 0; l < 16; ++l) {
      const float level = detail::to_level(in[16 * part + l] * inverse, -32.0f, 31.0f);
      q[16 * part + l] = static_cast<u8>(static_cast<i32>(level) + 32);
    }
  }
  detail::write_six_bit_quants(q, out);
}

}  // namespace wick::math
