// gemm and gemv of packed block weights with int8 activations.
//
// Computes out[row, column] = Σ_k w[row, k]·x[column, k] in the order of
// docs/design/numerics/quantised.md: integer dot products of 32 values, or of 128 if blocks share a
// scale of the activations, are scaled and summed in chunks of eight blocks; chunk sums are added
// in index order. All kernels have this order, so the bits depend neither on the number of columns
// nor on the instruction set.
//
// Index map: lanes are the 16 rows of a panel; a register tile is kRows panels × kColumns columns
// of x, and each activation is broadcast to all lanes. A chunk's sum stays in registers; totals are
// updated once in eight blocks. Bytes moved: decode reads each packed byte once from memory; prompt
// reads each packed byte once, and the tiles of x once for every kRows panels.
//
// The limit for prompts if a dot product is one instruction (Zen 4): each block, panel and column
// takes eight dot products, a multiplication of scales, an fma, and with minima another fma, all on
// the same two ports. This allows 80 % of the peak rate of dot products, or 73 % with minima; a
// tile from cache reaches 79 % and 72 %. If four blocks share a scale, 78 % are possible: one fma
// for each block, and for all four blocks two dot products of 16 bits for the minima, one
// multiplication and two fmas. Products of quants of two or three bits and their factors are bytes
// (QuantizedType::kFolds), so prompts multiply them as one operand.

#include "wick/backend/cpu/linear/quantized_kernels.h"

#include <type_traits>

#include "wick/backend/cpu/linear/quantized_activations.h"
#include "wick/backend/cpu/linear/quantized_dot.h"
#include "wick/backend/cpu/linear/quantized_sources.h"
#include "wick/backend/cpu/linear/quantized_store.h"
#include "wick/backend/cpu/linear/quantized_types.h"

