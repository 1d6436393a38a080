#include "wick/backend/gpu/linear/library_gemm.h"

#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/base/error.h"
#include "wick/base/precision.h"

namespace wick::gpu {
namespace {

/// With `auto`, libraries get gemms whose m, n and k are at least this large, in 16 bits or with
/// TF32. At these sizes they use matrix units, and the overhead of the call is small.
constexpr uint32_t kLeast = 512;

bool wanted(const GemmJob& job) {
  const LibraryUse use = library_use();
  if (use == LibraryUse::off) return false;
  if (use == LibraryUse::only) return true;
  const Gemm& p = job.shape;
  // Measured on an H200: for such sizes the library is a tenth faster than wick's kernels, and
  // within the error bound of the class. For other sizes it chooses kernels that round partial
  // sums, with errors up to 26 times the bound at [300,500,700].
  const auto fits = [](int64_t size) { return size >= kLeast && size % 8 == 0; };
  const bool quick = job.a_dtype != DType::f32 || precision() == Precision::fast;
  return quick && fits(job.rows_of_order()) && fits(p.n) && fits(p.k);
}

}  // namespace

bool multiply_by_library(Gpu& gpu, const GemmJob& job) {
  if (!wanted(job) || MatrixLibrary::of(gpu.device.kind).empty()) return false;
  const std::optional<GemmCall> call = library_call(job);
  if (!call) return false;
  gpu.enter();
  if (job.each == 0 || job.each == job.shape.m) {
    return library_gemm(gpu.device, *call, gpu.stream());
  }
  // One call for each matrix, because the library chooses its order of sums by the shape.
  GemmCall one = *call;
  one.m = job.each;
  for (int64_t row = 0; row < call->m; row += one.m) {
    const auto rows_on = [&](auto* data, int64_t stride) {
      return advance(data, call->dtype, row * stride);
    };
    one.a = rows_on(call->a, job.shape.a_row);
    one.c = rows_on(call->c, job.shape.out_row);
    if (library_gemm(gpu.device, one, gpu.stream())) continue;
    if (row == 0) return false;
    throw Error(ErrorKind::runtime, "linear", "the library refused a later gemm of the same shape");
  }
  return true;
}

}  // namespace wick::gpu
