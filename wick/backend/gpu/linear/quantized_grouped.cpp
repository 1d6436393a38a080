// grouped_linear with quantised weights: the kernels that take a pair of a row and an expert at a
// time, and those that take tiles of an expert's rows. All give the bits of linear.

#include "wick/backend/gpu/linear/expert_tiles.h"
#include "wick/backend/gpu/linear/quantized_plan.h"
#include "wick/backend/gpu/linear/quantized_weight.h"

namespace wick::gpu {
namespace {

const KernelFamily<GroupedGemvArgs, DType> kPairs("gemv", "grouped_{}");
const KernelFamily<GroupedBatchArgs, DType, OneOf<16, 32>> kBatch("quantized_batch",
                                                                  "batch_grouped_{}_{}");
const KernelFamily<GroupedTilesArgs, DType> kSmallM("quantized_small_m", "small_m_grouped_{}");
const KernelFamily<GroupedTilesArgs, DType> kInt8("quantized_int8", "int8_grouped_{}");
const KernelFamily<GroupedWgmmaArgs, DType> kWgmma(&wgmma_file, "wgmma_grouped_{}");

struct GroupedJob {
  View out;  ///< [pairs, rows of the weight]
  LinearOut to;
  const QuantizedRows& x;
  const QuantizedWeight& weight;
  const ExpertLaunches& launches;
  bool early;  ///< see GroupedGemvArgs
  RowBlocks blocks = x.blocks();
  uint32_t chunks = weight.chunks();

