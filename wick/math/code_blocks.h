#pragma once

// The GGML block formats whose quants index a table of values, and the two formats of quantised
// activations, in their file layout. Source: github.com/ggml-org/ggml, docs/gguf.md.

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
static_assert(sizeof(BlockQ8_1) == 36 && alignof(BlockQ8_1) == 2);
static_assert(sizeof(BlockQ8_K) == 292 && alignof(BlockQ8_K) == 4);
static_assert(sizeof(BlockIQ4_NL) == 18 && alignof(BlockIQ4_NL) == 2);
static_assert(sizeof(BlockIQ4_XS) == 136 && alignof(BlockIQ4_XS) == 2);
static_assert(sizeof(BlockMXFP4) == 17 && alignof(BlockMXFP4) == 1);
template <>
inline constexpr int kBlockValues<BlockQ8_K> = 256;
template <>
inline constexpr int kBlockValues<BlockIQ4_XS> = 256;

/// The tables that quants may index: the column `code` of quants.def.
enum class CodeTable : u8 { none, normal, e2m1 };

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
#undef WICK_CODE_BLOCK

}  // namespace wick::math
