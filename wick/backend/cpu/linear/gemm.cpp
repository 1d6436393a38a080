#include "wick/backend/cpu/linear/gemm.h"

#include <algorithm>
#include <atomic>

#include "wick/backend/cpu/amx.h"
#include "wick/backend/cpu/linear/amx_gemm_kernels.h"
#include "wick/backend/cpu/thread_pool.h"

// The blocking of gemm. All threads together pack a row block of A. Then each task takes a range of
// columns (and rows), packs B block by block of k into its own L2, and runs the tiles. A thread's B
// block has 256 columns × 384 k. B is read once for each row block, more often if rows are divided
// among tasks; A once, or once for each block of columns if k exceeds 8192.

namespace wick::cpu {
namespace {

// A B block of at most 384 KiB leaves room in a 1 MiB L2 for the panels of A and C.
constexpr int64_t kBlockK = 384;
constexpr int64_t kBlockColumnBytes = 1024;
// A's packed rows stay in L3 while all columns are multiplied.
constexpr int64_t kPackedRowsBytes = int64_t{8} << 20;
constexpr int64_t kSuperK = 8192;
// The memory of each thread for sums that need more of k before they are rounded into a narrower
// result.
constexpr int64_t kWaitingBytes = int64_t{2} << 20;
// The fewest multiply-adds of a thread for which waking it pays.
constexpr double kProductsPerThread = 64 * 1024;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// Steps from one panel to the next: with a power of two, the cache lines of all panels would share
/// a set of L1.
constexpr int64_t panel_lines(int64_t k) { return k + 1; }
/// The same for panels of A.
int64_t row_panel_lines(const GemmType& type, int64_t k) {
  return panel_lines(round_up(k, type.k_step));
}

constexpr size_t cache_lines(int64_t bytes) { return static_cast<size_t>(round_up(bytes, 64)); }

bool is_compute_type(DType dtype, Compute compute) {
  return info(dtype).block_bytes == elem_bytes(compute);
}

/// The first unit of task t out of `tasks`. Larger shares come first, so that threads that take
/// tasks in turn finish together.
int64_t cut(int64_t units, int64_t tasks, int64_t t) {
  return units / tasks * t + std::min(t, units % tasks);
}

/// Whether sums of bf16_dot are stored to dense bf16, for which there are instructions.
bool rounds_dots(Compute compute, const GemmResult& out) {
  return compute == Compute::bf16_dot && out.dtype == DType::bf16 && out.col_stride == 1;
}

/// Rounds C's rows into the result.
void store_rows(const GemmKernels& kernels, Compute compute, const GemmResult& out, const void* c,
                int64_t c_stride, int bytes, int64_t row0, int64_t rows, int64_t col0,
                int64_t cols) {
  if (out.sink != nullptr) return out.sink->store(row0, rows, col0, cols, c, c_stride);
  const auto store = rounds_dots(compute, out) ? kernels.store_dots
                                               : kernels.store[static_cast<size_t>(out.dtype)];
  const int64_t out_bytes = info(out.dtype).block_bytes;
  char* to = static_cast<char*>(out.data);
  const char* from = static_cast<const char*>(c);
  const auto start = [&](int64_t row) {
    return out.row_offsets != nullptr ? out.row_offsets[row] : row * out.row_stride;
  };
  for (int64_t r = 0; r < rows; ++r) {
    store(from + r * c_stride * bytes, to + (start(row0 + r) + col0 * out.col_stride) * out_bytes,
          out.col_stride, cols);
  }
}

/// Runs the columns [first, first + count).
void run_columns(const GemmKernels& kernels, const GemmPlan& plan, const GemmRows& a,
                 const GemmColumns& b, const GemmResult& out, void* workspace, int64_t first,
                 int64_t count) {
  const GemmType& type = kernels.type(plan.compute);
  const int bytes = elem_bytes(plan.compute);
  const int64_t a_bytes = info(a.dtype).block_bytes;
  const int64_t tile_cols = int64_t{type.tile_panels} * type.col_panel;
  const int64_t units = ceil_div(count, tile_cols);
  char* const a_panels = static_cast<char*>(workspace);
  char* const whole_c = a_panels + plan.a_bytes;
  char* const thread_scratch = whole_c + plan.whole_c_bytes;
  ThreadPool& pool = ThreadPool::global();
  const auto pack = plan.compute == Compute::bf16_tiles
                        ? kernels.pack_tile_words
                        : kernels.pack_rows[static_cast<size_t>(a.dtype)];

  for (int64_t row0 = 0; row0 < plan.m; row0 += plan.row_block) {
    const int64_t rows = std::min(plan.row_block, plan.m - row0);
    const int64_t panels = ceil_div(rows, type.tile_rows);
    for (int64_t super0 = 0; super0 < plan.k; super0 += plan.k_super) {
      const int64_t super = std::min(plan.k_super, plan.k - super0);
      const int64_t a_panel_stride = row_panel_lines(type, super) * type.row_panel;

      const auto pack_panels = [&](int64_t begin, int64_t end) {
        const int64_t r0 = begin * type.tile_rows;
        if (a.source != nullptr) {
          const int64_t packed = std::min(end * type.tile_rows, rows) - r0;
          return a.source->pack(row0 + r0, packed, super0, super,
                                a_panels + begin * a_panel_stride * bytes, a_panel_stride);
        }
        PackArgs args{};
        const int64_t row_at = a.row_offsets != nullptr ? 0 : (row0 + r0) * a.row_stride;
        args.data = static_cast<const char*>(a.data) + (row_at + super0 * a.k_stride) * a_bytes;
        args.row_offsets = a.row_offsets != nullptr ? a.row_offsets + row0 + r0 : nullptr;
        args.row_stride = a.row_stride;
        args.k_stride = a.k_stride;
        args.rows = std::min(end * type.tile_rows, rows) - r0;
        args.k = super;
        args.panels = a_panels + begin * a_panel_stride * bytes;
        args.panel_stride = a_panel_stride;
        pack(args);
      };
      // Below a few thousand elements a second thread costs more than it saves.
      if (plan.parts == 1 || rows * super < 16384) {
        pack_panels(0, panels);
      } else {
        const int64_t grain = std::max<int64_t>(1, 8192 / a_panel_stride);
        parallel_for(panels, grain, pack_panels);
      }

      const auto run_task = [&](int64_t task, char* scratch) {
        const int64_t ct = task / plan.row_tasks, rt = task % plan.row_tasks;
        const int64_t col_at = cut(units, plan.col_tasks, ct) * tile_cols, col0 = first + col_at;
        const int64_t cols =
            std::min(cut(units, plan.col_tasks, ct + 1) * tile_cols, count) - col_at;
        const int64_t panel0 = cut(panels, plan.row_tasks, rt);
        const int64_t r0 = panel0 * type.tile_rows;
        const int64_t task_rows =
            std::min(cut(panels, plan.row_tasks, rt + 1) * type.tile_rows, rows) - r0;
        if (task_rows <= 0 || cols <= 0) return;

        MultiplyArgs args{};
        args.rows = task_rows;
        args.cols = cols;
        args.a_panel_stride = a_panel_stride;
        if (plan.direct) {
          args.c = static_cast<char*>(out.data) + ((row0 + r0) * out.row_stride + col0) * bytes;
          args.c_row_stride = out.row_stride;
        } else if (plan.whole_c) {
          args.c = whole_c + (r0 * count + col_at) * bytes;
          args.c_row_stride = count;
        } else {
          args.c = scratch + plan.b_bytes;
          args.c_row_stride = round_up(cols, type.col_panel);
        }
        const auto set_block = [&](int64_t p) {
          args.k = std::min(plan.k_block, super - p);
          const GemmColumns::Block block = b.block(col0, cols, super0 + p, args.k, scratch);
          args.a = a_panels + (panel0 * a_panel_stride + p * type.row_panel) * bytes;
          args.b = block.panels;
          args.b_panel_stride = block.panel_stride;
          args.resume = super0 + p > 0;
        };
        if (!plan.direct && plan.k <= plan.k_block) {
          // One block of k finishes the elements: they are rounded while they are in L1.
          set_block(0);
          if (rounds_dots(plan.compute, out) && out.sink == nullptr && out.row_offsets == nullptr) {
            constexpr int64_t kOutBytes = 2;
            args.c =
                static_cast<char*>(out.data) + ((row0 + r0) * out.row_stride + col0) * kOutBytes;
            args.c_row_stride = out.row_stride;
            return type.multiply_to_bf16(args);
          }
          for (int64_t r = 0; r < task_rows; r += type.tile_rows) {
            args.rows = std::min<int64_t>(type.tile_rows, task_rows - r);
            type.multiply(args);
            store_rows(kernels, plan.compute, out, args.c, args.c_row_stride, bytes, row0 + r0 + r,
                       args.rows, col0, cols);
            args.a = static_cast<const char*>(args.a) + a_panel_stride * bytes;
          }
          return;
        }
        for (int64_t p = 0; p < super; p += plan.k_block) {
          set_block(p);
          type.multiply(args);
        }
        if (!plan.direct && super0 + super == plan.k) {
          store_rows(kernels, plan.compute, out, args.c, args.c_row_stride, bytes, row0 + r0,
                     task_rows, col0, cols);
        }
      };
      const int64_t tasks = plan.col_tasks * plan.row_tasks;
      if (plan.parts == 1) {
        for (int64_t task = 0; task < tasks; ++task) run_task(task, thread_scratch);
        continue;
      }
      std::atomic<int64_t> next{0};
      pool.run(plan.parts, [&](int part) {
        char* scratch = thread_scratch + static_cast<size_t>(part) * (plan.b_bytes + plan.c_bytes);
        for (;;) {
          const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
          if (task >= tasks) return;
          run_task(task, scratch);
        }
      });
    }
  }
}

#if defined(__x86_64__) && !defined(WICK_ONLY_ISA)
/// The kernels of v4 with bf16_tiles; null if there are none.
const GemmKernels* with_tiles() {
  static const bool permitted = has_amx_bf16() && request_amx();
  static const GemmKernels kernels = [] {
    GemmKernels all = v4::gemm_kernels;
    all.types[static_cast<size_t>(Compute::bf16_tiles)] = amx::amx_gemm.type;
    all.pack_tile_words = amx::amx_gemm.pack_words;
    all.pack_tile_rows = amx::amx_gemm.pack_elements;
    return all;
  }();
  return permitted ? &kernels : nullptr;
}
#endif

}  // namespace

const GemmKernels& gemm_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__) && !defined(WICK_ONLY_ISA)
  if (isa >= Isa::v4_vnni) {
    if (const GemmKernels* const tiles = with_tiles()) return *tiles;
  }
