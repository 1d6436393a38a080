#pragma once

// The order of cumulative sums and products (docs/design/numerics/reduce.md) on a GPU.
//
// A thread scans a group of 16 elements in registers. Sixteen neighbouring lanes then scan the
// totals of their groups by shuffles, and every sixteen lanes scan the totals of those. Elements
// go through shared memory, so that neighbouring threads read neighbouring elements.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/device/lanes.h"
#include "wick/backend/gpu/kernels/reduce/scan_abi.h"
#include "wick/backend/gpu/kernels/reduce/sums.h"
#include "wick/math/scaled.h"

namespace wick::gpu {

constexpr u32 kGroup = math::kScanGroup;
static_assert(kScanDown == kGroup * kGroup && kScanThreads == kGroup * kGroup);

WICK_DEVICE Scaled from_lane(const Scaled& x, u32 from) {
  return {from_lane(x.mantissa, from),
          static_cast<i64>(from_lane(static_cast<u64>(x.exponent), from))};
}

/// Shared memory for kCount numbers. Shared variables can't have constructors, which Scaled has.
template <class N, u32 kCount>
struct Numbers {
  alignas(16) u32 words[kCount * sizeof(N) / 4];

  WICK_DEVICE N& operator[](u32 i) { return reinterpret_cast<N*>(words)[i]; }
};

/// Sums of elements of T.
template <class T>
struct SumScan {
  static constexpr bool kSums = true;
  using Element = T;
  using Number = Sum<T>;
  WICK_DEVICE static T missing() { return T{}; }
  WICK_DEVICE static Number none() { return Number(0); }
  WICK_DEVICE static Number of(Compute<T> x) { return x; }
  WICK_DEVICE static Number combine(Number a, Number b) { return a + b; }
  /// Called for the total of a group, of 16 groups and of a chunk.
  WICK_DEVICE static Number total(Number x) { return x; }
  WICK_DEVICE static T stored(Number x) { return from_sum<T>(x); }
};

/// Products of integers, modulo 2^bits.
template <class T>
struct IntegerProductScan : SumScan<T> {
  static constexpr bool kSums = false;
  using Number = Sum<T>;
  WICK_DEVICE static T missing() { return T(1); }
  WICK_DEVICE static Number none() { return Number(1); }
  WICK_DEVICE static Number combine(Number a, Number b) { return a * b; }
};

/// Products of floats.
template <class T>
struct FloatProductScan {
  static constexpr bool kSums = false;
  using Element = T;
  using Number = Scaled;
  WICK_DEVICE static T missing() { return narrow<T>(1); }
  WICK_DEVICE static Number none() { return {}; }
  WICK_DEVICE static Number of(Compute<T> x) { return scaled(static_cast<double>(x)); }
  WICK_DEVICE static Number combine(const Number& a, const Number& b) { return product(a, b); }
  WICK_DEVICE static Number total(const Number& x) { return normalized(x); }
  WICK_DEVICE static T stored(const Number& x) {
    const double y = value(x);
    if constexpr (kNarrow<T>) {
      return from_f64<T>(y);
    } else {
      return static_cast<T>(y);
    }
  }
};

template <class T, bool = kUnsigned<T>>
struct ProductScanOf {
  using Type = FloatProductScan<T>;
};
template <class T>
struct ProductScanOf<T, true> {
  using Type = IntegerProductScan<T>;
};
template <class T>
using ProductScan = typename ProductScanOf<T>::Type;

/// The elements of a thread block in shared memory, group by group. A word of padding behind each
/// group spreads groups over the banks.
template <class T>
struct ScanStage {
  static constexpr u32 kPadding = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  static constexpr u32 kGroupStride = kGroup + kPadding;
  alignas(16) T at[kScanThreads * kGroupStride];

  /// The place of element e of *_rows. Words have their padding behind every second group, which
  /// keeps 32 neighbouring elements, and one element of 32 groups, in different banks.
  WICK_DEVICE static u32 place(u32 e) {
    return sizeof(T) == 4 ? e + e / (2 * kGroup) : e / kGroup * kGroupStride + e % kGroup;
  }

