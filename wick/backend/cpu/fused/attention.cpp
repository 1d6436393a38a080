#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"

namespace wick::cpu {

void CpuBackend::attention(const View&, const ConstView&, const ConstView&, const ConstView&, const AttentionParams&) { throw Error("scaffold", "replaced by the kernels"); }

}  // namespace wick::cpu
