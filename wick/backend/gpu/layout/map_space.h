#pragma once

// Index spaces of elementwise work, and in what form kernels get them (kernels/layout/walk.h).

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/layout/spread.h"
#include "wick/backend/gpu/layout/space.h"

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
Access access_of(const Space<N>& space, size_t k, const Operand& operand, size_t along = SIZE_MAX) {
  return access_of(space, k, operand.data, operand.bytes, along);
}

/// The space of layouts of one shape, arranged.
template <uint32_t N>
Space<N> map_space(const std::array<const Layout*, N>& layouts) {
  Space<N> space = space_of<N>(layouts);
  space.arrange();
  return space;
}

/// A space in packs.
template <uint32_t N>
struct PackedSpace {
  bool fits = false;      ///< else it has to be walked element by element
  Space<N> space;         ///< its dims count packs, its strides elements
  uint32_t rest = 0;      ///< elements behind the packs, of one dense dim
  uint32_t repeated = 0;  ///< bit k: input k is one element along the innermost dim
};

/// `may_repeat`: whether inputs may be one element along the innermost dim.
template <uint32_t N>
PackedSpace<N> pack(const Space<N>& space, const std::array<Operand, N>& operands, int64_t elems,
                    bool may_repeat) {
  PackedSpace<N> packed;
  if (space.dims.empty() || space.dims.back().size < elems) return packed;
  const auto& inner = space.dims.back();
  if (space.dims.size() > 1 && inner.size % elems != 0) return packed;
  for (size_t k = 0; k < N; ++k) {
    if (inner.stride[k] == 0 && k > 0 && may_repeat) {
      packed.repeated |= 1u << (k - 1);
    } else if (!access_of(space, k, operands[k], space.dims.size() - 1).vectors_of(elems)) {
      return packed;
    }
  }
  packed.fits = true;
  packed.space = space;
  auto& last = packed.space.dims.back();
  packed.rest = static_cast<uint32_t>(last.size % elems);
  last.size /= elems;
  for (size_t k = 0; k < N; ++k) last.stride[k] *= elems;
  packed.space.elems = packed.space.elems / elems;
  return packed;
}

/// A space in units, the largest up to 16 bytes that all layouts let through, and operands that
/// count in them.
template <uint32_t N>
struct UnitSpace {
  Space<N> space;
  std::array<Operand, N> operands;
};

/// The first `moved` operands are of one dtype and counted in units; the others have no stride
/// along the innermost dim where units are larger than an element. `steps`: further distances in
/// elements that have to be whole units.
template <uint32_t N>
UnitSpace<N> in_units(const Space<N>& space, const std::array<Operand, N>& operands,
                      size_t moved = N, int64_t steps = 0) {
  const int64_t bytes = operands[0].bytes;
  const auto widest = [&] {
    if (space.dims.empty()) return bytes;
    const size_t last = space.dims.size() - 1;
    const auto& inner = space.dims[last];
    // Sizes and steps have to be whole units, too.
    int64_t unit = Access(nullptr, bytes, inner.size).dim(2, steps).alignment(kMostVectorBytes);
    for (size_t k = 0; k < N; ++k) {
      if (k >= moved && inner.stride[k] != 0) return bytes;
      if (k >= moved) continue;
      const Access access = access_of(space, k, operands[k], last);
      if (!access.is_dense()) return bytes;
      unit = access.alignment(unit);
    }
    return std::max(unit, bytes);
  };
  const int64_t unit = widest();
  const int64_t factor = unit / bytes;
  UnitSpace<N> result{{}, operands};
  for (size_t k = 0; k < N; ++k) {
    result.operands[k].data = static_cast<char*>(operands[k].at(space.start[k]));
    if (k < moved) result.operands[k].bytes = unit;
  }
  for (size_t d = 0; d < space.dims.size(); ++d) {
    const bool inner = d + 1 == space.dims.size();
    std::array<int64_t, N> stride = space.dims[d].stride;
    for (size_t k = 0; k < moved && !inner; ++k) stride[k] /= factor;
    result.space.add(inner ? space.dims[d].size / factor : space.dims[d].size, stride);
  }
  result.space.elems = space.elems / factor;
  return result;
}

