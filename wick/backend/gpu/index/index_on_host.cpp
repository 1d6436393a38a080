// Gather, scatter, sort and scan ops. They run on the host until they have kernels.

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

}  // namespace wick::gpu
