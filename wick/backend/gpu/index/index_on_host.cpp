// Gather, scatter and random ops. They run on the host until they have kernels.

#include "wick/backend/gpu/on_host.h"

namespace wick::gpu {

void GpuBackend::gather(const View& out, const ConstView& in, const ConstView& ids, int dim) {
  OnHost host(*this);
  host.cpu().gather(host.out(out), host.in(in), host.in(ids), dim);
  host.finish();
}

void GpuBackend::scatter(Op op, const View& out, const ConstView& source, const ConstView& ids,
                         int dim) {
  OnHost host(*this);
  host.cpu().scatter(op, host.out(out), host.in(source), host.in(ids), dim);
  host.finish();
}

void GpuBackend::index_add(const View& out, const ConstView& source, const ConstView& ids,
                           int dim) {
  OnHost host(*this);
  host.cpu().index_add(host.out(out), host.in(source), host.in(ids), dim);
  host.finish();
}

void GpuBackend::random(Op op, const View& out, uint64_t seed, uint64_t first, Scalar a, Scalar b) {
  OnHost host(*this);
  host.cpu().random(op, host.out(out), seed, first, a, b);
  host.finish();
}

}  // namespace wick::gpu
