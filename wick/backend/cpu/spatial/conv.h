#pragma once

#include <atomic>
#include <cstdint>

#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/spatial/conv_kernels.h"
#include "wick/backend/cpu/spatial/patches.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/view.h"

namespace wick::cpu {

/// Weights as rows of terms: the weight of row r and term (channel, ty, tx) lies at r · row_stride
/// + channel · channel_stride + ty · tap_stride[0] + tx · tap_stride[1]; groups are group_stride
/// apart.
struct Filters {
  const char* data = nullptr;
  int64_t group_stride = 0, row_stride = 0, channel_stride = 0;
  std::array<int64_t, 2> tap_stride{};
};

/// The destination of outputs: [row, batch, y, x] of each group.
struct PixelTarget {
  char* data = nullptr;
  DType dtype = DType::f32;
  int64_t group_stride = 0, row_stride = 0, batch_stride = 0;
  std::array<int64_t, 2> stride{};
};

/// out[g][r][pixel] = Σ over terms, in order, of filter[g][r][term] · in[g][term at pixel].
struct Correlation {
  PatchShape shape;
  const char* in = nullptr;
  int64_t in_group_stride = 0;
  int64_t groups = 1, rows = 0;
  Filters filters;
  PixelTarget out;
};
void correlate(Isa isa, const Correlation& job);

/// The gradient of filters: that of filter[g][r][term] = Σ over pixels, in order, of
/// grad[g][r][pixel] · in[g][term at pixel].
struct FilterGradient {
  PatchShape shape;
  const char* in = nullptr;
  int64_t in_group_stride = 0;
  int64_t groups = 1, rows = 0;
  const char* grad = nullptr;  ///< of shape.dtype
  PixelTarget grad_at;         ///< the strides of grad
  Filters out;                 ///< the strides of the result; data isn't used
  char* out_data = nullptr;
};
void correlate_filters(Isa isa, const FilterGradient& job);

/// The number of threads for so many multiply-adds.
inline int threads_for(double products) {
  const int threads = ThreadPool::global().threads();
  return static_cast<int>(std::clamp(products / 65536, 1.0, double(threads)));
}

/// Calls run(task, scratch) for every task, each thread with its own scratch.
template <class F>
void share_tasks(int64_t tasks, int parts, size_t scratch_bytes, const F& run) {
  parts = static_cast<int>(std::min<int64_t>(parts, tasks));
  const size_t each = align64(scratch_bytes);
  const Workspace workspace(each * static_cast<size_t>(parts));
  std::atomic<int64_t> next{0};
  const auto body = [&](int part) {
    char* const scratch = workspace.data() + each * static_cast<size_t>(part);
    for (;;) {
      const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      run(task, scratch);
    }
  };
  if (parts == 1) return body(0);
  ThreadPool::global().run(parts, body);
}

}  // namespace wick::cpu
