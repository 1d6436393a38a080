#include <algorithm>
#include <atomic>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/gemm.h"
#include "wick/backend/cpu/linear/packed_columns.h"
#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"

namespace wick::cpu {
namespace {

/// The leading dims of out, a and b.
using Batch = CollapsedDims<3>;

/// A gemm of matrices of one dtype, transposed if that puts the short side on the left.
struct Gemm {
  const GemmKernels& kernels;
  DType dtype;
  Compute compute;
  int64_t m, n, k;
  int64_t a_row, a_k, b_k, b_col, out_row, out_col;
  bool swapped = false;
  GemmKernels::Strip strip = nullptr;  ///< for few rows if B is dense along a dim: no packing
  int64_t strip_stride = 0;
  int64_t strip_cols = 0;  ///< columns of a task
  GemmPlan plan{};
  int strip_parts = 1;

  // A short left side needs no padding, and threads pack the long operand in parallel.
  static constexpr int64_t kShort = 16;
  static constexpr int64_t kStripRows = 8;
  // Columns of a task: long runs if B is dense along its columns, or groups of columns if B is
  // dense along k.
  static constexpr int64_t kLineCols = 256, kGroupCols = 64;
  // Fewer columns than this don't pay for a panel of sixteen.
  static constexpr int64_t kDotCols = 4;

  void choose(int threads) {
    if (n < kShort && m > n) {
      std::swap(m, n);
      std::swap(a_row, b_col);
      std::swap(a_k, b_k);
      std::swap(out_row, out_col);
      swapped = true;
    }
    const auto d = static_cast<size_t>(dtype);
    const Compute in_pairs = dtype == DType::bf16 ? bf16_compute(kernels) : Compute::f32;
    const bool pairs = in_pairs != Compute::f32;
    if (m <= kStripRows && b_k == 1 && pairs && has_avx512_bf16()) {
      strip = kernels.pair_dots;
      strip_stride = b_col;
      strip_cols = kGroupCols;
    } else if (m <= kStripRows && n < kDotCols && b_k == 1) {
      strip = kernels.dots[d];
      strip_stride = b_col;
      strip_cols = 1;
    } else if (m <= kStripRows && b_col == 1) {
      strip = kernels.strip[d];
      strip_stride = b_k;
      strip_cols = kLineCols;
    } else if (m <= kStripRows && b_k == 1 && kernels.columns[d] != nullptr) {
      strip = kernels.columns[d];
      strip_stride = b_col;
      strip_cols = kGroupCols;
    }
    if (strip != nullptr) {
      const double products = static_cast<double>(m * n) * static_cast<double>(k);
      strip_parts = static_cast<int>(std::clamp(products / (32 * 1024), 1.0, double(threads)));
    } else {
      if (pairs && m > kStripRows) compute = in_pairs;
      plan = plan_gemm(kernels, compute, m, n, multiplies_pairs() ? (k + 1) / 2 : k,
                       result(nullptr), threads);
    }
  }

  bool multiplies_pairs() const {
    return compute == Compute::bf16_dot || compute == Compute::bf16_tiles;
  }

  GemmResult result(void* out) const { return {out, dtype, out_row, out_col, nullptr}; }

  size_t workspace_bytes() const {
    if (strip == nullptr) return plan.workspace_bytes();
    return static_cast<size_t>(m * (k + n)) * static_cast<size_t>(elem_bytes(compute)) + 128;
  }

  void run(void* out, const void* a, const void* b, void* workspace) const {
    if (swapped) std::swap(a, b);
    if (strip != nullptr) return run_strip(out, a, b, workspace);
    if (multiplies_pairs()) {
      const PackedPairs left(kernels, compute, a, a_row, a_k, k),
          right(kernels, compute, b, b_col, b_k, k);
      GemmRows rows{.dtype = DType::u32};
      rows.source = &left;
      return run_gemm(kernels, plan, rows, right, result(out), workspace);
    }
    const GemmRows rows{a, dtype, a_row, a_k, nullptr};
    const PackedColumns columns(kernels, compute, b, dtype, b_col, b_k);
    run_gemm(kernels, plan, rows, columns, result(out), workspace);
  }

