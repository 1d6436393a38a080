#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/weight.h"

namespace wick::cpu {

std::unique_ptr<PreparedWeight> CpuBackend::prepare(std::span<const ConstView> parts,
                                                    bool release) {
  return is_block(parts.front().dtype) ? prepare_quantized(isa_, parts, release)
                                       : prepare_float(isa_, parts, release);
}

}  // namespace wick::cpu
