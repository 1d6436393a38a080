#pragma once

#include <type_traits>

#include "wick/backend/cpu/linear/quantized_dot.h"
#include "wick/backend/cpu/linear/quantized_types.h"

// Sources of weights for the kernels. A source names a block by its unit and its index in the unit,
// and provides: quad `k` (columns 4k to 4k + 3) of a block, unpacked; the scale and minimum of a
// block, and the factor of each of its parts. For types whose blocks share a scale of the
// activations: the scale and minimum of a unit, the factors of a block, and the factors of two
// blocks' minima. For kernel sources only (see isa.h).

#if defined(WICK_PORTABLE_INT8)
#define WICK_UNROLL
#else
#define WICK_UNROLL _Pragma("GCC unroll 16")
#endif

namespace wick::cpu::WICK_ISA {
namespace {

/// A packed panel that is unpacked in registers.
template <class T>
struct FromPanel {
  using P = Packed<T>;
  static constexpr int kUnitBlocks = T::kUnitBlocks;
  const uint8_t* panel;
  int64_t ahead;  // prefetch distance

  WICK_SIMD const uint8_t* at(const FromPanel& s, int64_t unit) {
    return s.panel + unit * P::kUnitBytes;
  }
  WICK_SIMD auto quad(const FromPanel& s, int64_t unit, int g, int k) {
    const uint8_t* quants = at(s, unit) + P::kQuants + g * P::kQuantBytes;
    if constexpr (T::kQuants == Quants::bytes) {
      return byte_weights(load_bytes(quants + k * 64));
    } else if constexpr (T::kQuants == Quants::six) {
      const uint8_t* three = quants + (k >> 2) * 192;
      if ((k & 3) < 3) return low_six(load_bytes(three + (k & 3) * 64));
      return top_pairs(load_bytes(three), load_bytes(three + 64), load_bytes(three + 128));
    } else {
      const U8x64 v = load_bytes(quants + (k & 3) * 64);
      const U8x64 low = k < 4 ? low_nibbles(v) : high_nibbles(v);
      if constexpr (T::kQuants == Quants::five) {
        return add_bit(low, load_bytes(quants + P::kHighBits), k);
      } else {
        return low;
      }
    }
  }
  WICK_SIMD F32x16 scale(const FromPanel& s, int64_t unit, int g) {
    return load_f16(at(s, unit) + P::kScales + (T::kSuper ? 0 : g) * P::kScaleBytes);
  }
  WICK_SIMD F32x16 minimum(const FromPanel& s, int64_t unit, int g) {
    return load_f16(at(s, unit) + P::kMinima + (T::kSuper ? 0 : g) * P::kScaleBytes);
  }
  WICK_SIMD Factors factors(const FromPanel& s, int64_t unit, int g) {
    return load_factors(at(s, unit) + P::kFactors + g * kPanelRows);
  }
  /// The factors of the minima of blocks g, which is even, and g + 1.
  WICK_SIMD I16x32 minimum_factors(const FromPanel& s, int64_t unit, int g) {
    return load_pairs(at(s, unit) + P::kMinimumFactors + g * kPanelRows);
  }
  WICK_SIMD F32x16 factor(const FromPanel& s, int64_t unit, int g, int part) {
    return load_i8(at(s, unit) + P::kFactors + g * P::kFactorBytes + part * kPanelRows);
  }
  WICK_SIMD void prefetch(const FromPanel& s, int64_t unit, int g) {
    constexpr int kLines = P::kUnitBytes / 64;
    if constexpr (kUnitBlocks <= 2) {
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

/// A panel unpacked in scratch memory. Per block: the bytes of eight quads (two planes for byte
/// weights without VNNI), 16 f32 scales, 16 f32 minima, 16 f32 factors of each part.
template <class T>
struct FromScratch {
  static constexpr int kUnitBlocks = 1;
  static constexpr bool kWhole = T::kQuants == Quants::bytes;
  static constexpr int kScales = (kWhole ? kBytePlanes : 1) * kPlaneBytes;
  static constexpr int kMinima = kScales + 64;
  static constexpr int kFactors = kMinima + (T::kHasMin ? 64 : 0);
  static constexpr int kBlockBytes = kFactors + (T::kParts > 1 ? 64 * T::kParts : 0);
  const uint8_t* panel;

  WICK_SIMD const uint8_t* at(const FromScratch& s, int64_t unit) {
    return s.panel + unit * kBlockBytes;
  }
  WICK_SIMD F32x16 floats(const FromScratch& s, int64_t unit, int offset) {
    return load_16(reinterpret_cast<const float*>(at(s, unit) + offset));
  }
  WICK_SIMD auto quad(const FromScratch& s, int64_t unit, int, int k) {
    if constexpr (kWhole) {
      return load_weights(at(s, unit) + k * 64);
    } else {
      return load_bytes(at(s, unit) + k * 64);
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
      WICK_UNROLL
      for (int k = 0; k < 8; ++k) {
        const auto w = Panel::quad(from, unit, g, k);
        if constexpr (kWhole) {
          store_weights(to + k * 64, w);
        } else {
          store_bytes(to + k * 64, w);
        }
      }
      store_16(reinterpret_cast<float*>(to + kScales), Panel::scale(from, unit, g));
      if constexpr (T::kHasMin) {
        store_16(reinterpret_cast<float*>(to + kMinima), Panel::minimum(from, unit, g));
      }
      if constexpr (T::kParts > 1) {
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
#if defined(WICK_PORTABLE_INT8)
WICK_SIMD void read(const uint8_t* p, I16x32& v) { __builtin_memcpy(&v, p, sizeof v); }
WICK_SIMD void write(uint8_t* p, const I16x32& v) { __builtin_memcpy(p, &v, sizeof v); }
#endif

/// A panel of superblocks whose blocks share a scale of the activations, unpacked in scratch
/// memory. Per unit: 16 f32 scales and 16 f32 minima, the factors of each block, the factors of the
/// minima of each two blocks, and the bytes of eight quads of each block.
template <class T>
struct FromSharedScratch {
  static constexpr int kUnitBlocks = T::kUnitBlocks;
  static constexpr int kMinima = 64;
  static constexpr int kFactors = kMinima + 64;
  static constexpr int kMinimumFactors = kFactors + kUnitBlocks * 64;
  static constexpr int kQuads = kMinimumFactors + kUnitBlocks / 2 * 64;
  static constexpr int kUnitBytes = kQuads + kUnitBlocks * kPlaneBytes;
  static constexpr int kBlockBytes = kUnitBytes / kUnitBlocks;
  static_assert(T::kQuants == Quants::nibbles && kUnitBytes % kUnitBlocks == 0);
  static_assert(sizeof(Factors) == 64 && sizeof(I16x32) == 64);
  const uint8_t* panel;

  WICK_SIMD const uint8_t* at(const FromSharedScratch& s, int64_t unit) {
    return s.panel + unit * kUnitBytes;
  }
  WICK_SIMD U8x64 quad(const FromSharedScratch& s, int64_t unit, int g, int k) {
    return load_bytes(at(s, unit) + kQuads + g * kPlaneBytes + k * 64);
  }
  WICK_SIMD F32x16 scale(const FromSharedScratch& s, int64_t unit, int) {
    return load_16(reinterpret_cast<const float*>(at(s, unit)));
  }
  WICK_SIMD F32x16 minimum(const FromSharedScratch& s, int64_t unit, int) {
    return load_16(reinterpret_cast<const float*>(at(s, unit) + kMinima));
  }
  WICK_SIMD Factors factors(const FromSharedScratch& s, int64_t unit, int g) {
    Factors y;
    read(at(s, unit) + kFactors + g * 64, y);
    return y;
  }
  WICK_SIMD I16x32 minimum_factors(const FromSharedScratch& s, int64_t unit, int g) {
    I16x32 y;
    read(at(s, unit) + kMinimumFactors + g * 32, y);
    return y;
  }
  WICK_SIMD void prefetch(const FromSharedScratch&, int64_t, int) {}

  static void fill(uint8_t* to, const FromPanel<T>& from, int64_t blocks) {
    using Panel = FromPanel<T>;
    for (int64_t unit = 0; unit < blocks / kUnitBlocks; ++unit, to += kUnitBytes) {
      store_16(reinterpret_cast<float*>(to), Panel::scale(from, unit, 0));
      store_16(reinterpret_cast<float*>(to + kMinima), Panel::minimum(from, unit, 0));
      for (int g = 0; g < kUnitBlocks; ++g) {
        write(to + kFactors + g * 64, Panel::factors(from, unit, g));
        if (g % 2 == 0) {
          write(to + kMinimumFactors + g * 32, Panel::minimum_factors(from, unit, g));
        }
        WICK_UNROLL
        for (int k = 0; k < 8; ++k) {
          store_bytes(to + kQuads + g * kPlaneBytes + k * 64, Panel::quad(from, unit, g, k));
        }
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
