#include "wick/backend/cpu/linear/float_weight.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "wick/backend/cpu/linear/gemm.h"
#include "wick/backend/cpu/linear/prefetch.h"
#include "wick/backend/cpu/linear/rows.h"
#include "wick/backend/cpu/linear/stacked_rows.h"
#include "wick/backend/cpu/linear/weight.h"
#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/cpu/weight_memory.h"

namespace wick::cpu {
namespace {

constexpr int64_t kPanel = kWeightPanelRows;
/// The most columns for which passes over the packed weights are faster than gemm, which has to
/// unpack them; bf16 dot products need no unpacking.
constexpr int64_t most_decode_columns(DType dtype) {
  return (dtype == DType::bf16 ? 2 : 4) * kDecodeColumns;
}

size_t table_index(DType dtype) { return dtype == DType::f32 ? 0 : (dtype == DType::f16 ? 1 : 2); }

struct FloatWeight final : PreparedWeight {
  WeightMemory memory;
  int64_t padded_k = 0;  ///< even for bf16
  int64_t panels = 0, panel_bytes = 0;

  const char* panel(int64_t index) const {
    return static_cast<const char*>(memory.data()) + index * panel_bytes;
  }
};

/// One call of linear.
struct Job {
  const GemmKernels& gemm;
  const FloatWeightKernels& kernels;
  const FloatWeight& weight;
  const char* x;  ///< the first element
  char* out;
  DType dtype;  ///< of x and out
  int64_t rows;
  RowStarts x_rows, out_rows;
  int64_t x_stride, out_stride;

  int64_t elem_bytes() const { return info(dtype).block_bytes; }
  const void* x_row(int64_t row) const { return x + x_rows.at(row) * elem_bytes(); }

  /// Converts a row of x to f32, rounded to bf16 if the weights are bf16. `to` has room for
  /// padded_k floats.
  void load_row(int64_t row, float* to, void* half) const {
    const int64_t k = weight.k;
    gemm.load[static_cast<size_t>(dtype)](x_row(row), x_stride, k, to);
    for (int64_t p = k; p < weight.padded_k; ++p) to[p] = 0;
    if (weight.dtype == DType::bf16) {
      const auto b = static_cast<size_t>(DType::bf16);
      gemm.store[b](to, half, 1, weight.padded_k);
      gemm.load[b](half, 1, weight.padded_k, to);
    }
  }
};

// Few rows of x: the weights are read once. Threads take runs of panels, which become shorter
// toward the end so that all threads finish together.
void decode(const Job& job) {
  const FloatWeight& w = job.weight;
  const int64_t padded_n = w.panels * kPanel;
  const int64_t x_bytes = job.rows * w.padded_k * 4;
  const Workspace workspace(static_cast<size_t>(x_bytes + w.padded_k * 2 + 64) +
                            static_cast<size_t>(job.rows * padded_n) * 4);
  float* const y = reinterpret_cast<float*>(workspace.data());
  float* const x = y + job.rows * padded_n;
  for (int64_t r = 0; r < job.rows; ++r) {
    job.load_row(r, x + r * w.padded_k, x + job.rows * w.padded_k);
  }
  const auto run = job.kernels.decode[table_index(w.dtype)];
  const auto store = job.gemm.store[static_cast<size_t>(job.dtype)];
  const auto range = [&](int64_t first, int64_t last) {
    DecodeArgs args{};
    args.weight = w.panel(first);
    args.panel_bytes = w.panel_bytes;
    args.panels = last - first;
    args.k = w.padded_k;
    args.x = x;
    args.x_stride = w.padded_k;
    args.cols = job.rows;
    args.y = y + first * kPanel;
    args.y_stride = padded_n;
    args.prefetch_bytes = prefetch_bytes(kPrefetchFloats);
    run(args);
    const int64_t col = first * kPanel;
    const int64_t cols = std::min(last * kPanel, w.n) - col;
    for (int64_t r = 0; r < job.rows; ++r) {
      store(y + r * padded_n + col,
            job.out + (job.out_rows.at(r) + col * job.out_stride) * job.elem_bytes(),
            job.out_stride, cols);
    }
  };
  ThreadPool& pool = ThreadPool::global();
  // Reading 64 KiB takes two microseconds, about as long as starting a region.
  const int64_t most = w.panels * w.panel_bytes / (64 << 10);
  const int parts = static_cast<int>(std::clamp<int64_t>(most, 1, pool.threads()));
  if (parts == 1) return range(0, w.panels);
  std::atomic<int64_t> next{0};
  pool.run(parts, [&](int) {
    int64_t first = next.load(std::memory_order_relaxed);
    for (;;) {
      if (first >= w.panels) return;
      const int64_t left = w.panels - first;
      int64_t piece = left / (2 * parts);
      piece = std::min(left, piece >= 4 ? piece / 4 * 4 : 2);
      if (!next.compare_exchange_weak(first, first + piece, std::memory_order_relaxed)) continue;
      range(first, first + piece);
      first = next.load(std::memory_order_relaxed);
    }
  });
}

/// Packed weights as the right operand of gemm.
class WeightColumns final : public GemmColumns {
 public:
  WeightColumns(const Job& job, bool pairs) : job_(job), pairs_(pairs) {}

