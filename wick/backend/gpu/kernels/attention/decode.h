#pragma once

// The arithmetic of one thread block of decode.gpu: copies of keys and values to shared memory,
// scores, softmax and outputs.

#include "wick/backend/gpu/kernels/attention/decode_chain.h"
#include "wick/backend/gpu/kernels/attention/decode_work.h"
#include "wick/backend/gpu/kernels/linear/block_store.h"

namespace wick::gpu {

/// The work of one thread block; see decode_kernel.h.
template <class T, DecodeForm kForm, class Sinks>
struct Decode : DecodeWork<T, kForm, Sinks> {
  using Base = DecodeWork<T, kForm, Sinks>;
  using Base::Base, Base::kBlocks, Base::kPer, Base::kPitch, Base::kShared, Base::kSinks,
      Base::kStaged;
  using Base::batch, Base::c, Base::each_rows, Base::first_row, Base::first_x, Base::fresh,
      Base::head, Base::plan, Base::query, Base::rows, Base::shared, Base::some_rows, Base::token,
      Base::width;
  using Base::chunk_at, Base::end_chunk, Base::first_chunk, Base::keys_at, Base::keys_staged,
      Base::load_new, Base::new_pairs, Base::old_of, Base::own_chunk, Base::page_of, Base::threads,
      Base::values_at, Base::values_staged, Base::warps;
  using typename Base::Chunk, typename Base::NewPairs;
  // Depth of the software pipeline of add_chain. Loads from shared memory have a short latency, so
  // the staged forms need fewer of them in flight.
  static constexpr u32 kBlock = kStaged ? 16 : 128 / (2 * sizeof(T)),
                       kTail = kStaged || sizeof(T) == 4 ? 8 : 16;

  // ---- Copies from the cache to shared memory (staged forms) ----

  /// Starts copies of the keys in chunk.own that are in the cache. Another thread block may be
  /// writing the keys behind them, so the last keys, fewer than 16 bytes, are copied in pairs.
  WICK_DEVICE void stage_keys(const Chunk& chunk) const {
    constexpr u32 kWord = 4 / sizeof(T), kWords = 4;
    const KeyRange old = old_of(chunk, chunk.own);
    const T* from = keys_at(chunk);
    T* to = keys_staged() - chunk.column;
    const u32 first = static_cast<u32>(old.begin) / kPer;
    const u32 end = old.empty() ? first : static_cast<u32>(old.end) / kPer;
    u32 log = 0;
    while ((1u << log) < end - first) ++log;
    const u32 piece = (first + (thread_index() & ((1u << log) - 1))) * kPer;
    if (piece < end * kPer) {
      for (u32 i = thread_index() >> log; i < c.d; i += kDecodeThreads >> log) {
        start_copy(reinterpret_cast<Bytes16*>(to + i * kPitch + piece),
                   reinterpret_cast<const Bytes16*>(from + i * c.k_step + piece));
      }
    }
    // The copy includes the key that completes the last pair; its score is ignored.
    const u32 word = end * kPer + thread_index() % kWords * kWord;
    if (!old.empty() && word < ((static_cast<u32>(old.end) + 1) & ~1u)) {
      for (u32 i = thread_index() / kWords; i < c.d; i += kDecodeThreads / kWords) {
        start_copy(reinterpret_cast<u32*>(to + i * kPitch + word),
                   reinterpret_cast<const u32*>(from + i * c.k_step + word));
      }
    }
    end_copies();
  }
  /// Starts copies of the values of a chunk that are in the cache.
  WICK_DEVICE void stage_values(const Chunk& chunk) const {
    const KeyRange old = old_of(chunk, chunk.seen);
    const T* values = values_at(chunk);
    u32 log = 0;
    while ((1u << log) < width / kPer) ++log;
    const u32 x = (thread_index() & ((1u << log) - 1)) * kPer;
    if (x < width && some_rows != 0) {
      for (i32 j = old.begin + static_cast<i32>(thread_index() >> log); j < old.end;
           j += static_cast<i32>(kDecodeThreads >> log)) {
        const u32 row = static_cast<u32>(j);
        const T* from = values + row * c.v_key + first_x;
        start_copy(reinterpret_cast<Bytes16*>(values_staged() + row * width + x),
                   reinterpret_cast<const Bytes16*>(from + x));
      }
    }
    end_copies();
  }

  // ---- Copies of the forms with pieces ----

