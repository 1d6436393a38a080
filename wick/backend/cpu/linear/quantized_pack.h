#pragma once

#include <cstdint>

#include "wick/base/dtype.h"

namespace wick::cpu {

/// How weights of one block dtype are packed (layout: quantized_types.h).
struct QuantizedPacking {
  int64_t (*panel_bytes)(int64_t blocks);
  /// Packs 16 rows of `blocks` blocks, each in file layout, into one panel.
  void (*pack_panel)(const uint8_t* const* rows, int64_t blocks, uint8_t* panel);
};

/// The packing of a dtype. Errors: not a dtype of kOwnProducts.
QuantizedPacking quantized_packing(DType dtype);

}  // namespace wick::cpu
