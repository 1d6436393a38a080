#pragma once

// Attention of a few queries with a cache, in the exact order of docs/design/numerics/attention.md.
// These kernels are for decoding, where latency counts.
//
// Computes: attention; for Backend::cached_attention also the rotation of queries and keys, and the
// keys and values that go into the caches. The result goes to `out`, or is quantised to blocks of
// int8 for the next gemm.
//
// Index map: a thread block takes up to kDecodeRows heads of one query that share a key head, and
// every splits-th chunk of 256 keys. Scores: a thread computes two neighbouring keys of one or two
// heads. Softmax: a warp takes one head. Output: a thread computes two neighbouring elements of one
// or two heads. The kernels differ in how keys and values reach the threads:
// - decode: from the caches into registers.
// - decode_staged: through shared memory. All copies of a chunk are in flight at once. A thread
//   computes one key of up to four heads, and then, of heads of 64 or 128 elements, one element of
//   two. decode_staged_64 and decode_staged_128 are compiled for heads of that size.
// - decode_stream: through a ring buffer of small pieces in shared memory, so that a multiprocessor
//   holds several thread blocks. A thread computes two keys, and then one element, of two heads.
// - decode_ring: like decode_stream, through three larger buffers, values by bulk copies (Hopper).
//   A thread computes two keys of two heads, and then two elements of one head.
// - decode_cluster: through shared memory. The thread blocks of a cluster share a chunk: each
//   computes the scores of some keys and sends them to the others, and then computes some elements
//   of the outputs of some heads. A thread computes one key of two heads, and then one element of
//   one head. decode_cluster_64 and decode_cluster_128 are compiled for heads of that size.
// Chains read keys in pairs. Keys from an even index `fresh` on are loaded apart from the others:
// the keys that this call stores, and the key before them if it is the first of such a pair.
//
// Order of reduction: a score is one chain of fma over d, an output one chain over keys. If there
// are several chunks, their partial results go to memory, and the last thread block to arrive
// combines them in index order.
//
// Bytes moved: k and v of the visible keys are read once for each thread block, in decode_cluster
// once for each cluster.

#include "wick/backend/gpu/kernels/attention/decode_combine.h"
#include "wick/backend/gpu/kernels/attention/decode_ring.h"
#include "wick/backend/gpu/kernels/attention/decode_stream.h"

