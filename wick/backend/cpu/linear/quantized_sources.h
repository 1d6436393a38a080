#pragma once

#include <type_traits>

#include "wick/backend/cpu/linear/quantized_dot.h"
#include "wick/backend/cpu/linear/quantized_types.h"

// Sources of weights for the kernels. A source names a block by its unit and its index in the unit,
// and provides: the vectors of a block, and quad `k` (columns 4k to 4k + 3) of them, unpacked; the
// scale and minimum of a block, and the factor of each of its parts. For types whose blocks share a
// scale of the activations: the scale and minimum of a unit, the factors of a block, and the
// factors of the minima of two parts. kLevels is the size of the unpacked levels, kFolded is true
// if they have been multiplied by their factors, and kArranged if they are interleaved for products
// of matrices (quantized_dot_neon.h). For kernel sources only (see isa.h).

#if defined(WICK_PORTABLE_INT8)
#define WICK_UNROLL
#else
#define WICK_UNROLL _Pragma("GCC unroll 16")
#endif

namespace wick::cpu::WICK_ISA {
namespace {

/// Dot products that factors multiply have 16-bit sums.
template <class T>
constexpr Quants kDotLevels = T::kSharedBlocks > 1 ? Quants::nibbles : T::kLevels;

/// kHolds: whether the vectors of a block are loaded once and kept in registers. Otherwise each use
/// loads them, as an operand of the first instruction that unpacks them.
#if defined(__AVX512BW__)
template <class T>
constexpr bool kHolds = T::kQuants == Quants::two || T::kQuants == Quants::three;

template <int kCount>
struct Held {
  U8x64 v[kCount];
  WICK_SIMD Held load(const uint8_t* from) {
    Held held;
    WICK_UNROLL
    for (int i = 0; i < kCount; ++i) {
      held.v[i] = load_bytes(from + i * 64);
      asm("" : "+v"(held.v[i]));
    }
    return held;
  }
};
template <int kCount>
WICK_SIMD U8x64 vector_of(const Held<kCount>& held, int i) {
  return held.v[i];
}
#else
template <class T>
constexpr bool kHolds = false;
template <int kCount>
struct Held;
#endif
WICK_SIMD U8x64 vector_of(const uint8_t* from, int i) { return load_bytes(from + i * 64); }

/// A packed panel that is unpacked in registers.
template <class T>
struct FromPanel {
  using P = Packed<T>;
  static constexpr int kUnitBlocks = T::kUnitBlocks;
  static constexpr Quants kLevels = kDotLevels<T>;
  static constexpr bool kFolded = false;
  static constexpr bool kArranged = false;
  const uint8_t* panel;
  int64_t ahead;  // prefetch distance

