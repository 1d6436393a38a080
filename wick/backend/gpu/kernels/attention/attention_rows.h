#pragma once

// Attention of any layout in the exact order of docs/design/numerics/attention.md, for
// attention.gpu and attention_bias.gpu.
//
// Computes: tiled gemms: scores[row][key] over d, and out[row][x] over keys. Each element is one
// chain of fma in index order.
//
// Index map: a thread block takes 8 · kRows rows of one key head (query by query, the query heads
// of the GQA group side by side) and 128 elements of v. A warp takes kRows of the rows. A lane
// takes 8 keys of a chunk (four neighbours in each half) and 4 neighbouring elements of v. `splits`
// thread blocks share the chunks of the same rows; then each chunk's partial result goes to memory,
// and a second kernel combines them.
//
// Bytes moved: k and v are read once for every 8 · kRows rows, through tiles of f32 in shared
// memory.

#include "wick/backend/gpu/kernels/attention/attention.h"
#include "wick/backend/gpu/kernels/attention/attention_bias.h"

namespace wick::gpu {

constexpr u32 kThreads = kRowsThreads, kWarps = kThreads / kWarp;
constexpr u32 kTileSteps = 16;  // steps of d in a tile of 256 keys
constexpr u32 kTileKeys = 32;   // keys of a tile of kTileWidth elements of v
constexpr u32 kTileWidth = kRowsWidth;
constexpr u32 kQuarter = 64;                 // keys whose exponentials are in shared memory at once
constexpr u32 kQuerySteps = 2 * kTileSteps;  // steps of d of the queries in shared memory
/// Whether two neighbouring 16-bit elements are loaded as one word if possible, which touches half
/// as many cache lines.
template <class T>
constexpr bool kLoadsPairs = WICK_AMD && sizeof(T) == 2;

/// The rows and chunks of a thread block.
struct RowsPlace {
  u32 split, first_row, slab, key_head, batch;
  WICK_DEVICE RowsPlace(const AttentionCall& c, u32 blocks, u32 slabs, u32 splits, u32 rows) {
    u32 at = block_index();
    split = at % splits;
    at /= splits;
    first_row = (blocks - 1 - at % blocks) * rows;  // the last rows see most keys
    at /= blocks;
    slab = at % slabs;
    at /= slabs;
    key_head = at % (c.heads / c.group);
    batch = at / (c.heads / c.group);
  }
};

template <class T, u32 kRows>
struct RowsShared {
  static constexpr u32 kQ = kQuerySteps * kRows + 8, kP = kQuarter * kRows + 8;
  float tile[kTileSteps * kAttentionChunk];
  float q[kWarps * kQ];  // [warp][step][row]
  float p[kWarps * kP];  // [warp][place_of_key][row]
};

/// Index of a key's exponentials in a quarter. A lane stores four neighbouring keys one after
/// another, several rows at once; in this order neighbouring lanes store to neighbouring addresses.
template <u32 kRows>
WICK_DEVICE u32 place_of_key(u32 key) {
  return kRows == 1 ? key : key % 4 * (kQuarter / 4) + key / 4;
}

/// Loads kRows neighbouring floats from shared memory.
template <u32 kRows>
WICK_DEVICE void load_rows(float (&x)[kRows], const float* from) {
  if constexpr (kRows % 4 == 0) {
#pragma unroll
    for (u32 r = 0; r < kRows; r += 4) {
      const Vec<float, 4> four = *reinterpret_cast<const Vec<float, 4>*>(from + r);
#pragma unroll
      for (u32 i = 0; i < 4; ++i) x[r + i] = four[i];
    }
  } else {
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) x[r] = from[r];
  }
}

/// Stores kRows neighbouring floats. Four of them are aligned to 16 bytes.
template <u32 kRows>
WICK_DEVICE void store_rows(float* to, const float (&x)[kRows]) {
  if constexpr (kRows == 4) {
    const auto four = Vec<float, 4>::of(x);
    store_whole(reinterpret_cast<Bytes16*>(to), __builtin_bit_cast(Bytes16, four));
  } else {
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) to[r] = x[r];
  }
}