/// Dim `dim` cut at `at`: the part before it, and the part behind.
template <uint32_t N>
std::pair<Space<N>, Space<N>> split(const Space<N>& space, size_t dim, int64_t at) {
  Space<N> low = space, high = space;
  low.dims[dim].size = at;
  high.dims[dim].size -= at;
  low.elems = space.elems / space.dims[dim].size * at;
  high.elems = space.elems - low.elems;
  for (size_t k = 0; k < N; ++k) high.start[k] += at * space.dims[dim].stride[k];
  return {low, high};
}

/// The dim along which an input is dense while the innermost goes another way; −1: none. Worth it
/// from some elements on.
template <uint32_t N>
int turned_dim(const Space<N>& space) {
  if (space.dims.size() < 2) return -1;
  const auto& inner = space.dims.back();
  for (size_t k = 1; k < N; ++k) {
    if (std::abs(inner.stride[k]) <= 1) continue;
    for (size_t d = 0; d + 1 < space.dims.size(); ++d) {
      if (std::abs(space.dims[d].stride[k]) == 1) return static_cast<int>(d);
    }
  }
  return -1;
}

/// Calls body(space) for parts of a space that is walked element by element, in an order in which
/// neighbours along any dense dim of an input are read about the same time: small tiles of that dim
/// and the innermost.
template <uint32_t N, class Body>
void for_each_tiled(const Space<N>& space, Body&& body) {
  if (space.elems == 0) return;
  const int turned = turned_dim(space);
  if (turned < 0) return body(space);
  const size_t across = static_cast<size_t>(turned), inner = space.dims.size() - 1;
  // A group's kMapItems · kMapEach elements are one tile.
  constexpr int64_t kTile = int64_t{kMapItems} * kMapEach, kSide = 32;
  const int64_t rows = std::min(space.dims[across].size, kSide);
  const int64_t cols = kTile / rows / kSide * kSide;
  if (rows < 2 || space.dims[inner].size < cols) return body(space);
  if (const int64_t past = space.dims[across].size % rows) {
    const auto [low, high] = split(space, across, space.dims[across].size - past);
    for_each_tiled(low, body);
    return for_each_tiled(high, body);
  }
  if (const int64_t past = space.dims[inner].size % cols) {
    const auto [low, high] = split(space, inner, space.dims[inner].size - past);
    for_each_tiled(low, body);
    return body(high);
  }
  const auto a = space.dims[across], b = space.dims[inner];
  const auto scaled = [](std::array<int64_t, N> stride, int64_t by) {
    for (int64_t& s : stride) s *= by;
    return stride;
  };
  Space<N> tiled;
  tiled.start = space.start;
  for (size_t d = 0; d < inner; ++d) {
    if (d != across) tiled.add(space.dims[d].size, space.dims[d].stride);
  }
  tiled.add(a.size / rows, scaled(a.stride, rows));
  tiled.add(b.size / cols, scaled(b.stride, cols));
  tiled.add(rows, a.stride);
  tiled.add(cols, b.stride);
  body(tiled);
}

/// A grid whose items take `each` of `count` things: groups of kMapItems where there are enough of
/// them for all processors, smaller ones otherwise.
inline Grid spread(const Gpu& gpu, int64_t count, int64_t each) {
  Grid grid;
  grid.early = true;
  const int64_t least = std::max(gpu.info.wave, 32);
  int64_t items = kMapItems;
  while (items > least && count < 2 * gpu.info.processors * items * each) items /= 2;
  grid.items = static_cast<unsigned>(items);
  grid.groups[0] = static_cast<unsigned>((count + items * each - 1) / (items * each));
  return grid;
}

}  // namespace wick::gpu
