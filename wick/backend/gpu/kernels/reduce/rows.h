#pragma once

// The reduction order of row sums (docs/design/numerics/reduce.md) on a GPU.
//
// A thread holds kEach neighbouring accumulators, so 128 / kEach threads share a chunk of 4096
// elements and read 128 neighbouring elements at a time. Short rows take fewer threads, since
// accumulators without elements add nothing. A row of several chunks takes that many threads for
// each chunk.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/reduce/reduce_abi.h"
#include "wick/math/reducers.h"

namespace wick::gpu {

inline constexpr u32 kMostChunks = 8;

/// A thread's row, and its elements in that row. A row takes 2^width_log threads for each of
/// 2^chunks_log chunks. Only rows of at most kEach << width_log elements take fewer than 128 /
/// kEach threads.
template <u32 kEach>
struct RowPlace {
  u64 row;
  u32 width, chunks;
  u32 chunk;  // the thread's chunk
  u32 first;  // the thread's first element in the chunk

  WICK_DEVICE RowPlace(u32 width_log, u32 chunks_log)
      : width(1u << width_log), chunks(1u << chunks_log) {
    const u64 at = (u64{block_index()} * block_threads() + thread_index()) >> width_log;
    row = at >> chunks_log;
    chunk = static_cast<u32>(at) & (chunks - 1);
    first = (thread_index() & (width - 1)) * kEach;
  }

  /// Number of elements in the thread's chunk of a row of n.
  WICK_DEVICE u32 count(u32 n) const {
    const u32 start = chunk * kChunk;
    return n <= start ? 0 : n - start < kChunk ? n - start : kChunk;
  }
};

/// Combines a row's accumulators with the reducer R; all threads of the row get the result. All
/// threads of the thread block must call it. `shared` has room for one value of each thread.
template <class R = math::Sum, u32 kEach, class A>
WICK_DEVICE A row_sum(const A (&acc)[kEach], const RowPlace<kEach>& place, A* shared) {
  const auto combine = [](A a, A b) WICK_INLINE { return R::combine(a, b); };
  A s;
  if constexpr (kEach == 4) {
    s = combine(combine(acc[0], acc[1]), combine(acc[2], acc[3]));
  } else if constexpr (kEach == 2) {
    s = combine(acc[0], acc[1]);
    s = combine(s, shuffle_xor<1>(s));
  } else {
    s = combine(acc[0], shuffle_xor<1>(acc[0]));
    s = combine(s, shuffle_xor<2>(s));
  }
  // Four accumulators are one lane of the order. The steps below combine lanes at the order's
  // distances 16, 8, 4, 2, 1.
  constexpr u32 kLane = 4 / kEach;
  if (kEach < 4 && place.width > kWarp) {
    shared[thread_index()] = s;
    sync();
    if constexpr (kEach == 2) s = combine(s, shared[thread_index() ^ 32]);
    if constexpr (kEach == 1) {
      s = combine(combine(s, shared[thread_index() ^ 64]),
                  combine(shared[thread_index() ^ 32], shared[thread_index() ^ 96]));
    }
  }
  if (kLane * 16 < kWarp && place.width > kLane * 16) {
    s = combine(s, shuffle_xor<kLane * 16 % kWarp>(s));
  }
  if (kLane * 8 < kWarp && place.width > kLane * 8)
    s = combine(s, shuffle_xor<kLane * 8 % kWarp>(s));
  if (place.width > kLane * 4) s = combine(s, shuffle_xor<kLane * 4>(s));
  if (place.width > kLane * 2) s = combine(s, shuffle_xor<kLane * 2>(s));
  if (place.width > kLane) s = combine(s, shuffle_xor<kLane>(s));
  if (place.chunks == 1) return s;

  // The results of at most 8 chunks are combined in the same way.
  sync();
  if (place.first == 0) shared[thread_index() / place.width] = s;
  sync();
  const A* sums = shared + thread_index() / place.width - place.chunk;
  A t[kMostChunks];
#pragma unroll
  for (u32 k = 0; k < kMostChunks; ++k)
    t[k] = k < place.chunks ? sums[k] : R::template identity<A>();
  return combine(combine(combine(t[0], t[1]), combine(t[2], t[3])),
                 combine(combine(t[4], t[5]), combine(t[6], t[7])));
}

/// Combines a row of at most 128 elements with row_sum's order. acc[k] is the lane k · width behind
/// the thread's first lane.
template <class R = math::Sum, class A>
WICK_DEVICE A short_row_sum(const A (&acc)[kShortLanes][4], u32 width) {
  const auto combine = [](A a, A b) WICK_INLINE { return R::combine(a, b); };
  A lane[kShortLanes];
#pragma unroll
  for (u32 k = 0; k < kShortLanes; ++k) {
    lane[k] = combine(combine(acc[k][0], acc[k][1]), combine(acc[k][2], acc[k][3]));
  }
  A s = combine(combine(lane[0], lane[2]), combine(lane[1], lane[3]));
  if (width > 4) s = combine(s, shuffle_xor<4>(s));
  if (width > 2) s = combine(s, shuffle_xor<2>(s));
  if (width > 1) s = combine(s, shuffle_xor<1>(s));
  return s;
}

/// Elements of a vector in HeldRows.
template <u32 kSteps, class T>
inline constexpr u32 kHeldEach = held_each(kSteps, sizeof(T));

/// Rows held in registers: a thread holds kPacks vectors of each of kRows rows. Vector s begins s ·
/// 128 elements behind the thread's first element. In rows of at most 128 elements (kSteps = 1) a
/// thread has the four lanes of the order which the first two distances combine. Rows are dense,
/// and vectors are aligned.
template <u32 kSteps, u32 kEach, u32 kMany>
struct HeldRows {
  static constexpr u32 kRows = kMany;
  static constexpr bool kShort = kSteps == 1;
  static constexpr u32 kPacks = kShort ? kShortLanes : kSteps;

