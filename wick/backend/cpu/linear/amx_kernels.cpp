// Prompts through quantised weights on the tiles of AMX, with the bits of quantized_kernels.cpp.
//
// Computes 16 rows of a panel × up to 16 columns of x at a time. A block of 32 values is one
// product of tiles: a tile of x has a row of 32 bytes for each column, as tiles of activations hold
// them, and a tile of weights has a row for each quad, as unpacked panels hold them
// (quantized_sources.h). The result has a row for each column, whose 16 integers are the panel's
// rows. The integers of a chunk of eight blocks go through memory; then each column's are scaled
// and summed in the contract's order, while the next chunk's are computed.
//
// An estimate: a product of tiles takes 16 cycles at most, and 16 columns of a block then take 48
// vector instructions (a conversion, a product of scales, an fma) on two ports, 24 cycles, and
// about 60 loads on two ports, 30 cycles. v4_vnni takes 176 instructions, 88 cycles. With minima it
// is 64 instead of 192. If four blocks share a scale it is a conversion and an fma for each block
// and six more for all four, 28 cycles. Factors of half a block take two products and 96
// instructions.
//
// Measured on a Xeon, prompts run at 0.8 to 1.2 times the speed of v4_vnni, depending on the type.
// Beside instructions for tiles, the vector instructions run at one a cycle instead of two, and a
// product that adds to a zeroed tile waits for the product before it
// (bench/results/2026-11-26-intel-xeon-amx.md).
//
// Bytes moved: as `prompt` of quantized_kernels.cpp with one panel at a time. The integers of two
// chunks are 16 KiB (q6_k: 32, q2_k: 4), which stay in the first-level cache.

#include "wick/backend/cpu/linear/amx_kernels.h"

#include <type_traits>

#include "wick/backend/cpu/linear/quantized_dot.h"
#include "wick/backend/cpu/linear/quantized_sources.h"
#include "wick/backend/cpu/linear/quantized_store.h"
#include "wick/backend/cpu/linear/quantized_types.h"
#include "wick/backend/cpu/simd/amx.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// How a type's blocks become products of tiles.
template <class T>
struct AmxType {
  using Source = Unpacked<T>;
  /// Quads from an unpacked panel are unsigned. Their offset is subtracted when they are unpacked,
  /// except for folded factors, whose results exceed a signed byte.
  static constexpr bool kUnsigned = Source::kFolded && !T::kHasMin;
  static constexpr int kOffset = T::kHasMin || Source::kFolded ? 0 : T::kOffset;
  /// Products of a block, each with a factor of its own.
  static constexpr int kParts = Source::kFolded ? 1 : T::kParts;
  static constexpr int kPartBytes = kBlockElems / kParts;  // of a column of x
  /// Blocks whose products have one sum.
  static constexpr int kSummed = T::kSharedBlocks > 1 && Source::kFolded ? T::kSumBlocks : 1;
  static constexpr int kBlockBytes = Source::kBlockBytes;
};

constexpr int kSumsBytes = kAmxColumns * 64;  // of a product of tiles

// Tiles: of x, of weights, and two of sums. Those of x and of sums have a row for each column. The
// second set is for tiles with a column less.
template <bool kNarrow>
struct Tiles {
  static constexpr int kX = kNarrow ? 4 : 0;
  static constexpr int kSums[2] = {kX + 1, kX + 2};
};
constexpr int kWeights = 3;

template <class T>
void configure(int64_t width) {
  TileShapes shapes;
  for (int narrow = 0; narrow < 2; ++narrow) {
    const int rows = static_cast<int>(width - narrow > 0 ? width - narrow : 1);
    shapes.set(4 * narrow, rows, AmxType<T>::kPartBytes);
    shapes.set(4 * narrow + 1, rows, 64);
    shapes.set(4 * narrow + 2, rows, 64);
  }
  shapes.set(kWeights, AmxType<T>::kPartBytes / 4, 64);
  configure_tiles(shapes);
}

/// Where an unpacked panel holds the quads of a block.
template <class T>
WICK_SIMD const uint8_t* quads_of(const uint8_t* panel, int64_t block) {
  using Source = Unpacked<T>;
  constexpr int kUnit = Source::kUnitBlocks;
  return Source::vectors(Source{panel}, block / kUnit, static_cast<int>(block % kUnit));
}

template <class T>
void unpack(uint8_t* to, const GemmJob& job, const uint8_t* packed) {
  Unpacked<T>::fill(to, FromPanel<T>{packed, job.prefetch_bytes}, job.blocks);
  if constexpr (AmxType<T>::kOffset != 0) {
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(AmxType<T>::kOffset));
    for (int64_t b = 0; b < job.blocks; ++b) {
      uint8_t* quads = to + b * AmxType<T>::kBlockBytes;
      WICK_UNROLL
      for (int k = 0; k < 8; ++k) {
        store_bytes(quads + 64 * k, _mm512_sub_epi8(load_bytes(quads + 64 * k), offset));
      }
    }
  }
}

