#include "wick/tensor/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "wick/base/called_as.h"
#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/select.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

/// The dims of a reduction (all if none are given), and the shapes of its result.
struct Over {
  uint32_t mask;
  std::vector<int> dims;
  int64_t count = 1;     ///< the number of elements that reduce to one
  Shape kept, squeezed;  ///< the result's shape with the reduced dims as size 1, and without them

  /// Errors: a dim is out of range or given twice; max, min, argmax or argmin of no elements.
  Over(Op op, const Tensor& x, std::span<const int> named)
      : mask(named.empty() ? (1u << x.rank()) - 1
                           : resolve_dims(name(op).data(), named, x.rank())) {
    std::vector<int64_t> with, without;
    for (int d = 0; d < x.rank(); ++d) {
      const bool reduced = (mask >> d) & 1u;
      with.push_back(reduced ? 1 : x.size(d));
      if (reduced) {
        dims.push_back(d);
        count *= x.size(d);
      } else {
        without.push_back(x.size(d));
      }
    }
    kept = Shape(with);
    squeezed = Shape(without);
    const bool chooses = op == Op::max || op == Op::min || op == Op::argmax || op == Op::argmin;
    if (chooses && count == 0 && kept.elems() > 0) {
      throw Error(name(op), "nothing to reduce", x.str(), "the reduced range must not be empty");
    }
  }
};

Tensor reduce(Op op, const Tensor& x, std::span<const int> dims, bool keepdim);

/// Counts the true elements of a bool tensor over dims, as i64. Runs of up to 255 elements along
/// the longest reduced dim are summed in u8, which can hold their sums; only these sums are
/// converted to i64.
Tensor count_set(const Tensor& x, const Over& over, std::span<const int> dims, bool keepdim) {
  constexpr int64_t kRun = 255;
  Tensor bytes(x.storage(), DType::u8, x.layout());
  if (over.count <= kRun) return reduce(Op::sum, bytes, dims, keepdim).to(DType::i64);
  int longest = over.dims.front();
  for (const int d : over.dims) {
    if (x.size(d) > x.size(longest)) longest = d;
  }
  const int along[] = {longest};
  if (x.size(longest) <= kRun) {
    return reduce(Op::sum, reduce(Op::sum, bytes, along, true).to(DType::i64), dims, keepdim);
  }
  if (x.rank() == Shape::kMaxRank) return reduce(Op::sum, x.to(DType::i64), dims, keepdim);
  const int64_t runs = x.size(longest) / kRun, whole = runs * kRun;
  const int inner[] = {longest + 1};
  const Shape split = x.shape().with(longest, runs).with_inserted(longest + 1, kRun);
  const Tensor counts =
      reduce(Op::sum, bytes.narrow(longest, 0, whole).reshape(split), inner, false);
  const Tensor most = reduce(Op::sum, counts.to(DType::i64), dims, keepdim);
  if (whole == x.size(longest)) return most;
  const Tensor rest = bytes.narrow(longest, whole, x.size(longest) - whole);
  const Tensor last = reduce(Op::sum, rest, along, true).to(DType::i64);
  return most + reduce(Op::sum, last, dims, keepdim);
}

/// x's shape with the reduced dims as size 1.
Shape kept_shape(const Tensor& x, uint32_t dims) {
  Shape shape = x.shape();
  for (int d = 0; d < x.rank(); ++d) {
    if ((dims >> d) & 1u) shape = shape.with(d, 1);
  }
  return shape;
}

ResultSpec checked_reduce(const OpCall& call) {
  const Tensor& x = call.x();
  check_operand(call.op, x, call.called_as);
  const auto& [dims, keepdim] = call.get<Reduction>();
  if (keepdim) return dense(x.dtype(), kept_shape(x, dims));
  std::array<int64_t, Shape::kMaxRank> sizes;
  size_t rank = 0;
  for (int d = 0; d < x.rank(); ++d) {
    if (!((dims >> d) & 1u)) sizes[rank++] = x.shape()[d];
  }
  return dense(x.dtype(), Shape(std::span<const int64_t>(sizes.data(), rank)));
}

Tensor reduce(Op op, const Tensor& x, std::span<const int> dims, bool keepdim) {
  check_operand(op, x);
  const Over over(op, x, dims);
  if (x.dtype() == DType::boolean) {
    if (op == Op::sum) return count_set(x, over, dims, keepdim);
    if (op == Op::prod) return all(x, dims, keepdim).to(DType::i64);
  }
  return apply({op, {&x}, Reduction{over.mask, keepdim}});
}

/// The index of the largest or smallest element along a dim, which is kept as size 1.
Tensor arg_along(Op op, const Tensor& x, int d) { return apply({op, {&x}, AlongDim{d}}); }