  /// Loads the elements of a group. Short ones are moved in words: compilers merge accesses to
  /// neighbours, and the merged ones would need a larger alignment than a group has.
  WICK_DEVICE static void load(const T* from, Compute<T> (&x)[kGroup]) {
    if constexpr (sizeof(T) >= 4) {
#pragma unroll
      for (u32 i = 0; i < kGroup; ++i) x[i] = from[i];
    } else {
      Words words;
#pragma unroll
      for (u32 i = 0; i < Words::kWords; ++i) words.w[i] = reinterpret_cast<const u32*>(from)[i];
#pragma unroll
      for (u32 i = 0; i < kGroup; ++i) x[i] = words[i];
    }
  }
  WICK_DEVICE static void store(T* to, const T (&x)[kGroup]) {
    if constexpr (sizeof(T) >= 4) {
#pragma unroll
      for (u32 i = 0; i < kGroup; ++i) to[i] = x[i];
    } else {
      const Words words = Words::of_stored(x);
#pragma unroll
      for (u32 i = 0; i < Words::kWords; ++i) reinterpret_cast<u32*>(to)[i] = words.w[i];
    }
  }

 private:
  using Words = Vec<T, kGroup>;
};

/// The elements of a thread block of *_columns, group by group and column by column. With 32
/// columns two words of padding behind each group, and one behind each column, keep elements of 32
/// columns, and of the 16 groups of two columns, in different banks.
template <class S>
struct ColumnStage {
  using T = typename S::Element;
  static constexpr u32 kAcross = scan_across(WICK_AMD, S::kSums, sizeof(T));
  static constexpr u32 kThreads = kAcross * kGroup;
  static constexpr u32 kPadding = ScanStage<T>::kPadding;
  static constexpr u32 kGroupStride = kGroup + (kAcross == 32 ? 2 : 1) * kPadding;
  static constexpr u32 kColumnStride = kGroup * kGroupStride + kPadding;
  alignas(16) T at[kAcross * kColumnStride];
};

/// Inclusive scan over `count` neighbouring lanes, 1, 2, 4, 8 or 16, of which this lane is the one
/// with number `index`. All lanes must call it.
template <class S, class N>
WICK_DEVICE N scan_lanes(N x, u32 index, u32 count) {
#pragma unroll
  for (u32 distance = 1; distance < kGroup; distance *= 2) {
    if (distance >= count) continue;
    const N other = from_lane(x, (lane() - distance) % kWarp);
    if (index >= distance) x = S::combine(x, other);
  }
  return x;
}

/// The scans of a thread's group and of the groups before it among its 16.
template <class S>
struct ScannedGroup {
  using N = typename S::Number;
  using T = typename S::Element;
  N local[kGroup];  ///< inclusive, of the group
  N before;         ///< the total of the groups before it, among 16
  N total;          ///< the total of the groups up to it, among 16

