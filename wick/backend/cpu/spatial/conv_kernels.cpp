#include "wick/backend/cpu/spatial/conv_kernels.h"

#include "wick/backend/cpu/simd/vec16.h"

// The inner loops of convolutions over a slab (patches.h): packing panels for gemm_kernels.cpp, and
// sums that read the slab in place, for few rows of weights (groups, depthwise).

namespace wick::cpu::WICK_ISA {
namespace {

using i64 = int64_t;
constexpr i64 kLineBytes = 64;
template <class T>
constexpr i64 kLine = kLineBytes / static_cast<i64>(sizeof(T));

/// to[i] = from[i · stride] in the compute type, for i in [0, n).
template <class S, class T>
WICK_FN void widen_line(const S* from, i64 stride, i64 n, T* to) {
  i64 i = 0;
  if (stride == 1) {
#if defined(__AVX512F__)
    if constexpr (math::kSame<S, float>) {
      for (; i + 16 <= n; i += 16) _mm512_storeu_ps(to + i, _mm512_loadu_ps(from + i));
      const auto rest = static_cast<__mmask16>((1u << (n - i)) - 1);
      _mm512_mask_storeu_ps(to + i, rest, _mm512_maskz_loadu_ps(rest, from + i));
      return;
    }
#endif
    widen_run(to, from, n);
  } else if (stride == 2) {
#if defined(__AVX512F__)
    if constexpr (math::kSame<S, float>) {
      // Every second element of two registers. The last element may not exist, so it isn't read.
      const __m512i even =
          _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      for (; i + 16 <= n; i += 16) {
        const __m512 low = _mm512_loadu_ps(from + 2 * i);
        const __m512 high = _mm512_maskz_loadu_ps(0x7fff, from + 2 * i + 16);
        _mm512_storeu_ps(to + i, _mm512_permutex2var_ps(low, even, high));
      }
    }
#endif
    for (; i < n; ++i) to[i] = widen_to<T>(from[2 * i]);
  } else {
    for (; i < n; ++i) to[i] = widen_to<T>(from[i * stride]);
  }
}

/// Fills rows of a slab. Reads and writes each element once.
template <class S, class T>
void fill_rows(const FillArgs& f) {
  const S* from = static_cast<const S*>(f.from);
  T* to = static_cast<T*>(f.to);
  for (i64 row = 0; row < f.rows; ++row, from += f.row_stride, to += f.pitch) {
    for (i64 i = 0; i < f.left; ++i) to[i] = T{};
    widen_line<S, T>(from, f.stride, f.count, to + f.left);
    for (i64 i = 0; i < f.right; ++i) to[f.left + f.count + i] = T{};
  }
}

template <class S, class T>
void store_rows(const StoreArgs& s) {
  const T* from = static_cast<const T*>(s.from);
  S* to = static_cast<S*>(s.to);
  for (i64 row = 0; row < s.rows; ++row, from += s.pitch, to += s.row_stride) {
    if (s.stride != 1) {
      for (i64 i = 0; i < s.count; ++i) to[i * s.stride] = narrow<S>(from[i]);
      continue;
    }
#if defined(__AVX512F__)
    if constexpr (math::kSame<S, float>) {
      i64 i = 0;
      for (; i + 16 <= s.count; i += 16) _mm512_storeu_ps(to + i, _mm512_loadu_ps(from + i));
      const auto rest = static_cast<__mmask16>((1u << (s.count - i)) - 1);
      _mm512_mask_storeu_ps(to + i, rest, _mm512_maskz_loadu_ps(rest, from + i));
      continue;
    }
#endif
    narrow_run(to, from, s.count);
  }
}

typedef float FourFloats __attribute__((vector_size(16), aligned(4), may_alias));

/// to[i] = from[i * stride] for a few floats. Ascending and descending, as the taps of a transposed
/// convolution are, four at a time.
WICK_FN void copy_few(const float* from, i64 stride, i64 count, float* to) {
  i64 i = 0;
  if (stride == 1) {
    for (; i + 4 <= count; i += 4) {
      *reinterpret_cast<FourFloats*>(to + i) = *reinterpret_cast<const FourFloats*>(from + i);
    }
  } else if (stride == -1) {
    for (; i + 4 <= count; i += 4) {
      const FourFloats v = *reinterpret_cast<const FourFloats*>(from - i - 3);
      *reinterpret_cast<FourFloats*>(to + i) = __builtin_shufflevector(v, v, 3, 2, 1, 0);
    }
  }
  for (; i < count; ++i) to[i] = from[i * stride];
}

/// Calls copy for all runs of weights. Runs are as short as a kernel, so every instruction counts.
/// Reads and writes each weight once.
template <class F>
WICK_FN void for_filter_runs(const FilterArgs& f, const F& copy) {
  constexpr i64 kAhead = 8;  // in channels, which may be pages apart
  i64 line = 0;
  const float* channel = f.from;
  for (i64 i = 0; i < f.runs; ++i) {
    const float* from = channel + line * f.line_stride;
    float* to = f.to + i * f.count;
    for (i64 r = 0; r < f.rows; ++r, to += f.to_stride) {
      __builtin_prefetch(from + f.starts[r] + kAhead * f.channel_stride);
      copy(from + f.starts[r], to);
    }
    if (++line < f.lines) continue;
    line = 0;
    channel += f.channel_stride;
  }
}

void filters(const FilterArgs& f) {
#if defined(__AVX512F__)
  if (f.count <= 16 && (f.stride == 1 || f.stride == -1)) {
    const auto mask = static_cast<__mmask16>((1u << f.count) - 1);
    const i64 back = f.stride < 0 ? f.count - 1 : 0;
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i turned = _mm512_sub_epi32(_mm512_set1_epi32(static_cast<int>(back)), lanes);
    const __m512i order = f.stride < 0 ? turned : lanes;
    return for_filter_runs(f, [&](const float* from, float* to) {
      const __m512 v = _mm512_maskz_loadu_ps(mask, from - back);
      _mm512_mask_storeu_ps(to, mask, _mm512_permutexvar_ps(order, v));
    });
  }
#endif
  const i64 stride = f.stride, count = f.count;
  if (count == 9) {  // 3×3
    return for_filter_runs(f, [&](const float* from, float* to) { copy_few(from, stride, 9, to); });
  }
  for_filter_runs(f, [&](const float* from, float* to) { copy_few(from, stride, count, to); });
}

/// Packs panels from the slab. For each k, copies a whole row of the panel for each piece, in the
/// order of the lanes. A copy may write beyond its piece; the next piece, or the next k, overwrites
/// that. Bytes: reads and writes a row of the panel for each piece.
template <class T, i64 kElems>
void panel_lines(const PanelArgs& p) {
  constexpr size_t kBytes = kElems * sizeof(T);
  const T* slab = static_cast<const T*>(p.slab);
  T* panel = static_cast<T*>(p.panels);
  for (i64 q = 0; q < p.panels_count; ++q, panel += p.panel_stride) {
    const PanelPiece* pieces = p.pieces + p.first[q];
    const i64 count = p.first[q + 1] - p.first[q];
    if (count == 1) {
      const T* from = slab + pieces[0].base;
      for (i64 k = 0; k < p.k; ++k) {
        __builtin_memcpy(panel + k * kElems, from + p.offsets[k], kBytes);
      }
    } else if (count == 2) {
      const T* from = slab + pieces[0].base;
      const T* second = slab + pieces[1].base;
      const i64 lane = pieces[1].lane;
      for (i64 k = 0; k < p.k; ++k) {
        __builtin_memcpy(panel + k * kElems, from + p.offsets[k], kBytes);
        __builtin_memcpy(panel + k * kElems + lane, second + p.offsets[k], kBytes);
      }
    } else {
      for (i64 k = 0; k < p.k; ++k) {
        T* to = panel + k * kElems;
        const T* from = slab + p.offsets[k];
        for (i64 i = 0; i < count; ++i) {
          __builtin_memcpy(to + pieces[i].lane, from + pieces[i].base, kBytes);
        }
      }
    }
  }
}

template <class T>
void panels(const PanelArgs& p) {
  if (p.line == 4) return panel_lines<T, 4>(p);
  if (p.line == 8) return panel_lines<T, 8>(p);
  panel_lines<T, 16>(p);
}

#if defined(__AVX512F__)
/// Packs panels of pairs of terms, the first in the lower half, from a slab of bf16.
void pair_panels(const PanelArgs& p) {
  constexpr i64 kElems = 16;
  const auto* slab = static_cast<const uint16_t*>(p.slab);
  auto* panel = static_cast<uint32_t*>(p.panels);
  const auto load = [](const uint16_t* from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  };
  const i64 whole = p.half ? p.k - 1 : p.k;
  for (i64 q = 0; q < p.panels_count; ++q, panel += p.panel_stride) {
    const PanelPiece* pieces = p.pieces + p.first[q];
    const i64 count = p.first[q + 1] - p.first[q];
    for (i64 k = 0; k < whole; ++k) {
      const uint16_t* first = slab + p.offsets[2 * k];
      const uint16_t* second = slab + p.offsets[2 * k + 1];
      for (i64 i = 0; i < count; ++i) {
        const __m512i high = _mm512_slli_epi32(load(second + pieces[i].base), 16);
        _mm512_storeu_si512(panel + k * kElems + pieces[i].lane,
                            _mm512_or_si512(load(first + pieces[i].base), high));
      }
    }
    for (i64 i = 0; p.half && i < count; ++i) {
      _mm512_storeu_si512(panel + whole * kElems + pieces[i].lane,
                          load(slab + p.offsets[2 * whole] + pieces[i].base));
    }
  }
}
#endif

/// MR rows times NV registers of pixels. An output is one chain over k.
template <class T, int MR, int NV>
WICK_FN void direct_tile(const DirectArgs& d, const T* w, T* out, i64 j) {
  const T* slab = static_cast<const T*>(d.slab) + j;
  Vec<T> acc[MR][NV];
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      acc[r][v] = d.resume ? load(out + r * d.out_stride + j + v * kLanes<T>) : Vec<T>{};
    }
  }
  for (i64 k = 0; k < d.k; ++k) {
    const T* from = slab + d.offsets[k];
    Vec<T> x[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) x[v] = load(from + v * kLanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r) {
      const Vec<T> wv = splat(w[r * d.w_stride + k]);
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) acc[r][v] = multiply_add(wv, x[v], acc[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      store(out + r * d.out_stride + j + v * kLanes<T>, acc[r][v]);
    }
  }
}

template <class T, int MR>
void direct_rows(const DirectArgs& d, i64 row) {
  // As many accumulators as fit the registers, besides those for x and a weight.
#if defined(__AVX512F__)
  constexpr int kMost = MR <= 2 ? 8 : MR == 4 ? 4 : 2;
#else
  constexpr int kMost = MR == 1 ? 4 : MR == 2 ? 4 : MR == 4 ? 2 : 1;
#endif
  const T* w = static_cast<const T*>(d.w) + row * d.w_stride;
  T* out = static_cast<T*>(d.out) + row * d.out_stride;
  i64 j = 0;
  // All rows of a plot in one loop: results between the rows are discarded.
  const i64 whole = (d.plot_rows - 1) * d.pitch + d.cols;
  const i64 n = (whole + kLine<T> - 1) / kLine<T> * kLine<T>;
  for (; j + kMost * kLanes<T> <= n; j += kMost * kLanes<T>)
    direct_tile<T, MR, kMost>(d, w, out, j);
  if constexpr (kMost > 4) {
    for (; j + 4 * kLanes<T> <= n; j += 4 * kLanes<T>) direct_tile<T, MR, 4>(d, w, out, j);
  }
  if constexpr (kMost > 2) {
    for (; j + 2 * kLanes<T> <= n; j += 2 * kLanes<T>) direct_tile<T, MR, 2>(d, w, out, j);
  }
  for (; j < n; j += kLanes<T>) direct_tile<T, MR, 1>(d, w, out, j);
}

template <class T>
void direct(const DirectArgs& d) {
  i64 row = 0;
  for (; row + 8 <= d.rows; row += 8) direct_rows<T, 8>(d, row);
  if (row + 4 <= d.rows) direct_rows<T, 4>(d, row), row += 4;
  if (row + 2 <= d.rows) direct_rows<T, 2>(d, row), row += 2;
  if (row < d.rows) direct_rows<T, 1>(d, row);
}

/// Loads sixteen numbers, or the first n of them.
template <class T>
WICK_FN Vec16<T> load_lanes(const T* p, bool all, i64 n) {
  return all ? load_16(p) : load_16_partial(p, n);
}

/// Calls step(j, all, n) for each sixteen elements of a row of n; `all` is a constant in the
/// inlined code.
template <class F>
WICK_FN void for_lines(i64 n, const F& step) {
  i64 j = 0;
  for (; j + kDotLanes <= n; j += kDotLanes) step(j, true, i64{kDotLanes});
  if (j < n) step(j, false, n - j);
}

template <class T, int NT>
WICK_FN void dot_terms(const DotArgs& d, i64 term) {
  const T* g = static_cast<const T*>(d.g);
  const T* slab = static_cast<const T*>(d.slab);
  T* sums = static_cast<T*>(d.sums) + term * kDotLanes;
  Vec16<T> acc[NT];
#pragma GCC unroll 9
  for (int t = 0; t < NT; ++t) acc[t] = load_16(sums + t * kDotLanes);
  for (i64 row = 0; row < d.rows; ++row, g += d.g_stride, slab += d.pitch) {
    for_lines(
        d.n, [&](i64 j, bool all, i64 n) __attribute__((always_inline)) {
          const Vec16<T> gv = load_lanes(g + j, all, n);
#pragma GCC unroll 9
          for (int t = 0; t < NT; ++t) {
            const Vec16<T> x = load_lanes(slab + d.offsets[term + t] + j, all, n);
            acc[t] = multiply_add(gv, x, acc[t]);
          }
        });
  }
#pragma GCC unroll 9
  for (int t = 0; t < NT; ++t) store_16(sums + t * kDotLanes, acc[t]);
}

#if defined(__AVX512F__)
/// Whether nine terms are the taps of a dense 3×3 kernel.
WICK_FN bool is_3x3(const i64* offsets, i64 pitch) {
  for (i64 t = 1; t < 9; ++t) {
    if (offsets[t] != offsets[0] + t / 3 * pitch + t % 3) return false;
  }
  return true;
}

/// The sums of those nine terms with the same order of additions. Each row of the slab is loaded
/// once and used with three rows of g: loads that cross cache lines limit the speed.
template <class T>
WICK_FN void dot_3x3(const DotArgs& d, i64 term) {
  const T* slab = static_cast<const T*>(d.slab) + d.offsets[term];
  T* sums = static_cast<T*>(d.sums) + term * kDotLanes;
  Vec16<T> acc[3][3];
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) acc[t / 3][t % 3] = load_16(sums + t * kDotLanes);
  const i64 g_stride = d.g_stride;
  const auto add = [&](const T* from, const T* g, i64 first, i64 last)
      __attribute__((always_inline)) {
    for_lines(
        d.n, [&](i64 j, bool all, i64 n) __attribute__((always_inline)) {
          Vec16<T> x[3];
#pragma GCC unroll 3
          for (int tx = 0; tx < 3; ++tx) x[tx] = load_lanes(from + j + tx, all, n);
#pragma GCC unroll 3
          for (int ty = 0; ty < 3; ++ty) {
            if (ty < first || ty > last) continue;
            const Vec16<T> gv = load_lanes(g - ty * g_stride + j, all, n);
#pragma GCC unroll 3
            for (int tx = 0; tx < 3; ++tx) acc[ty][tx] = multiply_add(gv, x[tx], acc[ty][tx]);
          }
        });
  };
  for (i64 line = 0; line < d.rows + 2; ++line, slab += d.pitch) {
    const T* g = static_cast<const T*>(d.g) + line * g_stride;
    if (line >= 2 && line < d.rows) {
      add(slab, g, 0, 2);
    } else {  // some rows of g don't exist
      add(slab, g, line < d.rows ? 0 : line - d.rows + 1, line < 2 ? line : 2);
    }
  }
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) store_16(sums + t * kDotLanes, acc[t / 3][t % 3]);
}
#endif