#endif
  return WICK_SELECT_KERNELS(isa, gemm_kernels, no_dots);
}

Compute bf16_compute(const GemmKernels& kernels) {
  if (kernels.type(Compute::bf16_tiles).multiply != nullptr) return Compute::bf16_tiles;
  const bool dots = kernels.type(Compute::bf16_dot).multiply != nullptr && has_avx512_bf16();
  return dots ? Compute::bf16_dot : Compute::f32;
}

GemmPlan plan_gemm(const GemmKernels& kernels, Compute compute, int64_t m, int64_t n, int64_t k,
                   const GemmResult& out, int threads) {
  const GemmType& type = kernels.type(compute);
  const int64_t bytes = elem_bytes(compute);
  GemmPlan plan{};
  plan.compute = compute;
  plan.m = m;
  plan.n = n;
  plan.k = k;
  const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  plan.parts = static_cast<int>(std::clamp(products / kProductsPerThread, 1.0, double(threads)));

  plan.direct = is_compute_type(out.dtype, compute) && (out.col_stride == 1 || n == 1) &&
                out.row_offsets == nullptr && out.sink == nullptr;
  plan.k_super = std::min(k, kSuperK);
  plan.whole_c = !plan.direct && k > plan.k_super;
  plan.k_block = ceil_div(plan.k_super, ceil_div(plan.k_super, kBlockK));
  plan.k_block = round_up(plan.k_block, std::max(4, type.k_step));

  const int64_t a_panel_bytes = row_panel_lines(type, plan.k_super) * type.row_panel * bytes;
  const int64_t fit = kPackedRowsBytes / a_panel_bytes;
  const int64_t row_panels = ceil_div(m, type.tile_rows);
  const int64_t blocks = ceil_div(row_panels, std::max<int64_t>(fit, 4));
  plan.row_block = ceil_div(row_panels, blocks) * type.tile_rows;

  const int64_t tile_cols = int64_t{type.tile_panels} * type.col_panel;
  plan.col_block = n;
  if (plan.whole_c) {
    const int64_t waiting = kWaitingBytes * plan.parts / (plan.row_block * tile_cols * bytes);
    plan.col_block = std::min(n, std::max<int64_t>(waiting, 1) * tile_cols);
  }
  const int64_t units = ceil_div(plan.col_block, tile_cols);
  const int64_t most = kBlockColumnBytes / (tile_cols * bytes);
  plan.col_tasks = ceil_div(units, most);
  const int64_t panels = plan.row_block / type.tile_rows;
  plan.row_tasks = 1;
  if (plan.parts > 1) {
    plan.col_tasks = std::min(units, round_up(plan.col_tasks, plan.parts));
    // Two or more tasks for each thread, or one equal share each.
    const bool even = plan.col_tasks % plan.parts == 0 && units % plan.col_tasks == 0;
    if (plan.col_tasks < 2 * plan.parts && !even) {
      plan.row_tasks = std::min(panels, ceil_div(2 * plan.parts, plan.col_tasks));
    }
  }
  plan.task_cols = ceil_div(units, plan.col_tasks) * tile_cols;
  const int64_t panel_c_bytes = type.tile_rows * plan.task_cols * bytes;
  const bool waits = !plan.direct && !plan.whole_c && k > plan.k_block;
  if (waits) {
    const int64_t fitting = std::max<int64_t>(kWaitingBytes / panel_c_bytes, 1);
    plan.row_tasks = std::max(plan.row_tasks, ceil_div(panels, fitting));
  }

  plan.a_bytes = cache_lines(plan.row_block / type.tile_rows * a_panel_bytes);
  plan.b_bytes = cache_lines(plan.task_cols * panel_lines(plan.k_block) * bytes);
  if (plan.whole_c) {
    plan.whole_c_bytes = cache_lines(plan.row_block * plan.col_block * bytes);
  } else if (!plan.direct) {
    plan.c_bytes = cache_lines((waits ? ceil_div(panels, plan.row_tasks) : 1) * panel_c_bytes);
  }
  return plan;
}

void run_gemm(const GemmKernels& kernels, const GemmPlan& plan, const GemmRows& a,
              const GemmColumns& b, const GemmResult& out, void* workspace) {
  for (int64_t first = 0; first < plan.n; first += plan.col_block) {
    run_columns(kernels, plan, a, b, out, workspace, first,
                std::min(plan.col_block, plan.n - first));
  }
}

}  // namespace wick::cpu
