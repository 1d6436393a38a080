#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/weight.h"

namespace wick::cpu {

std::unique_ptr<PreparedWeight> CpuBackend::prepare(std::span<const ConstView> parts,
                                                    bool release) {
  const DType dtype = parts.front().dtype;
  if (!is_block(dtype)) return prepare_float(isa_, parts, release);
  return dtypes::kOwnProducts.contains(dtype) ? prepare_quantized(isa_, parts, release)
                                              : prepare_decoded(parts, release);
}

}  // namespace wick::cpu
