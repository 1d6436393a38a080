#pragma once

// Converts operands to vectors of lanes and writes results to registers. Every vector instruction
// shares this code, so a row of a table only defines the computation.

#include <tuple>
#include <type_traits>

#include "emu/exec/wave.h"

namespace emu {

/// An operand or result with one bit per lane: VCC, a carry or a condition.
struct Lanes {
  LaneMask bits;
};

/// A sum and its carries.
template <class V>
struct WithLanes {
  V value;
  Lanes lanes;
};

/// Two 16-bit values per lane.
template <class V>
struct Packed {
  V low, high;
};

/// An f32, or an f16 that is widened to f32: a source of the mix instructions.
struct Mixed {
  F32 value;
};

template <class T>
struct Signature;
template <class R, class C, class... Args>
struct Signature<R (C::*)(Args...) const> {
  using Result = R;
  static constexpr int kCount = sizeof...(Args);
  template <int I>
  using Arg = std::tuple_element_t<I, std::tuple<Args...>>;
};
template <auto F>
using SignatureOf = Signature<decltype(&decltype(F)::operator())>;

template <class T>
inline constexpr bool kIsFloat =
    std::is_same_v<T, F16> || std::is_same_v<T, F32> || std::is_same_v<T, F64>;

/// The unsigned vector with elements of the same width.
template <class V>
using Unsigned = std::conditional_t<sizeof(Element<V>) == 8, U64,
                                    std::conditional_t<sizeof(Element<V>) == 4, U32, U16>>;

EMU_INLINE U32 load_dword(Wave* w, uint32_t offset, bool vector, int half) {
  if (vector) return at<U32>(w, offset + static_cast<uint32_t>(half) * w->half_bytes);
  return splat<U32>(at<uint32_t>(w, offset));
}

EMU_INLINE U64 load_qword(Wave* w, uint32_t offset, bool vector, int half) {
  if (vector) {
    const uint32_t from = offset + static_cast<uint32_t>(half) * w->half_bytes;
    return pair(at<U32>(w, from), at<U32>(w, from + 128));
  }
  return splat<U64>(uint64_t{at<uint32_t>(w, offset + 4)} << 32 | at<uint32_t>(w, offset));
}

template <class V>
EMU_INLINE V apply_signs(V value, bool neg, bool abs) {
  if constexpr (kIsFloat<V>) {
    using B = Unsigned<V>;
    using E = Element<B>;
    constexpr E kSign = static_cast<E>(E{1} << (8 * sizeof(E) - 1));
    B bits = bits_as<B>(value);
    if (abs) bits &= static_cast<E>(~kSign);
    if (neg) bits ^= kSign;
    return bits_as<V>(bits);
  } else {
    return value;
  }
}

/// Converts an operand's dword to an argument of type T and applies its modifiers.
template <class T>
EMU_INLINE T shape(U32 dword, const SourceForm& form) {
  if constexpr (std::is_same_v<T, Packed<F16>> || std::is_same_v<T, Packed<U16>> ||
                std::is_same_v<T, Packed<I16>>) {
    using V = decltype(T::low);
    const U32 lo = form.hi ? dword >> 16 : dword, hi = form.hi_hi ? dword >> 16 : dword;
    return {apply_signs(bits_as<V>(convert<U16>(lo)), form.neg, false),
            apply_signs(bits_as<V>(convert<U16>(hi)), form.neg_hi, false)};
  } else if constexpr (std::is_same_v<T, Mixed>) {
    // For mix instructions, op_sel_hi selects f16 and op_sel its half. Disassembly writes neg_hi as
    // an absolute value as well.
    F32 value = bits_as<F32>(dword);
    if (form.hi_hi) {
      const U32 part = form.hi ? dword >> 16 : dword;
      value = convert<F32>(bits_as<F16>(convert<U16>(part)));
    }
    return {apply_signs(value, form.neg, form.abs || form.neg_hi)};
  } else if constexpr (sizeof(Element<T>) == 2) {
    const U32 part = form.hi ? dword >> 16 : dword;
    return apply_signs(bits_as<T>(convert<U16>(part)), form.neg, form.abs);
  } else {
    return apply_signs(bits_as<T>(dword), form.neg, form.abs);
  }
}

EMU_INLINE void store_dword(Wave* w, uint32_t offset, LaneMask enabled, U32 value) {
  U32& to = at<U32>(w, offset);
  if (enabled == kAllLanes) [[likely]] {
    to = value;
  } else {
    to = select(enabled, value, to);
  }
}

EMU_INLINE void store_qword(Wave* w, uint32_t offset, LaneMask enabled, U64 value) {
  store_dword(w, offset, enabled, convert<U32>(value));
  store_dword(w, offset + 128, enabled, convert<U32>(value >> 32));
}

}  // namespace emu
