#pragma once

// The parts of decode.gpu: chains of fma over pairs of elements, and one group's work.

#include "wick/backend/gpu/kernels/attention.h"
#include "wick/backend/gpu/kernels/device_copy.h"

namespace wick::gpu {

inline constexpr u32 kDecodeItems = 256, kDecodeTeams = kDecodeItems / kTeam;

/// a[r][0], a[r][1] += factors[r · row + i] · the two elements at base[i · step + offset], i from
/// first to end, one after another, for kRows rows. Loads of one block are under way while the one
/// before is added; what is left in the end comes in blocks of kTail. All of it lies within 4 GiB.
template <u32 kRows, u32 kBlock, u32 kTail, class T>
WICK_DEVICE void add_chain(float (&a)[kRows][2], const T* base, u32 offset, u32 step,
                           const float* factors, u32 row, i32 first, i32 end) {
  u32 at = (static_cast<u32>(first) * step + offset) * sizeof(T);
  const u32 step_bytes = step * sizeof(T);
  const auto load = [&]() WICK_INLINE {
    const auto x = *reinterpret_cast<const Pack<T, 2>*>(reinterpret_cast<const char*>(base) + at);
    at += step_bytes;
    return x;
  };
  const auto add = [&](const Pack<T, 2>& x, u32 r, float factor) WICK_INLINE {
    a[r][0] = fma(factor, x[0], a[r][0]);
    a[r][1] = fma(factor, x[1], a[r][1]);
  };
  i32 i = first;
#pragma unroll 1
  for (; i < end && i % 4 != 0; ++i) {
    const Pack<T, 2> x = load();
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) add(x, r, factors[r * row + i]);
  }
  constexpr i32 kWhole = kBlock;
  Pack<T, 2> now[kBlock] = {}, next[kBlock] = {};
#pragma unroll 1
  for (i32 ahead = i; ahead + kWhole <= end || i < ahead; ahead += kWhole) {
    if (ahead + kWhole <= end) {
#pragma unroll
      for (u32 n = 0; n < kBlock; ++n) next[n] = load();
    }
    if (i < ahead) {
#pragma unroll
      for (u32 n = 0; n < kBlock; n += 4) {
#pragma unroll
        for (u32 r = 0; r < kRows; ++r) {
          const auto f = *reinterpret_cast<const Pack<float, 4>*>(factors + r * row + i + n);
#pragma unroll
          for (u32 j = 0; j < 4; ++j) add(now[n + j], r, f[j]);
        }
      }
      i += kWhole;
    }
    if (ahead + kWhole > end) break;
#pragma unroll
    for (u32 n = 0; n < kBlock; ++n) now[n] = next[n];
  }
#pragma unroll 1
  for (; i < end; i += static_cast<i32>(kTail)) {
    Pack<T, 2> x[kTail];
#pragma unroll
    for (u32 n = 0; n < kTail; ++n) {
      if (i + static_cast<i32>(n) < end) x[n] = load();
    }
#pragma unroll
    for (u32 n = 0; n < kTail; ++n) {
      if (i + static_cast<i32>(n) < end) {
#pragma unroll
        for (u32 r = 0; r < kRows; ++r) add(x[n], r, factors[r * row + i + n]);
      }
    }
  }
}

/// A group's shared memory. Rows are padded to 16 bytes.
struct DecodeShared {
  float *q, *s;  // [rows][d]; [rows][256], dot products and then exponentials
  float *k, *v;  // not staged: what isn't in the cache, [fresh][d], [fresh][e]
  float* soft;   // [rows][2]: the chunk's largest score and its sum
  u32* last;     // whether the group is the last to arrive
  char* tile;    // staged: a chunk's keys [d][256] and values [256][e]