  WICK_SIMD const uint8_t* at(const FromPanel& s, int64_t unit) {
    return s.panel + unit * P::kUnitBytes;
  }
  /// The vectors of a block's quants: in registers, or else their address.
  WICK_SIMD auto vectors(const FromPanel& s, int64_t unit, int g) {
    const uint8_t* from = at(s, unit) + P::kQuants + g * P::kQuantBytes;
    if constexpr (kHolds<T>) {
      return Held<P::kQuantBytes / 64>::load(from);
    } else {
      return from;
    }
  }
  /// Quad k of the quants of a block, of up to six bits.
  template <class Vectors>
  WICK_SIMD U8x64 quants(const Vectors& from, int k) {
    const int part = k >> 2, i = k & 3;
    if constexpr (T::kQuants == Quants::two) {
      return bit_field(vector_of(from, part), 2 * i, 3);
    } else if constexpr (T::kQuants == Quants::three) {
      if (i < 3) return bit_field(vector_of(from, i), 3 * part, 7);
      return top_three(vector_of(from, part), vector_of(from, 2), part);
    } else if constexpr (T::kQuants == Quants::six) {
      const int three = part * 3;
      if (i < 3) return low_six(vector_of(from, three + i));
      return top_pairs(vector_of(from, three), vector_of(from, three + 1),
                       vector_of(from, three + 2));
    } else {
      const U8x64 v = vector_of(from, i);
      const U8x64 low = part == 0 ? low_nibbles(v) : high_nibbles(v);
      if constexpr (T::kQuants == Quants::five) {
        return add_bit(low, vector_of(from, 4), k);
      } else {
        return low;
      }
    }
  }
  template <class Vectors>
  WICK_SIMD auto quad(const Vectors& from, int k) {
    if constexpr (T::kQuants == Quants::bytes) {
      return byte_weights(vector_of(from, k));
    } else if constexpr (T::kCode == math::CodeTable::normal) {
      return normal_weights(quants(from, k));
    } else if constexpr (T::kCode == math::CodeTable::e2m1) {
      return look_up(kE2m1Levels.v, quants(from, k));
    } else {
      return quants(from, k);
    }
  }
  WICK_SIMD F32x16 scale(const FromPanel& s, int64_t unit, int g) {
    const uint8_t* from = at(s, unit) + P::kScales + (T::kSuper ? 0 : g) * P::kScaleBytes;
    if constexpr (T::kScale == QuantScale::e8m0) {
      return load_e8m0(from);
    } else {
      return load_f16(from);
    }
  }
  WICK_SIMD F32x16 minimum(const FromPanel& s, int64_t unit, int g) {
    return load_f16(at(s, unit) + P::kMinima + (T::kSuper ? 0 : g) * P::kScaleBytes);
  }
  WICK_SIMD auto factors(const FromPanel& s, int64_t unit, int g, int part) {
    if constexpr (T::kParts == 1) {
      return load_factors(at(s, unit) + P::kFactors + g * kPanelRows);
    } else {
      return load_part_factors(at(s, unit) + P::kFactors + g * 2 * kPanelRows, part);
    }
  }
  /// The factors of the minima of both parts of block g, or of blocks g, which is even, and g + 1.
  WICK_SIMD I16x32 minimum_factors(const FromPanel& s, int64_t unit, int g) {
    const uint8_t* from = at(s, unit) + P::kMinimumFactors + g * T::kParts * kPanelRows;
    return T::kParts == 1 ? load_pairs(from) : load_nibble_pairs(from, 1);
  }
  WICK_SIMD const uint8_t* factor_bytes(const FromPanel& s, int64_t unit, int g, int part) {
    return at(s, unit) + P::kFactors + g * P::kFactorBytes + part * kPanelRows;
  }
  WICK_SIMD F32x16 factor(const FromPanel& s, int64_t unit, int g, int part) {
    return load_i8(factor_bytes(s, unit, g, part));
  }
  WICK_SIMD void prefetch(const FromPanel& s, int64_t unit, int g) {
    constexpr int kLines = P::kUnitBytes / 64;
    if constexpr (kUnitBlocks <= 4) {
      WICK_UNROLL
      for (int line = kLines * g / kUnitBlocks; line < kLines * (g + 1) / kUnitBlocks; ++line) {
        __builtin_prefetch(at(s, unit) + s.ahead + line * 64);
      }
    } else {
      // Equally many for every block, so that all blocks share one loop body.
      constexpr int kEach = (kLines + kUnitBlocks - 1) / kUnitBlocks;
      WICK_UNROLL
      for (int line = 0; line < kEach; ++line) {
        __builtin_prefetch(at(s, unit) + s.ahead + (g * kEach + line) * 64);
      }
    }
  }
};

/// Whether prompts multiply factors into quants.
#if defined(__AVX512VNNI__) || defined(WICK_MATRIX_INT8)
template <class T>
constexpr bool kFoldsFactors = T::kFolds;
/// Quads of a block, multiplied by the factor of their part, plus kFoldOffset.
template <class T>
WICK_SIMD U8x64 folded_quad(const FromPanel<T>& s, int64_t unit, int g, int k) {
  const U8x64 v = FromPanel<T>::quad(FromPanel<T>::vectors(s, unit, g), k);
  if constexpr (T::kHasMin) {
    return fold_factor(v, twice_each(FromPanel<T>::factors(s, unit, g, k >> 2)), no_offset());
  } else {
    const I16x32 factor = load_signed_factors(FromPanel<T>::factor_bytes(s, unit, g, k >> 2));
    return fold_factor(v, factor, fold_offset(factor, T::kOffset, T::kFoldOffset));
  }
}
#else
template <class T>
constexpr bool kFoldsFactors = false;
template <class T>
WICK_SIMD U8x64 folded_quad(const FromPanel<T>&, int64_t, int, int);
#endif

#if defined(WICK_MATRIX_INT8)
constexpr bool kArrangesQuads = true;
#else
constexpr bool kArrangesQuads = false;
WICK_SIMD void arrange_quads(uint8_t*) {}
#endif

/// A panel unpacked in scratch memory. Per block: the bytes of eight quads (two planes for byte
/// weights without VNNI), 16 f32 scales, 16 f32 minima, 16 f32 factors of each part.
template <class T>
struct FromScratch {
  static constexpr int kUnitBlocks = 1;
  static constexpr bool kFolded = kFoldsFactors<T>;
  static constexpr Quants kLevels = kFolded ? Quants::bytes : T::kLevels;
  static constexpr bool kArranged = kArrangesQuads;
  static constexpr bool kWhole = T::kLevels == Quants::bytes;
  static constexpr bool kHasFactors = T::kSuper && !kFolded;
  static constexpr int kScales = (kWhole ? kBytePlanes : 1) * kPlaneBytes;
  static constexpr int kMinima = kScales + 64;
  static constexpr int kFactors = kMinima + (T::kHasMin ? 64 : 0);
  static constexpr int kBlockBytes = kFactors + (kHasFactors ? 64 * T::kParts : 0);
  const uint8_t* panel;

