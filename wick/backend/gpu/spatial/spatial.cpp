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

}  // namespace wick::gpu
