#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/gemm.h"

namespace wick::gpu {
namespace {

/// Folds batch dims into m: inner dims whose matrices share b and are contiguous become rows of one
/// gemm.
void fold_batch(GemmJob& job) {
  Gemm& p = job.shape;
  auto& dims = job.batch.dims;
  while (!dims.empty()) {
    const auto& [size, stride] = dims.back();
    if (p.m == 1) {  // with one row its strides are meaningless so far
      p.out_row = stride[0];
      p.a_row = stride[1];
    }
    if (stride[2] != 0 || stride[0] != p.m * p.out_row || stride[1] != p.m * p.a_row ||
        p.m * size > UINT32_MAX / 2) {
      return;
    }
    p.m *= static_cast<uint32_t>(size);
    job.batch.elems /= size;
    dims.pop_back();
  }
}

}  // namespace

void GpuBackend::matmul(const View& out, const ConstView& a, const ConstView& b) {
  const Layout &lo = out.layout, &la = a.layout, &lb = b.layout;
  const int last = lo.rank() - 1;
  if (lo.elems() == 0) return;
  GemmJob job;
  job.out = out.data;
  job.a = a.data;
  job.b = b.data;
  job.a_dtype = job.b_dtype = out.dtype;
  job.any_order = true;
  Gemm& p = job.shape;
  p.m = static_cast<uint32_t>(lo.shape()[last - 1]);
  p.n = static_cast<uint32_t>(lo.shape()[last]);
  p.k = static_cast<uint32_t>(la.shape()[last]);
  p.a_row = la.stride(last - 1);
  p.a_k = la.stride(last);
  p.b_row = lb.stride(last);
  p.b_k = lb.stride(last - 1);
  p.out_row = lo.stride(last - 1);
  p.out_col = lo.stride(last);
  const Layout none(lo.shape(), {}, 0);
  job.batch = collapse<4>({&lo, &la, &lb, &none}, (1u << (last - 1)) - 1);
  fold_batch(job);
  // Few columns are treated as few rows. Otherwise neighbouring threads must store neighbours in
  // memory.
  constexpr uint32_t kFew = 32;
  const bool few_rows = p.m <= kFew && p.m <= p.n, few_columns = p.n <= kFew && p.n < p.m;
  if (few_columns || (p.out_row == 1 && p.out_col != 1 && !few_rows)) job.transpose();
  job.store_to(out.dtype);
  multiply(gpu_, job);
}

}  // namespace wick::gpu