/// The work of one thread block. Rows past a warp's last one repeat that row, and aren't stored.
/// Bias: NoBias, or ScoreBias if terms are added to the scores.
template <class T, u32 kRows, class Bias>
struct RowsAttention {
  static constexpr bool kBiased = !kSame<Bias, NoBias>;
  const AttentionCall& c;
  const Bias& bias;
  RowsShared<T, kRows>& shared;
  const T *k, *v;
  u32 keys, batch;
  const T *chunk_k = nullptr, *chunk_v = nullptr;
  i32 chunk_first = 0;
  bool scattered;        // a chunk may lie in several pages
  KeyRange any;          // the keys that any of the thread block's rows sees
  KeyRange seen[kRows];  // the keys that each of the warp's rows sees
  // The warp's first row and the number of rows, among the key head's: row = query · group + head.
  u32 first_row, rows;
  // Whether two neighbouring keys, or elements of v, are aligned to one word.
  bool pairs_of_keys, pairs_of_values;
  float o[kRows][4], m[kRows], l[kRows];

  WICK_DEVICE RowsAttention(const AttentionCall& call, const Bias& added, const RowsPlace& at,
                            u32 key_count, RowsShared<T, kRows>& memory)
      : c(call), bias(added), shared(memory), keys(key_count), batch(at.batch) {
    k = static_cast<const T*>(c.k) + at.batch * c.k_batch + at.key_head * c.k_head;
    v = static_cast<const T*>(c.v) + at.batch * c.v_batch + at.key_head * c.v_head;
    const auto pairs = [](const T* from, i64 step, i64 far) {
      return step == 1 && far % 2 == 0 && reinterpret_cast<u64>(from) % (2 * sizeof(T)) == 0;
    };
    const bool pages = c.pages.tables != nullptr;
    scattered = pages && c.pages.keys % kAttentionChunk != 0;
    pairs_of_keys = pairs(k, c.k_key, c.k_step) &&
                    (!pages || (c.pages.keys % 2 == 0 && c.pages.k_page % 2 == 0));
    pairs_of_values = pairs(v, c.v_step, c.v_key) && c.e % 2 == 0 && c.pages.v_page % 2 == 0;
    rows = c.queries * c.group;
    first_row = at.first_row + warp_index() * kRows;
    const u32 last = at.first_row + kWarps * kRows < rows ? at.first_row + kWarps * kRows : rows;
    any = keys_seen(c, keys, at.first_row / c.group);
    any.end = keys_seen(c, keys, (last - 1) / c.group).end;
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const u32 row = first_row + r < rows ? first_row + r : rows - 1;
      seen[r] = keys_seen(c, keys, row / c.group);
      m[r] = 0.0f, l[r] = 0.0f;
#pragma unroll
      for (u32 i = 0; i < 4; ++i) o[r][i] = 0.0f;
      if constexpr (kBiased) {
        const float sink = sink_of(bias, at.key_head * c.group + row % c.group);
        if (sink != -detail::kInfF32) m[r] = sink, l[r] = 1.0f;
      }
    }
  }

  /// The keys of a chunk that row r sees, counted from the chunk's first key.
  WICK_DEVICE KeyRange seen_of(u32 r, i32 chunk) const {
    return {larger(seen[r].begin - chunk, 0), smaller(seen[r].end - chunk, kAttentionChunk)};
  }

  /// Looks up the chunk of keys that starts at `first`.
  WICK_DEVICE void enter(i32 first) {
    chunk_first = first;
    if (scattered) return;
    const KeyPlace place = place_of(c.pages, batch, static_cast<u32>(first));
    chunk_k = k + place.page * c.pages.k_page + place.in_page * c.k_key;
    chunk_v = v + place.page * c.pages.v_page + place.in_page * c.v_key;
  }
  /// Address of a key of the chunk, and of its value.
  WICK_DEVICE const T* key_at(i32 key) const {
    if (!scattered) return chunk_k + (key - chunk_first) * c.k_key;
    const KeyPlace place = place_of(c.pages, batch, static_cast<u32>(key));
    return k + place.page * c.pages.k_page + place.in_page * c.k_key;
  }
  WICK_DEVICE const T* value_at(i32 key) const {
    if (!scattered) return chunk_v + (key - chunk_first) * c.v_key;
    const KeyPlace place = place_of(c.pages, batch, static_cast<u32>(key));
    return v + place.page * c.pages.v_page + place.in_page * c.v_key;
  }

  /// Loads steps [d0, d0 + 16) of the keys.
  WICK_DEVICE void load_steps(i32 chunk, u32 d0) {
    if constexpr (kLoadsPairs<T>) {
      if (pairs_of_keys) {
        load_step_pairs(chunk, d0);
        return;
      }
    }
    const i32 key = chunk + static_cast<i32>(thread_index());
    const bool visible = key >= any.begin && key < any.end;
    const T* from = (visible ? key_at(key) : k) + d0 * c.k_step;
#pragma unroll
    for (u32 i = 0; i < kTileSteps; ++i) {
      const bool there = visible && d0 + i < c.d;
      shared.tile[i * kAttentionChunk + thread_index()] = there ? widen(from[i * c.k_step]) : 0.0f;
    }
  }
  /// Loads two neighbouring keys, and half of the steps, in each thread.
  WICK_DEVICE void load_step_pairs(i32 chunk, u32 d0) {
    constexpr u32 kPairs = kAttentionChunk / 2, kEach = kTileSteps * kPairs / kThreads;
    const u32 pair = thread_index() % kPairs, first = thread_index() / kPairs * kEach;
    const i32 key = chunk + static_cast<i32>(2 * pair);
    const bool first_seen = key >= any.begin && key < any.end,
               second_seen = key + 1 >= any.begin && key + 1 < any.end;
    const T* from = (first_seen || second_seen ? key_at(key) : k) + (d0 + first) * c.k_step;
    float* to = shared.tile + first * kAttentionChunk + 2 * pair;
#pragma unroll 4
    for (u32 i = 0; i < kEach; ++i) {
      const bool there = d0 + first + i < c.d;
      *reinterpret_cast<Vec<float, 2>*>(to + i * kAttentionChunk) =
          load_pair(from + i * c.k_step, there && first_seen, there && second_seen);
    }
  }
  /// Loads two neighbours; those that don't exist become zeros.
  WICK_DEVICE static Vec<float, 2> load_pair(const T* from, bool first, bool second) {
    float x[2] = {};
    if (first && second) {
      const Vec<T, 2> pair = *reinterpret_cast<const Vec<T, 2>*>(from);
      x[0] = pair[0], x[1] = pair[1];
    } else if (first) {
      x[0] = widen(from[0]);
    } else if (second) {
      x[1] = widen(from[1]);
    }
    return Vec<float, 2>::of(x);
  }

  /// Loads elements [d0, d0 + 32) of the warp's queries, one in each lane.
  WICK_DEVICE void load_queries(const RowsPlace& at, u32 d0) {
    float x[kRows] = {};
    const u32 step = d0 + lane();
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const u32 row = first_row + r, query = row / c.group;
      if (query >= c.queries || step >= c.d) continue;
      const u32 head = at.key_head * c.group + row % c.group;
      x[r] = load_as(c.q, c.dtype,
                     at.batch * c.q_batch + head * c.q_head + query * c.q_query + step * c.q_step);
    }
    float* to = shared.q + warp_index() * RowsShared<T, kRows>::kQ + lane() * kRows;
    store_rows(to, x);
  }

  /// Scores of the warp's rows, 8 keys in each lane.
  WICK_DEVICE void scores(const RowsPlace& at, i32 chunk, float (&s)[kRows][8]) {
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
#pragma unroll
      for (u32 i = 0; i < 8; ++i) s[r][i] = 0.0f;
    }
    const float* tile = shared.tile + 4 * lane();
    for (u32 d0 = 0; d0 < c.d; d0 += kTileSteps) {
      sync();
      load_steps(chunk, d0);
      if (d0 % kQuerySteps == 0) load_queries(at, d0);
      sync();
      const float* q =
          shared.q + warp_index() * RowsShared<T, kRows>::kQ + d0 % kQuerySteps * kRows;
      const u32 steps = c.d - d0 < kTileSteps ? c.d - d0 : kTileSteps;
#pragma unroll 2
      for (u32 step = 0; step < steps; ++step) {
        float kv[8], qv[kRows];
        const auto* from = reinterpret_cast<const Vec<float, 4>*>(tile + step * kAttentionChunk);
        const Vec<float, 4> low = from[0], high = from[kAttentionChunk / 8];
#pragma unroll
        for (u32 i = 0; i < 4; ++i) kv[i] = low[i], kv[4 + i] = high[i];
        load_rows(qv, q + step * kRows);
#pragma unroll
        for (u32 r = 0; r < kRows; ++r) {
#pragma unroll
          for (u32 i = 0; i < 8; ++i) s[r][i] = fma(qv[r], kv[i], s[r][i]);
        }
      }
    }
  }

  /// Loads the values of 32 keys from `key` on.
  WICK_DEVICE void load_values(u32 slab, i32 key) {
    if constexpr (kLoadsPairs<T>) {
      if (pairs_of_values) {
        load_value_pairs(slab, key);
        return;
      }
    }
    const u32 x = thread_index() % kTileWidth, first = thread_index() / kTileWidth;
    const bool there = slab * kTileWidth + x < c.e;
    const i64 element = (slab * kTileWidth + x) * c.v_step;
#pragma unroll 8
    for (u32 i = first; i < kTileKeys; i += kThreads / kTileWidth) {
      const i32 at = key + static_cast<i32>(i);
      const bool visible = at >= any.begin && at < any.end && there;
      shared.tile[i * kTileWidth + x] = visible ? widen(value_at(at)[element]) : 0.0f;
    }
  }

  /// Loads two neighbouring elements of v in each thread.
  WICK_DEVICE void load_value_pairs(u32 slab, i32 key) {
    constexpr u32 kPairs = kTileWidth / 2;
    const u32 x = thread_index() % kPairs * 2, first = thread_index() / kPairs;
    const u32 element = slab * kTileWidth + x;
#pragma unroll 4
    for (u32 i = first; i < kTileKeys; i += kThreads / kPairs) {
      const i32 at = key + static_cast<i32>(i);
      const bool visible = at >= any.begin && at < any.end && slab * kTileWidth + x < c.e;
      *reinterpret_cast<Vec<float, 2>*>(shared.tile + i * kTileWidth + x) =
          load_pair((visible ? value_at(at) : v) + element, visible, visible);
    }
  }

  /// oc[r][i] += e · v over 32 keys from `key` of the chunk on. kAll: all rows see all of these
  /// keys.
  template <bool kAll>
  WICK_DEVICE void add_values(i32 key, i32 chunk, const float* p, float (&oc)[kRows][4]) {
    KeyRange range[kRows];
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) range[r] = seen_of(r, chunk);
#pragma unroll 2
    for (u32 j = 0; j < kTileKeys; ++j) {
      const Vec<float, 4> vv =
          *reinterpret_cast<const Vec<float, 4>*>(shared.tile + j * kTileWidth + 4 * lane());
      float pv[kRows];
      load_rows(pv, p + place_of_key<kRows>(j) * kRows);
#pragma unroll
      for (u32 r = 0; r < kRows; ++r) {
        const i32 at = key + static_cast<i32>(j);
        const bool visible = kAll || (at >= range[r].begin && at < range[r].end);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
          const float sum = fma(pv[r], vv[i], oc[r][i]);
          oc[r][i] = visible ? sum : oc[r][i];
        }
      }
    }
  }

  /// The chunk's output from its exponentials, which go through shared memory a quarter of the
  /// chunk at a time.
  WICK_DEVICE void outputs(u32 slab, i32 chunk, const float (&e)[kRows][8], float (&oc)[kRows][4]) {
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
#pragma unroll
      for (u32 i = 0; i < 4; ++i) oc[r][i] = 0.0f;
    }
    KeyRange common = {0, kAttentionChunk};
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const KeyRange range = seen_of(r, chunk);
      common = {larger(common.begin, range.begin), smaller(common.end, range.end)};
    }
    float* p = shared.p + warp_index() * RowsShared<T, kRows>::kP;
