// grouped_linear of prompts with f16 and bf16 weights by a matrix unit: the rows of x are packed in
// the order of their experts, and each expert's rows are multiplied in tiles.

#include <algorithm>
#include <array>
#include <vector>

#include "wick/backend/gpu/linear/expert_tiles.h"
#include "wick/backend/gpu/linear/float_weight.h"
#include "wick/backend/gpu/linear/gemm.h"
#include "wick/backend/gpu/linear/pack_rows.h"

namespace wick::gpu {
namespace {

const KernelFamily<GroupedMmaArgs, DType, OneOf<kSmallTile, kLargeTile>> kMma("grouped_mma",
                                                                              "grouped_{}_{}");
const KernelFamily<GroupedHopperArgs, DType, OneOf<128, 256>> kWgmma("grouped_wgmma",
                                                                     "grouped_{}_{}");

/// Columns of the tiles of grouped_wgmma.gpu, in the order of FloatWeight::maps.
constexpr std::array<int64_t, 2> kColumns = {128, 256};

const FloatWeight& float_weight(const PreparedWeight* weight) {
  return static_cast<const FloatWeight&>(*weight);
}

/// A matrix of dense rows of 16-bit elements.
Lines lines_of_rows(const void* data, int64_t rows, int64_t pitch) {
  Lines lines;
  lines.data = data;
  lines.columns = pitch;
  lines.lines = rows;
  lines.line_stride = pitch;
  return lines;
}

/// Elements of packed rows at once, which limits the memory that they take to 128 MiB.
constexpr int64_t kMostPacked = int64_t{64} << 20;

struct GroupedJob {
  Gpu& gpu;
  View out;
  ConstView x;
  std::span<const PreparedWeight* const> experts;
  const ExpertLaunches& launches;
  const FloatWeight& any = float_weight(experts.front());

  /// An f16 weight takes other dtypes in terms of f16.
  bool splits() const { return any.dtype == DType::f16 && x.dtype != DType::f16; }
  /// Terms of an element of x.
  int64_t terms() const { return splits() && x.dtype == DType::f32 ? 2 : 1; }
  /// Elements of a packed row.
  int64_t row() const { return terms() * any.pitch; }
  /// Whether n and k are large enough for wgmma, which serves any number of rows here: small tiles
  /// would read the weights as often.
  bool by_wgmma() const {
    return takes_wgmma(gpu, kWgmmaRows, any.n, any.k) &&
           std::all_of(experts.begin(), experts.end(),
                       [](const PreparedWeight* w) { return float_weight(w).maps.has_value(); });
  }
};

/// Whether gemv is faster for a sequence. Up to rows_alike tokens always take it, which is the
/// promise of Weight::rows_alike. So do sequences with few rows for each expert, on average, whose
/// time is that of reading weights.
bool takes_gemv(const GroupedJob& p, const GroupedRows& rows) {
  const int64_t each = rows.each != 0 ? rows.each : p.x.layout.shape()[0];
  if (each / rows.of_token <= most_gemv_rows(p.gpu, p.any.dtype)) return true;
  const int64_t pairs = each * p.launches.each(), experts = p.launches.count();
  return p.by_wgmma() ? 2 * pairs <= 3 * experts : pairs <= 4 * experts;
}

/// The rows of x in the order of the list.
class PackedRows {
 public:
  PackedRows(const GroupedJob& p, const ChosenRows& rows)
      : pitch_(p.row()),
        data_(p.gpu, static_cast<size_t>(rows.count * pitch_) * 2),
        scale_(p.gpu, static_cast<size_t>(rows.count) * sizeof(float)),
        has_scale_(p.splits()) {
    if (has_scale_) {
      split_rows(p.gpu, {data_.data(), scale_.data<float>(), p.terms(), p.any.pitch}, p.x, rows);
    } else {
      pack_rows(p.gpu, data_.data(), p.any.dtype, pitch_, p.x, rows);
    }
  }
  int64_t pitch() const { return pitch_; }
  const void* data() const { return data_.data(); }
  const float* scale() const { return has_scale_ ? scale_.data<float>() : nullptr; }

