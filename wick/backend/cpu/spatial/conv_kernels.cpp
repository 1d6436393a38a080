#include "wick/backend/cpu/spatial/conv_kernels.h"

#include "wick/backend/cpu/linear/simd.h"

// The inner loops of convolutions over a slab: panels for the products of gemm_kernels.cpp, and
// sums that read the slab where it lies, for few rows of weights (groups, depthwise).

namespace wick::cpu::WICK_ISA {
namespace {

using i64 = int64_t;
constexpr i64 kLineBytes = 64;
template <class T>
constexpr i64 kLine = kLineBytes / static_cast<i64>(sizeof(T));

/// B's panels from the slab: for each k as many whole lines as the panel has pieces, in the order
/// of the lanes; what one writes too much the next one overwrites, and the first of the next k.
/// Bytes: reads and writes a line for each piece.
template <class T>
void panels(const PanelArgs& p) {
  const T* slab = static_cast<const T*>(p.slab);
  T* panel = static_cast<T*>(p.panels);
  for (i64 q = 0; q < p.panels_count; ++q, panel += p.panel_stride) {
    const PanelPiece* pieces = p.pieces + p.first[q];
    const i64 count = p.first[q + 1] - p.first[q];
    if (count == 1) {
      const T* from = slab + pieces[0].base;
      for (i64 k = 0; k < p.k; ++k) {
        __builtin_memcpy(panel + k * kLine<T>, from + p.offsets[k], kLineBytes);
      }
    } else if (count == 2) {
      const T* from = slab + pieces[0].base;
      const T* second = slab + pieces[1].base;
      const i64 lane = pieces[1].lane;
      for (i64 k = 0; k < p.k; ++k) {
        __builtin_memcpy(panel + k * kLine<T>, from + p.offsets[k], kLineBytes);
        __builtin_memcpy(panel + k * kLine<T> + lane, second + p.offsets[k], kLineBytes);
      }
    } else {
      for (i64 k = 0; k < p.k; ++k) {
        T* to = panel + k * kLine<T>;
        const T* from = slab + p.offsets[k];
        for (i64 i = 0; i < count; ++i) {
          __builtin_memcpy(to + pieces[i].lane, from + pieces[i].base, kLineBytes);
        }
      }
    }
  }
}

/// MR rows by NV registers of pixels: an output is one chain over k.
template <class T, int MR, int NV>
WICK_FN void direct_tile(const DirectArgs& d, const T* w, T* out, i64 j) {
  using S = Simd<T>;
  const T* slab = static_cast<const T*>(d.slab) + j;
  typename S::V acc[MR][NV];
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      acc[r][v] = d.resume ? S::load(out + r * d.out_stride + j + v * S::kLanes) : typename S::V{};
    }
  }
  for (i64 k = 0; k < d.k; ++k) {
    const T* from = slab + d.offsets[k];
    typename S::V x[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) x[v] = S::load(from + v * S::kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r) {
      const typename S::V wv = S::broadcast(w[r * d.w_stride + k]);
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) acc[r][v] = S::fma(wv, x[v], acc[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      S::store(out + r * d.out_stride + j + v * S::kLanes, acc[r][v]);
    }
  }
}

template <class T, int MR>
void direct_rows(const DirectArgs& d, i64 row) {
  constexpr int kLanes = Simd<T>::kLanes;
  // As many registers as there are, less those of x and a weight.
#if defined(__AVX512F__)
  constexpr int kMost = MR <= 2 ? 8 : MR == 4 ? 4 : 2;
#else
  constexpr int kMost = MR == 1 ? 4 : MR == 2 ? 4 : MR == 4 ? 2 : 1;
#endif
  const T* w = static_cast<const T*>(d.w) + row * d.w_stride;
  T* out = static_cast<T*>(d.out) + row * d.out_stride;
  i64 j = 0;
  const i64 n = (d.n + kLine<T> - 1) / kLine<T> * kLine<T>;
  for (; j + kMost * kLanes <= n; j += kMost * kLanes) direct_tile<T, MR, kMost>(d, w, out, j);
  if constexpr (kMost > 4) {
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) direct_tile<T, MR, 4>(d, w, out, j);
  }
  if constexpr (kMost > 2) {
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) direct_tile<T, MR, 2>(d, w, out, j);
  }
  for (; j < n; j += kLanes) direct_tile<T, MR, 1>(d, w, out, j);
}

template <class T>
void direct(const DirectArgs& d) {
  i64 row = 0;
  for (; row + 8 <= d.rows; row += 8) direct_rows<T, 8>(d, row);
  if (row + 4 <= d.rows) direct_rows<T, 4>(d, row), row += 4;
  if (row + 2 <= d.rows) direct_rows<T, 2>(d, row), row += 2;
  if (row < d.rows) direct_rows<T, 1>(d, row);
}

/// Sixteen lanes whatever the registers, so that every instruction set has the same order.
template <class T>
struct Lanes {
  static constexpr int kCount = kDotLanes / Simd<T>::kLanes;
  typename Simd<T>::V v[kCount];

  WICK_FN void load(const T* p) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) v[i] = Simd<T>::load(p + i * Simd<T>::kLanes);
  }
  WICK_FN void store(T* p) const {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) Simd<T>::store(p + i * Simd<T>::kLanes, v[i]);
  }
  WICK_FN void add_product(const Lanes& a, const Lanes& b) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) v[i] = Simd<T>::fma(a.v[i], b.v[i], v[i]);
  }
};

template <class T, int NT>
WICK_FN void dot_terms(const DotArgs& d, i64 term) {
  const T* g = static_cast<const T*>(d.g);
  const T* slab = static_cast<const T*>(d.slab);
  T* sums = static_cast<T*>(d.sums) + term * kDotLanes;
  Lanes<T> acc[NT];
#pragma GCC unroll 4
  for (int t = 0; t < NT; ++t) acc[t].load(sums + t * kDotLanes);
  const i64 whole = d.n / kDotLanes * kDotLanes;
  for (i64 j = 0; j < whole; j += kDotLanes) {
    Lanes<T> gv;
    gv.load(g + j);
#pragma GCC unroll 4
    for (int t = 0; t < NT; ++t) {
      Lanes<T> x;
      x.load(slab + d.offsets[term + t] + j);
      acc[t].add_product(gv, x);
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < NT; ++t) acc[t].store(sums + t * kDotLanes);
  for (int t = 0; t < NT; ++t) {
    const T* x = slab + d.offsets[term + t];
    for (i64 j = whole; j < d.n; ++j) {
      T* sum = sums + t * kDotLanes + (j - whole);
#if defined(__FMA__) || defined(__aarch64__)
      *sum =
          sizeof(T) == 4
              ? static_cast<T>(__builtin_fmaf(static_cast<float>(g[j]), static_cast<float>(x[j]),
                                              static_cast<float>(*sum)))
              : static_cast<T>(__builtin_fma(static_cast<double>(g[j]), static_cast<double>(x[j]),
                                             static_cast<double>(*sum)));
#else
      *sum = g[j] * x[j] + *sum;
#endif
    }
  }
}

template <class T>
void dots(const DotArgs& d) {
  i64 t = 0;
  for (; t + 4 <= d.k; t += 4) dot_terms<T, 4>(d, t);
  for (; t < d.k; ++t) dot_terms<T, 1>(d, t);
}

}  // namespace

constexpr ConvKernels conv_kernels = {
    {panels<float>, panels<double>}, {direct<float>, direct<double>}, {dots<float>, dots<double>}};

}  // namespace wick::cpu::WICK_ISA
