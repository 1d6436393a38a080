#include "wick/backend/gpu/linear/gemm.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "wick/backend/gpu/linear/library_gemm.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

const KernelFamily<GemmArgs, DType> kPlainGemm("gemm", "gemm_{}");
const KernelFamily<GemmArgs> kF32ByF16("gemm", "gemm_f32_f16");
const KernelFamily<GemmArgs> kLargeF32("gemm", "gemm_f32_large");
const KernelFamily<MatrixGemmArgs, DType, OneOf<kSmallTile, kLargeTile>> kMatrixGemm("gemm_mma",
                                                                                     "gemm_{}_{}");

/// The kernel of gemm.gpu for these operands. u32 and i32 share a kernel, because their sums have
/// the same bits.
Kernel<GemmArgs> plain_kernel(const GemmJob& job) {
  if (job.a_dtype != job.b_dtype) return kF32ByF16();
  return kPlainGemm(job.a_dtype == DType::i32 ? DType::u32 : job.a_dtype);
}

/// The size of a tile of the result.
struct Tile {
  int64_t rows, columns;

  int64_t count(const Gemm& p) const {
    return (p.m + rows - 1) / rows * ((p.n + columns - 1) / columns);
  }
};
constexpr Tile kSmall = {kSmallTile, kSmallTile}, kLarge = {kLargeTile, kLargeTile};
/// The tile of gemm_f32_large.
Tile large_f32(const Gpu& gpu) {
  return gpu.device.kind == DeviceKind::cuda ? Tile{kLargeTile, kLargeColumns} : kLarge;
}
/// Whether the large f32 tiles, each about twice as fast, keep enough of the device busy.
bool takes_large_f32(const Gpu& gpu, const GemmJob& job) {
  if (job.a_dtype != DType::f32 || job.b_dtype != DType::f32) return false;
  const int64_t count = large_f32(gpu).count(job.shape) * job.batch.elems;
  const int64_t rounds = (count + gpu.info.multiprocessors - 1) / gpu.info.multiprocessors;
  return count * 20 >= rounds * gpu.info.multiprocessors * 11;
}

/// Calls launch(grid, out, a, b, shape) for a kernel whose thread blocks take tiles of the result.
template <class Launch>
void launch_tiles(const GemmJob& job, const Tile& tile, const Launch& launch) {
  Gemm p = job.shape;
  const int64_t of_each = tile.count(p);
  const int64_t matrices = std::max<int64_t>(kMostBlocks / of_each, 1);
  job.batch.for_each_piece([&](const StridedIndex<4>& strided,
                               const std::array<int64_t, 4>& start) {
    p.batch = strided;
    void* const out = advance(job.out, job.out_dtype, start[0]);
    if (job.shape.residual != nullptr) p.residual = job.shape.residual + start[3];
    for (int64_t first = 0; first < strided.elems; first += matrices) {
      p.first = static_cast<uint32_t>(first);
      const int64_t now = std::min<int64_t>(matrices, strided.elems - first);
      launch(Grid{.blocks = {static_cast<unsigned>(of_each * now), 1, 1}, .threads = kLoopThreads},
             out, advance(job.a, job.a_dtype, start[1]), advance(job.b, job.b_dtype, start[2]), p);
    }
    if (p.scale != nullptr) p.scale += int64_t{strided.elems} * p.m;
  });
}

}  // namespace

MainLoop forced_main_loop() {
  static const MainLoop forced = [] {
    const std::string_view wanted = environment_choice("WICK_GPU_GEMM");
    return wanted == "plain"   ? MainLoop::plain
           : wanted == "mma"   ? MainLoop::mma
           : wanted == "wgmma" ? MainLoop::wgmma
                               : MainLoop::best;
  }();
  return forced;
}

bool has_matrix_unit(const Gpu& gpu) {
  return gpu.has(Feature::matrix_unit) && forced_main_loop() != MainLoop::plain;
}

OutFormat out_format(DType dtype) {
  return dtype == DType::f16 ? kStoreF16 : dtype == DType::bf16 ? kStoreBf16 : kStoreF32;
}

void multiply(Gpu& gpu, const GemmJob& job) {
  const Gemm& p = job.shape;
  if (p.m == 0 || p.n == 0) return;
  const bool any = forced_main_loop() == MainLoop::best;
  if (any && multiply_gemv(gpu, job)) return;
  if (multiply_by_library(gpu, job)) return;
  // Large tiles are faster if there are enough to keep the device busy.
  const bool large = kLarge.count(p) * job.batch.elems >= gpu.info.multiprocessors;
  const bool halves = job.a_dtype == DType::f16 || job.a_dtype == DType::bf16;
  if (halves && job.a_dtype == job.b_dtype && has_matrix_unit(gpu)) {
    if (any && multiply_skinny(gpu, job)) return;
    if (multiply_wgmma(gpu, job)) return;
    const MatrixRows rows = {layout_of(job, 1), layout_of(job, 2), p.k};
    const auto kernel = kMatrixGemm(job.a_dtype, large ? kLargeTile : kSmallTile);
    GemmJob all = job;
    all.shape.k *= job.terms;
    return launch_tiles(
        all, large ? kLarge : kSmall,
        [&](const Grid& grid, void* out, const void* a, const void* b, const Gemm& shape) {
          kernel.launch(gpu, grid, {out, a, b, shape, rows});
        });
  }
  if (any && multiply_small_m(gpu, job)) return;
  const bool large_tiles = takes_large_f32(gpu, job);
  const Kernel<GemmArgs> kernel = large_tiles ? kLargeF32() : plain_kernel(job);
  launch_tiles(job, large_tiles ? large_f32(gpu) : kSmall,
               [&](const Grid& grid, void* out, const void* a, const void* b, const Gemm& shape) {
                 kernel.launch(gpu, grid, {out, a, b, shape});
               });
}

}  // namespace wick::gpu
