// Rows of elementwise ops and of copies to another layout.

#include <fmt/format.h>

#include "bench/op_bench.h"

namespace wick::bench {
namespace {

const Shape kFlat{1 << 24}, kSquare{4096, 4096};

/// A backend call that writes to an existing output.
using Into = std::function<void(Backend& backend, const View& out)>;
OpRow::Call into(const Tensor& out, Into call) {
  return [=] { call(backend(Device()), out.mutable_view()); };
}

/// Unary ops, and tests, which return u8.
void add_unary(std::vector<OpRow>& rows, Op op, DType dtype) {
  const bool tests = info(op).kind == OpKind::test;
  const DType out = tests ? DType::u8 : dtype;
  rows.push_back({std::string(name(op)), dtype, "16M", Limit::copy,
                  static_cast<double>(bytes_of(dtype, kFlat.elems()) +
                                      bytes_of(out, kFlat.elems())),
                  [=] {
                    const Tensor x = random_tensor(kFlat, dtype);
                    return into(Tensor::empty(kFlat, out), [=](Backend& b, const View& y) {
                      tests ? b.test(op, y, x.view()) : b.unary(op, y, x.view());
                    });
                  }});
}

void add_with(std::vector<OpRow>& rows, Op op, DType dtype, Scalar p, Scalar q) {
  rows.push_back({std::string(name(op)), dtype, "16M", Limit::copy,
                  2 * static_cast<double>(bytes_of(dtype, kFlat.elems())), [=] {
                    const Tensor x = random_tensor(kFlat, dtype);
                    return into(Tensor::empty(kFlat, dtype), [=](Backend& b, const View& y) {
                      b.unary_with(op, y, x.view(), p, q);
                    });
                  }});
}

/// Binary ops of 4096² elements. b is expanded to a view of that shape.
void add_binary(std::vector<OpRow>& rows, Op op, DType dtype, const std::string& called,
                const Shape& b_shape, Tensor (*as)(const Tensor& b)) {
  const bool compares = info(op).kind == OpKind::compare;
  const DType out = compares ? DType::u8 : dtype;
  const int64_t n = kSquare.elems();
  rows.push_back({called, dtype, "4096x4096", Limit::copy,
                  static_cast<double>(bytes_of(dtype, n) + bytes_of(dtype, b_shape.elems()) +
                                      bytes_of(out, n)),
                  [=] {
                    const Tensor a = random_tensor(kSquare, dtype, 1),
                                 b = as(random_tensor(b_shape, dtype, 2));
                    return into(Tensor::empty(kSquare, out), [=](Backend& k, const View& y) {
                      compares ? k.compare(op, y, a.view(), b.view())
                               : k.binary(op, y, a.view(), b.view());
                    });
                  }});
}

Tensor as_it_is(const Tensor& b) { return b; }
Tensor turned(const Tensor& b) { return b.t(); }
Tensor spread(const Tensor& b) { return b.broadcast_to(kSquare); }

void add_where(std::vector<OpRow>& rows, DType dtype) {
  const auto bytes = static_cast<double>(bytes_of(dtype, kFlat.elems()));
  const auto mask = [] { return random_ids(kFlat, 2, DType::u8); };
  rows.push_back(
      {"where", dtype, "16M", Limit::copy, 3 * bytes + static_cast<double>(kFlat.elems()), [=] {
         const Tensor c = mask(), a = random_tensor(kFlat, dtype, 1),
                      b = random_tensor(kFlat, dtype, 2);
         return into(Tensor::empty(kFlat, dtype),
                     [=](Backend& k, const View& y) { k.where(y, c.view(), a.view(), b.view()); });
       }});
  rows.push_back({"masked_fill", dtype, "16M", Limit::copy,
                  2 * bytes + static_cast<double>(kFlat.elems()), [=] {
                    const Tensor c = mask(), x = random_tensor(kFlat, dtype, 1),
                                 value = Tensor::full({}, 0.5, dtype).broadcast_to(kFlat);
                    return into(Tensor::empty(kFlat, dtype), [=](Backend& k, const View& y) {
                      k.where(y, c.view(), value.view(), x.view());
                    });
                  }});
}

void add_cast(std::vector<OpRow>& rows, DType from, DType to) {
  rows.push_back({fmt::format("to_{}", name(to)), from, "16M", Limit::copy,
                  static_cast<double>(bytes_of(from, kFlat.elems()) + bytes_of(to, kFlat.elems())),
                  [=] {
                    const Tensor x = random_tensor(kFlat, from);
                    return into(Tensor::empty(kFlat, to),
                                [=](Backend& b, const View& y) { b.cast(y, x.view()); });
                  }});
}

void add_transpose(std::vector<OpRow>& rows, DType dtype) {
  rows.push_back({"transpose_copy", dtype, "4096x4096", Limit::copy,
                  2 * static_cast<double>(bytes_of(dtype, kSquare.elems())), [=] {
                    const Tensor x = random_tensor(kSquare, dtype);
                    return into(Tensor::empty(kSquare, dtype),
                                [=](Backend& b, const View& y) { b.copy(y, x.t().view()); });
                  }});
}

/// Adds a row of ops.def in f32 and bf16, or in i32 if floats have no such op.
template <class Add>
void add_of(DTypeSet dtypes, const Add& add) {
  if (!dtypes.contains(DType::f32)) return add(DType::i32);
  add(DType::f32);
  add(DType::bf16);
}

/// Adds the regular rows of ops.def.
void add_rows_of_table(std::vector<OpRow>& rows) {
  const auto unary = [&](Op op) {
    add_of(info(op).dtypes, [&](DType dtype) { add_unary(rows, op, dtype); });
  };
  const auto pair = [&](Op op) {
    add_of(info(op).dtypes, [&](DType dtype) {
      add_binary(rows, op, dtype, std::string(name(op)), kSquare, as_it_is);
    });
  };
#define WICK_UNARY(name, dtypes, numeric_class, gradient, doc) unary(Op::name);
#define WICK_TEST(name, dtypes, numeric_class, gradient, doc) unary(Op::name);
#define WICK_BINARY(name, dtypes, numeric_class, gradient, doc) pair(Op::name);
#define WICK_COMPARE(name, dtypes, numeric_class, gradient, doc) pair(Op::name);
#include "wick/op/ops.def"
}

void add_fills(std::vector<OpRow>& rows) {
  const auto bytes = static_cast<double>(bytes_of(DType::f32, kFlat.elems()));
  rows.push_back({"fill", DType::f32, "16M", Limit::copy, bytes, [] {
                    return into(Tensor::empty(kFlat, DType::f32),
                                [](Backend& b, const View& y) { b.fill(y, 1.5); });
                  }});
  rows.push_back({"iota", DType::f32, "16M", Limit::copy, bytes, [] {
                    return into(Tensor::empty(kFlat, DType::f32),
                                [](Backend& b, const View& y) { b.iota(y, 0.0, 0.5); });
                  }});
}

}  // namespace

void add_map(std::vector<OpRow>& rows) {
  add_rows_of_table(rows);
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_with(rows, Op::affine, dtype, 0.5, 2.0);
    add_with(rows, Op::clamp, dtype, -1.0, 1.0);
    add_with(rows, Op::powf, dtype, 2.5, 0);
    add_with(rows, Op::elu, dtype, 1.0, 0);
    add_binary(rows, Op::add, dtype, "add_row", {4096}, spread);
    add_binary(rows, Op::add, dtype, "add_column", {4096, 1}, spread);
    add_binary(rows, Op::add, dtype, "add_turned", kSquare, turned);
    add_binary(rows, Op::lt, dtype, "lt_turned", kSquare, turned);
    add_where(rows, dtype);
    add_transpose(rows, dtype);
  }
  add_binary(rows, Op::eq, DType::i64, "eq", kSquare, as_it_is);
  add_transpose(rows, DType::u8);
  add_fills(rows);
  using Pair = std::pair<DType, DType>;
  for (const auto& [from, to] :
       {Pair{DType::f16, DType::f32}, Pair{DType::f32, DType::f16}, Pair{DType::bf16, DType::f32},
        Pair{DType::f32, DType::bf16}, Pair{DType::f32, DType::i64}, Pair{DType::u8, DType::f32},
        Pair{DType::f64, DType::f32}}) {
    add_cast(rows, from, to);
  }
  rows.push_back({"add_element", DType::f32, "1", Limit::none, 0, [] {
                    const Tensor a = random_tensor({1}, DType::f32, 1),
                                 b = random_tensor({1}, DType::f32, 2);
                    return [=] { add(a, b); };
                  }});
}

}  // namespace wick::bench