namespace wick::gpu {

/// The call with a head size that the compiler knows: index arithmetic with it is a large part of
/// the time of a short chunk.
template <u32 kHead>
WICK_DEVICE AttentionCall with_head(const AttentionCall& call) {
  AttentionCall c = call;
  c.d = c.e = kHead;
  return c;
}

/// kHead: the head size of decode_ring, otherwise 0.
template <class T, DecodeForm kForm, u32 kHead = 0, class Sinks>
WICK_DEVICE void decode(const AttentionCall& c, const CacheCall& cache, const DecodePlan& plan,
                        const Sinks& sinks, const AttentionPartials& partials, char* memory) {
  // The next kernel may start at once: the work before pdl_wait() takes as long as a short kernel,
  // and a chain of launches would otherwise wait for it each time.
  pdl_launch_dependents();
  using Work = Decode<T, kForm, Sinks>;
  // Staged forms start copies from a guess; decode_stream and decode_ring only prefetch.
  constexpr bool kStaged = Work::kStaged, kRing = kForm == DecodeForm::ring,
                 kStream = kRing || kForm == DecodeForm::stream;
#if WICK_AMD
  // A thread block without chunks ends before it loads its other arguments.
  if (kForm == DecodeForm::direct && plan.splits > 1 && c.queries == 1) {
    const u32 of_element = plan.tiles * (c.heads / c.group), sets = of_element * c.batch;
    const u32 split = block_index() / sets, batch = block_index() % sets / of_element;
    const u32 keys = keys_of(c, batch);
    const KeyRange seen = keys_seen(c, keys, 0);
    const u32 first = static_cast<u32>(seen.begin) / kAttentionChunk;
    if (split != 0 && (first + split) * kAttentionChunk >= static_cast<u32>(seen.end)) return;
  }
#endif
  Work work(c, cache, plan, sinks, memory);
  typename RingOf<T, kForm, kHead>::Type ring(work);
  typename Work::Chunk chunk(work, 0, 0);
  typename Work::NewPairs fresh = {};
  NewPair first, second;
  // Positions and pages are read before the previous kernel has ended, as a guess, because it
  // rarely changes them. One thread reads them for all, so that all threads have the same guess.
  u32 guess = 0, guessed_page = 0;
  const auto begin = [&](u32 page) WICK_INLINE {
    if (work.own_chunk() >= work.end_chunk()) return;
    chunk = work.chunk_at(work.own_chunk(), page);
    fresh = work.new_pairs(chunk, true);
    first = work.find(fresh, thread_index());
    second = work.find(fresh, thread_index() + work.threads());
  };
  if constexpr (kStaged || kStream) {
    if (thread_index() == 0) {
      if constexpr (kRing) ring.init_barriers();
      const u64 end = end_of_keys(c, work.batch);
      const u32 early = work.early_page();  // loaded before `end` is needed
      const u32 count = end <= c.keys ? static_cast<u32>(end) : 0;
      work.set_keys(count);
      work.shared.last[0] = count;
      work.shared.last[1] = count == 0 || work.own_chunk() >= work.end_chunk() ? 0
                            : c.window == 0                                    ? early
                                                                               : work.own_page();
    }
    sync();
    guess = work.shared.last[0], guessed_page = work.shared.last[1];
    // With a cache, 0 means that the position lies outside it; otherwise that there are no keys.
    if (guess != 0 || !work.cached()) {
      work.set_keys(guess);
      if constexpr (kStaged) {
        begin(guessed_page);
      } else if (work.own_chunk() < work.end_chunk()) {
        chunk = work.chunk_at(work.own_chunk(), guessed_page);
      }
      if (work.own_chunk() < work.end_chunk()) work.prefetch_chunk(chunk);
    }
  }
  // The softmax reads scores of keys that the query doesn't see. They have no effect, but must be
  // initialised. On AMD's devices, thread blocks without keys end first.
  constexpr bool kClearLate = WICK_AMD && kForm == DecodeForm::direct;
  if constexpr (!kClearLate) work.clear_scores();
  if constexpr (kForm == DecodeForm::cluster) {
    if (thread_index() == 0) make_inbox(work.shared.inbox);
    cluster_arrive();
  }
  pdl_wait();
  // The copies that the guess asks for start before these two loads are needed. Where the guess was
  // wrong, they are repeated.
  const u32 keys = keys_of(c, work.batch);
  const u32 page = kRing                                       ? work.early_page()
                   : kStaged && (guess != 0 || !work.cached()) ? work.own_page()
                                                               : 0;
  bool sure = !kStaged;
  for (u32 count = kStaged ? guess : keys;; count = keys, sure = true) {
    if (sure) {
      work.set_keys(count);
      begin(kRing && c.window == 0 ? page : work.own_page());
    }
    if (count != 0 && work.own_chunk() < work.end_chunk()) {
      work.load(chunk, first);  // in flight while copies start
      work.load(chunk, second);
      if constexpr (kStaged) {
        work.stage_keys(chunk);
        work.stage_values(chunk);
      }
      if constexpr (kRing) ring.begin(chunk);
    }
    if (count == keys && (sure || page == guessed_page)) break;
    wait_for_copies<0>();
    sync();
  }
  if (keys == 0) {
    if (work.is_first() && thread_index() == 0) check_keys(c, work.batch);
    if (work.cached()) return;
  }
  if (block_index() == 0) work.store_dead_blocks();
  if (work.seen.empty()) {
    if (work.split != 0) return;
    for (u32 i = thread_index(); i < work.rows * c.e; i += work.threads())
      work.store(i / c.e, i % c.e, 0.0f);
    return;
  }
  if (work.own_chunk() >= work.end_chunk()) return;
  if constexpr (kClearLate) work.clear_scores();
  work.put(chunk, first);
  work.put(chunk, second);
  // The copies of the first chunk are in flight during these checks.
  if (work.cached() && work.is_first()) {
    written_rows(c.pages, c.positions, c.batch, c.queries, c.keys).check(work.batch);
  }
  if constexpr (kRing) {
    ring.attend_all(chunk, fresh, partials);
  } else if constexpr (kStream) {
    DecodeStream<T, Sinks>(work).attend_all(chunk, fresh, partials);
  } else {
    work.attend(chunk, fresh, partials);
  }
  if (work.end_chunk() - work.first_chunk() == 1) return;
  DecodeCombine<Work> all{work};
  if (all.is_last()) all.combine(partials);
}

extern WICK_SHARED Bytes16 dynamic_shared[];

}  // namespace wick::gpu