#pragma unroll
    for (u32 quarter = 0; quarter < 4; ++quarter) {
      const i32 first = static_cast<i32>(quarter * kQuarter);
      if (chunk + first >= any.end || chunk + first + static_cast<i32>(kQuarter) <= any.begin) {
        continue;
      }
      for (i32 key = first; key < first + static_cast<i32>(kQuarter);
           key += static_cast<i32>(kTileKeys)) {
        sync();
        if (key == first && lane() / 16 == quarter % 2) {
#pragma unroll
          for (u32 i = 0; i < 4; ++i) {
            float x[kRows];
#pragma unroll
            for (u32 r = 0; r < kRows; ++r) x[r] = e[r][4 * (quarter / 2) + i];
            store_rows(p + place_of_key<kRows>(4 * (lane() % 16) + i) * kRows, x);
          }
        }
        load_values(slab, chunk + key);
        sync();
        const float* from = p + place_of_key<kRows>(static_cast<u32>(key - first)) * kRows;
        if (key >= common.begin && key + static_cast<i32>(kTileKeys) <= common.end) {
          add_values<true>(key, chunk, from, oc);
        } else {
          add_values<false>(key, chunk, from, oc);
        }
      }
    }
  }

  /// Replaces the dot products of row r by exponentials; returns the largest score.
  WICK_DEVICE float exponentials(const RowsPlace& at, u32 r, i32 chunk, float (&s)[8]) const {
    if constexpr (kBiased) {
      const u32 row = first_row + r < rows ? first_row + r : rows - 1;
      const RowBias terms(bias, at.batch, at.key_head * c.group + row % c.group, row / c.group);
      const i32 own = static_cast<i32>(row / c.group + keys) - static_cast<i32>(c.queries);
      return biased_exponentials(c, s, seen_of(r, chunk), [&](i32 key, float score) WICK_INLINE {
        return terms.add(score, chunk + key, own);
      });
    } else {
      return chunk_exponentials(c, s, seen_of(r, chunk));
    }
  }

  /// Combines a chunk with the chunks before it.
  WICK_DEVICE void combine(u32 r, i32 chunk, RowSoftmax soft, const float (&oc)[4]) {
    if (seen_of(r, chunk).empty()) return;
    // The first chunk that the row sees. Before it, the sum is 1 with a sink, else 0.
    const bool first = seen[r].begin >= chunk && (!kBiased || l[r] == 0.0f);
    const bool hidden = kBiased && is_hidden(soft);
    if (hidden && !first) return;
    if (first) {
      m[r] = soft.largest, l[r] = soft.sum;
#pragma unroll
      for (u32 i = 0; i < 4; ++i) o[r][i] = hidden ? 0.0f : oc[i];
      return;
    }
    const Combine combine(m[r], soft.largest);
    m[r] = combine.largest;
    l[r] = combine(l[r], soft.sum);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) o[r][i] = combine(o[r][i], oc[i]);
  }

  WICK_DEVICE void store_partial(const RowsPlace& at, const AttentionPartials& partials, u32 r,
                                 u32 chunk, RowSoftmax soft, const float (&oc)[4]) {
    const u32 row = first_row + r;
    if (row >= rows || seen_of(r, static_cast<i32>(chunk * kAttentionChunk)).empty()) return;
    const u32 head = at.key_head * c.group + row % c.group, query = row / c.group;
    const u64 where = row_number(c, at.batch, head, query) * partials.chunks + chunk;
    if (lane() == 0 && at.slab == 0) {
      partials.largest_sum[2 * where] = soft.largest;
      partials.largest_sum[2 * where + 1] = soft.sum;
    }
    const u32 x = at.slab * kTileWidth + 4 * lane();
    float* const to = partials.out + where * c.e + x;
    if (x + 4 <= c.e && reinterpret_cast<u64>(to) % 16 == 0) {
      store_rows(to, oc);
      return;
    }
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      if (x + i < c.e) to[i] = oc[i];
    }
  }

  WICK_DEVICE void store(const RowsPlace& at) {
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const u32 row = first_row + r;
      if (row >= rows) continue;
      const u32 head = at.key_head * c.group + row % c.group, query = row / c.group;
      const i64 to = at.batch * c.out_batch + head * c.out_head + query * c.out_query;
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        const u32 x = at.slab * kTileWidth + 4 * lane() + i;
        const float y = seen[r].empty() || sees_nothing(bias, l[r]) ? 0.0f : o[r][i] / l[r];
        if (x < c.e) store_as(c.out, c.dtype, to + x * c.out_step, y);
      }
    }
  }
};