namespace wick::cpu::WICK_ISA {
namespace {

#if defined(WICK_MATRIX_INT8)
/// dot_quads of one panel, by products of matrices.
template <class T, int kSteps, int kColumns, class Source>
WICK_SIMD void multiply_quads(const Source& w, const uint8_t* x, int64_t unit, int g, int step,
                              Dot<Source::kLevels> (&dots)[kDotColumns<kColumns>]) {
  constexpr int kQuads = 8 / kSteps;
  const auto vectors = Source::vectors(w, unit, g);
  WICK_UNROLL
  for (int k = step * kQuads; k < (step + 1) * kQuads; k += 2) {
    auto upper = Source::quad(vectors, k), lower = Source::quad(vectors, k + 1);
    if (!Source::kArranged) interleave_quads(upper, lower);
    WICK_UNROLL
    for (int j = 0; j < kColumns; j += 2) {
      const uint8_t* first = x + j * kBlockElems + 4 * k;
      // The last of an odd number of columns has no other; it is multiplied twice.
      const uint8_t* second = j + 1 < kColumns ? first + kBlockElems : first;
      accumulate(dots[j], dots[j + 1], upper, lower, load_columns(first, second));
    }
  }
}
#endif

/// Adds the products of step `step` of kSteps of a block to dot products.
template <class T, int kSteps, int kColumns, class Source, int kRows>
WICK_SIMD void dot_quads(const Source (&w)[kRows], const uint8_t* x, int64_t unit, int g, int step,
                         Dot<Source::kLevels> (&dots)[kRows][kDotColumns<kColumns>]) {
#if defined(WICK_MATRIX_INT8)
  if constexpr (kColumns > 1) {
    static_assert(kRows == 1);
    multiply_quads<T, kSteps, kColumns>(w[0], x, unit, g, step, dots[0]);
    return;
  }
  static_assert(kColumns > 1 || !Source::kArranged);
#endif
  constexpr int kQuads = 8 / kSteps, kFold = kPairQuads<Source::kLevels>;
  constexpr bool kTurns =
      T::kParts == 1 && (T::kQuants == Quants::nibbles || T::kQuants == Quants::five);
  decltype(Source::vectors(w[0], unit, g)) vectors[kRows];
  WICK_UNROLL
  for (int m = 0; m < kRows; ++m) vectors[m] = Source::vectors(w[m], unit, g);
  WICK_UNROLL
  for (int i = 0; i < kQuads; ++i) {
    // Both nibbles of a vector one after the other, so that it is loaded once.
    const int turn = step * kQuads + i;
    const int k = kTurns ? (turn >> 1) + (turn & 1) * 4 : turn;
    decltype(Source::quad(vectors[0], k)) weights[kRows];
    WICK_UNROLL
    for (int m = 0; m < kRows; ++m) weights[m] = Source::quad(vectors[m], k);
    WICK_UNROLL
    for (int j = 0; j < kColumns; ++j) {
#if defined(__AVX512VNNI__) || defined(__ARM_FEATURE_DOTPROD)
      constexpr bool kFromMemory = kRows == 1;
#else
      constexpr bool kFromMemory = false;
#endif
      if constexpr (kFromMemory) {
        accumulate_at(dots[0][j], weights[0], x + j * kBlockElems, k);
      } else {
        const I8x4 quad = load_quad(x + j * kBlockElems + 4 * k);
        WICK_UNROLL
        for (int m = 0; m < kRows; ++m) {
          accumulate(dots[m][j], weights[m], quad);
          if (i % kFold == kFold - 1) fold(dots[m][j]);
        }
      }
    }
  }
}

/// Dot products of one step, before end_dots. They start at `from`, which corrects the offset of
/// unsigned levels.
template <class T, int kSteps, class Source, int kRows, int kColumns>
WICK_SIMD void dot_part(const Source (&w)[kRows], const uint8_t* x, int64_t unit, int g, int step,
                        const int32_t (&from)[kColumns],
                        Dot<Source::kLevels> (&dots)[kRows][kDotColumns<kColumns>]) {
  WICK_UNROLL
  for (int m = 0; m < kRows; ++m) {
#if defined(WICK_MATRIX_INT8)
    WICK_UNROLL
    for (int j = 0; kColumns > 1 && j < kColumns; j += 2) {
      start(dots[m][j], dots[m][j + 1], from[j], from[j + 1 < kColumns ? j + 1 : j]);
    }
    if constexpr (kColumns > 1) continue;
#endif
    WICK_UNROLL
    for (int j = 0; j < kColumns; ++j) start(dots[m][j], from[j]);
  }
  dot_quads<T, kSteps, kColumns>(w, x, unit, g, step, dots);
}

/// Ends dot products of kColumns columns, which products of matrices interleave.
template <int kColumns, Quants kLevels, int kRows, int kDots>
WICK_SIMD void end_dots([[maybe_unused]] Dot<kLevels> (&dots)[kRows][kDots]) {
#if defined(WICK_MATRIX_INT8)
  WICK_UNROLL
  for (int j = 0; kColumns > 1 && j < kColumns; j += 2) separate(dots[0][j], dots[0][j + 1]);
#endif
}

/// The integer dot products of a block times the factors of its parts: below 2^24, so that floats
/// represent them exactly.
template <class T, class Source, int kRows, int kColumns>
WICK_SIMD void dot_block(const Source (&w)[kRows], const uint8_t* x, int64_t unit, int g,
                         const uint8_t* extra, F32x16 (&out)[kRows][kColumns]) {
  constexpr int kParts = Source::kFolded ? 1 : T::kParts;
  WICK_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const int word = Source::kFolded ? T::kParts : part;
    int32_t from[kColumns];
    WICK_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      __builtin_memcpy(&from[j], extra + 4 * (j * Packed<T>::kExtras + word), 4);
      if (T::kHasMin) from[j] = 0;
    }
    Dot<Source::kLevels> dots[kRows][kDotColumns<kColumns>];
    dot_part<T, kParts>(w, x, unit, g, part, from, dots);
    end_dots<kColumns>(dots);
    WICK_UNROLL
    for (int m = 0; m < kRows; ++m) {
      if constexpr (!T::kSuper || Source::kFolded) {
        WICK_UNROLL
        for (int j = 0; j < kColumns; ++j) out[m][j] = finish(dots[m][j], from[j]);
      } else {
        const F32x16 factor = Source::factor(w[m], unit, g, part);
        WICK_UNROLL
        for (int j = 0; j < kColumns; ++j) {
          const F32x16 dot = finish(dots[m][j], from[j]);
          out[m][j] = part == 0 ? mul(factor, dot) : fma(factor, dot, out[m][j]);
        }
      }
    }
  }
}

