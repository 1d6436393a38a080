#include "wick/backend/cpu/linear/float_weight.h"
#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/simd/transpose.h"

// Packing and gemv kernels for weights of f32, f16 and bf16.

namespace wick::cpu::WICK_ISA {
namespace {

using i64 = int64_t;
constexpr int kRows = kWeightPanelRows;
constexpr int kVectors = 64 / kVectorBytes;  // f32 vectors of a panel's sixteen rows

// ---- Packing: 16 rows of k values become one panel. Reads and writes each weight once.

using Octet = uint16_t __attribute__((vector_size(16)));
typedef uint16_t OctetAnywhere __attribute__((vector_size(16), aligned(2), may_alias));
using Half = uint16_t __attribute__((may_alias));

/// to[p * 16 + w] = rows[w][p]: 8×8 blocks in 128-bit registers.
WICK_FN void transpose_halves(const Half* const* rows, i64 n, Half* to) {
  i64 p = 0;
  for (; p + 8 <= n; p += 8) {
#pragma GCC unroll 2
    for (int g = 0; g < kRows; g += 8) {
      Octet a[8], b[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) a[i] = *reinterpret_cast<const OctetAnywhere*>(rows[g + i] + p);
        // Interleaving row i with row i + 4 three times over transposes.
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        a[2 * i] = __builtin_shufflevector(b[i], b[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        a[2 * i + 1] = __builtin_shufflevector(b[i], b[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        *reinterpret_cast<OctetAnywhere*>(to + (p + i) * kRows + g) = b[i];
      }
    }
  }
  for (; p < n; ++p) {
    for (int w = 0; w < kRows; ++w) to[p * kRows + w] = rows[w][p];
  }
}

/// E: an element of 2 or 4 bytes. kPairs: two consecutive k of a row stay together.
template <class E, bool kPairs>
void pack_panel(const PackPanelArgs& args) {
  constexpr i64 kRun = 256;
  alignas(64) E lines[kRows][kRun];
  E* to = static_cast<E*>(args.panel);
  const E* from[kRows];
  for (int w = 0; w < kRows; ++w) {
    if (args.rows[static_cast<size_t>(w)] == nullptr) {
      for (i64 p = 0; p < kRun; ++p) lines[w][p] = 0;
    }
  }
  for (i64 p = 0; p < args.k; p += kRun) {
    const i64 n = args.k - p < kRun ? args.k - p : kRun;
    const i64 padded = kPairs ? (n + 1) / 2 * 2 : n;
    for (int w = 0; w < kRows; ++w) {
      const E* row = static_cast<const E*>(args.rows[static_cast<size_t>(w)]);
      const i64 stride = args.k_stride[static_cast<size_t>(w)];
      from[w] = lines[w];
      if (row == nullptr) continue;
      if (stride == 1 && padded == n) {
        from[w] = row + p;
        continue;
      }
      for (i64 i = 0; i < n; ++i) lines[w][i] = row[(p + i) * stride];
      for (i64 i = n; i < padded; ++i) lines[w][i] = 0;
    }
    if constexpr (kPairs || sizeof(E) == 4) {
      constexpr i64 kElems = kPairs ? 2 : 1;
      const Word* words[kRows];
      for (int w = 0; w < kRows; ++w) words[w] = reinterpret_cast<const Word*>(from[w]);
      transpose_words<kRows>(words, padded / kElems, reinterpret_cast<Word*>(to + p * kRows));
    } else {
      transpose_halves(from, n, to + p * kRows);
    }
  }
}

// ---- matrix–vector.
//
// P panels advance through k together: P · kVectors independent chains per column hide the latency
// of fma, and each chain adds its row's products in the order of k. A run of panels is cut into P
// equal parts, and the P panels are one of each part. So the run is read as P long streams, which
// hardware prefetchers follow from panel to panel. Weights are read once, x stays in L1.

/// One step of a panel as f32: one k of f32 and f16, two of bf16.
template <class S>
struct Step;
template <>
struct Step<float> {
  static constexpr int kDepth = 1, kBytes = 64;
  static WICK_FN void load(const char* p, Vec<float> (&w)[1][kVectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      __builtin_memcpy(&w[0][v], p + v * kVectorBytes, kVectorBytes);
    }
  }
};
template <>
struct Step<f16> {
  static constexpr int kDepth = 1, kBytes = 32;
  static WICK_FN void load(const char* p, Vec<float> (&w)[1][kVectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      w[0][v] = load_narrow(reinterpret_cast<const f16*>(p) + v * kLanes<float>);
    }
  }
};
template <>
struct Step<bf16> {
  static constexpr int kDepth = 2, kBytes = 64;
  static WICK_FN void load(const char* p, Vec<float> (&w)[2][kVectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Vec<uint32_t> pair;
      __builtin_memcpy(&pair, p + v * kVectorBytes, sizeof pair);
      w[0][v] = reinterpret_cast<Vec<float>>(pair << 16);
      w[1][v] = reinterpret_cast<Vec<float>>(pair & 0xffff0000u);
    }
  }
};

/// P panels, `apart` panels from each other, times C columns.
template <class S, int P, int C>
void decode_panels(const DecodeArgs& args, const char* w, i64 apart, const float* x, float* y) {
  using T = Step<S>;
  const i64 x_stride = args.x_stride, y_stride = args.y_stride;
  const i64 panel_distance = apart * args.panel_bytes, ahead = args.prefetch_bytes / P;
  Vec<float> acc[P][C][kVectors] = {};
  for (i64 k = 0; k < args.k; k += T::kDepth, w += T::kBytes) {
    Vec<float> xv[T::kDepth][C];
#pragma GCC unroll 2
    for (int d = 0; d < T::kDepth; ++d) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) xv[d][c] = splat(x[c * x_stride + k + d]);
    }
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const char* from = w + p * panel_distance;
      __builtin_prefetch(from + ahead);
      Vec<float> wv[T::kDepth][kVectors];
      T::load(from, wv);
#pragma GCC unroll 2
      for (int d = 0; d < T::kDepth; ++d) {
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            acc[p][c][v] = multiply_add(wv[d][v], xv[d][c], acc[p][c][v]);
          }
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        store(y + c * y_stride + p * apart * kRows + v * kLanes<float>, acc[p][c][v]);
      }
    }
  }
}

/// Panels at once for C columns: as many as fit the registers.
template <int C>
constexpr int panels_at_once() {
  if constexpr (kVectors == 1) return 4;
  if constexpr (kVectors == 2) return C == 1 ? 4 : (C < 4 ? 2 : 1);
  return C == 1 ? 2 : 1;
}

template <class S, int P, int C>
WICK_FN i64 decode_range(const DecodeArgs& a, i64 panel, i64 col) {
  const char* w = static_cast<const char*>(a.weight);
  const i64 apart = (a.panels - panel) / P;
  for (i64 i = 0; i < apart; ++i) {
    const i64 first = panel + i;
    decode_panels<S, P, C>(a, w + first * a.panel_bytes, apart, a.x + col * a.x_stride,
                           a.y + col * a.y_stride + first * kRows);
  }
  return panel + P * apart;
}

/// All panels for one, two, three or four columns.
template <class S, int C>
void decode_columns(const DecodeArgs& a, i64 col) {
  i64 panel = decode_range<S, panels_at_once<C>(), C>(a, 0, col);
  decode_range<S, 1, C>(a, panel, col);
}

template <class S>
void decode(const DecodeArgs& args) {
  // A group of panels is multiplied with all columns before the next group is read.
  constexpr i64 kGroup = 4;
  for (i64 panel = 0; panel < args.panels; panel += kGroup) {
    DecodeArgs group = args;
    if (args.cols <= kDecodeColumns) {
      panel = args.panels;  // one pass, so no groups
    } else {
      group.weight = static_cast<const char*>(args.weight) + panel * args.panel_bytes;
      group.y = args.y + panel * kRows;
      group.panels = args.panels - panel < kGroup ? args.panels - panel : kGroup;
    }
    for (i64 col = 0; col < args.cols;) {
      const i64 left = args.cols - col;
      // Passes of about equal size: 5 = 3 + 2, 6 = 3 + 3.
      const i64 cols = left <= kDecodeColumns ? left : (left < 2 * 4 - 1 ? (left + 1) / 2 : 4);
      switch (cols) {
        case 1:
          decode_columns<S, 1>(group, col);
          break;
        case 2:
          decode_columns<S, 2>(group, col);
          break;
        case 3:
          decode_columns<S, 3>(group, col);
          break;
        default:
          decode_columns<S, 4>(group, col);
          break;
      }
      col += cols;
    }
  }
}

void unpack_bf16(const void* panel, i64 k, float* to) {
  const char* at = static_cast<const char*>(panel);
  for (i64 p = 0; p < k; p += 2, at += 64, to += 2 * kRows) {
    Vec<float> w[2][kVectors];
    Step<bf16>::load(at, w);
    for (int v = 0; v < kVectors; ++v) {
      store(to + v * kLanes<float>, w[0][v]);
      store(to + kRows + v * kLanes<float>, w[1][v]);
    }
  }
}

}  // namespace

constexpr FloatWeightKernels float_weight_kernels = {
    {pack_panel<Word, false>, pack_panel<Half, false>, pack_panel<Half, true>},
    {decode<float>, decode<f16>, decode<bf16>},
    unpack_bf16,
};
static_assert(complete(float_weight_kernels));

}  // namespace wick::cpu::WICK_ISA
