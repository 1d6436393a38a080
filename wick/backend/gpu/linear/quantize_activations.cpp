#include "wick/backend/gpu/linear/quantize_activations.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"
#include "wick/backend/gpu/kernels/norm/norm_call.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/norm/norm.h"

namespace wick::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostHeld =
    16384;  // columns of a row that a thread block of rms_norm_quantize holds

/// How the last dim's elements lie.
Spread spread_of(const ConstView& x) {
  return {x.layout.stride(x.layout.rank() - 1), access_of(x).vectors_of(4) ? 1u : 0u};
}

/// rms_norm_quantize of rows too long for a thread block to hold.
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
                      static_cast<uint32_t>(out.shared)};
  const auto columns = static_cast<uint32_t>(k);
  const auto fours = static_cast<unsigned>(out.padded) * 8;
  uint64_t first_row = 0;
  rows.for_each_piece(std::max(int64_t{fours}, int64_t{1024}), [&](const StridedIndex<1>& strided,
                                                                   const auto& start) {
    const void* in = advance(x.data, x.dtype, start[0]);
    Grid grid;
    grid.pdl = true;
    if (norm) {
      const Layout& w = fusion.norm.layout;
      const void* weight = advance(fusion.norm.data, DType::f32, w.offset());
      const Spread weight_spread = spread_of(fusion.norm);
      // A row alone wants many threads, many rows many thread blocks.
      const bool is_short = k <= 4 * 1024;
      const bool many =
          !is_short && strided.elems > 2 * static_cast<unsigned>(gpu.info.multiprocessors);
      grid.blocks[0] = strided.elems;
      grid.threads = many ? kThreads : std::clamp((fours + 31) / 32 * 32, 128u, 1024u);
      grid.shared_bytes = (columns + 127) / 128 * 128 * 4;
      gpu.launch("quantize_activations",
                 is_short ? "rms_norm_quantize_short"
                 : many   ? "rms_norm_quantize_many"
                          : "rms_norm_quantize_long",
                 grid, blocks, in, strided, first_row, weight, columns, spread, weight_spread,
                 fusion.eps);
    } else {
      const unsigned turns =
          gpu.device.kind == DeviceKind::hip ? 2 : 1;  // kernels/linear/quantize_activations.gpu
      const unsigned blocks_a_row = (fours + turns * kThreads - 1) / (turns * kThreads);
      grid.blocks[0] = strided.elems * blocks_a_row;
      gpu.launch("quantize_activations",
                 silu ? "silu_mul_quantize_f32" : fmt::format("quantize_rows_{}", name(x.dtype)),
                 grid, blocks, in, strided, first_row, Divider(blocks_a_row), columns, spread);
    }
    first_row += strided.elems;
  });
}

}  // namespace wick::gpu
