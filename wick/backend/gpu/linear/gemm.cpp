#include "wick/backend/gpu/linear/gemm.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/library_gemm.h"
#include "wick/backend/gpu/reduce/reduce.h"
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
bool is_f32(const GemmJob& job) { return job.a_dtype == DType::f32 && job.b_dtype == DType::f32; }
/// How often each multiprocessor takes a tile, if it takes one at a time.
int64_t rounds_of(const Gpu& gpu, int64_t tiles) {
  return divide_up(tiles, gpu.info.multiprocessors);
}
/// Whether the large f32 tiles, each about twice as fast, keep enough of the device busy.
bool takes_large_f32(const Gpu& gpu, const GemmJob& job) {
  if (!is_f32(job)) return false;
  const int64_t count = large_f32(gpu).count(job.shape) * job.batch.elems;
  return count * 20 >= rounds_of(gpu, count) * gpu.info.multiprocessors * 11;
}

/// The most elements that the products of parts of k have together: 256 MiB.
constexpr int64_t kMostProducts = int64_t{64} << 20;

/// k of each part if a product of f32 is divided into `parts` along k.
int64_t part_of_k(const GemmJob& job, int64_t parts) {
  constexpr int64_t kSlab = 16;  // a part has a multiple of the k that main loops take at once
  return divide_up(divide_up(job.shape.k, parts), kSlab) * kSlab;
}
/// An estimate of the clock cycles of a gemm of f32 that is divided along k. An H100 was the
/// measure; other cards have similar ratios of arithmetic, memory and launches.
int64_t cycles_of_parts(const Gpu& gpu, const GemmJob& job, int64_t parts) {
  constexpr int64_t kMultiplyAdds = 128;  // of a multiprocessor, with large tiles
  constexpr int64_t kOfTile = 2500;       // until the first product, and from the last one on
  constexpr int64_t kMemory = 1800;       // bytes
  constexpr int64_t kLaunch = 6000;       // of the kernel that adds the parts
  const int64_t k = part_of_k(job, parts);
  Gemm shape = job.shape;
  shape.m = static_cast<uint32_t>(job.rows_of_order());
  const auto multiply = [&](const Tile& tile, int64_t rate) {
    return rounds_of(gpu, tile.count(shape) * parts) *
           (tile.rows * tile.columns * k / rate + kOfTile);
  };
  const int64_t product =
      std::min(multiply(large_f32(gpu), kMultiplyAdds), multiply(kSmall, kMultiplyAdds / 2));
  if (parts == 1) return product;
  const int64_t bytes = (2 * parts + 1) * shape.m * shape.n * int64_t{sizeof(float)};
  return product + bytes / kMemory + kLaunch;
}
/// The number of parts along k that is the fastest; 1 unless it saves a tenth of the time. It
/// depends on rows_of_order(), not on all rows, because the order of sums depends on it.
int64_t best_parts(const Gpu& gpu, const GemmJob& job) {
  constexpr int64_t kLeastK = 64;
  const bool f32 = is_f32(job) && job.out_dtype == DType::f32;
  if (!job.any_order || !f32 || job.batch.elems != 1) return 1;
  const int64_t whole = cycles_of_parts(gpu, job, 1);
  int64_t best = 1, least = whole - whole / 10;
  for (const int64_t parts : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
    const int64_t each = part_of_k(job, parts);
    if (each < kLeastK) break;
    if (each * (parts - 1) >= job.shape.k) continue;  // nothing is left for the last part
    if (parts * job.rows_of_order() * job.shape.n > kMostProducts) break;
    const int64_t cycles = cycles_of_parts(gpu, job, parts);
    if (cycles < least) best = parts, least = cycles;
  }
  return best;
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

/// Multiplies operands of any dtype and layout.
void multiply_plain(Gpu& gpu, const GemmJob& job) {
  const bool large = takes_large_f32(gpu, job);
  const Kernel<GemmArgs> kernel = large ? kLargeF32() : plain_kernel(job);
  launch_tiles(job, large ? large_f32(gpu) : kSmall,
               [&](const Grid& grid, void* out, const void* a, const void* b, const Gemm& shape) {
                 kernel.launch(gpu, grid, {out, a, b, shape});
               });
}
/// Multiplies parts of k on their own, and then adds the products.
void multiply_parts_of_rows(Gpu& gpu, const GemmJob& whole, int64_t parts) {
  GemmJob job = whole;
  Gemm& p = job.shape;
  const int64_t each = part_of_k(whole, parts), elems = int64_t{p.m} * p.n;
  const Scratch products(gpu, static_cast<size_t>(parts * elems) * sizeof(float));
  job.any_order = false;
  job.out = products.data();
  p.out_row = p.n, p.out_col = 1;
  p.parts = static_cast<uint32_t>(parts);
  p.shorter = static_cast<uint32_t>(parts * each - p.k);
  p.k = static_cast<uint32_t>(each);
  job.batch.add(parts, {elems, each * p.a_k, each * p.b_k, 0});
  job.batch.start[0] = 0;
  job.store_to(DType::f32);
  multiply_plain(gpu, job);
  const Layout to(Shape{1, p.m, p.n}, {0, whole.shape.out_row, whole.shape.out_col},
                  whole.batch.start[0]);
  reduce(gpu, Op::sum, {whole.out, DType::f32, to},
         {products.data(), DType::f32, Layout::contiguous(Shape{parts, p.m, p.n})}, 1);
}
/// Takes as many rows at a time as the products of their parts may have.
void multiply_parts(Gpu& gpu, const GemmJob& whole, int64_t parts) {
  const Gemm& p = whole.shape;
  const int64_t each = whole.rows_of_order();
  const int64_t most = std::max<int64_t>(kMostProducts / (parts * each * p.n), 1) * each;
  for (int64_t first = 0; first < p.m; first += most) {
    GemmJob rows = whole;
    rows.shape.m = static_cast<uint32_t>(std::min(most, p.m - first));
    rows.batch.start[0] += first * p.out_row;
    rows.batch.start[1] += first * p.a_row;
    multiply_parts_of_rows(gpu, rows, parts);
  }
}

}  // namespace

bool takes_parts(const Gpu& gpu, const GemmJob& job) {
  return forced_main_loop() == MainLoop::best && best_parts(gpu, job) > 1;
}

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
  if (any && multiply_few_rows(gpu, job)) return;
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
  const int64_t parts = any ? best_parts(gpu, job) : 1;
  if (parts > 1) return multiply_parts(gpu, job, parts);
  multiply_plain(gpu, job);
}

}  // namespace wick::gpu
