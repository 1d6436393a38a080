// Tests every row of ops.def that accepts bool, for all layouts and devices, against plain loops
// over the elements. Backends treat bool as u8, so the parity tests of rows don't cover it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "tests/expect_error.h"
#include "tests/test_devices.h"
#include "wick/op/op.h"
#include "wick/tensor/index_ops.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/shape_ops.h"

namespace wick {
namespace {

using test::error_of;
using testing::EndsWith;
using testing::HasSubstr;
using Bits = std::vector<uint8_t>;
using Whole = std::vector<int64_t>;

/// A bool tensor with some layout, and its elements in row-major order.
struct Sample {
  Tensor x;
  Bits bits;
  int64_t m, n;
  uint8_t at(int64_t i, int64_t j) const { return bits[static_cast<size_t>(i * n + j)]; }
};

/// Reads elements from the storage's bytes with the layout, without an op.
Sample sample_of(const Tensor& x, const Bits& storage) {
  Sample s{x, {}, x.size(0), x.size(1)};
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      const int64_t at = x.layout().offset() + i * x.layout().stride(0) + j * x.layout().stride(1);
      s.bits.push_back(storage[static_cast<size_t>(at)]);
    }
  }
  return s;
}

/// Calls check with an [m, n] tensor of every kind of layout: dense, transposed, reversed, strided,
/// sliced, broadcast, overlapping; with odd sizes, and with more elements than u8 can count.
void for_each_sample(const std::function<void(const Sample&)>& check) {
  uint64_t state = 12345;
  Bits storage(3000);
  for (uint8_t& b : storage) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = (state >> 60) % 3 != 0;
  }
  for (const Device device : test::cpu_and_devices()) {
    const Tensor base = Tensor::from(storage, {3000}, device);
    const auto view = [&](const Shape& shape, const Layout::Strides& strides, int64_t offset) {
      SCOPED_TRACE(device.str() + " " + shape.str() + " offset " + std::to_string(offset));
      const Tensor x(base.storage(), DType::boolean, Layout(shape, strides, offset));
      check(sample_of(x, storage));
    };
    view({4, 5}, {5, 1}, 0);
    view({4, 5}, {1, 4}, 3);
    view({5, 7}, {-7, -1}, 40);
    view({3, 8}, {40, 3}, 1);
    view({6, 9}, {0, 1}, 7);
    view({6, 9}, {1, 0}, 7);
    view({5, 6}, {1, 1}, 2);
    view({1, 1}, {99, -7}, 5);
    view({2, 1300}, {1300, 1}, 13);
    view({700, 2}, {-1, 1500}, 1400);
  }
}

Bits bits_of(const Tensor& x) {
  EXPECT_EQ(x.dtype(), DType::boolean) << x.str();
  return x.to_vector<uint8_t>();
}
Whole wholes(const Tensor& x) { return x.to(DType::i64).to_vector<int64_t>(); }

Bits mapped(const Sample& s, const std::function<bool(bool)>& f) {
  Bits y;
  for (const uint8_t b : s.bits) y.push_back(f(b != 0));
  return y;
}

using BinaryFunction = Tensor (*)(const Tensor&, const Tensor&);
/// Checks f(x, last row of x), which is broadcast.
void expect_pairs(const Sample& s, BinaryFunction f, const std::function<bool(bool, bool)>& holds) {
  Bits expected;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) expected.push_back(holds(s.at(i, j), s.at(s.m - 1, j)));
  }
  EXPECT_EQ(bits_of(f(s.x, s.x.narrow(0, s.m - 1, 1))), expected);
}

using ReduceFunction = Tensor (*)(const Tensor&, std::span<const int>, bool);
/// Checks a reduction of each column, of each row, and of all elements. `fold` returns the expected
/// value.
void expect_reduced(const Sample& s, ReduceFunction f, DType dtype,
                    const std::function<int64_t(const Bits&)>& fold) {
  const auto check = [&](std::vector<int> dims, int64_t outer, int64_t inner, bool columns) {
    Whole expected;
    for (int64_t i = 0; i < outer; ++i) {
      Bits line;
      for (int64_t j = 0; j < inner; ++j) {
        line.push_back(outer == 1 ? s.bits[static_cast<size_t>(j)]
                       : columns  ? s.at(j, i)
                                  : s.at(i, j));
      }
      expected.push_back(fold(line));
    }
    for (const bool keepdim : {false, true}) {
      const Tensor y = f(s.x, dims, keepdim);
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_EQ(wholes(y), expected);
    }
  };
  if (s.n > 1) check({0}, s.n, s.m, true);
  if (s.m > 1) check({1}, s.m, s.n, false);
  check({}, 1, s.m * s.n, false);
  check({0, 1}, 1, s.m * s.n, false);
}