/// argmax or argmin over several dims in ascending order. Reduces one dim after the other, the last
/// first, and keeps each candidate's row-major index over the dims reduced so far.
Tensor arg_over(Op op, const Tensor& x, std::span<const int> dims) {
  const Op value = op == Op::argmax ? Op::max : Op::min;
  Tensor best = x, place = arg_along(op, x, dims.back());
  int64_t behind = 1;
  for (size_t i = dims.size() - 1; i-- > 0;) {
    behind *= best.size(dims[i + 1]);
    best = reduce(value, best, dims.subspan(i + 1, 1), true);
    const Tensor here = arg_along(op, best, dims[i]);
    const Tensor each = Tensor::full({}, behind, DType::u32, x.device());
    place = gather(place, here, dims[i]) + here * each;
  }
  return place;
}

Tensor arg(Op op, const Tensor& x, std::span<const int> dims, bool keepdim) {
  check_operand(op, x);
  const Over over(op, x, dims);
  if (over.count > INT64_C(0xffffffff)) {
    throw Error(name(op), "range too long for u32 indices", x.str());
  }
  Tensor out;
  if (over.dims.empty() || over.kept.elems() == 0) {
    out = Tensor::zeros(over.kept, DType::u32, x.device());
  } else {
    const int first = over.dims.front(), last = over.dims.back();
    const bool neighbours = last - first + 1 == static_cast<int>(over.dims.size());
    out = first < last && neighbours && x.layout().is_contiguous()
              ? arg_along(op, x.detach().flatten(first, last), first)
              : arg_over(op, x.detach(), over.dims);
  }
  return out.reshape(keepdim ? over.kept : over.squeezed);
}

/// Casts x to out.
void run_cast(Backend& backend, const OpCall& call, const Tensor* out) {
  const DType from = call.x().dtype(), to = out->dtype();
  if (to == from || (from == DType::boolean && to == stored(DType::boolean))) {
    backend.copy(out->mutable_view(), call.x().view());
  } else if (to == DType::boolean) {
    backend.test(Op::to_bool, out->mutable_view(), call.x().view());
  } else {
    backend.cast(out->mutable_view(), call.x().view());
  }
}

ResultSpec checked_cast(const OpCall& call) {
  const Tensor& x = call.x();
  const DType dtype = call.get<Conversion>().dtype;
  check_operand(call.op, x, call.called_as);
  if (is_block(dtype)) {
    throw Error(ErrorKind::type, "cast", "to a block dtype", x.str(), "use quantize");
  }
  return dense(dtype, x.shape());
}

ResultSpec checked_index_select(const OpCall& call) {
  const Tensor &x = call.x(0), &ids = call.x(1);
  const auto& [dim, dtype] = call.get<Selection>();
  const bool block = is_block(x.dtype());
  return dense(block ? dtype : x.dtype(), x.shape().with(dim, ids.elems()));
}

}  // namespace

namespace bodies {

const OpBody reduce{checked_reduce, [](Backend& backend, const OpCall& call, const Tensor* out) {
                      const Tensor& x = call.x();
                      const uint32_t dims = call.get<Reduction>().dims;
                      View view = out->mutable_view();
                      view.layout = Layout::contiguous(kept_shape(x, dims));
                      backend.reduce(call.op, view, x.view(), dims);
                    }};
const OpBody arg_reduce{[](const OpCall& call) {
                          const Tensor& x = call.x();
                          return dense(DType::u32, x.shape().with(call.get<AlongDim>().dim, 1));
                        },
                        [](Backend& backend, const OpCall& call, const Tensor* out) {
                          backend.arg_reduce(call.op, out->mutable_view(), call.x().view(),
                                             call.get<AlongDim>().dim);
                        }};
const OpBody fill{nullptr, [](Backend& backend, const OpCall& call, const Tensor* out) {
                    const Scalar value = stored_number(out->dtype(), call.get<Numbers>().p);
                    backend.fill(out->mutable_view(), value);
                  }};
const OpBody iota{nullptr, [](Backend& backend, const OpCall& call, const Tensor* out) {
                    const auto& [start, step] = call.get<Numbers>();
                    backend.iota(out->mutable_view(), start, step);
                  }};
const OpBody copy{[](const OpCall& call) { return like(call.x()); },
                  [](Backend& backend, const OpCall& call, const Tensor* out) {
                    backend.copy(out->mutable_view(), call.x().view());
                  }};
const OpBody cast{checked_cast, run_cast};
const OpBody index_select{checked_index_select,
                          [](Backend& backend, const OpCall& call, const Tensor* out) {
                            const CalledAs name(call.called_as);
                            backend.index_select(out->mutable_view(), call.x(0).view(),
                                                 call.x(1).view(), call.get<Selection>().dim);
                          }};

}  // namespace bodies

