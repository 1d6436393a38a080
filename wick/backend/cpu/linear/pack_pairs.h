#pragma once

// Packs bf16 operands into panels of pairs along k (see gemm.h). For kernel sources only (see
// isa.h).

#include <cstdint>
#include <cstring>

#include "wick/backend/cpu/linear/gemm.h"
#include "wick/backend/cpu/simd/transpose.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// to[w] = a[w] in the low half and b[w] in the high half, for N words.
template <int N>
WICK_FN void interleave(const uint16_t* a, const uint16_t* b, Word* to) {
#if defined(__AVX512F__)
  if constexpr (N == 16) {
    const auto wide = [](const uint16_t* x) {
      return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
    };
    _mm512_storeu_si512(to, _mm512_or_si512(wide(a), _mm512_slli_epi32(wide(b), 16)));
    return;
  }
#endif
  for (int w = 0; w < N; ++w) to[w] = Word{a[w]} | Word{b[w]} << 16;
}

/// Packs rows of bf16 into panels [panel][pair of k][W] of words, of which the first R of each W
/// are used. args.k counts elements; a zero follows an odd last one. If rows are dense, the runs of
/// two k are interleaved; if k is dense, pairs are words, which are transposed; else elements are
/// gathered first.
template <int R, int W>
void pack_pairs(const PackArgs& args) {
  const auto* data = static_cast<const uint16_t*>(args.data);
  auto* panels = static_cast<Word*>(args.panels);
  const int64_t pairs = (args.k + 1) / 2;
  if (args.row_stride == 1 && args.k_stride != 1) {
    const int64_t wide = args.rows < W ? 0 : (args.rows - W) / R + 1;  // panels for which W rows
                                                                       // may be read
    for (int64_t p = 0; p < pairs; ++p) {
      const uint16_t* a = data + 2 * p * args.k_stride;
      const bool half = 2 * p + 1 == args.k;
      const uint16_t* b = half ? a : a + args.k_stride;
      Word* to = panels + p * W;
      int64_t row = 0;
      for (int64_t q = 0; q < wide && !half; ++q, row += R, to += args.panel_stride) {
        interleave<W>(a + row, b + row, to);
      }
      for (; row < args.rows; row += R, to += args.panel_stride) {
        for (int64_t w = 0; w < W; ++w) {
          const bool there = w < R && row + w < args.rows;
          to[w] = there ? Word{a[row + w]} | (half ? 0 : Word{b[row + w]} << 16) : 0;
        }
      }
    }
    return;
  }
  constexpr int64_t kRun = 128;  // pairs
  const int64_t used = pairs < kRun ? pairs : kRun;
  alignas(64) Word lines[W][kRun];
  for (int64_t row = 0; row < args.rows; row += R, panels += args.panel_stride) {
    const int64_t rows = args.rows - row < R ? args.rows - row : R;
    for (int64_t w = rows; w < W; ++w) {
      for (int64_t p = 0; p < used; ++p) lines[w][p] = 0;
    }
    const Word* from[W];
    for (int w = 0; w < W; ++w) from[w] = lines[w];
    for (int64_t p = 0; p < pairs; p += kRun) {
      const int64_t n = pairs - p < kRun ? pairs - p : kRun;
      const int64_t elems = args.k - 2 * p < 2 * n ? args.k - 2 * p : 2 * n;
      for (int64_t w = 0; w < rows; ++w) {
        const uint16_t* line = data + (row + w) * args.row_stride + 2 * p * args.k_stride;
        from[w] = lines[w];
        if (args.k_stride != 1) {
          for (int64_t i = 0; i < elems / 2; ++i) {
            lines[w][i] =
                Word{line[2 * i * args.k_stride]} | Word{line[(2 * i + 1) * args.k_stride]} << 16;
          }
          if (elems % 2 != 0) lines[w][elems / 2] = line[(elems - 1) * args.k_stride];
        } else if (reinterpret_cast<uintptr_t>(line) % sizeof(Word) == 0 && elems == 2 * n) {
          from[w] = reinterpret_cast<const Word*>(line);
        } else {
          if (elems % 2 != 0) lines[w][elems / 2] = 0;
          std::memcpy(lines[w], line, static_cast<size_t>(elems) * sizeof *line);
        }
      }
      transpose_words<W>(from, n, panels + p * W);
    }
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
