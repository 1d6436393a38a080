#pragma once

// Min/max by keys: unsigned integers, of which the largest wins. All types of one width share the
// code; a KeyRule says how the bits of a type become a key.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/reduce/reduce_abi.h"

namespace wick::gpu {

/// Keys of numbers of up to 32 bits have 32 bits: the number's bits are the upper bits of the key.
template <class Bits>
using Key = Promoted<Bits>;

/// Converts a number's bits, left-aligned in the width of a key, to a key. Every key from rule.nan
/// on is a NaN.
template <class K>
WICK_DEVICE K key_of(K bits, const KeyRule<K>& rule) {
  constexpr u32 kSign = 8 * sizeof(K) - 1;
  const K sign = bits >> kSign == 0 ? K(0) : ~K(0);
  return (bits ^ (sign & rule.fold)) * rule.mul + rule.add;
}

/// Converts a key to the number's bits.
template <class K>
WICK_DEVICE K bits_of(K key, const KeyRule<K>& rule) {
  constexpr u32 kSign = 8 * sizeof(K) - 1;
  const K rank = (key - rule.add) * rule.mul;
  const K sign = rank >> kSign == 0 ? K(0) : ~K(0);
  return rank ^ (sign & rule.fold);
}

template <class Bits>
WICK_DEVICE Key<Bits> upper_bits(Bits x) {
  return static_cast<Key<Bits>>(x) << 8 * (sizeof(Key<Bits>) - sizeof(Bits));
}

/// Element i of a vector of words, left-aligned in a key.
template <class Bits>
WICK_DEVICE Key<Bits> upper_bits(const u32* words, u32 i) {
  if constexpr (sizeof(Bits) == 1) {
    return words[i / 4] << (24 - i % 4 * 8) & 0xff000000u;
  } else if constexpr (sizeof(Bits) == 2) {
    return i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u;
  } else if constexpr (sizeof(Bits) == 4) {
    return words[i];
  } else {
    return u64{words[2 * i]} | u64{words[2 * i + 1]} << 32;
  }
}

/// Whether numbers of 16 bits are compared in pairs, where KeyRule::two allows it.
template <class Bits>
inline constexpr bool kByTwos = !WICK_AMD && sizeof(Bits) == 2;

#if !WICK_AMD
/// Min/max of the lower halves and of the upper halves of words, by the type's own comparison.
/// Conversion to keys would be most of the work.
template <class T, u32 N>
WICK_DEVICE u32 min_max_two(const u32 (&words)[N], u32 flip) {
  u32 min_max = words[0] ^ flip;
#pragma unroll
  for (u32 i = 1; i < N; ++i) min_max = larger_two_or_nan<T>(min_max, words[i] ^ flip);
  return min_max ^ flip;
}
template <u32 N>
WICK_DEVICE u32 min_max_two(const u32 (&words)[N], const KeyRule<u32>& rule) {
  return rule.two == TwoOf::bf16 ? min_max_two<bf16>(words, rule.flip)
                                 : min_max_two<f16>(words, rule.flip);
}
#endif

/// The best element so far and its index. All NaN are equal.
template <class K>
struct MinMax {
  K key;
  u32 at;

  WICK_DEVICE void meet(K other_key, u32 other_at) {
    const bool better = other_key > key || (other_key == key && other_at < at);
    key = better ? other_key : key;
    at = better ? other_at : at;
  }
  /// Takes an element whose index is above all indices so far.
  WICK_DEVICE void meet_next(K next_key, u32 next_at, K nan) {
    next_key = next_key < nan ? next_key : nan;
    const bool better = next_key > key;
    key = better ? next_key : key;
    at = better ? next_at : at;
  }
  template <u32 kMask>
  WICK_DEVICE void meet_lane() {
    meet(shuffle_xor<kMask>(key), shuffle_xor<kMask>(at));
  }
  /// The best key, without its index, of up to eight neighbouring threads.
  WICK_DEVICE void meet_keys(u32 width) {
    const auto meet_key = [&](K other) { key = other > key ? other : key; };
    if (width > 1) meet_key(shuffle_xor<1>(key));
    if (width > 2) meet_key(shuffle_xor<2>(key));
    if (width > 4) meet_key(shuffle_xor<4>(key));
  }
  /// Gives `width` neighbouring threads, a power of two, the best of their results. All threads of
  /// the thread block must call it. `keys` and `places` are shared memory with one entry for each
  /// thread.
  WICK_DEVICE void meet_all(u32 width, K* keys, u32* places) {
    if (width > 1) meet_lane<1>();
    if (width > 2) meet_lane<2>();
    if (width > 4) meet_lane<4>();
    if (width > 8) meet_lane<8>();
    if (width > 16) meet_lane<16>();
    for (u32 step = kWarp; step < width; step *= 2) {
      keys[thread_index()] = key;
      places[thread_index()] = at;
      sync();
      meet(keys[thread_index() ^ step], places[thread_index() ^ step]);
      sync();
    }
  }
};

/// The index in a thread that has no elements.
inline constexpr u32 kNowhere = ~0u;

/// Stores the winning number or its index.
template <class K>
WICK_DEVICE void store_min_max(const MinMaxTarget& target, i64 to, const MinMax<K>& min_max,
                               const KeyRule<K>& rule) {
  if (target.index != 0) {
    static_cast<u32*>(target.out)[to] = min_max.at;
    return;
  }
  const K bits = bits_of(min_max.key, rule) >> 8 * (sizeof(K) - target.bytes);
  if (target.bytes == 1) {
    static_cast<u8*>(target.out)[to] = static_cast<u8>(bits);
  } else if (target.bytes == 2) {
    static_cast<u16*>(target.out)[to] = static_cast<u16>(bits);
  } else {
    static_cast<K*>(target.out)[to] = bits;
  }
}

}  // namespace wick::gpu