  Block block(int64_t col, int64_t cols, int64_t k0, int64_t k, void* scratch) const override {
    const FloatWeight& w = job_.weight;
    const char* from = w.panel(col / kPanel);
    if (w.dtype == DType::f32 || pairs_) {  // both have 64 bytes per step of k
      return {from + k0 * 64, w.panel_bytes / 4};
    }
    const int64_t panels = (cols + kPanel - 1) / kPanel;
    const int64_t even_k = w.dtype == DType::bf16 ? (k + 1) / 2 * 2 : k;
    float* to = static_cast<float*>(scratch);
    const int64_t stride = (even_k + 1) * kPanel;
    from += k0 * kPanel * 2;
    for (int64_t p = 0; p < panels; ++p, from += w.panel_bytes, to += stride) {
      if (w.dtype == DType::f16) {
        job_.gemm.load[static_cast<size_t>(DType::f16)](from, 1, k * kPanel, to);
      } else {
        job_.kernels.unpack_bf16(from, even_k, to);
      }
    }
    return {scratch, stride};
  }

 private:
  const Job& job_;
  bool pairs_;
};

/// Whether linear with many rows adds pairs of k, which it doesn't for one row.
bool has_pairs(const GemmKernels& gemm, DType dtype) {
  return dtype == DType::bf16 && bf16_compute(gemm) != Compute::f32;
}

// Many rows of x: gemm with packed weights as its right operand.
void prompt(const Job& job, bool pairs) {
  const FloatWeight& w = job.weight;
  const int threads = ThreadPool::global().threads();
  const GemmResult out{job.out, job.dtype, job.out_rows.stride, job.out_stride,
                       job.out_rows.table()};
  GemmRows rows{job.x, job.dtype, job.x_rows.stride, job.x_stride, job.x_rows.table()};
  if (w.dtype != DType::bf16) {
    const GemmPlan plan = plan_gemm(job.gemm, Compute::f32, job.rows, w.n, w.k, out, threads);
    const Workspace workspace(plan.workspace_bytes());
    run_gemm(job.gemm, plan, rows, WeightColumns(job, false), out, workspace.data());
    return;
  }
  const int64_t k = pairs ? w.padded_k / 2 : w.padded_k;
  const GemmPlan plan = plan_gemm(job.gemm, pairs ? bf16_compute(job.gemm) : Compute::f32, job.rows,
                                  w.n, k, out, threads);
  // Memory for x rounded to bf16, and for a row of f32 of each thread.
  const size_t plan_bytes = align64(plan.workspace_bytes());
  const auto row_bytes = static_cast<size_t>(w.padded_k) * 2;
  const size_t x_bytes = align64(static_cast<size_t>(job.rows) * row_bytes);
  const int parts = plan.parts;
  const Workspace workspace(plan_bytes + x_bytes + static_cast<size_t>(parts) * row_bytes * 2);
  char* const x = workspace.data() + plan_bytes;
  std::atomic<int64_t> next{0};
  constexpr int64_t kRowsAtOnce = 16;
  ThreadPool::global().run(parts, [&](int part) {
    auto* wide = reinterpret_cast<float*>(x + x_bytes + static_cast<size_t>(part) * row_bytes * 2);
    for (;;) {
      const int64_t first = next.fetch_add(kRowsAtOnce, std::memory_order_relaxed);
      if (first >= job.rows) return;
      const int64_t last = std::min(first + kRowsAtOnce, job.rows);
      for (int64_t row = first; row < last; ++row) {
        job.gemm.load[static_cast<size_t>(job.dtype)](job.x_row(row), job.x_stride, w.k, wide);
        for (int64_t p = w.k; p < w.padded_k; ++p) wide[p] = 0;
        job.gemm.store[static_cast<size_t>(DType::bf16)](
            wide, x + row * static_cast<int64_t>(row_bytes), 1, w.padded_k);
      }
    }
  });
  rows = {x, pairs ? DType::u32 : DType::bf16, k, 1, nullptr};
  run_gemm(job.gemm, plan, rows, WeightColumns(job, pairs), out, workspace.data());
}

}  // namespace

std::unique_ptr<PreparedWeight> prepare_float(Isa isa, std::span<const ConstView> parts,
                                              bool release) {
  const DType dtype = parts.front().dtype;
  const StackedRows rows(parts);
  auto weight = std::make_unique<FloatWeight>();
  weight->dtype = dtype;
  weight->n = rows.count();
  weight->k = parts.front().layout.shape()[1];
  weight->padded_k = dtype == DType::bf16 ? (weight->k + 1) / 2 * 2 : weight->k;
  weight->panels = (weight->n + kPanel - 1) / kPanel;
  weight->panel_bytes = weight->padded_k * kPanel * info(dtype).block_bytes;
  weight->bytes = static_cast<size_t>(weight->panels * weight->panel_bytes);
  weight->memory = WeightMemory(weight->bytes);
  if (has_pairs(gemm_kernels(isa), dtype)) weight->rows_alike = most_decode_columns(dtype);
  if (weight->bytes == 0) return weight;

  const auto pack = float_weight_kernels(isa).pack[table_index(dtype)];
  pack_panels(rows, kPanel, weight->panel_bytes, release, [&](int64_t panel) {
    StackedRows::Row read[kPanel];
    rows.read(panel * kPanel, read);
    PackPanelArgs args{};
    for (int64_t i = 0; i < kPanel; ++i) {
      args.rows[i] = read[i].data;
      args.k_stride[i] = read[i].k_stride;
    }
    args.k = weight->k;
    args.panel = const_cast<char*>(weight->panel(panel));
    pack(args);
  });
  return weight;
}

void linear_float(Isa isa, const View& out, const ConstView& x, const PreparedWeight& weight,
                  int64_t each) {
  const auto& w = static_cast<const FloatWeight&>(weight);
  if (out.layout.elems() == 0) return;
  const int last = out.layout.rank() - 1;
  const int64_t rows = out.layout.elems() / w.n;
  const int64_t bytes = info(x.dtype).block_bytes;
  const Job job{gemm_kernels(isa),
                float_weight_kernels(isa),
                w,
                static_cast<const char*>(x.data) + x.layout.offset() * bytes,
                static_cast<char*>(out.data) + out.layout.offset() * bytes,
                x.dtype,
                rows,
                RowStarts(x.layout),
                RowStarts(out.layout),
                x.layout.stride(last),
                out.layout.stride(last)};
  if (rows <= most_decode_columns(w.dtype) || w.k == 0) {
    decode(job);
  } else {
    const int64_t in_order = each > 0 ? each : rows;  // rows that choose the order
    prompt(job, has_pairs(job.gemm, w.dtype) && in_order > w.rows_alike);
  }
}

}  // namespace wick::cpu
