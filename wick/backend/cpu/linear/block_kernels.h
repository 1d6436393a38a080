#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"

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
  BlockCodec q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q6_k;
  HalfCodec f16, bf16;
};

WICK_DECLARE_KERNELS(BlockKernels, block_kernels)

}  // namespace wick::cpu
