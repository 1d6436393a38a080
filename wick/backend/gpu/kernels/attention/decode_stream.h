#pragma once

// decode_stream: keys and values of a chunk pass through a ring buffer of pieces in shared memory.
// A piece holds some elements of all keys, or some values. Copies of the next pieces are in flight
// while one is multiplied.

#include "wick/backend/gpu/kernels/attention/decode.h"

namespace wick::gpu {

/// The work of one thread block. It takes at most kDecodeRows heads; d is a multiple of kElements,
/// and e a power of two from 32 to 128.
template <class T, class Sinks>
struct DecodeStream {
  using Work = Decode<T, DecodeForm::stream, Sinks>;
  using Chunk = typename Work::Chunk;
  using NewPairs = typename Work::NewPairs;
  static constexpr u32 kPieces = kStreamPieces, kPieceBytes = kStreamPieceBytes;
  static constexpr u32 kPer = Work::kPer, kCopies = kPieceBytes / 16 / kDecodeThreads;
  /// Elements of each key in a piece; copies of 16 bytes for one element of all keys.
  static constexpr u32 kElements = kPieceBytes / (kAttentionChunk * sizeof(T));
  static constexpr u32 kWide = kAttentionChunk / kPer;
  /// Half of the threads compute heads 0 and 1, the others heads 2 and 3.
  static constexpr u32 kHalf = kDecodeThreads / 2, kRows = 2;

  Work& work;
  KeyRange old = {};  // keys of the chunk that are copied from the cache
  u32 key_pieces = 0, pieces = 0;
  i32 first_value = 0;  // first key of the first piece of values
  u32 values_each = 0;  // values in a piece
  // Sources and destinations of the thread's next copies. value_key: the key of its next value.
  const T *keys = nullptr, *values = nullptr;
  u32 keys_to = 0, values_to = 0;
  i32 value_key = 0;
  bool copies_keys = false;

  WICK_DEVICE explicit DecodeStream(Work& w) : work(w) {}

  WICK_DEVICE T* piece_at(u32 piece) const {
    return reinterpret_cast<T*>(work.shared.tile + piece % kPieces * kPieceBytes);
  }
  WICK_DEVICE u32 element() const { return thread_index() % kHalf; }
  WICK_DEVICE const float* row_of(const float* rows, u32 r, u32 pitch) const {
    const u32 row = thread_index() / kHalf * kRows + r;  // clamped to the last row
    return rows + (row < work.rows ? row : work.rows - 1) * pitch;
  }

  WICK_DEVICE void begin(const Chunk& chunk) {
    old = work.old_of(chunk, chunk.seen);
    const u32 wide = work.c.e / kPer, row = thread_index() / wide;
    values_each = kPieceBytes / 16 / wide;
    first_value = old.begin & ~3;
    key_pieces = work.c.d / kElements;
    const u32 count = static_cast<u32>(old.end - first_value);
    pieces = old.empty() ? key_pieces : key_pieces + (count + values_each - 1) / values_each;
    const u32 at = thread_index() % kWide, x = thread_index() % wide * kPer;
    copies_keys = !old.empty() && at >= static_cast<u32>(old.begin) / kPer &&
                  at < static_cast<u32>(old.end) / kPer;
    keys = work.keys_at(chunk) + thread_index() / kWide * work.c.k_step + at * kPer;
    keys_to = thread_index() / kWide * kAttentionChunk + at * kPer;
    value_key = first_value + static_cast<i32>(row);
    values = work.values_at(chunk) + value_key * work.c.v_key + x;
    values_to = row * work.c.e + x;
  }
  /// Starts copies of a piece. Pieces are fetched in order. Behind the last piece nothing is
  /// copied.
  WICK_DEVICE void fetch(const Chunk& chunk, u32 piece) {
    T* const to = piece_at(piece);
    if (piece < key_pieces) {
      constexpr u32 kStep = kDecodeThreads / kWide;
#pragma unroll
      for (u32 i = 0; i < kCopies; ++i, keys += kStep * work.c.k_step) {
        if (!copies_keys) continue;
        start_copy(reinterpret_cast<Bytes16*>(to + keys_to + i * kStep * kAttentionChunk),
                   reinterpret_cast<const Bytes16*>(keys));
      }
      if (old.end % i32{kPer} != 0) {
        work.copy_last_keys(work.keys_at(chunk) + piece * kElements * work.c.k_step, to, old,
                            kElements);
      }
    } else if (piece < pieces) {
      const u32 step = values_each / kCopies;
#pragma unroll
      for (u32 i = 0; i < kCopies; ++i) {
        if (value_key >= old.begin && value_key < old.end) {
          start_copy(reinterpret_cast<Bytes16*>(to + values_to + i * step * work.c.e),
                     reinterpret_cast<const Bytes16*>(values));
        }
        values += step * work.c.v_key, value_key += static_cast<i32>(step);
      }
    }
    end_copies();
  }
  /// Adds the elements of a piece to the dot products of kRows rows with two neighbouring keys.
  WICK_DEVICE void add_keys(float (&a)[kRows][2], u32 piece) const {
    const T* from = piece_at(piece) + 2 * element();
#pragma unroll
    for (u32 i = 0; i < kElements; i += 4) {
      Vec<T, 2> k[4];
#pragma unroll
      for (u32 n = 0; n < 4; ++n) {
        k[n] = *reinterpret_cast<const Vec<T, 2>*>(from + (i + n) * kAttentionChunk);
      }
#pragma unroll
      for (u32 r = 0; r < kRows; ++r) {
        const float* q = row_of(work.shared.q, r, DecodeShared::padded(work.c.d));
        const auto f = *reinterpret_cast<const Vec<float, 4>*>(q + piece * kElements + i);
#pragma unroll
        for (u32 n = 0; n < 4; ++n) {
          a[r][0] = fma(f[n], k[n][0], a[r][0]);
          a[r][1] = fma(f[n], k[n][1], a[r][1]);
        }
      }
    }
  }
  /// Adds the values of a piece to one output element of kRows rows. `first`: the chunk's key of
  /// the first value of the piece.
  WICK_DEVICE void add_values(float (&o)[kRows], u32 piece, i32 first) const {
    const T* from = piece_at(piece) + element();
    const i32 end = smaller(first + static_cast<i32>(values_each), old.end);
    i32 key = first;
#pragma unroll 4
    for (; key >= old.begin && key + 4 <= end; key += 4, from += 4 * work.c.e) {
      float v[4];
#pragma unroll
      for (u32 n = 0; n < 4; ++n) v[n] = widen(from[n * work.c.e]);
#pragma unroll
      for (u32 r = 0; r < kRows; ++r) {
        const float* e = row_of(work.shared.s, r, kAttentionChunk);
        const auto f = *reinterpret_cast<const Vec<float, 4>*>(e + key);
#pragma unroll
        for (u32 n = 0; n < 4; ++n) o[r] = fma(f[n], v[n], o[r]);
      }
    }
    // One key at a time: at the start of the chunk, where some keys may be hidden, and at the end.
#pragma unroll 1
    for (; key < end; ++key, from += work.c.e) {
      if (key >= old.begin) add_value(o, key, widen(*from));
    }
  }
  WICK_DEVICE void add_value(float (&o)[kRows], i32 key, float value) const {
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      o[r] = fma(row_of(work.shared.s, r, kAttentionChunk)[key], value, o[r]);
    }
  }

