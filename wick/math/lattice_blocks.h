#pragma once

// The GGML block formats of 256 values that store the magnitudes of eight or four values as one
// index into a codebook (codebooks.h), in their file layout. Source: github.com/ggml-org/ggml.
//
// A part is 32 values. Eight values are decoded together: eight_of(block, i) has the values from
// 8·i on.

#include "wick/math/blocks.h"
#include "wick/math/codebooks.h"

namespace wick::math {

/// value = ±(d·(2·s + 1)/8)·m; m is 8, 25 or 43. A part has eight bytes: four indices, then a
/// little-endian word with four times seven signs and the 4-bit s. The eighth sign is that of
/// which the number of negative values is even.
struct BlockIQ2_XXS {
  f16 d;
  u8 qs[64];
};
/// value as in IQ2_XXS, with a 4-bit s for each 16 values. A word of qs has nine bits of index and
/// seven signs.
struct BlockIQ2_XS {
  f16 d;
  u16 qs[32];
  u8 scales[8];
};
/// value as in IQ2_XS, with a byte of signs for each eight values. qs has the low eight bits of
/// indices; qh[p] has the high two bits of four.
struct BlockIQ2_S {
  f16 d;
  u8 qs[32], signs[32], qh[8], scales[8];
};
/// value = ±(d·(2·s + 1)/4)·m; m is 4, 12, … 52 or 62. Each four values have an index in qs; each
/// part has a word of signs and s as in IQ2_XXS.
struct BlockIQ3_XXS {
  f16 d;
  u8 qs[64], words[32];
};
/// value = ±(d·(2·s + 1))·m with a 4-bit s for each part; m is odd, 1 … 15. Each four values have
/// an index, the low eight bits of which are in qs, the ninth is a bit of qh.
struct BlockIQ3_S {
  f16 d;
  u8 qs[64], qh[8], signs[32], scales[4];
};
/// value = (d·(2·s + 1))·(t ± 1/8); t is −1, 0 or 1. A word of qh has three high bits of four
/// indices, the 3-bit s, and in bit 15 the sign of 1/8 of a part.
struct BlockIQ1_S {
  f16 d;
  u8 qs[32];
  u16 qh[8];
};
/// value as in IQ1_S, with a 3-bit s for each 16 values, and a sign of 1/8 for each eight. A nibble
/// of qh has three high bits of an index, then the sign. A word of `scales` has four s, then four
/// bits of the f16 d, the lowest in the first word.
struct BlockIQ1_M {
  u8 qs[32], qh[16];
  u16 scales[4];
};
static_assert(sizeof(BlockIQ2_XXS) == 66 && alignof(BlockIQ2_XXS) == 2);
static_assert(sizeof(BlockIQ2_XS) == 74 && alignof(BlockIQ2_XS) == 2);
static_assert(sizeof(BlockIQ2_S) == 82 && alignof(BlockIQ2_S) == 2);
static_assert(sizeof(BlockIQ3_XXS) == 98 && alignof(BlockIQ3_XXS) == 2);
static_assert(sizeof(BlockIQ3_S) == 110 && alignof(BlockIQ3_S) == 2);
static_assert(sizeof(BlockIQ1_S) == 50 && alignof(BlockIQ1_S) == 2);
static_assert(sizeof(BlockIQ1_M) == 56 && alignof(BlockIQ1_M) == 2);

namespace detail {

/// Element i of an array in a block. Clang for AMD would merge reads of neighbours into reads of
/// words, which would be misaligned, so it mustn't know the address.
template <class T>
WICK_FN u32 element(const T* from, int i) {
#if WICK_FN_AMD_DEVICE
  asm("" : "+v"(i));
#endif
  return from[i];
}

/// Adds the eighth sign to seven.
WICK_FN u32 even_signs(u32 seven) {
  const u32 four = seven ^ seven >> 4, two = four ^ four >> 2;
  return seven | ((two ^ two >> 1) & 1) << 7;
}
/// The signs of the values from 8·i on in a word of IQ2_XXS, of which bytes follow an index byte.
WICK_FN u32 word_signs(const u8* word, int i) {
  const u32 high = element(word, i), low = i == 0 ? 0 : element(word, i - 1);
  return even_signs((high << i | low >> (8 - i)) & 127);
}
/// d·(2·s + 1)·unit, which is exact.
WICK_FN float odd_scale(f16 d, u32 s, float unit) {
  return to_f32(d) * (static_cast<float>(2 * s + 1) * unit);
}

}  // namespace detail

/// 8, 25 or 43.
struct ThreeLevels {
  static constexpr int kBits = 2;
  WICK_FN static u32 of(u32 code) { return 8 + 17 * code + (code >> 1); }
};
/// 4, 12, … 52 or 62.
struct EightLevels {
  static constexpr int kBits = 3;
  WICK_FN static u32 of(u32 code) { return 4 + 8 * code + ((code + 1) >> 3 << 1); }
};
/// 1, 3, … 15.
struct OddLevels {
  static constexpr int kBits = 3;
  WICK_FN static u32 of(u32 code) { return 2 * code + 1; }
};
/// Eight values: ±scale·level.
template <class Levels>
struct SignedEight {
  float scale;
  u32 codes, negative;