template <class T, u32 kRows, class Bias>
WICK_DEVICE void attend_rows(const AttentionCall& c, const Bias& bias,
                             const AttentionPartials& partials, u32 blocks, u32 slabs, u32 splits) {
  WICK_SHARED RowsShared<T, kRows> shared;
  const RowsPlace at(c, blocks, slabs, splits, kWarps * kRows);
  const u32 keys = keys_of(c, at.batch);
  if (keys == 0 && block_index() % splits == 0 && thread_index() == 0) check_keys(c, at.batch);
  if (c.positions != nullptr && keys == 0) return;
  RowsAttention<T, kRows, Bias> work(c, bias, at, keys, shared);
  const u32 first = static_cast<u32>(work.any.begin) / kAttentionChunk;
  for (u32 chunk = first + at.split; static_cast<i32>(chunk * kAttentionChunk) < work.any.end;
       chunk += splits) {
    const i32 first_key = static_cast<i32>(chunk * kAttentionChunk);
    float s[kRows][8], oc[kRows][4];
    RowSoftmax soft[kRows];
    work.enter(first_key);
    work.scores(at, first_key, s);
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      // Rows are computed one after another; together they would take too many registers.
      for (float& x : s[r]) forget(x);
      soft[r].largest = work.exponentials(at, r, first_key, s[r]);
      soft[r].sum = chunk_sum(s[r]);
      for (float& x : s[r]) forget(x);
    }
    work.outputs(at.slab, first_key, s, oc);
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      if (splits == 1) {
        work.combine(r, first_key, soft[r], oc[r]);
      } else {
        work.store_partial(at, partials, r, chunk, soft[r], oc[r]);
      }
    }
  }
  if (splits == 1) work.store(at);
}

/// Combines the chunks of rows. A thread block takes a row.
template <class Bias>
WICK_DEVICE void combine_rows(const AttentionCall& c, const Bias& bias,
                              const AttentionPartials& partials) {
  const u32 row = block_index(), query = row % c.queries;
  const u32 head = row / c.queries % c.heads, batch = row / c.queries / c.heads;
  const u32 keys = keys_of(c, batch);
  if (c.positions != nullptr && keys == 0) return;
  const KeyRange seen = keys_seen(c, keys, query);
  const u32 first = static_cast<u32>(seen.begin) / kAttentionChunk;
  const u32 end = (static_cast<u32>(seen.end) + kAttentionChunk - 1) / kAttentionChunk;
  const i64 to = batch * c.out_batch + head * c.out_head + query * c.out_query;
  for (u32 x = thread_index(); x < c.e; x += block_threads()) {
    const float y =
        seen.empty() ? 0.0f : combine_chunks(partials, row, first, end, c.e, x, head, bias);
    store_as(c.out, c.dtype, to + x * c.out_step, y);
  }
}

}  // namespace wick::gpu