template <class T>
void dots(const DotArgs& d) {
  i64 t = 0;
#if defined(__AVX512F__)
  for (; t + 9 <= d.k; t += 9) {
    if (is_3x3(d.offsets + t, d.pitch)) {
      dot_3x3<T>(d, t);
    } else {
      dot_terms<T, 9>(d, t);
    }
  }
#endif
  for (; t + 4 <= d.k; t += 4) dot_terms<T, 4>(d, t);
  for (; t < d.k; ++t) dot_terms<T, 1>(d, t);
}

template <class S, class T>
constexpr void add_dtype(ConvKernels& table, DType dtype) {
  table.fill[static_cast<size_t>(dtype)] = fill_rows<S, T>;
  table.store[static_cast<size_t>(dtype)] = store_rows<S, T>;
}

constexpr ConvKernels make_table() {
  ConvKernels table{};
  table.fill_raw = fill_rows<uint16_t, uint16_t>;
#if defined(__AVX512F__)
  table.pair_panels = pair_panels;
#endif
  table.filters = filters;
  table.panels[0] = panels<float>;
  table.panels[1] = panels<double>;
  table.direct[0] = direct<float>;
  table.direct[1] = direct<double>;
  table.dots[0] = dots<float>;
  table.dots[1] = dots<double>;
  add_dtype<math::bf16, float>(table, DType::bf16);
  add_dtype<math::f16, float>(table, DType::f16);
  add_dtype<float, float>(table, DType::f32);
  add_dtype<double, double>(table, DType::f64);
  add_dtype<math::f8e4m3, float>(table, DType::f8e4m3);
  return table;
}

}  // namespace

constexpr ConvKernels conv_kernels = make_table();
static_assert(complete(conv_kernels));

}  // namespace wick::cpu::WICK_ISA