  void run_strip(void* out, const void* a, const void* b, void* workspace) const {
    const auto d = static_cast<size_t>(dtype);
    const int64_t bytes = elem_bytes(compute), in_bytes = info(dtype).block_bytes;
    char* const x = static_cast<char*>(workspace);
    char* const sums = x + align64(m * k * bytes);
    for (int64_t r = 0; r < m; ++r) {
      const char* const row = static_cast<const char*>(a) + r * a_row * in_bytes;
      if (strip == kernels.pair_dots) {
        gather(x + r * k * in_bytes, row, a_k * in_bytes, k, in_bytes);
      } else {
        kernels.load[d](row, a_k, k, x + r * k * bytes);
      }
    }
    const int64_t tasks = (n + strip_cols - 1) / strip_cols;
    const auto body = [&](int64_t first, int64_t last) {
      const int64_t col0 = first * strip_cols;
      const int64_t cols = std::min(last * strip_cols, n) - col0;
      StripArgs args{};
      args.rows = m;
      args.cols = cols;
      args.k = k;
      args.x = x;
      args.b = static_cast<const char*>(b) + col0 * b_col * in_bytes;
      args.b_stride = strip_stride;
      args.out = sums + col0 * bytes;
      args.out_row_stride = n;
      strip(args);
      for (int64_t r = 0; r < m; ++r) {
        kernels.store[d](sums + (r * n + col0) * bytes,
                         static_cast<char*>(out) + (r * out_row + col0 * out_col) * in_bytes,
                         out_col, cols);
      }
    };
    if (strip_parts == 1) {
      body(0, tasks);
    } else {
      parallel_for(tasks, 1, body);
    }
  }
};

/// Splits the leading dims: inner dims whose matrices share B and follow each other in memory
/// become rows of one gemm; the others are the batch.
Batch fold_batch(const Layout& lo, const Layout& la, const Layout& lb, Gemm& gemm) {
  Batch batch({&lo, &la, &lb}, (1u << (lo.rank() - 2)) - 1);
  while (batch.rank() > 0) {
    const auto& [size, stride] = batch.inner(0);
    if (gemm.m == 1) {  // the stride of a single row is meaningless
      gemm.out_row = stride[0];
      gemm.a_row = stride[1];
    }
    if (stride[2] != 0 || stride[0] != gemm.m * gemm.out_row || stride[1] != gemm.m * gemm.a_row) {
      break;
    }
    gemm.m *= size;
    batch.elems /= size;
    batch.dims.pop_back();
  }
  return batch;
}

/// Stores the result of a gemm with k = 0.
void store_zeros(const Gemm& gemm, char* out) {
  const std::vector<uint64_t> zeros(static_cast<size_t>(gemm.n));
  const auto store = gemm.kernels.store[static_cast<size_t>(gemm.dtype)];
  const int64_t row_bytes = gemm.out_row * info(gemm.dtype).block_bytes;
  for (int64_t r = 0; r < gemm.m; ++r, out += row_bytes) {
    store(zeros.data(), out, gemm.out_col, gemm.n);
  }
}

/// Many gemms, each on one thread.
template <class F>
void share_out(const Gemm& gemm, int64_t count, int threads, const F& run_one) {
  const size_t each = align64(gemm.workspace_bytes());
  const double products = static_cast<double>(gemm.m * gemm.n) * static_cast<double>(gemm.k) *
                          static_cast<double>(count);
  const int parts = static_cast<int>(std::clamp(products / 32768, 1.0, double(threads)));
  const Workspace workspace(each * static_cast<size_t>(parts));
  std::atomic<int64_t> next{0};
  ThreadPool::global().run(parts, [&](int part) {
    char* mine = workspace.data() + each * static_cast<size_t>(part);
    for (;;) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) return;
      run_one(index, mine);
    }
  });
}

}  // namespace

void CpuBackend::matmul(const View& out, const ConstView& a, const ConstView& b) {
  const Layout &lo = out.layout, &la = a.layout, &lb = b.layout;
  const int rank = lo.rank();
  if (lo.elems() == 0) return;

  Gemm gemm{.kernels = gemm_kernels(isa_),
            .dtype = out.dtype,
            .compute = compute_of(out.dtype),
            .m = lo.shape()[rank - 2],
            .n = lo.shape()[rank - 1],
            .k = la.shape()[rank - 1],
            .a_row = la.stride(rank - 2),
            .a_k = la.stride(rank - 1),
            .b_k = lb.stride(rank - 2),
            .b_col = lb.stride(rank - 1),
            .out_row = lo.stride(rank - 2),
            .out_col = lo.stride(rank - 1)};
  const Batch batch = fold_batch(lo, la, lb, gemm);
  const int64_t count = batch.elems;
  const int64_t bytes = info(out.dtype).block_bytes;
  char* const out_data = static_cast<char*>(out.data);
  if (gemm.k == 0) {
    for (int64_t i = 0; i < count; ++i) store_zeros(gemm, out_data + batch.at(i)[0] * bytes);
    return;
  }
  const char* const a_data = static_cast<const char*>(a.data);
  const char* const b_data = static_cast<const char*>(b.data);
  const auto run_one = [&](int64_t index, void* workspace) {
    const Batch::Offsets at = batch.at(index);
    gemm.run(out_data + at[0] * bytes, a_data + at[1] * bytes, b_data + at[2] * bytes, workspace);
  };
  const int threads = ThreadPool::global().threads();
  const bool many = threads > 1 && count >= 2 * threads;
  gemm.choose(many ? 1 : threads);
  if (many) return share_out(gemm, count, threads, run_one);
  const Workspace workspace(gemm.workspace_bytes());
  for (int64_t index = 0; index < count; ++index) run_one(index, workspace.data());
}

}  // namespace wick::cpu
