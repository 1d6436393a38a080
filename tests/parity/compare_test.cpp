// compare, test and where, compared with plain references for every dtype, layout and instruction
// set.

#include <fmt/format.h>

#include <cmath>

#include "tests/parity/grid.h"

namespace wick::parity {
namespace {

/// Returns a number of any real dtype: a float's or an integer's value, both of which long double
/// represents.
long double value_of(DType dtype, uint64_t bits) {
  return is_float(dtype) ? decode(dtype, bits) : static_cast<long double>(decode_int(dtype, bits));
}

/// The reference of each row. A row without a reference doesn't compile.
namespace ref {

bool eq(long double a, long double b) { return a == b; }
bool ne(long double a, long double b) { return !(a == b); }
bool lt(long double a, long double b) { return std::isless(a, b); }
bool le(long double a, long double b) { return std::islessequal(a, b); }
bool gt(long double a, long double b) { return std::isgreater(a, b); }
bool ge(long double a, long double b) { return std::isgreaterequal(a, b); }
bool is_true(long double x) { return std::isnan(x) || std::fabs(x) > 0; }
bool logical_and(long double a, long double b) { return is_true(a) && is_true(b); }
bool logical_or(long double a, long double b) { return is_true(a) || is_true(b); }
bool logical_xor(long double a, long double b) { return is_true(a) != is_true(b); }
bool logical_not(long double x) { return !is_true(x); }
bool to_bool(long double x) { return is_true(x); }
bool isnan(long double x) { return std::isnan(x); }
bool isinf(long double x) { return std::isinf(x); }

}  // namespace ref

struct CompareRow {
  Op op;
  bool (*holds)(long double, long double);
};
constexpr CompareRow kCompare[] = {
#define WICK_COMPARE(name, ...) {Op::name, ref::name},
#include "wick/op/ops.def"
};
struct TestRow {
  Op op;
  bool (*holds)(long double);
};
constexpr TestRow kTest[] = {
#define WICK_TEST(name, ...) {Op::name, ref::name},
#include "wick/op/ops.def"
};

bool is_large(const Geometry& g) { return g.name.starts_with("large"); }

/// `mask` says which operands use the geometry's placement: bit 0 for the output, bit i for input i
/// - 1.
bool worthwhile(const Geometry& g, unsigned mask, unsigned all) {
  if (g.place == Place::contiguous) return mask == all;
  if (g.place == Place::broadcast || g.place == Place::scalar) return (mask & 1u) == 0;
  return !is_large(g) || mask == 1 || mask == 2;
}

Place place_of(const Geometry& g, unsigned mask, int operand) {
  return (mask >> operand) & 1u ? g.place : Place::contiguous;
}

void check_compare(const CompareRow& row, DType dtype) {
  Random random(static_cast<uint64_t>(row.op) * 16 + static_cast<uint64_t>(dtype));
  for (const Geometry& g : geometries()) {
    if (!here(g)) continue;
    for (Values values : kAllValues) {
      if (is_large(g) && values != Values::bits) continue;
      for (unsigned mask = 1; mask < 8; ++mask) {
        if (!worthwhile(g, mask, 7)) continue;
        TestTensor a(dtype, place_of(g, mask, 1), g.shape, 1);
        TestTensor b(dtype, place_of(g, mask, 2), g.shape, 2);
        TestTensor out(DType::u8, place_of(g, mask, 0), g.shape, 0, true);
        a.fill(values, random);
        b.fill(values == Values::bits ? Values::special : values, random);
        // A third of the pairs are equal if no operand is broadcast.
        if (g.place != Place::broadcast && g.place != Place::scalar) {
          const std::vector<uint64_t> x = a.bits(), y = b.bits();
          b.fill_bits([&](int64_t i) { return i % 3 == 0 ? x[size_t(i)] : y[size_t(i)]; });
        }
        const std::string what = fmt::format("{}.{}.{}.{}.mask{}", name(row.op), name(dtype),
                                             g.name, name(values), mask);
        const TestTensor* inputs[] = {&a, &b};
        if (!run_everywhere(what, out, inputs, [&](Backend& backend, const View& o, auto views) {
              backend.compare(row.op, o, views[0], views[1]);
            })) {
          return;
        }
        const std::vector<uint64_t> x = a.bits(), y = b.bits();
        std::vector<uint64_t> expected(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          expected[i] = row.holds(value_of(dtype, x[i]), value_of(dtype, y[i])) ? 1 : 0;
        }
        expect_bits(what, out, expected);
        if (failed()) return;
      }
    }
  }
}

void check_test(const TestRow& row, DType dtype) {
  Random random(static_cast<uint64_t>(row.op) * 16 + static_cast<uint64_t>(dtype));
  for (const Geometry& g : geometries()) {
    if (!here(g)) continue;
    for (Values values : kAllValues) {
      if (is_large(g) && values != Values::bits) continue;
      for (unsigned mask = 1; mask < 4; ++mask) {
        if (!worthwhile(g, mask, 3)) continue;
        TestTensor in(dtype, place_of(g, mask, 1), g.shape, 1);
        TestTensor out(DType::u8, place_of(g, mask, 0), g.shape, 0, true);
        in.fill(values, random);
        const std::string what = fmt::format("{}.{}.{}.{}.mask{}", name(row.op), name(dtype),
                                             g.name, name(values), mask);
        const TestTensor* inputs[] = {&in};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
              b.test(row.op, o, views[0]);
            })) {
          return;
        }
        const std::vector<uint64_t> x = in.bits();
        std::vector<uint64_t> expected(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          expected[i] = row.holds(value_of(dtype, x[i])) ? 1 : 0;
        }
        expect_bits(what, out, expected);
        if (failed()) return;
      }
    }
  }
}

