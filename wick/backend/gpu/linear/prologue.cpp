#include "wick/backend/gpu/linear/prologue.h"

#include <algorithm>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/backend/gpu/layout/space.h"
#include "wick/backend/gpu/norm/norm.h"

namespace wick::gpu {
namespace {

const KernelFamily<QuantizeRowsArgs, DType> kQuantizeRows("prologue", "quantize_rows_{}");
const KernelFamily<QuantizeRowsArgs> kSiluMulQuantize("prologue", "silu_mul_quantize_f32");
const KernelFamily<NormQuantizeArgs> kNormQuantizeShort("prologue", "rms_norm_quantize_short");
const KernelFamily<NormQuantizeArgs> kNormQuantizeLong("prologue", "rms_norm_quantize_long");
const KernelFamily<NormQuantizeArgs> kNormQuantizeMany("prologue", "rms_norm_quantize_many");

/// Columns of a row that a group of rms_norm_quantize_short and _long holds.
constexpr int64_t kMostShort = 4 * kNormQuantizeItems * kShortFours;
constexpr int64_t kMostHeld = 4 * kNormQuantizeItems * kLongFours;

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
    const void* const in = advance(x.data, x.dtype, start[0]);
    Grid grid;
    grid.early = true;
    if (norm) {
      const Layout& w = fusion.norm.layout;
      const float* const weight = static_cast<const float*>(fusion.norm.data) + w.offset();
      const Spread weight_spread = spread_of(fusion.norm);
      // A row alone wants many items, many rows many groups.
      const bool is_short = k <= kMostShort;
      const bool many = !is_short && nest.elems > 2 * static_cast<unsigned>(gpu.info.processors);
      grid.groups[0] = nest.elems;
      grid.items =
          many ? kQuantizeItems : std::clamp((fours + 31) / 32 * 32, 128u, kNormQuantizeItems);
      grid.shared_bytes = (columns + 127) / 128 * 128 * 4;
      const auto& kernel = is_short ? kNormQuantizeShort
                           : many   ? kNormQuantizeMany
                                    : kNormQuantizeLong;
      kernel().launch(gpu, grid,
                      {blocks, static_cast<const float*>(in), nest, first_row, weight, columns,
                       spread, weight_spread, fusion.eps});
    } else {
      const unsigned a_group = quantize_turns(gpu.device.kind == DeviceKind::hip) * kQuantizeItems;
      const unsigned groups_a_row = (fours + a_group - 1) / a_group;
      grid.groups[0] = nest.elems * groups_a_row;
      (silu ? kSiluMulQuantize() : kQuantizeRows(x.dtype))
          .launch(gpu, grid, {blocks, in, nest, first_row, Divider(groups_a_row), columns, spread});
    }
    first_row += nest.elems;
  });
}

}  // namespace wick::gpu
