#pragma once

// The GGML block formats whose quants index a table of values, those of one or two bits without a
// codebook, and the two formats of quantised activations, in their file layout. Source:
// github.com/ggml-org/ggml, docs/gguf.md.

#include "wick/math/blocks.h"

namespace wick::math {

/// value = d·q; s is d times the sum of q, which is redundant.
struct BlockQ8_1 {
  f16 d, s;
  i8 qs[32];
};
/// value = d·q; each of `sums` is the sum of sixteen q, which is redundant.
struct BlockQ8_K {
  float d;
  i8 qs[256];
  i16 sums[16];
};
/// value = d·code(q); nibbles as in Q4_0.
struct BlockIQ4_NL {
  f16 d;
  u8 qs[16];
};
/// value = (d·(sc − 32))·code(q) with a 6-bit sc for each 32 values. The low four bits of sc are a
/// nibble of `low`, the high two are in `high` from bit 2·part on. Sixteen bytes of qs hold the
/// nibbles of 32 values, as in Q4_0.
struct BlockIQ4_XS {
  f16 d;
  u16 high;
  u8 low[4];
  u8 qs[128];
};
/// value = 2^(e − 127)·q with a 4-bit float q: one sign bit, two exponent bits, one mantissa bit.
/// Nibbles as in Q4_0.
struct BlockMXFP4 {
  u8 e;
  u8 qs[16];
};
/// value = s·q with an unsigned e4m3 s for each 16 values, and a q of MXFP4. Eight bytes of qs hold
/// the nibbles of 16 values: byte j those of the values j and j + 8.
struct BlockNVFP4 {
  u8 scales[4];
  u8 qs[32];
};
/// value = d·(q − 1) with q of 0, 1 or 2. A byte holds up to five q, the first in the highest digit
/// of a number in base 3 that is stored as a fraction of 243: ⌈256·number/243⌉. Digit n of qs[m] is
/// value 32·n + m for m < 32, and value 160 + 16·n + m − 32 for the others. Digit n of qh[m] is
/// value 240 + 4·n + m.
struct BlockTQ1_0 {
  u8 qs[48];
  u8 qh[4];
  f16 d;
};
/// value = d·(q − 1) with a 2-bit q. Byte 32·h + l of qs holds q of the values 128·h + l + 32·i in
/// bits 2·i.
struct BlockTQ2_0 {
  u8 qs[64];
  f16 d;
};
/// value = d for a 1, −d for a 0; bit j of qs is value j.
struct BlockQ1_0 {
  f16 d;
  u8 qs[16];
};
/// value = d·(q − 1) with a 2-bit q; byte j of qs holds q of the values 4·j + i in bits 2·i.
struct BlockQ2_0 {
  f16 d;
  u8 qs[16];
};
static_assert(sizeof(BlockQ8_1) == 36 && alignof(BlockQ8_1) == 2);
static_assert(sizeof(BlockQ8_K) == 292 && alignof(BlockQ8_K) == 4);
static_assert(sizeof(BlockIQ4_NL) == 18 && alignof(BlockIQ4_NL) == 2);
static_assert(sizeof(BlockIQ4_XS) == 136 && alignof(BlockIQ4_XS) == 2);
static_assert(sizeof(BlockMXFP4) == 17 && alignof(BlockMXFP4) == 1);
static_assert(sizeof(BlockNVFP4) == 36 && alignof(BlockNVFP4) == 1);
static_assert(sizeof(BlockTQ1_0) == 54 && alignof(BlockTQ1_0) == 2);
static_assert(sizeof(BlockTQ2_0) == 66 && alignof(BlockTQ2_0) == 2);
static_assert(sizeof(BlockQ1_0) == 18 && alignof(BlockQ1_0) == 2);
static_assert(sizeof(BlockQ2_0) == 18 && alignof(BlockQ2_0) == 2);
template <>
inline constexpr int kBlockValues<BlockQ8_K> = 256;
template <>
inline constexpr int kBlockValues<BlockIQ4_XS> = 256;
template <>
inline constexpr int kBlockValues<BlockNVFP4> = 64;
template <>
inline constexpr int kBlockValues<BlockTQ1_0> = 256;
template <>
inline constexpr int kBlockValues<BlockTQ2_0> = 256;
template <>
inline constexpr int kBlockValues<BlockQ1_0> = 128;
template <>
inline constexpr int kBlockValues<BlockQ2_0> = 64;

/// The tables that quants may index: the column `code` of quants.def.
enum class CodeTable : u8 { none, normal, e2m1, sign, codebook };

/// A table of sixteen values. Device code uses two words of eight int8 each, the first value in the
/// lowest byte, because an array would be placed in memory.
struct Code {
  float values[16];
  u64 first, second;
};
/// The IQ4_NL values, which are denser near zero. Static, because objects of several instruction
/// sets include it.
static constexpr Code kNormalCode = {
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
    0xf6eaddcfbfad9881,
    0x7159453526190d01};
/// Twice the values of e2m1. There is no −0.
static constexpr Code kE2m1Code = {{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12},
                                   0x0c08060403020100,
                                   0xf4f8fafcfdfeff00};
/// Entry q of a table.
template <const Code& code>
WICK_FN float code_value(int q) {
#if WICK_FN_NVCC_DEVICE || WICK_FN_AMD_DEVICE
  constexpr u64 kFirst = code.first, kSecond = code.second;
  const u64 eight = q < 8 ? kFirst : kSecond;
  return static_cast<float>(static_cast<i8>(eight >> 8 * (q & 7) & 255));
#else
  return code.values[q];
#endif
}

WICK_FN float scale_of(const BlockQ8_1& b, int) { return to_f32(b.d); }
WICK_FN float level_of(const BlockQ8_1& b, int, int l) { return static_cast<float>(b.qs[l]); }
WICK_FN float scale_of(const BlockQ8_K& b, int) { return b.d; }
WICK_FN float level_of(const BlockQ8_K& b, int part, int l) {
  return static_cast<float>(b.qs[32 * part + l]);
}
WICK_FN float scale_of(const BlockIQ4_NL& b, int) { return to_f32(b.d); }
WICK_FN float level_of(const BlockIQ4_NL& b, int, int l) {
  return code_value<kNormalCode>(b.qs[l & 15] >> (l < 16 ? 0 : 4) & 15);
}
/// The factor of d of 32 values: −32 … 31.
WICK_FN int factor_of(const BlockIQ4_XS& b, int part) {
  const int low = b.low[part / 2] >> part % 2 * 4 & 15;
  return (low | (b.high >> 2 * part & 3) << 4) - 32;
}
WICK_FN float scale_of(const BlockIQ4_XS& b, int part) {
  return to_f32(b.d) * static_cast<float>(factor_of(b, part));  // exact: 11 bits by 6
}
WICK_FN float level_of(const BlockIQ4_XS& b, int part, int l) {
  return code_value<kNormalCode>(b.qs[16 * part + (l & 15)] >> (l < 16 ? 0 : 4) & 15);
}
/// Half of the block's scale, because the table has twice the values: 2^(e − 128), also for e =
/// 255.
WICK_FN float scale_of(const BlockMXFP4& b, int) {
  const u32 e = b.e;
  return bits_f32(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}
WICK_FN float level_of(const BlockMXFP4& b, int, int l) {
  return code_value<kE2m1Code>(b.qs[l & 15] >> (l < 16 ? 0 : 4) & 15);
}

/// Digit n of a byte whose fraction of 256 has five digits in base 3. Source: wick's own: 3^n times
/// the fraction, without its whole part, times 3.
WICK_FN int base_3_digit(int byte, int n) {
  const int power = static_cast<int>(0x511b090301u >> 8 * n & 255);  // 1, 3, 9, 27, 81
  return (byte * power & 255) * 3 >> 8;
}
WICK_FN float scale_of(const BlockTQ1_0& b, int) { return to_f32(b.d); }
WICK_FN float level_of(const BlockTQ1_0& b, int part, int l) {
  int at = l, n = part;
  if (part >= 5) {
    const int rest = 32 * (part - 5) + l;
    at = rest < 80 ? 32 + rest % 16 : 48 + rest % 4;
    n = rest < 80 ? rest / 16 : (rest - 80) / 4;
  }
  // qh follows qs.
  return static_cast<float>(base_3_digit(reinterpret_cast<const u8*>(&b)[at], n) - 1);
}
WICK_FN float scale_of(const BlockTQ2_0& b, int) { return to_f32(b.d); }
WICK_FN float level_of(const BlockTQ2_0& b, int part, int l) {
  return static_cast<float>((b.qs[part / 4 * 32 + l] >> part % 4 * 2 & 3) - 1);
}
WICK_FN float scale_of(const BlockQ1_0& b, int) { return to_f32(b.d); }
WICK_FN float level_of(const BlockQ1_0& b, int part, int l) {
  return (b.qs[part * 4 + l / 8] >> l % 8 & 1) != 0 ? 1.0f : -1.0f;
}
WICK_FN float scale_of(const BlockQ2_0& b, int) { return to_f32(b.d); }
WICK_FN float level_of(const BlockQ2_0& b, int part, int l) {
  return static_cast<float>((b.qs[part * 8 + l / 4] >> l % 4 * 2 & 3) - 1);
}

/// Half of an unsigned e4m3, because the table has twice the values. Bit 7 is ignored, except that
/// 0x7f is 0 and 0xff is 480.
WICK_FN float half_of_e4m3(u32 s) {
  const u32 magnitude = s & 127;
  const float normal = bits_f32((magnitude << 20) + (119u << 23));
  const float y = magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-10f : normal;
  return s == 0x7f ? 0.0f : y;
}
WICK_FN float value_of(const BlockNVFP4& b, int j) {
  const int byte = b.qs[j / 16 * 8 + j % 8];
  return half_of_e4m3(b.scales[j / 16]) * code_value<kE2m1Code>(byte >> (j % 16 < 8 ? 0 : 4) & 15);
}
WICK_FN void dequantize(const BlockNVFP4& b, float* out) {
  for (int part = 0; part < 4; ++part) {
    const float scale = half_of_e4m3(b.scales[part]);
    const u8* qs = b.qs + 8 * part;
    float* to = out + 16 * part;
    for (int l = 0; l < 8; ++l) to[l] = scale * code_value<kE2m1Code>(qs[l] & 15);
    for (int l = 0; l < 8; ++l) to[l + 8] = scale * code_value<kE2m1Code>(qs[l] >> 4);
  }
}

/// Value j of a block, and all values of a block. Every bit pattern; exact, except for d·q of Q8_K.
#define WICK_CODE_BLOCK(Block)                                            \
  WICK_FN float value_of(const Block& b, int j) {                         \
    return scale_of(b, j / 32) * level_of(b, j / 32, j % 32);             \
  }                                                                       \
  WICK_FN void dequantize(const Block& b, float* out) {                   \
    for (int part = 0; part < kBlockValues<Block> / 32; ++part) {         \
      const float scale = scale_of(b, part);                              \
      float* to = out + 32 * part;                                        \
      for (int l = 0; l < 16; ++l) to[l] = scale * level_of(b, part, l);  \
      for (int l = 16; l < 32; ++l) to[l] = scale * level_of(b, part, l); \
    }                                                                     \
  }
WICK_CODE_BLOCK(BlockQ8_1)
WICK_CODE_BLOCK(BlockQ8_K)
WICK_CODE_BLOCK(BlockIQ4_NL)
WICK_CODE_BLOCK(BlockIQ4_XS)
WICK_CODE_BLOCK(BlockMXFP4)
WICK_CODE_BLOCK(BlockTQ1_0)
WICK_CODE_BLOCK(BlockTQ2_0)
WICK_CODE_BLOCK(BlockQ1_0)
WICK_CODE_BLOCK(BlockQ2_0)
#undef WICK_CODE_BLOCK

}  // namespace wick::math