  /// Starts to copy some elements of the old keys behind the last whole 16 bytes, in pairs: another
  /// thread block may be writing the keys that follow them. `from` and `to` are those of the
  /// chunk's first key. All threads call it.
  WICK_DEVICE void copy_last_keys(const T* from, T* to, KeyRange old, u32 elements) const {
    constexpr u32 kWord = 4 / sizeof(T), kWords = 4;
    const u32 end = static_cast<u32>(old.end);
    const u32 word = end / kPer * kPer + thread_index() % kWords * kWord;
    if (old.empty() || word >= ((end + 1) & ~1u)) return;
#pragma unroll 1
    for (u32 i = thread_index() / kWords; i < elements; i += kDecodeThreads / kWords) {
      start_copy(reinterpret_cast<u32*>(to + i * kAttentionChunk + word),
                 reinterpret_cast<const u32*>(from + i * c.k_step + word));
    }
  }

  // ---- Chunks ----

  /// decode_staged: dot products of queries with a key of the tile for each thread, kRows rows at a
  /// time. All 256 columns of the tile are read; the scores of unseen keys are ignored.
  template <u32 kRows>
  WICK_DEVICE void scores_of_tile(const Chunk& chunk) const {
    static_assert(kDecodeThreads == kAttentionChunk);
    const u32 key = thread_index(), width_of_q = DecodeShared::padded(c.d);
    const bool there =
        static_cast<i32>(key) >= chunk.seen.begin && static_cast<i32>(key) < chunk.seen.end;
    if (!there) return;
    for (u32 r = 0; r < rows; r += kRows) {
      // If kRows is 2, an odd last row is computed twice.
      float a[kRows];
      add_latency_chains<kRows, kAttentionChunk>(a, keys_staged() + key, shared.q + r * width_of_q,
                                                 r + kRows <= rows ? width_of_q : 0, 0,
                                                 static_cast<i32>(c.d));
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) {
        if (r + i < rows) shared.s[(r + i) * kAttentionChunk + key] = a[i];
      }
    }
  }

