#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/float_weight.h"
#include "wick/base/error.h"

namespace wick::gpu {

std::unique_ptr<PreparedWeight> GpuBackend::prepare(std::span<const ConstView> parts, bool) {
  if (is_block(parts.front().dtype)) throw Error("prepare", "not on GPUs yet");
  return prepare_float(gpu_, parts);
}

void GpuBackend::linear(const View& out, const ConstView& x, const PreparedWeight& weight,
                        const LinearFusion& fusion) {
  if (is_block(weight.dtype) || fusion.input != LinearFusion::Input::plain) {
    throw Error("linear", "not on GPUs yet");
  }
  linear_float(gpu_, out, x, weight, fusion.add ? &fusion.residual : nullptr);
}

}  // namespace wick::gpu
