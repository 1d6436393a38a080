// Selection of slices by ids: kernels/index/select.gpu.

#include "wick/backend/gpu/index/index_select.h"

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/called_as.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

const KernelFamily<SelectArgs, OneOf<1, 2, 4, 8, 16>> kSelect("select", "select_{}");

IdType id_type(std::string_view op, const ConstView& ids) {
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
      throw Error(ErrorKind::type, op, "ids have the wrong dtype", name(ids.dtype),
                  "need u8, u32, i32 or i64");
  }
}

}  // namespace

Ids make_ids(Gpu& gpu, std::string_view op, const ConstView& x, const ConstView& ids,
             int64_t size) {
  Ids made;
  made.data = ids.data;
  made.type = id_type(op, ids);
  made.size = size;
  made.line = gpu.fault_line();
  made.note = gpu.note(op, x, ids, size);
  return made;
}

const void* id_at(const Ids& ids, int64_t elems) {
  const int64_t bytes = ids.type == IdType::id_u8 ? 1 : ids.type == IdType::id_i64 ? 8 : 4;
  return static_cast<const char*>(ids.data) + elems * bytes;
}

void launch_select(Gpu& gpu, const CollapsedDims<3>& elements, const Operand& out,
                   const Operand& in, const Ids& chosen) {
  const auto [collapsed, operands] = in_units<3>(elements, {out, in, Operand()}, 2, chosen.step);
  const int64_t bytes = operands[0].bytes;
  Ids of_units = chosen;
  of_units.step = chosen.step * in.bytes / bytes;
  of_units.data = id_at(chosen, elements.start[2]);
  collapsed.for_each_piece(
      [&, &operands = operands](const StridedIndex<3>& strided, const auto& start) {
        Ids here = of_units;
        here.data = id_at(of_units, start[2]);
        kSelect(bytes).launch(gpu, spread(gpu, strided.elems, kMapEach),
                              {operands[0].at(start[0]), operands[1].at(start[1]), strided, here});
      });
}

void check_ids(Gpu& gpu, std::string_view op, const ConstView& x, const ConstView& ids,
               int64_t size) {
  const int64_t n = ids.layout.elems();
  if (n == 0) return;
  Ids chosen = make_ids(gpu, op, x, ids, size);
  // Each id selects a byte that nothing uses: the first one of the ids themselves.
  chosen.step = 0;
  const Scratch bytes(gpu, static_cast<size_t>(n));
  const int64_t first = ids.layout.offset();
  const View to{bytes.data(), DType::u8, Layout::contiguous({n})};
  const ConstView from{id_at(chosen, first), DType::u8, Layout({n}, {0}, 0)};
  CollapsedDims<3> elements;
  elements.start = {0, 0, first};
  elements.add(n, {1, 0, ids.layout.stride(0)});
  elements.arrange();
  launch_select(gpu, elements, Operand(to), Operand(from), chosen);
}

void GpuBackend::index_select(const View& out, const ConstView& in, const ConstView& ids, int dim) {
  const Layout &y = out.layout, &x = in.layout;
  const std::string_view name = CalledAs::name_or("index_select");
  if (y.elems() == 0) return check_ids(gpu_, name, in, ids, x.shape()[dim]);
  Ids chosen = make_ids(gpu_, name, in, ids, x.shape()[dim]);
  if (is_block(in.dtype)) {
    chosen.data = id_at(chosen, ids.layout.offset());
    return select_blocks(gpu_, out, in, ids, chosen);
  }
  chosen.step = x.stride(dim);
  CollapsedDims<3> elements;
  elements.start = {y.offset(), x.offset(), ids.layout.offset()};
  for (int d = 0; d < y.rank(); ++d) {
    if (d == dim) {
      elements.add(y.shape()[d], {y.stride(d), 0, ids.layout.stride(0)});
    } else {
      elements.add(y.shape()[d], {y.stride(d), x.stride(d), 0});
    }
  }
  elements.arrange();
  launch_select(gpu_, elements, Operand(out), Operand(in), chosen);
}

}  // namespace wick::gpu