  /// Scans the group at `from`. `count`: how many neighbouring groups belong together.
  WICK_DEVICE ScannedGroup(const T* from, u32 count) {
    Compute<T> x[kGroup];
    ScanStage<T>::load(from, x);
#pragma unroll
    for (u32 i = 0; i < kGroup; ++i) local[i] = S::of(x[i]);
#pragma unroll
    for (u32 distance = 1; distance < kGroup; distance *= 2) {
#pragma unroll
      for (u32 i = kGroup; i-- > distance;) local[i] = S::combine(local[i], local[i - distance]);
    }
    const u32 index = lane() & (count - 1);
    total = scan_lanes<S>(S::total(local[kGroup - 1]), index, count);
    before = from_lane(total, (lane() - 1) % kWarp);
    if (index == 0) before = S::none();
    total = S::total(total);
  }
  /// Stores the group's results over its elements.
  WICK_DEVICE void store(T* to, N carry, const N& of_supers) const {
    const N offset = S::combine(S::combine(carry, of_supers), before);
    T y[kGroup];
#pragma unroll
    for (u32 i = 0; i < kGroup; ++i) y[i] = S::stored(S::combine(offset, local[i]));
    ScanStage<T>::store(to, y);
  }
};

/// Rows: each thread block takes 256 groups, of one chunk or of several rows.
template <class S>
WICK_DEVICE void scan_rows(const ScanRowsArgs& args) {
  using T = typename S::Element;
  using N = typename S::Number;
  WICK_SHARED ScanStage<T> stage;
  WICK_SHARED Numbers<N, kGroup> supers;
  WICK_SHARED i64 start[2][kScanThreads];
  const u32 t = thread_index(), width_log = args.width_log, width = 1u << width_log;
  const u32 chunk = args.chunks == 1 ? 0 : block_index() % args.chunks;
  const u64 first_row = args.chunks == 1 ? u64{block_index()} << (kScanThreadsLog - width_log)
                                         : block_index() / args.chunks;
  const u64 first = u64{chunk} * math::kScanChunk;
  const u64 left = args.n - first;
  pdl_wait();
  pdl_launch_dependents();
  // Where the block's rows begin.
  const u64 row = first_row + t;
  if (t < kScanThreads >> width_log && row < args.kept.elems) {
    i64 at[2];
    locate_once(args.kept, static_cast<u32>(row), at);
    start[0][t] = at[0] + static_cast<i64>(first) * args.in_step;
    start[1][t] = at[1] + static_cast<i64>(first) * args.out_step;
  }
  sync();
  const T* in = static_cast<const T*>(args.in);
  T x[kGroup];
#pragma unroll
  for (u32 k = 0; k < kGroup; ++k) {
    const u32 e = k * kScanThreads + t, slot = e >> (width_log + 4), c = e & (width * kGroup - 1);
    x[k] = S::missing();
    if (first_row + slot < args.kept.elems && c < left)
      x[k] = in[start[0][slot] + c * args.in_step];
  }
#pragma unroll
  for (u32 k = 0; k < kGroup; ++k) {
    const u32 e = k * kScanThreads + t;
    stage.at[ScanStage<T>::place(e)] = x[k];
  }
  sync();
  T* const mine = stage.at + ScanStage<T>::place(t * kGroup);
  const ScannedGroup<S> group(mine, width < kGroup ? width : kGroup);
  N of_supers = S::none(), carry = S::none();
  if (width > kGroup) {
    if (t % kGroup == kGroup - 1) supers[t / kGroup] = group.total;
    sync();
    const u32 count = width / kGroup, super = t / kGroup;
    const N scanned = scan_lanes<S>(supers[lane() % kGroup], lane() & (count - 1), count);
    of_supers = from_lane(scanned, (super - 1) % kGroup);
    if ((super & (count - 1)) == 0) of_supers = S::none();
    if (args.totals != nullptr) {
      if (t == kGroup - 1) static_cast<N*>(args.totals)[block_index()] = S::total(scanned);
      return;
    }
  }
  if (args.before != nullptr) carry = static_cast<const N*>(args.before)[block_index()];
  group.store(mine, carry, of_supers);
  sync();
  T* out = static_cast<T*>(args.out);
#pragma unroll
  for (u32 k = 0; k < kGroup; ++k) {
    const u32 e = k * kScanThreads + t, slot = e >> (width_log + 4), c = e & (width * kGroup - 1);
    if (first_row + slot < args.kept.elems && c < left) {
      out[start[1][slot] + c * args.out_step] = stage.at[ScanStage<T>::place(e)];
    }
  }
}

/// Inclusive scans of up to 16 numbers of each column that arrive one at a time, with the order of
/// scan_lanes. `waiting` has, for each distance 1, 2, 4 and 8, the last `distance` numbers of the
/// scan with all smaller distances. The 16 lanes of a column call it together.
template <class S>
struct ArrivingScan {
  using N = typename S::Number;
  static constexpr u32 kAcross = ColumnStage<S>::kAcross;
  Numbers<N, (kGroup - 1) * kAcross> waiting;

