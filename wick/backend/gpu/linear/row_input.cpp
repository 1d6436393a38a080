#include "wick/backend/gpu/linear/row_input.h"

#include "wick/backend/gpu/kernels/norm/norm_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {
namespace {

/// The most values of a row whose silu_mul thread blocks compute again and again.
constexpr int64_t kMostGated = 4096;

const float* floats_at(const ConstView& x) {
  return static_cast<const float*>(x.data) + x.layout.offset();
}

}  // namespace

std::optional<RowInput> row_input(const Gpu& gpu, const LinearFusion& fusion, const ConstView& x,
                                  int64_t k) {
  using Input = LinearFusion::Input;
  const bool norm = fusion.input == Input::rms_norm, gate = fusion.input == Input::silu_mul;
  const int rank = x.layout.rank();
  if (gpu.device.kind != DeviceKind::cuda || x.dtype != DType::f32 || k % 4 != 0 ||
      !access_of(x).vectors_of(4) || fusion.input == Input::attention) {
    return {};
  }
  // Rows of one dim lie at equal distances.
  for (int dim = 0; dim + 2 < rank; ++dim) {
    if (x.layout.shape()[dim] != 1) return {};
  }
  RowInput input;
  input.x = floats_at(x);
  input.row = rank > 1 ? x.layout.stride(rank - 2) : 0;
  input.k = static_cast<uint32_t>(k);
  if (norm) {
    if (fusion.norm.dtype != DType::f32 || !access_of(fusion.norm).vectors_of(4) ||
        k > int64_t{kChunk} * kRowChunks) {
      return {};
    }
    input.weight = floats_at(fusion.norm);
    input.eps = fusion.eps;
    input.step = RowStep::rms_norm;
  } else if (gate) {
    if (k > kMostGated) return {};
    input.step = RowStep::silu_mul;
  }
  return input;
}

bool pays_in_gemv(const RowInput& input, int64_t thread_blocks) {
  constexpr int64_t kMostBytes = 10 << 20;
  return thread_blocks * row_bytes(input.step, input.k) <= kMostBytes;
}

}  // namespace wick::gpu
