#pragma once

// The work of one thread block of decode.gpu: which keys it takes, how they reach the multiply-add
// chains, scores, softmax and outputs.

#include "wick/backend/gpu/kernels/attention/attention_bias.h"
#include "wick/backend/gpu/kernels/attention/cache_blocks.h"
#include "wick/backend/gpu/kernels/attention/decode_chain.h"
#include "wick/backend/gpu/kernels/attention/decode_shared.h"
#include "wick/backend/gpu/kernels/device/cluster.h"
#include "wick/backend/gpu/kernels/device/copy.h"
#include "wick/backend/gpu/kernels/linear/block_store.h"

namespace wick::gpu {

/// The heads have no sinks.
struct NoSinks {};

/// The sinks of a thread block's heads.
template <class Sinks>
struct DecodeSinks {
  Sinks of_heads;
  WICK_DEVICE explicit DecodeSinks(const Sinks& sinks) : of_heads(sinks) {}
  WICK_DEVICE float of(u32 head) const { return of_heads.of[head * of_heads.step]; }
};
template <>
struct DecodeSinks<NoSinks> {
  WICK_DEVICE explicit DecodeSinks(const NoSinks&) {}
};

/// The work of one thread block; see decode_kernel.h. T: the element type of the cache, or
/// BlockByte in the direct form: strides of keys and values then count bytes, pages have 256
/// positions, and the call stores nothing. Sinks: HeadSinks, or NoSinks.
template <class T, DecodeForm kForm, class Sinks>
struct Decode : DecodeSinks<Sinks> {
  static constexpr bool kSinks = !kSame<Sinks, NoSinks>;
  static constexpr bool kBlocks = kIsBlocks<T>;
  static constexpr bool kShared = kForm == DecodeForm::cluster,
                        kStaged = kShared || kForm == DecodeForm::staged;
  // Depth of the software pipeline of add_chain. Loads from shared memory have a short latency, so
  // the staged forms need fewer of them in flight.
  static constexpr u32 kBlock = kStaged ? 16 : 128 / (2 * sizeof(T)),
                       kTail = kStaged || sizeof(T) == 4 ? 8 : 16;
  static constexpr u32 kPer = 16 / sizeof(T);  // elements of a copy of 16 bytes

  const AttentionCall& c;
  const CacheCall& cache;
  const DecodePlan& plan;
  DecodeShared shared;
  u32 set;  // number of the heads' outputs, to which the thread blocks of all splits add
  u32 rank, split, tile, key_head, query, batch;
  u32 token;                 // row of the batch element's first query
  u32 head, rows;            // first head of the thread block, number of heads
  u32 first_row, some_rows;  // rows (heads) whose outputs the thread block computes
  u32 each_rows;             // rows whose outputs one thread block of the cluster computes
  u32 first_x, width;        // elements of these rows that it computes
  const T *k, *v;            // keys and values of the key head in the first page
  // Elements from one row of the tile of keys to the next.
  static constexpr u32 kPitch = kShared ? kClusterPitch : kAttentionChunk;
  u32 keys, start;  // number of keys; index of the first key that this call stores
  i32 fresh;        // `start` rounded down to even: keys from here on aren't copied from the cache
  KeyRange seen;