  WICK_SIMD const uint8_t* at(const FromScratch& s, int64_t unit) {
    return s.panel + unit * kBlockBytes;
  }
  WICK_SIMD F32x16 floats(const FromScratch& s, int64_t unit, int offset) {
    return load_16(reinterpret_cast<const float*>(at(s, unit) + offset));
  }
  WICK_SIMD const uint8_t* vectors(const FromScratch& s, int64_t unit, int) { return at(s, unit); }
  WICK_SIMD auto quad(const uint8_t* from, int k) {
    if constexpr (kWhole) {
      return load_weights(from + k * 64);
    } else {
      return load_bytes(from + k * 64);
    }
  }
  WICK_SIMD F32x16 scale(const FromScratch& s, int64_t unit, int) {
    return floats(s, unit, kScales);
  }
  WICK_SIMD F32x16 minimum(const FromScratch& s, int64_t unit, int) {
    return floats(s, unit, kMinima);
  }
  WICK_SIMD F32x16 factor(const FromScratch& s, int64_t unit, int, int part) {
    return floats(s, unit, kFactors + part * 64);
  }
  WICK_SIMD void prefetch(const FromScratch&, int64_t, int) {}

  static void fill(uint8_t* to, const FromPanel<T>& from, int64_t blocks) {
    using Panel = FromPanel<T>;
    for (int64_t b = 0; b < blocks; ++b, to += kBlockBytes) {
      const int64_t unit = b / T::kUnitBlocks;
      const int g = static_cast<int>(b % T::kUnitBlocks);
      const auto vectors = Panel::vectors(from, unit, g);
      WICK_UNROLL
      for (int k = 0; k < 8; ++k) {
        if constexpr (kFolded) {
          store_bytes(to + k * 64, folded_quad(from, unit, g, k));
        } else if constexpr (kWhole) {
          store_weights(to + k * 64, Panel::quad(vectors, k));
        } else {
          store_bytes(to + k * 64, Panel::quad(vectors, k));
        }
      }
      arrange_quads(to);
      store_16(reinterpret_cast<float*>(to + kScales), Panel::scale(from, unit, g));
      if constexpr (T::kHasMin) {
        store_16(reinterpret_cast<float*>(to + kMinima), Panel::minimum(from, unit, g));
      }
      if constexpr (kHasFactors) {
        for (int part = 0; part < T::kParts; ++part) {
          store_16(reinterpret_cast<float*>(to + kFactors + part * 64),
                   Panel::factor(from, unit, g, part));
        }
      }
      Panel::prefetch(from, unit, g);
    }
  }
};

// Factors and pairs in registers. Copying them as bytes would go through the stack in pieces, for
// which the next load would wait.
WICK_SIMD void read(const uint8_t* p, F32x16& v) { v = load_16(reinterpret_cast<const float*>(p)); }
WICK_SIMD void read(const uint8_t* p, U8x64& v) { v = load_bytes(p); }
WICK_SIMD void write(uint8_t* p, const F32x16& v) { store_16(reinterpret_cast<float*>(p), v); }
WICK_SIMD void write(uint8_t* p, const U8x64& v) { store_bytes(p, v); }
#if defined(WICK_PORTABLE_INT8) || defined(WICK_NEON_INT8)
WICK_SIMD void read(const uint8_t* p, I16x32& v) { __builtin_memcpy(&v, p, sizeof v); }
WICK_SIMD void write(uint8_t* p, const I16x32& v) { __builtin_memcpy(p, &v, sizeof v); }
#endif
#if defined(WICK_NEON_INT8)
WICK_SIMD void read(const uint8_t* p, I32x16& v) { __builtin_memcpy(&v, p, sizeof v); }
WICK_SIMD void write(uint8_t* p, const I32x16& v) { __builtin_memcpy(p, &v, sizeof v); }
#endif

/// A panel of superblocks whose blocks share a scale of the activations, unpacked in scratch
/// memory. Per unit: 16 f32 scales and 16 f32 minima, the factors of the minima of each two parts,
/// the factors of each part unless they are folded, and the bytes of eight quads of each block.
template <class T>
struct FromSharedScratch {
  using Panel = FromPanel<T>;
  static constexpr int kUnitBlocks = T::kUnitBlocks;
  static constexpr bool kFolded = kFoldsFactors<T>;
  static constexpr bool kArranged = kArrangesQuads;
  static constexpr Quants kLevels = kFolded ? Quants::bytes : kDotLevels<T>;
  static constexpr int kPairBlocks = 2 / T::kParts;  // with a word of factors of minima
  static constexpr int kMinima = 64;
  static constexpr int kMinimumFactors = kMinima + 64;
  static constexpr int kFactors = kMinimumFactors + kUnitBlocks / kPairBlocks * 64;
  static constexpr int kQuads = kFactors + (kFolded ? 0 : kUnitBlocks * T::kParts * 64);
  static constexpr int kUnitBytes = kQuads + kUnitBlocks * kPlaneBytes;
  static constexpr int kBlockBytes = kUnitBytes / kUnitBlocks;
  static_assert(kUnitBytes % kUnitBlocks == 0);
  using Factors = decltype(Panel::factors(Panel{}, 0, 0, 0));
  static_assert(sizeof(Factors) == 64 && sizeof(I16x32) == 64);
  const uint8_t* panel;

