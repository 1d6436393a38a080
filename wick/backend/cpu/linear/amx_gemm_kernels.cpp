// gemm of bf16 on the tiles of AMX (see gemm.h).
//
// A tile of A has 16 rows with 16 pairs of k, a tile of B 16 pairs with 16 columns. Panels of B are
// those of bf16_dot. A panel of A has two tiles for each 16 pairs: [k / 16][32 rows][16 pairs].
//
// Order of reduction: for each 32 elements of k, the even elements and the odd ones are a chain of
// fma each, from zero; c = c + (even + odd). Operands and results below the normal range are zeros,
// and rounding is to nearest, as TDPBF16PS defines it (Intel, "Architecture Instruction Set
// Extensions Programming Reference", 319433).
//
// Per 32 elements of k, 32 rows and 32 columns: four products of tiles, 64 cycles, and four loads
// of 1 KiB: two of A from the first-level cache, and two of B, which come from the second-level
// cache.

#include "wick/backend/cpu/linear/amx_gemm_kernels.h"

#include <cstdint>
#include <cstring>

#include "wick/backend/cpu/simd/amx.h"

namespace wick::cpu::WICK_ISA {
namespace {

using i64 = int64_t;
using Word = uint32_t;  // a pair of bf16

constexpr int kSide = 16, kTileBytes = kSide * 64;
constexpr int kRows = 2 * kSide, kColumns = 2 * kSide, kPanel = kSide;

// Tile registers: sums of two by two tiles, two of A, two of B.
constexpr int kA = 4, kB = 6;

void configure() {
  TileShapes shapes;
  for (int t = 0; t < 8; ++t) shapes.set(t, kSide, 64);
  configure_tiles(shapes);
}

/// Multiplies 16 pairs of k. a: [32][16] words; b and c: the two panels' [16][16].
template <int R, int C>
WICK_FN void step(const Word* a, const Word* b, const Word* c) {
  load_tile<kA>(a, 64);
  load_tile<kB>(b, 64);
  multiply_bf16<0, kA, kB>();
  if constexpr (C == 2) {
    load_tile<kB + 1>(c, 64);
    multiply_bf16<1, kA, kB + 1>();
  }
  if constexpr (R == 2) {
    load_tile<kA + 1>(a + kSide * kSide, 64);
    multiply_bf16<2, kA + 1, kB>();
    if constexpr (C == 2) multiply_bf16<3, kA + 1, kB + 1>();
  }
}

/// Calls act<register>(address) for each tile of sums.
template <int R, int C, class Act>
WICK_FN void each_sum(float* c, i64 stride, Act act) {
  act.template operator()<0>(c);
  if constexpr (C == 2) act.template operator()<1>(c + kSide);
  if constexpr (R == 2) {
    act.template operator()<2>(c + kSide * stride);
    if constexpr (C == 2) act.template operator()<3>(c + kSide * stride + kSide);
  }
}

/// R by C tiles of sums over k pairs. Behind the last pair, a is padded with zeros, and b isn't
/// read.
template <int R, int C>
void multiply_block(i64 k, const Word* a, const Word* b, i64 b_panel_stride, float* c, i64 c_stride,
                    bool resume) {
  each_sum<R, C>(c, c_stride, [&]<int kSum>(float* at) {
    if (resume) return load_tile<kSum>(at, c_stride * 4);
    zero_tile<kSum>();
  });
  const Word* next = b + b_panel_stride;
  for (; k >= kSide; k -= kSide) {
    step<R, C>(a, b, next);
    a += kRows * kSide;
    b += kSide * kPanel;
    next += kSide * kPanel;
  }
  if (k > 0) {
    alignas(64) Word ends[2][kSide * kPanel] = {};
    std::memcpy(ends[0], b, static_cast<size_t>(k) * 64);
    if constexpr (C == 2) std::memcpy(ends[1], next, static_cast<size_t>(k) * 64);
    step<R, C>(a, ends[0], ends[1]);
  }
  each_sum<R, C>(c, c_stride, [&]<int kSum>(float* at) { store_tile<kSum>(at, c_stride * 4); });
}

using Block = void (*)(i64, const Word*, const Word*, i64, float*, i64, bool);
constexpr Block kBlocks[2][2] = {{multiply_block<1, 1>, multiply_block<1, 2>},
                                 {multiply_block<2, 1>, multiply_block<2, 2>}};

void multiply(const MultiplyArgs& m) {
  configure();
  const Word* a = static_cast<const Word*>(m.a);
  for (i64 i = 0; i < m.rows; i += kRows, a += m.a_panel_stride) {
    const i64 rows = m.rows - i < kRows ? m.rows - i : kRows;
    for (i64 j = 0; j < m.cols; j += kColumns) {
      const i64 cols = m.cols - j < kColumns ? m.cols - j : kColumns;
      const Word* b = static_cast<const Word*>(m.b) + j / kPanel * m.b_panel_stride;
      float* c = static_cast<float*>(m.c) + i * m.c_row_stride + j;
      const Block run = kBlocks[(rows - 1) / kSide][(cols - 1) / kSide];
      if (rows % kSide == 0 && cols % kSide == 0) {
        run(m.k, a, b, m.b_panel_stride, c, m.c_row_stride, m.resume);
        continue;
      }
      // Tiles that exceed the edge of C.
      alignas(64) float edge[kRows * kColumns] = {};
      const size_t bytes = static_cast<size_t>(cols) * sizeof *c;
      for (i64 r = 0; r < rows && m.resume; ++r) {
        std::memcpy(edge + r * kColumns, c + r * m.c_row_stride, bytes);
      }
      run(m.k, a, b, m.b_panel_stride, edge, kColumns, m.resume);
      for (i64 r = 0; r < rows; ++r) {
        std::memcpy(c + r * m.c_row_stride, edge + r * kColumns, bytes);
      }
    }
  }
  release_tiles();
}

/// Packs rows of pairs, which are dense along k. args.k counts pairs.
void pack_words(const PackArgs& args) {
  const auto* data = static_cast<const Word*>(args.data);
  auto* panels = static_cast<Word*>(args.panels);
  for (i64 row = 0; row < args.rows; row += kRows, panels += args.panel_stride) {
    Word* to = panels;
    for (i64 p = 0; p < args.k; p += kSide) {
      const i64 pairs = args.k - p < kSide ? args.k - p : kSide;
      for (i64 r = row; r < row + kRows; ++r, to += kSide) {
        const i64 used = r < args.rows ? pairs : 0;
        std::memcpy(to, data + (used > 0 ? r * args.row_stride + p : 0),
                    static_cast<size_t>(used) * sizeof *to);
        for (i64 i = used; i < kSide; ++i) to[i] = 0;
      }
    }
  }
}

/// Packs rows of bf16 of any strides. args.k counts elements; a zero follows an odd last one.
void pack_elements(const PackArgs& args) {
  constexpr i64 kElems = 2 * kSide;
  const auto* data = static_cast<const uint16_t*>(args.data);
  auto* panels = static_cast<Word*>(args.panels);
  for (i64 row = 0; row < args.rows; row += kRows, panels += args.panel_stride) {
    const i64 rows = args.rows - row < kRows ? args.rows - row : kRows;
    auto* to = reinterpret_cast<uint16_t*>(panels);
    for (i64 p = 0; p < args.k; p += kElems, to += kRows * kElems) {
      const i64 elems = args.k - p < kElems ? args.k - p : kElems;
      const uint16_t* from = data + row * args.row_stride + p * args.k_stride;
      if (rows < kRows || elems < kElems) std::memset(to, 0, 2 * kTileBytes);
      if (args.k_stride == 1) {
        for (i64 r = 0; r < rows; ++r) {
          std::memcpy(to + r * kElems, from + r * args.row_stride,
                      static_cast<size_t>(elems) * sizeof *to);
        }
        continue;
      }
      for (i64 i = 0; i < elems; ++i) {
        for (i64 r = 0; r < rows; ++r) {
          to[r * kElems + i] = from[r * args.row_stride + i * args.k_stride];
        }
      }
    }
  }
}

}  // namespace

extern constinit const AmxGemm amx_gemm;
const AmxGemm amx_gemm = {
    .type = {.tile_rows = kRows,
             .row_panel = kRows,
             .col_panel = kPanel,
             .tile_panels = 2,
             .k_step = kSide,
             .multiply = multiply},
    .pack_words = pack_words,
    .pack_elements = pack_elements,
};

}  // namespace wick::cpu::WICK_ISA