  WICK_DEVICE DecodeShared(char* memory, u32 rows, u32 fresh, u32 d, u32 e) {
    q = reinterpret_cast<float*>(memory);
    s = q + rows * padded(d);
    k = s + rows * kAttentionChunk;
    v = k + fresh * padded(d);
    soft = v + fresh * padded(e);
    last = reinterpret_cast<u32*>(soft + 2 * rows);
    tile = reinterpret_cast<char*>(soft + (2 * rows + 4) / 4 * 4);
  }
  static WICK_DEVICE u32 padded(u32 n) { return (n + 3) / 4 * 4; }
};

/// One group's work; see decode.gpu. T: the cache's type.
template <class T, bool kStaged>
struct Decode {
  // Enough loads under way; staged, they are short.
  static constexpr u32 kBlock = kStaged ? 16 : 128 / (2 * sizeof(T)),
                       kTail = kStaged || sizeof(T) == 4 ? 8 : 16;

  const AttentionCall& c;
  const CacheCall& cache;
  const DecodePlan& plan;
  DecodeShared shared;
  u32 split, tile, key_head, query, batch;
  u32 head, rows;  // the first of the group's heads, and how many
  const T *k, *v;
  u32 keys, start;  // of all; of those before this call's
  i32 fresh;        // the first key that isn't taken from the cache as it lies there, even
  KeyRange seen;

  WICK_DEVICE Decode(const AttentionCall& call, const CacheCall& cache_call,
                     const DecodePlan& the_plan, char* memory)
      : c(call),
        cache(cache_call),
        plan(the_plan),
        shared(memory, the_plan.rows, the_plan.fresh, call.d, call.e) {
    u32 at = group();
    split = at % plan.splits;
    at /= plan.splits;
    tile = at % plan.tiles;
    at /= plan.tiles;
    key_head = at % (c.heads / c.group);
    at /= c.heads / c.group;
    query = at % c.queries;
    batch = at / c.queries;
    head = key_head * c.group + tile * plan.rows;
    rows = c.group - tile * plan.rows < plan.rows ? c.group - tile * plan.rows : plan.rows;
    k = static_cast<const T*>(c.k) + batch * c.k_batch + key_head * c.k_head;
    v = static_cast<const T*>(c.v) + batch * c.v_batch + key_head * c.v_head;
  }

  WICK_DEVICE bool cached() const { return cache.qkv != nullptr; }

  // ---- Which keys ----

  WICK_DEVICE void set_keys(u32 count) {
    keys = count;
    start = cached() ? keys - c.queries : keys;
    fresh = static_cast<i32>(start & ~1u);
    seen = keys_seen(c, keys, query);
  }
  WICK_DEVICE u32 first_chunk() const { return static_cast<u32>(seen.begin) / kAttentionChunk; }
  WICK_DEVICE u32 end_chunk() const {
    return (static_cast<u32>(seen.end) + kAttentionChunk - 1) / kAttentionChunk;
  }
  WICK_DEVICE u32 own_chunk() const { return first_chunk() + split; }
  /// What the query sees of a chunk, counted from its first key; and what of that is in the cache.
  WICK_DEVICE KeyRange seen_of(u32 chunk) const {
    const i32 from = static_cast<i32>(chunk * kAttentionChunk);
    return {larger(seen.begin - from, 0), smaller(seen.end - from, kAttentionChunk)};
  }
  WICK_DEVICE KeyRange old_of(u32 chunk) const {
    const KeyRange here = seen_of(chunk);
    const i32 from = static_cast<i32>(chunk * kAttentionChunk);
    return {here.begin, smaller(here.end, larger(fresh - from, here.begin))};
  }

  /// Brings near what the group will read. It may change until the work in front has ended, and so
  /// may the position; here both are near enough.
  WICK_DEVICE void prefetch_chunk() const {
    const KeyRange here = seen_of(own_chunk());
    if (here.empty()) return;
    const u32 from = own_chunk() * kAttentionChunk;
    constexpr u32 kLine = 128 / sizeof(T);
    const u32 count = static_cast<u32>(here.end), lines = (count + kLine - 1) / kLine;
    for (u32 i = item(); i < c.d * lines; i += kDecodeItems) {
      prefetch(k + (i / lines) * c.k_step + from + (i % lines) * kLine);
    }
    const u32 lines_of_row = (c.e + kLine - 1) / kLine;
    for (u32 i = item(); i < count * lines_of_row; i += kDecodeItems) {
      prefetch(v + (from + i / lines_of_row) * c.v_key + (i % lines_of_row) * kLine);
    }
  }

