// Gradient rules of what chooses, places, orders and accumulates elements.

#include "wick/tensor/arguments.h"
#include "wick/tensor/gradients.h"

namespace wick::tape {
namespace {

Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.shape(), x.dtype(), x.device()); }

}  // namespace

void index_select_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  // The ids' dims, one in the op, lie where the dim was.
  const Tensor rows =
      ids.rank() == 0 ? v.grad().unsqueeze(dim) : v.grad().flatten(dim, dim + ids.rank() - 1);
  v.to_x(index_add(zeros_like(v.x()), ids.flatten(), rows, dim));
}

/// Also of sort and topk, whose values are gathered.
void gather_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  v.to_x(scatter_add(zeros_like(v.x()), ids, v.grad(), dim));
}

/// Elements that stayed, and the source that came last at each place: its number along the dim is
/// found there again.
void scatter_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  v.to_if_wanted(
      0, [&, &ids = ids, dim = dim] { return scatter(v.grad(), ids, zeros_like(v.x(1)), dim); });
  v.to_if_wanted(1, [&, &ids = ids, dim = dim] {
    const Tensor& source = v.x(1);
    Tensor number = Tensor::arange(1, source.shape()[dim], 1, DType::i64, source.device());
    for (int d = dim + 1; d < source.rank(); ++d) number = number.unsqueeze(-1);
    number = number.broadcast_to(source.shape());
    const Tensor none = Tensor::zeros(v.x(0).shape(), DType::i64, source.device());
    const Tensor other = abs(gather(scatter(none, ids, number, dim), ids, dim) - number);
    const Tensor one = Tensor::ones({}, DType::i64, source.device());
    const Tensor last = affine(minimum(other, one), -1, 1).to(source.dtype());
    return gather(v.grad(), ids, dim) * last;
  });
}

void scatter_add_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  v.to(0, v.grad());
  v.to_if_wanted(1, [&, &ids = ids, dim = dim] { return gather(v.grad(), ids, dim); });
}

void index_add_rule(const Vjp& v) {
  const auto& [ids, dim] = v.arguments<Chosen>();
  v.to(0, v.grad());
  v.to_if_wanted(1, [&, &ids = ids, dim = dim] { return index_select(v.grad(), ids, dim); });
}

void cumsum_rule(const Vjp& v) {
  const int dim = v.arguments<int>();
  v.to_x(flip(cumsum(flip(v.grad(), dim), dim), dim));
}

}  // namespace wick::tape
