#pragma once

// decode_ring: keys and values of a chunk pass through a ring of three buffers in shared memory, in
// four pieces: two of keys, with half of the elements of all keys, and two of values. One warp
// starts bulk copies, which never hold up the arithmetic.

#include "wick/backend/gpu/kernels/attention/decode.h"
#include "wick/backend/gpu/kernels/device/hopper.h"
#include "wick/backend/gpu/kernels/device/lanes.h"

#if WICK_WGMMA

namespace wick::gpu {

/// The work of one thread block for heads of kHead elements, d = e. A thread of the first half of
/// the block computes the scores of two keys, and then two elements of the outputs of two heads:
/// the more results share a factor, the fewer loads from shared memory there are, which limit the
/// speed.
template <class T, u32 kHead>
struct DecodeRing {
  using Work = Decode<T, DecodeForm::ring, NoSinks>;
  using Chunk = typename Work::Chunk;
  using NewPairs = typename Work::NewPairs;
  static constexpr u32 kBuffers = kRingBuffers, kPer = Work::kPer;
  static constexpr u32 kElements = kHead / 2, kValues = kAttentionChunk / 2;  // of a piece
  static constexpr u32 kPiece = ring_piece_bytes(kHead) / sizeof(T);
  static_assert(kElements * kAttentionChunk == kPiece && kValues * kHead == kPiece);

  Work& work;
  KeyRange old = {};           // keys of the chunk that are copied from the cache
  u32 started = 0, taken = 0;  // numbers of pieces whose copies began, and that have arrived

  WICK_DEVICE explicit DecodeRing(Work& w) : work(w) {}

  WICK_DEVICE Barrier& barrier(u32 piece) const {
    return reinterpret_cast<Barrier*>(work.shared.tile)[piece % kBuffers];
  }
  WICK_DEVICE T* buffer(u32 piece) const {
    return reinterpret_cast<T*>(work.shared.tile + kRingBarrierBytes) + piece % kBuffers * kPiece;
  }
  /// One thread calls it before the thread block's next sync().
  WICK_DEVICE void init_barriers() const {
    for (u32 i = 0; i < kBuffers; ++i) init(barrier(i), 1);
    publish_barriers();
  }

  // ---- Copies ----

  /// Starts to copy some elements of all old keys, by whole 16 bytes. A warp calls it.
  WICK_DEVICE void copy_keys(const Chunk& chunk, u32 half, T* to, Barrier& arrived) const {
    const u32 first = static_cast<u32>(old.begin) / kPer * kPer,
              end = static_cast<u32>(old.end) / kPer * kPer;
    const u32 bytes = old.empty() || end <= first ? 0 : (end - first) * u32{sizeof(T)};
    if (lane() == 0) arrive_for(arrived, kElements * bytes);
    warp_sync();
    if (bytes == 0) return;
    const T* const from = work.keys_at(chunk) + half * kElements * work.c.k_step + first;
    for (u32 i = lane(); i < kElements; i += kWarp) {
      copy_piece(to + i * kAttentionChunk + first, from + i * work.c.k_step, bytes, arrived);
    }
  }
  /// Copies the keys behind the last whole 16 bytes in pairs: another thread block may be writing
  /// the keys that follow them. All threads call it.
  WICK_DEVICE void copy_last_keys(const Chunk& chunk, u32 half, T* to) const {
    constexpr u32 kWord = 4 / sizeof(T), kWords = 4;
    const u32 end = static_cast<u32>(old.end);
    const u32 word = end / kPer * kPer + thread_index() % kWords * kWord;
    if (old.empty() || word >= ((end + 1) & ~1u)) return;
    const T* const from = work.keys_at(chunk) + half * kElements * work.c.k_step + word;
#pragma unroll 1
    for (u32 i = thread_index() / kWords; i < kElements; i += kDecodeThreads / kWords) {
      start_copy(reinterpret_cast<u32*>(to + i * kAttentionChunk + word),
                 reinterpret_cast<const u32*>(from + i * work.c.k_step));
    }
  }
  /// Starts to copy the old values of half a chunk. A warp calls it.
  WICK_DEVICE void copy_values(const Chunk& chunk, u32 half, T* to, Barrier& arrived) const {
    constexpr u32 kBytes = kHead * sizeof(T);
    const KeyRange some = values_of(half);
    const u32 count = some.empty() ? 0 : static_cast<u32>(some.end - some.begin);
    if (lane() == 0) arrive_for(arrived, count * kBytes);
    warp_sync();
    const u32 first = static_cast<u32>(some.begin);
    const T* const from = work.values_at(chunk) + first * work.c.v_key;
    to += (first - half * kValues) * kHead;
    if (work.c.v_key == kHead) {
      if (lane() == 0 && count != 0) copy_piece(to, from, count * kBytes, arrived);
      return;
    }
    for (u32 i = lane(); i < count; i += kWarp) {
      copy_piece(to + i * kHead, from + i * work.c.v_key, kBytes, arrived);
    }
  }
  /// The old keys of half a chunk.
  WICK_DEVICE KeyRange values_of(u32 half) const {
    const i32 first = static_cast<i32>(half * kValues);
    return {larger(old.begin, first), smaller(old.end, first + i32{kValues})};
  }
  /// Starts to copy the next piece, which is the piece-th of the chunk. All threads call it.
  WICK_DEVICE void copy_next(const Chunk& chunk, u32 piece) {
    T* const to = buffer(started);
    Barrier& arrived = barrier(started);
    if (warp_index() == 0) {
      if (piece < 2) {
        copy_keys(chunk, piece, to, arrived);
      } else {
        copy_values(chunk, piece - 2, to, arrived);
      }
    }
    if (piece < 2 && old.end % i32{kPer} != 0) copy_last_keys(chunk, piece, to);
    end_copies();
    ++started;
  }
  /// Starts to copy the first three pieces of a chunk. The buffers must be free.
  WICK_DEVICE void begin(const Chunk& chunk) {
    old = work.old_of(chunk, chunk.seen);
#pragma unroll 1
    for (u32 piece = 0; piece < kBuffers; ++piece) copy_next(chunk, piece);
  }
  /// Waits for the next piece and returns its buffer.
  WICK_DEVICE const T* take() {
    wait(barrier(taken), taken / kBuffers & 1);
    return buffer(taken++);
  }