  WICK_DEVICE Decode(const AttentionCall& call, const CacheCall& cache_call,
                     const DecodePlan& the_plan, const Sinks& of_heads, char* memory)
      : DecodeSinks<Sinks>(of_heads),
        c(call),
        cache(cache_call),
        plan(the_plan),
        shared(memory, the_plan.rows, the_plan.fresh, call.d, call.e) {
    u32 at = block_index();
    if constexpr (kShared) {
      rank = at % plan.cluster;
      at /= plan.cluster;
      split = at % plan.splits;
      set = at / plan.splits;
    } else {
      // The last chunk, which may have few keys, begins last.
      const u32 sets = c.batch * c.queries * (c.heads / c.group) * plan.tiles;
      rank = 0;
      split = at / sets;
      set = at - split * sets;
    }
    at = set;
    tile = at % plan.tiles;
    at /= plan.tiles;
    key_head = at % (c.heads / c.group);
    at /= c.heads / c.group;
    query = at % c.queries;
    batch = at / c.queries;
    head = key_head * c.group + tile * plan.rows;
    rows = c.group - tile * plan.rows < plan.rows ? c.group - tile * plan.rows : plan.rows;
    first_row = 0, some_rows = each_rows = rows, first_x = 0, width = c.e;
    if constexpr (kShared) {
      const u32 sets = plan.cluster / plan.slices;
      each_rows = (plan.rows + sets - 1) / sets;
      first_row = rank / plan.slices * each_rows;
      some_rows = rows <= first_row              ? 0
                  : rows - first_row < each_rows ? rows - first_row
                                                 : each_rows;
      width = kClusterWidth;
      first_x = rank % plan.slices * width;
    }
    k = static_cast<const T*>(c.k) + batch * c.k_batch + key_head * c.k_head;
    v = static_cast<const T*>(c.v) + batch * c.v_batch + key_head * c.v_head;
    token = batch * c.queries;
  }

  /// Threads and warps of the thread block.
#if WICK_AMD
  WICK_DEVICE u32 threads() const {
    return kForm == DecodeForm::direct ? decode_threads_on_amd(plan.rows) : kDecodeThreads;
  }
  WICK_DEVICE u32 warps() const { return threads() / kWarp; }
#else
  WICK_DEVICE static constexpr u32 threads() { return kDecodeThreads; }
  WICK_DEVICE static constexpr u32 warps() { return kDecodeWarps; }
#endif
  /// Whether the thread block is the first of a batch element.
  WICK_DEVICE bool is_first() const {
    return rank == 0 && split == 0 && tile == 0 && key_head == 0 && query == 0;
  }
  WICK_DEVICE bool cached() const { return cache.qkv != nullptr; }

  // ---- Which keys ----

  WICK_DEVICE void set_keys(u32 count) {
    keys = count;
    start = cached() ? keys - c.queries : keys;
    // The second key of a pair of blocks may be anything: its score is ignored.
    fresh = static_cast<i32>((kBlocks ? start + 1 : start) & ~1u);
    seen = keys_seen(c, keys, query);
  }
  WICK_DEVICE u32 first_chunk() const { return static_cast<u32>(seen.begin) / kAttentionChunk; }
  WICK_DEVICE u32 end_chunk() const {
    return (static_cast<u32>(seen.end) + kAttentionChunk - 1) / kAttentionChunk;
  }
  WICK_DEVICE u32 own_chunk() const { return first_chunk() + split; }
  /// A chunk of keys. `seen` and `own` count from the chunk's first key.
  struct Chunk {
    u32 first;      // its first key
    KeyRange seen;  // the keys that the query sees
    KeyRange own;   // the keys in `seen` whose scores the thread block computes
    u32 column;     // the key in the first column of the tile
    u32 page;       // the page that holds the chunk
    u32 in_page;    // index of the chunk's first key in the page
    bool there;     // false: the table has no valid page; the kernel reads the first page instead

