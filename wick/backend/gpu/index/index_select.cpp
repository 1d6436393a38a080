// Selection of slices by ids: kernels/index/select.gpu.

#include "wick/backend/gpu/index/index_select.h"

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

const KernelFamily<SelectArgs, OneOf<1, 2, 4, 8, 16>> kSelect("select", "select_{}");

IdType id_type(const ConstView& ids) {
  switch (ids.dtype) {
    case DType::u8:
      return IdType::id_u8;
    case DType::u32:
      return IdType::id_u32;
    case DType::i32:
      return IdType::id_i32;
    case DType::i64:
      return IdType::id_i64;
    default:
      throw Error(ErrorKind::type, "index_select", "ids have the wrong dtype", name(ids.dtype),
                  "need u8, u32, i32 or i64");
  }
}

}  // namespace

const void* id_at(const Ids& ids, int64_t elems) {
  const int64_t bytes = ids.type == IdType::id_u8 ? 1 : ids.type == IdType::id_i64 ? 8 : 4;
  return static_cast<const char*>(ids.data) + elems * bytes;
}

void GpuBackend::index_select(const View& out, const ConstView& in, const ConstView& ids, int dim) {
  const Layout &y = out.layout, &x = in.layout;
  if (y.elems() == 0) return;
  Ids chosen;
  chosen.data = ids.data;
  chosen.type = id_type(ids);
  chosen.data = id_at(chosen, ids.layout.offset());
  chosen.size = x.shape()[dim];
  chosen.line = gpu_.fault_line();
  chosen.note = gpu_.note("index_select", in, ids, chosen.size);
  if (is_block(in.dtype)) return select_blocks(gpu_, out, in, ids, chosen);

  const int64_t step = x.stride(dim);
  CollapsedDims<3> elements;
  elements.start = {y.offset(), x.offset(), 0};
  for (int d = 0; d < y.rank(); ++d) {
    if (d == dim) {
      elements.add(y.shape()[d], {y.stride(d), 0, ids.layout.stride(0)});
    } else {
      elements.add(y.shape()[d], {y.stride(d), x.stride(d), 0});
    }
  }
  elements.arrange();
  const auto [collapsed, operands] =
      in_units<3>(elements, {Operand(out), Operand(in), Operand()}, 2, step);
  const int64_t bytes = operands[0].bytes;
  chosen.step = step * info(in.dtype).block_bytes / bytes;
  chosen.data = id_at(chosen, elements.start[2]);
  collapsed.for_each_piece(
      [&, &operands = operands](const StridedIndex<3>& strided, const auto& start) {
        Ids here = chosen;
        here.data = id_at(chosen, start[2]);
        kSelect(bytes).launch(gpu_, spread(gpu_, strided.elems, kMapEach),
                              {operands[0].at(start[0]), operands[1].at(start[1]), strided, here});
      });
}

}  // namespace wick::gpu
