#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"

namespace wick::cpu {

void CpuBackend::reduce(Op, const View&, const ConstView&, uint32_t) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::arg_reduce(Op, const View&, const ConstView&, int) { throw Error("scaffold", "replaced by the kernels"); }

}  // namespace wick::cpu
