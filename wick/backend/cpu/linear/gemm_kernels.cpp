#include "wick/backend/cpu/linear/column_dots.h"
#include "wick/backend/cpu/linear/gemm.h"
#include "wick/backend/cpu/linear/pack_pairs.h"
#include "wick/backend/cpu/linear/pair_dots.h"
#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/simd/transpose.h"

// The gemm kernels for floats and integers.
//
// Tile: C[MR, NP·64 bytes] in registers. For each k: loads of B's panels, MR broadcasts from A's
// panel, MR·NP·(64 / vector) fused multiply-adds. An output is one accumulator from first to last
// k. Per k a tile reads MR·4 bytes of A from L1 (every tile of the row uses that panel) and NP·64
// bytes of B from L2.

namespace wick::cpu::WICK_ISA {
namespace {

using i64 = int64_t;

// Registers: MR·NP·kVectors accumulators, B's vectors, one broadcast.
#if defined(__AVX512F__)
constexpr int kTileRows = 14, kRowPanel = 16, kTilePanels = 2;  // 28 + 2 + 1 of 32
#elif defined(__AVX2__)
constexpr int kTileRows = 6, kRowPanel = 8, kTilePanels = 1;  // 12 + 2 + 1 of 16
#elif defined(__aarch64__)
constexpr int kTileRows = 6, kRowPanel = 8, kTilePanels = 1;  // 24 + 4 + 1 of 32
#else
constexpr int kTileRows = 2, kRowPanel = 4, kTilePanels = 1;  // 8 + 4 + 2 of 16
#endif
constexpr int kPanelBytes = 64;

template <class T>
constexpr int kColPanel = kPanelBytes / static_cast<int>(sizeof(T));

template <class T, int MR, int NP>
void tile(i64 k, const T* a, const T* b, i64 b_panel_stride, T* c, i64 c_stride, bool resume) {
  constexpr int kVectors = kPanelBytes / kVectorBytes;  // of a panel
  Vec<T> acc[MR][NP * kVectors];
  if (resume) {
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < NP * kVectors; ++j) acc[i][j] = load(c + i * c_stride + j * kLanes<T>);
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < NP * kVectors; ++j) acc[i][j] = Vec<T>{};
    }
  }
  for (i64 p = 0; p < k; ++p) {
    Vec<T> bv[NP * kVectors];
#pragma GCC unroll 2
    for (int q = 0; q < NP; ++q) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        bv[q * kVectors + j] = load(b + q * b_panel_stride + j * kLanes<T>);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
      const Vec<T> av = splat(a[i]);
#pragma GCC unroll 8
      for (int j = 0; j < NP * kVectors; ++j) acc[i][j] = multiply_add(av, bv[j], acc[i][j]);
    }
    a += kRowPanel;
    b += kColPanel<T>;
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < NP * kVectors; ++j) store(c + i * c_stride + j * kLanes<T>, acc[i][j]);
  }
}

#if defined(__AVX512F__)
// A tile of pairs of bf16: two products per lane and step. vdpbf16ps flushes denormal operands and
// results to zero, and rounds each of its two additions to nearest. kRounds: c is bf16. One
// instruction rounds the sums; it would flush denormals, which sums never are.
template <class T, int MR, int NP, bool kRounds>
__attribute__((target("avx512bf16"))) void tile_bf16(i64 k, const T* a, const T* b,
                                                     i64 b_panel_stride, T* c, i64 c_stride,
                                                     bool resume) {
  __m512 acc[MR][NP];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < NP; ++j) {
      const bool from_c = resume && !kRounds;
      acc[i][j] = from_c ? _mm512_loadu_ps(c + i * c_stride + j * 16) : _mm512_setzero_ps();
    }
  }
  for (i64 p = 0; p < k; ++p) {
    __m512bh bv[NP];
#pragma GCC unroll 2
    for (int j = 0; j < NP; ++j) {
      bv[j] = reinterpret_cast<__m512bh>(_mm512_loadu_ps(b + j * b_panel_stride));
    }
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
      const __m512bh av = reinterpret_cast<__m512bh>(_mm512_set1_ps(a[i]));
#pragma GCC unroll 2
      for (int j = 0; j < NP; ++j) acc[i][j] = _mm512_dpbf16_ps(acc[i][j], av, bv[j]);
    }
    a += kRowPanel;
    b += kColPanel<T>;
  }
  if constexpr (kRounds) {
    auto* out = reinterpret_cast<uint16_t*>(c);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i, out += c_stride) {
      if constexpr (NP == 2) {
        _mm512_storeu_si512(out,
                            reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(acc[i][1], acc[i][0])));
      } else {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                            reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(acc[i][0])));
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < NP; ++j) _mm512_storeu_ps(c + i * c_stride + j * 16, acc[i][j]);
  }
}
#endif

