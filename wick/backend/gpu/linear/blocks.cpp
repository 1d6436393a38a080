// Quantisation, dequantisation, and selection of rows of block dtypes by ids:
// kernels/linear/blocks.gpu.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/index/index_select.h"
#include "wick/backend/gpu/kernels/linear/blocks_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

const KernelFamily<DequantizeArgs, DType> kDequantize("blocks", "dequantize_{}");
const KernelFamily<QuantizeArgs, DType> kQuantize("blocks", "quantize_{}");

/// Whether vectors of kBlockPart elements of a row may be moved at once. Operand k of `rows` is the
/// float operand, in elements.
template <uint32_t N>
bool are_packs(const ConstView& floats, size_t k, const CollapsedDims<N>& rows) {
  const int last = floats.layout.rank() - 1;
  return access_of(rows, k, Operand(floats))
      .run(floats.layout.shape()[last], floats.layout.stride(last))
      .vectors_of(kBlockPart);
}

/// Launches the kernel for collapsed dims of rows, to which it adds the dim along a row.
void launch_dequantize(Gpu& gpu, const View& out, const ConstView& in, CollapsedDims<3> rows,
                       const Ids& ids) {
  const int last = out.layout.rank() - 1;
  const int64_t step = out.layout.stride(last);
  const BlockFloats floats{static_cast<uint32_t>(out.dtype), are_packs(out, 0, rows) ? 1u : 0u,
                           step};
  rows.add(out.layout.shape()[last] / kBlockPart, {kBlockPart * step, kBlockPart, 0});
  const Operand to(out);
  const int64_t values = info(in.dtype).block_elems, bytes = info(in.dtype).block_bytes;
  rows.for_each_piece([&](const StridedIndex<3>& strided, const auto& start) {
    Ids here = ids;
    if (ids.data != nullptr) here.data = id_at(ids, start[2]);
    const void* const from = static_cast<const char*>(in.data) + start[1] / values * bytes;
    kDequantize(in.dtype).launch(gpu, spread(gpu, strided.elems, 1),
                                 {to.at(start[0]), from, strided, floats, here});
  });
}

}  // namespace

void select_blocks(Gpu& gpu, const View& out, const ConstView& in, const ConstView& ids,
                   Ids chosen) {
  if (in.layout.rank() != 2 || !is_float(out.dtype)) {
    throw Error(ErrorKind::type, "index_select", "block weights can't be read this way",
                in.layout.shape().str(), "need rows of a matrix, to a float type");
  }
  CollapsedDims<3> rows;
  rows.start = {out.layout.offset(), in.layout.offset(), 0};
  rows.add(out.layout.shape()[0], {out.layout.stride(0), 0, ids.layout.stride(0)});
  chosen.step = in.layout.stride(0);
  launch_dequantize(gpu, out, in, rows, chosen);
}

void GpuBackend::dequantize(const View& out, const ConstView& in) {
  if (!is_block(in.dtype)) return cast(out, in);
  if (out.layout.elems() == 0) return;
  const int last = out.layout.rank() - 1;
  CollapsedDims<3> rows;
  rows.start = {out.layout.offset(), in.layout.offset(), 0};
  for (int d = 0; d < last; ++d) {
    rows.add(out.layout.shape()[d], {out.layout.stride(d), in.layout.stride(d), 0});
  }
  launch_dequantize(gpu_, out, in, rows, Ids());
}

void GpuBackend::quantize(const View& out, const ConstView& in) {
  if (!is_block(out.dtype)) return cast(out, in);
  if (in.layout.elems() == 0) return;
  if (!dtypes::kWrittenBlocks.contains(out.dtype)) {
    throw Error(ErrorKind::type, "quantize", "block dtype can only be read", name(out.dtype));
  }
  const int last = in.layout.rank() - 1;
  const int64_t values = info(out.dtype).block_elems, step = in.layout.stride(last);
  CollapsedDims<2> blocks;
  blocks.start = {out.layout.offset() / values, in.layout.offset()};
  for (int d = 0; d < last; ++d) {
    blocks.add(in.layout.shape()[d], {out.layout.stride(d) / values, in.layout.stride(d)});
  }
  const BlockFloats floats{static_cast<uint32_t>(in.dtype), are_packs(in, 1, blocks) ? 1u : 0u,
                           step};
  blocks.add(in.layout.shape()[last] / values, {1, values * step});
  const Operand to(out), from(in);
  blocks.for_each_piece([&](const StridedIndex<2>& strided, const auto& start) {
    kQuantize(out.dtype).launch(gpu_, spread(gpu_, strided.elems, 1),
                                {to.at(start[0]), from.at(start[1]), strided, floats});
  });
}

}  // namespace wick::gpu