/// One product of tiles into sums in memory, or kSummed of them.
template <class T, bool kNarrow, int kWhich>
WICK_SIMD void multiply_one(const uint8_t* x, int64_t x_step, const uint8_t* quads, int32_t* sums) {
  using Set = Tiles<kNarrow>;
  constexpr int kSums = Set::kSums[kWhich];
  zero_tile<kSums>();
  for (int i = 0; i < AmxType<T>::kSummed; ++i) {
    load_tile<Set::kX>(x + i * x_step, kBlockElems);
    load_tile<kWeights>(quads + i * kPlaneBytes, 64);
    if constexpr (AmxType<T>::kUnsigned) {
      multiply_unsigned<kSums, Set::kX, kWeights>();
    } else {
      multiply_signed<kSums, Set::kX, kWeights>();
    }
  }
  store_tile<kSums>(sums, 64);
}

/// The integers of a chunk's blocks, kSummed at a time: sums[product][column][row].
template <class T, bool kNarrow>
struct Products {
  using A = AmxType<T>;
  static constexpr int kStep = A::kParts * kSumsBytes / 4;  // integers of a step
  static constexpr int kMost = kChunkBlocks / A::kSummed * kStep;
  const uint8_t *x, *panel;
  int64_t x_step, blocks;

  /// How many steps a chunk has; 0 behind the last.
  int steps(int64_t chunk) const {
    const int64_t left = blocks - chunk;
    return static_cast<int>(left < kChunkBlocks ? (left > 0 ? left : 0) : kChunkBlocks) /
           A::kSummed;
  }
  void multiply(int64_t chunk, int step, int32_t* sums) const {
    const int64_t block = chunk + step * A::kSummed;
    const uint8_t *from = x + block * x_step, *quads = quads_of<T>(panel, block);
    sums += step * kStep;
    if constexpr (A::kParts == 2) {
      multiply_one<T, kNarrow, 0>(from, x_step, quads, sums);
      multiply_one<T, kNarrow, 1>(from + A::kPartBytes, x_step, quads + kPlaneBytes / 2,
                                  sums + kSumsBytes / 4);
    } else if (step % 2 == 0) {  // two tiles in turn: a product needn't wait for the one before
      multiply_one<T, kNarrow, 0>(from, x_step, quads, sums);
    } else {
      multiply_one<T, kNarrow, 1>(from, x_step, quads, sums);
    }
  }
};

WICK_SIMD I32x16 load_sums(const int32_t* sums) { return _mm512_load_si512(sums); }
WICK_SIMD float float_at(const uint8_t* p) {
  float y;
  __builtin_memcpy(&y, p, sizeof y);
  return y;
}

/// The chunk's sum p of one column, for blocks with scales of their own. `sums` are the column's in
/// the first product; `d` and `words` lie in the first block.
template <class T>
WICK_SIMD F32x16 scale_blocks(const uint8_t* panel, int64_t first, int count, const uint8_t* d,
                              const uint8_t* words, int64_t x_step, const int32_t* sums) {
  using A = AmxType<T>;
  using Source = typename A::Source;
  const Source w{panel};
  F32x16 p = splat_16(0.0f);
  WICK_UNROLL
  for (int g = 0; g < kChunkBlocks; ++g) {
    if (g >= count) break;
    F32x16 product;
    if constexpr (A::kUnsigned) {
      int32_t from;
      __builtin_memcpy(&from, words + 4 * T::kParts, 4);
      product = to_f32(_mm512_add_epi32(load_sums(sums), splat_sums(from)));
    } else if constexpr (T::kSuper) {
      product = mul(Source::factor(w, first + g, 0, 0), to_f32(load_sums(sums)));
      if constexpr (A::kParts == 2) {
        product = fma(Source::factor(w, first + g, 0, 1), to_f32(load_sums(sums + kSumsBytes / 4)),
                      product);
      }
    } else {
      product = to_f32(load_sums(sums));
    }
    if constexpr (T::kHasMin) {
      p = fma(Source::minimum(w, first + g, 0), splat_16(float_at(words)), p);
    }
    p = fma(mul(Source::scale(w, first + g, 0), splat_16(float_at(d))), product, p);
    d += x_step;
    words += x_step;
    sums += A::kParts * kSumsBytes / 4;
  }
  return p;
}

