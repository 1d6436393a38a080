#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/dtype.h"

namespace wick::cpu {

/// Conversions between dense floats and the blocks of one dtype; null where there is none.
struct BlockCodec {
  void (*quantize)(const float* in, int64_t blocks, uint8_t* out);
  void (*dequantize)(const uint8_t* in, int64_t blocks, float* out);
};

/// Dense runs of a 16-bit float type.
struct HalfCodec {
  void (*to_f32)(const uint16_t* in, int64_t n, float* out);
  void (*from_f32)(const float* in, int64_t n, uint16_t* out);
};

struct BlockKernels {
  BlockCodec blocks[kDTypeCount - kRealDTypeCount];  ///< by block dtype
  HalfCodec f16, bf16;

  constexpr const BlockCodec& of(DType dtype) const {
    return blocks[static_cast<int>(dtype) - kRealDTypeCount];
  }
};

/// True when every block dtype of weights is made and read.
constexpr bool complete(const BlockKernels& table) {
  for (int d = kRealDTypeCount; d < kDTypeCount; ++d) {
    if (!dtypes::kWeights.contains(static_cast<DType>(d))) continue;
    const BlockCodec& codec = table.blocks[d - kRealDTypeCount];
    if (codec.quantize == nullptr || codec.dequantize == nullptr) return false;
  }
  return table.f16.to_f32 != nullptr && table.f16.from_f32 != nullptr &&
         table.bf16.to_f32 != nullptr && table.bf16.from_f32 != nullptr;
}

WICK_DECLARE_KERNELS(BlockKernels, block_kernels)

}  // namespace wick::cpu