// clang-format off
#define WICK_REDUCE(name, ...) \
  Tensor name(const Tensor& x, std::span<const int> dims, bool keepdim) { \
    return reduce(Op::name, x, dims, keepdim); }
#define WICK_ARG(name, ...) \
  Tensor name(const Tensor& x, std::span<const int> dims, bool keepdim) { \
    return arg(Op::name, x, dims, keepdim); }
#include "wick/op/ops.def"
// clang-format on

Tensor cast(const Tensor& x, DType dtype) { return apply({Op::cast, {&x}, Conversion{dtype}}); }

Tensor stack(std::span<const Tensor> tensors, int dim) {
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    check_operand(Op::copy, t, "stack");
    if (!(t.shape() == tensors.front().shape())) {
      throw Error("stack", "shapes differ",
                  fmt::format("{} and {}", tensors.front().str(), t.str()));
    }
    rows.push_back(t.unsqueeze(resolve_dim("stack", dim, t.rank() + 1)));
  }
  if (rows.empty()) throw Error("stack", "no tensors", {}, "need one or more");
  return cat(rows, dim);
}

void slice_set(Tensor& target, const Tensor& source, int dim, int64_t start) {
  check_operand(Op::copy, target, "slice_set");
  check_operand(Op::copy, source, "slice_set");
  check_device("slice_set", target, source);
  const int d = resolve_dim("slice_set", dim, target.rank());
  check_no_gradient("slice_set", source);
  check_writable("slice_set", target);
  if (target.layout().overlaps_itself()) {
    throw Error("slice_set", "target's elements overlap", target.str());
  }
  if (source.rank() != target.rank() || !(source.shape().with(d, 0) == target.shape().with(d, 0))) {
    throw Error("slice_set", "shapes differ outside the dimension",
                fmt::format("target {}, source {}, dim {}", target.str(), source.str(), d));
  }
  const int64_t length = source.shape()[d];
  if (start < 0 || length > target.shape()[d] || start > target.shape()[d] - length) {
    throw Error(
        ErrorKind::index, "slice_set", "range outside the target",
        fmt::format("target {}, dim {}, start {}, length {}", target.str(), d, start, length));
  }
  const Tensor part(target.storage(), target.dtype(), target.layout().narrow(d, start, length));
  apply_into({Op::cast, {&source}}, part);
}

void slice_set(Tensor& target, const Tensor& source, const Layout& where) {
  check_operand(Op::copy, target, "slice_set");
  check_operand(Op::copy, source, "slice_set");
  check_device("slice_set", target, source);
  check_no_gradient("slice_set", source);
  const bool is_itself = &source == &target;
  const bool shares = source.storage() == target.storage();
  check_writable("slice_set", target, shares && !is_itself ? 2 : 1);
  const Tensor part(target.storage(), target.dtype(), where);
  if (where.overlaps_itself()) throw Error("slice_set", "target's elements overlap", part.str());
  // source shares target's storage, so it is copied before the write.
  const Tensor from = shares ? source.detach().clone() : source.detach();
  const Tensor spread = from.broadcast_to(where.shape());
  apply_into({Op::cast, {&spread}}, part);
}

Tensor index_select(const Tensor& x, const Tensor& ids, int dim, DType dtype) {
  return index_select_as("index_select", x, ids, dim, dtype);
}

Tensor index_select_as(const char* called_as, const Tensor& x, const Tensor& ids, int dim,
                       DType dtype) {
  check_device(called_as, x, ids);
  const int d = resolve_dim(called_as, dim, x.rank());
  if (!dtypes::kIds.contains(ids.dtype())) {
    throw Error(ErrorKind::type, called_as, "unsupported id dtype", ids.str(),
                "use u8, u32, i32 or i64");
  }
  const bool block = is_block(x.dtype());
  if (block && (x.rank() != 2 || d != 0 || !is_float(dtype))) {
    throw Error(ErrorKind::type, called_as, "not for this block tensor", x.str(),
                "need rank 2, dim 0 and a float result");
  }
  const Tensor list = ids.flatten();
  const Tensor out = apply({Op::index_select, {&x, &list}, Selection{d, dtype}, called_as});
  if (ids.rank() == 1) return out;
  const std::span<const int64_t> sizes = out.shape().dims(), places = ids.shape().dims();
  std::vector<int64_t> dims(sizes.begin(), sizes.begin() + d);
  dims.insert(dims.end(), places.begin(), places.end());
  dims.insert(dims.end(), sizes.begin() + d + 1, sizes.end());
  return out.reshape(Shape(dims));
}

}  // namespace wick
