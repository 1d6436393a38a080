// Blocks to floats and back; compiled once for every instruction set.
//
// Computes what wick/math/blocks.h and k_blocks.h define, block by block and in order; the bits
// don't depend on the instruction set. Bytes moved: each once in and once out.

#include "wick/backend/cpu/linear/block_kernels.h"

#include "wick/math/k_blocks.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class Block>
void quantize(const float* in, int64_t blocks, uint8_t* out) {
  for (int64_t b = 0; b < blocks; ++b) {
    Block block;
    math::quantize(in + b * math::kBlockValues<Block>, &block);
    __builtin_memcpy(out + b * static_cast<int64_t>(sizeof block), &block, sizeof block);
  }
}

template <class Block>
void dequantize(const uint8_t* in, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b) {
    Block block;
    __builtin_memcpy(&block, in + b * static_cast<int64_t>(sizeof block), sizeof block);
    math::dequantize(block, out + b * math::kBlockValues<Block>);
  }
}

template <class Half>
void half_to_f32(const uint16_t* in, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = math::to_f32(Half{in[i]});
}

template <class Half>
void half_from_f32(const float* in, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = math::from_f32<Half>(in[i]).bits;
}

template <class Block>
constexpr BlockCodec both() {
  return {quantize<Block>, dequantize<Block>};
}

template <class Half>
constexpr HalfCodec half() {
  return {half_to_f32<Half>, half_from_f32<Half>};
}

constexpr BlockKernels make_table() {
  BlockKernels table{{}, half<math::f16>(), half<math::bf16>()};
  const auto block = [&table](DType dtype) -> BlockCodec& {
    return table.blocks[static_cast<int>(dtype) - kRealDTypeCount];
  };
  block(DType::q4_0) = both<math::BlockQ4_0>();
  block(DType::q4_1) = both<math::BlockQ4_1>();
  block(DType::q5_0) = both<math::BlockQ5_0>();
  block(DType::q5_1) = {nullptr, dequantize<math::BlockQ5_1>};
  block(DType::q8_0) = both<math::BlockQ8_0>();
  block(DType::q4_k) = both<math::BlockQ4_K>();
  block(DType::q6_k) = both<math::BlockQ6_K>();
  return table;
}

}  // namespace

constexpr BlockKernels block_kernels = make_table();
static_assert(complete(block_kernels));

}  // namespace wick::cpu::WICK_ISA
