#pragma once

// Maps rows of dense planes to rows of dense planes through shared memory, for AMD. A cache line of
// a plane is loaded, or stored, once, wherever its rows begin in the line.
//
// A thread block takes a tile: whole planes, or neighbouring output rows of one plane. It copies
// the input rows of the tile to shared memory, computes the outputs there, and stores them. Copies
// move 16 bytes at a time. A warp computes neighbouring outputs of one row, so it reads
// neighbouring words of shared memory, which lie in different banks.

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/spatial/spatial_abi.h"

namespace wick::gpu {

/// Dynamic shared memory: the input rows of the tile, its outputs, and what a kernel adds.
extern WICK_SHARED Bytes16 dynamic_shared[];

/// The thread block's tile. Rows are counted from the first plane's first row.
struct Tile {
  u32 plane, planes;    // the first one, and their number
  u32 first_row, rows;  // output rows of each plane

  WICK_DEVICE explicit Tile(const PlaneTiles& t) {
    const u32 group = t.per_plane.divide(block_index());
    const u32 part = block_index() - group * t.per_plane.by, start = group * t.planes;
    plane = start;
    planes = t.all_planes - start < t.planes ? t.all_planes - start : t.planes;
    first_row = part * t.rows;
    rows = t.out_rows.by - first_row < t.rows ? t.out_rows.by - first_row : t.rows;
  }
};

/// Neighbouring elements of a tensor in shared memory. Element `first` has an address that is a
/// multiple of 16 bytes in both memories; it may lie in front of the elements.
template <class T>
struct Staged {
  static constexpr u32 kPack = 16 / sizeof(T);
  T* memory;
  u32 start, end, first;

  WICK_DEVICE Staged(void* shared, u32 from, u32 to)
      : memory(static_cast<T*>(shared)), start(from), end(to), first(from / kPack * kPack) {}
  /// Element i of the tensor.
  WICK_DEVICE T* at(u32 i) const { return memory + (i - first); }

  /// Loads the elements from a tensor of `elems` elements. The rest of the last 16 bytes is loaded,
  /// too, or is zeros behind the tensor.
  WICK_DEVICE void load(const T* WICK_RESTRICT in, u32 elems) const {
    constexpr u32 kAtOnce = 4;
    const u32 step = block_threads() * kPack;
#pragma unroll 1
    for (u32 base = first + thread_index() * kPack; base < end; base += kAtOnce * step) {
      Bytes16 x[kAtOnce];
#pragma unroll
      for (u32 u = 0; u < kAtOnce; ++u) {
        const u32 i = base + u * step;
        if (i < end && i + kPack <= elems) {
          x[u] = load_whole(reinterpret_cast<const Bytes16*>(in + i));
        }
      }
#pragma unroll
      for (u32 u = 0; u < kAtOnce; ++u) {
        const u32 i = base + u * step;
        if (i < end && i + kPack <= elems) store_whole(reinterpret_cast<Bytes16*>(at(i)), x[u]);
      }
    }
    // The elements behind the last whole vector of the tensor.
    const u32 whole = elems / kPack * kPack, last = whole + thread_index();
    if (end > whole && thread_index() < kPack && last >= first) {
      *at(last) = last < elems ? in[last] : T{};
    }
  }
  /// Stores the elements.
  WICK_DEVICE void store(T* out) const {
    for (u32 i = first + thread_index() * kPack; i < end; i += block_threads() * kPack) {
      if (i >= start && i + kPack <= end) {
        const Bytes16 x = load_whole(reinterpret_cast<const Bytes16*>(at(i)));
        store_whole(reinterpret_cast<Bytes16*>(out + i), x);
        continue;
      }
#pragma unroll
      for (u32 k = 0; k < kPack; ++k) {
        if (i + k >= start && i + k < end) out[i + k] = *at(i + k);
      }
    }
  }
};

/// Calls put(plane, row, column, out) for the outputs of a tile: the plane counted from the tile's
/// first one, the row counted from the tile's first row of the plane, and the output's address.
template <class T, class Put>
WICK_DEVICE void for_each_output(const PlaneTiles& t, const Tile& tile, const Staged<T>& results,
                                 const Put& put) {
  const u32 rows = tile.planes * tile.rows, count = rows * t.pitch.by;
  for (u32 i = thread_index(); i < count; i += block_threads()) {
    const u32 line = t.pitch.divide(i), column = i - line * t.pitch.by;
    if (column >= t.out_columns) continue;
    const u32 plane = tile.planes == 1 ? 0 : t.out_rows.divide(line);
    put(plane, line - plane * tile.rows, column,
        results.at(results.start + line * t.out_columns + column));
  }
}

}  // namespace wick::gpu
