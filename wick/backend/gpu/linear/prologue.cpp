#include "wick/backend/gpu/linear/prologue.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"
#include "wick/backend/gpu/kernels/norm/norm_call.h"
#include "wick/backend/gpu/layout/space.h"
#include "wick/backend/gpu/norm/norm.h"

namespace wick::gpu {
namespace {

constexpr unsigned kItems = 256;
constexpr int64_t kMostHeld = 16384;  // columns of a row that a group of rms_norm_quantize holds

/// How the last dim's elements lie.
Spread spread_of(const ConstView& x) {
  return {x.layout.stride(x.layout.rank() - 1), access_of(x).vectors_of(4) ? 1u : 0u};
}

/// rms_norm_quantize of rows too long for a group to hold.
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
  const Space<1> rows = space_of<1>({&x.layout}, (1u << last) - 1);
  const Spread spread = spread_of(x);
  const Blocks blocks{out.q, out.scales, static_cast<uint32_t>(out.padded),
                      static_cast<uint32_t>(out.shared)};
  const auto columns = static_cast<uint32_t>(k);
  const auto fours = static_cast<unsigned>(out.padded) * 8;
  uint64_t first_row = 0;
  rows.for_each_piece(std::max(int64_t{fours}, int64_t{1024}), [&](const Nest<1>& nest,
                                                                   const auto& start) {
    const void* in = advance(x.data, x.dtype, start[0]);
    Grid grid;
    grid.early = true;
    if (norm) {
      const Layout& w = fusion.norm.layout;
      const void* weight = advance(fusion.norm.data, DType::f32, w.offset());
      const Spread weight_spread = spread_of(fusion.norm);
      // A row alone wants many items, many rows many groups.
      const bool is_short = k <= 4 * 1024;
      const bool many = !is_short && nest.elems > 2 * static_cast<unsigned>(gpu.info.processors);
      grid.groups[0] = nest.elems;
      grid.items = many ? kItems : std::clamp((fours + 31) / 32 * 32, 128u, 1024u);
      grid.shared_bytes = (columns + 127) / 128 * 128 * 4;
      gpu.launch("prologue",
                 is_short ? "rms_norm_quantize_short"
                 : many   ? "rms_norm_quantize_many"
                          : "rms_norm_quantize_long",
                 grid, blocks, in, nest, first_row, weight, columns, spread, weight_spread,
                 fusion.eps);
    } else {
      const unsigned turns =
          gpu.device.kind == DeviceKind::hip ? 2 : 1;  // kernels/linear/prologue.gpu
      const unsigned groups_a_row = (fours + turns * kItems - 1) / (turns * kItems);
      grid.groups[0] = nest.elems * groups_a_row;
      gpu.launch("prologue",
                 silu ? "silu_mul_quantize_f32" : fmt::format("quantize_rows_{}", name(x.dtype)),
                 grid, blocks, in, nest, first_row, Divider(groups_a_row), columns, spread);
    }
    first_row += nest.elems;
  });
}

}  // namespace wick::gpu
