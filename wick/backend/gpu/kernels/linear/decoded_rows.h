#pragma once

// Reads values of weights that are decoded to f32: from units (decoded_units.h) or from rows in
// file layout.

#include "wick/backend/gpu/kernels/device/code_table.h"
#include "wick/backend/gpu/kernels/linear/decoded_units.h"
#include "wick/backend/gpu/kernels/linear/quantized.h"

namespace wick::gpu {

/// Neighbouring values that are decoded together, where a weight isn't read by chunks.
constexpr u32 kDecodedPart = 8;

template <class Block>
inline constexpr u32 kDecodedUnitBytes = unit_bytes(DecodedUnit<Block>::kPieces, WICK_AMD != 0);

/// A row of a unit in registers. Indices must be known at compile time.
template <class Block>
struct RegisterRow {
  static constexpr UnitPieces kPieces = DecodedUnit<Block>::kPieces;
  Bytes16 w[kPieces.quants + kPieces.scales];
  u32 tail[2];

  WICK_DEVICE void load(const u8* unit, u32 row) {
    constexpr u32 kAll = kPieces.quants + kPieces.scales;
    const Bytes16* from = reinterpret_cast<const Bytes16*>(unit) + row;
#pragma unroll
    for (u32 i = 0; i < kAll; ++i) w[i] = load_streamed(from + i * kUnitRows);
    const u8* behind = unit + kAll * kPieceBytes;
    if constexpr (kPieces.tail == 4) {
      tail[0] = reinterpret_cast<const u32*>(behind)[row];
    } else if constexpr (kPieces.tail == 8) {
      const u64 both = reinterpret_cast<const u64*>(behind)[row];
      tail[0] = static_cast<u32>(both);
      tail[1] = static_cast<u32>(both >> 32);
    }
  }
  WICK_DEVICE u32 quants(u32 piece, u32 i) const { return w[piece].w[i]; }
  WICK_DEVICE u32 word(u32 i) const {
    if constexpr (kPieces.scales != 0) {
      if (i < 4 * kPieces.scales) return w[kPieces.quants + i / 4].w[i % 4];
    }
    return tail[i - 4 * kPieces.scales];
  }
  WICK_DEVICE float half(u32 i) const {
    return to_f32(f16{static_cast<u16>(word(i / 2) >> i % 2 * 16)});
  }
};

/// A row of a unit in memory.
template <class Block>
struct MemoryRow {
  static constexpr UnitPieces kPieces = DecodedUnit<Block>::kPieces;
  const u8* unit;
  u32 row;

  WICK_DEVICE u32 quants(u32 piece, u32 i) const {
    return reinterpret_cast<const u32*>(unit)[(piece * kUnitRows + row) * 4 + i];
  }
  WICK_DEVICE u32 word(u32 i) const {
    if constexpr (kPieces.scales != 0) {
      if (i < 4 * kPieces.scales) return quants(kPieces.quants + i / 4, i % 4);
    }
    const u8* behind = unit + (kPieces.quants + kPieces.scales) * kPieceBytes;
    return reinterpret_cast<const u32*>(behind)[row * (kPieces.tail / 4) + i - 4 * kPieces.scales];
  }
  WICK_DEVICE float half(u32 i) const {
    return to_f32(f16{static_cast<u16>(word(i / 2) >> i % 2 * 16)});
  }
};

/// The levels plus kOffset of values 32·j + 4·i to 32·j + 4·i + 3 of a row of a unit, as bytes.
template <class Block, class Row>
WICK_DEVICE u32 four_levels(const Row& row, u32 j, u32 i) {
  using Unit = DecodedUnit<Block>;
  u32 levels;
  if constexpr (Unit::kCoded) {
    levels = look_up<Unit::kFirst, Unit::kSecond>(row.quants(j, i % 4), i / 4);
  } else if constexpr (Unit::kBits == 4) {
    levels = nibbles_of(row.quants(j, i % 4), i / 4);
  } else {
    levels = row.quants(j / 4 * 2 + i / 4, i % 4) >> j % 4 * 2 & 0x03030303u;
  }
  if constexpr (Unit::kHigh != 0) {
    const u32 high = row.quants(Unit::kBits * 2 + i / 4, i % 4) >> j & 0x01010101u;
    levels |= high << Unit::kBits;
  }
  return levels;
}

/// The value of byte b of a word of four_levels().
template <class Block>
WICK_DEVICE float unit_value(const math::PartScale& part, u32 levels, u32 b) {
  using Unit = DecodedUnit<Block>;
  const float level = byte_minus<Unit::kOffset>(levels, b);
  return Unit::kMinimum ? fma(part.scale, level, part.minimum) : part.scale * level;
}

/// A weight of `rows` rows of k values, which are whole blocks, in units or in file layout.
template <class Block>
struct DecodedRows {
  const void* first;
  u32 rows, k;

  /// Decodes kDecodedPart neighbouring values of a row; `at` is a multiple of kDecodedPart.
  WICK_DEVICE void decode(u32 row, u32 at, float (&w)[kDecodedPart]) const {
    if constexpr (kHasUnits<Block>) {
      constexpr u32 kChunk = math::kDecodedChunk;
      const u64 unit = u64{row / kUnitRows} * ((k + kChunk - 1) / kChunk) + at / kChunk;
      const u8* const units = static_cast<const u8*>(first);
      const MemoryRow<Block> from{units + unit * kDecodedUnitBytes<Block>, row % kUnitRows};
      const u32 in_chunk = at % kChunk;
      const math::PartScale part =
          DecodedUnit<Block>::part_of(from, in_chunk / DecodedUnit<Block>::kPart);
#pragma unroll
      for (u32 i = 0; i < kDecodedPart; i += 4) {
        const u32 levels = four_levels<Block>(from, in_chunk / 32, (in_chunk % 32 + i) / 4);
#pragma unroll
        for (u32 b = 0; b < 4; ++b) w[i + b] = unit_value<Block>(part, levels, b);
      }
    } else {
      constexpr u32 kValues = math::kBlockValues<Block>;
      const Block& block =
          static_cast<const Block*>(first)[u64{row} * (k / kValues) + at / kValues];
#pragma unroll
      for (u32 i = 0; i < kDecodedPart; ++i) {
        u32 j = at % kValues + i;
        // Clang would merge the byte loads into word loads, which would be misaligned.
        if constexpr (WICK_AMD) forget(j);
        w[i] = value_of(block, static_cast<int>(j));
      }
    }
  }
};

}  // namespace wick::gpu