template <class T>
using Tile = void (*)(i64, const T*, const T*, i64, T*, i64, bool);

/// Which tile functions Tiles holds: of 1, 2, 4, … kTileRows rows by 1 … kTilePanels panels.
struct Fma {
  template <class T, int MR, int NP>
  static constexpr Tile<T> get() {
    return tile<T, MR, NP>;
  }
};
#if defined(__AVX512F__)
template <bool kRounds>
struct Bf16Dot {
  template <class T, int MR, int NP>
  static constexpr Tile<T> get() {
    return tile_bf16<T, MR, NP, kRounds>;
  }
};
#endif

constexpr int kTileKinds = kTileRows / 2 + 1;
template <class T>
struct Tiles {
  Tile<T> at[kTileKinds][kTilePanels];
  int rows[kTileKinds];
};

template <class Kind, class T, int I>
constexpr void fill_tiles(Tiles<T>& tiles) {
  constexpr int kRows = I == 0 ? 1 : 2 * I;
  tiles.rows[I] = kRows;
  tiles.at[I][0] = Kind::template get<T, kRows, 1>();
  if constexpr (kTilePanels == 2) tiles.at[I][1] = Kind::template get<T, kRows, 2>();
  if constexpr (I + 1 < kTileKinds) fill_tiles<Kind, T, I + 1>(tiles);
}
template <class Kind, class T>
constexpr Tiles<T> make_tiles() {
  Tiles<T> tiles{};
  fill_tiles<Kind, T, 0>(tiles);
  return tiles;
}

/// Prefetches the cache lines of C of the tile at row i and column j, which is computed next.
template <class T>
WICK_FN void prefetch_tile(const MultiplyArgs& m, i64 i, i64 j) {
  constexpr i64 kTileCols = kTilePanels * kColPanel<T>;
  const i64 end = m.rows - i < kTileRows ? m.rows : i + kTileRows;
  for (; i < end; ++i) {
    const T* c = static_cast<const T*>(m.c) + i * m.c_row_stride + j;
    for (i64 s = 0; s < kTileCols; s += kColPanel<T>) __builtin_prefetch(c + s, 1);
  }
}

/// Prefetches a share of A's next panel: each tile of a row of tiles prefetches an equal share;
/// this one starts at column j.
template <class T>
WICK_FN void prefetch_rows(const MultiplyArgs& m, i64 i, i64 j) {
  constexpr i64 kTileCols = kTilePanels * kColPanel<T>, kLine = 64 / sizeof(T);
  if (i + kTileRows >= m.rows) return;
  const i64 lines = m.k * kRowPanel / kLine;
  const T* next = static_cast<const T*>(m.a) + (i / kTileRows + 1) * m.a_panel_stride;
  const i64 tiles = (m.cols + kTileCols - 1) / kTileCols, tile = j / kTileCols;
  for (i64 l = lines * tile / tiles; l < lines * (tile + 1) / tiles; ++l) {
    __builtin_prefetch(next + l * kLine, 0, 2);
  }
}

/// Computes one tile, through a buffer if it exceeds the edge of C.
template <class T>
WICK_FN void edge_or_tile(const Tiles<T>& tiles, const MultiplyArgs& m, i64 i, i64 j) {
  constexpr i64 kTileCols = kTilePanels * kColPanel<T>;
  const i64 rows = m.rows - i < kTileRows ? m.rows - i : kTileRows;
  const i64 cols = m.cols - j < kTileCols ? m.cols - j : kTileCols;
  const i64 kind = (rows + 1) / 2 - (rows == 1 ? 1 : 0);
  const i64 panels = (cols + kColPanel<T> - 1) / kColPanel<T>;
  const int tile_rows = tiles.rows[kind];
  const Tile<T> run = tiles.at[kind][panels - 1];
  const T* a = static_cast<const T*>(m.a) + i / kTileRows * m.a_panel_stride;
  const T* b = static_cast<const T*>(m.b) + j / kColPanel<T> * m.b_panel_stride;
  T* c = static_cast<T*>(m.c) + i * m.c_row_stride + j;
  if (rows == tile_rows && cols == panels * kColPanel<T>) {
    run(m.k, a, b, m.b_panel_stride, c, m.c_row_stride, m.resume);
    return;
  }
  alignas(64) T edge[kTileRows * kTileCols];
  if (m.resume) {
    for (i64 r = 0; r < tile_rows; ++r) {
      for (i64 s = 0; s < kTileCols; ++s) {
        edge[r * kTileCols + s] = r < rows && s < cols ? c[r * m.c_row_stride + s] : T{};
      }
    }
  }
  run(m.k, a, b, m.b_panel_stride, edge, kTileCols, m.resume);
  for (i64 r = 0; r < rows; ++r) {
    for (i64 s = 0; s < cols; ++s) c[r * m.c_row_stride + s] = edge[r * kTileCols + s];
  }
}

