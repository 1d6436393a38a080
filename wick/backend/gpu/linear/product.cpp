#include "wick/backend/gpu/linear/product.h"

#include <algorithm>
#include <string>
#include <utility>

#include "wick/backend/gpu/linear/library_product.h"

namespace wick::gpu {
namespace {

/// Groups of one launch.
constexpr int64_t kMostGroups = 1 << 23;

/// The kernel of product.gpu for these operands; sums of u32 and i32 are the same.
std::string plain_kernel(const ProductJob& job) {
  const DType a = job.a_dtype == DType::i32 ? DType::u32 : job.a_dtype;
  std::string kernel = "product_" + std::string(name(a));
  if (job.a_dtype != job.b_dtype) kernel += '_' + std::string(name(job.b_dtype));
  return kernel;
}

/// Launches a kernel whose groups take tiles of the result.
void launch_tiles(Gpu& gpu, const ProductJob& job, std::string_view file, std::string_view kernel,
                  uint32_t tile_m, uint32_t tile_n) {
  Product p = job.shape;
  const int64_t tiles = int64_t{(p.m + tile_m - 1) / tile_m} * ((p.n + tile_n - 1) / tile_n);
  const int64_t matrices = std::max<int64_t>(kMostGroups / tiles, 1);
  job.batch.for_each_piece([&](const Nest<4>& nest, const std::array<int64_t, 4>& start) {
    p.batch = nest;
    const DType b = job.b_dtype;
    char* const out = static_cast<char*>(job.out) + start[0] * job.out_bytes;
    const void* const a = advance(job.a, job.a_dtype, start[1]);
    p.residual = job.shape.residual == nullptr ? nullptr : job.shape.residual + start[3];
    for (int64_t first = 0; first < nest.elems; first += matrices) {
      p.first = static_cast<uint32_t>(first);
      const int64_t now = std::min<int64_t>(matrices, nest.elems - first);
      gpu.launch(file, kernel,
                 Grid{.groups = {static_cast<unsigned>(tiles * now), 1, 1}, .items = 256},
                 static_cast<void*>(out), a, advance(job.b, b, start[2]), p);
    }
    if (p.scale != nullptr) p.scale += int64_t{nest.elems} * p.m;
  });
}

}  // namespace

OutFormat out_format(DType dtype) {
  return dtype == DType::f16 ? kStoreF16 : dtype == DType::bf16 ? kStoreBf16 : kStoreF32;
}

void ProductJob::store_to(DType dtype) {
  out_bytes = info(dtype).block_bytes;
  shape.format = out_format(dtype);
  const auto fourth = [](int64_t x) { return x % 4 == 0; };
  bool fours = shape.out_col == 1 && fourth(shape.n) && fourth(shape.out_row) &&
               fourth(batch.start[0]) && reinterpret_cast<uintptr_t>(out) % (4 * out_bytes) == 0;
  for (const auto& dim : batch.dims) fours = fours && fourth(dim.stride[0]);
  shape.fours = fours ? 1 : 0;
}

void multiply(Gpu& gpu, const ProductJob& job) {
  const Product& p = job.shape;
  if (p.m == 0 || p.n == 0 || multiply_by_library(gpu, job)) return;
  // Enough large tiles to keep the device busy are faster than four times as many small ones.
  const int64_t large = int64_t{(p.m + 127) / 128} * ((p.n + 127) / 128) * job.batch.elems;
  if (job.a_dtype == DType::f32 && job.b_dtype == DType::f32 && large >= gpu.info.processors) {
    return launch_tiles(gpu, job, "product", "product_f32_large", 128, 128);
  }
  launch_tiles(gpu, job, "product", plain_kernel(job), 64, 64);
}

}  // namespace wick::gpu