  /// Dot products of queries with keys. A thread computes kRows rows and two neighbouring keys at a
  /// time.
  template <u32 kRows>
  WICK_DEVICE void scores(const Chunk& chunk) {
    if constexpr (kForm == DecodeForm::staged) {
      if (rows == kDecodeRows) return scores_of_tile<kDecodeRows>(chunk);
      return scores_of_tile<kRows>(chunk);
    }
    const KeyRange here = kStaged ? chunk.seen : old_of(chunk, chunk.seen);
    const u32 first = static_cast<u32>(here.begin) / 2, width_of_q = DecodeShared::padded(c.d);
    const u32 pairs = here.empty() ? 0 : (static_cast<u32>(here.end) + 1) / 2 - first;
    const u32 wide = (pairs + kWarp - 1) / kWarp * kWarp;
    for (u32 task = thread_index(); task < wide * ((rows + kRows - 1) / kRows); task += threads()) {
      const u32 r = task / wide * kRows, pair = first + task % wide;
      if (pair >= first + pairs) continue;
      float a[kRows][2] = {};
      // If kRows is 2, an odd last row is computed twice.
      const float* q = shared.q + r * width_of_q;
      const u32 to_next = r + kRows <= rows ? width_of_q : 0;
      const i32 d = static_cast<i32>(c.d);
      if constexpr (kBlocks) {
        add_key_blocks<kRows>(a, keys_at(chunk), 2 * pair, static_cast<u32>(c.k_step), c.d / 32, q,
                              to_next);
      } else if constexpr (kStaged) {
        add_chain<kRows, kBlock, kTail>(a, keys_staged(), 2 * pair, kAttentionChunk, q, to_next, 0,
                                        d);
      } else {
        add_chain<kRows, kBlock, kTail>(a, keys_at(chunk), 2 * pair, static_cast<u32>(c.k_step), q,
                                        to_next, 0, d);
      }
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) {
        if (r + i >= rows) continue;
        float* to = shared.s + (r + i) * kAttentionChunk + 2 * pair;
        *reinterpret_cast<Vec<float, 2>*>(to) = Vec<float, 2>::of(a[i]);
      }
    }
  }

  /// Sends a score to all thread blocks of the cluster that compute outputs of row r.
  WICK_DEVICE void send_score(u32 r, u32 key, float score) const {
    const u32 to = r / each_rows * plan.slices;
    for (u32 i = 0; i < plan.slices; ++i)
      send(to + i, shared.s + r * kAttentionChunk + key, shared.inbox, score);
  }

  /// decode_cluster: dot products with the keys in chunk.own, one key and two rows per thread.
  WICK_DEVICE void share_scores(const Chunk& chunk, u32 round) {
    if (thread_index() == 0) {
      expect(shared.inbox, static_cast<u32>(chunk.seen.end - chunk.seen.begin) * some_rows * 4);
    }
    const u32 count = chunk.own.empty() ? 0 : static_cast<u32>(chunk.own.end - chunk.own.begin);
    const u32 log = count <= kWarp ? 5 : 6, key = thread_index() & ((1u << log) - 1);
    const u32 column = static_cast<u32>(chunk.own.begin) - chunk.column + key;
    cluster_wait();  // no thread block reads the scores of the previous chunk any more
    const u32 width_of_q = DecodeShared::padded(c.d);
    if (key < count) {
      for (u32 r = thread_index() >> log << 1; r < rows; r += kDecodeThreads >> log << 1) {
        // An odd last row is computed twice.
        float a[2];
        add_latency_chains<2, kPitch>(a, keys_staged() + column, shared.q + r * width_of_q,
                                      r + 1 < rows ? width_of_q : 0, 0, static_cast<i32>(c.d));
        send_score(r, chunk.own.begin + key, a[0]);
        if (r + 1 < rows) send_score(r + 1, chunk.own.begin + key, a[1]);
      }
    }
    wait_for_inbox(shared.inbox, round);
  }

  /// Dot products with the keys from `fresh` on, one key and row per thread. It counts threads from
  /// the last one, because the last threads have the least work in scores().
  WICK_DEVICE void fresh_scores(const Chunk& chunk) {
    const KeyRange here = chunk.seen;
    const i32 first = larger(here.begin, old_of(chunk, here).end);
    const u32 count = static_cast<u32>(larger(here.end - first, 0));
    for (u32 task = threads() - 1 - thread_index(); task < count * rows; task += threads()) {
      const u32 r = task / count, key = static_cast<u32>(first) + task % count;
      const u32 at = chunk.first + key - static_cast<u32>(fresh);
      const float* of = shared.k + at * DecodeShared::padded(c.d);
      const float* q = shared.q + r * DecodeShared::padded(c.d);
      float a = 0.0f;
#pragma unroll 16
      for (u32 i = 0; i < c.d; ++i) a = fma(q[i], of[i], a);
      shared.s[r * kAttentionChunk + key] = a;
    }
  }

  WICK_DEVICE void clear_scores() const {
    if constexpr (WICK_AMD) {
      Bytes16* const to = reinterpret_cast<Bytes16*>(shared.s);
      for (u32 i = thread_index(); i < plan.rows * (kAttentionChunk / 4); i += threads())
        to[i] = Bytes16{};
    } else {
      for (u32 i = thread_index(); i < plan.rows * kAttentionChunk; i += threads())
        shared.s[i] = 0.0f;
    }
  }

  /// Replaces dot products by exponentials. Each warp takes one row at a time.
  WICK_DEVICE void softmax(const Chunk& chunk) {
    for (u32 r = first_row + warp_index(); r < first_row + some_rows; r += warps()) {
      float* const row = shared.s + r * kAttentionChunk;
      float s[8];
      load_chunk_row(s, row);
      float largest;
      if constexpr (kSinks) {
        largest = biased_exponentials(c, s, chunk.seen,
                                      [](i32, float score) WICK_INLINE { return score; });
      } else {
        largest = chunk_exponentials(c, s, chunk.seen);
      }
      store_chunk_row(row, s);
      if (lane() == 0) shared.soft[2 * r] = largest;
    }
  }

  /// Sums the exponentials of each row. It counts warps from the last one, because the last warps
  /// have the least work in outputs().
  WICK_DEVICE void sum_rows() {
    const u32 after = warps() - 1 - warp_index();
    for (u32 r = first_row + after; r < first_row + some_rows; r += warps()) {
      float e[8];
      load_chunk_row(e, shared.s + r * kAttentionChunk);
      const float sum = chunk_sum(e);
      if (lane() == 0) shared.soft[2 * r + 1] = sum;
    }
  }

  WICK_DEVICE u64 row_number(u32 r) const {
    return wick::gpu::row_number(c, batch, head + r, query);
  }
  WICK_DEVICE void store(u32 r, u32 x, float y) const {
    store_as(c.out, c.dtype,
             batch * c.out_batch + (head + r) * c.out_head + query * c.out_query + x * c.out_step,
             y);
  }

  /// An element of the result of row r, from that of its only chunk.
  WICK_DEVICE float result_of(u32 r, RowSoftmax soft, float o) const {
    const float sink = this->of(head + r);
    if (sink == -detail::kInfF32) return o / soft.sum;
    if (is_hidden(soft)) return 0.0f;
    const Combine combine(sink, soft.largest);
    return combine(0.0f, o) / combine(1.0f, soft.sum);
  }

  /// Stores zeros in the padding blocks behind the values of all rows. Only one thread block of the
  /// grid calls it.
  WICK_DEVICE void store_dead_blocks() const {
    if (plan.blocks.q == nullptr) return;
    const u32 blocks = c.heads * c.e / 32, padded = plan.blocks.padded, dead = padded - blocks;
    for (u32 i = thread_index(); i < c.batch * c.queries * dead * 8; i += threads()) {
      const u32 at = i / 8 / dead * padded + blocks + i / 8 % dead;
      reinterpret_cast<u32*>(plan.blocks.q)[at * 8 + i % 8] = 0;
      if (i % 8 == 0) plan.blocks.scales[at] = {0.0f, 0};
    }
  }

  /// Stores kWide neighbouring elements of a row's result, quantised to blocks or to `out`. All
  /// lanes of a warp must call it, with neighbouring elements of one row.
  template <u32 kWide>
  WICK_DEVICE void put_result(u32 r, u32 x, const float (&y)[kWide]) const {
    if (plan.blocks.q != nullptr) {
      store_in_block(plan.blocks, token + query, x < c.e ? (head + r) * c.e + x : ~0u, y);
    } else if (x < c.e) {
#pragma unroll
      for (u32 i = 0; i < kWide; ++i) store(r, x + i, y[i]);
    }
  }

  /// Stores kWide neighbouring elements of a chunk's output: as the result if the row has only one
  /// chunk, otherwise in the partial results. All lanes of a warp must call it.
  template <u32 kWide>
  WICK_DEVICE void put_output(const Chunk& chunk, u32 r, u32 x, const float (&o)[kWide],
                              const AttentionPartials& partials) const {
    if (end_chunk() - first_chunk() == 1) {
      const float l = shared.soft[2 * r + 1];
      float y[kWide];
#pragma unroll
      for (u32 i = 0; i < kWide; ++i) {
        if constexpr (kSinks) {
          y[i] = result_of(r, {shared.soft[2 * r], l}, o[i]);
        } else {
          y[i] = o[i] / l;
        }
      }
      put_result(r, x, y);
      return;
    }
    if (x >= c.e) return;
    const u64 at = row_number(r) * partials.chunks + chunk.first / kAttentionChunk;
    *reinterpret_cast<Vec<float, kWide>*>(partials.out + at * c.e + x) = Vec<float, kWide>::of(o);
    if (x == first_x) {
      *reinterpret_cast<Vec<float, 2>*>(partials.largest_sum + 2 * at) =
          Vec<float, 2>::of({shared.soft[2 * r], shared.soft[2 * r + 1]});
    }
  }

  /// decode_staged: outputs of a chunk for heads of kHead elements. A thread computes one element
  /// of two rows; an odd last row is computed twice. All threads must call it.
  template <u32 kHead>
  WICK_DEVICE void outputs_of_tile(const Chunk& chunk, const AttentionPartials& partials) {
    static_assert(kHead * kDecodeRows / 2 <= kDecodeThreads);
    const u32 r = thread_index() / kHead * 2, x = thread_index() % kHead;
    float o[2] = {};
    if (r < rows) {
      add_latency_chains<2, kHead>(o, values_staged() + x, shared.s + r * kAttentionChunk,
                                   r + 1 < rows ? kAttentionChunk : 0, chunk.seen.begin,
                                   chunk.seen.end);
    }
    sum_rows();
    sync();
    for (u32 i = 0; i < 2; ++i) {
      const float y[1] = {o[i]};
      if (r + i < rows) put_output(chunk, r + i, x, y, partials);
    }
  }

  /// Outputs of a chunk. A thread computes two neighbouring elements of kRows rows at a time. All
  /// threads must call it.
  template <u32 kRows>
  WICK_DEVICE void outputs(const Chunk& chunk, const AttentionPartials& partials) {
    if constexpr (kForm == DecodeForm::staged) {
      if (c.e == 128) return outputs_of_tile<128>(chunk, partials);
      if (c.e == 64) return outputs_of_tile<64>(chunk, partials);
    }
    const KeyRange here = chunk.seen, old = kStaged ? here : old_of(chunk, here);
    const u32 wide = (c.e / 2 + kWarp - 1) / kWarp * kWarp;
    const u32 tasks = wide * ((rows + kRows - 1) / kRows);
    for (u32 round = 0; round < tasks; round += threads()) {
      const u32 task = round + thread_index(), r = task / wide * kRows, x = 2 * (task % wide);
      float o[kRows][2] = {};
      if (task < tasks && x < c.e) {
        const float* e = shared.s + r * kAttentionChunk;
        const u32 to_next = r + kRows <= rows ? kAttentionChunk : 0;
        if constexpr (kBlocks) {
          add_value_blocks<kRows>(o, values_at(chunk), x, static_cast<u32>(c.v_key), e, to_next,
                                  old.begin, old.end);
        } else if constexpr (kStaged) {
          add_chain<kRows, kBlock, kTail>(o, values_staged(), x, c.e, e, to_next, old.begin,
                                          old.end);
        } else {
          add_chain<kRows, kBlock, kTail>(o, values_at(chunk), x, static_cast<u32>(c.v_key), e,
                                          to_next, old.begin, old.end);
          for (i32 key = larger(here.begin, old.end); key < here.end; ++key) {
            const u32 at = chunk.first + static_cast<u32>(key - fresh);
            const auto vv = *reinterpret_cast<const Vec<float, 2>*>(
                shared.v + at * DecodeShared::padded(c.e) + x);
#pragma unroll
            for (u32 i = 0; i < kRows; ++i) {
              o[i][0] = fma(e[i * to_next + key], vv[0], o[i][0]);
              o[i][1] = fma(e[i * to_next + key], vv[1], o[i][1]);
            }
          }
        }
      }
      if (round == 0) {
        sum_rows();
        sync();
      }
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) {
        if (task < tasks && r + i < rows) put_output(chunk, r + i, x, o[i], partials);
      }
    }
  }

  /// decode_cluster: outputs of the thread block's rows and elements, one element of one row per
  /// thread. All threads must call it.
  WICK_DEVICE void own_outputs(const Chunk& chunk, const AttentionPartials& partials) {
    const u32 r = first_row + warp_index();
    const bool mine = warp_index() < some_rows;
    float o[1] = {};
    if (mine) {
      add_latency_chains<1, kClusterWidth>(o, values_staged() + lane(),
                                           shared.s + r * kAttentionChunk, 0, chunk.seen.begin,
                                           chunk.seen.end);
    }
    sum_rows();
    sync();
    if (mine) put_output(chunk, r, first_x + lane(), o, partials);
  }

  /// Computes all chunks of the thread block. The caller has stored the first 2 · threads()
  /// pairs of `fresh_pairs` of the first chunk. Staged forms: the caller has also started the
  /// copies of that chunk. The keys of the next chunk are copied during the softmax and the outputs
  /// of this one, and its values are copied during its own scores.
  WICK_DEVICE void attend(Chunk chunk, NewPairs fresh_pairs, const AttentionPartials& partials) {
    const u32 end = end_chunk();
    u32 first_new = 2 * threads(), round = 0;  // the caller has stored the pairs before
    for (u32 number = own_chunk(); number < end; number += plan.splits) {
      const bool more = number + plan.splits < end;
      const u32 next_page = more ? page_of(number + plan.splits) : 0;  // loaded early
      if (!chunk.there && thread_index() == 0) {
        report(c.pages.faults, kIdOutOfRange, c.pages.note, page_of(number));
      }
      load_new(chunk, fresh_pairs, first_new);
      if constexpr (kStaged) wait_for_copies<1>();
      sync();
      if constexpr (kShared) {
        share_scores(chunk, round++);
      } else {
        if (plan.rows == 1) {
          scores<1>(chunk);
        } else {
          scores<2>(chunk);
        }
        if constexpr (!kStaged) fresh_scores(chunk);
        sync();
      }
      Chunk next = chunk;
      if (more) next = chunk_at(number + plan.splits, next_page);
      if constexpr (kStaged) {
        if (more) {
          stage_keys(next);
        } else {
          end_copies();
        }
      }
      softmax(chunk);
      if constexpr (kStaged) wait_for_copies<1>();
      sync();
      if constexpr (kShared) {
        own_outputs(chunk, partials);
      } else if (plan.rows == 1) {
        outputs<1>(chunk, partials);
      } else {
        outputs<2>(chunk, partials);
      }
      if (!more) break;
      if constexpr (kShared) cluster_arrive();
      sync();
      if constexpr (kStaged) stage_values(next);
      chunk = next;
      fresh_pairs = new_pairs(chunk, false);
      first_new = 0;
    }
  }
};

}  // namespace wick::gpu