  WICK_DEVICE void put_scores(const float (&a)[kRows][2]) const {
    const u32 key = 2 * element();
    if (old.empty() || static_cast<i32>(key) + 1 < old.begin || static_cast<i32>(key) >= old.end) {
      return;
    }
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const u32 row = thread_index() / kHalf * kRows + r;
      float* to = work.shared.s + row * kAttentionChunk + key;
      if (row < work.rows) *reinterpret_cast<Vec<float, 2>*>(to) = Vec<float, 2>::of(a[r]);
    }
  }

  /// Computes one chunk. All threads must call it.
  WICK_DEVICE void attend(const Chunk& chunk, const AttentionPartials& partials) {
    begin(chunk);
    const bool has_element = element() < work.c.e;
    float a[kRows][2] = {}, o[kRows] = {};
    i32 first = first_value;
#pragma unroll 1
    for (u32 step = 0; step < pieces + kPieces - 1; ++step) {
      if (step >= kPieces - 1) {
        wait_for_copies<kPieces - 2>();
        sync();
      }
      fetch(chunk, step);
      if (step < kPieces - 1) continue;
      const u32 piece = step - (kPieces - 1);
      if (piece < key_pieces) {
        add_keys(a, piece);
        if (piece + 1 < key_pieces) continue;
        put_scores(a);
        work.fresh_scores(chunk);
        sync();
        work.softmax(chunk);
        sync();
        work.sum_rows();
      } else {
        if (has_element) add_values(o, piece, first);
        first += static_cast<i32>(values_each);
      }
    }
    if (has_element) {
#pragma unroll 1
      for (i32 key = larger(chunk.seen.begin, old.end); key < chunk.seen.end; ++key) {
        const u32 at = chunk.first + static_cast<u32>(key - work.fresh);
        add_value(o, key, work.shared.v[at * DecodeShared::padded(work.c.e) + element()]);
      }
    }
    sync();
#pragma unroll 1
    for (u32 r = 0; r < kRows; ++r) {
      const u32 row = thread_index() / kHalf * kRows + r;
      const float y[1] = {r == 0 ? o[0] : o[1]};
      if (row < work.rows) work.put_output(chunk, row, element(), y, partials);
    }
  }

  /// Computes all chunks of the thread block. The caller has stored the first 2 · kDecodeThreads
  /// pairs of `fresh_pairs` of the first chunk.
  WICK_DEVICE void attend_all(Chunk chunk, NewPairs fresh_pairs,
                              const AttentionPartials& partials) {
    u32 first_new = 2 * kDecodeThreads;  // the caller has stored the pairs before
#pragma unroll 1
    for (u32 number = work.own_chunk(); number < work.end_chunk(); number += work.plan.splits) {
      if (number != work.own_chunk()) {
        wait_for_copies<0>();
        sync();
        chunk = work.chunk_at(number, work.page_of(number));
        fresh_pairs = work.new_pairs(chunk, false);
        first_new = 0;
      }
      if (!chunk.there && thread_index() == 0) {
        report(work.c.pages.faults, kIdOutOfRange, work.c.pages.note, work.page_of(number));
      }
      work.load_new(chunk, fresh_pairs, first_new);
      sync();
      attend(chunk, partials);
    }
  }
};

}  // namespace wick::gpu
