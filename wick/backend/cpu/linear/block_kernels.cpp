// Conversion of blocks to floats and back.
//
// Computes what wick/math/quants.h defines, block by block; the bits don't depend on the
// instruction set. Bytes moved: each once in and once out.

#include "wick/backend/cpu/linear/block_kernels.h"

#include "wick/backend/cpu/simd/convert.h"
#include "wick/math/quants.h"

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
  widen_run(out, reinterpret_cast<const Half*>(in), n);
}

template <class Half>
void half_from_f32(const float* in, int64_t n, uint16_t* out) {
  narrow_run(reinterpret_cast<Half*>(out), in, n);
}

template <class Half>
constexpr HalfCodec half() {
  return {half_to_f32<Half>, half_from_f32<Half>};
}

constexpr BlockKernels make_table() {
  BlockKernels table{{}, half<math::f16>(), half<math::bf16>()};
#define WICK_OF_written(Block) quantize<Block>
#define WICK_OF_searched(Block) nullptr
#define WICK_OF_read(Block) nullptr
#define WICK_QUANT(name, Type, number, values, bytes, bits, offset, code, part, scale, at, \
                   minimum_at, products, writes, reach)                                    \
  table.blocks[quant_index(DType::name)] = {WICK_OF_##writes(math::Block##Type),           \
                                            dequantize<math::Block##Type>};
#include "wick/math/quants.def"
#undef WICK_OF_written
#undef WICK_OF_searched
#undef WICK_OF_read
  return table;
}

}  // namespace

constexpr BlockKernels block_kernels = make_table();
static_assert(complete(block_kernels));

}  // namespace wick::cpu::WICK_ISA
