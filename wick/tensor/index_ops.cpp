#include "wick/tensor/index_ops.h"

#include <fmt/format.h>

#include <vector>

#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/arguments.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

void check_ids(Op op, const Tensor& x, const Tensor& ids) {
  check_device(name(op).data(), x, ids);
  if (dtypes::kIds.contains(ids.dtype())) return;
  throw Error(ErrorKind::type, name(op), "ids of this dtype", ids.str(), "use u8, u32, i32 or i64");
}

/// x's rank, and no larger in other dims than `dim`.
bool fits(const Shape& x, const Shape& ids, int dim) {
  if (x.rank() != ids.rank()) return false;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != dim && ids[d] > x[d]) return false;
  }
  return true;
}

Tensor scatter_as(Op op, const Tensor& x, const Tensor& ids, const Tensor& source, int dim) {
  check_operand(op, x);
  check_same(op, x, source);
  check_ids(op, x, ids);
  const int d = resolve_dim(name(op).data(), dim, x.rank());
  if (!(ids.shape() == source.shape()) || !fits(x.shape(), ids.shape(), d)) {
    throw Error(name(op), "shapes don't fit",
                fmt::format("x {}, ids {}, source {}, dim {}", x.str(), ids.str(), source.str(), d),
                "need ids and source of one shape, of x's rank and no larger but along the dim");
  }
  Tensor out = x.detach().clone();
  backend(x.device()).scatter(op, out.mutable_view(), source.view(), ids.view(), d);
  if (tape::is_wanted(x, source)) tape::remember(out, op, {x, source}, tape::Chosen{ids, d});
  return out;
}

/// The first `keep` of the sorted dim (negative: all), values only where wanted.
Sorted sort_as(Op op, const Tensor& x, int dim, bool descending, bool values, int64_t keep) {
  check_operand(op, x);
  const int d = resolve_dim(name(op).data(), dim, x.rank());
  const int64_t size = x.shape()[d];
  if (size > INT64_C(0xffffffff)) {
    throw Error(name(op), "dimension too long for u32 indices", x.str());
  }
  if (keep < 0) keep = size;
  const Shape shape = x.shape().with(d, keep);
  Sorted out;
  View values_view{nullptr, x.dtype(), {}};
  if (values) {
    out.values = Tensor::empty(shape, x.dtype(), x.device());
    values_view = out.values.mutable_view();
  }
  out.indices = Tensor::empty(shape, DType::u32, x.device());
  backend(x.device()).sort(values_view, out.indices.mutable_view(), x.view(), d, descending);
  if (values && tape::is_wanted(x)) {
    tape::remember(out.values, op, {x}, tape::Chosen{out.indices, d});
  }
  return out;
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& ids, int dim) {
  check_operand(Op::gather, x);
  check_ids(Op::gather, x, ids);
  const int d = resolve_dim("gather", dim, x.rank());
  if (!fits(x.shape(), ids.shape(), d)) {
    throw Error("gather", "shapes don't fit",
                fmt::format("x {}, ids {}, dim {}", x.str(), ids.str(), d),
                "need ids of x's rank and no larger but along the dim");
  }
  Tensor out = Tensor::empty(ids.shape(), x.dtype(), x.device());
  backend(x.device()).gather(out.mutable_view(), x.view(), ids.view(), d);
  if (tape::is_wanted(x)) tape::remember(out, Op::gather, {x}, tape::Chosen{ids, d});
  return out;
}

Tensor scatter(const Tensor& x, const Tensor& ids, const Tensor& source, int dim) {
  return scatter_as(Op::scatter, x, ids, source, dim);
}

Tensor scatter_add(const Tensor& x, const Tensor& ids, const Tensor& source, int dim) {
  return scatter_as(Op::scatter_add, x, ids, source, dim);
}

Tensor index_add(const Tensor& x, const Tensor& ids, const Tensor& source, int dim) {
  check_operand(Op::index_add, x);
  check_same(Op::index_add, x, source);
  check_ids(Op::index_add, x, ids);
  const int d = resolve_dim("index_add", dim, x.rank());
  if (ids.rank() != 1 || source.rank() != x.rank() ||
      !(source.shape() == x.shape().with(d, ids.elems()))) {
    throw Error("index_add", "shapes don't fit",
                fmt::format("x {}, ids {}, source {}, dim {}", x.str(), ids.str(), source.str(), d),
                "need ids [n] and source of x's shape but for n along the dim");
  }
  Tensor out = x.detach().clone();
  backend(x.device()).index_add(out.mutable_view(), source.view(), ids.view(), d);
  if (tape::is_wanted(x, source)) {
    tape::remember(out, Op::index_add, {x, source}, tape::Chosen{ids, d});
  }
  return out;
}

Tensor one_hot(const Tensor& ids, int64_t depth, DType dtype) {
  check_ids(Op::one_hot, ids, ids);
  if (!info(Op::one_hot).dtypes.contains(dtype)) {
    throw Error(ErrorKind::type, "one_hot", "not for this dtype", name(dtype), "use a real dtype");
  }
  if (depth < 0) throw Error("one_hot", "negative depth", fmt::format("{}", depth));
  std::vector<int64_t> dims(ids.shape().dims().begin(), ids.shape().dims().end());
  dims.push_back(depth);
  if (dims.size() > Shape::kMaxRank) {
    throw Error("one_hot", "too many dimensions", ids.str(), "need a rank below 8");
  }
  Tensor out = Tensor::zeros(Shape(dims), dtype, ids.device());
  const Tensor places = ids.unsqueeze(-1);
  const Tensor one = Tensor::ones({}, dtype, ids.device()).broadcast_to(places.shape());
  backend(ids.device())
      .scatter(Op::one_hot, out.mutable_view(), one.view(), places.view(), ids.rank());
  return out;
}

Sorted sort(const Tensor& x, int dim, bool descending) {
  return sort_as(Op::sort, x, dim, descending, true, -1);
}

Tensor argsort(const Tensor& x, int dim, bool descending) {
  return sort_as(Op::argsort, x, dim, descending, false, -1).indices;
}

Sorted topk(const Tensor& x, int64_t k, int dim, bool largest) {
  check_operand(Op::topk, x);
  const int d = resolve_dim("topk", dim, x.rank());
  if (k < 0 || k > x.shape()[d]) {
    throw Error("topk", "k outside the dimension", fmt::format("{}, dim {}, k {}", x.str(), d, k),
                fmt::format("need 0 <= k <= {}", x.shape()[d]));
  }
  return sort_as(Op::topk, x, d, largest, true, k);
}

Tensor cumsum(const Tensor& x, int dim) {
  check_operand(Op::cumsum, x);
  if (x.dtype() == DType::boolean) return cumsum(x.to(DType::i64), dim);
  const int d = resolve_dim("cumsum", dim, x.rank());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  backend(x.device()).scan(Op::cumsum, out.mutable_view(), x.view(), d);
  if (tape::is_wanted(x)) tape::remember(out, Op::cumsum, {x}, d);
  return out;
}

}  // namespace wick
