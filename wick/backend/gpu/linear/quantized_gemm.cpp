// Selection of the kernel for a gemm with quantised weights.

#include <algorithm>

#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/quantized_plan.h"
#include "wick/backend/gpu/linear/quantized_weight.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::gpu {

LinearOut linear_out(const View& out, const ConstView* residual) {
  const Layout& other = residual != nullptr ? residual->layout : out.layout;
  const int last = out.layout.rank() - 1;
  LinearOut to;
  collapse<2>({&out.layout, &other}, ~(1u << last))
      .for_each_piece([&](const StridedIndex<2>& columns, const std::array<int64_t, 2>& start) {
        to.columns = columns;
        to.data = advance(out.data, out.dtype, start[0]);
        if (residual != nullptr) {
          to.residual = static_cast<const float*>(residual->data) + start[1];
        }
      });
  to.row[0] = out.layout.stride(last);
  to.row[1] = other.stride(last);
  const auto in_fours = [](const ConstView& view) { return access_of(view).vectors_of(4); };
  to.fours = in_fours(out) && (residual == nullptr || in_fours(*residual)) ? 1 : 0;
  to.stored = out.dtype == DType::f32   ? Stored::f32
              : out.dtype == DType::f16 ? Stored::f16
                                        : Stored::bf16;
  return to;
}

namespace {

const KernelFamily<GemvArgs, DType> kGemv("gemv", "gemv_{}");
const KernelFamily<GemvColumnsArgs, DType> kGemvOfColumns("gemv", "gemv_columns_{}");
const KernelFamily<BatchArgs, DType, OneOf<8, 16, 32>> kBatch("quantized_batch", "batch_{}_{}");
const KernelFamily<QuantizedArgs, DType> kSmallM("quantized_small_m", "small_m_{}");
const KernelFamily<QuantizedArgs, DType> kInt8("quantized_int8", "int8_{}");
const KernelFamily<WgmmaArgs, DType> kWgmma(&wgmma_file, "wgmma_{}");
const KernelFamily<TileColumnsArgs> kTileColumns("quantized_wgmma", "tile_columns");
const KernelFamily<TileColumnsArgs> kTileColumnsShared("quantized_wgmma_super",
                                                       "tile_columns_shared");
const KernelFamily<TileColumnsArgs> kTileColumnsUnscaled("quantized_wgmma_six",
                                                         "tile_columns_unscaled");

struct QuantizedJob {
  const LinearOut& out;
  const QuantizedRows& x;
  const QuantizedWeight& weight;
  RowBlocks blocks = x.blocks();
  uint32_t chunks = weight.chunks();
  uint32_t rows = static_cast<uint32_t>(weight.n);

