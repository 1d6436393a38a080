// Rows of reductions.

#include <fmt/format.h>

#include "bench/op_bench.h"

namespace wick::bench {
namespace {

Backend& cpu() { return backend(Device()); }

const Shape kSquare{4096, 4096};

/// Bit d of `dims` says that dim d is reduced.
void add_reduce(std::vector<OpRow>& rows, Op op, DType dtype, uint32_t dims) {
  const char* where = dims == 3 ? "all" : dims == 2 ? "dim1" : "dim0";
  rows.push_back({fmt::format("{}_{}", name(op), where), dtype, "4096x4096", Limit::read,
                  static_cast<double>(bytes_of(dtype, kSquare.elems())), [=] {
                    const Tensor x = random_tensor(kSquare, dtype),
                                 y = Tensor::empty({dims & 1 ? 1 : 4096, dims & 2 ? 1 : 4096},
                                                   dtype);
                    return [=] { cpu().reduce(op, y.mutable_view(), x.view(), dims); };
                  }});
}

void add_arg(std::vector<OpRow>& rows, Op op, DType dtype, int dim) {
  rows.push_back({fmt::format("{}_dim{}", name(op), dim), dtype, "4096x4096", Limit::read,
                  static_cast<double>(bytes_of(dtype, kSquare.elems())), [=] {
                    const Tensor x = random_tensor(kSquare, dtype),
                                 y = Tensor::empty(kSquare.with(dim, 1), DType::u32);
                    return [=] { cpu().arg_reduce(op, y.mutable_view(), x.view(), dim); };
                  }});
}

/// Functions that return a new, small result.
void add_made(std::vector<OpRow>& rows, const char* name, DType dtype, int dim,
              Tensor (*function)(const Tensor& x, int dim)) {
  rows.push_back({fmt::format("{}_dim{}", name, dim), dtype, "4096x4096", Limit::read,
                  static_cast<double>(bytes_of(dtype, kSquare.elems())), [=] {
                    const Tensor x = random_tensor(kSquare, dtype);
                    return [=] { function(x, dim); };
                  }});
}

}  // namespace

void add_reduce(std::vector<OpRow>& rows) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (uint32_t dims : {3u, 2u, 1u}) {
      add_reduce(rows, Op::sum, dtype, dims);
      add_reduce(rows, Op::max, dtype, dims);
    }
    for (int dim : {1, 0}) add_arg(rows, Op::argmax, dtype, dim);
  }
  add_reduce(rows, Op::mean, DType::f32, 2);
  add_reduce(rows, Op::prod, DType::f32, 2);
  add_reduce(rows, Op::min, DType::f32, 2);
  add_arg(rows, Op::argmin, DType::f32, 1);
  add_reduce(rows, Op::sum, DType::i64, 2);
  add_reduce(rows, Op::sum, DType::f64, 2);
  for (int dim : {1, 0}) {
    add_made(rows, "var", DType::f32, dim,
             [](const Tensor& x, int d) { return var(x, std::array{d}); });
    add_made(rows, "logsumexp", DType::f32, dim,
             [](const Tensor& x, int d) { return logsumexp(x, std::array{d}); });
    add_made(rows, "any", DType::f32, dim,
             [](const Tensor& x, int d) { return any(x, std::array{d}); });
    add_made(rows, "all", DType::f32, dim,
             [](const Tensor& x, int d) { return all(x, std::array{d}); });
  }
}

}  // namespace wick::bench
