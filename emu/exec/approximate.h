#pragma once

// Models the documented error of AMD's approximate functions. Values are computed exactly.
// WICK_EMU_APPROX=seed then moves them within the documented error, deterministically for a seed,
// to find code that depends on unspecified bits.

#include "emu/exec/numbers.h"

namespace emu {

/// The seed; 0 means that results stay exact.
extern const uint32_t approximation_seed;

namespace {

/// Returns pseudo-random bits that depend on the value and the seed alone.
template <class V>
EMU_INLINE V scrambled(V x, uint32_t seed) {
  x = (x ^ (x >> 15) ^ static_cast<Element<V>>(seed)) * static_cast<Element<V>>(0x85ebca6bu);
  x = (x ^ (x >> 13)) * static_cast<Element<V>>(0xc2b2ae35u);
  return x ^ (x >> 16);
}

/// Returns pseudo-random bits for each lane of a result.
template <class V>
EMU_INLINE auto random_of(V x) {
  using B = Unsigned<V>;
  const B bits = float_bits(x);
  const U32 folded = convert<U32>(bits ^ (bits >> static_cast<Element<B>>(sizeof(Element<B>) * 4)));
  return convert<B>(scrambled(folded, approximation_seed));
}

/// Selects lanes with finite, normal values that remain finite and normal when they move by `ulps`
/// units in the last place.
template <class V>
EMU_INLINE auto is_movable(V x, uint32_t ulps) {
  using E = Element<Unsigned<V>>;
  const auto magnitude = float_bits(absolute(x));
  constexpr E kSmallest = static_cast<E>(E{1} << Layout<V>::kFraction);
  return (magnitude > static_cast<E>(kSmallest + ulps)) &
         (magnitude < static_cast<E>(Layout<V>::kInfinity - ulps));
}

/// Moves `nearest`, the rounded value of `exact`, to the neighbour on the other side of `exact`, or
/// leaves it, at random. The error stays below one unit in the last place, as documented. Results
/// that are exact aren't moved.
template <class V, class Wide>
EMU_INLINE V approximate(V nearest, Wide exact) {
  if (approximation_seed == 0) [[likely]]
    return nearest;
  using B = Unsigned<V>;
  using E = Element<B>;
  const Wide back = convert<Wide>(nearest);
  // Adding or subtracting one from a magnitude's bits gives the next float away from or toward
  // zero.
  const B away = convert<B>(bits_as<Unsigned<Wide>>(absolute(exact) > absolute(back)) & 1);
  const B inexact = convert<B>(bits_as<Unsigned<Wide>>(exact != back) & 1);
  const B chosen = random_of(nearest) & 1 & inexact;
  const B moved = float_bits(nearest) + chosen * (away * 2 - static_cast<E>(1));
  return is_movable(nearest, 1) ? bits_as<V>(moved) : nearest;
}

/// Moves a value by up to `ulps` units in the last place. It is for functions whose documented
/// error is so large that a single unit doesn't matter.
template <class V>
EMU_INLINE V approximate_coarse(V x, uint32_t ulps) {
  if (approximation_seed == 0) [[likely]]
    return x;
  using E = Element<Unsigned<V>>;
  const auto offset = random_of(x) % static_cast<E>(2 * ulps + 1) - static_cast<E>(ulps);
  return is_movable(x, ulps) ? bits_as<V>(float_bits(x) + offset) : x;
}

}  // namespace
}  // namespace emu
