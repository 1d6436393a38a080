#include "wick/backend/gpu/linear/decoded_weight.h"

#include <algorithm>

#include "wick/backend/gpu/kernels/linear/decoded_units.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/quantized_weight.h"

namespace wick::gpu {
namespace {

const KernelFamily<RepackArgs, DType> kRepack("repack_decoded", "decoded_repack_{}");
const KernelFamily<DecodedArgs, DType> kOne("decoded_few", "decoded_one_{}");
const KernelFamily<DecodedArgs, DType> kFew("decoded_few", "decoded_few_{}");
const KernelFamily<DecodedArgs, DType> kMany("decoded_many", "decoded_many_{}");
const KernelFamily<GroupedDecodedArgs, DType> kGrouped("decoded_few", "decoded_grouped_{}");

/// The contents of a unit of each block dtype, in the order of kQuants. No quants: file layout.
constexpr UnitPieces kUnits[] = {
#define WICK_QUANT(name, Type, ...) DecodedUnit<math::Block##Type>::kPieces,
#include "wick/math/quants.def"
};

struct DecodedWeight final : PreparedWeight {
  DecodedWeight(Gpu& gpu, size_t size) : memory(gpu, size) {}
  Scratch memory;
};

unsigned thread_blocks(int64_t all, int64_t each) {
  return static_cast<unsigned>(divide_up(all, each));
}

/// The grid of decoded_one and, with `pairs` along y, of decoded_grouped.
Grid grid_of_one(const Gpu& gpu, DType dtype, int64_t rows, int64_t k, unsigned pairs) {
  Grid grid{{thread_blocks(rows, kUnitRows), pairs, 1}};
  grid.threads = kDecodedThreads;
  grid.pdl = true;
  if (!has_decoded_units(dtype)) return grid;
  const auto chunks = static_cast<uint32_t>(divide_up(k, math::kDecodedChunk));
  const uint32_t segment = units_one_segment(chunks, gpu.device.kind == DeviceKind::hip);
  grid.shared_bytes = units_bytes(segment, 1, 1);
  if (segment < chunks) return grid;
  // Half-warps share the chunks evenly: as few rounds as possible, and then as few half-warps as
  // possible.
  constexpr uint32_t kMost = kDecodedThreads / kUnitRows;
  const uint32_t rounds = std::max(1u, (chunks + kMost - 1) / kMost);
  const uint32_t halves = (chunks + rounds - 1) / rounds;
  grid.threads = std::max(64u, (halves + 1) / 2 * 2 * kUnitRows);
  return grid;
}

/// The grid of decoded_few.
Grid grid_of_few(const Gpu& gpu, DType dtype, int64_t rows, int64_t k, int64_t columns) {
  Grid grid{{thread_blocks(rows, kDecodedFewRows), thread_blocks(columns, kDecodedFewColumns), 1}};
  grid.threads = kDecodedThreads;
  grid.pdl = true;
  if (!has_decoded_units(dtype)) return grid;
  // Two row groups of a thread block share the activations in shared memory. If the weight has few
  // rows, one row group for each thread block occupies more multiprocessors.
  const unsigned pairs = thread_blocks(rows, 2 * kUnitRows);
  const unsigned row_groups = pairs >= static_cast<unsigned>(gpu.info.multiprocessors) ? 2 : 1;
  grid.blocks[0] = row_groups == 2 ? pairs : thread_blocks(rows, kUnitRows);
  grid.threads = row_groups * kUnitsFewThreads;
  grid.blocks[1] = thread_blocks(columns, kUnitsFewColumns);
  const auto chunks = static_cast<uint32_t>(divide_up(k, math::kDecodedChunk));
  grid.shared_bytes = units_bytes(units_few_segment(chunks), kUnitsFewColumns, row_groups);
  return grid;
}

}  // namespace

bool has_decoded_units(DType dtype) { return kUnits[quant_index(dtype)].quants != 0; }

std::unique_ptr<PreparedWeight> prepare_decoded(Gpu& gpu, std::span<const ConstView> parts) {
  const DType dtype = parts.front().dtype;
  const int64_t k = parts.front().layout.shape()[1];
  int64_t n = 0;
  for (const ConstView& part : parts) n += part.layout.shape()[0];
  const bool units = has_decoded_units(dtype);
  const UnitPieces unit = kUnits[quant_index(dtype)];
  const auto chunks = static_cast<uint32_t>(divide_up(k, math::kDecodedChunk));
  const size_t group_bytes = size_t{unit_bytes(unit, gpu.device.kind == DeviceKind::hip)} * chunks;
  const auto bytes = units ? group_bytes * static_cast<size_t>(divide_up(n, int64_t{kUnitRows}))
                           : static_cast<size_t>(n * bytes_of(dtype, k));
  gpu.enter();
  // + 1: the size may be 0.
  auto weight = std::make_unique<DecodedWeight>(gpu, bytes + 1);
  weight->dtype = dtype;
  weight->n = n;
  weight->k = k;
  weight->bytes = bytes;
  auto* const to = weight->memory.data<char>();
  if (units && n % kUnitRows != 0 && group_bytes != 0) {  // rows past the last are zeros
    gpu.check(gpu.driver.api.set_bytes(to + bytes - group_bytes, 0, group_bytes, gpu.stream()),
              "clearing memory");
  }
  uint32_t first = 0;
  for (const ConstView& part : parts) {
    const Layout& layout = part.layout;
    const auto rows = static_cast<uint32_t>(layout.shape()[0]);
    if (rows == 0 || k == 0) continue;
    // A thread of the kernel writes a piece of a row of a unit, or copies a block.
    const uint64_t row_groups = (first + rows - 1) / kUnitRows - first / kUnitRows + 1;
    const uint64_t pieces = unit.quants + unit.scales + (unit.tail != 0 ? 1 : 0);
    const uint64_t threads =
        units ? row_groups * chunks * kUnitRows * pieces
              : uint64_t{rows} * static_cast<uint64_t>(k / info(dtype).block_elems);
    const Grid grid{
        .blocks = {static_cast<unsigned>((threads + kRepackThreads - 1) / kRepackThreads), 1, 1},
        .threads = kRepackThreads};
    const auto* in = static_cast<const char*>(part.data) + bytes_of(dtype, layout.offset());
    kRepack(dtype).launch(gpu, grid,
                          {to, in, first, rows, chunks, static_cast<uint32_t>(k / 32),
                           bytes_of(dtype, layout.stride(0))});
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
  if (columns == 1) {
    kOne(w.dtype).launch(gpu, grid_of_one(gpu, w.dtype, w.n, w.k, 1), args);
  } else if (columns <= int64_t{kDecodedFewColumns}) {
    kFew(w.dtype).launch(gpu, grid_of_few(gpu, w.dtype, w.n, w.k, columns), args);
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
  launches.for_each([&](const Experts& experts, unsigned pairs) {
    kGrouped(weight.dtype)
        .launch(gpu, grid_of_one(gpu, weight.dtype, weight.n, weight.k, pairs),
                {to, experts, static_cast<const float*>(x.data) + x.layout.offset(),
                 static_cast<uint32_t>(weight.n), static_cast<uint32_t>(weight.k)});
  });
}

}  // namespace wick::gpu
