#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/loops.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/backend/cpu/spatial/conv.h"
#include "wick/backend/cpu/spatial/resample_kernels.h"

namespace wick::cpu {
namespace {

const ResampleKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, resample_kernels, no_dots);
}

/// The inputs at or between which the outputs of an axis lie, computed in double.
struct Axis {
  std::vector<int64_t> low, high;
  std::vector<double> part;

  Axis(Op op, int64_t outputs, int64_t inputs, double scale, bool align_corners) {
    const auto last = static_cast<double>(inputs - 1);
    for (int64_t i = 0; i < outputs; ++i) {
      const auto at = static_cast<double>(i);
      if (op == Op::upsample_nearest2d) {
        low.push_back(static_cast<int64_t>(std::min(std::floor(at * scale), last)));
        high.push_back(low.back());
        part.push_back(0);
        continue;
      }
      const double place = align_corners ? at * scale : std::max(0.0, (at + 0.5) * scale - 0.5);
      const double floor = std::min(std::floor(place), last);
      low.push_back(static_cast<int64_t>(floor));
      high.push_back(std::min(low.back() + 1, inputs - 1));
      part.push_back(std::min(place - floor, 1.0));
    }
  }
  LinearAxis view() const { return {low.data(), high.data(), part.data()}; }
  /// n if output i takes input i / n for all i, else 0.
  int64_t repeat() const {
    int64_t n = 1;
    while (n < static_cast<int64_t>(low.size()) && low[static_cast<size_t>(n)] == 0) ++n;
    for (size_t i = 0; i < low.size(); ++i) {
      if (low[i] != static_cast<int64_t>(i) / n) return 0;
    }
    return n;
  }
};

// The fewest elements of a thread for which waking it pays.
constexpr double kElemsPerThread = 32768;
constexpr int64_t kTaskElems = 65536;

int threads_for_elems(double elems) {
  const int threads = ThreadPool::global().threads();
  return static_cast<int>(std::clamp(elems / kElemsPerThread, 1.0, double(threads)));
}

/// How planes are cut into tasks of some rows.
struct Planes {
  int64_t channels, count, rows, pieces;
  explicit Planes(const Shape& out)
      : channels(out[1]),
        count(out[0] * out[1]),
        rows(std::clamp<int64_t>(kTaskElems / out[3], 1, out[2])),
        pieces((out[2] + rows - 1) / rows) {}
  int64_t tasks() const { return count * pieces; }
  int64_t first(int64_t task) const { return task % pieces * rows; }
  /// The byte offset of a task's plane.
  int64_t start(const Layout& layout, DType dtype, int64_t task) const {
    const int64_t plane = task / pieces;
    return (layout.offset() + plane / channels * layout.stride(0) +
            plane % channels * layout.stride(1)) *
           info(dtype).block_bytes;
  }
};

void nearest(const ResampleKernels& table, const View& out, const ConstView& in, const Axis& y,
             const Axis& x) {
  const Layout &to = out.layout, &from = in.layout;
  const int64_t size = info(in.dtype).block_bytes;
  const auto bytes = static_cast<size_t>(size);
  const auto pick = table.pick[log2_bytes(size)];
  const int64_t width = from.shape()[3], n = to.shape()[3], repeat = x.repeat();
  const bool dense_in = from.stride(3) == 1, dense_out = to.stride(3) == 1;
  const Planes planes(to.shape());
  share_tasks(planes.tasks(), threads_for_elems(static_cast<double>(to.elems())),
              static_cast<size_t>(width + n) * bytes, [&](int64_t task, char* scratch) {
                const char* const source =
                    static_cast<const char*>(in.data) + planes.start(from, in.dtype, task);
                char* const target =
                    static_cast<char*>(out.data) + planes.start(to, out.dtype, task);
                char* const own = scratch + static_cast<size_t>(width) * bytes;
                const char* line = nullptr;
                const int64_t first = planes.first(task);
                const int64_t last = std::min(to.shape()[2], first + planes.rows);
                for (int64_t row = first; row < last; ++row) {
                  const int64_t at = y.low[static_cast<size_t>(row)];
                  char* const here = target + row * to.stride(2) * size;
                  char* const result = dense_out ? here : own;
                  const bool again = row > first && at == y.low[static_cast<size_t>(row - 1)];
                  if (again && dense_out) {
                    std::memcpy(result, line, static_cast<size_t>(n) * bytes);
                  } else if (!again) {
                    const char* read = source + at * from.stride(2) * size;
                    if (!dense_in) {
                      gather(scratch, read, from.stride(3) * size, width, size);
                      read = scratch;
                    }
                    pick(read, x.low.data(), repeat, n, result);
                    line = result;
                  }
                  if (!dense_out) scatter(here, to.stride(3) * size, own, n, size);
                }
              });
}