/// The same for superblocks whose activations share scales.
template <class T>
WICK_SIMD F32x16 scale_superblock(const uint8_t* panel, int64_t unit, const uint8_t* d,
                                  const uint8_t* words, int64_t x_step, const int32_t* sums) {
  using A = AmxType<T>;
  using Source = typename A::Source;
  constexpr int kPairBlocks = 2 / T::kParts;
  const Source w{panel};
  const F32x16 scale = Source::scale(w, unit, 0), minimum = Source::minimum(w, unit, 0);
  F32x16 p = splat_16(0.0f);
  WICK_UNROLL
  for (int first = 0; first < kChunkBlocks; first += T::kSharedBlocks) {
    F32x16 scaled = p;
    WICK_UNROLL
    for (int g = 0; g < T::kSharedBlocks; g += T::kSumBlocks) {
      F32x16 product;
      if constexpr (Source::kFolded) {
        product = to_f32(load_sums(sums));
        sums += kSumsBytes / 4;
      } else {
        product = splat_16(0.0f);
        WICK_UNROLL
        for (int b = 0; b < T::kSumBlocks; ++b, sums += kSumsBytes / 4) {
          product =
              fma(Source::factors(w, unit, first + g + b, 0), to_f32(load_sums(sums)), product);
        }
      }
      scaled = g == 0 ? mul(scale, product) : fma(scale, product, scaled);
    }
    I32x16 minima = dot_pairs(Source::minimum_factors(w, unit, first), words);
    WICK_UNROLL
    for (int i = kPairBlocks; i < T::kSharedBlocks; i += kPairBlocks) {
      minima = dot_pairs(Source::minimum_factors(w, unit, first + i), words + i * x_step, minima);
    }
    p = fma(splat_16(float_at(d)), fma(minimum, to_f32(minima), scaled), p);
    d += T::kSharedBlocks * x_step;
    words += T::kSharedBlocks * x_step;
  }
  return p;
}

/// A panel times a tile of `width` columns.
template <class T, bool kNarrow>
void multiply_columns(const GemmJob& job, const uint8_t* panel, int64_t p, const uint8_t* x,
                      int64_t width, int64_t column) {
  constexpr int kWords = 4 * Packed<T>::kExtras;
  const int64_t x_step = width * Packed<T>::kTileBlockBytes;
  const Products<T, kNarrow> products{x, panel, x_step, job.blocks};
  alignas(64) int32_t both[2][products.kMost];
  alignas(64) float totals[kAmxColumns * kPanelRows] = {};
  int32_t *sums = both[0], *next = both[1];
  for (int i = 0; i < products.steps(0); ++i) products.multiply(0, i, sums);
  for (int64_t chunk = 0; chunk < job.blocks; chunk += kChunkBlocks, x += kChunkBlocks * x_step) {
    const int64_t left = job.blocks - chunk, behind = chunk + kChunkBlocks;
    const int count = static_cast<int>(left < kChunkBlocks ? left : kChunkBlocks);
    const int steps = products.steps(behind);
    int step = 0;
    const uint8_t* d = x + width * kBlockElems;
    const uint8_t* words = d + width * 4;
    for (int64_t j = 0; j < width; ++j, d += 4, words += kWords) {
      // Products of the next chunk in between, so that tiles and vectors are computed at once.
      if (j % 2 == 0 && step < steps) products.multiply(behind, step++, next);
      F32x16 sum;
      if constexpr (T::kSharedBlocks > 1) {
        sum = scale_superblock<T>(panel, chunk / kChunkBlocks, d, words, x_step, sums + 16 * j);
      } else {
        sum = scale_blocks<T>(panel, chunk, count, d, words, x_step, sums + 16 * j);
      }
      float* total = totals + j * kPanelRows;
      store_16(total, add(load_16(total), sum));
    }
    while (step < steps) products.multiply(behind, step++, next);
    int32_t* const last = sums;
    sums = next;
    next = last;
  }
  const int64_t row = p * kPanelRows;
  const int64_t rows = job.rows - row < kPanelRows ? job.rows - row : kPanelRows;
  if (job.out.type == ActivationType::f32 && job.out.stride == 1 && rows == kPanelRows) {
    for (int64_t j = 0; j < width; ++j) {
      store_16(static_cast<float*>(job.out.data) + job.out.at(column + j) + row,
               load_16(totals + j * kPanelRows));
    }
  } else {
    store_slowly(job.out, column, width, row, rows, totals);
  }
}

template <class T>
void prompt(const GemmJob& job) {
  static_assert(T::kSharedBlocks == 1 || T::kUnitBlocks == kChunkBlocks);
  const ColumnSplit split = split_columns(job.columns, kAmxColumns);
  const int64_t panel_bytes = Packed<T>::panel_bytes(job.blocks);
  configure<T>(split.width);
  for (int64_t p = job.begin; p < job.end; ++p) {
    unpack<T>(job.scratch, job, job.panels + p * panel_bytes);
    const uint8_t* x = job.tiles;
    int64_t column = 0;
    for (int64_t t = 0; t < split.tiles; ++t) {
      const int64_t width = t < split.wide ? split.width : split.width - 1;
      if (t < split.wide) {
        multiply_columns<T, false>(job, job.scratch, p, x, width, column);
      } else {
        multiply_columns<T, true>(job, job.scratch, p, x, width, column);
      }
      x += width * job.blocks * Packed<T>::kTileBlockBytes;
      column += width;
    }
  }
  release_tiles();
}

constexpr AmxKernels make_table() {
  AmxKernels table{};
#define WICK_OWN_QUANT(name, Type, ...) \
  table.types[quant_index(DType::name)] = {prompt<Type>, AmxType<Type>::kBlockBytes};
#include "wick/math/quants_by_products.def"
  return table;
}

}  // namespace

constexpr AmxKernels amx_kernels = make_table();

}  // namespace wick::cpu::WICK_ISA
