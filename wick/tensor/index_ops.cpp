#include "wick/tensor/index_ops.h"

#include <fmt/format.h>

#include <vector>

#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"

namespace wick {
namespace {

void check_ids(Op op, const Tensor& x, const Tensor& ids) {
  check_device(name(op).data(), x, ids);
  if (dtypes::kIds.contains(ids.dtype())) return;
  throw Error(ErrorKind::type, name(op), "unsupported id dtype", ids.str(),
              "use u8, u32, i32 or i64");
}

/// Whether ids have x's rank and are no larger than x in dims other than `dim`.
bool fits(const Shape& x, const Shape& ids, int dim) {
  if (x.rank() != ids.rank()) return false;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != dim && ids[d] > x[d]) return false;
  }
  return true;
}

int dim_of(const OpCall& call) { return call.get<AlongDim>().dim; }

ResultSpec checked_gather(const OpCall& call) {
  const Tensor &x = call.x(0), &ids = call.x(1);
  if (!fits(x.shape(), ids.shape(), dim_of(call))) {
    throw Error("gather", "shapes don't fit",
                fmt::format("x {}, ids {}, dim {}", x.str(), ids.str(), dim_of(call)),
                "need ids of x's rank and no larger but along the dim");
  }
  return dense(x.dtype(), ids.shape());
}

ResultSpec checked_scatter(const OpCall& call) {
  const Tensor &x = call.x(0), &ids = call.x(1), &source = call.x(2);
  check_same(call.op, x, source);
  if (!(ids.shape() == source.shape()) || !fits(x.shape(), ids.shape(), dim_of(call))) {
    throw Error(call.name(), "shapes don't fit",
                fmt::format("x {}, ids {}, source {}, dim {}", x.str(), ids.str(), source.str(),
                            dim_of(call)),
                "need ids and source of one shape, of x's rank and no larger but along the dim");
  }
  return like(x);
}

ResultSpec checked_index_add(const OpCall& call) {
  const Tensor &x = call.x(0), &ids = call.x(1), &source = call.x(2);
  check_same(call.op, x, source);
  if (ids.rank() != 1 || source.rank() != x.rank() ||
      !(source.shape() == x.shape().with(dim_of(call), ids.elems()))) {
    throw Error("index_add", "shapes don't fit",
                fmt::format("x {}, ids {}, source {}, dim {}", x.str(), ids.str(), source.str(),
                            dim_of(call)),
                "need ids [n] and source of x's shape but for n along the dim");
  }
  return like(x);
}

Shape sorted_shape(const OpCall& call) {
  const auto& [dim, descending, count] = call.get<Sorting>();
  return call.x().shape().with(dim, count);
}

void run_sort(Backend& backend, const OpCall& call, const View& values, const View& indices) {
  const auto& [dim, descending, count] = call.get<Sorting>();
  backend.sort(values, indices, call.x().view(), dim, descending);
}

/// Makes the call of an op that takes x, ids and a dim. Errors: the op doesn't support an operand's
/// dtype; the dim is out of range.
OpCall along_dim(Op op, const Tensor& x, const Tensor& ids, int dim) {
  check_operand(op, x);
  check_ids(op, x, ids);
  return {op, {&x, &ids}, AlongDim{resolve_dim(name(op).data(), dim, x.rank())}};
}

Tensor scatter_as(Op op, const Tensor& x, const Tensor& ids, const Tensor& source, int dim) {
  check_operand(op, x);
  check_same(op, x, source);
  OpCall call = along_dim(op, x, ids, dim);
  call.inputs = {&x, &ids, &source};
  return apply(call);
}

/// Errors: the op doesn't support the dtype; the dim is out of range or longer than u32 can count.
Sorting checked_sorting(Op op, const Tensor& x, int dim, bool descending) {
  check_operand(op, x);
  const int d = resolve_dim(name(op).data(), dim, x.rank());
  const int64_t size = x.shape()[d];
  if (size > INT64_C(0xffffffff)) {
    throw Error(name(op), "dimension too long for u32 indices", x.str());
  }
  return {d, descending, size};
}

Sorted sorted(Op op, const Tensor& x, const Sorting& sorting) {
  auto [values, indices] = apply_pair({op, {&x}, sorting});
  return {std::move(values), std::move(indices)};
}

}  // namespace

