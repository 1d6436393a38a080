#pragma once

// Rows of elements side by side that begin anywhere, by the aligned packs that they lie in.
//
// A thread's pack has not the elements of its own accumulators but those `past` before them, where
// `past` is how far behind an aligned place the row begins: so all packs but a row's first and last
// are loaded at once, and once. Which accumulators are whose is put right at the end: rotate().

#include "wick/backend/gpu/kernels/reduce/rows.h"

namespace wick::gpu {

/// The thread's own of a chunk's accumulators, of which every thread has those `past` before its
/// own: the last `past` of a thread's own are the first of the next. All of the threads of the
/// thread block, kEach to a thread; `shared` has room for each.
template <u32 kEach, class A>
WICK_DEVICE void rotate(A (&acc)[kEach], u32 past, A* shared) {
  constexpr u32 kThreads = kAccumulators / kEach;
  A all[2 * kEach - 1];
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) all[i] = acc[i];
#pragma unroll
  for (u32 i = 0; i + 1 < kEach; ++i) {
    if constexpr (kThreads == kWarp) {
      all[kEach + i] = from_next_lane(acc[i]);
    } else {
      shared[thread_index()] = acc[i];
      sync();
      all[kEach + i] =
          shared[(thread_index() & ~(kThreads - 1)) | ((thread_index() + 1) & (kThreads - 1))];
      sync();
    }
  }
#pragma unroll
  for (u32 step = 1; step < kEach; step *= 2) {
#pragma unroll
    for (u32 i = 0; i + step < 2 * kEach - 1; ++i) {
      all[i] = (past & step) != 0 ? all[i + step] : all[i];
    }
  }
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) acc[i] = all[i];
}

/// An element by a store of its own: of two neighbours compilers would make one that lies across
/// words.
template <class T>
WICK_DEVICE void store_alone(T* to, T x) {
  if constexpr (sizeof(T) == 2) {
    *reinterpret_cast<volatile u16*>(to) = __builtin_bit_cast(u16, x);
  } else {
    *to = x;
  }
}

/// A row of each thread, which holds kSteps packs of it, as HeldRows has them but shifted, and
/// perhaps the row's last elements, fewer than a pack.
template <u32 kSteps, u32 kEach, class T>
struct ShiftedRow {
  static constexpr bool kShort = false;
  static constexpr u32 kPacks = kSteps + (kEach > 1 ? 1 : 0);

  RowPlace<kEach> place;
  u32 row_threads;
  u32 past;
  bool alike;          // the output's packs are where the input's are
  u32 left = 0;        // elements from the thread's first pack's place on
  u32 head, tail = 0;  // elements that its first pack doesn't have; and those of the last few
  i64 from, to;        // the thread's first pack

  WICK_DEVICE ShiftedRow(const NormRows& rows, T* out, const T* in)
      : place(rows.width_log, rows.chunks_log),
        row_threads(1u << (rows.width_log + rows.chunks_log)) {
    i64 at[2] = {};
    u32 count = 0;
    if (place.row < rows.kept.elems) {
      locate_once(rows.kept, static_cast<u32>(place.row), at);
      count = place.count(static_cast<u32>(rows.n));
    }
    past = elements_past<kEach>(in + at[0]);
    alike = elements_past<kEach>(out + at[1]) == past;
    if (count != 0 && count + past > place.first) left = count + past - place.first;
    head = place.first == 0 ? past : 0;
    if (left % kAccumulators < kEach) tail = left % kAccumulators;
    const i64 first = i64{place.chunk} * kChunk + place.first - past;
    from = at[0] + first;
    to = at[1] + first;
  }

  /// Whether the thread has pack s; and its element i.
  WICK_DEVICE bool has(u32 s) const {
    return s == kSteps ? tail != 0 : s * kAccumulators + kEach <= left;
  }
  WICK_DEVICE bool has(u32 s, u32 i) const {
    if (s == kSteps) return i < tail && i >= tail_head();
    return s > 0 || i >= head;
  }
  /// Elements that it hasn't are as some that it has.
  WICK_DEVICE void load(Vec<T, kEach> (&held)[kPacks], const T* in) const {
    const T* x = in + from;
#pragma unroll
    for (u32 s = 0; s < kPacks; ++s) {
      held[s] = {};
      if (!has(s)) continue;
      if (is_whole(s)) {
        held[s] = load_vec<kEach>(x + s * kAccumulators);
      } else {
        const T* start = x + (s == kSteps ? left / kAccumulators * kAccumulators : 0);
        const u32 some = s == kSteps ? tail_head() : kEach - 1;
        T some_of[kEach];
#pragma unroll
        for (u32 i = 0; i < kEach; ++i) some_of[i] = start[has(s, i) ? i : some];
        held[s] = Vec<T, kEach>::of_stored(some_of);
      }
    }
  }
  template <class Get>
  WICK_DEVICE void store_row(T* out, u32, const Get& get) const {
    T* const y = out + to;
#pragma unroll
    for (u32 s = 0; s < kPacks; ++s) {
      if (!has(s)) continue;
      Compute<T> v[kEach];
      get(s, v);
      T* const to_pack = y + (s == kSteps ? left / kAccumulators : s) * kAccumulators;
      if (alike && is_whole(s)) {
        store_vec(to_pack, Vec<T, kEach>::of(v));
        continue;
      }
#pragma unroll
      for (u32 i = 0; i < kEach; ++i) {
        if (has(s, i)) store_alone(to_pack + i, narrow<T>(v[i]));
      }
    }
  }
  template <class A>
  WICK_DEVICE A sum(const HeldSum<ShiftedRow, kEach, A>& sums, A* shared) const {
    A acc[kEach];
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) acc[i] = sums.acc[0][i];
    rotate(acc, past, shared);
    return row_sum(acc, place, shared);
  }

 private:
  WICK_DEVICE bool is_whole(u32 s) const { return s > 0 ? s < kSteps : head == 0; }
  /// Elements that the last few haven't, being the first.
  WICK_DEVICE u32 tail_head() const { return left < kAccumulators ? head : 0; }
};

}  // namespace wick::gpu
