#pragma once

// What the sorting kernels share: keys, and the stable ranking of a thread block's keys by one
// digit of 8 bits.
//
// Lanes of a warp hold neighbouring elements: element i of a thread is 32 · i elements behind the
// thread's first one, and a warp's elements follow those of the warp before it. For each of a
// thread's elements, ballots tell which lanes have the same digit. Each warp counts its digits in
// shared memory; a scan over warps and digits gives the ranks.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/device/lanes.h"
#include "wick/backend/gpu/kernels/index/sort_abi.h"

namespace wick::gpu {

constexpr u32 kDigitPairs = kSortDigits / 2;

/// The type in which keys of elements of type U are computed.
template <class U>
using SortKey = Promoted<U>;

/// The largest key. It also stands for missing elements, which are behind all others.
template <class U>
inline constexpr SortKey<U> kLastKey = static_cast<U>(~U(0));

template <class U>
WICK_DEVICE SortKey<U> key_of(U element, const SortKeys& keys) {
  using K = SortKey<U>;
  const K x = element, sign = static_cast<K>(keys.sign);
  const K flip = static_cast<K>((x & sign) != 0 ? keys.negative : keys.positive);
  return (x & ~sign) > static_cast<K>(keys.most) ? kLastKey<U> : x ^ flip;
}
template <class U>
WICK_DEVICE U element_of(SortKey<U> key, const SortKeys& keys) {
  using K = SortKey<U>;
  const bool positive = ((key ^ static_cast<K>(keys.turn)) & static_cast<K>(keys.sign)) != 0;
  return static_cast<U>(key ^ static_cast<K>(positive ? keys.positive : keys.negative));
}

/// A row of the input.
template <class U>
struct SortRow {
  const U* from;
  const u32* places;  // null: element i has place i
  i64 step;
  bool are_keys;

  WICK_DEVICE SortRow(const SortInput& in, u32 row, i64 start)
      : from(static_cast<const U*>(in.elements) + start),
        places(nullptr),
        step(in.step),
        are_keys(in.keys != nullptr) {
    if (!are_keys) return;
    from = static_cast<const U*>(in.keys) + u64{row} * in.n;
    places = in.places + u64{row} * in.n;
    step = 1;
  }
  WICK_DEVICE SortKey<U> key(u32 i, const SortKeys& keys) const {
    const U x = from[i * step];
    return are_keys ? SortKey<U>{x} : key_of(x, keys);
  }
  WICK_DEVICE u32 place(u32 i) const { return places == nullptr ? i : places[i]; }
};

/// Writes the element with this key to position i of a sorted row.
template <class U>
WICK_DEVICE void write_sorted(const SortOutput& out, const i64 (&at)[3], u32 i, SortKey<U> key,
                              u32 place, const SortKeys& keys) {
  if (i >= out.keep) return;
  if (out.values != nullptr) {
    static_cast<U*>(out.values)[at[1] + i * out.values_step] = element_of<U>(key, keys);
  }
  if (out.indices != nullptr) out.indices[at[2] + i * out.indices_step] = place;
}

/// Shared memory besides the dynamic part.
struct DigitShared {
  u32 base[kSortDigits];  // how many elements have a lower digit
  u32 sums[kDigitPairs / kWarp];
};

/// Threads t < 128 have the counts of digits 2t and 2t + 1; fills shared.base. All threads of the
/// thread block must call it; a sync() must follow before shared.base is read.
WICK_DEVICE void scan_digits(u32 low, u32 high, DigitShared& shared) {
  const bool owns = thread_index() < kDigitPairs;
  const u32 sum = owns ? low + high : 0;
  const u32 scanned = warp_prefix(sum);
  if (owns && lane() == kWarp - 1) shared.sums[warp_index()] = scanned;
  sync();
  if (owns) {
    u32 base = scanned - sum;
#pragma unroll
    for (u32 w = 0; w < kDigitPairs / kWarp; ++w) {
      if (w < warp_index()) base += shared.sums[w];
    }
    shared.base[2 * thread_index()] = base;
    shared.base[2 * thread_index() + 1] = base + low;
  }
}

/// A thread block's keys while they are sorted.
template <class K>
struct BlockSort {
  u16* counts;  // [warps][digits]; the counts of two digits are a word
  u32* words;   // a word of each key
  DigitShared& shared;
  u32 each;   // elements of a thread
  u32 first;  // the thread's first element
  u32 rank[kSortEach];

