// Sort, scan and random ops. They run on the host until they have kernels.

#include "wick/backend/gpu/on_host.h"

namespace wick::gpu {

void GpuBackend::sort(const View& values, const View& indices, const ConstView& in, int dim,
                      bool descending) {
  OnHost host(*this);
  host.cpu().sort(host.out(values), host.out(indices), host.in(in), dim, descending);
  host.finish();
}

void GpuBackend::scan(Op op, const View& out, const ConstView& in, int dim) {
  OnHost host(*this);
  host.cpu().scan(op, host.out(out), host.in(in), dim);
  host.finish();
}

void GpuBackend::random(Op op, const View& out, uint64_t seed, uint64_t first, Scalar a, Scalar b) {
  OnHost host(*this);
  host.cpu().random(op, host.out(out), seed, first, a, b);
  host.finish();
}

}  // namespace wick::gpu
