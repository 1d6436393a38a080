#pragma once

// Dot products of quantized_dot.h with NEON. Weights are signed bytes, unless FEAT_I8MM multiplies
// unsigned weights and signed activations, as VNNI does. For kernel sources only (see isa.h).
//
// WICK_MATRIX_INT8, with FEAT_I8MM: tiles of several columns are computed by products of matrices
// of 2 rows × 8 columns of k, two rows and two columns of x at a time. The weights of two quads
// are then interleaved: register i of the first vector holds rows 4i and 4i + 1, that of the second
// vector the two rows below. While they are summed, the dot products of columns j and j + 1 are
// interleaved in the same way: register i of column j holds rows 4i and 4i + 1 of both columns.
//
// Without dot products, each byte of a vector has a sum of 16 bits: eight products of five bits fit
// (8·31·127 = 31496), and so do four of six bits (4·63·127 = 32004), the 16 values that a factor
// of q6_k multiplies. Products of bytes are added in pairs to 32 bits.

#if defined(__ARM_FEATURE_MATMUL_INT8)
#define WICK_MATRIX_INT8 1
#endif

namespace wick::cpu::WICK_ISA {
namespace {

using ByteWeights = U8x64;
constexpr int kBytePlanes = 1;
WICK_SIMD ByteWeights load_weights(const uint8_t* p) { return load_bytes(p); }
WICK_SIMD void store_weights(uint8_t* p, const ByteWeights& w) { store_bytes(p, w); }

#if defined(__ARM_FEATURE_DOTPROD)

template <Quants kLevels>
struct Dot {
  I32x16 sums;
};
template <Quants kLevels>
WICK_SIMD I32x16 sums_of(const Dot<kLevels>& dot) {
  return dot.sums;
}
template <Quants kLevels>
WICK_SIMD F32x16 finish(const Dot<kLevels>& dot, int32_t) {
  return to_f32(dot.sums);
}

/// sum + the dot products of the words of w with word kLane of x.
template <int kLane>
WICK_SIMD int32x4_t dot_lane(int32x4_t sum, uint8x16_t w, int8x16_t x) {
#if defined(WICK_MATRIX_INT8)
  return vusdotq_laneq_s32(sum, w, x, kLane);
#else
  return vdotq_laneq_s32(sum, vreinterpretq_s8_u8(w), x, kLane);
#endif
}
template <int kLane, Quants kLevels>
WICK_SIMD void dot_lanes(Dot<kLevels>& dot, U8x64 w, int8x16_t x) {
  WICK_NEON_LOOP dot.sums.v[i] = dot_lane<kLane>(dot.sums.v[i], w.v[i], x);
}
/// Adds the products with quad k of the activations of a block at x.
template <Quants kLevels>
WICK_SIMD void accumulate_at(Dot<kLevels>& dot, U8x64 w, const uint8_t* x, int k) {
  const int8x16_t quads = vreinterpretq_s8_u8(vld1q_u8(x + k / 4 * 16));
  switch (k % 4) {
    case 0:
      return dot_lanes<0>(dot, w, quads);
    case 1:
      return dot_lanes<1>(dot, w, quads);
    case 2:
      return dot_lanes<2>(dot, w, quads);
    default:
      return dot_lanes<3>(dot, w, quads);
  }
}

#else

/// Sums of 16 bits for each byte of a vector.
template <Quants kLevels>
struct Dot {
  int16x8_t v[8];
};
template <Quants kLevels>
WICK_SIMD void start(Dot<kLevels>& dot, int32_t) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) dot.v[i] = vdupq_n_s16(0);
}
template <Quants kLevels>
WICK_SIMD void accumulate(Dot<kLevels>& dot, U8x64 w, I8x4 x) {
  WICK_NEON_LOOP {
    const int8x16_t s = vreinterpretq_s8_u8(w.v[i]);
    dot.v[2 * i] = vmlal_s8(dot.v[2 * i], vget_low_s8(s), vget_low_s8(x));
    dot.v[2 * i + 1] = vmlal_high_s8(dot.v[2 * i + 1], s, x);
  }
}
template <Quants kLevels>
WICK_SIMD void fold(Dot<kLevels>&) {}
template <Quants kLevels>
WICK_SIMD I32x16 sums_of(const Dot<kLevels>& dot) {
  I32x16 y;
  WICK_NEON_LOOP { y.v[i] = vpaddq_s32(vpaddlq_s16(dot.v[2 * i]), vpaddlq_s16(dot.v[2 * i + 1])); }
  return y;
}