int64_t count(const Bits& b) { return std::accumulate(b.begin(), b.end(), int64_t{0}); }
int64_t first(const Bits& b, uint8_t of) { return std::find(b.begin(), b.end(), of) - b.begin(); }

Tensor ids_of(const Whole& ids, const Shape& shape, const Tensor& like) {
  return Tensor::from(ids, shape, like.device());
}

/// Checks sorted rows and the indices of their elements.
void expect_sorted(const Sample& s, bool descending, const Tensor& values, const Tensor& indices,
                   int64_t keep) {
  Bits sorted;
  Whole places;
  for (int64_t i = 0; i < s.m; ++i) {
    std::vector<int64_t> order(static_cast<size_t>(s.n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return descending ? s.at(i, a) > s.at(i, b) : s.at(i, a) < s.at(i, b);
    });
    for (int64_t j = 0; j < keep; ++j) {
      places.push_back(order[static_cast<size_t>(j)]);
      sorted.push_back(s.at(i, places.back()));
    }
  }
  if (values.defined()) {
    EXPECT_EQ(bits_of(values), sorted);
  }
  EXPECT_EQ(wholes(indices), places);
}

void check_cast(const Sample& s) {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const Tensor there = cast(s.x, dtype);
    EXPECT_EQ(there.dtype(), dtype);
    EXPECT_EQ(wholes(there), Whole(s.bits.begin(), s.bits.end())) << name(dtype);
    EXPECT_EQ(bits_of(cast(there, DType::boolean)), s.bits) << name(dtype);
  }
  EXPECT_EQ(bits_of(cast(s.x, DType::boolean)), s.bits);
}

void check_index_select(const Sample& s) {
  Bits expected;
  for (int64_t i = 0; i < s.m; ++i) {
    for (const int64_t j : {s.n - 1, int64_t{0}}) expected.push_back(s.at(i, j));
  }
  EXPECT_EQ(bits_of(index_select(s.x, ids_of({s.n - 1, 0}, {2}, s.x), 1)), expected);
}

void check_where(const Sample& s) {
  const Tensor other = logical_not(s.x);
  EXPECT_EQ(bits_of(where(s.x, s.x, other)), Bits(s.bits.size(), 1));
  EXPECT_EQ(bits_of(where(s.x.to(DType::u8), other, s.x)), Bits(s.bits.size(), 0));
  EXPECT_EQ(bits_of(masked_fill(s.x, other, 5)), Bits(s.bits.size(), 1));
  const Tensor floats = Tensor::full(s.x.shape(), 2, DType::f32, s.x.device());
  Whole expected;
  for (const uint8_t b : s.bits) expected.push_back(b != 0 ? 7 : 2);
  EXPECT_EQ(wholes(masked_fill(floats, s.x, 7)), expected);
}

void check_gather(const Sample& s) {
  Whole ids;
  Bits expected;
  for (int64_t i = 0; i < s.m; ++i) {
    ids.push_back((i * 7 + 1) % s.n);
    expected.push_back(s.at(i, ids.back()));
  }
  EXPECT_EQ(bits_of(gather(s.x, ids_of(ids, {s.m, 1}, s.x), 1)), expected);
}

void check_scatter(const Sample& s) {
  Whole ids;
  Bits expected = s.bits;
  for (int64_t i = 0; i < s.m; ++i) {
    ids.push_back((i * 5 + 2) % s.n);
    expected[static_cast<size_t>(i * s.n + ids.back())] = 1 - s.at(i, 0);
  }
  const Tensor source = logical_not(s.x.narrow(1, 0, 1));
  EXPECT_EQ(bits_of(scatter(s.x, ids_of(ids, {s.m, 1}, s.x), source, 1)), expected);
}

