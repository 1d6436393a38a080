#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/quant.h"

namespace wick::cpu {

/// The dtype of activations and results.
enum class ActivationType : uint8_t { f32, f16, bf16 };

/// Where results are stored: element (row of the weight, column of the activations) lies at data +
/// at(column) + row·stride, in elements of `type`.
struct GemmOutput {
  void* data;
  ActivationType type;
  int64_t stride, column_stride;
  const int64_t* columns;  // where each column starts; null: at its index times column_stride
  int64_t first_column;    // the first column of the job

  // Inlined even in debug builds: see isa.h on functions that kernel sources share.
  __attribute__((always_inline)) int64_t at(int64_t column) const {
    column += first_column;
    return columns != nullptr ? columns[column] : column * column_stride;
  }
};

/// Multiplies panels [begin, end) of a packed weight with quantised columns.
struct GemmJob {
  const uint8_t* panels;  // the first panel of the weight
  int64_t begin, end;
  int64_t rows;    // of the whole weight
  int64_t blocks;  // of 32 along k
  const uint8_t* tiles;
  int64_t columns;
  GemmOutput out;
  int64_t prefetch_bytes;  // prefetch distance of packed weights; 0: hardware prefetchers alone
  uint8_t* scratch;        // for `prompt` only: scratch_block_bytes of the type for each block
};

/// The kernels of one type.
struct QuantizedTypeKernels {
  /// Quantises `width` columns of 32·blocks floats into one tile.
  void (*quantize_tile)(const float* const* columns, int64_t width, int64_t blocks, uint8_t* tile);
  /// Bytes of a block of one column in a tile.
  int tile_block_bytes;
  /// For few columns: reads the panels once and unpacks them in registers. Tiles are those of
  /// split_columns with kDecodeWidth.
  void (*decode)(const GemmJob&);
  /// For many columns: unpacks each panel once for all tiles. Tiles are those of split_columns with
  /// prompt_width.
  void (*prompt)(const GemmJob&);
  int prompt_width;
  /// The fewest columns for `prompt`: at least prompt_width·(prompt_width − 1).
  int prompt_columns;
  /// Scratch bytes that `prompt` needs for each block along k.
  int scratch_block_bytes;
};

inline constexpr int kDecodeWidth = 8;

struct QuantizedKernels {
  /// Converts n activations at x + i·stride to floats.
  void (*load_row)(ActivationType type, const void* x, int64_t stride, int64_t n, float* out);
  QuantizedTypeKernels types[kBlockDTypeCount];  ///< empty for dtypes without kernels of their own
};

/// True when every block dtype of kOwnProducts has all of its kernels.
constexpr bool complete(const QuantizedKernels& table) {
  for (const QuantInfo& quant : kQuants) {
    const QuantizedTypeKernels& type = table.types[quant_index(quant.dtype)];
    const bool has_all =
        type.quantize_tile != nullptr && type.decode != nullptr && type.prompt != nullptr;
    if (has_all != dtypes::kOwnProducts.contains(quant.dtype)) return false;
  }
  return table.load_row != nullptr;
}

/// Columns in tiles of about equal size: the first `wide` tiles have `width` columns, the others
/// one fewer.
struct ColumnSplit {
  int64_t tiles, wide, width;
};
static constexpr ColumnSplit split_columns(int64_t columns, int64_t max_width) {
  const int64_t tiles = (columns + max_width - 1) / max_width;
  const int64_t width = tiles == 0 ? 0 : (columns + tiles - 1) / tiles;
  return {tiles, columns - tiles * (width - 1), width};
}

WICK_DECLARE_KERNELS(QuantizedKernels, quantized_kernels)

}  // namespace wick::cpu
