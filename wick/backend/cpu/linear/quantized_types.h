#pragma once

#include <cstddef>
#include <cstdint>

// Packed weights of block types, one layout for every instruction set.
//
// A panel is 16 rows, one SIMD lane a row, and one linear stream of units of 64-byte multiples: a
// product reads it front to back at the speed of memory, and everything that a block needs lies in
// the same few cache lines (scales as streams of their own lose to that). A unit holds kUnitBlocks
// consecutive blocks of 32 columns of all 16 rows:
//   quants   per block kQuantBytes: 64-byte vectors, byte 4·row + j of vector v belongs to column
//            4·v + j; for nibbles the low half of the byte, and the high half to column 16 + 4·v +
//            j
//   scales   per block 16 f16
//   minima   per block 16 f16, where the type has them
// Rows past the last and blocks past the last are zeros: their scale makes them count for nothing.
//
// A type is one struct of constants here and its unpacking in quantized_block.h.

namespace wick::cpu {

inline constexpr int kPanelRows = 16;
inline constexpr int kBlockElems = 32;
/// Blocks whose products are summed before they join the total: part of the numeric contract.
inline constexpr int kChunkBlocks = 8;

/// value = d·(q − 8), q in a nibble.
struct Q4_0 {
  static constexpr int kUnitBlocks = 2, kQuantBytes = 256;
  static constexpr bool kNibbles = true, kHasMin = false;
  static constexpr int kOffset = 8;      // value = d·(q − kOffset) + m, q unsigned as packed
  static constexpr int kFileBytes = 18;  // f16 d, then the quants
  static constexpr int kFileQuants = 2;
  static constexpr uint32_t kFlip = 0;  // what turns four quants of the file into unsigned ones
};

/// value = d·q + m, q in a nibble.
struct Q4_1 {
  static constexpr int kUnitBlocks = 1, kQuantBytes = 256;
  static constexpr bool kNibbles = true, kHasMin = true;
  static constexpr int kOffset = 0;
  static constexpr int kFileBytes = 20;  // f16 d, f16 m, then the quants
  static constexpr int kFileQuants = 4;
  static constexpr uint32_t kFlip = 0;
};

/// value = d·q, q signed in the file; its sign bit is flipped when packed, which adds 128.
struct Q8_0 {
  static constexpr int kUnitBlocks = 2, kQuantBytes = 512;
  static constexpr bool kNibbles = false, kHasMin = false;
  static constexpr int kOffset = 128;
  static constexpr int kFileBytes = 34;
  static constexpr int kFileQuants = 2;
  static constexpr uint32_t kFlip = 0x80808080u;
};

/// Offsets inside a unit, and sizes, that follow from a type's constants.
template <class T>
struct Packed {
  static constexpr int kScales = T::kUnitBlocks * T::kQuantBytes;
  static constexpr int kMinima = kScales + T::kUnitBlocks * 2 * kPanelRows;
  static constexpr int kUnitBytes = kMinima + (T::kHasMin ? T::kUnitBlocks * 2 * kPanelRows : 0);
  static_assert(kUnitBytes % 64 == 0 && kChunkBlocks % T::kUnitBlocks == 0);

  // Inlined even in debug builds: see isa.h on what kernel sources may share.
  __attribute__((always_inline)) static constexpr int64_t panel_bytes(int64_t blocks) {
    return (blocks + T::kUnitBlocks - 1) / T::kUnitBlocks * kUnitBytes;
  }
};

// Quantised activations: tiles of `width` columns. For each block in turn a tile holds
//   width × 32 int8 q | width × f32 d | width × 4 bytes: the integer −kOffset·Σq from which the
//   block's dot product starts, or for types with minima the float rn(d·Σq).
inline constexpr int kTileBlockBytes = kBlockElems + 4 + 4;

}  // namespace wick::cpu