void check_cumprod(const Sample& s) {
  Whole expected;
  for (int64_t i = 0; i < s.m; ++i) {
    int64_t product = 1;
    for (int64_t j = 0; j < s.n; ++j) expected.push_back(product *= s.at(i, j));
  }
  const Tensor y = cumprod(s.x, 1);
  EXPECT_EQ(y.dtype(), DType::i64);
  EXPECT_EQ(wholes(y), expected);
}

void check_cumsum(const Sample& s) {
  Whole expected;
  for (int64_t i = 0; i < s.m; ++i) {
    int64_t sum = 0;
    for (int64_t j = 0; j < s.n; ++j) expected.push_back(sum += s.at(i, j));
  }
  const Tensor y = cumsum(s.x, 1);
  EXPECT_EQ(y.dtype(), DType::i64);
  EXPECT_EQ(wholes(y), expected);
}

void check_parts(const Sample& s) {
  Bits twice = s.bits;
  twice.insert(twice.end(), s.bits.begin(), s.bits.end());
  EXPECT_EQ(bits_of(cat(std::vector<Tensor>{s.x, s.x}, 0)), twice);
  EXPECT_EQ(bits_of(repeat(s.x, std::vector<int64_t>{2, 1})), twice);
  EXPECT_EQ(bits_of(roll(s.x, std::vector<int64_t>{s.m + 0}, std::vector<int>{0})), s.bits);
  EXPECT_EQ(count(bits_of(pad(s.x, std::vector<Padding>{{1, 2}}, PadMode::constant, 3))),
            count(s.bits) + 3 * s.m);
  EXPECT_EQ(count(bits_of(tril(s.x))) + count(bits_of(triu(s.x, 1))), count(s.bits));
}

void check_copy(const Sample& s) {
  EXPECT_EQ(bits_of(s.x.clone()), s.bits);
  EXPECT_EQ(bits_of(flip(flip(s.x, 0), 0)), s.bits);
  Tensor target = Tensor::zeros(s.x.shape(), DType::boolean, s.x.device());
  slice_set(target, s.x.to(DType::f32) * Tensor::full({}, 0.25, DType::f32, s.x.device()), 0, 0);
  EXPECT_EQ(bits_of(target), s.bits);
  slice_set(target, logical_not(s.x), 0, 0);
  EXPECT_EQ(bits_of(target), mapped(s, [](bool b) { return !b; }));
  EXPECT_EQ(bits_of(s.x.to(Device::cpu())), s.bits);
}

void check_fill(const Sample& s) {
  const Device device = s.x.device();
  for (const Scalar value : {Scalar(2), Scalar(0.25), Scalar(std::nan("")), Scalar(-1)}) {
    EXPECT_EQ(bits_of(Tensor::full({3}, value, DType::boolean, device)), Bits(3, 1));
  }
  EXPECT_EQ(bits_of(Tensor::full({3}, -0.0, DType::boolean, device)), Bits(3, 0));
  EXPECT_EQ(count(bits_of(eye(4, DType::boolean, device))), 4);
  Tensor target = Tensor::zeros({4}, DType::boolean, device);
  const_set(target, 9);
  EXPECT_EQ(bits_of(target), Bits(4, 1));
}

void check_one_hot(const Sample& s) {
  const Tensor y = one_hot(ids_of({2, 0}, {2}, s.x), 3, DType::boolean);
  EXPECT_EQ(bits_of(y), (Bits{0, 0, 1, 1, 0, 0}));
}

