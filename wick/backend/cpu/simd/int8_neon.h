#pragma once

// int8 arithmetic in four registers of 16 bytes: NEON, with or without dot products; simd/int8.h
// says what the types and functions are. Register i holds rows 4i to 4i + 3.

#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/simd/vec16.h"

namespace wick::cpu::WICK_ISA {
namespace {

struct U8x64 {
  uint8x16_t v[4];
};
using I8x4 = int8x16_t;
struct I32x16 {
  int32x4_t v[4];
};
struct I16x32 {
  int16x8_t v[4];
};

#define WICK_NEON_LOOP _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i)

WICK_SIMD U8x64 load_bytes(const uint8_t* p) {
  U8x64 y;
  WICK_NEON_LOOP y.v[i] = vld1q_u8(p + 16 * i);
  return y;
}
WICK_SIMD void store_bytes(uint8_t* p, U8x64 v) { WICK_NEON_LOOP vst1q_u8(p + 16 * i, v.v[i]); }
WICK_SIMD U8x64 low_nibbles(U8x64 v) {
  WICK_NEON_LOOP v.v[i] = vandq_u8(v.v[i], vdupq_n_u8(15));
  return v;
}
WICK_SIMD U8x64 high_nibbles(U8x64 v) {
  WICK_NEON_LOOP v.v[i] = vshrq_n_u8(v.v[i], 4);
  return v;
}
/// low | bit `bit` of each byte as bit 4.
WICK_SIMD U8x64 add_bit(U8x64 low, U8x64 bits, int bit) {
  WICK_NEON_LOOP {
    const uint8x16_t moved = bit < 4 ? bits.v[i] << (4 - bit) : bits.v[i] >> (bit - 4);
    low.v[i] = vorrq_u8(low.v[i], vandq_u8(moved, vdupq_n_u8(16)));
  }
  return low;
}
/// (v >> shift) & mask of each byte.
WICK_SIMD U8x64 bit_field(U8x64 v, int shift, int mask) {
  WICK_NEON_LOOP v.v[i] = vandq_u8(v.v[i] >> shift, vdupq_n_u8(static_cast<uint8_t>(mask)));
  return v;
}
/// The top two bits of each byte of `low`, and bit 6 + `bit` of `high` as bit 2.
WICK_SIMD U8x64 top_three(U8x64 low, U8x64 high, int bit) {
  const U8x64 third = bit_field(high, 4 + bit, 4);
  WICK_NEON_LOOP low.v[i] = vorrq_u8(vshrq_n_u8(low.v[i], 6), third.v[i]);
  return low;
}
/// Entries of a table of 16 bytes.
WICK_SIMD U8x64 look_up(const uint8_t* table, U8x64 nibbles) {
  const uint8x16_t t = vld1q_u8(table);
  WICK_NEON_LOOP nibbles.v[i] = vqtbl1q_u8(t, nibbles.v[i]);
  return nibbles;
}
WICK_SIMD U8x64 low_six(U8x64 v) { return bit_field(v, 0, 63); }
/// The top two bits of each byte of a, b and c, those of a lowest.
WICK_SIMD U8x64 top_pairs(U8x64 a, U8x64 b, U8x64 c) {
  WICK_NEON_LOOP {
    const uint8x16_t middle = vandq_u8(vshrq_n_u8(b.v[i], 4), vdupq_n_u8(0x0c));
    const uint8x16_t high = vandq_u8(vshrq_n_u8(c.v[i], 2), vdupq_n_u8(0x30));
    a.v[i] = vorrq_u8(vshrq_n_u8(a.v[i], 6), vorrq_u8(middle, high));
  }
  return a;
}
WICK_SIMD F32x16 to_f32(I32x16 v) {
  F32x16 y;
  WICK_NEON_LOOP y.v[i] = reinterpret_cast<Vec<float>>(vcvtq_f32_s32(v.v[i]));
  return y;
}
/// 16 unsigned bytes as 32-bit integers.
WICK_SIMD I32x16 widen_u8(const uint8_t* p) {
  const uint8x16_t v = vld1q_u8(p);
  const uint16x8_t low = vmovl_u8(vget_low_u8(v)), high = vmovl_high_u8(v);
  return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))),
           vreinterpretq_s32_u32(vmovl_high_u16(low)),
           vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
           vreinterpretq_s32_u32(vmovl_high_u16(high))}};
}
/// 16 signed bytes as 32-bit integers.
WICK_SIMD I32x16 widen_i8(const uint8_t* p) {
  const int8x16_t v = vreinterpretq_s8_u8(vld1q_u8(p));
  const int16x8_t low = vmovl_s8(vget_low_s8(v)), high = vmovl_high_s8(v);
  return {{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)),
           vmovl_high_s16(high)}};
}
WICK_SIMD F32x16 load_u8(const uint8_t* p) { return to_f32(widen_u8(p)); }
WICK_SIMD F32x16 load_i8(const uint8_t* p) { return to_f32(widen_i8(p)); }
/// 2^(e − 128) of 16 bytes e. For e above 1 the first operand, the exponent field, is larger; the
/// second is the mantissa of the denormals.
WICK_SIMD F32x16 load_e8m0(const uint8_t* p) {
  const I32x16 e = widen_u8(p);
  const int32x4_t one = vdupq_n_s32(1);
  F32x16 y;
  WICK_NEON_LOOP {
    y.v[i] = reinterpret_cast<Vec<float>>(vmaxq_s32(vshlq_n_s32(vsubq_s32(e.v[i], one), 23),
                                                    vshlq_n_s32(vaddq_s32(e.v[i], one), 21)));
  }
  return y;
}
WICK_SIMD I8x4 load_quad(const uint8_t* p) {
  int32_t q;
  __builtin_memcpy(&q, p, 4);
  return vreinterpretq_s8_s32(vdupq_n_s32(q));
}

WICK_SIMD I32x16 splat_sums(int32_t x) {
  const int32x4_t v = vdupq_n_s32(x);
  return {{v, v, v, v}};
}
WICK_SIMD I32x16 zero_sums() { return splat_sums(0); }
WICK_SIMD I16x32 load_pairs(const uint8_t* p) {
  I16x32 y;
  WICK_NEON_LOOP y.v[i] = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(p + 8 * i)));
  return y;
}
WICK_SIMD I16x32 load_nibble_pairs(const uint8_t* p, int half) {
  I16x32 y = load_pairs(p);
  WICK_NEON_LOOP y.v[i] = half == 0 ? vandq_s16(y.v[i], vdupq_n_s16(15)) : vshrq_n_s16(y.v[i], 4);
  return y;
}
WICK_SIMD I32x16 dot_pairs(I16x32 w, const uint8_t* x) {
  const int16x8_t two = vreinterpretq_s16_s8(load_quad(x));
  I32x16 y;
  WICK_NEON_LOOP {
    y.v[i] =
        vpaddq_s32(vmull_s16(vget_low_s16(w.v[i]), vget_low_s16(two)), vmull_high_s16(w.v[i], two));
  }
  return y;
}
WICK_SIMD I32x16 dot_pairs(I16x32 w, const uint8_t* x, I32x16 sums) {
  const I32x16 more = dot_pairs(w, x);
  WICK_NEON_LOOP sums.v[i] = vaddq_s32(sums.v[i], more.v[i]);
  return sums;
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
