#include "wick/backend/gpu/linear/quantize_activations.h"

#include <algorithm>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/norm/norm.h"

namespace wick::gpu {
namespace {

const KernelFamily<QuantizeRowsArgs, DType> kQuantizeRows("quantize_activations",
                                                          "quantize_rows_{}");
const KernelFamily<QuantizeRowsArgs> kSiluMulQuantize("quantize_activations",
                                                      "silu_mul_quantize_f32");
const KernelFamily<NormQuantizeArgs> kNormQuantizeShort("quantize_activations",
                                                        "rms_norm_quantize_short");
const KernelFamily<NormQuantizeArgs> kNormQuantizeLong("quantize_activations",
                                                       "rms_norm_quantize_long");
const KernelFamily<NormQuantizeArgs> kNormQuantizeMany("quantize_activations",
                                                       "rms_norm_quantize_many");

/// The most columns of a row for rms_norm_quantize_short and for rms_norm_quantize_long.
constexpr int64_t kMostShort = 4 * kNormQuantizeThreads * kShortFours;
constexpr int64_t kMostHeld = 4 * kNormQuantizeThreads * kLongFours;

/// The layout of the last dim.
Spread spread_of(const ConstView& x) {
  return {x.layout.stride(x.layout.rank() - 1), access_of(x).vectors_of(4) ? 1u : 0u};
}

/// rms_norm and quantisation of rows that are too long for a thread block to hold.
void norm_then_quantize(Gpu& gpu, const LinearFusion& fusion, const ConstView& x, int64_t k,
                        const RowBlocks& out) {
  const Scratch normed(gpu, static_cast<size_t>(bytes_of(DType::f32, x.layout.elems())));
  const View y{normed.data(), DType::f32, Layout::contiguous(x.layout.shape())};
  rms_norm(gpu, y, x, fusion.norm, fusion.eps);
  quantize_rows(gpu, {}, y, k, out);
}

}  // namespace

void quantize_rows(Gpu& gpu, const LinearFusion& fusion, const ConstView& x, int64_t k,
                   const RowBlocks& out) {
  using Input = LinearFusion::Input;
  if (x.layout.elems() == 0) return;
  const bool norm = fusion.input == Input::rms_norm, silu = fusion.input == Input::silu_mul;
  if (norm && k > kMostHeld) return norm_then_quantize(gpu, fusion, x, k, out);
  const int last = x.layout.rank() - 1;
  const CollapsedDims<1> rows = collapse<1>({&x.layout}, (1u << last) - 1);
  const Spread spread = spread_of(x);
  const Blocks blocks{out.q, out.scales, static_cast<uint32_t>(out.padded),
                      static_cast<uint32_t>(out.shared), out.halves ? 1u : 0u};
  const auto columns = static_cast<uint32_t>(k);
  const auto fours = static_cast<unsigned>(out.padded) * 8;
  uint64_t first_row = 0;
  rows.for_each_piece(std::max(int64_t{fours}, int64_t{1024}), [&](const StridedIndex<1>& strided,
                                                                   const auto& start) {
    const void* const in = advance(x.data, x.dtype, start[0]);
    Grid grid;
    grid.pdl = true;
    if (norm) {
      const Layout& w = fusion.norm.layout;
      const float* const weight = static_cast<const float*>(fusion.norm.data) + w.offset();
      const Spread weight_spread = spread_of(fusion.norm);
      // A single row needs many threads, many rows need many thread blocks.
      const bool is_short = k <= kMostShort;
      const bool many =
          !is_short && strided.elems > 2 * static_cast<unsigned>(gpu.info.multiprocessors);
      grid.blocks[0] = strided.elems;
      grid.threads =
          many ? kQuantizeThreads : std::clamp((fours + 31) / 32 * 32, 128u, kNormQuantizeThreads);
      grid.shared_bytes = (columns + 127) / 128 * 128 * 4;
      const auto& kernel = is_short ? kNormQuantizeShort
                           : many   ? kNormQuantizeMany
                                    : kNormQuantizeLong;
      kernel().launch(gpu, grid,
                      {blocks, static_cast<const float*>(in), strided, first_row, weight, columns,
                       spread, weight_spread, fusion.eps});
    } else {
      const unsigned a_thread_block =
          quantize_turns(gpu.device.kind == DeviceKind::hip) * kQuantizeThreads;
      const unsigned blocks_a_row = (fours + a_thread_block - 1) / a_thread_block;
      grid.blocks[0] = strided.elems * blocks_a_row;
      (silu ? kSiluMulQuantize() : kQuantizeRows(x.dtype))
          .launch(gpu, grid,
                  {blocks, in, strided, first_row, Divider(blocks_a_row), columns, spread});
    }
    first_row += strided.elems;
  });
}

}  // namespace wick::gpu