  Gpu& gpu() const { return weight.gpu; }
  QuantizedGemm args() const {
    return {to, nullptr, blocks.q, blocks.scales, chunks, static_cast<uint32_t>(weight.n), 0};
  }
};

/// Threads of a thread block of gemv that takes one column. Its half-warps share the chunks evenly,
/// and there are as few as that takes, but at least four: a thread block that ends early makes room
/// for another. A row of several segments gets all half-warps, because a segment has a multiple of
/// them.
uint32_t threads_for(uint32_t chunks) {
  constexpr uint32_t kMost = kGemvColumnsThreads / kUnitRows;
  const uint32_t rounds = std::max(1u, (chunks + kMost - 1) / kMost);
  const uint32_t halves = rounds > 2 ? kMost : (chunks + rounds - 1) / rounds;
  return std::max(64u, (halves + 1) / 2 * 2 * kUnitRows);
}

/// One pair at a time.
void pairs(const GroupedJob& p) {
  constexpr uint32_t kChunkBytes = gemv_columns_bytes(1, 1),
                     kHalves = kGemvColumnsThreads / kUnitRows;
  uint32_t segment = p.chunks;
  if (segment * kChunkBytes > kSharedBytes)
    segment = kSharedBytes / kChunkBytes / kHalves * kHalves;
  static_assert(kSharedBytes / kChunkBytes >= 2 * kHalves);  // so threads_for gives all of them
  p.launches.for_each([&](const Experts& experts, unsigned along_y) {
    Grid grid{{p.weight.row_groups(), along_y, 1}};
    grid.threads = threads_for(p.chunks);
    grid.shared_bytes = gemv_columns_bytes(segment, 1);
    grid.pdl = true;
    kPairs(p.weight.dtype)
        .launch(p.gpu(), grid,
                {p.to, experts, p.blocks.q, p.blocks.scales, p.chunks,
                 static_cast<uint32_t>(p.weight.n), segment, p.early ? 1u : 0u});
  });
}

/// Tiles of 16 or 32 rows of x, on NVIDIA.
void batch(const GroupedJob& p) {
  const auto multiprocessors = static_cast<uint32_t>(p.gpu().info.multiprocessors);
  const uint32_t width = p.launches.pairs() <= 8 * p.launches.count() ? 16 : 32;
  const ExpertTiles tiles(p.gpu(), p.launches, width, p.out);
  // Several thread blocks for each multiprocessor, because experts have different numbers of rows.
  // Each has at least a row tile for each warp.
  constexpr uint32_t kBlocksEach = 4;
  const uint32_t row_tiles = p.weight.row_groups();
  const uint32_t most = std::max(1u, row_tiles / kBatchWarps);
  const BatchPlan plan(p.gpu(), width, row_tiles, p.chunks,
                       std::clamp(kBlocksEach * multiprocessors / tiles.count(), 1u, most));
  tiles.for_each([&](uint32_t first, uint32_t along_y) {
    Grid grid{{plan.thread_blocks, along_y, 1}};
    grid.threads = kBatchWarps * kWarp;
    grid.shared_bytes = plan.shared;
    grid.pdl = true;
    kBatch(p.weight.dtype, width)
        .launch(p.gpu(), grid,
                {{p.args(), plan.segment, row_tiles / plan.thread_blocks,
                  row_tiles % plan.thread_blocks},
                 tiles.list(),
                 first});
  });
}

/// Tiles of 16 rows of x, on AMD.
void small_m(const GroupedJob& p) {
  const ExpertTiles tiles(p.gpu(), p.launches, kSmallMQuantizedColumns, p.out);
  tiles.for_each([&](uint32_t first, uint32_t along_y) {
    kSmallM(p.weight.dtype)
        .launch(p.gpu(), small_m_grid(p.gpu(), p.weight, along_y), {p.args(), tiles.list(), first});
  });
}

/// Tiles of 64 rows of x.
void int8(const GroupedJob& p) {
  const ExpertTiles tiles(p.gpu(), p.launches, kInt8Columns, p.out);
  tiles.for_each([&](uint32_t first, uint32_t along_y) {
    kInt8(p.weight.dtype)
        .launch(p.gpu(), int8_grid(p.gpu(), p.weight, along_y), {p.args(), tiles.list(), first});
  });
}

/// Tiles of 128 rows of x, by exact f16 multiplication.
void wgmma(const GroupedJob& p) {
  // Tiles whose records are in memory at once. Records are large if most of their columns are
  // padding.
  constexpr size_t kMostBytes = size_t{256} << 20;
  const size_t tile_bytes =
      size_t{p.chunks} * (kChunkBlocks / kWgmmaStageBlocks) * kWgmmaRecordBytes;
  const DType type = p.weight.dtype;
  const ExpertTiles tiles(p.gpu(), p.launches, kWgmmaColumns, p.out, true);
  const auto at_once =
      static_cast<uint32_t>(std::clamp<size_t>(kMostBytes / tile_bytes, 1, size_t{tiles.count()}));
  const uint32_t row_tiles = (p.weight.row_groups() + kWgmmaRowGroups - 1) / kWgmmaRowGroups;
  const Scratch records(p.gpu(), at_once * tile_bytes);
  const auto columns = static_cast<uint32_t>(p.launches.pairs());
  for (uint32_t first = 0; first < tiles.count(); first += at_once) {
    const uint32_t some = std::min(at_once, tiles.count() - first);
    tile_columns(p.gpu(), type, columns,
                 {.to = records.data(),
                  .q = p.blocks.q,
                  .scales = p.blocks.scales,
                  .chunks = p.chunks,
                  .columns = columns,
                  .nibbles = 0,
                  .halves = p.blocks.halves ? 1u : 0u,
                  .tokens = tiles.list().tokens,
                  .places = tiles.columns(),
                  .first = first * kWgmmaColumns,
                  .held = some * kWgmmaColumns});
    const uint32_t all = some * row_tiles;
    kWgmma(type).launch(p.gpu(), wgmma_grid(p.gpu(), type, all),
                        {p.args(), tiles.list(), records.data(), first, row_tiles, all});
  }
}

enum class Path : uint8_t { pairs, few, many, wgmma };

/// Where wgmma_is_faster doesn't decide, small tiles are preferred up to so many pairs for each
/// expert, on average.
constexpr int64_t kFewEach = 32;

/// Whether each pair by itself is faster than tiles. Measured on an H200 with q4_k, 8 of 128
/// experts, and mxfp4, 4 of 32: NVIDIA's tiles are as fast with 1 to 2 pairs for each expert.
bool pairs_are_faster(const GroupedJob& p) {
  if (is_amd(p.gpu())) return p.launches.are_few();
  return 2 * p.launches.pairs() <= 3 * p.launches.count();
}

/// Whether wgmma is faster than tiles of 16 or 32 rows. An expert of up to 64 rows takes it the
/// same time, half a round. Measured on an H200: from 8 rows of q4_k and mxfp4 on. Formats with
/// longer rounds need more rows.
bool wgmma_is_faster(const GroupedJob& p) {
  constexpr double kFewest = 8, kRoundOfThese = 16500;
  const double each =
      static_cast<double>(p.launches.pairs()) / static_cast<double>(p.launches.count());
  return each * kRoundOfThese >= kFewest * GemmTimes(p.weight.dtype).round;
}

Path choose(const GroupedJob& p) {
  const std::string_view forced = forced_gemm_path();
  if (forced == "dot" || !p.gpu().has(Feature::byte_unit) || p.chunks == 0) return Path::pairs;
  if (forced == "few") return Path::few;
  if (forced == "many") return Path::many;
  const bool has_f16 = p.gpu().has(Feature::wgmma);
  if (forced == "f16" && has_f16) return Path::wgmma;
  if (pairs_are_faster(p)) return Path::pairs;
  if (has_f16 && forced.empty()) return wgmma_is_faster(p) ? Path::wgmma : Path::few;
  return p.launches.pairs() <= kFewEach * p.launches.count() ? Path::few : Path::many;
}

}  // namespace

void multiply_grouped(const View& out, const QuantizedRows& x, const QuantizedWeight& weight,
                      const ExpertLaunches& launches, bool early) {
  const View rows{out.data, out.dtype,
                  Layout::contiguous({launches.pairs(), weight.n}, out.layout.offset())};
  const GroupedJob job{rows, linear_out(rows, nullptr), x, weight, launches, early};
  switch (choose(job)) {
    case Path::pairs:
      return pairs(job);
    case Path::few:
      return is_amd(job.gpu()) ? small_m(job) : batch(job);
    case Path::many:
      return int8(job);
    case Path::wgmma:
      return wgmma(job);
  }
}

}  // namespace wick::gpu
