// Gathers elements by an id for each of them: kernels/index/gather.gpu, or select.gpu for layouts
// without vectors.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/index/index_select.h"
#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {
namespace {

const KernelFamily<GatherArgs, OneOf<1, 2, 4, 8>> kGather("gather", "gather_{}");

/// Whether output and ids are vectors along the innermost dim. Operands: output, input, ids.
bool has_vectors(const CollapsedDims<3>& elements, const Operand& out, const Operand& ids) {
  if (elements.dims.empty() || elements.inner(0).size % kGatherVector != 0) return false;
  const size_t last = elements.dims.size() - 1;
  return access_of(elements, 0, out, last).vectors_of(kGatherVector) &&
         access_of(elements, 2, ids, last).vectors_of(kGatherVector);
}

}  // namespace

void GpuBackend::gather(const View& out, const ConstView& in, const ConstView& ids, int dim) {
  const Layout &y = out.layout, &x = in.layout;
  if (y.elems() == 0) return;
  Ids chosen = make_ids(gpu_, "gather", in, ids, x.shape()[dim]);
  chosen.step = x.stride(dim);
  CollapsedDims<3> elements;
  elements.start = {y.offset(), x.offset(), ids.layout.offset()};
  for (int d = 0; d < y.rank(); ++d) {
    elements.add(y.shape()[d], {y.stride(d), d == dim ? 0 : x.stride(d), ids.layout.stride(d)});
  }
  elements.arrange();
  if (!has_vectors(elements, Operand(out), Operand(ids))) {
    return launch_select(gpu_, elements, Operand(out), Operand(in), chosen);
  }
  const int64_t in_step = elements.inner(0).stride[1];
  auto& inner = elements.inner(0);
  inner.size /= kGatherVector;
  for (int64_t& stride : inner.stride) stride *= kGatherVector;
  elements.elems /= kGatherVector;
  elements.for_each_piece([&](const StridedIndex<3>& strided, const auto& start) {
    Ids here = chosen;
    here.data = id_at(chosen, start[2]);
    kGather(info(in.dtype).block_bytes)
        .launch(gpu_, spread(gpu_, strided.elems, kGatherEach),
                {Operand(out).at(start[0]), Operand(in).at(start[1]), strided, in_step, here});
  });
}

}  // namespace wick::gpu
