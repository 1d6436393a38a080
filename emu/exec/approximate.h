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

/// Moves finite, normal values by up to `ulps` of the last place.
template <class V>
EMU_INLINE V approximate(V x, uint32_t ulps) {
  if (approximation_seed == 0) [[likely]]
    return x;
  using B = Unsigned<V>;
  using E = Element<B>;
  const B bits = float_bits(x);
  const U32 folded = convert<U32>(bits ^ (bits >> static_cast<E>(sizeof(E) * 4)));
  const B random = convert<B>(scrambled(folded, approximation_seed));
  const B offset = random % static_cast<E>(2 * ulps + 1) - static_cast<E>(ulps);
  const auto magnitude = float_bits(absolute(x));
  constexpr E kSmallest = static_cast<E>(E{1} << Layout<V>::kFraction);
  const auto movable = (magnitude > static_cast<E>(kSmallest + ulps)) &
                       (magnitude < static_cast<E>(Layout<V>::kInfinity - ulps));
  return movable ? bits_as<V>(bits + offset) : x;
}

}  // namespace
}  // namespace emu
