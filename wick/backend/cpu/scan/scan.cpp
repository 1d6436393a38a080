#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/loops.h"
#include "wick/backend/cpu/scan/scan_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"

namespace wick::cpu {
namespace {

constexpr int64_t kElemsPerThread = 32768;

/// What all pieces of one scan share.
struct Plan {
  ScanKernels::Row row;
  ScanKernels::Combine combine;
  ScanKernels::Columns columns;
  ScanTotal identity;
  bool stream;
  const char* x;
  char* y;
  int64_t bytes, n, x_step, y_step;
  CollapsedDims<2> rows;  // where each row starts in x and y

  const char* x_at(int64_t elems) const { return x + elems * bytes; }
  char* y_at(int64_t elems) const { return y + elems * bytes; }
  int64_t chunks() const { return (n + kScanChunk - 1) / kScanChunk; }
  /// Scans one chunk of a row; without `write`, computes its total alone.
  void chunk(const std::array<int64_t, 2>& line, int64_t index, const ScanTotal& carry, bool write,
             ScanTotal* total) const {
    const int64_t start = index * kScanChunk, m = std::min(kScanChunk, n - start);
    const char* const from = x_at(line[0] + start * x_step);
    char* const to = write ? y_at(line[1] + start * y_step) : nullptr;
    row(from, x_step, m, carry, to, y_step, stream, total);
  }
};

/// Threads take whole rows.
void scan_rows(const Plan& plan) {
  parallel_for(plan.rows.elems, kElemsPerThread / plan.n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto line = plan.rows.at(i);
      ScanTotal carry = plan.identity, total{};
      for (int64_t c = 0; c < plan.chunks(); ++c) {
        plan.chunk(line, c, carry, true, &total);
        plan.combine(&carry, total);
      }
    }
    if (plan.stream) stream_fence();
  });
}

/// The total of what precedes a piece of a row, once another thread has computed it.
struct Before {
  ScanTotal carry{};
  std::atomic<bool> ready{false};

  void set(const ScanTotal& total) {
    carry = total;
    ready.store(true, std::memory_order_release);
  }
  ScanTotal wait() const {
    // The thread with the piece before runs, unless its core serves another process.
    for (int tries = 0; !ready.load(std::memory_order_acquire); ++tries) {
      tries > 1000 ? std::this_thread::yield() : relax();
    }
    return carry;
  }
};

/// Scans a few long rows: threads take pieces of them in order. A thread first computes a piece's
/// totals, which loads the piece into L2, and then scans it with the total of the pieces before it.
/// Memory is therefore read only once.
void scan_pieces(const Plan& plan) {
  constexpr int64_t kPieceBytes = int64_t{256} << 10;
  constexpr int64_t kMostChunks = kPieceBytes / kScanChunk;
  const int threads = ThreadPool::global().threads();
  const int64_t chunks = plan.chunks();
  const int64_t piece = std::clamp<int64_t>(chunks / (4 * threads), 1, kMostChunks / plan.bytes);
  const int64_t pieces = (chunks + piece - 1) / piece, all = plan.rows.elems * pieces;
  std::vector<Before> before(static_cast<size_t>(all));
  std::atomic<int64_t> next{0};
  // Nothing here may throw: other threads would wait forever.
  ThreadPool::global().run(static_cast<int>(std::min<int64_t>(threads, all)), [&](int) {
    std::array<ScanTotal, kMostChunks> totals;
    for (;;) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= all) break;
      const auto line = plan.rows.at(i / pieces);
      const int64_t first = i % pieces * piece, count = std::min(piece, chunks - first);
      for (int64_t c = 0; c < count; ++c) {
        plan.chunk(line, first + c, plan.identity, false, &totals[static_cast<size_t>(c)]);
      }
      ScanTotal carry = plan.identity;
      if (first > 0) carry = before[static_cast<size_t>(i)].wait();
      if (first + count < chunks) {
        ScanTotal after = carry;
        for (int64_t c = 0; c < count; ++c) plan.combine(&after, totals[static_cast<size_t>(c)]);
        before[static_cast<size_t>(i + 1)].set(after);
      }
      for (int64_t c = 0; c < count; ++c) {
        ScanTotal& total = totals[static_cast<size_t>(c)];
        plan.chunk(line, first + c, carry, true, &total);
        plan.combine(&carry, total);
      }
    }
    if (plan.stream) stream_fence();
  });
}

/// Neighbours in memory belong to different rows.
void scan_columns(const Plan& plan, int64_t width, int64_t y_next) {
  const int64_t across = (width + kScanColumns - 1) / kScanColumns;
  const int64_t elems = plan.n * std::min(width, kScanColumns);
  parallel_for(plan.rows.elems * across, kElemsPerThread / elems, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto line = plan.rows.at(i / across);
      const int64_t column = i % across * kScanColumns;
      plan.columns(plan.x_at(line[0] + column), plan.x_step, plan.n,
                   std::min(kScanColumns, width - column), plan.y_at(line[1] + column * y_next),
                   plan.y_step, y_next);
    }
  });
}

}  // namespace

void CpuBackend::scan(Op op, const View& out, const ConstView& in, int dim) {
  const Layout &x = in.layout, &y = out.layout;
  if (y.elems() == 0) return;
  const ScanKernels& table = op == Op::cumprod
                                 ? WICK_SELECT_KERNELS(isa_, product_scan_kernels, no_dots)
                                 : WICK_SELECT_KERNELS(isa_, scan_kernels, no_dots);
  const auto dtype = static_cast<size_t>(in.dtype);
  Plan plan;
  plan.row = table.row[dtype];
  plan.combine = table.combine[dtype];
  plan.columns = table.columns[dtype];
  plan.identity = table.identity[dtype];
  plan.x = static_cast<const char*>(in.data);
  plan.y = static_cast<char*>(out.data);
  plan.bytes = info(in.dtype).block_bytes;
  plan.n = x.shape()[dim];
  plan.x_step = x.stride(dim);
  plan.y_step = y.stride(dim);

  plan.stream = plan.y_step == 1 && y.elems() * plan.bytes >= stream_threshold_bytes();

  int columns = -1;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != dim && x.shape()[d] >= 8 && x.stride(d) == 1 && plan.n > 1) columns = d;
  }
  if (plan.x_step == 1) columns = -1;
  const uint32_t in_rows = 1u << dim | (columns < 0 ? 0u : 1u << columns);
  plan.rows = CollapsedDims<2>({&x, &y}, ~in_rows);
  const int threads = ThreadPool::global().threads();
  if (columns >= 0) {
    scan_columns(plan, x.shape()[columns], y.stride(columns));
  } else if (threads > 1 && plan.chunks() >= 4 && plan.rows.elems < 2 * threads) {
    scan_pieces(plan);
  } else {
    scan_rows(plan);
  }
}

}  // namespace wick::cpu