/// One block of a register tile: adds scaled integer dot products to sums.
template <class T, class Source, int kRows, int kColumns>
WICK_SIMD void add_block(const Source (&w)[kRows], const uint8_t* x, int64_t unit, int g,
                         F32x16 (&sums)[kRows][kColumns]) {
  WICK_UNROLL
  for (int m = 0; m < kRows; ++m) Source::prefetch(w[m], unit, g);
  x += (unit * Source::kUnitBlocks + g) * kColumns * Packed<T>::kTileBlockBytes;
  const auto* d = reinterpret_cast<const float*>(x + kColumns * kBlockElems);
  const uint8_t* extra = x + kColumns * (kBlockElems + 4);
  F32x16 products[kRows][kColumns];
  dot_block<T>(w, x, unit, g, extra, products);
  WICK_UNROLL
  for (int m = 0; m < kRows; ++m) {
    const F32x16 scale = Source::scale(w[m], unit, g);
    const F32x16 minimum = T::kHasMin ? Source::minimum(w[m], unit, g) : scale;
    WICK_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      if (T::kHasMin) {
        float scaled_sum;
        __builtin_memcpy(&scaled_sum, extra + 4 * j, 4);
        sums[m][j] = fma(minimum, splat_16(scaled_sum), sums[m][j]);
      }
      sums[m][j] = fma(mul(scale, splat_16(d[j])), products[m][j], sums[m][j]);
    }
  }
}

/// The integer dot products of T::kSumBlocks blocks that share a scale of the activations, times
/// the blocks' factors, as floats.
template <class T, class Source, int kRows, int kColumns>
WICK_SIMD void dot_shared(const Source (&w)[kRows], const uint8_t* x, int64_t unit, int first,
                          F32x16 (&out)[kRows][kColumns]) {
  constexpr int kBytes = kColumns * Packed<T>::kTileBlockBytes;
  constexpr int32_t kFrom[kColumns] = {};
  if constexpr (Source::kFolded) {
    Dot<Source::kLevels> dots[kRows][kDotColumns<kColumns>];
    dot_part<T, 1>(w, x, unit, first, 0, kFrom, dots);
    for (int g = 1; g < T::kSumBlocks; ++g) {
      dot_quads<T, 1, kColumns>(w, x + g * kBytes, unit, first + g, 0, dots);
    }
    end_dots<kColumns>(dots);
    WICK_UNROLL
    for (int m = 0; m < kRows; ++m) {
      WICK_UNROLL
      for (int j = 0; j < kColumns; ++j) out[m][j] = finish(dots[m][j], 0);
    }
  } else {
    constexpr int kSteps = kSharedSteps<T>;
    decltype(Source::factors(w[0], unit, first, 0)) sums[kRows][kColumns];
    WICK_UNROLL
    for (int m = 0; m < kRows; ++m) {
      WICK_UNROLL
      for (int j = 0; j < kColumns; ++j) clear(sums[m][j]);
    }
    // GCC would unroll this loop and move the prefetches of all blocks to the first.
    int end = first + T::kSumBlocks;
    asm("" : "+r"(end));
    for (int g = first; g < end; ++g) {
      WICK_UNROLL
      for (int m = 0; m < kRows; ++m) Source::prefetch(w[m], unit, g);
      WICK_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        Dot<Source::kLevels> dots[kRows][kDotColumns<kColumns>];
        dot_part<T, kSteps>(w, x, unit, g, step, kFrom, dots);
        end_dots<kColumns>(dots);
        WICK_UNROLL
        for (int m = 0; m < kRows; ++m) {
          const auto factors = Source::factors(w[m], unit, g, step * T::kParts / kSteps);
          WICK_UNROLL
          for (int j = 0; j < kColumns; ++j) add_scaled(sums[m][j], dots[m][j], factors);
        }
      }
      x += kBytes;
    }
    WICK_UNROLL
    for (int m = 0; m < kRows; ++m) {
      WICK_UNROLL
      for (int j = 0; j < kColumns; ++j) out[m][j] = to_floats(sums[m][j]);
    }
  }
}

