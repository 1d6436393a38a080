#pragma once

// What one thread block of decode.gpu takes of a call: its heads, keys and pages, and the queries,
// keys and values that it computes or converts on their way to shared memory.

#include "wick/backend/gpu/kernels/attention/attention_bias.h"
#include "wick/backend/gpu/kernels/attention/cache_blocks.h"
#include "wick/backend/gpu/kernels/attention/decode_shared.h"
#include "wick/backend/gpu/kernels/device/cluster.h"
#include "wick/backend/gpu/kernels/device/copy.h"

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

/// What one thread block takes of a call, without its arithmetic. T: the element type of the cache,
/// or BlockByte in the direct form: strides of keys and values then count bytes, pages have 256
/// positions, and the call stores nothing. Sinks: HeadSinks, or NoSinks.
template <class T, DecodeForm kForm, class Sinks>
struct DecodeWork : DecodeSinks<Sinks> {
  static constexpr bool kSinks = !kSame<Sinks, NoSinks>;
  static constexpr bool kBlocks = kIsBlocks<T>;
  static constexpr bool kShared = kForm == DecodeForm::cluster,
                        kStaged = kShared || kForm == DecodeForm::staged;
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

  WICK_DEVICE DecodeWork(const AttentionCall& call, const CacheCall& cache_call,
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

    WICK_DEVICE Chunk(const DecodeWork& work, u32 number, u32 entry)
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

  /// The chunk's keys, and its values, in shared memory (staged forms).
  WICK_DEVICE T* keys_staged() const { return reinterpret_cast<T*>(shared.tile); }
  WICK_DEVICE T* values_staged() const { return keys_staged() + c.d * kPitch; }

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
};

}  // namespace wick::gpu
