#include "wick/backend/gpu/linear/library_product.h"

#include <optional>

#include "wick/backend/gpu/matrix_library.h"

namespace wick::gpu {
namespace {

/// `auto` gives the libraries what has at least so many rows, columns and terms, in 16 bits: there
/// they use matrix units, and the way to them is short against the work.
constexpr uint32_t kLeast = 512;

bool wanted(const ProductJob& job) {
  const LibraryUse use = library_use();
  if (use == LibraryUse::off) return false;
  if (use == LibraryUse::only) return true;
  const Product& p = job.shape;
  // Measured on an H200: a tenth faster than our own for such sizes and within the class's bound.
  // For others the library chooses forms that round partial sums, up to 26 times the bound at
  // [300,500,700].
  const auto fits = [](uint32_t size) { return size >= kLeast && size % 8 == 0; };
  return job.a_dtype != DType::f32 && fits(p.m) && fits(p.n) && fits(p.k);
}

/// Rows of an operand as libraries take them.
struct Rows {
  bool transposed;
  int64_t ld;
};

/// A matrix [rows, cols] by its strides: dense rows, or dense columns.
std::optional<Rows> rows_of(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  // The stride of what there is but one of says nothing.
  if (cols == 1) col_stride = 1;
  if (col_stride == 1) {
    const int64_t ld = rows == 1 ? cols : row_stride;
    if (ld >= cols) return Rows{false, ld};
  }
  if (rows == 1) row_stride = 1;
  if (row_stride == 1) {
    const int64_t ld = cols == 1 ? rows : col_stride;
    if (ld >= rows) return Rows{true, ld};
  }
  return std::nullopt;
}

/// The job in a library's terms; nothing where it can't be said in them.
std::optional<GemmCall> call_of(const ProductJob& job) {
  const Product& p = job.shape;
  const DType dtype = job.a_dtype;
  const bool floats = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  if (!floats || job.b_dtype != dtype || p.format != out_format(dtype) || job.out_dtype != dtype ||
      p.scale != nullptr || p.residual != nullptr || p.k == 0 || job.batch.dims.size() > 1) {
    return std::nullopt;
  }
  const auto a = rows_of(p.m, p.k, p.a_row, p.a_k), b = rows_of(p.k, p.n, p.b_k, p.b_row);
  const auto out = rows_of(p.m, p.n, p.out_row, p.out_col);
  if (!a || !b || !out || out->transposed) return std::nullopt;

  GemmCall call;
  call.dtype = dtype;
  call.m = p.m, call.n = p.n, call.k = p.k;
  call.a = advance(job.a, dtype, job.batch.start[1]);
  call.b = advance(job.b, dtype, job.batch.start[2]);
  call.c = advance(job.out, dtype, job.batch.start[0]);
  call.a_transposed = a->transposed, call.b_transposed = b->transposed;
  call.lda = a->ld, call.ldb = b->ld, call.ldc = out->ld;
  if (!job.batch.dims.empty()) {
    const auto& [size, stride] = job.batch.dims[0];
    if (stride[1] < 0 || stride[2] < 0 || stride[0] < (call.m - 1) * call.ldc + call.n) {
      return std::nullopt;
    }
    call.batch = size;
    call.stride_c = stride[0], call.stride_a = stride[1], call.stride_b = stride[2];
  }
  return call;
}

}  // namespace

bool multiply_by_library(Gpu& gpu, const ProductJob& job) {
  if (!wanted(job) || MatrixLibrary::of(gpu.device.kind).empty()) return false;
  const std::optional<GemmCall> call = call_of(job);
  if (!call) return false;
  gpu.enter();
  return library_gemm(gpu.device, *call, gpu.stream());
}

}  // namespace wick::gpu
