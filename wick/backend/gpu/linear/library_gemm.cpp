#include "wick/backend/gpu/linear/library_gemm.h"

#include "wick/backend/gpu/linear/matrix_library.h"

namespace wick::gpu {
namespace {

/// With `auto`, libraries get 16-bit gemms whose m, n and k are at least this large. At these sizes
/// they use matrix units, and the overhead of the call is small.
constexpr uint32_t kLeast = 512;

bool wanted(const GemmJob& job) {
  const LibraryUse use = library_use();
  if (use == LibraryUse::off) return false;
  if (use == LibraryUse::only) return true;
  const Gemm& p = job.shape;
  // Measured on an H200: for such sizes the library is a tenth faster than wick's kernels, and
  // within the error bound of the class. For other sizes it chooses kernels that round partial
  // sums, with errors up to 26 times the bound at [300,500,700].
  const auto fits = [](uint32_t size) { return size >= kLeast && size % 8 == 0; };
  return job.a_dtype != DType::f32 && fits(p.m) && fits(p.n) && fits(p.k);
}

}  // namespace

bool multiply_by_library(Gpu& gpu, const GemmJob& job) {
  if (!wanted(job) || MatrixLibrary::of(gpu.device.kind).empty()) return false;
  const std::optional<GemmCall> call = library_call(job);
  if (!call) return false;
  gpu.enter();
  return library_gemm(gpu.device, *call, gpu.stream());
}

}  // namespace wick::gpu
