#pragma once

#include <cstddef>
#include <cstdint>

#include "wick/math/orders.h"

// Packed weights of block dtypes: one layout for all instruction sets.
//
// A panel is 16 rows, one row per SIMD lane. It is a linear stream of units, whose sizes are
// multiples of 64 bytes: a gemv reads it front to back at the speed of memory, and everything that
// a block needs lies in the same few cache lines, which is faster than separate streams of scales.
// A unit holds kUnitBlocks consecutive blocks of 32 columns of all 16 rows, for K-quants a
// superblock:
//   quants   kQuantBytes per block, as vectors of 64 bytes. Byte 4·row + j of vector v belongs to
//            column 4·v + j. Nibbles: the low half belongs to that column, the high half to column
//            16 + 4·v + j. Five bits: nibbles, then a vector of the fifth bits: bit f of byte
//            4·row + j belongs to column 4·f + j. Six bits: three vectors for each 16 columns hold
//            12 columns in their low six bits; the two bits above hold the other four columns, the
//            lowest two bits in the first vector.
//   scales   16 f16 per block, or per superblock
//   minima   for types that have them: 16 f16 per block, or per superblock with inverted sign, so
//            that minima are always added
//   factors  of superblocks. With minima: 16 bytes per block that multiply its dot products, then
//            32 bytes for each two blocks that multiply the minimum, both of a row side by side.
//            Without minima: 16 bytes for each half of a block, which multiply its dot products.
// In superblocks scales, minima and factors come before the quants: the first block needs them, and
// hardware prefetchers follow ascending reads alone. Rows and blocks past the last are zeros, whose
// scale of 0 removes them from sums.
//
// Each type is made from its row of wick/math/quants.def; so is its unpacking
// (quantized_sources.h).

namespace wick::cpu {

inline constexpr int kPanelRows = 16;
inline constexpr int kBlockElems = math::kActivationBlock;
using math::kChunkBlocks;

/// How quants are packed, as unsigned numbers: 4 bits, 5 or 6 bits, or a byte.
enum class Quants : uint8_t { nibbles, five, six, bytes };

/// A row of quants.def. value = d·f·(q − kOffset) + m. In superblocks f is the factor of a block or
/// half a block, and m is −dmin times the minimum's factor of a block; else f is 1. Quants of eight
/// bits are signed in files; packing flips their sign bit, which adds 128.
template <int kBits, int kFileOffset, int kValues, int kPart, bool kMinimum>
struct QuantizedType {
  static constexpr Quants kQuants = kBits == 4   ? Quants::nibbles
                                    : kBits == 5 ? Quants::five
                                    : kBits == 6 ? Quants::six
                                                 : Quants::bytes;
  static constexpr bool kHasMin = kMinimum;
  static constexpr bool kSuper = kValues > kBlockElems;  // d belongs to the unit, and blocks have
                                                         // factors
  static constexpr int kParts = kBlockElems / kPart;  // parts of a block, each with a factor of its
                                                      // own
  static constexpr int kOffset = kBits == 8 ? 128 : kFileOffset;
  /// Enough blocks to make the size of a unit a multiple of 64 bytes.
  static constexpr int kUnitBlocks = kSuper ? kValues / kBlockElems : kMinimum ? 1 : 2;
  /// Blocks whose activations share a scale.
  static constexpr int kSharedBlocks = kSuper && kMinimum ? math::kSharedBlocks : 1;
};
#define WICK_OF_own(Type, ...) \
  struct Type : QuantizedType<__VA_ARGS__> {};
#define WICK_OF_decoded(...)
#define WICK_QUANT(name, Type, number, values, bytes, bits, offset, code, part, scale, at, \
                   minimum_at, products, writes, file_type, reach)                         \
  WICK_OF_##products(Type, bits, offset, values, part, (minimum_at) >= 0)
#include "wick/math/quants.def"
#undef WICK_OF_own
#undef WICK_OF_decoded

/// Offsets inside a unit, and sizes, that follow from a type's constants.
template <class T>
struct Packed {
  static constexpr int kHighBits = 256;  // of the fifth bits, behind the nibbles of a block
  static constexpr int kQuantBytes = T::kQuants == Quants::nibbles ? 256
                                     : T::kQuants == Quants::five  ? 256 + 64
                                     : T::kQuants == Quants::six   ? 384
                                                                   : 512;
  static constexpr int kScaleBytes = 2 * kPanelRows;  // also of the minima
  static constexpr int kUnitScales = T::kSuper ? 1 : T::kUnitBlocks;
  static constexpr int kFactorBytes = T::kSuper ? kPanelRows * (T::kHasMin ? 2 : T::kParts) : 0;
  static constexpr int kHeaderBytes =
      kUnitScales * kScaleBytes * (T::kHasMin ? 2 : 1) + T::kUnitBlocks * kFactorBytes;
  static constexpr int kHeader = T::kSuper ? 0 : T::kUnitBlocks * kQuantBytes;
  static constexpr int kQuants = T::kSuper ? (kHeaderBytes + 63) / 64 * 64 : 0;
  static constexpr int kScales = kHeader;
  static constexpr int kMinima = kScales + kUnitScales * kScaleBytes;
  static constexpr int kFactors = kMinima + (T::kHasMin ? kUnitScales * kScaleBytes : 0);
  static constexpr int kMinimumFactors = kFactors + T::kUnitBlocks * kPanelRows;
  static constexpr int kUnitBytes =
      T::kSuper ? kQuants + T::kUnitBlocks * kQuantBytes : kHeader + kHeaderBytes;
  static_assert(kUnitBytes % 64 == 0);
  static_assert(kChunkBlocks % T::kUnitBlocks == 0);
  static_assert(T::kSharedBlocks == 1 ||
                (T::kSuper && T::kHasMin && T::kSharedBlocks % 2 == 0 && T::kOffset == 0));

  /// Quantised activations: tiles of `width` columns. For each block in turn a tile holds
  ///   width × 32 int8 q | width × f32 d | width × kExtras words of 4 bytes: the integers
  ///   −kOffset·Σq from which the dot products of the block's parts start, or for types with minima
  ///   the float d·Σq. If blocks share a scale, the words of every first block of two hold the
  ///   Σq of both as int16.
  static constexpr int kExtras = T::kParts;
  static constexpr int kTileBlockBytes = kBlockElems + 4 + 4 * kExtras;

  // Inlined even in debug builds: see isa.h on functions that kernel sources share.
  __attribute__((always_inline)) static constexpr int64_t panel_bytes(int64_t blocks) {
    return (blocks + T::kUnitBlocks - 1) / T::kUnitBlocks * kUnitBytes;
  }
};
static_assert(Packed<Q4_0>::kUnitBytes == 576 && Packed<Q4_1>::kUnitBytes == 320);
static_assert(Packed<Q8_0>::kUnitBytes == 1088 && Packed<Q4_K>::kUnitBytes == 2368);
static_assert(Packed<Q6_K>::kUnitBytes == 3392 && Packed<Q5_0>::kUnitBytes == 704);

}  // namespace wick::cpu