  WICK_DEVICE void clear(u32 column, bool writes) {
#pragma unroll 1
    for (u32 i = 0; i < kGroup - 1; ++i) {
      if (writes) waiting[i * kAcross + column] = S::none();
    }
    warp_sync();
  }
  WICK_DEVICE N add(N x, u32 index, u32 column, bool writes) {
#pragma unroll
    for (u32 distance = 1; distance < kGroup; distance *= 2) {
      N& slot = waiting[(distance - 1 + (index & (distance - 1))) * kAcross + column];
      const N before = slot;
      warp_sync();
      if (writes) slot = x;
      x = S::combine(x, before);
    }
    warp_sync();
    return x;
  }
};

/// Columns: each thread block takes a chunk of 16 or 32 columns, 256 rows at a time.
template <class S>
WICK_DEVICE void scan_columns(const ScanColumnsArgs& args) {
  using T = typename S::Element;
  using N = typename S::Number;
  using Stage = ColumnStage<S>;
  constexpr u32 kAcross = Stage::kAcross;
  WICK_SHARED Stage stage;
  WICK_SHARED ArrivingScan<S> supers;
  const u32 t = thread_index();
  const u32 index = block_index() / args.chunks, chunk = block_index() - index * args.chunks;
  const u32 outer = index / args.strips, strip = index - outer * args.strips;
  const u32 first_column = strip * kAcross;
  const u64 begin = u64{chunk} * math::kScanChunk;
  const u64 end = chunk + 1 == args.chunks ? args.n : begin + math::kScanChunk;
  // The thread's column and first row when elements are moved, and when they are scanned.
  const u32 across = t % kAcross, down = t / kAcross;
  const u32 column = t / kGroup, place = t % kGroup;
  const bool moves = first_column + across < args.columns;
  pdl_wait();
  pdl_launch_dependents();
  i64 at[2];
  locate_once(args.outer, outer, at);
  const T* in = static_cast<const T*>(args.in) + at[0] + i64{first_column + across} * args.in_next;
  T* out = static_cast<T*>(args.out) + at[1] + i64{first_column + across} * args.out_next;
  const u64 number = (u64{outer} * args.columns + first_column + column) * args.chunks + chunk;
  const bool is_column = first_column + column < args.columns;
  N carry = S::none(), of_supers = S::none();
  if (args.before != nullptr && is_column) carry = static_cast<const N*>(args.before)[number];
  supers.clear(column, place == 0);

  T x[kGroup];
  const auto load = [&](u64 row) WICK_INLINE {
#pragma unroll
    for (u32 k = 0; k < kGroup; ++k) {
      const u64 r = row + k * kGroup + down;
      x[k] = S::missing();
      if (moves && r < end) x[k] = in[static_cast<i64>(r) * args.in_step];
    }
  };
  const auto staged = [&](u32 k) WICK_INLINE -> T& {
    return stage.at[across * Stage::kColumnStride + k * Stage::kGroupStride + down];
  };
  T* const mine = stage.at + column * Stage::kColumnStride + place * Stage::kGroupStride;
  load(begin);
#pragma unroll 1
  for (u64 row = begin; row < end; row += kScanDown) {
#pragma unroll
    for (u32 k = 0; k < kGroup; ++k) staged(k) = x[k];
    sync();
    load(row + kScanDown);
    const ScannedGroup<S> group(mine, kGroup);
    if (args.totals == nullptr) group.store(mine, carry, of_supers);
    const N super = from_lane(group.total, lane() | (kGroup - 1));
    const u32 arrived = static_cast<u32>((row - begin) / kScanDown);
    of_supers = supers.add(super, arrived, column, place == 0);
    sync();
    if (args.totals == nullptr) {
#pragma unroll
      for (u32 k = 0; k < kGroup; ++k) {
        const u64 r = row + k * kGroup + down;
        if (moves && r < end) out[static_cast<i64>(r) * args.out_step] = staged(k);
      }
      sync();
    }
  }
  if (args.totals != nullptr && is_column && place == 0) {
    static_cast<N*>(args.totals)[number] = S::total(of_supers);
  }
}

/// Totals of chunks become what precedes each chunk. A warp takes a row.
template <class S>
WICK_DEVICE void scan_carries(const ScanCarriesArgs& args) {
  using N = typename S::Number;
  pdl_wait();
  pdl_launch_dependents();
  const u32 row = block_index() * (kScanThreads / kWarp) + warp_index();
  if (row >= args.rows) return;
  N* const totals = static_cast<N*>(args.totals) + u64{row} * args.chunks;
  N carry = S::none();
#pragma unroll 1
  for (u32 first = 0; first < args.chunks; first += kWarp) {
    const bool live = first + lane() < args.chunks;
    const N total = live ? totals[first + lane()] : S::none();
    N before = carry;
#pragma unroll
    for (u32 i = 0; i < kWarp; ++i) {
      if (lane() == i) before = carry;
      carry = S::total(S::combine(carry, from_lane(total, i)));
    }
    if (live) totals[first + lane()] = before;
  }
}

}  // namespace wick::gpu
