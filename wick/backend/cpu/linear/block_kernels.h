#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/quant.h"

namespace wick::cpu {

/// Conversions between dense floats and the blocks of one dtype. quantize is null for dtypes that
/// are only read.
struct BlockCodec {
  void (*quantize)(const float* in, int64_t blocks, uint8_t* out);
  void (*dequantize)(const uint8_t* in, int64_t blocks, float* out);
};

/// Conversions of dense runs of a 16-bit float type.
struct HalfCodec {
  void (*to_f32)(const uint16_t* in, int64_t n, float* out);
  void (*from_f32)(const float* in, int64_t n, uint16_t* out);
};

struct BlockKernels {
  BlockCodec blocks[kBlockDTypeCount];
  HalfCodec f16, bf16;

  constexpr const BlockCodec& of(DType dtype) const { return blocks[quant_index(dtype)]; }
};

/// True when every block dtype can be dequantised, and those that quants.def says are written can
/// be quantised.
constexpr bool complete(const BlockKernels& table) {
  for (const QuantInfo& type : kQuants) {
    const BlockCodec& codec = table.of(type.dtype);
    const bool makes = codec.quantize != nullptr;
    if (codec.dequantize == nullptr || makes != dtypes::kWrittenBlocks.contains(type.dtype))
      return false;
  }
  return table.f16.to_f32 != nullptr && table.f16.from_f32 != nullptr &&
         table.bf16.to_f32 != nullptr && table.bf16.from_f32 != nullptr;
}

WICK_DECLARE_KERNELS(BlockKernels, block_kernels)

}  // namespace wick::cpu
