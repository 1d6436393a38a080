#include "wick/tensor/shape_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/error.h"
#include "wick/tensor/call.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

/// A tensor over a layout of x's storage.
Tensor part_of(const Tensor& x, const Layout& layout) {
  return Tensor(x.storage(), x.dtype(), layout);
}
void fill_into(const Tensor& out, Scalar value) {
  if (out.elems() > 0) apply_into({Op::fill, {}, Numbers{value}}, out);
}

}  // namespace

Tensor flip(const Tensor& x, ListOf<int> dims) {
  check_operand(Op::copy, x, "flip");
  const uint32_t mask = dims.size() == 0 ? ~uint32_t{0} : resolve_dims("flip", dims, x.rank());
  Tensor view = x;
  for (int d = 0; d < x.rank(); ++d) {
    if (((mask >> d) & 1u) != 0) view = view.slice(d, -1, INT64_MIN, -1);
  }
  return view;
}

Tensor eye(int64_t rows, int64_t columns, DType dtype, Device device) {
  if (rows < 0 || columns < 0) {
    throw Error("eye", "negative size", fmt::format("[{},{}]", rows, columns), "need sizes >= 0");
  }
  if (is_block(dtype)) {
    throw Error(ErrorKind::type, "eye", "to a block dtype", name(dtype), "use quantize");
  }
  const Tensor out = Tensor::zeros({rows, columns}, dtype, device);
  const Layout diagonal(Shape{std::min(rows, columns)}, {columns + 1}, 0);
  fill_into(part_of(out, diagonal), 1);
  return out;
}

void const_set(Tensor& target, Scalar value) {
  check_operand(Op::fill, target, "const_set");
  const_set(target, value, Layout(target.layout()));
}

void const_set(Tensor& target, Scalar value, const Layout& where) {
  check_operand(Op::fill, target, "const_set");
  check_writable("const_set", target);
  const Tensor part = part_of(target, where);
  if (where.overlaps_itself()) {
    throw Error("const_set", "elements overlap", part.str());
  }
  fill_into(part, value);
}

}  // namespace wick
