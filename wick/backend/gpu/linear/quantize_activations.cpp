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
const KernelFamily<QuantizeRowsArgs> kGeluMulQuantize("quantize_activations",
                                                      "gelu_mul_quantize_f32");
const KernelFamily<NormQuantizeArgs> kNormQuantizeShort("quantize_activations",
                                                        "rms_norm_quantize_short");
const KernelFamily<NormQuantizeArgs> kNormQuantizeLong("quantize_activations",
                                                       "rms_norm_quantize_long");
const KernelFamily<NormQuantizeArgs> kNormQuantizeMany("quantize_activations",
                                                       "rms_norm_quantize_many");
const KernelFamily<NormQuantizeArgs> kNormQuantizeWarp("quantize_activations",
                                                       "rms_norm_quantize_warp");

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

/// A launch of one of the kernels rms_norm_quantize_*.
struct NormLaunch {
  const KernelFamily<NormQuantizeArgs>& kernel;
  Grid grid;
};
/// fours: vectors of four values of a padded row.
NormLaunch norm_launch(const Gpu& gpu, uint32_t rows, uint32_t columns, unsigned fours) {
  Grid grid;
  grid.pdl = true;
  if (gpu.device.kind == DeviceKind::hip && columns <= kMostOfNormWarp) {
    grid.threads = kNormQuantizeWarpThreads;
    grid.blocks[0] = static_cast<unsigned>(divide_up(rows, kNormQuantizeWarpThreads / kWarp));
    return {kNormQuantizeWarp, grid};
  }
  // A single row needs many threads, many rows need many thread blocks.
  const bool is_short = columns <= kMostShort;
  const bool many = !is_short && rows > 2 * static_cast<unsigned>(gpu.info.multiprocessors);
  grid.blocks[0] = rows;
  grid.threads =
      many ? kQuantizeThreads : std::clamp((fours + 31) / 32 * 32, 128u, kNormQuantizeThreads);
  grid.shared_bytes = (columns + 127) / 128 * 128 * 4;
  return {is_short ? kNormQuantizeShort : many ? kNormQuantizeMany : kNormQuantizeLong, grid};
}

/// A launch of quantize_rows, silu_mul_quantize or gelu_mul_quantize.
struct RowsLaunch {
  unsigned blocks_a_row;
  Grid grid;
};
RowsLaunch rows_launch(uint32_t rows, unsigned fours, bool amd) {
  const unsigned threads = static_cast<unsigned>(divide_up(fours, quantize_turns(amd)));
  RowsLaunch launch;
  launch.blocks_a_row = static_cast<unsigned>(divide_up(threads, kQuantizeThreads));
  launch.grid.pdl = true;
  launch.grid.blocks[0] = rows * launch.blocks_a_row;
  launch.grid.threads = kQuantizeThreads;
  if (amd) {  // whole warps that share the row evenly
    launch.grid.threads =
        static_cast<unsigned>(divide_up(threads, launch.blocks_a_row * kWarp)) * kWarp;
  }
  return launch;
}

}  // namespace

void quantize_rows(Gpu& gpu, const LinearFusion& fusion, const ConstView& x, int64_t k,
                   const RowBlocks& out) {
  using Input = LinearFusion::Input;
  if (x.layout.elems() == 0) return;
  const bool norm = fusion.input == Input::rms_norm;
  if (norm && k > kMostHeld) return norm_then_quantize(gpu, fusion, x, k, out);
  const int last = x.layout.rank() - 1;
  const CollapsedDims<1> rows = collapse<1>({&x.layout}, (1u << last) - 1);
  const Spread spread = spread_of(x);
  const Blocks blocks{out.q, out.scales, static_cast<uint32_t>(out.padded),
                      static_cast<uint32_t>(out.shared), out.halves ? 1u : 0u};
  const auto columns = static_cast<uint32_t>(k);
  const auto fours = static_cast<unsigned>(out.padded) * 8;
  const bool amd = gpu.device.kind == DeviceKind::hip;
  uint64_t first_row = 0;
  rows.for_each_piece(std::max(int64_t{fours}, int64_t{1024}), [&](const StridedIndex<1>& strided,
                                                                   const auto& start) {
    const void* const in = advance(x.data, x.dtype, start[0]);
    if (norm) {
      const Layout& w = fusion.norm.layout;
      const float* const weight = static_cast<const float*>(fusion.norm.data) + w.offset();
      const NormLaunch launch = norm_launch(gpu, strided.elems, columns, fours);
      launch.kernel().launch(gpu, launch.grid,
                             {blocks, static_cast<const float*>(in), strided, first_row, weight,
                              columns, spread, spread_of(fusion.norm), fusion.eps});
    } else {
      const RowsLaunch launch = rows_launch(strided.elems, fours, amd);
      (fusion.input == Input::silu_mul   ? kSiluMulQuantize()
       : fusion.input == Input::gelu_mul ? kGeluMulQuantize()
                                         : kQuantizeRows(x.dtype))
          .launch(gpu, launch.grid,
                  {blocks, in, strided, first_row, Divider(launch.blocks_a_row), columns, spread});
    }
    first_row += strided.elems;
  });
}

}  // namespace wick::gpu
