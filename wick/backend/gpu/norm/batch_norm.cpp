// batch_norm: kernels/norm/batch_norm.gpu.

#include <array>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/norm/norm_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/backend/gpu/norm/norm.h"

namespace wick::gpu {
namespace {

const KernelFamily<BatchNormArgs, DType> kBatchNorm("batch_norm", "batch_norm_{}");
const KernelFamily<BatchNormArgs, DType> kBatchNormScalar("batch_norm", "batch_norm_scalar_{}");

}  // namespace

void GpuBackend::batch_norm(const View& out, const ConstView& in, const ConstView& mean,
                            const ConstView& variance, const ConstView& weight,
                            const ConstView& bias, float eps) {
  BatchNormArgs args{};
  args.mean = weights_of(mean);
  args.variance = weights_of(variance);
  args.weight = weights_of(weight);
  args.bias = weights_of(bias);
  args.eps = eps;
  Layout::Strides strides{};
  strides[1] = 1;
  const Layout channel(out.layout.shape(), strides, 0);
  const CollapsedDims<3> dims = collapse_for_map<3>({&out.layout, &in.layout, &channel});
  if (dims.elems == 0) return;
  const std::array operands{Operand(out), Operand(in), Operand()};
  const auto bytes = static_cast<uint32_t>(operands[0].bytes);
  const auto packed = pack<3>(dims, operands, map_vec(bytes, bytes), true);
  // Vectors lie in one channel, and the input isn't broadcast along them.
  const bool packs = packed.fits && packed.repeated == 2;
  int64_t done = 0;
  const auto launch = [&](const StridedIndex<3>& strided, const auto& start) {
    args.out = operands[0].at(start[0]);
    args.in = operands[1].at(start[1]);
    args.strided = strided;
    args.first_channel = start[2];
    done += strided.elems;
    args.rest = packs && done == packed.collapsed.elems ? packed.rest : 0;
    (packs ? kBatchNorm : kBatchNormScalar)(out.dtype).launch(
        gpu_, spread(gpu_, strided.elems, packs ? map_unroll(bytes, bytes) : kMapEach), args);
  };
  if (packs) return packed.collapsed.for_each_piece(launch);
  for_each_tiled(dims, [&](const CollapsedDims<3>& part) { part.for_each_piece(launch); });
}

}  // namespace wick::gpu