  QuantizedGemm args() const {
    return {out, weight.units, blocks.q, blocks.scales, chunks, rows, x.rows()};
  }
};

/// One column. False if the activations don't fit shared memory.
bool gemv(const QuantizedJob& p) {
  // Two row groups for each thread block pay for short rows, which give a block too little work,
  // and on AMD, where fewer blocks read fewer activations from the caches.
  Gpu& gpu = p.weight.gpu;
  const bool pays = p.chunks < 16 ||
                    (gpu.device.kind == DeviceKind::hip &&
                     p.weight.row_groups() / 2 >= static_cast<uint32_t>(gpu.info.multiprocessors));
  const uint32_t row_groups =
      pays && p.weight.row_groups() % 2 == 0 && gemv_bytes(p.chunks, 2) <= kSharedBytes ? 2 : 1;
  Grid grid{{p.weight.row_groups() / row_groups, 1, 1}};
  grid.shared_bytes = gemv_bytes(p.chunks, row_groups);
  if (grid.shared_bytes > kSharedBytes) return false;
  // Half-warps share the units evenly: as few rounds as possible, and then as few half-warps as
  // possible.
  const DType type = p.weight.dtype;
  const uint32_t most = gemv_threads(unit_format(type)) / kUnitRows;
  const uint32_t units = p.chunks * row_groups;
  const uint32_t rounds = std::max(1u, (units + most - 1) / most);
  const uint32_t halves = (units + rounds - 1) / rounds;
  grid.threads = std::max(64u, (halves + 1) / 2 * 32);
  grid.pdl = true;
  kGemv(type).launch(gpu, grid, {p.args(), row_groups, p.weight.blocks()});
  return true;
}

/// Any number of columns.
void gemv_columns(const QuantizedJob& p) {
  constexpr uint32_t kHalves = kGemvColumnsThreads / kUnitRows;
  uint32_t segment = p.chunks;
  if (gemv_columns_bytes(segment) > kSharedBytes) {
    segment = kSharedBytes / gemv_columns_bytes(1) / kHalves * kHalves;
  }
  Grid grid{{p.weight.row_groups(), (p.x.rows() + kGemvColumns - 1) / kGemvColumns, 1}};
  grid.threads = kGemvColumnsThreads;
  grid.shared_bytes = gemv_columns_bytes(segment);
  grid.pdl = true;
  kGemvOfColumns(p.weight.dtype).launch(p.weight.gpu, grid, {p.args(), segment});
}

/// Up to 32 columns at once, on NVIDIA.
void batch(const QuantizedJob& p) {
  const uint32_t tiles = p.weight.row_groups();
  const uint32_t columns = p.x.rows() <= 8 ? 8 : p.x.rows() <= 16 ? 16 : 32;
  const BatchPlan plan(p.weight.gpu, columns, tiles, p.chunks,
                       static_cast<uint32_t>(p.weight.gpu.info.multiprocessors));
  Grid grid{{plan.thread_blocks, (p.x.rows() + columns - 1) / columns, 1}};
  grid.threads = kBatchWarps * kWarp;
  grid.shared_bytes = plan.shared;
  grid.pdl = true;
  kBatch(p.weight.dtype, columns)
      .launch(p.weight.gpu, grid,
              {p.args(), plan.segment, tiles / plan.thread_blocks, tiles % plan.thread_blocks});
}

/// Up to 16 columns at once, on AMD.
void few(const QuantizedJob& p) {
  const uint32_t blocks = (p.x.rows() + kSmallMQuantizedColumns - 1) / kSmallMQuantizedColumns;
  kSmallM(p.weight.dtype)
      .launch(p.weight.gpu, small_m_grid(p.weight.gpu, p.weight, blocks), {p.args()});
}

/// Tiles of 128 rows and 64 columns: kernels/linear/quantized_int8.gpu.
void many(const QuantizedJob& p) {
  const uint32_t blocks = (p.x.rows() + kInt8Columns - 1) / kInt8Columns;
  kInt8(p.weight.dtype).launch(p.weight.gpu, int8_grid(p.weight.gpu, p.weight, blocks), {p.args()});
}

/// Whether wgmma kernels take an output: rows must be contiguous, and columns evenly spaced.
bool wgmma_stores(const LinearOut& out) {
  return out.columns.rank <= 1 && out.row[0] == 1 && (out.residual == nullptr || out.row[1] == 1);
}

/// Tiles of 128 rows and 128 columns, by exact f16 multiplication.
void wgmma(const QuantizedJob& p) {
  const DType type = p.weight.dtype;
  const uint32_t tiles = (p.x.rows() + kWgmmaColumns - 1) / kWgmmaColumns;
  Gpu& gpu = p.weight.gpu;
  const Scratch records(
      gpu, size_t{tiles} * p.chunks * (kChunkBlocks / kWgmmaStageBlocks) * kWgmmaRecordBytes);
  tile_columns(gpu, type, tiles * kWgmmaColumns,
               {.to = records.data(),
                .q = p.blocks.q,
                .scales = p.blocks.scales,
                .chunks = p.chunks,
                .columns = p.x.rows(),
                .nibbles = 0,
                .halves = p.blocks.halves ? 1u : 0u,
                .tokens = nullptr,
                .places = nullptr,
                .first = 0,
                .held = 0});

  const uint32_t all = tiles * ((p.weight.row_groups() + kWgmmaRowGroups - 1) / kWgmmaRowGroups);
  kWgmma(type).launch(gpu, wgmma_grid(gpu, type, all), {p.args(), records.data(), tiles, all});
}

/// The most columns for which reading the weights again is preferred to larger tiles, where
/// wgmma_is_faster doesn't decide.
constexpr uint32_t kFewColumns = 32;
/// The most columns for which dot products keep up with matrix units, for some numbers of rows.
constexpr uint32_t kDotColumns = 4;

/// Whether dot products are faster than the batch kernel for 2 to kDotColumns columns. Between two
/// and four row groups a multiprocessor, the thread blocks of dot products leave multiprocessors
/// idle in their last round (measured on an H100).
bool dot_is_faster(const QuantizedJob& p) {
  const auto multiprocessors = static_cast<uint32_t>(p.weight.gpu.info.multiprocessors);
  return p.weight.row_groups() <= 2 * multiprocessors ||
         p.weight.row_groups() > 4 * multiprocessors;
}

/// Whether tiles of 128 columns finish before those of 32.
bool wgmma_is_faster(const QuantizedJob& p) {
  if (p.x.rows() <= 16) return false;
  const GemmTimes times(p.weight.dtype);
  const uint64_t tiles = uint64_t{(p.rows + 127) / 128} * ((p.x.rows() + 127) / 128);
  const auto multiprocessors = static_cast<uint64_t>(p.weight.gpu.info.multiprocessors);
  const uint64_t rounds = (tiles + multiprocessors - 1) / multiprocessors;
  return (uint64_t{p.rows} + times.more) * ((p.x.rows() + 31) / 32) > rounds * times.round;
}

enum class Path : uint8_t { dot, few, many, wgmma };

Path choose(const QuantizedJob& p) {
  const std::string_view forced = forced_gemm_path();
  const Gpu& gpu = p.weight.gpu;
  if (forced == "dot" || !gpu.has(Feature::byte_unit) || p.chunks == 0) return Path::dot;
  if (forced == "few") return Path::few;
  if (forced == "many") return Path::many;
  const bool has_f16 = gpu.has(Feature::wgmma) && wgmma_stores(p.out);
  if (forced == "f16" && has_f16) return Path::wgmma;
  if (forced.empty()) {
    if (p.x.rows() == 1) return Path::dot;
    if (p.x.rows() <= kDotColumns && dot_is_faster(p)) return Path::dot;
    if (has_f16) return wgmma_is_faster(p) ? Path::wgmma : Path::few;
  }
  return p.x.rows() <= kFewColumns ? Path::few : Path::many;
}

}  // namespace

