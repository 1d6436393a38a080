#pragma once

// Index spaces of elementwise work, and in what form kernels get them (kernels/layout/walk.h).

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/layout/spread.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {

/// Where an operand's storage starts, and the bytes of what its strides count.
struct Operand {
  char* data = nullptr;
  int64_t bytes = 0;
  Operand() = default;
  explicit Operand(const ConstView& v)
      : data(static_cast<char*>(const_cast<void*>(v.data))), bytes(info(v.dtype).block_bytes) {}
  void* at(int64_t offset) const { return data + offset * bytes; }
};

template <uint32_t N>
Access access_of(const CollapsedDims<N>& collapsed, size_t k, const Operand& operand,
                 size_t along = SIZE_MAX) {
  return access_of(collapsed, k, operand.data, operand.bytes, along);
}

/// Puts a space in an order that suits the output: its strides become positive and the smallest
/// comes last.
template <uint32_t N>
void arrange(CollapsedDims<N>& collapsed) {
  for (auto& dim : collapsed.dims) {
    if (dim.stride[0] >= 0) continue;
    for (size_t k = 0; k < N; ++k) {
      collapsed.start[k] += (dim.size - 1) * dim.stride[k];
      dim.stride[k] = -dim.stride[k];
    }
  }
  collapsed.sort();
}

/// The space of layouts of one shape, arranged.
template <uint32_t N>
CollapsedDims<N> collapse_for_map(const std::array<const Layout*, N>& layouts) {
  CollapsedDims<N> collapsed = collapse<N>(layouts);
  arrange(collapsed);
  return collapsed;
}

/// A space in packs.
template <uint32_t N>
struct PackedDims {
  bool fits = false;           ///< else it has to be walked element by element
  CollapsedDims<N> collapsed;  ///< its dims count packs, its strides elements
  uint32_t rest = 0;           ///< elements behind the packs, of one dense dim
  uint32_t repeated = 0;       ///< bit k: input k is one element along the innermost dim
};

/// `may_repeat`: whether inputs may be one element along the innermost dim.
template <uint32_t N>
PackedDims<N> pack(const CollapsedDims<N>& collapsed, const std::array<Operand, N>& operands,
                   int64_t elems, bool may_repeat) {
  PackedDims<N> packed;
  if (collapsed.dims.empty() || collapsed.dims.back().size < elems) return packed;
  const auto& inner = collapsed.dims.back();
  if (collapsed.dims.size() > 1 && inner.size % elems != 0) return packed;
  for (size_t k = 0; k < N; ++k) {
    if (inner.stride[k] == 0 && k > 0 && may_repeat) {
      packed.repeated |= 1u << (k - 1);
    } else if (!access_of(collapsed, k, operands[k], collapsed.dims.size() - 1).vectors_of(elems)) {
      return packed;
    }
  }
  packed.fits = true;
  packed.collapsed = collapsed;
  auto& last = packed.collapsed.dims.back();
  packed.rest = static_cast<uint32_t>(last.size % elems);
  last.size /= elems;
  for (size_t k = 0; k < N; ++k) last.stride[k] *= elems;
  packed.collapsed.elems = packed.collapsed.elems / elems;
  return packed;
}

/// A space in units, the largest up to 16 bytes that all layouts let through, and operands that
/// count in them.
template <uint32_t N>
struct UnitDims {
  CollapsedDims<N> collapsed;
  std::array<Operand, N> operands;
};

/// The first `moved` operands are of one dtype and counted in units; the others have no stride
/// along the innermost dim where units are larger than an element. `steps`: further distances in
/// elements that have to be whole units.
template <uint32_t N>
UnitDims<N> in_units(const CollapsedDims<N>& collapsed, const std::array<Operand, N>& operands,
                     size_t moved = N, int64_t steps = 0) {
  const int64_t bytes = operands[0].bytes;
  const auto widest = [&] {
    if (collapsed.dims.empty()) return bytes;
    const size_t last = collapsed.dims.size() - 1;
    const auto& inner = collapsed.dims[last];
    // Sizes and steps have to be whole units, too.
    int64_t unit = Access(nullptr, bytes, inner.size).dim(2, steps).alignment(kMostVectorBytes);
    for (size_t k = 0; k < N; ++k) {
      if (k >= moved && inner.stride[k] != 0) return bytes;
      if (k >= moved) continue;
      const Access access = access_of(collapsed, k, operands[k], last);
      if (!access.is_dense()) return bytes;
      unit = access.alignment(unit);
    }
    return std::max(unit, bytes);
  };
  const int64_t unit = widest();
  const int64_t factor = unit / bytes;
  UnitDims<N> result{{}, operands};
  for (size_t k = 0; k < N; ++k) {
    result.operands[k].data = static_cast<char*>(operands[k].at(collapsed.start[k]));
    if (k < moved) result.operands[k].bytes = unit;
  }
  for (size_t d = 0; d < collapsed.dims.size(); ++d) {
    const bool inner = d + 1 == collapsed.dims.size();
    std::array<int64_t, N> stride = collapsed.dims[d].stride;
    for (size_t k = 0; k < moved && !inner; ++k) stride[k] /= factor;
    result.collapsed.add(inner ? collapsed.dims[d].size / factor : collapsed.dims[d].size, stride);
  }
  result.collapsed.elems = collapsed.elems / factor;
  return result;
}

/// Dim `dim` cut at `at`: the part before it, and the part behind.
template <uint32_t N>
std::pair<CollapsedDims<N>, CollapsedDims<N>> split(const CollapsedDims<N>& collapsed, size_t dim,
                                                    int64_t at) {
  CollapsedDims<N> low = collapsed, high = collapsed;
  low.dims[dim].size = at;
  high.dims[dim].size -= at;
  low.elems = collapsed.elems / collapsed.dims[dim].size * at;
  high.elems = collapsed.elems - low.elems;
  for (size_t k = 0; k < N; ++k) high.start[k] += at * collapsed.dims[dim].stride[k];
  return {low, high};
}

/// The dim along which an input is dense while the innermost goes another way; −1: none. Worth it
/// from some elements on.
template <uint32_t N>
int turned_dim(const CollapsedDims<N>& collapsed) {
  if (collapsed.dims.size() < 2) return -1;
  const auto& inner = collapsed.dims.back();
  for (size_t k = 1; k < N; ++k) {
    if (std::abs(inner.stride[k]) <= 1) continue;
    for (size_t d = 0; d + 1 < collapsed.dims.size(); ++d) {
      if (std::abs(collapsed.dims[d].stride[k]) == 1) return static_cast<int>(d);
    }
  }
  return -1;
}

/// Calls body(space) for parts of a space that is walked element by element, in an order in which
/// neighbours along any dense dim of an input are read about the same time: small tiles of that dim
/// and the innermost.
template <uint32_t N, class Body>
void for_each_tiled(const CollapsedDims<N>& collapsed, Body&& body) {
  if (collapsed.elems == 0) return;
  const int turned = turned_dim(collapsed);
  if (turned < 0) return body(collapsed);
  const size_t across = static_cast<size_t>(turned), inner = collapsed.dims.size() - 1;
  // A thread block's kMapThreads · kMapEach elements are one tile.
  constexpr int64_t kTile = int64_t{kMapThreads} * kMapEach, kSide = 32;
  const int64_t rows = std::min(collapsed.dims[across].size, kSide);
  const int64_t cols = kTile / rows / kSide * kSide;
  if (rows < 2 || collapsed.dims[inner].size < cols) return body(collapsed);
  if (const int64_t past = collapsed.dims[across].size % rows) {
    const auto [low, high] = split(collapsed, across, collapsed.dims[across].size - past);
    for_each_tiled(low, body);
    return for_each_tiled(high, body);
  }
  if (const int64_t past = collapsed.dims[inner].size % cols) {
    const auto [low, high] = split(collapsed, inner, collapsed.dims[inner].size - past);
    for_each_tiled(low, body);
    return body(high);
  }
  const auto a = collapsed.dims[across], b = collapsed.dims[inner];
  const auto scaled = [](std::array<int64_t, N> stride, int64_t by) {
    for (int64_t& s : stride) s *= by;
    return stride;
  };
  CollapsedDims<N> tiled;
  tiled.start = collapsed.start;
  for (size_t d = 0; d < inner; ++d) {
    if (d != across) tiled.add(collapsed.dims[d].size, collapsed.dims[d].stride);
  }
  tiled.add(a.size / rows, scaled(a.stride, rows));
  tiled.add(b.size / cols, scaled(b.stride, cols));
  tiled.add(rows, a.stride);
  tiled.add(cols, b.stride);
  body(tiled);
}

/// A grid whose threads take `each` of `count` things: thread blocks of kMapThreads where there are
/// enough of them for all multiprocessors, smaller ones otherwise.
inline Grid spread(const Gpu& gpu, int64_t count, int64_t each) {
  Grid grid;
  grid.pdl = true;
  const int64_t least = std::max(gpu.info.wave, 32);
  int64_t threads = kMapThreads;
  while (threads > least && count < 2 * gpu.info.multiprocessors * threads * each) threads /= 2;
  grid.threads = static_cast<unsigned>(threads);
  grid.blocks[0] = static_cast<unsigned>((count + threads * each - 1) / (threads * each));
  return grid;
}

}  // namespace wick::gpu