  WICK_DEVICE BlockSort(Bytes16* dynamic, DigitShared& digits, u32 elements_each)
      : counts(reinterpret_cast<u16*>(dynamic)),
        words(reinterpret_cast<u32*>(counts + block_threads() / kWarp * kSortDigits)),
        shared(digits),
        each(elements_each),
        first(warp_index() * kWarp * elements_each + lane()) {}

  /// Position of the thread's element i.
  WICK_DEVICE u32 at(u32 i) const { return first + i * kWarp; }

  /// Computes the position of each key in the order of its digit. shared.base stays valid until the
  /// next call.
  WICK_DEVICE void rank_by(u32 shift, const K (&key)[kSortEach]) {
    u16* const mine = counts + warp_index() * kSortDigits;
    u32* const pairs = reinterpret_cast<u32*>(counts);
#pragma unroll
    for (u32 k = 0; k < kDigitPairs / kWarp; ++k) {
      pairs[warp_index() * kDigitPairs + k * kWarp + lane()] = 0;
    }
    warp_sync();
#pragma unroll
    for (u32 i = 0; i < kSortEach; ++i) {
      if (i >= each) continue;
      const u32 digit = digit_of(key[i], shift), lanes = lanes_with(digit, 8, ~0u);
      const u32 before = count_bits(lanes & lanes_below());
      const u32 counted = mine[digit];
      warp_sync();
      if (before == 0) mine[digit] = static_cast<u16>(counted + count_bits(lanes));
      warp_sync();
      rank[i] = counted + before;
    }
    sync();
    u32 pair = 0;  // at most kSortBlock elements: neither half overflows
    if (thread_index() < kDigitPairs) {
      const u32 warps = block_threads() / kWarp;
#pragma unroll 4
      for (u32 w = 0; w < warps; ++w) {
        const u32 here = pairs[w * kDigitPairs + thread_index()];
        pairs[w * kDigitPairs + thread_index()] = pair;
        pair += here;
      }
    }
    scan_digits(pair & 0xffff, pair >> 16, shared);
    sync();
#pragma unroll
    for (u32 i = 0; i < kSortEach; ++i) {
      if (i >= each) continue;
      const u32 digit = digit_of(key[i], shift);
      rank[i] += mine[digit] + shared.base[digit];
    }
    sync();  // counts may be overwritten
  }

  /// Moves one word of each element to the position that rank_by() has computed.
  WICK_DEVICE void exchange(u32 (&x)[kSortEach]) {
#pragma unroll
    for (u32 i = 0; i < kSortEach; ++i) {
      if (i < each) words[rank[i]] = x[i];
    }
    sync();
#pragma unroll
    for (u32 i = 0; i < kSortEach; ++i) {
      if (i < each) x[i] = words[at(i)];
    }
    sync();
  }
  WICK_DEVICE void exchange(u64 (&x)[kSortEach]) {
    u32 low[kSortEach], high[kSortEach];
#pragma unroll
    for (u32 i = 0; i < kSortEach; ++i) {
      low[i] = static_cast<u32>(x[i]);
      high[i] = static_cast<u32>(x[i] >> 32);
    }
    exchange(low);
    exchange(high);
#pragma unroll
    for (u32 i = 0; i < kSortEach; ++i) x[i] = u64{high[i]} << 32 | low[i];
  }
  /// Moves keys and places below 2^16 together.
  WICK_DEVICE void exchange(u32 (&key)[kSortEach], u32 (&place)[kSortEach]) {
#pragma unroll
    for (u32 i = 0; i < kSortEach; ++i) {
      if (i >= each) continue;
      words[rank[i]] = key[i];
      counts[rank[i]] = static_cast<u16>(place[i]);
    }
    sync();
#pragma unroll
    for (u32 i = 0; i < kSortEach; ++i) {
      if (i >= each) continue;
      key[i] = words[at(i)];
      place[i] = counts[at(i)];
    }
    sync();
  }
  WICK_DEVICE void exchange(u64 (&key)[kSortEach], u32 (&place)[kSortEach]) {
    exchange(key);
    exchange(place);
  }

  WICK_DEVICE static u32 digit_of(K key, u32 shift) {
    return static_cast<u32>(key >> shift) & (kSortDigits - 1);
  }
};

}  // namespace wick::gpu