  // ---- What comes from the projections ----

  WICK_DEVICE const float* projections(u32 token) const {
    return cache.qkv + token * cache.qkv_row;
  }

  /// Two elements of a row's query to shared memory, rotated if it comes from the projections.
  WICK_DEVICE void load_query(u32 r, u32 pair) {
    float* to = shared.q + r * DecodeShared::padded(c.d) + 2 * pair;
    const bool both = 2 * pair + 1 < c.d;
    if (cached()) {
      const float* row = projections(query) + (head + r) * u64{c.d} * cache.qkv_step;
      const Turned y(cache, row, pair, start + query);
      to[0] = y.x0;
      if (both) to[1] = y.x1;
    } else {
      const i64 from = batch * c.q_batch + (head + r) * c.q_head + query * c.q_query;
      to[0] = load_as(c.q, c.dtype, from + 2 * pair * c.q_step);
      if (both) to[1] = load_as(c.q, c.dtype, from + (2 * pair + 1) * c.q_step);
    }
  }

  /// An element of a fresh key or value to where the chains find it.
  WICK_DEVICE void put_key(u32 key, u32 x, T y) const {
    if constexpr (kStaged) {
      keys_staged()[x * kAttentionChunk + key % kAttentionChunk] = y;
    } else {
      shared.k[(key - static_cast<u32>(fresh)) * DecodeShared::padded(c.d) + x] = widen(y);
    }
  }
  WICK_DEVICE void put_value(u32 key, u32 x, T y) const {
    if constexpr (kStaged) {
      values_staged()[key % kAttentionChunk * c.e + x] = y;
    } else {
      shared.v[(key - static_cast<u32>(fresh)) * DecodeShared::padded(c.e) + x] = widen(y);
    }
  }
  /// Whether the group is the one that stores a key in the cache: the first of its own query's.
  WICK_DEVICE bool stores(u32 key) const { return tile == 0 && key == start + query; }

  WICK_DEVICE void load_fresh_key(u32 key, u32 pair) const {
    const bool both = 2 * pair + 1 < c.d;
    if (kStaged && key % 2 == 0 && static_cast<i32>(key) + 1 == seen.end) {
      // Its pair's other key is read, though it counts for nothing.
      put_key(key + 1, 2 * pair, T{});
      if (both) put_key(key + 1, 2 * pair + 1, T{});
    }
    if (key < start) {
      put_key(key, 2 * pair, k[key + 2 * pair * c.k_step]);
      if (both) put_key(key, 2 * pair + 1, k[key + (2 * pair + 1) * c.k_step]);
      return;
    }
    const float* row = projections(key - start) + (c.heads + key_head) * u64{c.d} * cache.qkv_step;
    const Turned y(cache, row, pair, key);
    const T y0 = narrow<T>(y.x0), y1 = narrow<T>(y.x1);
    put_key(key, 2 * pair, y0);
    if (both) put_key(key, 2 * pair + 1, y1);
    if (!stores(key)) return;
    T* to = static_cast<T*>(cache.keys) + key_head * cache.key_head + key;
    to[2 * pair * cache.key_step] = y0;
    if (both) to[(2 * pair + 1) * cache.key_step] = y1;
  }
  WICK_DEVICE void load_fresh_value(u32 key, u32 x) const {
    if (key < start) {
      put_value(key, x, v[key * c.v_key + x]);
      return;
    }
    const u64 before = u64{c.heads + c.heads / c.group} * c.d + key_head * u64{c.e};
    const T y = narrow<T>(projections(key - start)[(before + x) * cache.qkv_step]);
    put_value(key, x, y);
    if (!stores(key)) return;
    T* to = static_cast<T*>(cache.values) + key_head * cache.value_head;
    to[key * cache.value_position + x] = y;
  }

