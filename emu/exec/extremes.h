#pragma once

// Minimum and maximum as gfx950, gfx11.5 and gfx12 have them. One pair ignores NaN ("num"), and the
// other returns NaN if a source is NaN. Both order -0 below +0.

#include "emu/exec/numbers.h"

namespace emu {
namespace {

template <class V>
EMU_INLINE V either_nan(V a, V b, V otherwise) {
  const V quiet = is_nan(a) ? a : is_nan(b) ? b : otherwise;
  return is_signalling(a) ? quieted(a) : is_signalling(b) ? quieted(b) : quiet;
}
template <class V>
inline constexpr auto kMinimum =
    [](V a, V b) { return either_nan(a, b, FloatOrder<false>::least(a, b)); };
template <class V>
inline constexpr auto kMaximum =
    [](V a, V b) { return either_nan(a, b, FloatOrder<false>::most(a, b)); };
template <class V>
inline constexpr auto kMinimum3 = [](V a, V b, V c) { return kMinimum<V>(kMinimum<V>(a, b), c); };
template <class V>
inline constexpr auto kMaximum3 = [](V a, V b, V c) { return kMaximum<V>(kMaximum<V>(a, b), c); };
template <class V>
inline constexpr auto kMinimumMaximum =
    [](V a, V b, V c) { return kMaximum<V>(kMinimum<V>(a, b), c); };
template <class V>
inline constexpr auto kMaximumMinimum =
    [](V a, V b, V c) { return kMinimum<V>(kMaximum<V>(a, b), c); };

template <class V>
EMU_INLINE V quiet_if_nan(V x) {
  return is_nan(x) ? quieted(x) : x;
}
template <class V>
inline constexpr auto kMinimumNumber =
    [](V a, V b) { return quiet_if_nan(FloatOrder<false>::least(a, b)); };
template <class V>
inline constexpr auto kMaximumNumber =
    [](V a, V b) { return quiet_if_nan(FloatOrder<false>::most(a, b)); };

}  // namespace
}  // namespace emu