namespace bodies {

const OpBody gather{checked_gather, [](Backend& backend, const OpCall& call, const Tensor* out) {
                      backend.gather(out->mutable_view(), call.x(0).view(), call.x(1).view(),
                                     dim_of(call));
                    }};
const OpBody scatter{checked_scatter, [](Backend& backend, const OpCall& call, const Tensor* out) {
                       backend.copy(out->mutable_view(), call.x(0).view());
                       backend.scatter(call.op, out->mutable_view(), call.x(2).view(),
                                       call.x(1).view(), dim_of(call));
                     }};
const OpBody index_add{
    checked_index_add, [](Backend& backend, const OpCall& call, const Tensor* out) {
      backend.copy(out->mutable_view(), call.x(0).view());
      backend.index_add(out->mutable_view(), call.x(2).view(), call.x(1).view(), dim_of(call));
    }};
/// Operands: ids [.., 1], and ones of the same shape.
const OpBody one_hot{[](const OpCall& call) {
                       const Tensor &ids = call.x(0), &ones = call.x(1);
                       const int64_t depth = call.get<OneHot>().depth;
                       return dense(ones.dtype(), ids.shape().with(ids.rank() - 1, depth));
                     },
                     [](Backend& backend, const OpCall& call, const Tensor* out) {
                       backend.fill(out->mutable_view(), 0);
                       backend.scatter(call.op, out->mutable_view(), call.x(1).view(),
                                       call.x(0).view(), out->rank() - 1);
                     }};
const OpBody sort{[](const OpCall& call) { return dense(call.x().dtype(), sorted_shape(call)); },
                  [](Backend& backend, const OpCall& call, const Tensor* out) {
                    run_sort(backend, call, out[0].mutable_view(), out[1].mutable_view());
                  },
                  DType::u32};
const OpBody argsort{[](const OpCall& call) { return dense(DType::u32, sorted_shape(call)); },
                     [](Backend& backend, const OpCall& call, const Tensor* out) {
                       const View no_values{nullptr, call.x().view().dtype, {}};
                       run_sort(backend, call, no_values, out->mutable_view());
                     }};
const OpBody cumsum{[](const OpCall& call) { return like(call.x()); },
                    [](Backend& backend, const OpCall& call, const Tensor* out) {
                      backend.scan(call.op, out->mutable_view(), call.x().view(), dim_of(call));
                    }};
const OpBody cumprod = cumsum;

}  // namespace bodies

Tensor gather(const Tensor& x, const Tensor& ids, int dim) {
  return apply(along_dim(Op::gather, x, ids, dim));
}

Tensor scatter(const Tensor& x, const Tensor& ids, const Tensor& source, int dim) {
  return scatter_as(Op::scatter, x, ids, source, dim);
}

Tensor scatter_add(const Tensor& x, const Tensor& ids, const Tensor& source, int dim) {
  return scatter_as(Op::scatter_add, x, ids, source, dim);
}

Tensor index_add(const Tensor& x, const Tensor& ids, const Tensor& source, int dim) {
  return scatter_as(Op::index_add, x, ids, source, dim);
}

Tensor one_hot(const Tensor& ids, int64_t depth, DType dtype) {
  check_ids(Op::one_hot, ids, ids);
  if (!info(Op::one_hot).dtypes.contains(dtype)) {
    throw Error(ErrorKind::type, "one_hot", "unsupported dtype", name(dtype), "use a real dtype");
  }
  if (depth < 0) throw Error("one_hot", "negative depth", fmt::format("{}", depth));
  if (ids.rank() == Shape::kMaxRank) {
    throw Error("one_hot", "too many dimensions", ids.str(), "need a rank below 8");
  }
  const Tensor places = ids.unsqueeze(-1);
  const Tensor ones = Tensor::ones({}, dtype, ids.device()).broadcast_to(places.shape());
  return apply({Op::one_hot, {&places, &ones}, OneHot{depth}});
}

Sorted sort(const Tensor& x, int dim, bool descending) {
  return sorted(Op::sort, x, checked_sorting(Op::sort, x, dim, descending));
}

Tensor argsort(const Tensor& x, int dim, bool descending) {
  return apply({Op::argsort, {&x}, checked_sorting(Op::argsort, x, dim, descending)});
}

Sorted topk(const Tensor& x, int64_t k, int dim, bool largest) {
  check_operand(Op::topk, x);
  const int d = resolve_dim("topk", dim, x.rank());
  if (k < 0 || k > x.shape()[d]) {
    throw Error("topk", "k outside the dimension", fmt::format("{}, dim {}, k {}", x.str(), d, k),
                fmt::format("need 0 <= k <= {}", x.shape()[d]));
  }
  Sorting sorting = checked_sorting(Op::topk, x, d, largest);
  sorting.count = k;
  return sorted(Op::topk, x, sorting);
}

Tensor cumsum(const Tensor& x, int dim) {
  check_operand(Op::cumsum, x);
  if (x.dtype() == DType::boolean) return cumsum(x.to(DType::i64), dim);
  return apply({Op::cumsum, {&x}, AlongDim{resolve_dim("cumsum", dim, x.rank())}});
}

Tensor cumprod(const Tensor& x, int dim) {
  check_operand(Op::cumprod, x);
  if (x.dtype() == DType::boolean) return cumprod(x.to(DType::i64), dim);
  return apply({Op::cumprod, {&x}, AlongDim{resolve_dim("cumprod", dim, x.rank())}});
}

}  // namespace wick
