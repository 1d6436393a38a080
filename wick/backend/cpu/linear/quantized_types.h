#pragma once

#include <cstddef>
#include <cstdint>

#include "wick/base/quant.h"
#include "wick/math/code_blocks.h"
#include "wick/math/orders.h"

// Packed weights of block dtypes: one layout for all instruction sets.
//
// A panel is 16 rows, one row per SIMD lane. It is a linear stream of units, whose sizes are
// multiples of 64 bytes: a gemv reads it front to back at the speed of memory, and everything that
// a block needs lies in the same few cache lines, which is faster than separate streams of scales.
// A unit holds kUnitBlocks consecutive blocks of 32 columns of all 16 rows, for K-quants a
// superblock:
//   quants   kQuantBytes per block, as vectors of 64 bytes. Byte 4·row + j of a vector belongs to
//            the columns 4·k + j of the row, for one or more quads k:
//            two bits     vector v: quad 4·v + i in bits 2·i
//            three bits   vectors v = 0, 1, 2: quad v in the low bits, quad 4 + v in the next. The
//                         bits above hold quads 3 and 7: their low two bits in vectors 0 and 1,
//                         their highest bits in vector 2, bits 6 and 7
//            nibbles      vector v: quad v in the low half, quad 4 + v in the high half
//            five bits    nibbles, then a vector of the fifth bits: bit k belongs to quad k
//            six bits     three vectors for each four quads hold three in their low six bits; the
//                         two bits above hold the fourth, the lowest two bits in the first vector
//            bytes        vector v: quad v
//   scales   16 f16 or 16 exponents (e8m0) per block, or 16 f16 per superblock
//   minima   for types that have them: 16 f16 per block, or per superblock with inverted sign, so
//            that minima are always added
//   factors  of superblocks. With minima for each block: 16 bytes per block that multiply its dot
//            products, then 32 bytes for each two blocks that multiply the minimum, both of a row
//            side by side. With minima for each half of a block: 32 bytes per block, both halves of
//            a row side by side; the low nibble multiplies the dot product, the high nibble the
//            minimum. Without minima: 16 bytes for each part of a block, which multiply its dot
//            products.
// In superblocks scales, minima and factors come before the quants: the first block needs them, and
// hardware prefetchers follow ascending reads alone. Rows and blocks past the last are zeros; no
// result depends on them.
//
// Each type is made from its row of wick/math/quants.def; so is its unpacking
// (quantized_sources.h).

namespace wick::cpu {

inline constexpr int kPanelRows = 16;
inline constexpr int kBlockElems = math::kActivationBlock;
using math::kChunkBlocks;

/// Numbers of up to this many bits. Quants are stored as unsigned numbers.
enum class Quants : uint8_t { two, three, nibbles, five, six, bytes };

/// A row of quants.def. value = d·f·(level − kOffset) + m, where the level is the quant or the
/// table's entry for it. In superblocks f is the factor of a block or of half a block, and m is
/// −dmin times the minimum's factor; else f is 1. Quants of eight bits are signed in files; packing
/// flips their sign bit, which adds 128.
template <int kQuantBits, int kFileOffset, math::CodeTable kTable, int kValues, int kPart,
          QuantScale kScaleType, bool kMinimum>
struct QuantizedType {
  static constexpr int kBits = kQuantBits;
  static constexpr Quants kQuants = kBits == 2   ? Quants::two
                                    : kBits == 3 ? Quants::three
                                    : kBits == 4 ? Quants::nibbles
                                    : kBits == 5 ? Quants::five
                                    : kBits == 6 ? Quants::six
                                                 : Quants::bytes;
  static constexpr math::CodeTable kCode = kTable;
  /// The size of levels. Those of less than four bits count as nibbles.
  static constexpr Quants kLevels = kTable == math::CodeTable::normal ? Quants::bytes
                                    : kTable == math::CodeTable::e2m1 ? Quants::five
                                    : kBits < 4                       ? Quants::nibbles
                                                                      : kQuants;
  static constexpr int kOffset = kLevels == Quants::bytes          ? 128
                                 : kTable == math::CodeTable::e2m1 ? 12
                                                                   : kFileOffset;
  static constexpr QuantScale kScale = kScaleType;
  static constexpr bool kHasMin = kMinimum;
  static constexpr bool kSuper = kValues > kBlockElems;  // d belongs to the unit, and blocks have
                                                         // factors
  static constexpr int kParts = kBlockElems / kPart;  // parts of a block, each with a factor of its
                                                      // own
  /// Enough blocks to make the size of a unit a multiple of 64 bytes.
  static constexpr int kUnitBlocks = kSuper                       ? kValues / kBlockElems
                                     : kMinimum                   ? 1
                                     : kScale == QuantScale::e8m0 ? 4
                                                                  : 2;
  /// Blocks whose activations share a scale.
  static constexpr int kSharedBlocks = kSuper && kMinimum ? math::kSharedBlocks : 1;
  /// The largest factor of a dot product, if activations share scales.
  static constexpr int kMaxFactor = kParts == 1 ? 63 : 15;
  /// Blocks whose products, times their factors, have a sum below 2^24.
  static constexpr int kSumBlocks =
      kSharedBlocks * kBlockElems * 127 * kMaxFactor * ((1 << kBits) - 1) < 1 << 24
          ? kSharedBlocks
          : kSharedBlocks / 2;
  /// Whether the products of quants and factors are bytes. With a factor of −32 … 31 and a quant of
  /// −4 … 3 they are −124 … 128, to which kFoldOffset is added.
  static constexpr bool kFolds = kParts == 2 && kBits <= 3;
  static constexpr int kFoldOffset = kFolds && !kMinimum ? 124 : 0;
};
#define WICK_OWN_QUANT(name, Type, number, values, bytes, bits, offset, code, part, scale, at, \
                       minimum_at, ...)                                                        \
  struct Type : QuantizedType<bits, offset, math::CodeTable::code, values, part,               \
                              QuantScale::scale, (minimum_at) >= 0> {};
