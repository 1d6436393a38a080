#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/quant.h"

namespace wick::cpu {

/// Rows of a weight that a kernel multiplies at once.
inline constexpr int kDecodedRows = 32;

/// A panel of a weight in file layout times columns of activations.
struct DecodedJob {
  const uint8_t* first;  ///< row
  int64_t row_bytes;
  int64_t rows;  ///< at most kDecodedRows
  int64_t k;     ///< whole blocks
  const float* x;
  int64_t x_stride;  ///< floats from one column to the next
  int64_t columns;
  float* y;  ///< [columns][kDecodedRows]: zeros before, results after
};

struct DecodedKernels {
  void (*multiply[kBlockDTypeCount])(
      const DecodedJob&);  ///< null if the dtype has kernels of its own
};

/// True when there is a kernel for exactly the block dtypes without kernels of their own.
constexpr bool complete(const DecodedKernels& table) {
  for (const QuantInfo& type : kQuants) {
    const bool own = dtypes::kOwnProducts.contains(type.dtype);
    if (own == (table.multiply[quant_index(type.dtype)] != nullptr)) return false;
  }
  return true;
}

WICK_DECLARE_KERNELS(DecodedKernels, decoded_kernels)

}  // namespace wick::cpu
