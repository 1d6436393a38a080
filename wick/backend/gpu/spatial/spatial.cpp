#include "wick/backend/gpu/on_host.h"

namespace wick::gpu {

void GpuBackend::conv2d(const View& out, const ConstView& x, const ConstView& w,
                        const ConvParams& params) {
  OnHost host(*this);
  host.cpu().conv2d(host.out(out), host.in(x), host.in(w), params);
  host.finish();
}

void GpuBackend::conv2d_input(const View& grad_x, const ConstView& grad_out, const ConstView& w,
                              const ConvParams& params) {
  OnHost host(*this);
  host.cpu().conv2d_input(host.out(grad_x), host.in(grad_out), host.in(w), params);
  host.finish();
}

void GpuBackend::conv2d_weight(const View& grad_w, const ConstView& x, const ConstView& grad_out,
                               const ConvParams& params) {
  OnHost host(*this);
  host.cpu().conv2d_weight(host.out(grad_w), host.in(x), host.in(grad_out), params);
  host.finish();
}

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