  const NormRows& rows;
  RowPlace<kEach> place;
  u32 row_threads, step;
  u32 distance;   // elements from one vector to the next
  u32 start;      // the thread's first element
  u32 left;       // elements from `start` on in the thread's chunk
  u64 first_row;  // the thread's rows are `step` apart

  WICK_DEVICE explicit HeldRows(const NormRows& all) : HeldRows(all, all.n) {}
  /// `n` is the number of a row's elements that the thread block has.
  WICK_DEVICE HeldRows(const NormRows& all, u64 n)
      : rows(all),
        place(all.width_log, all.chunks_log),
        row_threads(1u << (all.width_log + all.chunks_log)),
        step(block_threads() >> (all.width_log + all.chunks_log)),
        distance(kShort ? kEach << all.width_log : kAccumulators),
        start(place.chunk * kChunk + place.first) {
    const u32 count = place.count(static_cast<u32>(n));
    left = count > place.first ? count - place.first : 0;
    first_row = place.row + u64{block_index()} * (kRows - 1) * step;
  }

  /// Advances by the rows that the grid takes at once. Returns whether the thread block has a row
  /// there.
  WICK_DEVICE bool advance() {
    first_row += u64{grid_blocks()} * kRows * step;
    return first_row - (thread_index() >> (rows.width_log + rows.chunks_log)) < rows.kept.elems;
  }

  /// Keeps the compiler from holding what depends on the thread's elements, such as addresses of
  /// weights, in registers from one set of rows to the next.
  WICK_DEVICE void forget_places() {
    forget(start);
    forget(left);
  }

  /// Offsets of the thread's first element of its row j in the input (at[0]) and in the output
  /// (at[1]). Returns the number of elements from there on.
  WICK_DEVICE u32 locate(u32 j, i64 (&at)[2]) const {
    const u64 row = first_row + j * step;
    at[0] = at[1] = 0;
    if (row >= rows.kept.elems) return 0;
    locate_once(rows.kept, static_cast<u32>(row), at);
    at[0] += start;
    at[1] += start;
    return left;
  }

  /// Whether the thread has vector s of a row, and whether it has element i of that vector.
  WICK_DEVICE bool has(u32 s) const { return s * distance < left; }
  WICK_DEVICE static bool has(u32, u32) { return true; }
  template <class T>
  WICK_DEVICE Vec<T, kEach> load(const T* x, u32 s, u32 left_of_row) const {
    Vec<T, kEach> y = {};
    if (s * distance < left_of_row) y = load_vec<kEach>(x + s * distance);
    return y;
  }
  template <class T>
  WICK_DEVICE void store(T* y, u32 s, u32 left_of_row, const Compute<T> (&v)[kEach]) const {
    const auto pack = Vec<T, kEach>::of(v);
    if (s * distance < left_of_row) store_vec(y + s * distance, pack);
  }
  /// Stores row j; get(s, v) fills in vector s.
  template <class T, class Get>
  WICK_DEVICE void store_row(T* out, u32 j, const Get& get) const {
    i64 at[2];
    const u32 n = locate(j, at);
#pragma unroll
    for (u32 s = 0; s < kPacks; ++s) {
      Compute<T> v[kEach];
      get(s, v);
      store(out + at[1], s, n, v);
    }
  }
  /// Combines the sums of the row's threads, as row_sum does.
  template <class Sums, class A>
  WICK_DEVICE A sum(const Sums& sums, A* shared) const {
    if constexpr (kShort) {
      return short_row_sum(sums.acc, place.width);
    } else {
      return row_sum(sums.acc[0], place, shared);
    }
  }
  template <class T>
  WICK_DEVICE void load_all(Vec<T, kEach> (&held)[kRows][kPacks], const T* in) const {
#pragma unroll
    for (u32 j = 0; j < kRows; ++j) {
      i64 at[2];
      const u32 n = locate(j, at);
      const T* x = in + at[0];
#pragma unroll
      for (u32 s = 0; s < kPacks; ++s) held[j][s] = load(x, s, n);
    }
  }
};

/// The accumulators of held rows. Held::sum combines them.
template <class Held, u32 kEach, class A>
struct HeldSum {
  A acc[Held::kShort ? kShortLanes : 1][kEach] = {};

