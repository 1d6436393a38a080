#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/weight.h"

namespace wick::cpu {

std::unique_ptr<PreparedWeight> CpuBackend::prepare(std::span<const ConstView> parts,
                                                    bool release) {
  return is_block(parts.front().dtype) ? prepare_quantized(isa_, parts, release)
                                       : prepare_float(isa_, parts, release);
}

void CpuBackend::linear(const View& out, const ConstView& x, const PreparedWeight& weight) {
  if (is_block(weight.dtype)) {
    linear_quantized(isa_, out, x, weight);
  } else {
    linear_float(isa_, out, x, weight);
  }
}

}  // namespace wick::cpu