  /// The chunk's fresh keys and values, and with `queries` those too, all of them at once.
  WICK_DEVICE void load_new(u32 chunk, bool queries) {
    const u32 from = chunk * kAttentionChunk, pairs = (c.d + 1) / 2;
    const u32 end = smaller(seen.end, static_cast<i32>(from + kAttentionChunk));
    const u32 first = larger(fresh, static_cast<i32>(from)), count = end > first ? end - first : 0;
    const u32 of_queries = queries ? rows * pairs : 0, of_keys = count * pairs;
    for (u32 i = item(); i < of_queries + of_keys + count * c.e; i += kDecodeItems) {
      if (i < of_queries) {
        load_query(i / pairs, i % pairs);
      } else if (i - of_queries < of_keys) {
        load_fresh_key(first + (i - of_queries) / pairs, (i - of_queries) % pairs);
      } else {
        const u32 x = i - of_queries - of_keys;
        load_fresh_value(first + x / c.e, x % c.e);
      }
    }
  }

  // ---- What comes out of the cache, staged ----

  WICK_DEVICE T* keys_staged() const { return reinterpret_cast<T*>(shared.tile); }
  WICK_DEVICE T* values_staged() const { return keys_staged() + c.d * kAttentionChunk; }

  /// Starts copies of a chunk's keys that are in the cache. Keys behind them may be being written:
  /// the last ones, fewer than 16 bytes, go by pairs.
  WICK_DEVICE void stage_keys(u32 chunk) const {
    constexpr u32 kPer = 16 / sizeof(T), kWord = 4 / sizeof(T), kWords = 4;
    const KeyRange old = old_of(chunk);
    const T* from = k + chunk * kAttentionChunk;
    const u32 first = static_cast<u32>(old.begin) / kPer;
    const u32 end = old.empty() ? first : static_cast<u32>(old.end) / kPer;
    u32 log = 0;
    while ((1u << log) < end - first) ++log;
    const u32 piece = (first + (item() & ((1u << log) - 1))) * kPer;
    if (piece < end * kPer) {
      for (u32 i = item() >> log; i < c.d; i += kDecodeItems >> log) {
        start_copy(reinterpret_cast<Bytes16*>(keys_staged() + i * kAttentionChunk + piece),
                   reinterpret_cast<const Bytes16*>(from + i * c.k_step + piece));
      }
    }
    const u32 word = end * kPer + item() % kWords * kWord;
    if (!old.empty() && word < static_cast<u32>(old.end)) {
      for (u32 i = item() / kWords; i < c.d; i += kDecodeItems / kWords) {
        start_copy(reinterpret_cast<u32*>(keys_staged() + i * kAttentionChunk + word),
                   reinterpret_cast<const u32*>(from + i * c.k_step + word));
      }
    }
    end_copies();
  }
  WICK_DEVICE void stage_values(u32 chunk) const {
    constexpr u32 kPer = 16 / sizeof(T);
    const KeyRange old = old_of(chunk);
    u32 log = 0;
    while ((1u << log) < c.e / kPer) ++log;
    const u32 x = (item() & ((1u << log) - 1)) * kPer;
    if (x < c.e) {
      for (i32 j = old.begin + static_cast<i32>(item() >> log); j < old.end;
           j += static_cast<i32>(kDecodeItems >> log)) {
        const u32 row = static_cast<u32>(j);
        start_copy(
            reinterpret_cast<Bytes16*>(values_staged() + row * c.e + x),
            reinterpret_cast<const Bytes16*>(v + (chunk * kAttentionChunk + row) * c.v_key + x));
      }
    }
    end_copies();
  }

  // ---- Chunks ----