  // ---- Arithmetic ----

  WICK_DEVICE const float* row_of(const float* rows, u32 r, u32 pitch) const {
    return rows + (r < work.rows ? r : work.rows - 1) * pitch;  // clamped to the last row
  }
  /// Adds some elements of two neighbouring keys to the dot products with kRows queries.
  template <u32 kRows>
  WICK_DEVICE void add_keys(float (&a)[kRows][2], const T* keys, u32 half) const {
    const float* q[kRows];
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) q[r] = row_of(work.shared.q, r, kHead) + half * kElements;
    add_pair_chains<kRows, kAttentionChunk>(a, keys + 2 * thread_index(), q, 0, kElements);
  }
  template <u32 kRows>
  WICK_DEVICE void put_scores(const float (&a)[kRows][2]) const {
    const i32 key = static_cast<i32>(2 * thread_index());
    if (old.empty() || key + 1 < old.begin || key >= old.end) return;
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      float* const to = work.shared.s + r * kAttentionChunk + key;
      if (r < work.rows) *reinterpret_cast<Vec<float, 2>*>(to) = Vec<float, 2>::of(a[r]);
    }
  }
  /// Dot products of kRows queries with all keys of a chunk. All threads call it.
  template <u32 kRows>
  WICK_DEVICE void scores(const Chunk& chunk) {
    const bool mine = thread_index() < kAttentionChunk / 2;
    float a[kRows][2] = {};
    wait_for_copies<kBuffers - 1>();
    sync();
    const T* keys = take();
    if (mine) add_keys<kRows>(a, keys, 0);
    wait_for_copies<kBuffers - 2>();
    sync();  // all threads have read the first piece
    copy_next(chunk, kBuffers);
    keys = take();
    if (mine) add_keys<kRows>(a, keys, 1);
    if (mine) put_scores<kRows>(a);
    work.fresh_scores(chunk);
  }
  /// Computes one chunk, whose copies have begun. All threads call it.
  WICK_DEVICE void attend(const Chunk& chunk, const AttentionPartials& partials) {
    if (work.rows <= 2) {
      scores<2>(chunk);
    } else {
      scores<kDecodeRows>(chunk);
    }
    sync();
    work.softmax(chunk);
    sync();
    work.sum_rows();
    constexpr u32 kPairs = kHead / 2;
    const u32 r = thread_index() / kPairs * 2, x = thread_index() % kPairs * 2;
    const bool mine = r < work.rows;
    float o[2][2] = {};
    const float* e[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) e[i] = row_of(work.shared.s, r + i, kAttentionChunk);
#pragma unroll 1
    for (u32 half = 0; half < 2; ++half) {
      const T* const values = take() + x - half * kPiece;
      const KeyRange some = values_of(half);
      if (mine) add_pair_chains<2, kHead>(o, values, e, some.begin, some.end);
    }
    if (mine) {
#pragma unroll 1
      for (i32 key = larger(chunk.seen.begin, old.end); key < chunk.seen.end; ++key) {
        const u32 at = chunk.first + static_cast<u32>(key) - static_cast<u32>(work.fresh);
        const auto v = *reinterpret_cast<const Vec<float, 2>*>(work.shared.v + at * kHead + x);
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
          o[i][0] = fma(e[i][key], v[0], o[i][0]);
          o[i][1] = fma(e[i][key], v[1], o[i][1]);
        }
      }
    }
    sync();  // the sums of exponentials are there
    if (!mine) return;
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      if (r + i < work.rows) work.put_output(chunk, r + i, x, o[i], partials);
    }
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