void tile_columns(Gpu& gpu, DType dtype, uint32_t columns, TileColumnsArgs args) {
  const UnitFormat format = unit_format(dtype);
  args.nibbles = format.bits != 8 && format.table == math::CodeTable::none ? 1 : 0;
  constexpr uint32_t kEach = kTileThreads / kChunkThreads;  // chunks of columns
  Grid grid{{static_cast<unsigned>((uint64_t{columns} * args.chunks + kEach - 1) / kEach), 1, 1}};
  grid.threads = kTileThreads;
  grid.pdl = true;
  const auto& family = dtype == DType::q6_k ? kTileColumnsUnscaled
                       : format.halves != 0 ? kTileColumnsShared
                                            : kTileColumns;
  family().launch(gpu, grid, args);
}

std::vector<std::string_view> gemm_paths(const Gpu& gpu, DType type) {
  if (!dtypes::kOwnProducts.contains(type)) return {""};
  if (!gpu.has(Feature::byte_unit)) return {"dot"};
  if (!gpu.has(Feature::wgmma)) return {"dot", "few", "many", ""};
  return {"dot", "few", "many", "f16", ""};
}

std::string_view forced_gemm_path() { return environment_choice("WICK_GPU_LINEAR"); }

void multiply(const View& out, const QuantizedRows& x, const QuantizedWeight& weight,
              const ConstView* residual) {
  if (out.layout.elems() == 0) return;
  const LinearOut to = linear_out(out, residual);
  const QuantizedJob gemm{to, x, weight};
  switch (choose(gemm)) {
    case Path::dot:
      if (x.rows() > 1 || !gemv(gemm)) gemv_columns(gemm);
      break;
    case Path::few:
      if (weight.gpu.device.kind == DeviceKind::cuda) {
        batch(gemm);
      } else {
        few(gemm);
      }
      break;
    case Path::many:
      many(gemm);
      break;
    case Path::wgmma:
      wgmma(gemm);
      break;
  }
}

}  // namespace wick::gpu
