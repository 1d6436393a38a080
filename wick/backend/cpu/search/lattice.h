#pragma once

// The search for superblocks whose levels are entries of a codebook: value = ±d·factor·level, with
// an odd factor for each part of 16 or 32 values. First each part is fitted alone, then d is chosen
// for the parts' scales; after that, the factors, entries and d are improved in turns.
//
// For a scale, each value of a group of eight (or four) has a nearest level. If these levels are an
// entry, it is the best one. Otherwise the best of the entries around them is taken
// (neighbours.h), by the weighted error.
//
// Included by kernel sources, once for each instruction set.

#include <bit>

#include "wick/backend/cpu/search/neighbours.h"
#include "wick/backend/cpu/search/superblock.h"

namespace wick::cpu::WICK_ISA {
namespace {
namespace fit {

using math::i32;
using math::u16;
using math::u32;
using math::u8;

// Levels (neighbours.h) with kEnds: first guesses of a part's scale, as its largest value divided
// by the scale times the last level. The smallest one gives the largest value the first level,
// which fits values of one magnitude.

struct TwoBits : TwoBitLevels {
  static constexpr float kEnds[] = {1 / 5.375f, 0.58f, 0.75f, 0.85f, 0.93f,
                                    1.0f,       1.08f, 1.17f, 1.28f, 1.45f};
};
struct OneBit : OneBitLevels {
  static constexpr float kEnds[] = {0.9f, 1.1f, 1.35f, 1.65f, 2.0f, 2.5f};
};
struct ThreeBits : ThreeBitLevels {
  static constexpr float kEnds[] = {1 / 15.5f, 0.8f, 0.86f, 0.92f, 0.96f, 1.0f,
                                    1.05f,     1.1f, 1.17f, 1.25f, 1.4f};
};
struct OddThreeBits : OddThreeBitLevels {
  static constexpr float kEnds[] = {1 / 15.0f, 0.8f, 0.86f, 0.92f, 0.96f, 1.0f,
                                    1.05f,     1.1f, 1.17f, 1.25f, 1.4f};
};

/// Which signs a format stores: of every value, or of seven of eight, such that the number of
/// negative values is even. The levels of `none` have signs.
enum class Signs : u8 { none, all, even };

/// A format. part: values that share a factor, the largest of which is `largest`. shifted: values
/// that share the sign of 1/8; 0 for levels that aren't shifted.
template <class Levels_, int part, int largest, Signs signs, int shifted = 0>
struct LatticeFormat {
  using Levels = Levels_;
  static constexpr int kPart = part, kParts = 256 / part, kLargestFactor = largest;
  static constexpr int kGroup = Levels::kGroup;
  static constexpr int kGroups = part / kGroup;  // of a part
  static constexpr Signs kSigns = signs;
  static constexpr bool kShifts = shifted > 0;
  static constexpr int kShifted = kShifts ? shifted : part;
  static constexpr float kShift = kShifts ? 0.125f : 0.0f;
};

/// The odd integers 1, 3, … largest.
template <int largest>
struct OddIntegers {
  static constexpr float kFirst = 1, kLast = largest;
  static float nearest(float x) {
    return 2.0f * math::detail::to_level((x - 1.0f) * 0.5f, 0.0f, (largest - 1) / 2) + 1.0f;
  }
};

/// The entries, shifts and levels of a part. The levels include the shifts.
template <class F>
struct Part {
  u16 entries[F::kGroups];
  float shifts[F::kPart / F::kShifted];
  float levels[F::kPart];
};

/// The largest number of a half of an entry, plus 1.
template <class Levels>
inline constexpr int kHalves = Levels::kBits == 2 ? 256 : 64;

/// n floats. GCC makes slow code of the loops over codes below without such a type.
template <int n>
struct LanesOf {
  typedef float type __attribute__((vector_size(n * sizeof(float)), aligned(4), may_alias));
};
template <int n>
using Lanes = typename LanesOf<n>::type;

/// w·(scale·(level + shift) − x)² for every half of an entry, summed over its values.
template <class Levels>
void half_errors(const float* x, const float* w, float scale, float shift, float* out) {
  constexpr int kCodes = 1 << Levels::kBits, kValues = Levels::kBits == 2 ? 4 : 2;
  float levels[kCodes] = {}, errors[kValues][kCodes];
  for (int c = 0; c < Levels::kCount; ++c) levels[c] = Levels::kValues[c];
  const Lanes<kCodes> scaled = scale * (*reinterpret_cast<Lanes<kCodes>*>(levels) + shift);
  for (int i = 0; i < kValues; ++i) {
    const Lanes<kCodes> e = scaled - x[i];
    *reinterpret_cast<Lanes<kCodes>*>(errors[i]) = w[i] * e * e;
  }
  if constexpr (kValues == 2) {
    const auto first = *reinterpret_cast<Lanes<8>*>(errors[0]);
    for (int b = 0; b < 8; ++b) *reinterpret_cast<Lanes<8>*>(out + 8 * b) = first + errors[1][b];
  } else {
    float low[16], high[16];
    const auto first = *reinterpret_cast<Lanes<4>*>(errors[0]);
    const auto third = *reinterpret_cast<Lanes<4>*>(errors[2]);
    for (int b = 0; b < 4; ++b) {
      *reinterpret_cast<Lanes<4>*>(low + 4 * b) = first + errors[1][b];
      *reinterpret_cast<Lanes<4>*>(high + 4 * b) = third + errors[3][b];
    }
    const auto all = *reinterpret_cast<Lanes<16>*>(low);
    for (int b = 0; b < 11; ++b) {  // codes are 0, 1 and 2
      *reinterpret_cast<Lanes<16>*>(out + 16 * b) = all + high[b];
    }
  }
}

/// The entry nearest to a group whose nearest levels have the number `number`, among the first
/// near_count.
template <class F, int near_count>
int nearest_entry(const Neighbours& book, const float* x, const float* w, float scale, float shift,
                  u32 number) {
  const int exact = book.entry_of[number];
  if (exact >= 0) return exact;
  using Levels = typename F::Levels;
  constexpr u32 kBits = Levels::kBits * F::kGroup / 2, kLow = (1u << kBits) - 1;
  float low[kHalves<Levels>], high[kHalves<Levels>];
  half_errors<Levels>(x, w, scale, shift, low);
  half_errors<Levels>(x + F::kGroup / 2, w + F::kGroup / 2, scale, shift, high);
  const u32* const near = book.near + number * Neighbours::kNear;
  // Errors of at least 0 are ordered as their bits are. The lowest bits make place for k.
  u32 least = 0xffffffff;
  for (u32 k = 0; k < near_count; ++k) {
    const float error = low[near[k] & kLow] + high[near[k] >> kBits & kLow];
    const u32 key = (math::f32_bits(error) & ~15u) | k;
    least = key < least ? key : least;
  }
  return static_cast<int>(near[least & 15] >> 16);
}

/// The nearest levels of a part's values, whether they are entries or not.
template <class F>
struct NearestLevels {
  u32 numbers[F::kGroups];
  float errors[F::kPart / F::kShifted];  // Σ w·(error)² of the values that share a shift
};

/// The number of the codes of a group, one in each byte.
template <class F>
u32 group_number(const u8* codes) {
  constexpr u32 kBase = F::Levels::kCount;
  if constexpr (F::kGroup == 4) {
    return codes[0] + kBase * (codes[1] + kBase * (codes[2] + kBase * codes[3]));
  } else {
    math::u64 all;
    __builtin_memcpy(&all, codes, sizeof all);
    if constexpr (std::endian::native == std::endian::big) all = __builtin_bswap64(all);
    all = (all & 0x00ff00ff00ff00ff) + kBase * (all >> 8 & 0x00ff00ff00ff00ff);
    all = (all & 0x0000ffff0000ffff) + kBase * kBase * (all >> 16 & 0x0000ffff0000ffff);
    constexpr u32 kFour = kBase * kBase * kBase * kBase;
    return static_cast<u32>(all) + kFour * static_cast<u32>(all >> 32);
  }
}

template <class F>
void find_levels(const float* x, const float* w, float scale, float shift, NearestLevels<F>* out) {
  using Levels = typename F::Levels;
  const float inverse = finite_recip(scale);
  u8 codes[F::kPart];
  float errors[F::kPart];
  for (int i = 0; i < F::kPart; ++i) {
    const float y = x[i] * inverse;
    i32 code = 0;
    float level = Levels::kValues[0];
    for (int c = 1; c < Levels::kCount; ++c) {
      const bool above = y > (Levels::kValues[c - 1] + Levels::kValues[c]) * 0.5f + shift;
      code += above ? 1 : 0;
      if constexpr (F::kShifts) level = above ? Levels::kValues[c] : level;
    }
    codes[i] = static_cast<u8>(code);
    const float e = scale * (level + shift) - x[i];
    errors[i] = w[i] * e * e;
  }
  for (int g = 0; g < F::kGroups; ++g) out->numbers[g] = group_number<F>(codes + F::kGroup * g);
  if constexpr (F::kShifts) {
    for (int s = 0; s < F::kPart / F::kShifted; ++s) {
      out->errors[s] = halving_sum<F::kShifted>(errors + F::kShifted * s);
    }
  }
}

/// The nearest entries of the n values from `first` on, for a scale and a shift.
template <class F, int n, int near_count>
void choose_shifted(const Neighbours& book, const float* x, const float* w, float scale,
                    float shift, const u32* numbers, u16* entries, float* levels) {
  for (int g = 0; g < n / F::kGroup; ++g) {
    const int at = F::kGroup * g;
    const int entry = nearest_entry<F, near_count>(book, x + at, w + at, scale, shift, numbers[g]);
    entries[g] = static_cast<u16>(entry);
    const float* const from = book.levels + entry * F::kGroup;
    for (int i = 0; i < F::kGroup; ++i) levels[at + i] = from[i] + shift;
  }
}

/// The nearest entries of a part, with the better shift for all values that share it.
template <class F, int near_count>
void choose_entries(const Neighbours& book, const float* x, const float* w, float scale,
                    Part<F>* part) {
  constexpr int n = F::kShifted, kGroups = n / F::kGroup;
  NearestLevels<F> nearest[2];
  find_levels<F>(x, w, scale, F::kShift, &nearest[0]);
  if constexpr (!F::kShifts) {
    part->shifts[0] = 0.0f;
    choose_shifted<F, n, near_count>(book, x, w, scale, 0.0f, nearest[0].numbers, part->entries,
                                     part->levels);
  } else {
    find_levels<F>(x, w, scale, -F::kShift, &nearest[1]);
    for (int s = 0; s < F::kPart / n; ++s) {
      const float *const xs = x + n * s, *const ws = w + n * s;
      u16* const entries = part->entries + kGroups * s;
      float* const levels = part->levels + n * s;
      // The errors of the nearest levels are lower bounds of those of entries.
      const int first = nearest[1].errors[s] < nearest[0].errors[s] ? 1 : 0;
      const float shift = first == 0 ? F::kShift : -F::kShift;
      part->shifts[s] = shift;
      choose_shifted<F, n, near_count>(book, xs, ws, scale, shift,
                                       nearest[first].numbers + kGroups * s, entries, levels);
      const float error = error_of<n>(xs, ws, levels, scale, 0.0f);
      if (!(nearest[1 - first].errors[s] < error)) continue;
      u16 other_entries[kGroups];
      float other[n];
      choose_shifted<F, n, near_count>(book, xs, ws, scale, -shift,
                                       nearest[1 - first].numbers + kGroups * s, other_entries,
                                       other);
      if (!(error_of<n>(xs, ws, other, scale, 0.0f) < error)) continue;
      part->shifts[s] = -shift;
      for (int i = 0; i < kGroups; ++i) entries[i] = other_entries[i];
      for (int i = 0; i < n; ++i) levels[i] = other[i];
    }
  }
}

/// The entries around a group that are tried when scales are compared, and when entries are chosen.
inline constexpr int kFewNear = 8, kAllNear = Neighbours::kNear;

/// Tries the least-squares scale of the entries for one scale.
template <class F>
void try_entries(const Neighbours& book, const float* x, const float* w, float scale,
                 ScaleFit& best) {
  Part<F> part;
  choose_entries<F, kFewNear>(book, x, w, scale, &part);
  const float qq = weighted_dot<F::kPart>(part.levels, part.levels, w);
  const float xq = weighted_dot<F::kPart>(x, part.levels, w);
  if (xq > 0.0f) offer(xq, qq, best);
}

/// Tries the least-squares scale of the levels nearest to a part, whether they are entries or not.
template <class F>
void try_levels(const float* x, const float* w, float scale, float shift, ScaleFit& best) {
  using Levels = typename F::Levels;
  const float inverse = finite_recip(scale);
  float q[F::kPart];
  for (int i = 0; i < F::kPart; ++i) {
    const float y = x[i] * inverse;
    float level = Levels::kValues[0];
    for (int c = 1; c < Levels::kCount; ++c) {
      const float middle = (Levels::kValues[c - 1] + Levels::kValues[c]) * 0.5f;
      level = y > middle + shift ? Levels::kValues[c] : level;
    }
    q[i] = level + shift;
  }
  const float qq = weighted_dot<F::kPart>(q, q, w), xq = weighted_dot<F::kPart>(x, q, w);
  if (xq > 0.0f) offer(xq, qq, best);
}

/// The scale with which entries are nearest to a part, and its gain; 0 if only zeros are.
template <class F>
ScaleFit fit_entries(const Neighbours& book, const float* x, const float* w) {
  constexpr int n = F::kPart;
  const float largest = magnitude_of<n>(x);
  if (!(largest > 0.0f)) return {};
  const float last = F::Levels::kValues[F::Levels::kCount - 1];
  ScaleFit best;
  if constexpr (F::kShifts) {
    ScaleFit rough;
    for (const float end : F::Levels::kEnds) {
      const float scale = largest * finite_recip(last * end);
      for (const float shift : {F::kShift, -F::kShift}) try_levels<F>(x, w, scale, shift, rough);
    }
    for (const float factor : {0.93f, 1.03f}) {
      try_entries<F>(book, x, w, rough.scale * factor, best);
    }
  } else {
    for (const float end : F::Levels::kEnds) {
      try_entries<F>(book, x, w, largest * finite_recip(last * end), best);
    }
  }
  for (int i = 0; i < 2; ++i) {
    const float before = best.scale;
    try_entries<F>(book, x, w, before, best);
    if (best.scale == before) break;
  }
  return best;
}

/// The best d for scales: each odd factor is tried for the largest scale.
template <class Factors, int parts>
float fit_unit(const float* scales, const float* weights) {
  float largest = 0.0f;
  for (int p = 0; p < parts; ++p) largest = scales[p] > largest ? scales[p] : largest;
  if (!(largest > 0.0f)) return 0.0f;
  ScaleFit best = {largest / Factors::kLast, 0.0f};
  for (float f = Factors::kLast + 1.0f; f >= 1.0f; f -= 0.5f) {
    try_scale<Factors, parts>(scales, weights, f * finite_recip(largest), best);
  }
  for (int i = 0; i < 3; ++i) {
    try_scale<Factors, parts>(scales, weights, finite_recip(best.scale), best);
  }
  return best.scale;
}

/// A superblock. The signs of eight values are a byte.
template <class F>
struct Lattice {
  float d = 0.0f;
  float factors[F::kParts] = {};
  Part<F> parts[F::kParts];
  u8 negative[32] = {};
};

/// Chooses the entries of a part for a given d and its factor, or, if `any_factor`, the better of
/// the odd integers around its scale, too. Returns Σ w·(error)².
template <class F>
float choose_odd_factor(const Neighbours& book, const float* x, const float* w, float d,
                        float scale, bool any_factor, float* factor, Part<F>* part) {
  using Factors = OddIntegers<F::kLargestFactor>;
  const float exact = scale * finite_recip(d), nearest = Factors::nearest(exact);
  const float other = Factors::nearest(exact > nearest ? nearest + 2.0f : nearest - 2.0f);
  const float from = any_factor ? nearest : *factor;
  choose_entries<F, kAllNear>(book, x, w, d * from, part);
  *factor = from;
  const float error = error_of<F::kPart>(x, w, part->levels, d * from, 0.0f);
  if (!any_factor || other == nearest) return error;
  Part<F> now;
  choose_entries<F, kAllNear>(book, x, w, d * other, &now);
  const float other_error = error_of<F::kPart>(x, w, now.levels, d * other, 0.0f);
  if (!(other_error < error)) return error;
  *factor = other;
  *part = now;
  return other_error;
}

/// Splits values into magnitudes and signs. If the number of negative values must be even and
/// isn't, the value with the least weight·magnitude gets the wrong sign and a negative magnitude.
template <class F>
void split_signs(const float* x, const float* w, float* magnitudes, u8* negative) {
  for (int g = 0; g < 32; ++g) {
    const float *const xs = x + 8 * g, *const ws = w + 8 * g;
    float* const to = magnitudes + 8 * g;
    u32 signs = 0, count = 0;
    for (u32 i = 0; i < 8; ++i) {
      const u32 bit = F::kSigns != Signs::none && xs[i] < 0.0f ? 1u : 0u;
      signs |= bit << i;
      count += bit;
      to[i] = bit != 0 ? -xs[i] : xs[i];
    }
    if (F::kSigns == Signs::even && count % 2 != 0) {
      int least = 0;
      for (int i = 1; i < 8; ++i) least = ws[i] * to[i] < ws[least] * to[least] ? i : least;
      to[least] = -to[least];
      signs ^= 1u << least;
    }
    negative[g] = static_cast<u8>(signs);
  }
}

/// The best superblock of a format.
template <class F>
void search_lattice(const Neighbours& book, const float* x, const float* w, Lattice<F>* best) {
  constexpr int n = F::kPart, kParts = F::kParts;
  float t[256], scales[kParts], weights[kParts];
  Lattice<F> now;
  split_signs<F>(x, w, t, now.negative);
  for (int p = 0; p < kParts; ++p) {
    const ScaleFit found = fit_entries<F>(book, t + n * p, w + n * p);
    const float inverse = finite_recip(found.scale);
    scales[p] = found.scale;
    weights[p] = found.gain * inverse * inverse;  // Σ w·level²
  }
  now.d = to_f16(fit_unit<OddIntegers<F::kLargestFactor>, kParts>(scales, weights));
  float least = 0.0f;
  for (int round = 0; round < 4; ++round) {
    float total = 0.0f;
    for (int p = 0; p < kParts; ++p) {
      total += choose_odd_factor<F>(book, t + n * p, w + n * p, now.d, scales[p], round == 0,
                                    &now.factors[p], &now.parts[p]);
    }
    if (round > 0 && !(total < least)) return;
    least = total;
    *best = now;
    float products[256];
    for (int i = 0; i < 256; ++i) products[i] = now.factors[i / n] * now.parts[i / n].levels[i % n];
    const float qq = dot_of_parts<n, kParts>(products, products, w);
    const float xq = dot_of_parts<n, kParts>(t, products, w);
    if (!(qq > 0.0f) || !(xq > 0.0f)) return;
    now.d = to_f16(xq / qq);
  }
}

}  // namespace fit
}  // namespace
}  // namespace wick::cpu::WICK_ISA
