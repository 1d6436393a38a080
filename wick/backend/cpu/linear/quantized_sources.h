#pragma once

#include "wick/backend/cpu/linear/quantized_lanes.h"
#include "wick/backend/cpu/linear/quantized_types.h"

// Where the weights of a product come from. A source names a block by its unit and its place in it,
// and has: quad `k` (columns 4k to 4k + 3) of a block, unpacked; scale and minimum of a block, and
// the factor of each of its parts. Only kernel sources include this header; everything has internal
// linkage.

#if defined(WICK_PORTABLE_LANES)
#define WICK_UNROLL
#else
#define WICK_UNROLL _Pragma("GCC unroll 16")
#endif

namespace wick::cpu::WICK_ISA {
namespace {

/// A packed panel, unpacked in registers.
template <class T>
struct FromPanel {
  using P = Packed<T>;
  static constexpr int kUnitBlocks = T::kUnitBlocks;
  const uint8_t* panel;
  int64_t ahead;  // how far the memory lies that is asked for

  WICK_LANES const uint8_t* at(const FromPanel& s, int64_t unit) {
    return s.panel + unit * P::kUnitBytes;
  }
  WICK_LANES auto quad(const FromPanel& s, int64_t unit, int g, int k) {
    const uint8_t* quants = at(s, unit) + P::kQuants + g * P::kQuantBytes;
    if constexpr (T::kQuants == Quants::bytes) {
      return byte_weights(load_bytes(quants + k * 64));
    } else if constexpr (T::kQuants == Quants::six) {
      const uint8_t* three = quants + (k >> 2) * 192;
      if ((k & 3) < 3) return low_six(load_bytes(three + (k & 3) * 64));
      return top_pairs(load_bytes(three), load_bytes(three + 64), load_bytes(three + 128));
    } else {
      const Bytes v = load_bytes(quants + (k & 3) * 64);
      const Bytes low = k < 4 ? low_nibbles(v) : high_nibbles(v);
      if constexpr (T::kQuants == Quants::five) {
        return add_bit(low, load_bytes(quants + P::kHighBits), k);
      } else {
        return low;
      }
    }
  }
  WICK_LANES F32 scale(const FromPanel& s, int64_t unit, int g) {
    const F32 d = load_f16(at(s, unit) + P::kScales + (T::kSuper ? 0 : g) * P::kScaleBytes);
    if constexpr (!T::kSuper || T::kParts > 1) {
      return d;
    } else {
      return mul(d, load_u8(at(s, unit) + P::kFactors + g * P::kFactorBytes));
    }
  }
  WICK_LANES F32 minimum(const FromPanel& s, int64_t unit, int g) {
    const F32 m = load_f16(at(s, unit) + P::kMinima + (T::kSuper ? 0 : g) * P::kScaleBytes);
    if constexpr (!T::kSuper) {
      return m;
    } else {
      return mul(m, load_u8(at(s, unit) + P::kFactors + g * P::kFactorBytes + kPanelRows));
    }
  }
  WICK_LANES F32 factor(const FromPanel& s, int64_t unit, int g, int part) {
    return load_i8(at(s, unit) + P::kFactors + g * P::kFactorBytes + part * kPanelRows);
  }
  WICK_LANES void prefetch(const FromPanel& s, int64_t unit, int g) {
    constexpr int kLines = P::kUnitBytes / 64;
    if constexpr (kUnitBlocks <= 2) {
      WICK_UNROLL
      for (int line = kLines * g / kUnitBlocks; line < kLines * (g + 1) / kUnitBlocks; ++line) {
        __builtin_prefetch(at(s, unit) + s.ahead + line * 64);
      }
    } else {
      // As many for every block, so that one loop body does for all.
      constexpr int kEach = (kLines + kUnitBlocks - 1) / kUnitBlocks;
      WICK_UNROLL
      for (int line = 0; line < kEach; ++line) {
        __builtin_prefetch(at(s, unit) + s.ahead + (g * kEach + line) * 64);
      }
    }
  }
};

/// A panel unpacked in scratch memory: per block the bytes of eight quads (two planes where the
/// product of bytes wants them), 16 f32 scales, 16 f32 minima, 16 f32 factors of each part.
template <class T>
struct FromScratch {
  static constexpr int kUnitBlocks = 1;
  static constexpr bool kWhole = T::kQuants == Quants::bytes;
  static constexpr int kScales = (kWhole ? kBytePlanes : 1) * kPlaneBytes;
  static constexpr int kMinima = kScales + 64;
  static constexpr int kFactors = kMinima + (T::kHasMin ? 64 : 0);
  static constexpr int kBlockBytes = kFactors + (T::kParts > 1 ? 64 * T::kParts : 0);
  const uint8_t* panel;

  WICK_LANES const uint8_t* at(const FromScratch& s, int64_t unit) {
    return s.panel + unit * kBlockBytes;
  }
  WICK_LANES F32 floats(const FromScratch& s, int64_t unit, int offset) {
    return load(reinterpret_cast<const float*>(at(s, unit) + offset));
  }
  WICK_LANES auto quad(const FromScratch& s, int64_t unit, int, int k) {
    if constexpr (kWhole) {
      return load_weights(at(s, unit) + k * 64);
    } else {
      return load_bytes(at(s, unit) + k * 64);
    }
  }
  WICK_LANES F32 scale(const FromScratch& s, int64_t unit, int) { return floats(s, unit, kScales); }
  WICK_LANES F32 minimum(const FromScratch& s, int64_t unit, int) {
    return floats(s, unit, kMinima);
  }
  WICK_LANES F32 factor(const FromScratch& s, int64_t unit, int, int part) {
    return floats(s, unit, kFactors + part * 64);
  }
  WICK_LANES void prefetch(const FromScratch&, int64_t, int) {}

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
      store(reinterpret_cast<float*>(to + kScales), Panel::scale(from, unit, g));
      if constexpr (T::kHasMin) {
        store(reinterpret_cast<float*>(to + kMinima), Panel::minimum(from, unit, g));
      }
      if constexpr (T::kParts > 1) {
        for (int part = 0; part < T::kParts; ++part) {
          store(reinterpret_cast<float*>(to + kFactors + part * 64),
                Panel::factor(from, unit, g, part));
        }
      }
      Panel::prefetch(from, unit, g);
    }
  }
};

/// A packed panel that needs no unpacking, read where it lies by one tile after another.
template <class T>
struct InPlace : FromPanel<T> {
  WICK_LANES void prefetch(const InPlace&, int64_t, int) {}
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
