#include "wick/backend/gpu/on_host.h"

namespace wick::gpu {

void GpuBackend::pool2d(Op op, const View& out, const ConstView& in, const PoolParams& params) {
  OnHost host(*this);
  host.cpu().pool2d(op, host.out(out), host.in(in), params);
  host.finish();
}

void GpuBackend::pool2d_grad(Op op, const View& grad_in, const ConstView& grad_out,
                             const ConstView& in, const PoolParams& params) {
  OnHost host(*this);
  host.cpu().pool2d_grad(op, host.out(grad_in), host.in(grad_out), host.in(in), params);
  host.finish();
}

void GpuBackend::resample(Op op, const View& out, const ConstView& in,
                          const ResampleParams& params) {
  OnHost host(*this);
  host.cpu().resample(op, host.out(out), host.in(in), params);
  host.finish();
}

void GpuBackend::resample_grad(Op op, const View& grad_in, const ConstView& grad_out,
                               const ResampleParams& params) {
  OnHost host(*this);
  host.cpu().resample_grad(op, host.out(grad_in), host.in(grad_out), params);
  host.finish();
}

}  // namespace wick::gpu
