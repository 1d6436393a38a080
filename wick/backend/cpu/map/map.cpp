#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"

namespace wick::cpu {

void CpuBackend::unary(Op, const View&, const ConstView&) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::binary(Op, const View&, const ConstView&, const ConstView&) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::affine(const View&, const ConstView&, Scalar, Scalar) { throw Error("scaffold", "replaced by the kernels"); }

}  // namespace wick::cpu