 private:
  int64_t pitch_;
  Scratch data_, scale_;
  bool has_scale_;
};

/// The result's address, and the gemm of all packed rows.
struct Product {
  void* out;
  Gemm gemm;
};
Product product_of(const GroupedJob& p, const PackedRows& rows) {
  GemmJob job;
  job.out = advance(p.out.data, p.out.dtype, p.out.layout.offset());
  Gemm& shape = job.shape;
  shape.m = static_cast<uint32_t>(p.launches.pairs());
  shape.n = static_cast<uint32_t>(p.any.n);
  shape.k = static_cast<uint32_t>(rows.pitch());
  shape.a_row = rows.pitch(), shape.a_k = 1;
  shape.b_row = p.any.pitch, shape.b_k = 1;
  shape.out_row = p.any.n, shape.out_col = 1;
  shape.scale = rows.scale();
  job.store_to(p.out.dtype);
  return {job.out, shape};
}

void multiply_mma(const GroupedJob& p) {
  const int64_t pairs = p.launches.pairs(), experts = p.launches.count();
  // Large tiles are faster if most of them are full and there are enough to keep the device busy.
  const int64_t large_tiles = pairs / kLargeTile * divide_up(p.any.n, kLargeTile);
  const bool large = pairs >= kLargeTile * experts && large_tiles >= p.gpu.info.multiprocessors;
  const uint32_t side = large ? kLargeTile : kSmallTile;
  const ExpertTiles tiles(p.gpu, p.launches, side, p.out);
  const PackedRows rows(p, tiles.rows());
  const auto [out, shape] = product_of(p, rows);
  const int64_t columns = divide_up(p.any.n, side);
  const auto at_once =
      static_cast<uint32_t>(std::clamp<int64_t>(kMostBlocks / columns, 1, tiles.count()));
  for (uint32_t first = 0; first < tiles.count(); first += at_once) {
    const uint32_t some = std::min(at_once, tiles.count() - first);
    Grid grid{{static_cast<unsigned>(some * columns), 1, 1}};
    grid.threads = kLoopThreads;
    grid.pdl = true;
    kMma(p.any.dtype, side)
        .launch(p.gpu, grid,
                {out, rows.data(), tiles.list(), shape, static_cast<uint32_t>(p.any.pitch), first,
                 some});
  }
}

/// The index in kColumns of the tiles' columns, by the number of tiles to expect.
size_t choose_columns(const GroupedJob& p) {
  const int64_t pairs = p.launches.pairs(), used = std::min(pairs, p.launches.count());
  // Of an expert with many rows, the last tile is half full on average.
  const int64_t tiles = std::max(used, pairs / kWgmmaRows + used / 2);
  const bool few_rows = pairs <= kWgmmaRows / 2 * used;
  return wgmma_columns(p.gpu, tiles, p.any.n, few_rows) == kColumns[1] ? 1 : 0;
}

/// False if the driver can't make a map of the rows.
bool multiply_wgmma(const GroupedJob& p) {
  const size_t choice = choose_columns(p);
  std::vector<const void*> maps;
  for (const PreparedWeight* w : p.experts) {
    maps.push_back(float_weight(w).maps->data<CopyMap>() + choice);
  }
  const ExpertLaunches launches = p.launches.with(std::move(maps));
  const ExpertTiles all(p.gpu, launches, kWgmmaRows, p.out);
  const CompactTiles tiles(p.gpu, all);
  const PackedRows rows(p, all.rows());
  const auto [out, shape] = product_of(p, rows);
  GroupedHopperArgs args;
  if (!make_map(p.gpu, args.map_x, lines_of_rows(rows.data(), launches.pairs(), rows.pitch()),
                kWgmmaRows)) {
    return false;
  }
  args.out = out;
  args.list = tiles.list();
  args.count = tiles.count();
  args.shape = shape;
  args.k_of_b = static_cast<uint32_t>(p.any.pitch);
  const int64_t most = all.count() * divide_up(p.any.n, kColumns[choice]);
  Grid grid{{static_cast<unsigned>(std::min<int64_t>(most, p.gpu.info.multiprocessors)), 1, 1}};
  grid.threads = kWgmmaThreads;
  grid.shared_bytes = kWgmmaStageBytes + kWgmmaBesides;
  grid.pdl = true;
  kWgmma(p.any.dtype, kColumns[choice]).launch(p.gpu, grid, args);
  return true;
}

}  // namespace

void make_expert_maps(Gpu& gpu, FloatWeight& weight) {
  const bool halves = weight.dtype == DType::f16 || weight.dtype == DType::bf16;
  if (!halves || !gpu.has(Feature::wgmma) || weight.n == 0 || weight.k == 0) return;
  const Lines lines = lines_of_rows(weight.memory.data(), weight.n, weight.pitch);
  std::array<CopyMap, kColumns.size()> maps;
  for (size_t i = 0; i < maps.size(); ++i) {
    if (!make_map(gpu, maps[i], lines, kColumns[i])) return;
  }
  weight.maps.emplace(gpu, sizeof maps);
  gpu.staging.upload(weight.maps->data(), maps.data(), sizeof maps, gpu.stream());
}

bool grouped_by_matrix_unit(Gpu& gpu, const View& out, const ConstView& x,
                            std::span<const PreparedWeight* const> experts,
                            const ExpertLaunches& launches, const GroupedRows& rows) {
  const GroupedJob job{gpu, out, x, experts, launches};
  const bool halves = job.any.dtype == DType::f16 || job.any.dtype == DType::bf16;
  if (!halves || !has_matrix_unit(gpu) || job.any.k == 0 || takes_gemv(job, rows)) return false;
  // A second term of x that is 0 would give NaN with an infinite weight.
  const bool finite = std::all_of(experts.begin(), experts.end(),
                                  [](const PreparedWeight* w) { return float_weight(w).finite; });
  if (job.splits() && !finite) return false;
  const bool by_wgmma = job.by_wgmma();
  const int64_t t = x.layout.shape()[0];
  const int64_t most = std::max<int64_t>(kMostPacked / (launches.each() * job.row()), 1);
  for (int64_t first = 0; first < t; first += most) {
    const int64_t some = std::min(most, t - first);
    const View of_out{out.data, out.dtype, out.layout.narrow(0, first, some)};
    const ConstView of_x{x.data, x.dtype, x.layout.narrow(0, first, some)};
    const ExpertLaunches of_ids = launches.part(first, some);
    const GroupedJob part{gpu, of_out, of_x, experts, of_ids};
    if (!by_wgmma || !multiply_wgmma(part)) multiply_mma(part);
  }
  return true;
}

}  // namespace wick::gpu
