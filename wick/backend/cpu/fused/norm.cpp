#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"

namespace wick::cpu {

void CpuBackend::softmax(const View&, const ConstView&, int, bool) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::rms_norm(const View&, const ConstView&, const ConstView&, float) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::rope(const View&, const ConstView&, const ConstView&, const ConstView&, bool) { throw Error("scaffold", "replaced by the kernels"); }

}  // namespace wick::cpu