  WICK_FN float value(int l) const {
    constexpr u32 kMask = (1u << Levels::kBits) - 1;
    const auto level = static_cast<i32>(Levels::of(codes >> Levels::kBits * l & kMask));
    return scale * static_cast<float>((negative >> l & 1u) != 0 ? -level : level);
  }
};
/// Eight values: scale·(code − 1 + shift).
struct ShiftedEight {
  float scale, shift;
  u32 codes;

  WICK_FN float value(int l) const {
    return scale * (static_cast<float>(static_cast<i32>(codes >> 2 * l & 3) - 1) + shift);
  }
};

WICK_FN SignedEight<ThreeLevels> eight_of(const BlockIQ2_XXS& b, int i) {
  const u8* word = b.qs + 8 * (i / 4) + 4;
  return {detail::odd_scale(b.d, detail::element(word, 3) >> 4, 0.125f),
          kEights256.entries[detail::element(b.qs, i / 4 * 8 + i % 4)],
          detail::word_signs(word, i % 4)};
}
WICK_FN SignedEight<ThreeLevels> eight_of(const BlockIQ2_XS& b, int i) {
  const u32 q = detail::element(b.qs, i), scales = detail::element(b.scales, i / 4);
  return {detail::odd_scale(b.d, scales >> i / 2 % 2 * 4 & 15, 0.125f), kEights512.entries[q & 511],
          detail::even_signs(q >> 9)};
}
WICK_FN SignedEight<ThreeLevels> eight_of(const BlockIQ2_S& b, int i) {
  const u32 high = detail::element(b.qh, i / 4) >> i % 4 * 2 & 3;
  const u32 scales = detail::element(b.scales, i / 4);
  return {detail::odd_scale(b.d, scales >> i / 2 % 2 * 4 & 15, 0.125f),
          kEights1024.entries[detail::element(b.qs, i) | high << 8], detail::element(b.signs, i)};
}
WICK_FN SignedEight<EightLevels> eight_of(const BlockIQ3_XXS& b, int i) {
  const u8* word = b.words + 4 * (i / 4);
  const u32 first = kFours256.entries[detail::element(b.qs, 2 * i)];
  const u32 second = kFours256.entries[detail::element(b.qs, 2 * i + 1)];
  return {detail::odd_scale(b.d, detail::element(word, 3) >> 4, 0.25f), first | second << 12,
          detail::word_signs(word, i % 4)};
}
WICK_FN SignedEight<OddLevels> eight_of(const BlockIQ3_S& b, int i) {
  const u32 high = detail::element(b.qh, i / 4) >> i % 4 * 2;
  const u32 first = kFours512.entries[detail::element(b.qs, 2 * i) | (high & 1) << 8];
  const u32 second = kFours512.entries[detail::element(b.qs, 2 * i + 1) | (high & 2) << 7];
  const u32 scales = detail::element(b.scales, i / 8);
  return {detail::odd_scale(b.d, scales >> i / 4 % 2 * 4 & 15, 1.0f), first | second << 12,
          detail::element(b.signs, i)};
}
WICK_FN ShiftedEight eight_of(const BlockIQ1_S& b, int i) {
  const u32 high = detail::element(b.qh, i / 4);
  return {detail::odd_scale(b.d, high >> 12 & 7, 1.0f), (high & 0x8000) != 0 ? -0.125f : 0.125f,
          kEights2048.entries[detail::element(b.qs, i) | (high >> i % 4 * 3 & 7) << 8]};
}
WICK_FN ShiftedEight eight_of(const BlockIQ1_M& b, int i) {
  u32 d = 0;
  for (int w = 0; w < 4; ++w) d |= detail::element(b.scales, w) >> 12 << 4 * w;
  const u32 s = detail::element(b.scales, i / 8) >> (i / 2 % 4 * 3) & 7;
  const u32 high = detail::element(b.qh, i / 2) >> i % 2 * 4;
  return {detail::odd_scale(f16{static_cast<u16>(d)}, s, 1.0f), (high & 8) != 0 ? -0.125f : 0.125f,
          kEights2048.entries[detail::element(b.qs, i) | (high & 7) << 8]};
}

/// Value j of a block, and all values of a block. Every bit pattern; exact.
#define WICK_LATTICE_BLOCK(Block)                                                           \
  template <>                                                                               \
  inline constexpr int kBlockValues<Block> = 256;                                           \
  WICK_FN float value_of(const Block& b, int j) { return eight_of(b, j / 8).value(j % 8); } \
  WICK_FN void dequantize(const Block& b, float* out) {                                     \
    for (int i = 0; i < 32; ++i) {                                                          \
      const auto eight = eight_of(b, i);                                                    \
      for (int l = 0; l < 8; ++l) out[8 * i + l] = eight.value(l);                          \
    }                                                                                       \
  }
WICK_LATTICE_BLOCK(BlockIQ2_XXS)
WICK_LATTICE_BLOCK(BlockIQ2_XS)
WICK_LATTICE_BLOCK(BlockIQ2_S)
WICK_LATTICE_BLOCK(BlockIQ3_XXS)
WICK_LATTICE_BLOCK(BlockIQ3_S)
WICK_LATTICE_BLOCK(BlockIQ1_S)
WICK_LATTICE_BLOCK(BlockIQ1_M)
#undef WICK_LATTICE_BLOCK

}  // namespace wick::math