#if defined(__AVX512F__)
/// to[i] = from[i], sums of bf16_dot rounded to bf16.
__attribute__((target("avx512bf16"))) void store_dots(const void* from, void* to,
                                                      [[maybe_unused]] i64 stride, i64 n) {
  const float* at = static_cast<const float*>(from);
  math::bf16* out = static_cast<math::bf16*>(to);
  i64 i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m512bh both =
        _mm512_cvtne2ps_pbh(_mm512_loadu_ps(at + i + 16), _mm512_loadu_ps(at + i));
    _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(both));
  }
  for (; i < n; ++i) out[i] = narrow<math::bf16>(at[i]);
}

/// Tiles of finished sums are stored directly to a bf16 C; tiles that exceed its edge go through a
/// buffer.
void multiply_to_bf16(const MultiplyArgs& m) {
  static constexpr Tiles<float> kWide = make_tiles<Bf16Dot<false>, float>();
  static constexpr Tiles<float> kRounded = make_tiles<Bf16Dot<true>, float>();
  constexpr i64 kPanel = kColPanel<float>, kTileCols = kTilePanels * kPanel;
  for (i64 i = 0; i < m.rows; i += kTileRows) {
    const i64 rows = m.rows - i < kTileRows ? m.rows - i : kTileRows;
    const i64 kind = (rows + 1) / 2 - (rows == 1 ? 1 : 0);
    const float* a = static_cast<const float*>(m.a) + i / kTileRows * m.a_panel_stride;
    for (i64 j = 0; j < m.cols; j += kTileCols) {
      const i64 cols = m.cols - j < kTileCols ? m.cols - j : kTileCols;
      const i64 panels = (cols + kPanel - 1) / kPanel;
      const float* b = static_cast<const float*>(m.b) + j / kPanel * m.b_panel_stride;
      math::bf16* c = static_cast<math::bf16*>(m.c) + i * m.c_row_stride + j;
      if (rows == kRounded.rows[kind] && cols == panels * kPanel) {
        kRounded.at[kind][panels - 1](m.k, a, b, m.b_panel_stride, reinterpret_cast<float*>(c),
                                      m.c_row_stride, false);
        continue;
      }
      alignas(64) float edge[kTileRows * kTileCols];
      kWide.at[kind][panels - 1](m.k, a, b, m.b_panel_stride, edge, kTileCols, false);
      for (i64 r = 0; r < rows; ++r) {
        store_dots(edge + r * kTileCols, c + r * m.c_row_stride, 1, cols);
      }
    }
  }
}
#endif

/// C[rows, cols] = A panels · B panels, tile by tile. With wide tiles, a panel of A stays in L1
/// while those of B come from L2. Narrow tiles read more of B than of A: there a panel of B stays
/// in L1.
template <class Kind, class T>
void multiply(const MultiplyArgs& m) {
  static constexpr Tiles<T> kTiles = make_tiles<Kind, T>();
  constexpr i64 kTileCols = kTilePanels * kColPanel<T>;
  if constexpr (kTilePanels > 1) {
    for (i64 i = 0; i < m.rows; i += kTileRows) {
      for (i64 j = 0; j < m.cols; j += kTileCols) {
        const bool last = j + kTileCols >= m.cols;
        prefetch_tile<T>(m, last ? i + kTileRows : i, last ? 0 : j + kTileCols);
        prefetch_rows<T>(m, i, j);
        edge_or_tile(kTiles, m, i, j);
      }
    }
  } else {
    constexpr i64 kRowBlock = 24 * kTileRows;  // whose panels stay in L2
    for (i64 i0 = 0; i0 < m.rows; i0 += kRowBlock) {
      const i64 end = m.rows - i0 < kRowBlock ? m.rows : i0 + kRowBlock;
      for (i64 j = 0; j < m.cols; j += kTileCols) {
        for (i64 i = i0; i < end; i += kTileRows) {
          prefetch_tile<T>(m, i + kTileRows, j);
          edge_or_tile(kTiles, m, i, j);
        }
      }
    }
  }
}

