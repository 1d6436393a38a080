// Rotary position embedding: kernels/attention/rope.gpu.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {
namespace {

const KernelFamily<RopeArgs, DType> kRope("rope", "rope_{}");
const KernelFamily<RopeArgs, DType> kRopeInterleaved("rope", "rope_interleaved_{}");
const KernelFamily<RopeArgs, DType> kRopeScalar("rope", "rope_scalar_{}");

struct Rope {
  const Layout &y, &x, &cos, &sin;
  int64_t half = 0;
};

/// The pairs of rows; neighbouring pairs are `pair` elements apart. Strides count elements.
CollapsedDims<4> pair_dims(const Rope& rope, int64_t pair) {
  const Layout &y = rope.y, &x = rope.x;
  const int rank = x.rank(), last = rank - 1;
  CollapsedDims<4> collapsed;
  collapsed.start = {y.offset(), x.offset(), rope.cos.offset(), rope.sin.offset()};
  const auto tables = [&](int d, int64_t y_stride, int64_t x_stride) {
    return std::array<int64_t, 4>{y_stride, x_stride, stride_along(rope.cos, d, rank),
                                  stride_along(rope.sin, d, rank)};
  };
  for (int d = 0; d < last; ++d) collapsed.add(x.shape()[d], tables(d, y.stride(d), x.stride(d)));
  collapsed.add(rope.half, tables(last, pair * y.stride(last), pair * x.stride(last)));
  collapsed.arrange();
  return collapsed;
}

/// Makes output and input count pairs. False if strides aren't multiples of two elements.
bool halve(CollapsedDims<4>& collapsed, std::array<Operand, 4>& operands) {
  for (size_t k = 0; k < 2; ++k) {
    Access steps(nullptr, 1, 0);
    for (const auto& dim : collapsed.dims) steps.dim(dim.size, dim.stride[k]);
    if (!steps.begins_at(2)) return false;
    operands[k].data = static_cast<char*>(operands[k].at(collapsed.start[k]));
    operands[k].bytes *= 2;
    collapsed.start[k] = 0;
    for (auto& dim : collapsed.dims) dim.stride[k] /= 2;
  }
  return true;
}

}  // namespace

void GpuBackend::rope(const View& out, const ConstView& in, const ConstView& cos,
                      const ConstView& sin, bool interleaved) {
  if (in.layout.elems() == 0) return;
  const int last = in.layout.rank() - 1;
  const int64_t d = in.layout.shape()[last], half = cos.layout.shape().back();
  const auto behind = [&](const Layout& layout) {
    return layout.narrow(last, 2 * half, d - 2 * half);
  };
  if (2 * half < d) {
    copy({out.data, out.dtype, behind(out.layout)}, {in.data, in.dtype, behind(in.layout)});
  }
  if (half == 0) return;

  const Rope rope{out.layout, in.layout, cos.layout, sin.layout, half};
  const int64_t out_second = out.layout.stride(last) * (interleaved ? 1 : half);
  const int64_t in_second = in.layout.stride(last) * (interleaved ? 1 : half);
  const std::array<Operand, 4> operands{Operand(out), Operand(in), Operand(cos), Operand(sin)};
  const CollapsedDims<4> collapsed = pair_dims(rope, interleaved ? 2 : 1);
  const auto launch = [&](const CollapsedDims<4>& part, const std::array<Operand, 4>& by,
                          const KernelFamily<RopeArgs, DType>& kernels) {
    part.for_each_piece([&](const StridedIndex<4>& strided, const auto& start) {
      kernels(out.dtype).launch(
          gpu_, spread(gpu_, strided.elems, 1),
          {by[0].at(start[0]), by[1].at(start[1]), static_cast<const float*>(by[2].at(start[2])),
           static_cast<const float*>(by[3].at(start[3])), strided, out_second, in_second});
    });
  };

  const int64_t bytes = operands[0].bytes;
  const int64_t pairs = rope_pairs(static_cast<uint32_t>(bytes));
  std::array<Operand, 4> counted = operands;
  CollapsedDims<4> by_packs = collapsed;
  bool fits = half % pairs == 0;
  if (interleaved) {
    fits = fits && in_second == 1 && out_second == 1 && halve(by_packs, counted);
  } else {
    // The vectors of second elements lie this far behind those of the first elements.
    const Access seconds =
        Access(nullptr, bytes, 0).run(pairs, 1).dim(2, in_second).dim(2, out_second);
    fits = fits && seconds.vectors_of(pairs);
  }
  if (fits) {
    if (const auto packed = pack<4>(by_packs, counted, pairs, false); packed.fits) {
      return launch(packed.collapsed, counted, interleaved ? kRopeInterleaved : kRope);
    }
  }
  launch(collapsed, operands, kRopeScalar);
}

}  // namespace wick::gpu