void bilinear(const ResampleKernels& table, const View& out, const ConstView& in, const Axis& y,
              const Axis& x) {
  const Layout &to = out.layout, &from = in.layout;
  const auto kernel = table.bilinear[static_cast<size_t>(in.dtype)];
  BilinearArgs shared{};
  shared.in_width = from.shape()[3];
  shared.out_width = to.shape()[3];
  shared.y = y.view();
  shared.x = x.view();
  for (int i = 0; i < 2; ++i) {
    shared.in_stride[i] = from.stride(2 + i);
    shared.out_stride[i] = to.stride(2 + i);
  }
  const Planes planes(to.shape());
  share_tasks(planes.tasks(), threads_for_elems(static_cast<double>(to.elems())),
              static_cast<size_t>(shared.in_width + 5 * shared.out_width) * sizeof(double),
              [&](int64_t task, char* scratch) {
                BilinearArgs args = shared;
                args.in = static_cast<const char*>(in.data) + planes.start(from, in.dtype, task);
                args.out = static_cast<char*>(out.data) + planes.start(to, out.dtype, task);
                args.first = planes.first(task);
                args.last = std::min(to.shape()[2], args.first + planes.rows);
                args.scratch = scratch;
                kernel(args);
              });
}

}  // namespace

void CpuBackend::resample(Op op, const View& out, const ConstView& in,
                          const ResampleParams& params) {
  const Shape &to = out.layout.shape(), &from = in.layout.shape();
  if (to.elems() == 0) return;
  const Axis y(op, to[2], from[2], params.scale[0], params.align_corners);
  const Axis x(op, to[3], from[3], params.scale[1], params.align_corners);
  if (op == Op::upsample_nearest2d) return nearest(kernels(isa_), out, in, y, x);
  bilinear(kernels(isa_), out, in, y, x);
}

void CpuBackend::resample_grad(Op op, const View& grad_in, const ConstView& grad_out,
                               const ResampleParams& params) {
  const Shape &to = grad_in.layout.shape(), &from = grad_out.layout.shape();
  if (to.elems() == 0) return;
  const Axis y(op, from[2], to[2], params.scale[0], params.align_corners);
  const Axis x(op, from[3], to[3], params.scale[1], params.align_corners);
  const ResampleKernels& table = kernels(isa_);
  const auto dtype = static_cast<size_t>(grad_in.dtype);
  const auto kernel =
      op == Op::upsample_nearest2d ? table.nearest_grad[dtype] : table.bilinear_grad[dtype];
  const Layout &gl = grad_out.layout, &il = grad_in.layout;
  ResampleGradArgs shared{};
  shared.y = y.view();
  shared.x = x.view();
  for (int i = 0; i < 2; ++i) {
    shared.out_size[i] = from[2 + i];
    shared.in_size[i] = to[2 + i];
    shared.grad_out_stride[i] = gl.stride(2 + i);
    shared.grad_in_stride[i] = il.stride(2 + i);
  }
  const int64_t channels = to[1];
  share_tasks(
      to[0] * channels, threads_for_elems(static_cast<double>(to.elems())),
      static_cast<size_t>(to[2] * to[3]) * sizeof(double), [&](int64_t plane, char* scratch) {
        const auto start = [&](const Layout& l) {
          return (l.offset() + plane / channels * l.stride(0) + plane % channels * l.stride(1)) *
                 info(grad_in.dtype).block_bytes;
        };
        ResampleGradArgs args = shared;
        args.grad_out = static_cast<const char*>(grad_out.data) + start(gl);
        args.grad_in = static_cast<char*>(grad_in.data) + start(il);
        args.scratch = scratch;
        kernel(args);
      });
}

}  // namespace wick::cpu
