#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"

namespace wick::cpu {

void CpuBackend::quantize(const View&, const ConstView&) { throw Error("scaffold", "replaced by the kernels"); }
void CpuBackend::dequantize(const View&, const ConstView&) { throw Error("scaffold", "replaced by the kernels"); }

}  // namespace wick::cpu
