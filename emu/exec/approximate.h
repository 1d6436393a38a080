#pragma once

// The documented error of AMD's quick functions. Values are computed exactly; WICK_EMU_APPROX=seed
// moves them within the error, the same way each time, to find what depends on unspecified bits.

#include "emu/exec/numbers.h"

namespace emu {

/// 0 where nothing is to be moved.
extern const uint32_t approximation_seed;

namespace {

/// Bits that look random and depend on the value and the seed alone.
template <class V>
EMU_INLINE V scrambled(V x, uint32_t seed) {
  x = (x ^ (x >> 15) ^ static_cast<Element<V>>(seed)) * static_cast<Element<V>>(0x85ebca6bu);
  x = (x ^ (x >> 13)) * static_cast<Element<V>>(0xc2b2ae35u);
  return x ^ (x >> 16);
}

/// Random bits for each lane of a result.
template <class V>
EMU_INLINE auto random_of(V x) {
  using B = Unsigned<V>;
  const B bits = float_bits(x);
  const U32 folded = convert<U32>(bits ^ (bits >> static_cast<Element<B>>(sizeof(Element<B>) * 4)));
  return convert<B>(scrambled(folded, approximation_seed));
}

/// Lanes of finite, normal values that stay so some units in the last place away.
template <class V>
EMU_INLINE auto is_movable(V x, uint32_t ulps) {
  using E = Element<Unsigned<V>>;
  const auto magnitude = float_bits(absolute(x));
  constexpr E kSmallest = static_cast<E>(E{1} << Layout<V>::kFraction);
  return (magnitude > static_cast<E>(kSmallest + ulps)) &
         (magnitude < static_cast<E>(Layout<V>::kInfinity - ulps));
}

/// Moves `nearest`, which is `exact` rounded, to that value's other neighbour or not: an error
/// below one unit in the last place, as is documented. Functions that are exact where they can be
/// stay so.
template <class V, class Wide>
EMU_INLINE V approximate(V nearest, Wide exact) {
  if (approximation_seed == 0) [[likely]]
    return nearest;
  using B = Unsigned<V>;
  using E = Element<B>;
  const Wide back = convert<Wide>(nearest);
  // A magnitude one up or down in bits is the next float away from zero or toward it.
  const B away = convert<B>(bits_as<Unsigned<Wide>>(absolute(exact) > absolute(back)) & 1);
  const B inexact = convert<B>(bits_as<Unsigned<Wide>>(exact != back) & 1);
  const B chosen = random_of(nearest) & 1 & inexact;
  const B moved = float_bits(nearest) + chosen * (away * 2 - static_cast<E>(1));
  return is_movable(nearest, 1) ? bits_as<V>(moved) : nearest;
}

/// Moves values by up to `ulps` of the last place, where that is so many that one doesn't count.
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