void check_to_bool(const Sample& s) {
  const std::vector<double> values = {0.0, -0.0, 1e-300, -3.5, NAN, INFINITY};
  const Tensor x = Tensor::from(values, {6}, s.x.device());
  EXPECT_EQ(bits_of(to_bool(x)), (Bits{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(bits_of(x.to(DType::boolean)), (Bits{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(bits_of(to_bool(s.x)), s.bits);
}

using Check = std::function<void(const Sample&)>;

std::map<Op, Check> checks() {
  std::map<Op, Check> all = {
      {Op::fill, check_fill},       {Op::copy, check_copy},
      {Op::cast, check_cast},       {Op::index_select, check_index_select},
      {Op::where, check_where},     {Op::gather, check_gather},
      {Op::scatter, check_scatter}, {Op::cumsum, check_cumsum},
      {Op::cumprod, check_cumprod}, {Op::to_bool, check_to_bool},
      {Op::one_hot, check_one_hot},
  };
  for (const Op op : {Op::cat, Op::pad, Op::roll, Op::repeat, Op::tril, Op::triu}) {
    all[op] = check_parts;
  }
  const auto both = [](bool a, bool b) { return a && b; };
  const auto either = [](bool a, bool b) { return a || b; };
  const auto differ = [](bool a, bool b) { return a != b; };
  const auto pairs = [&](Op op, BinaryFunction f, std::function<bool(bool, bool)> holds) {
    all[op] = [=](const Sample& s) { expect_pairs(s, f, holds); };
  };
  pairs(Op::maximum, maximum, either), pairs(Op::minimum, minimum, both);
  pairs(Op::bitwise_and, bitwise_and, both), pairs(Op::bitwise_or, bitwise_or, either);
  pairs(Op::bitwise_xor, bitwise_xor, differ), pairs(Op::logical_xor, logical_xor, differ);
  pairs(Op::logical_and, logical_and, both), pairs(Op::logical_or, logical_or, either);
  pairs(Op::eq, eq, [](bool a, bool b) { return a == b; });
  pairs(Op::ne, ne, differ);
  pairs(Op::lt, lt, [](bool a, bool b) { return !a && b; });
  pairs(Op::le, le, [](bool a, bool b) { return !a || b; });
  pairs(Op::gt, gt, [](bool a, bool b) { return a && !b; });
  pairs(Op::ge, ge, [](bool a, bool b) { return a || !b; });
  all[Op::bitwise_not] = [](const Sample& s) {
    EXPECT_EQ(bits_of(bitwise_not(s.x)), mapped(s, [](bool b) { return !b; }));
  };
  all[Op::logical_not] = [](const Sample& s) {
    EXPECT_EQ(bits_of(logical_not(s.x)), mapped(s, [](bool b) { return !b; }));
  };
  const auto reduced = [&](Op op, ReduceFunction f, DType dtype,
                           std::function<int64_t(const Bits&)> fold) {
    all[op] = [=](const Sample& s) { expect_reduced(s, f, dtype, fold); };
  };
  const auto some = [](const Bits& b) -> int64_t { return count(b) > 0; };
  const auto every = [](const Bits& b) -> int64_t {
    return count(b) == static_cast<int64_t>(b.size());
  };
  reduced(Op::sum, sum, DType::i64, count), reduced(Op::prod, prod, DType::i64, every);
  reduced(Op::max, max, DType::boolean, some), reduced(Op::min, min, DType::boolean, every);
  reduced(Op::any, any, DType::boolean, some), reduced(Op::all, wick::all, DType::boolean, every);
  reduced(Op::argmax, argmax, DType::u32,
          [=](const Bits& b) { return first(b, static_cast<uint8_t>(some(b))); });
  reduced(Op::argmin, argmin, DType::u32,
          [=](const Bits& b) { return first(b, static_cast<uint8_t>(every(b))); });
  all[Op::sort] = [](const Sample& s) {
    for (const bool descending : {false, true}) {
      const Sorted y = sort(s.x, 1, descending);
      expect_sorted(s, descending, y.values, y.indices, s.n);
    }
  };
  all[Op::argsort] = [](const Sample& s) {
    expect_sorted(s, false, {}, argsort(s.x, 1, false), s.n);
  };
  all[Op::topk] = [](const Sample& s) {
    const int64_t k = (s.n + 1) / 2;
    const Sorted y = topk(s.x, k, 1, true);
    expect_sorted(s, true, y.values, y.indices, k);
  };
  return all;
}

TEST(Bool, EveryRowThatTakesItHasACheck) {
  const std::map<Op, Check> all = checks();
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    EXPECT_EQ(info(op).dtypes.contains(DType::boolean), all.contains(op)) << name(op);
  }
}

class BoolRow : public testing::TestWithParam<int> {};

TEST_P(BoolRow, OverLayoutsAndDevices) {
  const Op op = static_cast<Op>(GetParam());
  const std::map<Op, Check> all = checks();
  if (!all.contains(op)) FAIL() << "no check of " << name(op);
  for_each_sample(all.at(op));
}

std::vector<int> rows_with_bool() {
  std::vector<int> rows;
  for (int i = 0; i < kOpCount; ++i) {
    if (info(static_cast<Op>(i)).dtypes.contains(DType::boolean)) rows.push_back(i);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Rows, BoolRow, testing::ValuesIn(rows_with_bool()), [](const auto& test) {
  return std::string(name(static_cast<Op>(test.param)));
});

TEST(Bool, CountsBeyondAByte) {
  for (const Device device : test::cpu_and_devices()) {
    const Tensor x = Tensor::ones({300}, DType::f32, device);
    EXPECT_EQ(sum(gt(x, Tensor::zeros({}, DType::f32, device))).item<int64_t>(), 300);
    const Tensor full = Tensor::ones({2, 1, 3, 1, 70001, 1, 1, 2}, DType::boolean, device);
    EXPECT_EQ(sum(full).item<int64_t>(), 840012);
    EXPECT_EQ(sum(full.transpose(4, 7)).item<int64_t>(), 840012);
    EXPECT_EQ(sum(Tensor::ones({256, 256, 3}, DType::boolean, device), 1).to_vector<int64_t>(),
              Whole(256 * 3, 256));
  }
}

TEST(Bool, OfNothing) {
  const Tensor none = Tensor::zeros({0, 3}, DType::boolean);
  const int columns[] = {0};
  EXPECT_EQ(wholes(sum(none)), Whole{0});
  EXPECT_EQ(wholes(prod(none)), Whole{1});
  EXPECT_EQ(bits_of(any(none, columns)), Bits(3, 0));
  EXPECT_EQ(bits_of(all(none, columns)), Bits(3, 1));
  EXPECT_EQ(cumsum(none, 0).shape(), none.shape());
}

TEST(Bool, HostValues) {
  const Tensor x = Tensor::from(std::vector<bool>{true, false, true}, {3});
  EXPECT_EQ(x.dtype(), DType::boolean);
  EXPECT_EQ(x.to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(x.str(), "bool[3]@cpu");
  EXPECT_TRUE(x.narrow(0, 0, 1).item<bool>());
  EXPECT_EQ(parse_dtype("bool"), DType::boolean);
}

TEST(Bool, WhatItDoesNotDoSaysWhichCast) {
  const Tensor x = Tensor::ones({2, 2}, DType::boolean), f = Tensor::ones({2, 2}, DType::f32);
  const std::string both = ": convert it first, as to i64 or f32",
                    whole = ": convert it first, as to i64",
                    floats = ": convert it first, as to f32";
  const std::vector<std::pair<std::function<void()>, std::string>> calls = {
      {[&] { add(x, x); }, both},
      {[&] { neg(x); }, both},
      {[&] { affine(x, 1, 1); }, both},
      {[&] { matmul(x, x); }, both},
      {[&] { mean(x); }, floats},
      {[&] { softmax(x, 0); }, floats},
      {[&] { var(x); }, floats},
      {[&] { shift_left(x, x); }, whole},
      {[&] { linear(f, Weight(x)); }, floats},
  };
  for (const auto& [call, hint] : calls) EXPECT_THAT(error_of(call), EndsWith(hint));
  EXPECT_THAT(error_of([&] { gather(f, x, 0); }), HasSubstr("unsupported id dtype"));
  EXPECT_THAT(error_of([&] { index_select(f, x, 0); }), HasSubstr("unsupported id dtype"));
  EXPECT_THAT(error_of([&] { maximum(x, f); }), HasSubstr("dtypes differ"));
  EXPECT_THAT(error_of([&] { (void)x.requires_grad(); }), HasSubstr("not a float"));
  EXPECT_THAT(error_of([&] { Tensor::arange(0, 2, 1, DType::boolean); }),
              HasSubstr("arange: unsupported dtype"));
}

}  // namespace
}  // namespace wick
