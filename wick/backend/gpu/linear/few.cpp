// Products with few rows: what takes the time is b's way out of memory.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/pack_rows.h"
#include "wick/backend/gpu/linear/product.h"

namespace wick::gpu {
namespace {

bool is_narrow_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Most rows that matvec_float.gpu and product_few.gpu take at once, and product_thin.gpu.
constexpr uint32_t kRowsAtOnce = 8, kThinRows = 32;
/// Fewer k aren't worth dividing among a group's teams.
constexpr uint32_t kLeastK = 64;

/// Items of a group of matvec_float.gpu: large groups share x, but every processor is to have one.
unsigned matvec_items(const Gpu& gpu, int64_t n, int64_t rows_of_team) {
  unsigned items = 512;
  while (items > 64 && n < gpu.info.processors * (items / 32) * rows_of_team) items /= 2;
  return items;
}

/// Whether b's rows are packs of 16 bytes. Behind k, up to a whole pack, weights have zeros.
bool has_packs(const ProductJob& job) {
  const Product& p = job.shape;
  const int64_t pack = 16 / info(job.b_dtype).block_bytes;
  return p.b_k == 1 && p.b_row % pack == 0 && (job.b_stays || p.k % pack == 0) &&
         reinterpret_cast<uintptr_t>(job.b) % 16 == 0 && job.batch.start[2] % pack == 0;
}

}  // namespace

int64_t most_rows_by_rows(const Gpu& gpu, DType b) {
  const MainLoop forced = forced_main_loop();
  if (forced != MainLoop::best && forced != MainLoop::plain) return 1;
  return b != DType::f32 && has_matrix_unit(gpu) ? 4 : 32;
}

bool multiply_by_rows(Gpu& gpu, const ProductJob& job) {
  const Product& all = job.shape;
  if (!is_narrow_float(job.a_dtype) || !is_narrow_float(job.b_dtype) || all.scale != nullptr ||
      all.m * job.batch.elems > most_rows_by_rows(gpu, job.b_dtype) || !has_packs(job)) {
    return false;
  }
  for (const auto& dim : job.batch.dims) {
    if (dim.stride[2] != 0) return false;
  }
  job.batch.for_each_piece([&](const Nest<4>& nest, const std::array<int64_t, 4>& start) {
    for (uint32_t matrix = 0; matrix < nest.elems; ++matrix) {
      math::i64 at[4];
      nest.locate(matrix, at);
      for (size_t i = 0; i < 4; ++i) at[i] += start[i];
      for (uint32_t row = 0; row < all.m; row += kRowsAtOnce) {
        Product p = all;
        p.m = std::min(all.m - row, kRowsAtOnce);
        if (p.residual != nullptr) p.residual += at[3] + row * p.residual_row;
        const unsigned kernel_rows = p.m <= 2 ? p.m : p.m <= 4 ? 4 : 8;
        const unsigned team_rows = p.m <= 2 ? 2 : 4, items = matvec_items(gpu, p.n, team_rows);
        const unsigned group_rows = items / 32 * team_rows;
        gpu.launch("matvec_float", fmt::format("matvec_{}_{}", name(job.b_dtype), kernel_rows),
                   Grid{.groups = {(p.n + group_rows - 1) / group_rows, 1, 1},
                        .items = items,
                        .early = job.b_stays},
                   advance(job.out, job.out_dtype, at[0] + row * p.out_row),
                   advance(job.a, job.a_dtype, at[1] + row * p.a_row),
                   advance(job.b, job.b_dtype, at[2]), p, uint32_t{out_format(job.a_dtype)});
      }
    }
  });
  return true;
}

/// Few rows of a: see thin_loop.h. False where b doesn't lie as it has to.
bool multiply_thin(Gpu& gpu, const ProductJob& job) {
  Product p = job.shape;
  if (p.m > kThinRows || p.k == 0 || !job.batch.dims.empty()) return false;
  const MatrixRows rows = {kPiecesOfK, layout_of(job, 2), (p.k + 63) / 64 * 64};
  if (rows.b == kSingles) return false;
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
  const std::string kernel = fmt::format("product_{}_{}_{}", name(job.a_dtype), p.m <= 16 ? 16 : 32,
                                         rows.b == kPairsOfRows ? "pairs"
                                         : job.parts == 1       ? "1"
                                                                : "2");
  gpu.launch("product_thin", kernel,
             Grid{.groups = {(p.n + 31) / 32, 1, 1}, .items = 256, .early = job.b_stays},
             advance(job.out, job.out_dtype, start[0]), a, advance(job.b, job.b_dtype, start[2]), p,
             rows);
  return true;
}

bool multiply_few(Gpu& gpu, const ProductJob& job) {
  Product p = job.shape;
  if (p.m > kRowsAtOnce || p.k < kLeastK || job.a_dtype != job.b_dtype ||
      job.a_dtype != job.out_dtype || p.scale != nullptr || p.residual != nullptr) {
    return false;
  }
  const DType dtype = job.a_dtype == DType::i32 ? DType::u32 : job.a_dtype;
  job.batch.for_each_piece([&](const Nest<4>& nest, const std::array<int64_t, 4>& start) {
    p.batch = nest;
    constexpr uint32_t kMostMatrices = 65535;  // along a grid's second axis
    for (p.first = 0; p.first < nest.elems; p.first += kMostMatrices) {
      const unsigned matrices = std::min(nest.elems - p.first, kMostMatrices);
      gpu.launch("product_few", fmt::format("product_{}", name(dtype)),
                 Grid{.groups = {(p.n + 31) / 32, matrices, 1}, .items = 512},
                 advance(job.out, job.out_dtype, start[0]), advance(job.a, job.a_dtype, start[1]),
                 advance(job.b, job.b_dtype, start[2]), p);
    }
  });
  return true;
}

}  // namespace wick::gpu
