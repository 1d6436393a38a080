#include <algorithm>
#include <atomic>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/fused_kernels.h"
#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/loops.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"

namespace wick::cpu {
namespace {

// Below so many elements a second thread costs more than it saves.
constexpr int64_t kElemsPerThread = 32768;

const FusedKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, fused_kernels, no_dots);
}

const char* at(const void* data, DType dtype, int64_t elem) {
  return static_cast<const char*>(data) + bytes_of(dtype, elem);
}
char* at(void* data, DType dtype, int64_t elem) {
  return static_cast<char*>(data) + bytes_of(dtype, elem);
}

/// Whether an output is large enough for non-temporal stores, and all of its rows start at a cache
/// line: these kernels store whole cache lines from a row's first element on.
bool should_stream(const View& out) {
  const Layout& y = out.layout;
  if (bytes_of(out.dtype, y.elems()) < stream_threshold_bytes()) return false;
  auto places = reinterpret_cast<uintptr_t>(at(out.data, out.dtype, y.offset()));
  for (int d = 0; d + 1 < y.rank(); ++d) {
    if (y.shape()[d] > 1) places |= static_cast<uintptr_t>(bytes_of(out.dtype, y.stride(d)));
  }
  return places % 64 == 0;
}

/// Calls body(offsets, strides, count) for runs of rows along `axis`, on all threads. Offsets and
/// strides are those of out, then of in.
template <class F>
void for_each_row(const Layout& out, const Layout& in, int axis, int64_t n, F&& body) {
  const CollapsedDims<2> rows({&out, &in}, ~(1u << axis));
  parallel_for(rows.elems, kElemsPerThread / std::max<int64_t>(n, 1),
               [&](int64_t begin, int64_t end) { rows.runs(begin, end, body); });
}

/// A dim other than `axis` along which both operands are dense, or -1. Few columns, and columns so
/// long that a strip of them exceeds a cache, are processed one after another.
int columns_dim(const Layout& out, const Layout& in, int axis) {
  constexpr int64_t kFew = 4, kMost = 65536;
  if (out.stride(axis) == 1 && in.stride(axis) == 1) return -1;
  if (in.shape()[axis] < 2 || in.shape()[axis] > kMost) return -1;
  for (int d = in.rank() - 1; d >= 0; --d) {
    if (d != axis && in.shape()[d] >= kFew && out.stride(d) == 1 && in.stride(d) == 1) return d;
  }
  return -1;
}

/// softmax along `axis` of strips of neighbours along `columns`.
void softmax_of_columns(Isa isa, const View& out, const ConstView& in, int axis, int columns,
                        bool log) {
  const Layout &x = in.layout, &y = out.layout;
  const auto kernel =
      WICK_SELECT_KERNELS(isa, softmax_columns_kernels, no_dots).run[static_cast<size_t>(in.dtype)];
  const int64_t n = x.shape()[axis], all = x.shape()[columns];
  const int64_t width = kSoftmaxColumnBytes / (in.dtype == DType::f64 ? 8 : 4);
  const CollapsedDims<2> rest({&y, &x}, ~(1u << axis | 1u << columns));
  const int64_t strips = (all + width - 1) / width, tasks = rest.elems * strips;
  const int parts = static_cast<int>(std::clamp<int64_t>(
      x.elems() / kElemsPerThread, 1, std::min<int64_t>(tasks, ThreadPool::global().threads())));
  const auto scratch_bytes = static_cast<size_t>(n * kSoftmaxColumnBytes);
  const Workspace workspace(scratch_bytes * static_cast<size_t>(parts));
  std::atomic<int64_t> next{0};
  ThreadPool::global().run(parts, [&](int part) {
    char* scratch = workspace.data() + scratch_bytes * static_cast<size_t>(part);
    for (;;) {
      const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      const int64_t first = task % strips * width;
      const auto offsets = rest.at(task / strips);
      kernel({at(in.data, in.dtype, offsets[1] + first), 0, x.stride(axis)},
             {at(out.data, out.dtype, offsets[0] + first), 0, y.stride(axis), false},
             std::min(width, all - first), n, log, scratch);
    }
  });
}

}  // namespace

void CpuBackend::softmax(const View& out, const ConstView& in, int dim, bool log) {
  const Layout &x = in.layout, &y = out.layout;
  if (x.elems() == 0) return;
  if (const int columns = columns_dim(y, x, dim); columns >= 0) {
    return softmax_of_columns(isa_, out, in, dim, columns, log);
  }
  const auto kernel = kernels(isa_).softmax[static_cast<size_t>(in.dtype)];
  const int64_t n = x.shape()[dim];
  const int64_t x_step = n == 1 ? 1 : x.stride(dim), y_step = n == 1 ? 1 : y.stride(dim);
  for_each_row(y, x, dim, n, [&](const auto& offsets, const auto& strides, int64_t count) {
    kernel({at(in.data, in.dtype, offsets[1]), strides[1], x_step},
           {at(out.data, out.dtype, offsets[0]), strides[0], y_step, false}, count, n, log);
  });
}