    WICK_DEVICE Chunk(const Decode& work, u32 number, u32 entry)
        : first(number * kAttentionChunk), page(entry), in_page(first), there(true) {
      const KeyPages& pages = work.c.pages;
      if (pages.tables == nullptr) return;
      in_page = pages.chunks == 1 ? 0 : number % pages.chunks * kAttentionChunk;
      there = page < pages.count;
      if (!there) page = 0;
    }
  };
  /// The first key, and the first value, of a chunk.
  WICK_DEVICE const T* keys_at(const Chunk& chunk) const {
    return k + chunk.page * c.pages.k_page + chunk.in_page;
  }
  WICK_DEVICE const T* values_at(const Chunk& chunk) const {
    return v + chunk.page * c.pages.v_page + chunk.in_page * c.v_key;
  }
  /// The table entry of a chunk; 0 if there are no tables.
  WICK_DEVICE u32 page_of(u32 number) const {
    const KeyPages& pages = c.pages;
    if (pages.tables == nullptr) return 0;
    const u32 entry = pages.chunks == 1 ? number : number / pages.chunks;
    return load_now(pages.tables + batch * pages.table_row + entry * pages.table_step);
  }
  /// page_of the thread block's first chunk; 0 if it has none.
  WICK_DEVICE u32 own_page() const { return own_chunk() < end_chunk() ? page_of(own_chunk()) : 0; }
  /// own_page() before the number of keys is known. Without a window the first chunk doesn't depend
  /// on that number. With a window: 0.
  WICK_DEVICE u32 early_page() const {
    return c.window == 0 && split * kAttentionChunk < c.keys ? page_of(split) : 0;
  }
  WICK_DEVICE Chunk chunk_at(u32 number, u32 page) const {
    Chunk chunk(*this, number, page);
    const i32 from = static_cast<i32>(chunk.first);
    chunk.seen = {larger(seen.begin - from, 0), smaller(seen.end - from, kAttentionChunk)};
    chunk.own = chunk.seen;
    chunk.column = 0;
    if (!kShared || chunk.seen.empty()) return chunk;
    const u32 begin = static_cast<u32>(chunk.seen.begin), end = static_cast<u32>(chunk.seen.end);
    const u32 pieces = (end + kPer - 1) / kPer - begin / kPer;
    const u32 each = (pieces + plan.cluster - 1) / plan.cluster * kPer;
    chunk.column = begin / kPer * kPer + rank * each;
    const i32 column = static_cast<i32>(chunk.column);
    chunk.own = {larger(chunk.seen.begin, column),
                 smaller(chunk.seen.end, column + static_cast<i32>(each))};
    return chunk;
  }
  /// The keys of a range of a chunk that are copied from the cache: those before `fresh`.
  WICK_DEVICE KeyRange old_of(const Chunk& chunk, KeyRange some) const {
    const i32 from = static_cast<i32>(chunk.first);
    return {some.begin, smaller(some.end, larger(fresh - from, some.begin))};
  }

  /// Prefetches the keys and values of a chunk into the L2 cache. The previous kernel may still
  /// change them and the position; a prefetch of stale data does no harm.
  WICK_DEVICE void prefetch_chunk(const Chunk& chunk) const {
    const KeyRange here = chunk.seen;
    if (here.empty()) return;
    constexpr u32 kLine = 128 / sizeof(T);
    const u32 count = static_cast<u32>(here.end), lines = (count + kLine - 1) / kLine;
    const u32 first = rank * kDecodeThreads + thread_index();
    const u32 step = (kShared ? plan.cluster : 1) * kDecodeThreads;
    for (u32 i = first; i < c.d * lines; i += step) {
      prefetch(keys_at(chunk) + (i / lines) * c.k_step + (i % lines) * kLine);
    }
    const u32 lines_of_row = (c.e + kLine - 1) / kLine;
    for (u32 i = first; i < count * lines_of_row; i += step) {
      prefetch(values_at(chunk) + (i / lines_of_row) * c.v_key + (i % lines_of_row) * kLine);
    }
  }

  // ---- Queries, and keys and values that this call stores ----