  WICK_SIMD const uint8_t* at(const FromSharedScratch& s, int64_t unit) {
    return s.panel + unit * kUnitBytes;
  }
  WICK_SIMD const uint8_t* vectors(const FromSharedScratch& s, int64_t unit, int g) {
    return at(s, unit) + kQuads + g * kPlaneBytes;
  }
  WICK_SIMD U8x64 quad(const uint8_t* from, int k) { return load_bytes(from + k * 64); }
  WICK_SIMD F32x16 scale(const FromSharedScratch& s, int64_t unit, int) {
    return load_16(reinterpret_cast<const float*>(at(s, unit)));
  }
  WICK_SIMD F32x16 minimum(const FromSharedScratch& s, int64_t unit, int) {
    return load_16(reinterpret_cast<const float*>(at(s, unit) + kMinima));
  }
  WICK_SIMD Factors factors(const FromSharedScratch& s, int64_t unit, int g, int part) {
    Factors y;
    read(at(s, unit) + kFactors + (g * T::kParts + part) * 64, y);
    return y;
  }
  WICK_SIMD I16x32 minimum_factors(const FromSharedScratch& s, int64_t unit, int g) {
    I16x32 y;
    read(at(s, unit) + kMinimumFactors + g / kPairBlocks * 64, y);
    return y;
  }
  WICK_SIMD void prefetch(const FromSharedScratch&, int64_t, int) {}

  static void fill(uint8_t* to, const Panel& from, int64_t blocks) {
    for (int64_t unit = 0; unit < blocks / kUnitBlocks; ++unit, to += kUnitBytes) {
      store_16(reinterpret_cast<float*>(to), Panel::scale(from, unit, 0));
      store_16(reinterpret_cast<float*>(to + kMinima), Panel::minimum(from, unit, 0));
      for (int g = 0; g < kUnitBlocks; ++g) {
        for (int part = 0; !kFolded && part < T::kParts; ++part) {
          write(to + kFactors + (g * T::kParts + part) * 64, Panel::factors(from, unit, g, part));
        }
        if (g % kPairBlocks == 0) {
          write(to + kMinimumFactors + g / kPairBlocks * 64, Panel::minimum_factors(from, unit, g));
        }
        const auto vectors = Panel::vectors(from, unit, g);
        WICK_UNROLL
        for (int k = 0; k < 8; ++k) {
          uint8_t* quad = to + kQuads + g * kPlaneBytes + k * 64;
          if constexpr (kFolded) {
            store_bytes(quad, folded_quad(from, unit, g, k));
          } else {
            store_bytes(quad, Panel::quad(vectors, k));
          }
        }
        arrange_quads(to + kQuads + g * kPlaneBytes);
        Panel::prefetch(from, unit, g);
      }
    }
  }
};

template <class T>
using Unpacked = std::conditional_t<T::kSharedBlocks == 1, FromScratch<T>, FromSharedScratch<T>>;

/// A packed panel that needs no unpacking: tiles read it in place.
template <class T>
struct InPlace : FromPanel<T> {
  WICK_SIMD void prefetch(const InPlace&, int64_t, int) {}
};
#if defined(__AVX512VNNI__)
template <class T>
constexpr bool kReadInPlace = T::kQuants == Quants::bytes;
#else
template <class T>
constexpr bool kReadInPlace = false;
#endif

}  // namespace
}  // namespace wick::cpu::WICK_ISA