  WICK_DEVICE void add(u32 pack, u32 i, A x) {
    A& to = acc[Held::kShort ? pack : 0][i];
    to = to + x;
  }
};

/// Calls f(c, x, left) for four elements x at a time: those from c = first on, and those at
/// multiples of 128 from there, below n. `left` elements exist from c on. Elements are `step`
/// apart; with `packs` they are contiguous, aligned to four, and n is a multiple of four. kAtOnce
/// loads are in flight.
template <class T, class F>
WICK_DEVICE void for_fours(const T* x, i64 step, bool packs, u32 first, u32 n, const F& f) {
  constexpr u32 kAtOnce = 2, kFour = 4;
  using A = Compute<T>;
#pragma unroll 1
  for (u32 base = first; base < n; base += kAtOnce * kAccumulators) {
    A v[kAtOnce][kFour] = {};
    if (packs) {
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k) {
        const u32 at = base + k * kAccumulators;
        Vec<T, kFour> pack = {};
        if (at < n) pack = *reinterpret_cast<const Vec<T, kFour>*>(x + at);
#pragma unroll
        for (u32 i = 0; i < kFour; ++i) v[k][i] = pack[i];
      }
    } else {
      const T* from = x + base * step;
#pragma unroll
      for (u32 k = 0; k < kAtOnce; ++k) {
#pragma unroll
        for (u32 i = 0; i < kFour; ++i) {
          const u32 c = k * kAccumulators + i;
          if (c < n - base) v[k][i] = widen(from[c * step]);
        }
      }
    }
#pragma unroll
    for (u32 k = 0; k < kAtOnce; ++k) {
      const u32 c = base + k * kAccumulators;
      if (c < n) f(c, v[k], n - c);
    }
  }
}

/// Loads elements c to c + 3, of which `left` exist, `step` apart; with `packs` by one aligned
/// load. Missing elements are 0.
template <class T>
WICK_DEVICE void load_four(const T* x, u32 c, i64 step, bool packs, Compute<T> (&v)[4], u32 left) {
  if (packs) {
    const auto pack = *reinterpret_cast<const Vec<T, 4>*>(x + c);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) v[i] = pack[i];
  } else {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) v[i] = i < left ? widen(x[(c + i) * step]) : Compute<T>(0);
  }
}

/// Stores four elements, of which `left` exist, `step` apart; with `packs` by one aligned store.
template <class T>
WICK_DEVICE void store_four(T* y, i64 step, bool packs, const Compute<T> (&v)[4], u32 left) {
  if (packs) {
    *reinterpret_cast<Vec<T, 4>*>(y) = Vec<T, 4>::of(v);
  } else {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      if (i < left) y[i * step] = narrow<T>(v[i]);
    }
  }
}

/// Sums of a row's blocks of 2^k chunks, which are combined by twos in order of arrival.
template <class A>
class CombinedSums {
 public:
  WICK_DEVICE void add(A sum) {
    bool carries = true;
#pragma unroll
    for (u32 i = 0; i < kLevels; ++i) {
      if (!carries) continue;
      if ((count_ >> i & 1) != 0) {
        sum = level_[i] + sum;
      } else {
        level_[i] = sum;
        carries = false;
      }
    }
    ++count_;
  }
  /// The sum; at least one block must have been added.
  WICK_DEVICE A total() const {
    A sum = A(0);  // changes nothing: no sum is −0
#pragma unroll
    for (u32 i = 0; i < kLevels; ++i) {
      if ((count_ >> i & 1) != 0) sum = level_[i] + sum;
    }
    return sum;
  }

 private:
  static constexpr u32 kLevels = 20;
  A level_[kLevels] = {};
  u32 count_ = 0;
};

/// The largest value of a row's threads, as larger(a, b) defines it; all threads of the row get it.
/// All threads of the thread block must call it. `shared` has room for one value of each thread.
template <class A, class F>
WICK_DEVICE A row_max(A x, u32 row_threads, A* shared, const F& larger) {
  if (row_threads > 1) x = larger(x, shuffle_xor<1>(x));
  if (row_threads > 2) x = larger(x, shuffle_xor<2>(x));
  if (row_threads > 4) x = larger(x, shuffle_xor<4>(x));
  if (row_threads > 8) x = larger(x, shuffle_xor<8>(x));
  if (row_threads > 16) x = larger(x, shuffle_xor<16>(x));
  for (u32 step = kWarp; step < row_threads; step *= 2) {
    shared[thread_index()] = x;
    sync();
    x = larger(x, shared[thread_index() ^ step]);
    sync();
  }
  return x;
}

}  // namespace wick::gpu
