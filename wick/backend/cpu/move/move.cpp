#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"

namespace wick::cpu {

void CpuBackend::fill(const View&, Scalar) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::iota(const View&, Scalar, Scalar) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::copy(const View&, const ConstView&) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::cast(const View&, const ConstView&) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::index_select(const View&, const ConstView&, const ConstView&, int) { throw Error("scaffold", "replaced by the kernels"); }

}  // namespace wick::cpu
