#pragma once

#include "wick/backend/cpu/linear/quantized_kernels.h"

namespace wick::cpu {

/// Kernels for prompts through quantised weights on the tiles of AMX. Everything else of
/// QuantizedKernels is that of v4_vnni, whose activations they read.
struct AmxKernels {
  struct Type {
    /// As QuantizedTypeKernels::prompt; tiles are those of split_columns with kAmxColumns.
    void (*prompt)(const GemmJob&);
    int scratch_block_bytes;
  };
  Type types[kBlockDTypeCount];  ///< empty for dtypes without kernels of their own
};

inline constexpr int kAmxColumns = 16;

namespace amx {
extern const AmxKernels amx_kernels;
}

}  // namespace wick::cpu