  /// Queries, and the keys and values of a chunk from `fresh` on, in pairs of elements.
  struct NewPairs {
    u32 queries, keys, values;  // number of pairs
    u32 first_key, first_value;
  };
  WICK_DEVICE NewPairs new_pairs(const Chunk& chunk, bool queries) const {
    const u32 from = chunk.first, pairs = (c.d + 1) / 2;
    const auto count = [&](KeyRange some, u32& first) {
      first = from + (static_cast<u32>(some.begin) & ~1u);  // rounded down to even
      first = larger(fresh, static_cast<i32>(first));
      const u32 end = from + static_cast<u32>(some.end);
      return some.empty() || end <= first ? 0 : end - first;
    };
    NewPairs n;
    n.queries = queries ? rows * pairs : 0;
    n.keys = count(chunk.own, n.first_key) * pairs;
    n.values = count(chunk.seen, n.first_value) * (width / 2);
    return n;
  }
  /// An element of a projected row; `of`: which of the batch element's queries.
  WICK_DEVICE const float* projection(u32 of, i64 column) const {
    return cache.qkv + (token + of) * cache.qkv_row + column * cache.qkv_step;
  }
  /// Sets the addresses of a pair that may be rotated, and of its cosine and sine.
  WICK_DEVICE void turn(NewPair& p, const float* row, u32 position) const {
    p.from = row + p.x * cache.qkv_step;
    p.turn = p.x / 2 < cache.half;
    p.cos = cache.cos + position * cache.cos_row + p.x / 2 * cache.cos_step;
    p.sin = cache.sin + position * cache.sin_row + p.x / 2 * cache.sin_step;
  }
  /// Finds the i-th pair: its kind, row or key, first element, and address.
  WICK_DEVICE NewPair find(const NewPairs& n, u32 i) const {
    NewPair p;
    const u32 pairs = (c.d + 1) / 2;
    if (i < n.queries) {
      p.kind = NewPair::kQuery;
      p.at = i / pairs, p.x = 2 * (i % pairs), p.both = p.x + 1 < c.d;
      if (cached()) turn(p, projection(query, (head + p.at) * i64{c.d}), start + query);
      return p;
    }
    i -= n.queries;
    if (i < n.keys) {
      p.at = n.first_key + i / pairs, p.x = 2 * (i % pairs), p.both = p.x + 1 < c.d;
      p.kind = p.at < start ? NewPair::kStoredKey : NewPair::kKey;
      if (p.kind == NewPair::kStoredKey) return p;
      turn(p, projection(p.at - start, (c.heads + key_head) * i64{c.d}), p.at);
      return p;
    }
    i -= n.keys;
    if (i >= n.values) return p;
    p.at = n.first_value + i / (width / 2), p.x = first_x + 2 * (i % (width / 2));
    p.kind = p.at < start ? NewPair::kStoredValue : NewPair::kValue;
    if (p.kind == NewPair::kStoredValue) return p;
    const i64 before = i64{c.heads + c.heads / c.group} * c.d + key_head * i64{c.e};
    p.from = projection(p.at - start, before + p.x);
    return p;
  }
  WICK_DEVICE void load(const Chunk& chunk, NewPair& p) const {
    if (p.from != nullptr) {
      p.x0 = p.from[0];
      if (p.both) p.x1 = p.from[cache.qkv_step];
      if (p.turn) p.c = *p.cos, p.s = *p.sin;
    } else if (p.kind == NewPair::kQuery) {
      const i64 from = batch * c.q_batch + (head + p.at) * c.q_head + query * c.q_query;
      p.x0 = load_as(c.q, c.dtype, from + p.x * c.q_step);
      if (p.both) p.x1 = load_as(c.q, c.dtype, from + (p.x + 1) * c.q_step);
    } else if constexpr (!kBlocks) {
      if (p.kind == NewPair::kStoredKey) {
        p.x0 = widen(keys_at(chunk)[p.at - chunk.first + p.x * c.k_step]);
        if (p.both) p.x1 = widen(keys_at(chunk)[p.at - chunk.first + (p.x + 1) * c.k_step]);
      } else if (p.kind == NewPair::kStoredValue) {
        p.x0 = widen(values_at(chunk)[(p.at - chunk.first) * c.v_key + p.x]);
        p.x1 = widen(values_at(chunk)[(p.at - chunk.first) * c.v_key + p.x + 1]);
      }
    }
  }

