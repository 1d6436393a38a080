// Random ops. They run on the host until they have kernels.

#include "wick/backend/gpu/on_host.h"

namespace wick::gpu {

void GpuBackend::random(Op op, const View& out, uint64_t seed, uint64_t first, Scalar a, Scalar b) {
  OnHost host(*this);
  host.cpu().random(op, host.out(out), seed, first, a, b);
  host.finish();
}

}  // namespace wick::gpu
