#include <algorithm>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/workspace.h"
#include "wick/backend/cpu/spatial/conv.h"
#include "wick/backend/cpu/spatial/pool_kernels.h"

namespace wick::cpu {
namespace {

const PoolKernels& kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, pool_kernels, no_dots);
}

/// The byte offset of channel c of image b.
int64_t plane_bytes(const Layout& layout, DType dtype, int64_t b, int64_t c) {
  return (layout.offset() + b * layout.stride(0) + c * layout.stride(1)) * info(dtype).block_bytes;
}

// The fewest elements of a thread for which waking it pays.
constexpr double kElemsPerThread = 32768;
constexpr int64_t kTaskElems = 65536;

int threads_for_elems(double elems) {
  const int threads = ThreadPool::global().threads();
  return static_cast<int>(std::clamp(elems / kElemsPerThread, 1.0, double(threads)));
}

template <class Args>
void set_windows(Args& args, const PoolParams& params) {
  for (size_t i = 0; i < 2; ++i) {
    args.kernel[i] = params.kernel[i];
    args.stride[i] = params.stride[i];
    args.padding[i] = params.padding[i];
  }
  args.count_include_pad = params.count_include_pad;
}

}  // namespace

void CpuBackend::pool2d(Op op, const View& out, const ConstView& in, const PoolParams& params) {
  const Layout &x = in.layout, &y = out.layout;
  if (y.elems() == 0) return;
  const auto dtype = static_cast<size_t>(in.dtype);
  const PoolKernels::Rows kernel =
      op == Op::max_pool2d ? kernels(isa_).max[dtype] : kernels(isa_).avg[dtype];
  const int64_t channels = y.shape()[1], height = y.shape()[2];
  const int64_t planes = y.shape()[0] * channels, width = x.shape()[3];
  const int64_t row_elems = width * params.kernel[0];
  const int64_t rows = std::clamp<int64_t>(kTaskElems / std::max<int64_t>(row_elems, 1), 1, height);
  const int64_t pieces = (height + rows - 1) / rows;
  PoolArgs shared{};
  set_windows(shared, params);
  for (size_t i = 0; i < 2; ++i) {
    const int d = 2 + static_cast<int>(i);
    shared.in_size[i] = x.shape()[d];
    shared.in_stride[i] = x.stride(d);
    shared.out_stride[i] = y.stride(d);
  }
  shared.out_width = y.shape()[3];
  const int threads =
      threads_for_elems(static_cast<double>(planes * height) * static_cast<double>(row_elems));
  share_tasks(planes * pieces, threads,
              static_cast<size_t>(kPoolElemBytes * (width + shared.out_width)),
              [&](int64_t task, char* scratch) {
                const int64_t plane = task / pieces, b = plane / channels, c = plane % channels;
                PoolArgs args = shared;
                args.in = static_cast<const char*>(in.data) + plane_bytes(x, in.dtype, b, c);
                args.out = static_cast<char*>(out.data) + plane_bytes(y, out.dtype, b, c);
                args.first = task % pieces * rows;
                args.last = std::min(height, args.first + rows);
                args.scratch = scratch;
                kernel(args);
              });
}

void CpuBackend::pool2d_grad(Op op, const View& grad_in, const ConstView& grad_out,
                             const ConstView& in, const PoolParams& params) {
  const Layout &x = grad_in.layout, &y = grad_out.layout;
  if (x.elems() == 0) return;
  const auto dtype = static_cast<size_t>(grad_in.dtype);
  const PoolKernels::Grad kernel =
      op == Op::max_pool2d ? kernels(isa_).max_grad[dtype] : kernels(isa_).avg_grad[dtype];
  const int64_t channels = x.shape()[1], planes = x.shape()[0] * channels;
  PoolGradArgs shared{};
  set_windows(shared, params);
  for (size_t i = 0; i < 2; ++i) {
    const int d = 2 + static_cast<int>(i);
    shared.in_size[i] = x.shape()[d];
    shared.in_stride[i] = in.layout.stride(d);
    shared.out_size[i] = y.shape()[d];
    shared.grad_out_stride[i] = y.stride(d);
    shared.grad_in_stride[i] = x.stride(d);
  }
  const int64_t plane_elems = x.shape()[2] * x.shape()[3];
  share_tasks(
      planes, threads_for_elems(static_cast<double>(x.elems())),
      static_cast<size_t>(plane_elems) * sizeof(double), [&](int64_t plane, char* scratch) {
        const int64_t b = plane / channels, c = plane % channels;
        PoolGradArgs args = shared;
        args.in = static_cast<const char*>(in.data) + plane_bytes(in.layout, in.dtype, b, c);
        args.grad_out =
            static_cast<const char*>(grad_out.data) + plane_bytes(y, grad_out.dtype, b, c);
        args.grad_in = static_cast<char*>(grad_in.data) + plane_bytes(x, grad_in.dtype, b, c);
        args.scratch = scratch;
        kernel(args);
      });
}

}  // namespace wick::cpu