/// The blocks of a register tile that share a scale of the activations: the unit's scale and
/// minimum multiply integers.
template <class T, class Source, int kRows, int kColumns>
WICK_SIMD void add_shared(const Source (&w)[kRows], const uint8_t* x, int64_t unit, int first,
                          F32x16 (&sums)[kRows][kColumns]) {
  constexpr int kBytes = kColumns * Packed<T>::kTileBlockBytes;
  constexpr int kPairBlocks = 2 / T::kParts, kPairs = T::kSharedBlocks / kPairBlocks;
  x += (unit * Source::kUnitBlocks + first) * kBytes;
  F32x16 scaled[kRows][kColumns];
  WICK_UNROLL
  for (int g = 0; g < T::kSharedBlocks; g += T::kSumBlocks) {
    F32x16 products[kRows][kColumns];
    dot_shared<T>(w, x + g * kBytes, unit, first + g, products);
    WICK_UNROLL
    for (int m = 0; m < kRows; ++m) {
      const F32x16 scale = Source::scale(w[m], unit, 0);
      WICK_UNROLL
      for (int j = 0; j < kColumns; ++j) {
        scaled[m][j] =
            g == 0 ? mul(scale, products[m][j]) : fma(scale, products[m][j], scaled[m][j]);
      }
    }
  }
  const auto* d = reinterpret_cast<const float*>(x + kColumns * kBlockElems);
  const uint8_t* extra = x + kColumns * (kBlockElems + 4);
  WICK_UNROLL
  for (int m = 0; m < kRows; ++m) {
    const F32x16 minimum = Source::minimum(w[m], unit, 0);
    I16x32 factors[kPairs];
    WICK_UNROLL
    for (int i = 0; i < kPairs; ++i) {
      factors[i] = Source::minimum_factors(w[m], unit, first + kPairBlocks * i);
    }
    WICK_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      I32x16 minima = dot_pairs(factors[0], extra + 4 * j);
      WICK_UNROLL
      for (int i = 1; i < kPairs; ++i) {
        minima = dot_pairs(factors[i], extra + kPairBlocks * i * kBytes + 4 * j, minima);
      }
      sums[m][j] = fma(splat_16(d[j]), fma(minimum, to_f32(minima), scaled[m][j]), sums[m][j]);
    }
  }
}

/// kRows panels times the kColumns columns of one tile.
template <class T, class Source, int kRows, int kColumns>
WICK_SIMD void multiply_tile(const Source (&w)[kRows], const uint8_t* x, int64_t blocks,
                             F32x16 (&totals)[kRows][kColumns]) {
  constexpr int kUnit = Source::kUnitBlocks;
  WICK_UNROLL
  for (int m = 0; m < kRows; ++m) {
    WICK_UNROLL
    for (int j = 0; j < kColumns; ++j) totals[m][j] = splat_16(0.0f);
  }
  for (int64_t chunk = 0; chunk < blocks; chunk += kChunkBlocks) {
    const int64_t end = chunk + kChunkBlocks < blocks ? chunk + kChunkBlocks : blocks;
    F32x16 sums[kRows][kColumns];
    WICK_UNROLL
    for (int m = 0; m < kRows; ++m) {
      WICK_UNROLL
      for (int j = 0; j < kColumns; ++j) sums[m][j] = splat_16(0.0f);
    }
    if constexpr (T::kSharedBlocks > 1) {
      static_assert(kUnit == kChunkBlocks);
      for (int g = 0; g < kUnit; g += T::kSharedBlocks) {
        add_shared<T>(w, x, chunk / kUnit, g, sums);
      }
    } else if constexpr (kUnit == kChunkBlocks) {
      for (int g = 0; g < kUnit; ++g) add_block<T>(w, x, chunk / kUnit, g, sums);
    } else {
      const int64_t whole = end / kUnit;
      for (int64_t unit = chunk / kUnit; unit < whole; ++unit) {
        WICK_UNROLL
        for (int g = 0; g < kUnit; ++g) add_block<T>(w, x, unit, g, sums);
      }
      // The first blocks of a last unit that isn't whole.
      for (int g = 0; g < end - whole * kUnit; ++g) add_block<T>(w, x, whole, g, sums);
    }
    WICK_UNROLL
    for (int m = 0; m < kRows; ++m) {
      WICK_UNROLL
      for (int j = 0; j < kColumns; ++j) totals[m][j] = add(totals[m][j], sums[m][j]);
    }
  }
}

// ---- Activations in memory.