  /// Also clears the padding behind the row, because chains read groups of four elements.
  WICK_DEVICE void put_query(const NewPair& p) const {
    using Pair = Vec<float, 2>;
    float* to = shared.q + p.at * DecodeShared::padded(c.d) + p.x;
    *reinterpret_cast<Pair*>(to) = Pair::of({p.x0, p.both ? p.x1 : 0.0f});
    if (p.x + 2 >= c.d && p.x % 4 == 0) *reinterpret_cast<Pair*>(to + 2) = Pair{};
  }
  WICK_DEVICE void put_key(const Chunk& chunk, const NewPair& p) const {
    const T y0 = narrow<T>(p.x0), y1 = narrow<T>(p.x1);
    if constexpr (kStaged) {
      T* to = keys_staged() + p.x * kPitch + (p.at - chunk.first - chunk.column);
      to[0] = y0;
      if (p.both) to[kPitch] = y1;
      if (p.at % 2 == 0 && static_cast<i32>(p.at) + 1 == seen.end) {
        // Chains read keys in pairs. The key behind the last one is read, but its score is ignored.
        to[1] = T{};
        if (p.both) to[kPitch + 1] = T{};
      }
    } else {
      float* to = shared.k + (p.at - static_cast<u32>(fresh)) * DecodeShared::padded(c.d) + p.x;
      to[0] = widen(y0);
      if (p.both) to[1] = widen(y1);
    }
    // Of the thread blocks that have this key, the first one of the key's own query stores it.
    if (p.kind != NewPair::kKey || tile != 0 || p.at != start + query || !chunk.there) return;
    T* to = const_cast<T*>(keys_at(chunk)) + (p.at - chunk.first);
    to[p.x * c.k_step] = y0;
    if (p.both) to[(p.x + 1) * c.k_step] = y1;
  }
  WICK_DEVICE void put_value(const Chunk& chunk, const NewPair& p) const {
    const Vec<T, 2> y = Vec<T, 2>::of({p.x0, p.x1});
    if constexpr (kStaged) {
      T* to = values_staged() + p.at % kAttentionChunk * width + (p.x - first_x);
      *reinterpret_cast<Vec<T, 2>*>(to) = y;
    } else {
      float* to = shared.v + (p.at - static_cast<u32>(fresh)) * DecodeShared::padded(c.e) + p.x;
      to[0] = y[0], to[1] = y[1];
    }
    if (p.kind != NewPair::kValue || tile != 0 || first_row != 0 || p.at != start + query) return;
    if (!chunk.there) return;
    T* to = const_cast<T*>(values_at(chunk)) + (p.at - chunk.first) * c.v_key;
    *reinterpret_cast<Vec<T, 2>*>(to + p.x) = y;
  }
  WICK_DEVICE void put(const Chunk& chunk, NewPair& p) const {
    if (p.turn) {
      const float y0 = p.x0 * p.c - p.x1 * p.s;
      p.x1 = p.x0 * p.s + p.x1 * p.c;
      p.x0 = y0;
    }
    if (p.kind == NewPair::kQuery) put_query(p);
    if constexpr (!kBlocks) {
      if (p.kind == NewPair::kKey || p.kind == NewPair::kStoredKey) put_key(chunk, p);
      if (p.kind == NewPair::kValue || p.kind == NewPair::kStoredValue) put_value(chunk, p);
    }
  }
  /// Loads and stores all pairs from index `first` on.
  WICK_DEVICE void load_new(const Chunk& chunk, const NewPairs& n, u32 first) const {
    const u32 all = n.queries + n.keys + n.values;
#pragma unroll 1
    for (u32 i = first + thread_index(); i < all; i += threads()) {
      NewPair p = find(n, i);
      load(chunk, p);
      put(chunk, p);
    }
  }

  // ---- Copies from the cache to shared memory (staged forms) ----

  WICK_DEVICE T* keys_staged() const { return reinterpret_cast<T*>(shared.tile); }
  WICK_DEVICE T* values_staged() const { return keys_staged() + c.d * kPitch; }

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
