#include "wick/backend/gpu/linear/expert_tiles.h"

#include <algorithm>

namespace wick::gpu {
namespace {

const KernelFamily<ExpertTilesArgs> kExpertTiles("expert_tiles", "expert_tiles");
const KernelFamily<CompactTilesArgs> kCompactTiles("expert_tiles", "compact_tiles");

}  // namespace

ExpertTiles::ExpertTiles(Gpu& gpu, const ExpertLaunches& launches, uint32_t width, const View& out,
                         bool with_columns)
    : pairs_(static_cast<uint32_t>(launches.pairs())),
      count_(pairs_ / width + static_cast<uint32_t>(launches.count())),
      with_columns_(with_columns),
      tiles_(gpu, size_t{count_} * sizeof(ExpertTile)),
      tokens_(gpu, size_t{pairs_} * sizeof(uint32_t) * (with_columns ? 3 : 2)) {
  auto* const tokens = tokens_.data<uint32_t>();
  ExpertTilesArgs args;
  args.tiles = tiles_.data<ExpertTile>();
  args.tokens = tokens;
  args.places = tokens + pairs_;
  args.columns = with_columns ? tokens + 2 * size_t{pairs_} : nullptr;
  args.pairs = pairs_;
  args.width = width;
  args.all = count_;
  args.out = advance(out.data, out.dtype, out.layout.offset());
  const int64_t row = out.layout.shape()[out.layout.rank() - 1];
  args.row_halves = static_cast<uint64_t>(bytes_of(out.dtype, row)) / 2;
  for (int64_t first = 0; first < launches.count(); first += Experts::kMost) {
    args.experts = launches.experts(first);
    const bool last = first + Experts::kMost >= launches.count();
    Grid grid{{args.experts.held + (last ? 1u : 0u), 1, 1}};
    grid.threads = kExpertTilesThreads;
    grid.pdl = true;
    kExpertTiles().launch(gpu, grid, args);
  }
}

CompactTiles::CompactTiles(Gpu& gpu, const ExpertTiles& all)
    : all_(all.list()),
      tiles_(gpu, size_t{all.count()} * sizeof(ExpertTile)),
      count_(gpu, sizeof(uint32_t)) {
  Grid grid{{1, 1, 1}};
  grid.threads = kExpertTilesThreads;
  grid.pdl = true;
  kCompactTiles().launch(
      gpu, grid, {all_.tiles, tiles_.data<ExpertTile>(), count_.data<uint32_t>(), all.count()});
}

}  // namespace wick::gpu
