#include "wick/backend/gpu/linear/library_gemm.h"

#include "wick/backend/gpu/linear/matrix_library.h"

namespace wick::gpu {
namespace {

/// `auto` gives the libraries what has at least so many rows, columns and terms, in 16 bits: there
/// they use matrix units, and the way to them is short against the work.
constexpr uint32_t kLeast = 512;

bool wanted(const GemmJob& job) {
  const LibraryUse use = library_use();
  if (use == LibraryUse::off) return false;
  if (use == LibraryUse::only) return true;
  const Gemm& p = job.shape;
  // Measured on an H200: a tenth faster than our own for such sizes and within the class's bound.
  // For others the library chooses forms that round partial sums, up to 26 times the bound at
  // [300,500,700].
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
