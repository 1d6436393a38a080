#pragma once

// Collapses the dims of views to strided indices for kernels.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/backend/gpu/layout/access.h"
#include "wick/backend/view.h"
#include "wick/base/collapsed_dims.h"

namespace wick::gpu {

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// The base-2 logarithm of x, rounded up.
inline uint32_t ceil_log(uint64_t x) {
  return x <= 1 ? 0 : static_cast<uint32_t>(std::bit_width(x - 1));
}

/// Collapsed dims of N operands, in elements, which kernels are launched over. Operand 0 is the
/// output, if there is one.
template <uint32_t N>
struct CollapsedDims : wick::CollapsedDims<static_cast<int>(N)> {
  using Base = wick::CollapsedDims<static_cast<int>(N)>;
  using Base::Base;
  using typename Base::Dim;

  /// Calls body(strided index, start) for pieces that kernels can count: below 2^31 elements each.
  /// If an element takes `threads` threads, a piece also stays below the 2^32 threads that AMD's
  /// drivers launch at once.
  template <class F>
  void for_each_piece(int64_t threads, F&& body) const {
    constexpr int64_t kMost = int64_t{1} << 30;
    if (this->elems == 0) return;
    piece(this->dims, this->start, std::clamp<int64_t>(2 * kMost / threads, 1, kMost), body);
  }
  template <class F>
  void for_each_piece(F&& body) const {
    for_each_piece(1, body);
  }

 private:
  template <class F>
  static void piece(DimList<Dim> dims, std::array<int64_t, N> start, int64_t most, F& body) {
    int64_t inner = 1;  // elements of all dims but the outermost
    for (size_t d = 1; d < dims.size(); ++d) inner *= dims[d].size;
    const int64_t outer = dims.empty() ? 1 : dims[0].size;
    if (!dims.empty() && inner > most) {
      const Dim first = dims[0];
      DimList<Dim> rest = dims;
      rest.erase(rest.begin());
      for (int64_t i = 0; i < outer; ++i) {
        piece(rest, start, most, body);
        for (size_t k = 0; k < N; ++k) start[k] += first.stride[k];
      }
      return;
    }
    const int64_t step = std::max<int64_t>(most / inner, 1);
    for (int64_t done = 0; done < outer; done += step) {
      const int64_t now = std::min(step, outer - done);
      if (!dims.empty()) dims[0].size = now;
      body(strided_index_of(dims), start);
      if (!dims.empty()) {
        for (size_t k = 0; k < N; ++k) start[k] += dims[0].stride[k] * now;
      }
    }
  }

  static StridedIndex<N> strided_index_of(const DimList<Dim>& dims) {
    StridedIndex<N> strided;
    for (const Dim& d : dims) {
      strided.size[strided.rank] = Divider(static_cast<uint32_t>(d.size));
      strided.elems *= static_cast<uint32_t>(d.size);
      for (size_t k = 0; k < N; ++k) strided.stride[k][strided.rank] = d.stride[k];
      ++strided.rank;
    }
    bool even = dims.size() == 1 && dims[0].stride[0] == static_cast<uint32_t>(dims[0].stride[0]);
    for (size_t k = 1; k < N && even; ++k) even = dims[0].stride[k] == dims[0].stride[0];
    if (even) strided.step = static_cast<uint32_t>(dims[0].stride[0]);
    return strided;
  }
};

/// The collapsed dims of layouts of one shape: all of their dims, or those in the bit mask `dims`.
template <uint32_t N>
CollapsedDims<N> collapse(const std::array<const Layout*, N>& layouts, uint32_t dims = ~0u) {
  return CollapsedDims<N>(layouts, dims);
}

/// The Access of operand k: dim `along` is the run. Without it all dims say where runs begin.
template <uint32_t N>
Access access_of(const CollapsedDims<N>& collapsed, size_t k, const void* data, int64_t elem_bytes,
                 size_t along = SIZE_MAX) {
  Access access(data, elem_bytes, collapsed.start[k]);
  for (size_t d = 0; d < collapsed.dims.size(); ++d) {
    const auto& dim = collapsed.dims[d];
    if (d == along) {
      access.run(dim.size, dim.stride[k]);
    } else {
      access.dim(dim.size, dim.stride[k]);
    }
  }
  return access;
}

/// The Access of a view, whose last dim is the run.
inline Access access_of(const ConstView& view) {
  const Layout& layout = view.layout;
  Access access(view.data, view.dtype, layout.offset());
  const int last = layout.rank() - 1;
  for (int d = 0; d < last; ++d) access.dim(layout.shape()[d], layout.stride(d));
  if (last >= 0) access.run(layout.shape()[last], layout.stride(last));
  return access;
}

/// A pointer `elems` elements of a real dtype further.
template <class P>
P* advance(P* data, DType dtype, int64_t elems) {
  using Byte = std::conditional_t<std::is_const_v<P>, const char, char>;
  return static_cast<Byte*>(data) + elems * info(dtype).block_bytes;
}

}  // namespace wick::gpu