/// Packs rows into panels [panel][k][W] of which the first R of each W are used. If rows are dense,
/// each k is copied as a run; if k is dense, words are transposed after widening; else elements are
/// gathered first.
template <class S, class T, int R, int W>
void pack(const PackArgs& args) {
  const S* data = static_cast<const S*>(args.data);
  T* panels = static_cast<T*>(args.panels);
  const auto start = [&](i64 row) {
    return data + (args.row_offsets != nullptr ? args.row_offsets[row] : row * args.row_stride);
  };
  if (args.row_offsets == nullptr && args.row_stride == 1 && args.k_stride != 1) {
    const i64 whole = args.rows / R;
    const i64 rest = args.rows % R;
    for (i64 p = 0; p < args.k; ++p) {
      const S* line = data + p * args.k_stride;
      T* to = panels + p * W;
      for (i64 q = 0; q < whole; ++q, line += R, to += args.panel_stride) {
        widen_run(to, line, R);
      }
      if (rest > 0) {
        for (i64 w = 0; w < W; ++w) to[w] = w < rest ? widen_to<T>(line[w]) : T{};
      }
    }
    return;
  }
  constexpr i64 kRun = 128;
  const i64 used = args.k < kRun ? args.k : kRun;
  alignas(64) T lines[W][kRun];
  for (i64 row = 0; row < args.rows; row += R, panels += args.panel_stride) {
    const i64 rows = args.rows - row < R ? args.rows - row : R;
    for (i64 w = rows; w < W; ++w) {
      for (i64 p = 0; p < used; ++p) lines[w][p] = T{};
    }
    const T* from[W];
    for (i64 w = 0; w < W; ++w) from[w] = lines[w];
    for (i64 p = 0; p < args.k; p += kRun) {
      const i64 n = args.k - p < kRun ? args.k - p : kRun;
      for (i64 w = 0; w < rows; ++w) {
        const S* line = start(row + w) + p * args.k_stride;
        if (args.k_stride != 1) {
          for (i64 i = 0; i < n; ++i) lines[w][i] = widen_to<T>(line[i * args.k_stride]);
        } else if constexpr (sizeof(S) == sizeof(T)) {
          from[w] = reinterpret_cast<const T*>(line);
        } else {
          widen_run(lines[w], line, n);
        }
      }
      if constexpr (sizeof(T) == 4) {
        const Word* words[W];
        for (i64 w = 0; w < W; ++w) words[w] = reinterpret_cast<const Word*>(from[w]);
        transpose_words<W>(words, n, reinterpret_cast<Word*>(panels + p * W));
      } else {
        for (i64 i = 0; i < n; ++i) {
          for (int w = 0; w < W; ++w) panels[(p + i) * W + w] = from[w][i];
        }
      }
    }
  }
}

template <class S, class T>
void load_row(const void* from, i64 stride, i64 n, void* to) {
  const S* at = static_cast<const S*>(from);
  T* out = static_cast<T*>(to);
  if (stride == 1) {
    widen_run(out, at, n);
  } else if (stride == 2) {  // for convolutions: a constant stride compiles to shuffles
    for (i64 i = 0; i < n; ++i) out[i] = widen_to<T>(at[i * 2]);
  } else {
    for (i64 i = 0; i < n; ++i) out[i] = widen_to<T>(at[i * stride]);
  }
}

template <class S, class T>
void store_row(const void* from, void* to, i64 stride, i64 n) {
  const T* at = static_cast<const T*>(from);
  S* out = static_cast<S*>(to);
  if (stride == 1) {
    narrow_run(out, at, n);
  } else {
    for (i64 i = 0; i < n; ++i) out[i * stride] = narrow<S>(at[i]);
  }
}

// gemm with few rows of x, 1 to kStripRows, reads b in place and once.

/// A register of b in the compute type.
template <class T, class S>
WICK_FN Vec<T> load_wide(const S* from) {
  if constexpr (kNarrow<S>) {
    return load(from);
  } else if constexpr (sizeof(S) == sizeof(T)) {
    return load(reinterpret_cast<const T*>(from));
  } else {
    alignas(64) T wide[kLanes<T>];
    widen_run(wide, from, kLanes<T>);
    return load(wide);
  }
}