/// Bytes: two sums of 32 bits for each row.
template <>
struct Dot<Quants::bytes> {
  int32x4_t v[8];
};
WICK_SIMD void start(Dot<Quants::bytes>& dot, int32_t) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) dot.v[i] = vdupq_n_s32(0);
}
WICK_SIMD void accumulate(Dot<Quants::bytes>& dot, U8x64 w, I8x4 x) {
  WICK_NEON_LOOP {
    const int8x16_t s = vreinterpretq_s8_u8(w.v[i]);
    dot.v[2 * i] = vpadalq_s16(dot.v[2 * i], vmull_s8(vget_low_s8(s), vget_low_s8(x)));
    dot.v[2 * i + 1] = vpadalq_s16(dot.v[2 * i + 1], vmull_high_s8(s, x));
  }
}
WICK_SIMD I32x16 sums_of(const Dot<Quants::bytes>& dot) {
  I32x16 y;
  WICK_NEON_LOOP y.v[i] = vpaddq_s32(dot.v[2 * i], dot.v[2 * i + 1]);
  return y;
}

template <Quants kLevels>
WICK_SIMD F32x16 finish(const Dot<kLevels>& dot, int32_t from) {
  I32x16 y = sums_of(dot);
  if (kLevels == Quants::bytes) from = 0;  // packed with an offset, which has been removed
  WICK_NEON_LOOP y.v[i] = vaddq_s32(y.v[i], vdupq_n_s32(from));
  return to_f32(y);
}

#endif

#if defined(WICK_MATRIX_INT8)

constexpr ByteTable kNormalLevels = byte_table(math::kNormalCode, 128);
WICK_SIMD ByteWeights normal_weights(U8x64 nibbles) { return look_up(kNormalLevels.v, nibbles); }
WICK_SIMD ByteWeights byte_weights(U8x64 v) { return v; }
template <Quants kLevels>
WICK_SIMD void start(Dot<kLevels>& dot, int32_t from) {
  dot.sums = splat_sums(from);
}

/// Interleaves the weights of two quads, as WICK_MATRIX_INT8 says.
WICK_SIMD void interleave_quads(U8x64& a, U8x64& b) {
  WICK_NEON_LOOP {
    const uint32x4_t x = vreinterpretq_u32_u8(a.v[i]), y = vreinterpretq_u32_u8(b.v[i]);
    a.v[i] = vreinterpretq_u8_u32(vzip1q_u32(x, y));
    b.v[i] = vreinterpretq_u8_u32(vzip2q_u32(x, y));
  }
}
/// The same for the eight quads of a block in memory.
WICK_SIMD void arrange_quads(uint8_t* quads) {
#pragma GCC unroll 4
  for (int k = 0; k < 8; k += 2) {
    U8x64 a = load_bytes(quads + k * 64), b = load_bytes(quads + k * 64 + 64);
    interleave_quads(a, b);
    store_bytes(quads + k * 64, a);
    store_bytes(quads + k * 64 + 64, b);
  }
}
/// Two quads of two columns.
WICK_SIMD int8x16_t load_columns(const uint8_t* first, const uint8_t* second) {
  return vreinterpretq_s8_u8(vcombine_u8(vld1_u8(first), vld1_u8(second)));
}
/// Interleaved dot products of two columns, which start at the sums of each.
template <Quants kLevels>
WICK_SIMD void start(Dot<kLevels>& first, Dot<kLevels>& second, int32_t from, int32_t other) {
  const int32x4_t v = vzip1q_s32(vdupq_n_s32(from), vdupq_n_s32(other));
  first.sums = second.sums = {{v, v, v, v}};
}
template <Quants kLevels>
WICK_SIMD void accumulate(Dot<kLevels>& first, Dot<kLevels>& second, const U8x64& upper,
                          const U8x64& lower, int8x16_t x) {
  WICK_NEON_LOOP {
    first.sums.v[i] = vusmmlaq_s32(first.sums.v[i], upper.v[i], x);
    second.sums.v[i] = vusmmlaq_s32(second.sums.v[i], lower.v[i], x);
  }
}
/// Ends the interleaving.
template <Quants kLevels>
WICK_SIMD void separate(Dot<kLevels>& first, Dot<kLevels>& second) {
  WICK_NEON_LOOP {
    const int32x4_t a = first.sums.v[i], b = second.sums.v[i];
    first.sums.v[i] = vuzp1q_s32(a, b);
    second.sums.v[i] = vuzp2q_s32(a, b);
  }
}

