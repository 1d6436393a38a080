// Cases of the soak test: movement, maps, reductions and row-wise ops.

#include <bit>

#include "tests/backend/soak.h"

namespace wick::soak {
namespace {

TestTensor input(Soak& s, DType dtype, const Shape& shape, int operand) {
  TestTensor t(dtype, s.place(), shape, operand);
  t.fill(s.values(), s.random);
  return t;
}
TestTensor output(Soak& s, DType dtype, const Shape& shape) {
  return {dtype, s.place(), shape, 0, true};
}
std::string describe(const TestTensor& t) {
  return fmt::format("{}{} strides {}", name(t.dtype()), t.shape().str(), [&] {
    std::string text;
    for (int d = 0; d < t.shape().rank(); ++d) {
      text += fmt::format("{}{}", d == 0 ? "" : ",", t.layout().stride(d));
    }
    return text;
  }());
}

Scalar some_scalar(Soak& s) {
  return s.pick<Scalar>({0, 1, -1, 3, int64_t{1} << 40, 0.5, -3.7, 1e30, -1e300, 1e-40, 255,
                         std::numeric_limits<double>::infinity()});
}

void fill(Soak& s) {
  TestTensor out = output(s, s.dtype(dtypes::kReal), s.shape(0, 8));
  const Scalar value = some_scalar(s);
  s.what = fmt::format("fill {} with {}", describe(out), value.f);
  s.compare(out, {}, [&](Backend& b, const View& o, auto) { b.fill(o, value); });
}

void iota(Soak& s) {
  TestTensor out = output(s, s.dtype(dtypes::kReal), {s.size(s.options.elems)});
  const Scalar start = s.pick<Scalar>({0, 5, -100, 0.25, -1e6});
  const Scalar step = s.pick<Scalar>({1, 2, -3, 0.1, 0});
  s.what = fmt::format("iota {} from {} by {}", describe(out), start.f, step.f);
  s.compare(out, {}, [&](Backend& b, const View& o, auto) { b.iota(o, start, step); });
}

void copy(Soak& s) {
  const Shape shape = s.shape(0, 8);
  const DType dtype = s.dtype(dtypes::kReal);
  const TestTensor in = input(s, dtype, shape, 1);
  TestTensor out = output(s, dtype, shape);
  s.what = fmt::format("copy {} to {}", describe(in), describe(out));
  s.compare(out, {&in}, [](Backend& b, const View& o, auto from) { b.copy(o, from[0]); });
}

void cast(Soak& s) {
  const Shape shape = s.shape(0, 8);
  const TestTensor in = input(s, s.dtype(dtypes::kReal), shape, 1);
  TestTensor out = output(s, s.dtype(dtypes::kReal), shape);
  s.what = fmt::format("cast {} to {}", describe(in), describe(out));
  s.compare(out, {&in}, [](Backend& b, const View& o, auto from) { b.cast(o, from[0]); });
}

/// Returns ids in [0, limit), with padding ids if the type has one.
TestTensor ids(Soak& s, DType dtype, int64_t count, int64_t limit) {
  TestTensor t(dtype, s.place(), {count}, 2);
  const bool padded = s.one_in(3) && (dtype == DType::u8 || dtype == DType::u32);
  const int64_t end = dtype == DType::u8 ? std::min<int64_t>(limit, 255) : limit;
  t.fill_bits([&](int64_t) {
    if (padded && s.one_in(4)) return dtype == DType::u8 ? uint64_t{255} : uint64_t{0xffffffff};
    return static_cast<uint64_t>(s.random.below(end));
  });
  return t;
}

void index_select(Soak& s) {
  const Shape shape = s.shape(1, 5, false);
  const int dim = static_cast<int>(s.random.below(shape.rank()));
  const DType dtype = s.dtype(dtypes::kReal);
  const int64_t others = std::max<int64_t>(shape.elems() / shape[dim], 1);
  const TestTensor in = input(s, dtype, shape, 1);
  const int64_t count = s.size(std::max<int64_t>(s.options.elems / others, 1)) - s.random.below(2);
  const TestTensor chosen = ids(s, s.dtype(dtypes::kIds), count, shape[dim]);
  TestTensor out = output(s, dtype, shape.with(dim, count));
  s.what = fmt::format("index_select {} dim {} by {}", describe(in), dim, describe(chosen));
  s.compare(out, {&in, &chosen}, [&](Backend& b, const View& o, auto from) {
    b.index_select(o, from[0], from[1], dim);
  });
}

void select_blocks(Soak& s) {
  const DType type =
      s.pick({DType::q4_0, DType::q4_1, DType::q5_0, DType::q8_0, DType::q4_k, DType::q6_k});
  const int64_t block = info(type).block_elems, k = block * s.size(8), rows = s.size(60);
  const int64_t count = s.size(std::max<int64_t>(s.options.elems / k, 1));
  const TestTensor in = input(s, type, {rows, k}, 1);
  const TestTensor chosen = ids(s, s.dtype(dtypes::kIds), count, rows);
  TestTensor out = output(s, s.dtype(dtypes::kFloats), {count, k});
  s.what =
      fmt::format("index_select {} by {} to {}", describe(in), describe(chosen), describe(out));
  s.compare(out, {&in, &chosen},
            [](Backend& b, const View& o, auto from) { b.index_select(o, from[0], from[1], 0); });
}

Op some_op(Soak& s, OpKind kind) {
  for (;;) {
    const auto op = static_cast<Op>(s.random.below(static_cast<int64_t>(std::size(kOps))));
    if (info(op).kind == kind) return op;
  }
}

void unary(Soak& s) {
  const Op op = some_op(s, OpKind::unary);
  const DType dtype = s.dtype(info(op).dtypes);
  const Shape shape = s.shape(0, 8);
  const TestTensor in = input(s, dtype, shape, 1);
  TestTensor out = output(s, dtype, shape);
  s.what = fmt::format("{} {} to {}", name(op), describe(in), describe(out));
  s.compare(out, {&in}, [&](Backend& b, const View& o, auto from) { b.unary(op, o, from[0]); });
}

void binary(Soak& s) {
  const Op op = some_op(s, OpKind::binary);
  const DType dtype = s.dtype(info(op).dtypes);
  const Shape shape = s.shape(0, 8);
  const TestTensor a = input(s, dtype, shape, 1);
  TestTensor b = input(s, dtype, shape, 2), out = output(s, dtype, shape);
  if ((op == Op::div || op == Op::rem) && is_integer(dtype)) {
    const std::vector<uint64_t> divisors = b.bits();
    b.fill_bits([&](int64_t i) { return std::max<uint64_t>(divisors[static_cast<size_t>(i)], 1); });
  }
  s.what = fmt::format("{} {} and {} to {}", name(op), describe(a), describe(b), describe(out));
  s.compare(out, {&a, &b}, [&](Backend& backend, const View& o, auto from) {
    backend.binary(op, o, from[0], from[1]);
  });
}

void affine(Soak& s) {
  const Shape shape = s.shape(0, 8);
  const DType dtype = s.dtype(dtypes::kReal);
  const TestTensor in = input(s, dtype, shape, 1);
  TestTensor out = output(s, dtype, shape);
  const Scalar mul = some_scalar(s), add = some_scalar(s);
  s.what = fmt::format("affine {} by {} plus {}", describe(in), mul.f, add.f);
  s.compare(out, {&in}, [&](Backend& b, const View& o, auto from) {
    b.unary_with(Op::affine, o, from[0], mul, add);
  });
}

void reduce(Soak& s) {
  const Op op = some_op(s, OpKind::reduce);
  const bool takes_none = op == Op::sum || op == Op::mean;
  const Shape shape = s.shape(1, 6, takes_none);
  const DType dtype = s.dtype(info(op).dtypes);
  const auto dims = static_cast<uint32_t>(s.random.below(int64_t{1} << shape.rank()));
  Shape reduced = shape;
  for (int d = 0; d < shape.rank(); ++d) {
    if ((dims >> d & 1) != 0) reduced = reduced.with(d, 1);
  }
  const TestTensor in = input(s, dtype, shape, 1);
  TestTensor out = output(s, dtype, reduced);
  s.what = fmt::format("{} {} dims {:#b} to {}", name(op), describe(in), dims, describe(out));
  s.compare(out, {&in},
            [&](Backend& b, const View& o, auto from) { b.reduce(op, o, from[0], dims); });
}

void arg_reduce(Soak& s) {
  const Op op = some_op(s, OpKind::arg);
  const Shape shape = s.shape(1, 6, false);
  const int dim = static_cast<int>(s.random.below(shape.rank()));
  const TestTensor in = input(s, s.dtype(info(op).dtypes), shape, 1);
  TestTensor out = output(s, DType::u32, shape.with(dim, 1));
  s.what = fmt::format("{} {} dim {} to {}", name(op), describe(in), dim, describe(out));
  s.compare(out, {&in},
            [&](Backend& b, const View& o, auto from) { b.arg_reduce(op, o, from[0], dim); });
}

void softmax(Soak& s) {
  const Shape shape = s.shape(1, 5, false);
  const DType dtype = s.dtype(dtypes::kFloats);
  const int dim = s.one_in(2) ? shape.rank() - 1 : static_cast<int>(s.random.below(shape.rank()));
  const bool log = s.one_in(3);
  const TestTensor in = input(s, dtype, shape, 1);
  TestTensor out = output(s, dtype, shape);
  s.what = fmt::format("softmax {} dim {} log {} to {}", describe(in), dim, log, describe(out));
  s.compare(out, {&in},
            [&](Backend& b, const View& o, auto from) { b.softmax(o, from[0], dim, log); });
}

void rms_norm(Soak& s) {
  const Shape shape = s.shape(1, 5, false);
  const DType dtype = s.dtype(dtypes::kFloats);
  const TestTensor in = input(s, dtype, shape, 1);
  TestTensor weight(s.one_in(2) ? DType::f32 : dtype, s.place(), {shape[shape.rank() - 1]}, 2);
  weight.fill(Values::normal, s.random);
  TestTensor out = output(s, dtype, shape);
  s.what = fmt::format("rms_norm {} to {}", describe(in), describe(out));
  s.compare(out, {&in, &weight},
            [](Backend& b, const View& o, auto from) { b.rms_norm(o, from[0], from[1], 1e-5f); });
}

void rope(Soak& s) {
  const Shape shape = s.shape(2, 6);
  const DType dtype = s.dtype(dtypes::kFloats);
  const int64_t t = shape[shape.rank() - 2], d = shape[shape.rank() - 1];
  const int64_t half = s.one_in(2) ? d / 2 : s.random.below(d / 2 + 1);
  const bool interleaved = s.one_in(2);
  const TestTensor in = input(s, dtype, shape, 1);
  TestTensor cos(DType::f32, s.place(), {t, half}, 2), sin(DType::f32, s.place(), {t, half}, 4);
  cos.fill(Values::normal, s.random);
  sin.fill(Values::normal, s.random);
  TestTensor out = output(s, dtype, shape);
  s.what = fmt::format("rope {} half {} interleaved {} to {}", describe(in), half, interleaved,
                       describe(out));
  s.compare(out, {&in, &cos, &sin}, [&](Backend& b, const View& o, auto from) {
    b.rope(o, from[0], from[1], from[2], interleaved);
  });
}

}  // namespace

std::span<const Case> element_cases() {
  static constexpr Case kCases[] = {
      {"fill", fill, 1},
      {"iota", iota, 1},
      {"copy", copy, 3},
      {"cast", cast, 3},
      {"index_select", index_select, 3},
      {"select_blocks", select_blocks, 2},
      {"unary", unary, 4},
      {"binary", binary, 4},
      {"affine", affine, 1},
      {"reduce", reduce, 4},
      {"arg_reduce", arg_reduce, 2},
      {"softmax", softmax, 3},
      {"rms_norm", rms_norm, 3},
      {"rope", rope, 2},
  };
  return kCases;
}

}  // namespace wick::soak
