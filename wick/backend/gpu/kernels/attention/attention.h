#pragma once

// Steps that attention kernels share: which keys a query sees, the softmax of a row's chunk, the
// combination of chunks, and elements whose dtype is known at run time. The order of operations is
// that of docs/design/numerics/attention.md.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"
#include "wick/backend/gpu/kernels/attention/written_pages.h"
#include "wick/backend/gpu/kernels/device/element.h"

namespace wick::gpu {

/// A range of keys [begin, end).
struct KeyRange {
  i32 begin, end;
  WICK_DEVICE bool empty() const { return begin >= end; }
};

WICK_DEVICE i32 smaller(i32 a, i32 b) { return a < b ? a : b; }
WICK_DEVICE i32 larger(i32 a, i32 b) { return a > b ? a : b; }

/// Number of keys up to the last query of a batch element, read from device memory if it is given
/// there.
WICK_DEVICE u64 end_of_keys(const AttentionCall& c, u32 batch) {
  if (c.positions != nullptr) {
    return u64{load_now(c.positions + u64{batch} * c.queries)} + c.queries;
  }
  if (c.pages.lengths == nullptr) return c.keys;
  return load_now(c.pages.lengths + batch * c.pages.length_step);
}
/// end_of_keys; 0 if a position lies outside the cache or a length is beyond the table.
WICK_DEVICE u32 keys_of(const AttentionCall& c, u32 batch) {
  const u64 end = end_of_keys(c, batch);
  return end <= c.keys ? static_cast<u32>(end) : 0;
}
/// Reports the fault of keys_of. One thread of a launch calls it, after pdl_wait().
WICK_DEVICE void check_keys(const AttentionCall& c, u32 batch) {
  const u64 end = end_of_keys(c, batch);
  if (end <= c.keys) return;
  const bool position = c.positions != nullptr;
  report(c.pages.faults, kIdOutOfRange, c.pages.length_note,
         static_cast<i64>(position ? end - 1 : end));
}

/// The table entry of a batch element for a key.
WICK_DEVICE u32 page_at(const KeyPages& pages, u32 batch, u32 key) {
  if (pages.tables == nullptr) return 0;
  const u32 entry = key / pages.keys;
  return load_now(pages.tables + batch * pages.table_row + entry * pages.table_step);
}

/// The rows that a step of `each` rows for every sequence writes to pages.
WICK_DEVICE WrittenRows written_rows(const KeyPages& pages, const u32* positions, u32 sequences,
                                     u32 each, u32 limit) {
  return {positions, pages.tables, pages.table_row, pages.table_step, pages.keys,       sequences,
          each,      limit,        pages.faults,    pages.note,       pages.length_note};
}

/// Reports a row of a step that lies outside the cache, doesn't follow the row before, or goes to
/// another sequence's page. False if it lies outside the cache. `each`: rows of a sequence.
WICK_DEVICE bool check_written_row(const KeyPages& pages, const u32* positions, u32 rows, u32 each,
                                   u32 limit, u32 row) {
  const u32 batch = row / each, first = load_now(positions + u64{batch} * each);
  const u32 own = load_now(positions + row), next = first + row % each;
  const u64 end = u64{first} + each;
  if (end > limit) {
    report(pages.faults, kIdOutOfRange, pages.length_note, static_cast<i64>(end - 1));
    return false;
  }
  if (own != next) report(pages.faults, kNotNext, pages.length_note, own);
  const bool new_page = row % each == 0 || next % pages.keys == 0;
  if (pages.tables != nullptr && new_page) {
    const WrittenRows written = written_rows(pages, positions, rows / each, each, limit);
    written.check_page(written.page(batch, next), batch + 1, 1);
  }
  return true;
}

/// The page of a key and its index in the page. A missing page is replaced by the first one.
struct KeyPlace {
  u32 page, in_page;
  bool there;
  WICK_DEVICE KeyPlace(const KeyPages& pages, u32 entry, u32 key)
      : page(entry), in_page(key), there(true) {
    if (pages.tables == nullptr) return;
    in_page = key % pages.keys;
    there = entry < pages.count;
    if (!there) page = 0;
  }
};
/// Looks up a key. Reports a missing page, so it must come after pdl_wait().
WICK_DEVICE KeyPlace place_of(const KeyPages& pages, u32 batch, u32 key) {
  const u32 entry = page_at(pages, batch, key);
  const KeyPlace place(pages, entry, key);
  if (!place.there) report(pages.faults, kIdOutOfRange, pages.note, entry);
  return place;
}

/// The keys that query i of `queries` sees. All counts are below 2^30.
WICK_DEVICE KeyRange keys_seen(const AttentionCall& c, u32 keys, u32 query) {
  const i32 own = static_cast<i32>(query) + static_cast<i32>(keys) - static_cast<i32>(c.queries);
  KeyRange r = {0, static_cast<i32>(keys)};
  if (c.causal != 0) r.end = larger(smaller(own + 1, r.end), 0);
  if (c.window != 0) r.begin = larger(own - static_cast<i32>(c.window) + 1, 0);
  return r;
}

/// Scales dot products to scores, with the soft cap.
template <u32 kCount>
WICK_DEVICE void shape_scores(const AttentionCall& c, float (&s)[kCount]) {
#pragma unroll
  for (float& x : s) x = x * c.scale;
  if (c.soft_cap > 0.0f) {
#pragma unroll
    for (float& x : s) x = c.soft_cap * tanh(x / c.soft_cap);
  }
}

/// Maximum over the warp, by integers that order like floats. A NaN may count or not.
WICK_DEVICE float warp_largest(float x) {
  constexpr u32 kSign = 0x80000000u;
  const u32 b = f32_bits(x);
  const u32 y = largest_of_warp((b & kSign) != 0 ? ~b : b | kSign);
  return bits_f32((y & kSign) != 0 ? y ^ kSign : ~y);
}

/// The key of a chunk that a lane holds as its i-th of 8: four neighbours in each half of the
/// chunk, as the order of the row sum requires.
WICK_DEVICE i32 key_of_lane(u32 i) {
  return static_cast<i32>(4 * lane() + i % 4 + (i < 4 ? 0 : kAttentionChunk / 2));
}

/// Loads a lane's 8 elements of a row [256] in shared memory, in the order of key_of_lane.
WICK_DEVICE void load_chunk_row(float (&to)[8], const float* row) {
  const auto* from = reinterpret_cast<const Vec<float, 4>*>(row);
  const Vec<float, 4> low = from[lane()], high = from[kWarp + lane()];
#pragma unroll
  for (u32 i = 0; i < 4; ++i) to[i] = low[i], to[4 + i] = high[i];
}
/// Stores what load_chunk_row loads.
WICK_DEVICE void store_chunk_row(float* row, const float (&x)[8]) {
  auto* to = reinterpret_cast<Vec<float, 4>*>(row);
  to[lane()] = Vec<float, 4>::of({x[0], x[1], x[2], x[3]});
  to[kWarp + lane()] = Vec<float, 4>::of({x[4], x[5], x[6], x[7]});
}

/// Replaces a row's dot products, 8 in each lane, by exponentials of score − largest score; returns
/// the largest score. Keys that the row doesn't see give +0. `seen` counts from the chunk's first
/// key. All lanes of the warp must call it.
WICK_DEVICE float chunk_exponentials(const AttentionCall& c, float (&s)[8], KeyRange seen) {
  shape_scores(c, s);
  float largest = -detail::kInfF32;
#pragma unroll
  for (u32 i = 0; i < 8; ++i) {
    const i32 key = key_of_lane(i);
    const bool visible = key >= seen.begin && key < seen.end;
    s[i] = visible ? s[i] : -detail::kInfF32;
    largest = s[i] > largest ? s[i] : largest;
  }
  largest = warp_largest(largest);
#pragma unroll
  for (u32 i = 0; i < 8; ++i) {
    const i32 key = key_of_lane(i);
    const bool visible = key >= seen.begin && key < seen.end;
    const float e = exp_of_negative(s[i] - largest);  // without a branch for each key
    s[i] = visible ? e : 0.0f;
  }
  return largest;
}
/// Sum of a chunk's exponentials, 8 in each lane.
WICK_DEVICE float chunk_sum(const float (&e)[8]) {
  return warp_sum(((e[0] + e[4]) + (e[1] + e[5])) + ((e[2] + e[6]) + (e[3] + e[7])));
}

struct RowSoftmax {
  float largest, sum;
};

/// Combines the result of earlier chunks with that of a chunk.
struct Combine {
  float largest, by_earlier, by_chunk;
  WICK_DEVICE Combine(float earlier, float chunk) {
    largest = chunk > earlier ? chunk : earlier;
    by_earlier = exp(earlier - largest);
    by_chunk = exp(chunk - largest);
  }
  WICK_DEVICE float operator()(float earlier, float chunk) const {
    return fma(earlier, by_earlier, chunk * by_chunk);
  }
};

/// Index of a row in the partial results.
WICK_DEVICE u64 row_number(const AttentionCall& c, u32 batch, u32 head, u32 query) {
  return (u64{batch} * c.heads + head) * c.queries + query;
}

/// Reads an element whose dtype is known at run time.
WICK_DEVICE float load_as(const void* data, u32 dtype, i64 at) {
  if (dtype == kAttentionF32) return static_cast<const float*>(data)[at];
  if (dtype == kAttentionF16) return to_f32(static_cast<const f16*>(data)[at]);
  return to_f32(static_cast<const bf16*>(data)[at]);
}
WICK_DEVICE void store_as(void* data, u32 dtype, i64 at, float x) {
  if (dtype == kAttentionF32) {
    static_cast<float*>(data)[at] = x;
  } else if (dtype == kAttentionF16) {
    static_cast<f16*>(data)[at] = from_f32<f16>(x);
  } else {
    static_cast<bf16*>(data)[at] = from_f32<bf16>(x);
  }
}

/// A pair of a row's elements, rotated; elements from 2 · half on are copied.
struct Turned {
  float x0, x1;
  WICK_DEVICE Turned(const CacheCall& c, const float* row, u32 pair, u32 position) {
    x0 = row[2 * pair * c.qkv_step];
    x1 = 2 * pair + 1 < c.d ? row[(2 * pair + 1) * c.qkv_step] : 0.0f;
    if (pair >= c.half) return;
    const float cos = c.cos[position * c.cos_row + pair * c.cos_step];
    const float sin = c.sin[position * c.sin_row + pair * c.sin_step];
    const float y0 = x0 * cos - x1 * sin;
    x1 = x0 * sin + x1 * cos;
    x0 = y0;
  }
};

/// Element x of a row's result, combined from its chunks [first, end).
WICK_DEVICE float combine_chunks(const AttentionPartials& partials, u64 row, u32 first, u32 end,
                                 u32 e, u32 x) {
  const float* ml = partials.largest_sum + 2 * row * partials.chunks;
  const float* o = partials.out + row * partials.chunks * e + x;
  float m = ml[2 * first], l = ml[2 * first + 1], y = o[u64{first} * e];
#pragma unroll 4
  for (u32 c = first + 1; c < end; ++c) {
    const Combine combine(m, ml[2 * c]);
    m = combine.largest;
    l = combine(l, ml[2 * c + 1]);
    y = combine(y, o[u64{c} * e]);
  }
  return y / l;
}

}  // namespace wick::gpu
