#pragma once

// What decode_rows.gpu and decode_warps.gpu share: the rows of a tile, and copies of rows of keys
// and values to shared memory.

#include "wick/backend/gpu/kernels/attention/attention.h"
#include "wick/backend/gpu/kernels/device/copy.h"

namespace wick::gpu {

/// Rows of one key head: row = query · group + head.
struct TileRows {
  const AttentionCall& c;
  u32 first_row, key_head, batch;

  /// set: index of the tile; tiles: tiles of a key head.
  WICK_DEVICE TileRows(const AttentionCall& call, u32 set, u32 tiles, u32 rows)
      : c(call),
        first_row(set % tiles * rows),
        key_head(set / tiles % (call.heads / call.group)),
        batch(set / tiles / (call.heads / call.group)) {}
  WICK_DEVICE bool has_row(u32 r) const { return first_row + r < c.group * c.queries; }
  WICK_DEVICE u32 head(u32 r) const { return key_head * c.group + (first_row + r) % c.group; }
  WICK_DEVICE u32 query(u32 r) const { return (first_row + r) / c.group; }
  WICK_DEVICE u64 number_of(u32 r) const { return row_number(c, batch, head(r), query(r)); }
  /// The keys that row r sees of `keys`; none if there is no such row.
  WICK_DEVICE KeyRange seen_by(u32 r, u32 keys) const {
    return has_row(r) ? keys_seen(c, keys, query(r)) : KeyRange{0, 0};
  }
  /// Element x of row r's query; 0 if there is no such row.
  WICK_DEVICE float query_element(u32 r, u32 x) const {
    const i64 from = batch * c.q_batch + head(r) * c.q_head + query(r) * c.q_query;
    return has_row(r) ? load_as(c.q, c.dtype, from + x * c.q_step) : 0.0f;
  }
};

/// The smallest range that contains both.
WICK_DEVICE KeyRange joined(KeyRange a, KeyRange b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {smaller(a.begin, b.begin), larger(a.end, b.end)};
}

/// The first key, or the first value, of a chunk whose first position is `key`.
template <class T>
struct ChunkPlace {
  const T *k, *v;
  WICK_DEVICE ChunkPlace(const TileRows& tile, u32 key) {
    const AttentionCall& c = tile.c;
    const KeyPlace place = place_of(c.pages, tile.batch, key);
    k = static_cast<const T*>(c.k) + tile.batch * c.k_batch + tile.key_head * c.k_head +
        place.page * c.pages.k_page + place.in_page * c.k_key;
    v = static_cast<const T*>(c.v) + tile.batch * c.v_batch + tile.key_head * c.v_head +
        place.page * c.pages.v_page + place.in_page * c.v_key;
  }
};

/// The 16 bytes of rows that one of `threads` threads copies first: part `part` of row `row`; the
/// next ones are `more_rows` and `more_parts` ahead. each: parts of a row.
struct RowParts {
  u32 each, row, part, more_rows, more_parts;
  WICK_DEVICE RowParts(u32 of_row, u32 thread, u32 threads)
      : each(of_row),
        row(thread / of_row),
        part(thread % of_row),
        more_rows(threads / of_row),
        more_parts(threads % of_row) {}
};
/// Starts copies of rows [from_row, to_row) of `from`, `step` elements apart. kUnrolled: copies of
/// a turn of the loop.
template <u32 kUnrolled, class T>
WICK_DEVICE void start_rows(const RowParts& by, u8* to, u32 pitch, const T* from, i64 step,
                            u32 from_row, u32 to_row) {
  u32 row = by.row, part = by.part;
  to += row * pitch, from += row * step;
  const u32 more_to = by.more_rows * pitch;
  const i64 more_from = by.more_rows * step;
#pragma unroll kUnrolled
  while (row < to_row) {
    if (row >= from_row) {
      start_copy(reinterpret_cast<Bytes16*>(to) + part,
                 reinterpret_cast<const Bytes16*>(from) + part);
    }
    row += by.more_rows, to += more_to, from += more_from;
    if (by.more_parts == 0) continue;
    part += by.more_parts;
    if (part >= by.each) part -= by.each, ++row, to += pitch, from += step;
  }
}

}  // namespace wick::gpu
