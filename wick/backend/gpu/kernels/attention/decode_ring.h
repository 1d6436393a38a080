#pragma once

// decode_ring: keys and values of a chunk pass through a ring of three buffers in shared memory, in
// four pieces: two of keys, with half of the elements of all keys, and two of values. Values
// arrive by bulk copies, which don't hold up the arithmetic.

#include "wick/backend/gpu/kernels/attention/decode.h"
#include "wick/backend/gpu/kernels/device/hopper.h"
#include "wick/backend/gpu/kernels/device/lanes.h"

#if WICK_WGMMA

namespace wick::gpu {

/// The work of one thread block for heads of kHead elements, d = e. A thread computes the scores of
/// two keys for two heads, and then two elements of the output of one head. Loads from shared
/// memory limit the speed: measured on an H200, fewer threads with more results each are slower,
/// because a warp waits for its loads before it adds.
template <class T, u32 kHead>
struct DecodeRing {
  using Work = Decode<T, DecodeForm::ring, NoSinks>;
  using Chunk = typename Work::Chunk;
  using NewPairs = typename Work::NewPairs;
  static constexpr u32 kBuffers = kRingBuffers, kPer = Work::kPer;
  static constexpr u32 kHalf = kDecodeThreads / 2;  // threads that compute two heads' scores
  static constexpr u32 kElements = kHead / 2, kValues = kAttentionChunk / 2;  // of a piece
  static constexpr u32 kPiece = ring_piece_bytes(kHead) / sizeof(T);
  static_assert(kElements * kAttentionChunk == kPiece && kValues * kHead == kPiece);

  Work& work;
  KeyRange old = {};  // keys of the chunk that are copied from the cache
  u32 parity = 0;     // of the barriers, in this chunk

  WICK_DEVICE explicit DecodeRing(Work& w) : work(w) {}

  /// The barrier of half a chunk's values.
  WICK_DEVICE Barrier& barrier(u32 half) const {
    return reinterpret_cast<Barrier*>(work.shared.tile)[half];
  }
  /// Pieces 0 and 1 are keys, 2 and 3 are values; the last one takes the first one's place.
  WICK_DEVICE T* buffer(u32 piece) const {
    return reinterpret_cast<T*>(work.shared.tile + kRingBarrierBytes) + piece % kBuffers * kPiece;
  }
  /// One thread calls it before the thread block's next sync().
  WICK_DEVICE void init_barriers() const {
    for (u32 half = 0; half < 2; ++half) init(barrier(half), 1);
    publish_barriers();
  }

  // ---- Copies ----

  /// Starts to copy some elements of all old keys, whole 16 bytes each. Bulk copies of rows of keys
  /// would be slower: each takes about 100 cycles.
  WICK_DEVICE void copy_keys(const Chunk& chunk, u32 half) const {
    constexpr u32 kWide = kAttentionChunk / kPer, kStep = kDecodeThreads / kWide;
    T* const to = buffer(half);
    const T* const from = work.keys_at(chunk) + half * kElements * work.c.k_step;
    const u32 at = thread_index() % kWide, row = thread_index() / kWide;
    if (!old.empty() && at >= static_cast<u32>(old.begin) / kPer &&
        at < static_cast<u32>(old.end) / kPer) {
#pragma unroll
      for (u32 i = 0; i < kElements; i += kStep) {
        start_copy(reinterpret_cast<Bytes16*>(to + (i + row) * kAttentionChunk + at * kPer),
                   reinterpret_cast<const Bytes16*>(from + (i + row) * work.c.k_step + at * kPer));
      }
    }
    if (old.end % i32{kPer} != 0) work.copy_last_keys(from, to, old, kElements);
    end_copies();
  }
  /// The old keys of half a chunk.
  WICK_DEVICE KeyRange values_of(u32 half) const {
    const i32 first = static_cast<i32>(half * kValues);
    return {larger(old.begin, first), smaller(old.end, first + i32{kValues})};
  }
  /// Starts to copy the old values of half a chunk.
  WICK_DEVICE void copy_values(const Chunk& chunk, u32 half) const {
    constexpr u32 kBytes = kHead * sizeof(T);
    const KeyRange some = values_of(half);
    const u32 count = some.empty() ? 0 : static_cast<u32>(some.end - some.begin);
    if (thread_index() == 0) arrive_for(barrier(half), count * kBytes);
    if (count == 0 || lane() != 0) return;
    const u32 first = static_cast<u32>(some.begin);
    const T* const from = work.values_at(chunk) + first * work.c.v_key;
    T* const to = buffer(2 + half) + (first - half * kValues) * kHead;
    if (work.c.v_key == kHead) {
      if (warp_index() == 0) copy_piece(to, from, count * kBytes, barrier(half));
      return;
    }
#pragma unroll 1
    for (u32 i = warp_index(); i < count; i += kDecodeWarps) {
      copy_piece(to + i * kHead, from + i * work.c.v_key, kBytes, barrier(half));
    }
  }
  /// Starts to copy the first three pieces of a chunk. The buffers must be free.
  WICK_DEVICE void begin(const Chunk& chunk) {
    old = work.old_of(chunk, chunk.seen);
    copy_keys(chunk, 0);
    copy_keys(chunk, 1);
    copy_values(chunk, 0);
  }