/// v·factor + offset of each byte, if the results are bytes: two products in 16 bits don't disturb
/// each other. Both halves of a row's word hold the factor; two bytes of them hold the offset.
WICK_SIMD U8x64 fold_factor(U8x64 v, I16x32 factor, I16x32 offset) {
  WICK_NEON_LOOP {
    v.v[i] =
        vreinterpretq_u8_s16(vmlaq_s16(offset.v[i], vreinterpretq_s16_u8(v.v[i]), factor.v[i]));
  }
  return v;
}
/// An integer of each row in both halves of its word.
WICK_SIMD I16x32 twice_each(I32x16 v) {
  I16x32 y;
  WICK_NEON_LOOP {
    const int16x8_t half = vreinterpretq_s16_s32(v.v[i]);
    y.v[i] = vtrn1q_s16(half, half);
  }
  return y;
}
/// The offset of fold_factor for quants with an offset: `sum` − offset·factor in each byte.
WICK_SIMD I16x32 fold_offset(I16x32 factor, int offset, int sum) {
  WICK_NEON_LOOP {
    const int16x8_t v = vmlsq_s16(vdupq_n_s16(static_cast<int16_t>(sum)), factor.v[i],
                                  vdupq_n_s16(static_cast<int16_t>(offset)));
    factor.v[i] = vmulq_s16(v, vdupq_n_s16(257));
  }
  return factor;
}
WICK_SIMD I16x32 no_offset() {
  const int16x8_t v = vdupq_n_s16(0);
  return {{v, v, v, v}};
}
WICK_SIMD I16x32 load_signed_factors(const uint8_t* p) { return twice_each(widen_i8(p)); }

#else

/// Packing flips the sign bits of bytes.
WICK_SIMD ByteWeights byte_weights(U8x64 v) {
  WICK_NEON_LOOP v.v[i] = veorq_u8(v.v[i], vdupq_n_u8(128));
  return v;
}
constexpr ByteTable kNormalValues = byte_table(math::kNormalCode, 0);
WICK_SIMD ByteWeights normal_weights(U8x64 nibbles) { return look_up(kNormalValues.v, nibbles); }
#if defined(__ARM_FEATURE_DOTPROD)
template <Quants kLevels>
WICK_SIMD void start(Dot<kLevels>& dot, int32_t from) {
  dot.sums = splat_sums(kLevels == Quants::bytes ? 0 : from);
}
#endif

#endif

template <class T>
constexpr int kSharedSteps = T::kParts;

WICK_SIMD void clear(I32x16& sums) { sums = zero_sums(); }
WICK_SIMD F32x16 to_floats(const I32x16& sums) { return to_f32(sums); }
WICK_SIMD I32x16 load_factors(const uint8_t* p) { return widen_u8(p); }
/// Factors of one of two parts.
WICK_SIMD I32x16 load_part_factors(const uint8_t* p, int part) {
  const I16x32 pairs = load_nibble_pairs(p, 0);
  I32x16 y;
  WICK_NEON_LOOP {
    const uint32x4_t v = vreinterpretq_u32_s16(pairs.v[i]);
    y.v[i] =
        vreinterpretq_s32_u32(part == 0 ? vandq_u32(v, vdupq_n_u32(0xffff)) : vshrq_n_u32(v, 16));
  }
  return y;
}
WICK_SIMD void add_scaled(I32x16& sums, const Dot<Quants::nibbles>& dot, const I32x16& factors) {
  const I32x16 products = sums_of(dot);
  WICK_NEON_LOOP sums.v[i] = vmlaq_s32(sums.v[i], products.v[i], factors.v[i]);
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
