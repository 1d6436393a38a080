#pragma once

// Contiguous rows that begin at any address, read by aligned vectors.
//
// A row begins `past` elements behind an aligned address. A thread's vector then holds the elements
// `past` before those of its own accumulators. This way all vectors but a row's first and last one
// are read by one load, and only once. rotate() moves the accumulators to their threads at the end.

#include "wick/backend/gpu/kernels/reduce/rows.h"

namespace wick::gpu {

/// Shifts a chunk's accumulators by `past`: each thread holds those `past` before its own, so the
/// last `past` of its own are the first of the next thread. All threads of the thread block must
/// call it, with kEach accumulators each. `shared` has room for one value of each thread.
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

/// Stores an element by a store of its own. Compilers would merge two neighbouring stores into a
/// misaligned one.
template <class T>
WICK_DEVICE void store_alone(T* to, T x) {
  if constexpr (sizeof(T) == 2) {
    *reinterpret_cast<volatile u16*>(to) = __builtin_bit_cast(u16, x);
  } else {
    *to = x;
  }
}

/// One row for each thread, held as in HeldRows but shifted: kSteps vectors, and possibly the last
/// elements of the row, which are fewer than a vector.
template <u32 kSteps, u32 kEach, class T>
struct ShiftedRow {
  static constexpr bool kShort = false;
  static constexpr u32 kPacks = kSteps + (kEach > 1 ? 1 : 0);

  RowPlace<kEach> place;
  u32 row_threads;
  u32 past;
  bool alike;    // the output's vectors are aligned like the input's
  u32 left = 0;  // elements from the thread's first vector on
  // The elements that the thread's first vector lacks; the number of last elements.
  u32 head, tail = 0;
  i64 from, to;  // offsets of the thread's first vector in the input and in the output

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

  /// Whether the thread has vector s, and whether it has element i of that vector.
  WICK_DEVICE bool has(u32 s) const {
    return s == kSteps ? tail != 0 : s * kAccumulators + kEach <= left;
  }
  WICK_DEVICE bool has(u32 s, u32 i) const {
    if (s == kSteps) return i < tail && i >= tail_head();
    return s > 0 || i >= head;
  }
  /// Elements that don't exist get the value of one that does.
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
  /// Elements of the tail that lie before the row; there are some if the tail is the first vector.
  WICK_DEVICE u32 tail_head() const { return left < kAccumulators ? head : 0; }
};

}  // namespace wick::gpu