void CpuBackend::rms_norm(const View& out, const ConstView& in, const ConstView& weight,
                          float eps) {
  const Layout &x = in.layout, &y = out.layout;
  if (x.elems() == 0) return;
  const FusedKernels& table = kernels(isa_);
  const auto kernel =
      (weight.dtype == in.dtype ? table.rms_norm
                                : table.rms_norm_f32_weight)[static_cast<size_t>(in.dtype)];
  const int dim = x.rank() - 1;
  const int64_t n = x.shape()[dim];
  const int64_t x_step = n == 1 ? 1 : x.stride(dim), y_step = n == 1 ? 1 : y.stride(dim);
  const RowsIn w{at(weight.data, weight.dtype, weight.layout.offset()), 0,
                 n == 1 ? 1 : weight.layout.stride(0)};
  const bool stream = should_stream(out);
  for_each_row(y, x, dim, n, [&](const auto& offsets, const auto& strides, int64_t count) {
    kernel({at(in.data, in.dtype, offsets[1]), strides[1], x_step}, w,
           {at(out.data, out.dtype, offsets[0]), strides[0], y_step, stream}, count, n, eps);
    if (stream) stream_fence();
  });
}

void CpuBackend::layer_norm(const View& out, const ConstView& in, const ConstView& weight,
                            const ConstView& bias, float eps) {
  const Layout &x = in.layout, &y = out.layout;
  if (x.elems() == 0) return;
  const auto kernel = WICK_SELECT_KERNELS(isa_, layer_norm_kernels, no_dots)
                          .layer_norm[static_cast<size_t>(in.dtype)];
  const int dim = x.rank() - 1;
  const int64_t n = x.shape()[dim];
  const int64_t x_step = n == 1 ? 1 : x.stride(dim), y_step = n == 1 ? 1 : y.stride(dim);
  const DType compute = in.dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto widened = [&](const ConstView& v) {
    std::vector<double> wide;  // of either compute type
    if (v.data == nullptr) return wide;
    wide.resize(static_cast<size_t>(n));
    const View to{wide.data(), compute, Layout::contiguous(Shape{n})};
    v.dtype == compute ? copy(to, v) : cast(to, v);
    return wide;
  };
  const std::vector<double> w = widened(weight), b = widened(bias);
  for_each_row(y, x, dim, n, [&](const auto& offsets, const auto& strides, int64_t count) {
    kernel({at(in.data, in.dtype, offsets[1]), strides[1], x_step}, w.empty() ? nullptr : w.data(),
           b.empty() ? nullptr : b.data(),
           {at(out.data, out.dtype, offsets[0]), strides[0], y_step, false}, count, n, eps);
  });
}

void CpuBackend::rope(const View& out, const ConstView& in, const ConstView& cos,
                      const ConstView& sin, bool interleaved) {
  const Layout &x = in.layout, &y = out.layout;
  if (x.elems() == 0) return;
  const auto kernel = kernels(isa_).rope[static_cast<size_t>(in.dtype)];
  const int rank = x.rank();
  const int64_t d = x.shape()[rank - 1], half = cos.layout.shape().back();
  CollapsedDims<4> all({y.offset(), x.offset(), cos.layout.offset(), sin.layout.offset()});
  for (int i = 0; i + 1 < rank; ++i) {
    all.add(x.shape()[i], {y.stride(i), x.stride(i), stride_along(cos.layout, i, rank),
                           stride_along(sin.layout, i, rank)});
  }
  const bool stream = should_stream(out) && bytes_of(out.dtype, half) % 64 == 0;
  parallel_for(all.elems, kElemsPerThread / d, [&](int64_t begin, int64_t end) {
    all.runs(begin, end, [&](const auto& offset, const auto& stride, int64_t count) {
      const RopeRows rows{
          .x = {at(in.data, in.dtype, offset[1]), stride[1], x.stride(rank - 1)},
          .cos = {at(cos.data, cos.dtype, offset[2]), stride[2],
                  stride_along(cos.layout, rank - 1, rank)},
          .sin = {at(sin.data, sin.dtype, offset[3]), stride[3],
                  stride_along(sin.layout, rank - 1, rank)},
          .y = {at(out.data, out.dtype, offset[0]), stride[0], y.stride(rank - 1), stream},
          .count = count,
          .d = d,
          .half = half};
      kernel(rows, interleaved);
    });
    if (stream) stream_fence();
  });
}

}  // namespace wick::cpu