// b is dense along its columns. For a strip of columns, the rows of b are processed eight at a
// time, in the order of k, while the strip's sums are loaded from L1 and stored once.
template <class S, class T, int C>
void strip_rows(const StripArgs& s) {
  constexpr i64 kStrip = 2048 / C;  // long runs, and sums that don't fill L1
  constexpr int kLines = 8;
  const T* x = static_cast<const T*>(s.x);
  for (i64 j0 = 0; j0 < s.cols; j0 += kStrip) {
    const i64 cols = s.cols - j0 < kStrip ? s.cols - j0 : kStrip;
    alignas(64) T sums[C][kStrip] = {};
    const S* b = static_cast<const S*>(s.b) + j0;
    for (i64 p = 0; p < s.k; p += kLines) {
      const int lines = static_cast<int>(s.k - p < kLines ? s.k - p : kLines);
      const S* at = b + p * s.b_stride;
      // The last elements of a row that ends inside a register, padded with zeros.
      alignas(64) S ends[kLines][kLanes<T>];
      const i64 whole = cols / kLanes<T> * kLanes<T>;
      if (whole < cols) {
        for (int l = 0; l < lines; ++l) {
          for (i64 j = 0; j < kLanes<T>; ++j) {
            ends[l][j] = whole + j < cols ? at[l * s.b_stride + whole + j] : S{};
          }
        }
      }
      for (i64 j = 0; j < cols; j += kLanes<T>) {
        const S* from = j < whole ? at + j : ends[0];
        const i64 stride = j < whole ? s.b_stride : i64{kLanes<T>};
        Vec<T> acc[C];
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) acc[c] = load(&sums[c][j]);
        if (lines == kLines) {
#pragma GCC unroll 8
          for (int l = 0; l < kLines; ++l) {
            __builtin_prefetch(at + j + (l + kLines) * s.b_stride);
            const Vec<T> bv = load_wide<T>(from + l * stride);
#pragma GCC unroll 8
            for (int c = 0; c < C; ++c) {
              acc[c] = multiply_add(splat(x[c * s.k + p + l]), bv, acc[c]);
            }
          }
        } else {
          for (int l = 0; l < lines; ++l) {
            const Vec<T> bv = load_wide<T>(from + l * stride);
#pragma GCC unroll 8
            for (int c = 0; c < C; ++c) {
              acc[c] = multiply_add(splat(x[c * s.k + p + l]), bv, acc[c]);
            }
          }
        }
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) store(&sums[c][j], acc[c]);
      }
    }
    for (int c = 0; c < C; ++c) {
      T* out = static_cast<T*>(s.out) + c * s.out_row_stride + j0;
      for (i64 j = 0; j < cols; ++j) out[j] = sums[c][j];
    }
  }
}

/// multiply_add of single numbers.
template <class T>
WICK_FN T chain(T a, T b, T sum) {
#if defined(__FMA__) || defined(__aarch64__)
  if constexpr (math::kSame<T, float>) return __builtin_fmaf(a, b, sum);
  if constexpr (math::kSame<T, double>) return __builtin_fma(a, b, sum);
#endif
  return a * b + sum;
}

// b is dense along k and has few columns: panels of sixteen columns would be mostly padding.
template <class S, class T, int C>
void dot_rows(const StripArgs& s) {
  const T* x = static_cast<const T*>(s.x);
  for (i64 j = 0; j < s.cols; ++j) {
    const S* b = static_cast<const S*>(s.b) + j * s.b_stride;
    T sums[C] = {};
    for (i64 p = 0; p < s.k; ++p) {
      const T bv = widen_to<T>(b[p]);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sums[c] = chain(x[c * s.k + p], bv, sums[c]);
    }
    for (int c = 0; c < C; ++c) static_cast<T*>(s.out)[c * s.out_row_stride + j] = sums[c];
  }
}

/// Calls run(part, rows) for 8, 4, 2 or 1 rows at a time. X and T: the elements of x and of the
/// sums.
template <class X, class T, class F>
WICK_FN void by_rows(const StripArgs& s, F run) {
  StripArgs part = s;
  i64 left = s.rows;
  while (left > 0) {
    const i64 rows = left >= 8 ? 8 : (left >= 4 ? 4 : (left >= 2 ? 2 : 1));
    run(part, rows);
    left -= rows;
    part.x = static_cast<const X*>(part.x) + rows * s.k;
    part.out = static_cast<T*>(part.out) + rows * s.out_row_stride;
  }
}