  /// Dot products of kRows rows at a time with two neighbouring keys an item.
  template <u32 kRows>
  WICK_DEVICE void scores(u32 chunk) {
    const KeyRange here = kStaged ? seen_of(chunk) : old_of(chunk);
    const u32 first = static_cast<u32>(here.begin) / 2, width_of_q = DecodeShared::padded(c.d);
    const u32 pairs = here.empty() ? 0 : (static_cast<u32>(here.end) + 1) / 2 - first;
    const u32 width = (pairs + kTeam - 1) / kTeam * kTeam;
    for (u32 task = item(); task < width * ((rows + kRows - 1) / kRows); task += kDecodeItems) {
      const u32 r = task / width * kRows, pair = first + task % width;
      if (pair >= first + pairs) continue;
      float a[kRows][2] = {};
      // An odd last row goes twice.
      const float* q = shared.q + r * width_of_q;
      const u32 to_next = r + kRows <= rows ? width_of_q : 0;
      const i32 d = static_cast<i32>(c.d);
      if constexpr (kStaged) {
        add_chain<kRows, kBlock, kTail>(a, keys_staged(), 2 * pair, kAttentionChunk, q, to_next, 0,
                                        d);
      } else {
        add_chain<kRows, kBlock, kTail>(a, k + chunk * kAttentionChunk, 2 * pair,
                                        static_cast<u32>(c.k_step), q, to_next, 0, d);
      }
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) {
        if (r + i >= rows) continue;
        float* to = shared.s + (r + i) * kAttentionChunk + 2 * pair;
        *reinterpret_cast<Pack<float, 2>*>(to) = Pack<float, 2>::of(a[i]);
      }
    }
  }

  /// The same for fresh keys, one an item, by items that have nothing else to do if there are any.
  WICK_DEVICE void fresh_scores(u32 chunk) {
    const KeyRange here = seen_of(chunk);
    const i32 first = larger(here.begin, old_of(chunk).end);
    const u32 count = static_cast<u32>(larger(here.end - first, 0));
    for (u32 task = kDecodeItems - 1 - item(); task < count * rows; task += kDecodeItems) {
      const u32 r = task / count, key = static_cast<u32>(first) + task % count;
      const u32 at = chunk * kAttentionChunk + key - static_cast<u32>(fresh);
      const float* of = shared.k + at * DecodeShared::padded(c.d);
      const float* q = shared.q + r * DecodeShared::padded(c.d);
      float a = 0.0f;
#pragma unroll 16
      for (u32 i = 0; i < c.d; ++i) a = fma(q[i], of[i], a);
      shared.s[r * kAttentionChunk + key] = a;
    }
  }

  WICK_DEVICE void load_row(u32 r, float (&s)[8]) const {
    const auto* row = reinterpret_cast<const Pack<float, 4>*>(shared.s + r * kAttentionChunk);
    const Pack<float, 4> low = row[lane()], high = row[kTeam + lane()];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) s[i] = low[i], s[4 + i] = high[i];
  }

  /// Exponentials in place of dot products, a team a row.
  WICK_DEVICE void softmax(u32 chunk) {
    for (u32 r = team(); r < rows; r += kDecodeTeams) {
      float s[8];
      load_row(r, s);
      const float largest = chunk_exponentials(c, s, seen_of(chunk));
      auto* row = reinterpret_cast<Pack<float, 4>*>(shared.s + r * kAttentionChunk);
      row[lane()] = Pack<float, 4>::of({s[0], s[1], s[2], s[3]});
      row[kTeam + lane()] = Pack<float, 4>::of({s[4], s[5], s[6], s[7]});
      if (lane() == 0) shared.soft[2 * r] = largest;
    }
  }

  /// Their sums, by teams that have little else to do if there are any.
  WICK_DEVICE void sum_rows() {
    for (u32 r = kDecodeTeams - 1 - team(); r < rows; r += kDecodeTeams) {
      float e[8];
      load_row(r, e);
      const float sum = chunk_sum(e);
      if (lane() == 0) shared.soft[2 * r + 1] = sum;
    }
  }

  WICK_DEVICE u64 row_number(u32 r) const {
    return (u64{batch} * c.heads + head + r) * c.queries + query;
  }
  WICK_DEVICE void store(u32 r, u32 x, float y) const {
    store_as(c.out, c.dtype,
             batch * c.out_batch + (head + r) * c.out_head + query * c.out_query + x * c.out_step,
             y);
  }

  /// Two elements of a chunk's output: to their place if there is no other chunk, else to the
  /// parts.
  WICK_DEVICE void put_output(u32 chunk, u32 r, u32 x, const float (&o)[2],
                              const AttentionParts& parts) const {
    if (end_chunk() - first_chunk() == 1) {
      const float l = shared.soft[2 * r + 1];
      store(r, x, o[0] / l);
      store(r, x + 1, o[1] / l);
      return;
    }
    const u64 at = row_number(r) * parts.chunks + chunk;
    *reinterpret_cast<Pack<float, 2>*>(parts.out + at * c.e + x) = Pack<float, 2>::of(o);
    if (x == 0) {
      *reinterpret_cast<Pack<float, 2>*>(parts.largest_sum + 2 * at) =
          Pack<float, 2>::of({shared.soft[2 * r], shared.soft[2 * r + 1]});
    }
  }

  /// The chunk's output, two neighbouring elements of kRows rows an item. All items come here.
  template <u32 kRows>
  WICK_DEVICE void outputs(u32 chunk, const AttentionParts& parts) {
    const KeyRange here = seen_of(chunk), old = kStaged ? here : old_of(chunk);
    const u32 width = (c.e / 2 + kTeam - 1) / kTeam * kTeam;
    const u32 tasks = width * ((rows + kRows - 1) / kRows);
    for (u32 round = 0; round < tasks; round += kDecodeItems) {
      const u32 task = round + item(), r = task / width * kRows, x = 2 * (task % width);
      const bool mine = task < tasks && x < c.e;
      float o[kRows][2] = {};
      if (mine) {
        const float* e = shared.s + r * kAttentionChunk;
        const u32 to_next = r + kRows <= rows ? kAttentionChunk : 0;
        if constexpr (kStaged) {
          add_chain<kRows, kBlock, kTail>(o, values_staged(), x, c.e, e, to_next, old.begin,
                                          old.end);
        } else {
          add_chain<kRows, kBlock, kTail>(o, v + chunk * kAttentionChunk * c.v_key, x,
                                          static_cast<u32>(c.v_key), e, to_next, old.begin,
                                          old.end);
          for (i32 key = larger(here.begin, old.end); key < here.end; ++key) {
            const u32 at = chunk * kAttentionChunk + static_cast<u32>(key - fresh);
            const auto vv = *reinterpret_cast<const Pack<float, 2>*>(
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
        if (mine && r + i < rows) put_output(chunk, r + i, x, o[i], parts);
      }
    }
  }

  /// All of the group's chunks. Staged: the first one's copies are under way, and a chunk's keys
  /// arrive while the one before is multiplied with its values, and its values afterwards.
  WICK_DEVICE void attend(const AttentionParts& parts) {
    const u32 end = end_chunk();
    for (u32 chunk = own_chunk(); chunk < end; chunk += plan.splits) {
      const u32 next = chunk + plan.splits;
      load_new(chunk, chunk == own_chunk());
      if constexpr (kStaged) wait_for_copies<1>();
      sync();
      if (plan.rows == 1) {
        scores<1>(chunk);
      } else {
        scores<2>(chunk);
      }
      if constexpr (!kStaged) fresh_scores(chunk);
      sync();
      if constexpr (kStaged) {
        if (next < end) {
          stage_keys(next);
        } else {
          end_copies();
        }
      }
      softmax(chunk);
      if constexpr (kStaged) wait_for_copies<1>();
      sync();
      if (plan.rows == 1) {
        outputs<1>(chunk, parts);
      } else {
        outputs<2>(chunk, parts);
      }
      if (next < end) {
        sync();
        if constexpr (kStaged) stage_values(next);
      }
    }
  }

  // ---- The join ----

  /// True in the last group to arrive of those with the same rows.
  WICK_DEVICE bool is_last() {
    const u32 chunks = end_chunk() - first_chunk();
    const u32 arriving = chunks < plan.splits ? chunks : plan.splits;
    device_fence();
    sync();
    u32* arrived = plan.arrived + group() / plan.splits;
    if (item() == 0) *shared.last = count_up(arrived) == arriving - 1 ? 1 : 0;
    sync();
    if (*shared.last == 0) return false;
    device_fence();
    if (item() == 0) *arrived = 0;
    return true;
  }

  static constexpr u32 kJoined = 64;  // chunks whose factors are in shared memory at once

  /// Per row, in place of exponentials: [64] of the chunks' sums, of the factors of what came
  /// before, of the factors of the chunk, and of largest scores.
  struct Factors {
    float *sum, *by_earlier, *by_chunk, *largest;
    WICK_DEVICE Factors(float* s, u32 r) {
      sum = s + r * kAttentionChunk;
      by_earlier = sum + kJoined, by_chunk = by_earlier + kJoined, largest = by_chunk + kJoined;
    }
  };

  /// Of `count` chunks from `first` on; the largest score before them is in `soft` unless there are
  /// none. All items come here.
  WICK_DEVICE void find_factors(const AttentionParts& parts, u32 first, u32 count) {
    sync();
    for (u32 i = item(); i < rows * kJoined; i += kDecodeItems) {
      const u32 r = i / kJoined, at = i % kJoined;
      if (at >= count) continue;
      const Factors row(shared.s, r);
      const auto ml = *reinterpret_cast<const Pack<float, 2>*>(
          parts.largest_sum + 2 * (row_number(r) * parts.chunks + first + at));
      row.largest[at] = ml[0], row.sum[at] = ml[1];
    }
    sync();
    for (u32 i = item(); i < rows * kJoined; i += kDecodeItems) {
      const u32 r = i / kJoined, at = i % kJoined;
      if (at >= count) continue;
      const Factors row(shared.s, r);
      float before = first == first_chunk() ? row.largest[0] : shared.soft[2 * r];
      for (u32 j = 0; j < at; ++j) before = row.largest[j] > before ? row.largest[j] : before;
      const Join join(before, row.largest[at]);
      row.by_earlier[at] = join.by_earlier, row.by_chunk[at] = join.by_chunk;
      if (at + 1 == count) shared.soft[2 * r + 1] = join.largest;
    }
    sync();
    if (item() < rows) shared.soft[2 * item()] = shared.soft[2 * item() + 1];
  }

  WICK_DEVICE void join(const AttentionParts& parts) {
    for (u32 round = 0; round < rows * c.e; round += kDecodeItems) {
      const bool mine = round + item() < rows * c.e;
      const u32 r = mine ? (round + item()) / c.e : 0, x = mine ? (round + item()) % c.e : 0;
      const Factors row(shared.s, r);
      const float* from = parts.out + row_number(r) * parts.chunks * c.e + x;
      float o = 0.0f, l = 0.0f;
      for (u32 first = first_chunk(); first < end_chunk(); first += kJoined) {
        const u32 rest = end_chunk() - first, count = rest < kJoined ? rest : kJoined;
        find_factors(parts, first, count);
#pragma unroll 8
        for (u32 i = 0; i < count; ++i) {
          const float chunk = from[u64{first + i} * c.e];
          const bool start_here = first + i == first_chunk();
          o = start_here ? chunk : fma(o, row.by_earlier[i], chunk * row.by_chunk[i]);
          l = start_here ? row.sum[i] : fma(l, row.by_earlier[i], row.sum[i] * row.by_chunk[i]);
        }
      }
      if (mine) store(r, x, o / l);
    }
  }
};

}  // namespace wick::gpu