#include "wick/math/quants_by_products.def"

/// Offsets inside a unit, and sizes, that follow from a type's constants.
template <class T>
struct Packed {
  static constexpr int kHighBits = 256;  // of the fifth bits, behind the nibbles of a block
  static constexpr int kQuantBytes = kPanelRows * kBlockElems * T::kBits / 8;
  static constexpr int kScaleSize = T::kScale == QuantScale::e8m0 ? 1 : 2;
  static constexpr int kScaleBytes = kScaleSize * kPanelRows;  // also of the minima
  static constexpr int kUnitScales = T::kSuper ? 1 : T::kUnitBlocks;
  static constexpr int kFactorBytes = T::kSuper ? kPanelRows * (T::kHasMin ? 2 : T::kParts) : 0;
  static constexpr int kHeaderBytes =
      kUnitScales * kScaleBytes * (T::kHasMin ? 2 : 1) + T::kUnitBlocks * kFactorBytes;
  static constexpr int kHeader = T::kSuper ? 0 : T::kUnitBlocks * kQuantBytes;
  static constexpr int kQuants = T::kSuper ? (kHeaderBytes + 63) / 64 * 64 : 0;
  static constexpr int kScales = kHeader;
  static constexpr int kMinima = kScales + kUnitScales * kScaleBytes;
  static constexpr int kFactors = kMinima + (T::kHasMin ? kUnitScales * kScaleBytes : 0);
  static constexpr int kMinimumFactors =
      kFactors + (T::kParts == 1 ? T::kUnitBlocks * kPanelRows : 0);
  static constexpr int kUnitBytes =
      T::kSuper ? kQuants + T::kUnitBlocks * kQuantBytes : kHeader + kHeaderBytes;
  static_assert(kUnitBytes % 64 == 0);
  static_assert(kChunkBlocks % T::kUnitBlocks == 0);
  static_assert(T::kSharedBlocks == 1 ||
                (T::kSuper && T::kHasMin && T::kSharedBlocks % 2 == 0 && T::kOffset == 0));
  static_assert(T::kSuper || T::kParts == 1);

  /// Quantised activations: tiles of `width` columns. For each block in turn a tile holds
  ///   width × 32 int8 q | width × f32 d | width × kExtras words of 4 bytes
  /// The words are the integers −kOffset·Σq from which the dot products of the block's parts start,
  /// and, if factors may be multiplied into quants, −kFoldOffset·Σq of the block. For types with
  /// minima: the float d·Σq. If blocks share a scale: Σq of both parts of a block as int16, or in
  /// every first block of two Σq of both blocks.
  static constexpr int kExtras = T::kHasMin ? 1 : T::kParts + (T::kFolds ? 1 : 0);
  static constexpr int kTileBlockBytes = kBlockElems + 4 + 4 * kExtras;

  // Inlined even in debug builds: see isa.h on functions that kernel sources share.
  __attribute__((always_inline)) static constexpr int64_t panel_bytes(int64_t blocks) {
    return (blocks + T::kUnitBlocks - 1) / T::kUnitBlocks * kUnitBytes;
  }
};
static_assert(Packed<Q4_0>::kUnitBytes == 576 && Packed<Q4_1>::kUnitBytes == 320);
static_assert(Packed<Q8_0>::kUnitBytes == 1088 && Packed<Q4_K>::kUnitBytes == 2368);
static_assert(Packed<Q6_K>::kUnitBytes == 3392 && Packed<Q5_0>::kUnitBytes == 704);
static_assert(Packed<Q2_K>::kUnitBytes == 1344 && Packed<Q3_K>::kUnitBytes == 1856);
static_assert(Packed<Q5_K>::kUnitBytes == 2880 && Packed<IQ4_XS>::kUnitBytes == 2240);
static_assert(Packed<Q5_1>::kUnitBytes == 384 && Packed<MXFP4>::kUnitBytes == 1088);
static_assert(Q4_K::kSumBlocks == 4 && Q5_K::kSumBlocks == 2 && Q2_K::kSumBlocks == 4);

}  // namespace wick::cpu
