#include "wick/backend/gpu/linear/decoded_weight.h"

#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/expert_tiles.h"
#include "wick/backend/gpu/linear/quantized_weight.h"

namespace wick::gpu {
namespace {

const KernelFamily<DecodedRepackArgs> kRepack("repack_decoded", "decoded_repack");
const KernelFamily<DecodedArgs> kOne("decoded_few", "decoded_one");
const KernelFamily<DecodedArgs> kFew("decoded_few", "decoded_few");
const KernelFamily<DecodedArgs> kMany("decoded_many", "decoded_many");
const KernelFamily<GroupedDecodedArgs> kGrouped("decoded_few", "decoded_grouped");
const KernelFamily<GroupedDecodedTilesArgs> kTiles("decoded_many", "decoded_tiles");

struct DecodedWeight final : PreparedWeight {
  DecodedWeight(Gpu& gpu, size_t size) : memory(gpu, size) {}
  Scratch memory;
};

unsigned thread_blocks(int64_t all, int64_t each) {
  return static_cast<unsigned>(divide_up(all, each));
}

/// The number of bytes, up to 16, that addresses and sizes are multiples of.
uint32_t common_unit(uint64_t all) {
  return all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
}

/// The grid of decoded_one, decoded_few and, with `pairs` along y, of decoded_grouped.
Grid grid_of_few(int64_t rows, unsigned along_y) {
  Grid grid{{thread_blocks(rows, kDecodedFewRows), along_y, 1}};
  grid.threads = kDecodedThreads;
  grid.pdl = true;
  return grid;
}

}  // namespace

std::unique_ptr<PreparedWeight> prepare_decoded(Gpu& gpu, std::span<const ConstView> parts) {
  const DType dtype = parts.front().dtype;
  const int64_t k = parts.front().layout.shape()[1];
  int64_t n = 0;
  for (const ConstView& part : parts) n += part.layout.shape()[0];
  const auto bytes = static_cast<size_t>(n * bytes_of(dtype, k));
  gpu.enter();
  auto weight = std::make_unique<DecodedWeight>(gpu, std::max<size_t>(bytes, 1));
  weight->dtype = dtype;
  weight->n = n;
  weight->k = k;
  weight->bytes = bytes;
  auto* to = weight->memory.data<char>();
  for (const ConstView& part : parts) {
    const Layout& layout = part.layout;
    const int64_t rows = layout.shape()[0], stride = bytes_of(dtype, layout.stride(0));
    if (rows == 0 || k == 0) continue;
    const auto* in = static_cast<const char*>(part.data) + bytes_of(dtype, layout.offset());
    const auto row_bytes = static_cast<uint64_t>(bytes_of(dtype, k));
    const uint32_t unit =
        common_unit(reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(to) |
                    static_cast<uint64_t>(stride) | row_bytes);
    const int64_t threads = rows * bytes_of(dtype, k) / unit;
    const Grid grid{.blocks = {thread_blocks(threads, kRepackThreads), 1, 1},
                    .threads = kRepackThreads};
    kRepack().launch(gpu, grid, {to, in, static_cast<uint32_t>(rows), unit, row_bytes, stride});
    to += rows * bytes_of(dtype, k);
  }
  // A prepared weight is complete before any kernel that uses it starts.
  gpu.synchronize();
  return weight;
}

void linear_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                    const ConstView* residual) {
  if (out.layout.elems() == 0) return;
  const auto& w = static_cast<const DecodedWeight&>(weight);
  const int64_t columns = out.layout.elems() / w.n;
  const DecodedArgs args{linear_out(out, residual),
                         w.memory.data(),
                         static_cast<const float*>(x.data) + x.layout.offset(),
                         quant(w.dtype).number,
                         static_cast<uint32_t>(w.n),
                         static_cast<uint32_t>(w.k),
                         static_cast<uint32_t>(columns)};
  if (columns <= int64_t{kDecodedFewColumns}) {
    (columns == 1 ? kOne : kFew)().launch(gpu, grid_of_few(w.n, 1), args);
  } else {
    Grid grid{{thread_blocks(w.n, kDecodedSide), thread_blocks(columns, kDecodedSide), 1}};
    grid.threads = kDecodedThreads;
    grid.pdl = true;
    kMany().launch(gpu, grid, args);
  }
}

const void* decoded_weight_data(const PreparedWeight& weight) {
  return static_cast<const DecodedWeight&>(weight).memory.data();
}

void grouped_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                     const ExpertLaunches& launches) {
  const View rows{
      out.data, out.dtype,
      Layout::contiguous({out.layout.elems() / weight.n, weight.n}, out.layout.offset())};
  const LinearOut to = linear_out(rows, nullptr);
  if (!launches.are_few()) {
    const ExpertTiles tiles(gpu, launches, kDecodedSide, out);
    tiles.for_each([&](uint32_t first, uint32_t along_y) {
      Grid grid{{thread_blocks(weight.n, kDecodedSide), along_y, 1}};
      grid.threads = kDecodedThreads;
      grid.pdl = true;
      kTiles().launch(gpu, grid,
                      {to, tiles.list(), static_cast<const float*>(x.data) + x.layout.offset(),
                       quant(weight.dtype).number, static_cast<uint32_t>(weight.n),
                       static_cast<uint32_t>(weight.k), first});
    });
    return;
  }
  launches.for_each([&](const Experts& experts, unsigned pairs) {
    kGrouped().launch(gpu, grid_of_few(weight.n, pairs),
                      {to, experts, static_cast<const float*>(x.data) + x.layout.offset(),
                       quant(weight.dtype).number, static_cast<uint32_t>(weight.n),
                       static_cast<uint32_t>(weight.k)});
  });
}

}  // namespace wick::gpu
