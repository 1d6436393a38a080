#include "wick/backend/gpu/linear/decoded_weight.h"

#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/expert_tiles.h"
#include "wick/backend/gpu/linear/quantized_weight.h"

namespace wick::gpu {
namespace {

const KernelFamily<RepackArgs, DType> kRepack("repack_decoded", "decoded_repack_{}");
const KernelFamily<DecodedArgs, DType> kOne("decoded_few", "decoded_one_{}");
const KernelFamily<DecodedArgs, DType> kFew("decoded_few", "decoded_few_{}");
const KernelFamily<DecodedArgs, DType> kMany("decoded_many", "decoded_many_{}");
const KernelFamily<GroupedDecodedArgs, DType> kGrouped("decoded_few", "decoded_grouped_{}");
const KernelFamily<GroupedDecodedTilesArgs, DType> kTiles("decoded_many", "decoded_tiles_{}");

struct DecodedWeight final : PreparedWeight {
  DecodedWeight(Gpu& gpu, size_t size) : memory(gpu, size) {}
  Scratch memory;
};

unsigned thread_blocks(int64_t all, int64_t each) {
  return static_cast<unsigned>(divide_up(all, each));
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
  // + 1: the size may be 0.
  auto weight = std::make_unique<DecodedWeight>(gpu, bytes + 1);
  weight->dtype = dtype;
  weight->n = n;
  weight->k = k;
  weight->bytes = bytes;
  auto* const to = weight->memory.data<char>();
  uint32_t first = 0;
  for (const ConstView& part : parts) {
    const Layout& layout = part.layout;
    const auto rows = static_cast<uint32_t>(layout.shape()[0]);
    if (rows == 0 || k == 0) continue;
    // A thread of the kernel copies a block.
    const uint64_t threads = uint64_t{rows} * static_cast<uint64_t>(k / info(dtype).block_elems);
    const Grid grid{
        .blocks = {static_cast<unsigned>((threads + kRepackThreads - 1) / kRepackThreads), 1, 1},
        .threads = kRepackThreads};
    const auto* in = static_cast<const char*>(part.data) + bytes_of(dtype, layout.offset());
    kRepack(dtype).launch(
        gpu, grid,
        {to, in, first, rows, 0, static_cast<uint32_t>(k / 32), bytes_of(dtype, layout.stride(0))});
    first += rows;
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
                         static_cast<uint32_t>(w.n),
                         static_cast<uint32_t>(w.k),
                         static_cast<uint32_t>(columns)};
  if (columns <= int64_t{kDecodedFewColumns}) {
    (columns == 1 ? kOne : kFew)(w.dtype).launch(gpu, grid_of_few(w.n, 1), args);
  } else {
    Grid grid{{thread_blocks(w.n, kDecodedSide), thread_blocks(columns, kDecodedSide), 1}};
    grid.threads = kDecodedThreads;
    grid.pdl = true;
    kMany(w.dtype).launch(gpu, grid, args);
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
      kTiles(weight.dtype)
          .launch(gpu, grid,
                  {to, tiles.list(), static_cast<const float*>(x.data) + x.layout.offset(),
                   static_cast<uint32_t>(weight.n), static_cast<uint32_t>(weight.k), first});
    });
    return;
  }
  launches.for_each([&](const Experts& experts, unsigned pairs) {
    kGrouped(weight.dtype)
        .launch(gpu, grid_of_few(weight.n, pairs),
                {to, experts, static_cast<const float*>(x.data) + x.layout.offset(),
                 static_cast<uint32_t>(weight.n), static_cast<uint32_t>(weight.k)});
  });
}

}  // namespace wick::gpu
