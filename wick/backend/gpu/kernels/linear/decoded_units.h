#pragma once

// The layout on GPUs of weights that `linear` decodes to f32, one description for each format. Host
// and kernels include this file.
//
// A unit is 16 rows by a chunk of 256 values, in pieces of 256 B, 16 B for each row (see
// quantized.h). First come the low bits of the quants, four or two of each:
//   four bits  8 pieces; byte i of a row's piece j has values 32·j + i (low nibble) and
//              32·j + 16 + i (high nibble)
//   two bits   4 pieces; byte l of a row's pieces 2·n and 2·n + 1 has value 128·n + 32·r + l from
//              bit 2·r on
// If the quants have one bit more, 2 pieces follow: bit j of byte l of a row has that bit of value
// 32·j + l. The scales follow: pieces of 16 B for each row, then 0, 4 or 8 B for each row.
//
// A description states how many bits, how many bytes of scales, which bytes of the file these are,
// and what they mean. A block dtype without a description stays in file layout, which every kernel
// supports.

#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/math/orders.h"
#include "wick/math/quants.h"

namespace wick::gpu {

/// A byte of the file: byte `offset` of block `block` of a chunk. Behind the block's end it is 0.
struct FileByte {
  u32 block, offset;
};

/// kOfBits: low bits of a quant, 4 or 2. kOfHigh: 1 if it has one bit more. kOfPart: values that
/// share a scale. kOfScales: bytes of scales of a row of a unit.
template <u32 kOfBits, u32 kOfHigh, u32 kOfPart, u32 kOfScales>
struct UnitLayout {
  static constexpr u32 kBits = kOfBits, kHigh = kOfHigh, kPart = kOfPart, kScales = kOfScales;
  static constexpr UnitPieces kPieces{2 * (kOfBits + kOfHigh), kOfScales / 16, kOfScales % 16};
};

/// value = scale · level + minimum; level = quant − kOffset. If kCoded is true, level is the int8
/// in a table of sixteen bytes, kFirst and kSecond, at index quant.
struct Linear {
  static constexpr bool kMinimum = false, kCoded = false;
  static constexpr u32 kOffset = 0;
};
template <u64 kOfFirst, u64 kOfSecond>
struct Coded {
  static constexpr bool kMinimum = false, kCoded = true;
  // Entries plus 128, which makes them unsigned.
  static constexpr u32 kOffset = 128;
  static constexpr u64 kFirst = kOfFirst ^ 0x8080808080808080u,
                       kSecond = kOfSecond ^ 0x8080808080808080u;
};
using NormalCode = Coded<math::kNormalCode.first, math::kNormalCode.second>;
using E2m1Code = Coded<math::kE2m1Code.first, math::kE2m1Code.second>;

/// The description of a format. quant_of(block, j): the quant of value j of a block. scale_byte(i):
/// the origin of byte i of a row's scales. part_of(scales, part): the scale and the minimum of a
/// part; scales.word(i) are four bytes of the row's scales, and scales.half(i) is an f16 of them.
/// In this general case all is empty: the weight stays in file layout.
template <class Block>
struct DecodedUnit {
  static constexpr UnitPieces kPieces{0, 0, 0};
};

/// Byte j of a word, as a float.
WICK_FN float float_of_byte(u32 word, u32 j) { return static_cast<float>(word >> 8 * j & 255); }

/// The quant of value l of 32 in 16 bytes of nibbles.
WICK_FN u32 nibble_at(const math::u8* bytes, u32 l) { return bytes[l % 16] >> l / 16 * 4 & 15; }

/// The scales are the 16 bytes of factors, then d and dmin.
template <>
struct DecodedUnit<math::BlockQ2_K> : UnitLayout<2, 0, 16, 20>, Linear {
  static constexpr bool kMinimum = true;
  WICK_FN static u32 quant_of(const math::BlockQ2_K& b, u32 j) {
    return b.qs[j / 128 * 32 + j % 32] >> j / 32 % 4 * 2 & 3;
  }
  WICK_FN static FileByte scale_byte(u32 i) { return {0, i < 16 ? i : 64 + i}; }
  template <class Scales>
  WICK_FN static math::PartScale part_of(const Scales& s, u32 part) {
    const u32 four = s.word(part / 4);
    return {s.half(8) * float_of_byte(four & 0x0f0f0f0fu, part % 4),
            -(s.half(9) * float_of_byte(four >> 4 & 0x0f0f0f0fu, part % 4))};
  }
};

/// The scales are the 12 bytes of factors, then d, then two zeros.
template <>
struct DecodedUnit<math::BlockQ3_K> : UnitLayout<2, 1, 16, 16>, Linear {
  static constexpr u32 kOffset = 4;
  WICK_FN static u32 quant_of(const math::BlockQ3_K& b, u32 j) {
    const u32 low = b.qs[j / 128 * 32 + j % 32] >> j / 32 % 4 * 2 & 3;
    return low | (b.hmask[j % 32] >> j / 32 & 1) << 2;
  }
  WICK_FN static FileByte scale_byte(u32 i) { return {0, 96 + i}; }
  template <class Scales>
  WICK_FN static math::PartScale part_of(const Scales& s, u32 part) {
    const u32 low = s.word(part % 8 / 4) >> part / 8 * 4 & 0x0f0f0f0fu;
    const u32 high = s.word(2) >> part / 4 * 2 & 0x03030303u;
    const u32 factor = (low | high << 4) >> part % 4 * 8 & 255;
    return {s.half(6) * static_cast<float>(static_cast<math::i32>(factor) - 32), 0.0f};
  }
};

/// The scales are the first 16 bytes of the block: d, dmin and 12 bytes of factors.
template <>
struct DecodedUnit<math::BlockQ5_K> : UnitLayout<4, 1, 32, 16>, Linear {
  static constexpr bool kMinimum = true;
  WICK_FN static u32 quant_of(const math::BlockQ5_K& b, u32 j) {
    const u32 low = b.qs[j / 64 * 32 + j % 32] >> j / 32 % 2 * 4 & 15;
    return low | (b.qh[j % 32] >> j / 32 & 1) << 4;
  }
  WICK_FN static FileByte scale_byte(u32 i) { return {0, i}; }
  template <class Scales>
  WICK_FN static math::PartScale part_of(const Scales& s, u32 part) {
    // As read_six_bits, for four factors at a time.
    const u32 a = s.word(1), b = s.word(2), c = s.word(3);
    const bool first = part < 4;
    const u32 scales = first ? a & 0x3f3f3f3fu : (c & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u);
    const u32 minima = first ? b & 0x3f3f3f3fu : (c >> 4 & 0x0f0f0f0fu) | (b >> 2 & 0x30303030u);
    return {s.half(0) * float_of_byte(scales, part % 4),
            -(s.half(1) * float_of_byte(minima, part % 4))};
  }
};

/// The scales are d of 8 blocks, then m of 8 blocks.
template <>
struct DecodedUnit<math::BlockQ5_1> : UnitLayout<4, 1, 32, 32>, Linear {
  static constexpr bool kMinimum = true;
  WICK_FN static u32 quant_of(const math::BlockQ5_1& b, u32 j) {
    return nibble_at(b.qs, j) | (b.qh[j / 8] >> j % 8 & 1) << 4;
  }
  WICK_FN static FileByte scale_byte(u32 i) { return {i % 16 / 2, i / 16 * 2 + i % 2}; }
  template <class Scales>
  WICK_FN static math::PartScale part_of(const Scales& s, u32 part) {
    return {s.half(part), s.half(8 + part)};
  }
};

/// The scales are d of 8 blocks.
template <>
struct DecodedUnit<math::BlockIQ4_NL> : UnitLayout<4, 0, 32, 16>, NormalCode {
  WICK_FN static u32 quant_of(const math::BlockIQ4_NL& b, u32 j) { return nibble_at(b.qs, j); }
  WICK_FN static FileByte scale_byte(u32 i) { return {i / 2, i % 2}; }
  template <class Scales>
  WICK_FN static math::PartScale part_of(const Scales& s, u32 part) {
    return {s.half(part), 0.0f};
  }
};

/// The scales are the first 8 bytes of the block: d, and 2 and 4 bytes of factors.
template <>
struct DecodedUnit<math::BlockIQ4_XS> : UnitLayout<4, 0, 32, 8>, NormalCode {
  WICK_FN static u32 quant_of(const math::BlockIQ4_XS& b, u32 j) {
    return nibble_at(b.qs + j / 32 * 16, j % 32);
  }
  WICK_FN static FileByte scale_byte(u32 i) { return {0, i}; }
  template <class Scales>
  WICK_FN static math::PartScale part_of(const Scales& s, u32 part) {
    const u32 low = s.word(1) >> part * 4 & 15, high = s.word(0) >> (16 + part * 2) & 3;
    return {s.half(0) * static_cast<float>(static_cast<math::i32>(low | high << 4) - 32), 0.0f};
  }
};

/// The scales are the exponents of 8 blocks.
template <>
struct DecodedUnit<math::BlockMXFP4> : UnitLayout<4, 0, 32, 8>, E2m1Code {
  WICK_FN static u32 quant_of(const math::BlockMXFP4& b, u32 j) { return nibble_at(b.qs, j); }
  WICK_FN static FileByte scale_byte(u32 i) { return {i, 0}; }
  template <class Scales>
  WICK_FN static math::PartScale part_of(const Scales& s, u32 part) {
    math::BlockMXFP4 block;
    block.e = static_cast<math::u8>(s.word(part / 4) >> part % 4 * 8);
    return {math::scale_of(block, 0), 0.0f};
  }
};

template <class Block>
inline constexpr bool kHasUnits = DecodedUnit<Block>::kPieces.quants != 0;

// ---- Thread blocks of the kernels that read units: decoded_few.gpu ----

/// decoded_few: columns of a thread block; chunks of a segment, which a thread block takes at a
/// time; threads for each row group of 16 rows, of which a thread block has one or two.
inline constexpr u32 kUnitsFewColumns = 4, kUnitsFewSegment = 8,
                     kUnitsFewThreads = kUnitsFewSegment * kUnitRows;
static_assert(2 * kUnitsFewThreads == kDecodedThreads);
/// Distance of chunks of a column in shared memory, in floats. It isn't 256, so that the two halves
/// of a warp read from different banks.
inline constexpr u32 kUnitsPitch = 256 + 4;
/// Chunks of a segment of decoded_one, which has all threads if there are more chunks.
WICK_FN constexpr u32 units_one_segment(u32 chunks, bool amd) {
  constexpr u32 kSlots = kDecodedThreads / kUnitRows;
  const u32 most = amd ? kSlots : 40;
  return chunks <= most ? chunks : most / kSlots * kSlots;
}
/// Chunks of a segment of decoded_few.
WICK_FN constexpr u32 units_few_segment(u32 chunks) {
  return chunks < kUnitsFewSegment ? chunks : kUnitsFewSegment;
}
/// Bytes of shared memory: a segment of the columns, and the sum of each chunk, column and row.
WICK_FN constexpr u32 units_bytes(u32 segment, u32 columns, u32 row_groups) {
  return segment * columns * 4 * (kUnitsPitch + row_groups * kUnitRows);
}

}  // namespace wick::gpu