template <class Storage>
WICK_SIMD void load_as(const void* x, int64_t stride, int64_t n, float* out) {
  const auto* from = static_cast<const Storage*>(x);
  if (stride == 1) return widen_run(out, from, n);
  for (int64_t i = 0; i < n; ++i) out[i] = widen(from[i * stride]);
}

void load_row(ActivationType type, const void* x, int64_t stride, int64_t n, float* out) {
  if (type == ActivationType::f16) {
    load_as<math::f16>(x, stride, n, out);
  } else if (type == ActivationType::bf16) {
    load_as<math::bf16>(x, stride, n, out);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<const float*>(x)[i * stride];
  }
}

template <class T>
WICK_SIMD FromPanel<T> source(FromPanel<T>, const GemmJob& job, const uint8_t* panel) {
  return {panel, job.prefetch_bytes};
}
template <class T>
WICK_SIMD FromScratch<T> source(FromScratch<T>, const GemmJob&, const uint8_t* panel) {
  return {panel};
}
template <class T>
WICK_SIMD FromSharedScratch<T> source(FromSharedScratch<T>, const GemmJob&, const uint8_t* panel) {
  return {panel};
}
template <class T>
WICK_SIMD InPlace<T> source(InPlace<T>, const GemmJob&, const uint8_t* panel) {
  return {{panel, 0}};
}

/// Multiplies and stores one register tile. Not inlined, because each is a page of straight code
/// that needs all registers.
template <class T, class Source, int kRows, int kColumns>
__attribute__((noinline)) void gemm_tile(const GemmJob& job, const uint8_t* const* panels,
                                         int64_t panel, const uint8_t* x, int64_t column) {
  Source w[kRows];
  for (int m = 0; m < kRows; ++m) w[m] = source(Source{}, job, panels[m]);
  F32x16 totals[kRows][kColumns];
  multiply_tile<T>(w, x, job.blocks, totals);
  WICK_UNROLL
  for (int m = 0; m < kRows; ++m) {
    const int64_t row = (panel + m) * kPanelRows;
    store_rows(job.out, column, row, job.rows, totals[m]);
  }
}

// ---- Loops over panels and tiles.

template <class T>
void decode(const GemmJob& job) {
  using TileGemm =
      void (*)(const GemmJob&, const uint8_t* const*, int64_t, const uint8_t*, int64_t);
  using Source = FromPanel<T>;
  static constexpr TileGemm kTiles[kDecodeWidth] = {
      gemm_tile<T, Source, 1, 1>, gemm_tile<T, Source, 1, 2>, gemm_tile<T, Source, 1, 3>,
      gemm_tile<T, Source, 1, 4>, gemm_tile<T, Source, 1, 5>, gemm_tile<T, Source, 1, 6>,
      gemm_tile<T, Source, 1, 7>, gemm_tile<T, Source, 1, 8>};
  const ColumnSplit split = split_columns(job.columns, kDecodeWidth);
  const int64_t panel_bytes = Packed<T>::panel_bytes(job.blocks);
  for (int64_t p = job.begin; p < job.end; ++p) {
    const uint8_t* panel = job.panels + p * panel_bytes;
    const uint8_t* x = job.tiles;
    int64_t column = 0;
    for (int64_t t = 0; t < split.tiles; ++t) {
      const int64_t width = t < split.wide ? split.width : split.width - 1;
      kTiles[width - 1](job, &panel, p, x, column);
      x += width * job.blocks * Packed<T>::kTileBlockBytes;
      column += width;
    }
  }
}

/// Prefetches part `part` of `parts` of some bytes, a multiple of 64.
WICK_SIMD void prefetch_part(const uint8_t* from, int64_t bytes, int64_t part, int64_t parts) {
  const int64_t lines = bytes / 64, end = lines * (part + 1) / parts;
  for (int64_t line = lines * part / parts; line < end; ++line) {
    __builtin_prefetch(from + line * 64, 0, 2);
  }
}