void check_where(DType condition_dtype, DType dtype) {
  Random random(static_cast<uint64_t>(condition_dtype) * 16 + static_cast<uint64_t>(dtype));
  for (const Geometry& g : geometries()) {
    if (!here(g)) continue;
    for (unsigned mask = 1; mask < 16; ++mask) {
      if (!worthwhile(g, mask, 15)) continue;
      TestTensor condition(condition_dtype, place_of(g, mask, 1), g.shape, 1);
      TestTensor a(dtype, place_of(g, mask, 2), g.shape, 2);
      TestTensor b(dtype, place_of(g, mask, 3), g.shape, 3);
      TestTensor out(dtype, place_of(g, mask, 0), g.shape, 0, true);
      a.fill(Values::bits, random);
      b.fill(Values::special, random);
      // Any nonzero bit counts, including the highest one alone.
      const int width = 8 * info(condition_dtype).block_bytes;
      condition.fill_bits([&](int64_t) {
        return random.below(2) == 0 ? uint64_t{0} : uint64_t{1} << random.below(width);
      });
      const std::string what =
          fmt::format("where.{}.{}.{}.mask{}", name(condition_dtype), name(dtype), g.name, mask);
      const TestTensor* inputs[] = {&condition, &a, &b};
      if (!run_everywhere(what, out, inputs, [&](Backend& backend, const View& o, auto views) {
            backend.where(o, views[0], views[1], views[2]);
          })) {
        return;
      }
      const std::vector<uint64_t> c = condition.bits(), x = a.bits(), y = b.bits();
      std::vector<uint64_t> expected(x.size());
      for (size_t i = 0; i < x.size(); ++i) expected[i] = c[i] != 0 ? x[i] : y[i];
      expect_bits(what, out, expected);
      if (failed()) return;
    }
  }
}

const bool added = [] {
  for (const CompareRow& row : kCompare) {
    add_rows(row.op, [=](DType dtype) { check_compare(row, dtype); });
  }
  for (const TestRow& row : kTest) {
    add_rows(row.op, [=](DType dtype) { check_test(row, dtype); });
  }
  add_rows(Op::where, [](DType dtype) {
    for (DType condition : {DType::u8, DType::u32, DType::i64}) check_where(condition, dtype);
  });
  return true;
}();

}  // namespace
}  // namespace wick::parity