  // ---- Arithmetic ----

  WICK_DEVICE const float* row_of(const float* rows, u32 r, u32 pitch) const {
    return rows + (r < work.rows ? r : work.rows - 1) * pitch;  // clamped to the last row
  }
  /// Adds some elements of two neighbouring keys to the dot products with two queries.
  WICK_DEVICE void add_keys(float (&a)[2][2], u32 half) const {
    const u32 r = thread_index() / kHalf * 2, key = thread_index() % kHalf * 2;
    const float* q[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) q[i] = row_of(work.shared.q, r + i, kHead) + half * kElements;
    if (r < work.rows) add_pair_chains<2, kAttentionChunk>(a, buffer(half) + key, q, 0, kElements);
  }
  WICK_DEVICE void put_scores(const float (&a)[2][2]) const {
    const u32 r = thread_index() / kHalf * 2, at = thread_index() % kHalf * 2;
    const i32 key = static_cast<i32>(at);
    if (old.empty() || key + 1 < old.begin || key >= old.end) return;
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      float* const to = work.shared.s + (r + i) * kAttentionChunk + at;
      if (r + i < work.rows) *reinterpret_cast<Vec<float, 2>*>(to) = Vec<float, 2>::of(a[i]);
    }
  }
  /// Dot products of the queries with all keys of a chunk. All threads call it.
  WICK_DEVICE void scores(const Chunk& chunk) {
    float a[2][2] = {};
    wait_for_copies<1>();
    sync();
    add_keys(a, 0);
    wait_for_copies<0>();
    sync();  // all threads have read the first piece
    copy_values(chunk, 1);
    add_keys(a, 1);
    put_scores(a);
    work.fresh_scores(chunk);
  }
  /// Computes one chunk, whose copies have begun. All threads call it.
  WICK_DEVICE void attend(const Chunk& chunk, const AttentionPartials& partials) {
    scores(chunk);
    sync();
    work.softmax(chunk);
    sync();
    work.sum_rows();
    constexpr u32 kPairs = kHead / 2;
    static_assert(kPairs * kDecodeRows <= kDecodeThreads);
    const u32 r = thread_index() / kPairs, x = thread_index() % kPairs * 2;
    const bool mine = r < work.rows;
    float o[1][2] = {};
    const float* const e[1] = {row_of(work.shared.s, r, kAttentionChunk)};
#pragma unroll 1
    for (u32 half = 0; half < 2; ++half) {
      wait(barrier(half), parity);
      const T* const values = buffer(2 + half) + x - half * kPiece;
      const KeyRange some = values_of(half);
      if (mine) add_pair_chains<1, kHead>(o, values, e, some.begin, some.end);
    }
    if (mine) {
#pragma unroll 1
      for (i32 key = larger(chunk.seen.begin, old.end); key < chunk.seen.end; ++key) {
        const u32 at = chunk.first + static_cast<u32>(key) - static_cast<u32>(work.fresh);
        const auto v = *reinterpret_cast<const Vec<float, 2>*>(work.shared.v + at * kHead + x);
        o[0][0] = fma(e[0][key], v[0], o[0][0]);
        o[0][1] = fma(e[0][key], v[1], o[0][1]);
      }
    }
    parity ^= 1;
    sync();  // the sums of exponentials are there
    if (mine) work.put_output(chunk, r, x, o[0], partials);
  }

  /// Computes all chunks of the thread block. The caller has called begin(), and stored the first
  /// 2 · kDecodeThreads pairs of `fresh_pairs`, for the first chunk.
  WICK_DEVICE void attend_all(Chunk chunk, NewPairs fresh_pairs,
                              const AttentionPartials& partials) {
    u32 first_new = 2 * kDecodeThreads;
#pragma unroll 1
    for (u32 number = work.own_chunk(); number < work.end_chunk(); number += work.plan.splits) {
      if (number != work.own_chunk()) {
        sync();  // the buffers, and the new keys and values, are free
        chunk = work.chunk_at(number, work.page_of(number));
        begin(chunk);
        fresh_pairs = work.new_pairs(chunk, false);
        first_new = 0;
      }
      if (!chunk.there && thread_index() == 0) {
        report(work.c.pages.faults, kIdOutOfRange, work.c.pages.note, work.page_of(number));
      }
      work.load_new(chunk, fresh_pairs, first_new);
      attend(chunk, partials);
    }
  }
};

}  // namespace wick::gpu

#endif

namespace wick::gpu {

/// DecodeRing where a kernel has one.
template <class T, DecodeForm kForm, u32 kHead>
struct RingOf {
  struct Type {
    template <class Work>
    WICK_DEVICE explicit Type(Work&) {}
  };
};
#if WICK_WGMMA
template <class T, u32 kHead>
struct RingOf<T, DecodeForm::ring, kHead> {
  using Type = DecodeRing<T, kHead>;
};
#endif

}  // namespace wick::gpu
