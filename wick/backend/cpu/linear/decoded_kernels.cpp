// gemm with weights of block dtypes that have no kernels of their own.
//
// Computes y[c][row] in the order of docs/design/numerics/quantised.md, "Formats that are decoded".
// Index map: lanes are rows. A chunk of 256 values of 32 rows is decoded to floats, transposed into
// a tile that stays in L1, and multiplied with all columns, several at a time so that their chains
// hide the latency of fma. Bytes moved: the weights once, x once for each panel.

#include "wick/backend/cpu/linear/decoded_kernels.h"

#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/simd/transpose.h"
#include "wick/math/orders.h"
#include "wick/math/quants.h"

namespace wick::cpu::WICK_ISA {
namespace {

using i64 = int64_t;
constexpr int kChunk = math::kDecodedChunk, kPanels = kDecodedRows / 16;
constexpr int kVectors = 64 / kVectorBytes;  // for sixteen rows
/// Columns at a time: as many chains as fit the registers.
constexpr int kMostColumns = kVectorBytes == 64 ? 8 : 2;

using Tile = float[kPanels][kChunk][16];

/// Decodes values [k0, k0 + n) of the job's rows into tile[panel][k][row]; rows past the last are
/// zeros.
template <class Block>
void decode(const DecodedJob& job, i64 k0, i64 n, Tile& tile) {
  constexpr i64 kValues = math::kBlockValues<Block>;
  static constexpr float zeros[kChunk] = {};
  alignas(64) float lines[16][kChunk];
  for (int p = 0; p < kPanels; ++p) {
    const Word* words[16];
    for (int r = 0; r < 16; ++r) {
      const i64 row = 16 * p + r;
      words[r] = reinterpret_cast<const Word*>(zeros);
      if (row >= job.rows) continue;
      const uint8_t* from =
          job.first + row * job.row_bytes + k0 / kValues * static_cast<i64>(sizeof(Block));
      for (i64 i = 0; i < n; i += kValues, from += sizeof(Block)) {
        Block block;
        __builtin_memcpy(&block, from, sizeof block);
        math::dequantize(block, lines[r] + i);
      }
      words[r] = reinterpret_cast<const Word*>(lines[r]);
    }
    transpose_words<16>(words, n, reinterpret_cast<Word*>(tile[p][0]));
  }
}

/// Adds the sums of a chunk to y, for kColumns columns.
template <int kColumns>
void multiply_columns(const Tile& tile, i64 n, const float* x, i64 x_stride, float* y) {
  Vec<float> sums[kColumns][kPanels][kVectors] = {};
  for (i64 i = 0; i < n; ++i) {
    Vec<float> w[kPanels][kVectors];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) w[p][v] = load(tile[p][i] + v * kLanes<float>);
    }
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      const Vec<float> b = splat(x[c * x_stride + i]);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[c][p][v] = fma(w[p][v], b, sums[c][p][v]);
      }
    }
  }
  for (int c = 0; c < kColumns; ++c) {
    for (int p = 0; p < kPanels; ++p) {
      for (int v = 0; v < kVectors; ++v) {
        float* to = y + c * kDecodedRows + 16 * p + v * kLanes<float>;
        store(to, load(to) + sums[c][p][v]);
      }
    }
  }
}

template <class Block>
void multiply(const DecodedJob& job) {
  alignas(64) Tile tile;
  for (i64 k0 = 0; k0 < job.k; k0 += kChunk) {
    const i64 n = job.k - k0 < kChunk ? job.k - k0 : kChunk;
    decode<Block>(job, k0, n, tile);
    i64 c = 0;
    for (; c + kMostColumns <= job.columns; c += kMostColumns) {
      multiply_columns<kMostColumns>(tile, n, job.x + c * job.x_stride + k0, job.x_stride,
                                     job.y + c * kDecodedRows);
    }
    for (; c < job.columns; ++c) {
      multiply_columns<1>(tile, n, job.x + c * job.x_stride + k0, job.x_stride,
                          job.y + c * kDecodedRows);
    }
  }
}

constexpr DecodedKernels make_table() {
  DecodedKernels table{};
#define WICK_DECODED_QUANT(name, Type, ...) \
  table.multiply[quant_index(DType::name)] = multiply<math::Block##Type>;
#include "wick/math/quants_by_products.def"
  return table;
}

}  // namespace

constexpr DecodedKernels decoded_kernels = make_table();
static_assert(complete(decoded_kernels));

}  // namespace wick::cpu::WICK_ISA