template <class S, class T>
void strip(const StripArgs& s) {
  by_rows<T, T>(s, [](const StripArgs& part, i64 rows) {
    if (rows == 8) return strip_rows<S, T, 8>(part);
    if (rows == 4) return strip_rows<S, T, 4>(part);
    if (rows == 2) return strip_rows<S, T, 2>(part);
    strip_rows<S, T, 1>(part);
  });
}

template <class S, class T>
void dots(const StripArgs& s) {
  by_rows<T, T>(s, [](const StripArgs& part, i64 rows) {
    if (rows == 8) return dot_rows<S, T, 8>(part);
    if (rows == 4) return dot_rows<S, T, 4>(part);
    if (rows == 2) return dot_rows<S, T, 2>(part);
    dot_rows<S, T, 1>(part);
  });
}

#if defined(__AVX512F__)
template <class S>
void columns(const StripArgs& s) {
  by_rows<float, float>(s, [](const StripArgs& part, i64 rows) {
    if (rows == 8) return column_rows<S, 8, 1>(part);
    if (rows == 4) return column_rows<S, 4, 1>(part);
    if (rows == 2) return column_rows<S, 2, 2>(part);
    column_rows<S, 1, 2>(part);
  });
}

void pair_dots(const StripArgs& s) {
  by_rows<uint16_t, float>(s, [](const StripArgs& part, i64 rows) {
    if (rows == 8) return pair_dot_rows<8>(part);
    if (rows == 4) return pair_dot_rows<4>(part);
    if (rows == 2) return pair_dot_rows<2>(part);
    pair_dot_rows<1>(part);
  });
}
#endif

template <class Kind, class T>
constexpr GemmType type_of() {
  return {.tile_rows = kTileRows,
          .row_panel = kRowPanel,
          .col_panel = kColPanel<T>,
          .tile_panels = kTilePanels,
          .multiply = multiply<Kind, T>};
}

template <class S, class T>
constexpr void add_dtype(GemmKernels& kernels, DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  kernels.pack_rows[i] = pack<S, T, kTileRows, kRowPanel>;
  kernels.pack_cols[i] = pack<S, T, kColPanel<T>, kColPanel<T>>;
  kernels.strip[i] = strip<S, T>;
  kernels.dots[i] = dots<S, T>;
  kernels.load[i] = load_row<S, T>;
  kernels.store[i] = store_row<S, T>;
}

constexpr GemmKernels make_kernels() {
  GemmKernels kernels{};
  kernels.types[0] = type_of<Fma, float>();
  kernels.types[1] = type_of<Fma, double>();
  kernels.types[2] = type_of<Fma, uint32_t>();
  kernels.types[3] = type_of<Fma, uint64_t>();
#if defined(__AVX512F__)
  kernels.types[4] = type_of<Bf16Dot<false>, float>();
  kernels.types[4].multiply_to_bf16 = multiply_to_bf16;
  kernels.store_dots = store_dots;
  kernels.pack_pair_rows = pack_pairs<kTileRows, kRowPanel>;
  kernels.pack_pair_cols = pack_pairs<kColPanel<float>, kColPanel<float>>;
  kernels.pair_dots = pair_dots;
  kernels.columns[static_cast<size_t>(DType::f32)] = columns<float>;
  kernels.columns[static_cast<size_t>(DType::bf16)] = columns<math::bf16>;
  kernels.columns[static_cast<size_t>(DType::f16)] = columns<math::f16>;
#endif
  add_dtype<uint8_t, uint32_t>(kernels, DType::u8);
  add_dtype<uint32_t, uint32_t>(kernels, DType::u32);
  add_dtype<int16_t, uint32_t>(kernels, DType::i16);
  add_dtype<uint32_t, uint32_t>(kernels, DType::i32);
  add_dtype<uint64_t, uint64_t>(kernels, DType::i64);
  add_dtype<math::bf16, float>(kernels, DType::bf16);
  add_dtype<math::f16, float>(kernels, DType::f16);
  add_dtype<float, float>(kernels, DType::f32);
  add_dtype<double, double>(kernels, DType::f64);
  add_dtype<math::f8e4m3, float>(kernels, DType::f8e4m3);
  return kernels;
}

}  // namespace

extern constinit const GemmKernels gemm_kernels;
const GemmKernels gemm_kernels = make_kernels();
static_assert(complete(make_kernels()));

}  // namespace wick::cpu::WICK_ISA
