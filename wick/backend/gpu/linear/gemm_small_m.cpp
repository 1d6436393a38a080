// Gemms with few rows. Their time is that of reading b.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/expert_tiles.h"
#include "wick/backend/gpu/linear/gemm.h"
#include "wick/backend/gpu/linear/pack_rows.h"

namespace wick::gpu {
namespace {

bool is_narrow_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

const KernelFamily<StreamGemvArgs, DType, OneOf<1, 2, 4, 8>> kStreamGemv("gemv_stream",
                                                                         "gemv_{}_{}");
const KernelFamily<FloatGemvArgs, DType> kFloatGemv("gemv_float", "gemv_{}");
const KernelFamily<GroupedFloatArgs, DType> kGroupedStream("gemv_stream", "grouped_{}");
const KernelFamily<GroupedFloatArgs, DType> kGroupedFloat("gemv_float", "grouped_{}");
const KernelFamily<GroupedRowsArgs, DType, OneOf<2, 4, 8>> kGroupedRows("gemv_stream",
                                                                        "grouped_{}_{}");
const KernelFamily<GroupedRowsArgs, DType> kGroupedLongRows("gemv_float", "grouped_rows_{}");
const KernelFamily<GemmArgs, DType, OneOf<1, 4, 8, 16>> kFewRows("gemm_few_rows", "few_rows_{}_{}");
const KernelFamily<GemmArgs, DType> kSmallMGemm("gemm_small_m", "gemm_{}");
using SkinnyTile = OneOf<16, 32>;
using SkinnyTerms = OneOf<1, 2>;
const KernelFamily<MatrixGemmArgs, DType, SkinnyTile, SkinnyTerms> kSkinnyGemm("gemm_skinny",
                                                                               "gemm_{}_{}_{}");
const KernelFamily<MatrixGemmArgs, DType, SkinnyTile> kSkinnyPairs("gemm_skinny",
                                                                   "gemm_{}_{}_pairs");

/// The most rows of a for which gemm_skinny.gpu is launched.
constexpr uint32_t kMostSkinnyRows = 64;
/// With fewer k it doesn't pay to divide them among the warps of a thread block.
constexpr uint32_t kLeastK = 64;

constexpr int64_t kMostWarps = kStreamThreads / kWarp;

/// Offsets of a matrix's operands, in elements.
using Starts = math::i64[4];

int64_t packs_of(const GemmJob& job) {
  return divide_up(job.shape.k, 16 / info(job.b_dtype).block_bytes);
}

/// Warps of a thread block of gemv_stream.gpu for rows of `packs` vectors: the number with the
/// fewest idle lanes.
int64_t stream_warps(int64_t packs) {
  if (packs <= kMostWarps / 2 * kWarp) return std::max<int64_t>(divide_up(packs, kWarp), 1);
  int64_t best = kMostWarps, least = INT64_MAX;
  for (int64_t warps = kMostWarps; warps >= kMostWarps / 2; --warps) {
    const int64_t lanes = divide_up(packs, warps * kWarp) * warps * kWarp;
    if (lanes < least) best = warps, least = lanes;
  }
  return best;
}

/// Bytes of shared memory for `rows` rows of activations in gemv_stream.gpu.
int64_t stream_bytes(const GemmJob& job, int64_t rows) {
  const int64_t packs = packs_of(job), lanes = stream_warps(packs) * kWarp;
  return rows * divide_up(packs, lanes) * lanes * shared_x_bytes(job.b_dtype == DType::f16);
}

/// Rows that gemv_stream.gpu takes at once; 0 if not even one fits, or if b's rows descend or are
/// too far apart.
uint32_t stream_rows(const Gpu& gpu, const GemmJob& job) {
  constexpr int64_t kSums = 8 << 10;  // shared memory for sums
  const Gemm& p = job.shape;
  if (!has_near_rows(job)) return 0;
  uint32_t rows = p.m > 4 ? 8 : p.m > 2 ? 4 : p.m;
  while (rows > 0 && stream_bytes(job, rows) + kSums > gpu.info.shared_bytes) rows /= 2;
  return rows;
}

/// Launches gemv_stream.gpu for rows of one matrix, whose operands start at offsets `at`. p.m is at
/// most `rows`, the kernel's number of rows.
void stream(Gpu& gpu, const GemmJob& job, const Gemm& p, uint32_t rows, const Starts& at) {
  // Bytes of the weights that are prefetched while earlier kernels run.
  constexpr uint32_t kAhead = 8 << 20;
  const int64_t warps = stream_warps(packs_of(job));
  // Thread blocks that a multiprocessor holds at once. On AMD there are fewer of them if together
  // they would read more than a sixteenth of the weights' bytes as activations.
  int64_t at_once = std::max<int64_t>((rows == 1 ? 2 : 1) * kMostWarps / warps, 1);
  if (gpu.device.kind == DeviceKind::hip) {
    const int64_t row = bytes_of(job.a_dtype, p.k) * p.m, all = bytes_of(job.b_dtype, p.k) * p.n;
    const int64_t each = std::max<int64_t>(16 * row * gpu.info.multiprocessors, 1);
    at_once = std::clamp<int64_t>(all / each, 1, at_once);
  }
  const auto thread_blocks =
      static_cast<uint32_t>(std::min(divide_up(p.n, 4), gpu.info.multiprocessors * at_once));
  kStreamGemv(job.b_dtype, rows)
      .launch(gpu,
              Grid{.blocks = {thread_blocks, 1, 1},
                   .threads = static_cast<unsigned>(warps * kWarp),
                   .shared_bytes = static_cast<unsigned>(stream_bytes(job, rows)),
                   .pdl = job.b_stays},
              {advance(job.out, job.out_dtype, at[0]), advance(job.a, job.a_dtype, at[1]),
               advance(job.b, job.b_dtype, at[2]), p, uint32_t{out_format(job.a_dtype)},
               job.b_stays ? kAhead / thread_blocks / 16 * 16 : 0});
}

/// Launches gemv_float.gpu, for rows that are too long for gemv_stream.gpu's shared memory.
void multiply_long(Gpu& gpu, const GemmJob& job, const Gemm& p, const Starts& at) {
  constexpr uint32_t kBlockRows = kFloatGemvThreads / kWarp * kFloatGemvRows;
  kFloatGemv(job.b_dtype)
      .launch(gpu,
              Grid{.blocks = {(p.n + kBlockRows - 1) / kBlockRows, 1, 1},
                   .threads = kFloatGemvThreads,
                   .pdl = job.b_stays},
              {advance(job.out, job.out_dtype, at[0]), advance(job.a, job.a_dtype, at[1]),
               advance(job.b, job.b_dtype, at[2]), p, uint32_t{out_format(job.a_dtype)}});
}

}  // namespace

int64_t most_gemv_rows(const Gpu& gpu, DType b) {
  const MainLoop forced = forced_main_loop();
  if (forced != MainLoop::best && forced != MainLoop::plain) return 1;
  // Measured on an H200: with more rows, multiplying takes longer than reading the weights.
  if (b == DType::f32 || !has_matrix_unit(gpu)) return 64;
  return b == DType::f16 ? 8 : 4;  // the other path for f16 multiplies twice
}

bool multiply_gemv(Gpu& gpu, const GemmJob& job) {
  const Gemm& all = job.shape;
  if (!is_narrow_float(job.a_dtype) || !is_narrow_float(job.b_dtype) || all.scale != nullptr ||
      job.rows_of_order() * job.batch.elems > most_gemv_rows(gpu, job.b_dtype) ||
      !has_vector_rows(job)) {
    return false;
  }
  for (const auto& dim : job.batch.dims) {
    if (dim.stride[2] != 0) return false;
  }
  const uint32_t rows = stream_rows(gpu, job), step = rows == 0 ? kRowsAtOnce : rows;
  // Each step reads b again, so other kernels are faster than several steps. But linear() promises
  // one order for all these rows, for every k.
  const bool unit = job.b_dtype != DType::f32 && has_matrix_unit(gpu);
  if (!job.b_stays && job.each == 0 && all.m > step * (unit || rows == 0 ? 1 : 8)) return false;
  job.batch.for_each_piece(
      [&](const StridedIndex<4>& strided, const std::array<int64_t, 4>& start) {
        for (uint32_t matrix = 0; matrix < strided.elems; ++matrix) {
          Starts at;
          strided.locate(matrix, at);
          for (size_t i = 0; i < 4; ++i) at[i] += start[i];
          for (uint32_t row = 0; row < all.m; row += step) {
            Gemm p = all;
            p.m = std::min(all.m - row, step);
            if (p.residual != nullptr) p.residual += at[3];
            if (rows == 0) {
              multiply_long(gpu, job, p, at);
            } else {
              stream(gpu, job, p, rows, at);
            }
            at[0] += step * all.out_row;
            at[1] += step * all.a_row;
            at[3] += step * all.residual_row;
          }
        }
      });
  return true;
}

namespace {

/// multiply_grouped by tiles of an expert's rows. rows: those that gemv_stream.gpu takes at once;
/// 0: none, gemv_float.gpu takes them.
void multiply_tiles(Gpu& gpu, const View& out, const GemmJob& job, uint32_t rows,
                    const ExpertLaunches& launches) {
  const Gemm& p = job.shape;
  const ExpertTiles tiles(gpu, launches, rows == 0 ? kRowsAtOnce : rows, out);
  tiles.for_each([&](uint32_t first, uint32_t along_y) {
    constexpr uint32_t kBlockRows = kFloatGemvThreads / kWarp * kFloatGemvRows;
    Grid grid{{(p.n + kBlockRows - 1) / kBlockRows, along_y, 1}};
    grid.pdl = true;
    grid.threads = kFloatGemvThreads;
    if (rows != 0) {
      // Several thread blocks for each multiprocessor, because some tiles are empty.
      const int64_t warps = stream_warps(packs_of(job));
      const int64_t thread_blocks = 4 * gpu.info.multiprocessors * kMostWarps / warps;
      grid.blocks[0] = static_cast<unsigned>(
          std::clamp<int64_t>(thread_blocks / along_y, 1, divide_up(p.n, 16)));
      grid.threads = static_cast<unsigned>(warps * kWarp);
      grid.shared_bytes = static_cast<unsigned>(stream_bytes(job, rows));
    }
    const GroupedRowsArgs args = {
        job.out, job.a, tiles.list(), p, uint32_t{out_format(job.a_dtype)}, first};
    if (rows != 0) {
      kGroupedRows(job.b_dtype, rows).launch(gpu, grid, args);
    } else {
      kGroupedLongRows(job.b_dtype).launch(gpu, grid, args);
    }
  });
}

}  // namespace

void multiply_grouped(Gpu& gpu, const View& out, const GemmJob& job,
                      const ExpertLaunches& launches) {
  const Gemm& p = job.shape;
  const bool streams = stream_rows(gpu, job) != 0;
  if (!launches.are_few()) {
    GemmJob several = job;
    several.shape.m = kRowsAtOnce;
    const uint32_t rows = stream_rows(gpu, several);
    // One row that fills shared memory gains nothing.
    if (rows > 1 || !streams) return multiply_tiles(gpu, out, job, rows, launches);
  }
  const int64_t warps = stream_warps(packs_of(job));
  launches.for_each([&](const Experts& experts, unsigned pairs) {
    constexpr uint32_t kBlockRows = kFloatGemvThreads / kWarp * kFloatGemvRows;
    Grid grid;
    grid.pdl = true;
    grid.blocks[0] = (p.n + kBlockRows - 1) / kBlockRows;
    grid.blocks[1] = pairs;
    grid.threads = kFloatGemvThreads;
    if (streams) {
      const int64_t at_once = std::max<int64_t>(2 * kMostWarps / warps, 1);
      const int64_t thread_blocks = gpu.info.multiprocessors * at_once / pairs;
      grid.blocks[0] =
          static_cast<unsigned>(std::clamp<int64_t>(thread_blocks, 1, divide_up(p.n, 4)));
      grid.threads = static_cast<unsigned>(warps * kWarp);
      grid.shared_bytes = static_cast<unsigned>(stream_bytes(job, 1));
    }
    (streams ? kGroupedStream : kGroupedFloat)(job.b_dtype)
        .launch(gpu, grid, {job.out, job.a, experts, p, uint32_t{out_format(job.a_dtype)}});
  });
}

/// Few rows of a: see skinny_loop.h. False if b doesn't have the required layout.
bool multiply_skinny(Gpu& gpu, const GemmJob& job) {
  Gemm p = job.shape;
  if (job.rows_of_order() > kMostSkinnyRows || p.k == 0 || !job.batch.dims.empty()) return false;
  const MatrixRows rows = {kPiecesOfK, layout_of(job, 2), (p.k + 63) / 64 * 64};
  if (rows.b == kScalar) return false;
  const auto& start = job.batch.start;
  const void* a = advance(job.a, job.a_dtype, start[1]);
  std::optional<Scratch> memory;
  if (!job.packed) {
    memory.emplace(gpu, size_t{p.m} * rows.k_of_b * 2);
    const Layout layout(Shape{p.m, p.k}, {p.a_row, p.a_k}, 0);
    pack_rows(gpu, memory->data(), job.a_dtype, rows.k_of_b, {a, job.a_dtype, layout});
    a = memory->data();
    p.a_row = rows.k_of_b;
  }
  if (p.residual != nullptr) p.residual += start[3];
  const unsigned tile_rows = p.m <= 16 ? 16 : 32, row_tiles = (p.m + tile_rows - 1) / tile_rows;
  const Kernel<MatrixGemmArgs> kernel =
      rows.b == kPairsOfRows ? kSkinnyPairs(job.a_dtype, tile_rows)
                             : kSkinnyGemm(job.a_dtype, tile_rows, job.terms == 1 ? 1 : 2);
  kernel.launch(gpu,
                Grid{.blocks = {(p.n + kSkinnyColumns - 1) / kSkinnyColumns * row_tiles, 1, 1},
                     .threads = kSkinnyThreads,
                     .pdl = job.b_stays},
                {advance(job.out, job.out_dtype, start[0]), a,
                 advance(job.b, job.b_dtype, start[2]), p, rows});
  return true;
}

namespace {

/// Whether kernels that only multiply take the job: its dtypes are equal, and nothing is added.
bool is_product(const GemmJob& job) {
  return job.a_dtype == job.b_dtype && job.a_dtype == job.out_dtype && job.shape.scale == nullptr &&
         job.shape.residual == nullptr;
}

/// Launches kernels whose thread blocks take `columns` columns of a matrix, along the grid's first
/// axis, and up to `rows` rows. Along the second axis lie the matrices.
void launch_columns(Gpu& gpu, const GemmJob& job, uint32_t rows, uint32_t columns, unsigned threads,
                    const Kernel<GemmArgs>& kernel) {
  const Gemm& all = job.shape;
  job.batch.for_each_piece([&](const StridedIndex<4>& strided,
                               const std::array<int64_t, 4>& start) {
    constexpr uint32_t kMostMatrices = 65535;  // limit of a grid's second axis
    Gemm p = all;
    p.batch = strided;
    for (uint32_t row = 0; row < all.m; row += rows) {
      p.m = std::min(all.m - row, rows);
      for (p.first = 0; p.first < strided.elems; p.first += kMostMatrices) {
        const unsigned matrices = std::min(strided.elems - p.first, kMostMatrices);
        kernel.launch(
            gpu, Grid{.blocks = {(p.n + columns - 1) / columns, matrices, 1}, .threads = threads},
            {advance(job.out, job.out_dtype, start[0] + row * p.out_row),
             advance(job.a, job.a_dtype, start[1] + row * p.a_row),
             advance(job.b, job.b_dtype, start[2]), p});
      }
    }
  });
}

}  // namespace

bool multiply_few_rows(Gpu& gpu, const GemmJob& job) {
  const uint32_t m = job.shape.m,
                 most = job.b_dtype == DType::f32 ? kMostFewRowsOfF32 : kMostFewRowsOfHalves;
  if (m > most || job.shape.k < kLeastK || !is_narrow_float(job.b_dtype) || !is_product(job) ||
      !has_vector_columns(job)) {
    return false;
  }
  const uint32_t rows = m == 1 ? 1 : m <= 4 ? 4 : m <= 8 ? 8 : 16;
  launch_columns(gpu, job, rows, kFewRowsColumns, kFewRowsThreads, kFewRows(job.b_dtype, rows));
  return true;
}

bool multiply_small_m(Gpu& gpu, const GemmJob& job) {
  const Gemm& all = job.shape;
  // A second launch reads b again. It is still faster than tiles that leave most of the device
  // idle.
  const int64_t tiles = divide_up(all.n, kSmallTile) * job.batch.elems;
  const uint32_t most = tiles < gpu.info.multiprocessors ? 2 * kRowsAtOnce : kRowsAtOnce;
  if (all.m > most || all.k < kLeastK || !is_product(job)) return false;
  const DType dtype = job.a_dtype == DType::i32 ? DType::u32 : job.a_dtype;
  launch_columns(gpu, job, kRowsAtOnce, kSmallMColumns, kSmallMThreads, kSmallMGemm(dtype));
  return true;
}

}  // namespace wick::gpu