template <class T, class Source, int kRows, int kColumns>
WICK_SIMD void multiply_panels(const GemmJob& job, const uint8_t* const* panels, int64_t panel,
                               const ColumnSplit& split) {
  const uint8_t* x = job.tiles;
  int64_t column = 0;
  // The next panels are prefetched while these are multiplied.
  const int64_t panel_bytes = Packed<T>::panel_bytes(job.blocks);
  const uint8_t* next = job.panels + (panel + kRows) * panel_bytes;
  const int64_t rest = (job.rows + kPanelRows - 1) / kPanelRows - (panel + kRows);
  const int64_t next_bytes = (rest < kRows ? rest : kRows) * panel_bytes;
  for (int64_t t = 0; t < split.tiles; ++t) {
    prefetch_part(next, next_bytes, t, split.tiles);
    const int64_t width = t < split.wide ? split.width : split.width - 1;
    if (width == kColumns) {
      gemm_tile<T, Source, kRows, kColumns>(job, panels, panel, x, column);
    } else {
      gemm_tile<T, Source, kRows, kColumns - 1>(job, panels, panel, x, column);
    }
    x += width * job.blocks * Packed<T>::kTileBlockBytes;
    column += width;
  }
}

template <class T, int kRows, int kColumns>
void prompt(const GemmJob& job) {
  static_assert(kRows <= 2 && kColumns >= 2);
  using Source = std::conditional_t<kReadInPlace<T>, InPlace<T>, Unpacked<T>>;
  const ColumnSplit split = split_columns(job.columns, kColumns);
  const int64_t panel_bytes = Packed<T>::panel_bytes(job.blocks);
  for (int64_t p = job.begin; p < job.end; p += kRows) {
    const int64_t count = job.end - p < kRows ? job.end - p : kRows;
    const uint8_t* panels[kRows];
    for (int64_t m = 0; m < count; ++m) {
      panels[m] = job.panels + (p + m) * panel_bytes;
      if constexpr (!kReadInPlace<T>) {
        uint8_t* unpacked = job.scratch + m * job.blocks * Unpacked<T>::kBlockBytes;
        Unpacked<T>::fill(unpacked, source(FromPanel<T>{}, job, panels[m]), job.blocks);
        panels[m] = unpacked;
      }
    }
    if (count == kRows) {
      multiply_panels<T, Source, kRows, kColumns>(job, panels, p, split);
    } else {
      multiply_panels<T, Source, 1, kColumns>(job, panels, p, split);
    }
  }
}

template <class T, int kRows, int kColumns>
constexpr QuantizedTypeKernels type_kernels(int prompt_columns) {
  return {quantize_tile<T>,
          Packed<T>::kTileBlockBytes,
          decode<T>,
          prompt<T, kRows, kColumns>,
          kColumns,
          prompt_columns,
          kReadInPlace<T> ? 0 : kRows * Unpacked<T>::kBlockBytes};
}

/// Register tiles (panels × columns) for the number of registers: 32 of 16 lanes, 16 of 8 lanes, 32
/// of 4 lanes, or those that a compiler allocates; then the fewest columns for `prompt`.
template <class T>
constexpr QuantizedTypeKernels chosen_kernels() {
#if defined(__AVX512VNNI__)
  constexpr int columns = T::kQuants == Quants::six ? 4 : 5;
  return type_kernels<T, 2, columns>(T::kQuants == Quants::bytes ? 32 : 40);
#elif defined(__AVX512BW__)
  constexpr bool nibbles =
      kDotLevels<T> == Quants::nibbles && (T::kParts == 1 || T::kSharedBlocks > 1);
  return type_kernels < T, nibbles ? 2 : 1, nibbles ? 5 : 6 > (nibbles ? 24 : 30);
#elif defined(__ARM_FEATURE_DOTPROD)
  return type_kernels<T, 1, 4>(16);
#elif defined(WICK_NEON_INT8)
  static_assert(T::kLevels != Quants::six || T::kParts == 2, "sums of 16 bits hold four quads");
  return type_kernels<T, 1, 2>(16);
#else
  constexpr bool narrow = T::kQuants == Quants::five || T::kQuants == Quants::six;
  return type_kernels<T, 1, 4>(narrow ? 16 : 24);
#endif
}

constexpr QuantizedKernels make_table() {
  QuantizedKernels table{load_row, {}};
#define WICK_OWN_QUANT(name, Type, ...) \
  table.types[quant_index(DType::name)] = chosen_kernels<Type>();
#include "wick/math/quants_by_products.def"
  return table;
}

}  // namespace

constexpr QuantizedKernels quantized_kernels = make_table();
static_assert(complete(quantized_kernels));

}  // namespace wick::cpu::WICK_ISA
