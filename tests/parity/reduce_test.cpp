// sum, mean, max, min, argmax and argmin: bit-equal to the specified order over any set of dims.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/parity/grid.h"
#include "tests/parity/reduce_reference.h"

namespace wick::parity {
namespace {

struct Case {
  Place place;
  Shape shape;
  uint32_t dims;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const Geometry& g : geometries()) {
    const int rank = g.shape.rank();
    const uint32_t all = (1u << rank) - 1;
    for (uint32_t dims = 0; dims <= all; ++dims) {
      // Rank 8 uses some sets of dims; large shapes use single dims and all dims.
      const bool chosen = dims % 37 == 5 || dims == all || dims == 2 || dims == 16 || dims == 128;
      if (rank == 8 && !chosen) continue;
      if (g.name.starts_with("large") && (dims & (dims - 1)) != 0 && dims != all) continue;
      list.push_back({g.place, g.shape, dims});
    }
  }
  for (int64_t n = 1; n <= 300; n += n < 20 ? 1 : 13) {
    list.push_back({Place::contiguous, {2, n}, 2});
    list.push_back({Place::contiguous, {n, 21}, 1});
  }
  for (int64_t n : {511, 512, 513, 4095, 4096, 4097, 8191, 8193, 12345}) {
    list.push_back({Place::contiguous, {2, n}, 2});
    list.push_back({Place::stepped, {2, n}, 2});
    list.push_back({Place::contiguous, {n, 9}, 1});
    list.push_back({Place::transposed, {17, n}, 2});
  }
  list.push_back({Place::contiguous, {5, 1030}, 1});
  list.push_back({Place::contiguous, {70000}, 1});
  list.push_back({Place::contiguous, {70000, 8}, 1});
  list.push_back({Place::scattered, {40, 30, 50}, 7});
  list.push_back({Place::scattered, {40, 30, 50}, 5});
  list.push_back({Place::contiguous, {40, 30, 50}, 5});
  // Cases for special paths on GPUs: rows with more chunks than a block handles, many short rows,
  // vectors of columns, runs within several dims.
  list.push_back({Place::contiguous, {3, 33000}, 2});
  list.push_back({Place::sliced, {3, 37000}, 2});
  list.push_back({Place::contiguous, {40000, 5}, 2});
  list.push_back({Place::contiguous, {20000, 8}, 2});
  list.push_back({Place::contiguous, {5000, 48}, 1});
  list.push_back({Place::contiguous, {3, 4500, 17}, 2});
  list.push_back({Place::contiguous, {100, 520}, 1});
  list.push_back({Place::contiguous, {20, 3, 64}, 5});
  list.push_back({Place::contiguous, {40, 3, 320}, 5});
  return list;
}

/// For some dtypes, also rows and columns of hundreds of chunks.
std::vector<Case> cases_of(DType dtype) {
  std::vector<Case> list = cases();
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::u8) return list;
  list.push_back({Place::contiguous, {1, 4'100'000}, 2});
  list.push_back({Place::contiguous, {1'100'000, 4}, 1});
  return list;
}

std::string describe(Op op, DType dtype, const Case& c, Values values) {
  return fmt::format("{}.{}.{}{} dims {:#b} {}", name(op), name(dtype), name(c.place),
                     c.shape.str(), c.dims, name(values));
}

void check_reduce(Op op, DType dtype) {
  Random random(51);
  for (const Case& c : cases_of(dtype)) {
    // The maximum of no elements is an error, unless the result has no elements either.
    const bool of_none = c.shape.elems() == 0 && reduced_shape(c.shape, c.dims).elems() != 0;
    if (of_none && (op == Op::max || op == Op::min)) continue;
    if (!here(c.place, c.shape)) continue;
    for (Values values : kAllValues) {
      if (values != Values::normal && c.shape.elems() > 20000) continue;
      TestTensor x(dtype, c.place, c.shape, 1);
      TestTensor y(dtype, c.place, reduced_shape(c.shape, c.dims), 2, true);
      x.fill(values, random);
      if (op == Op::prod && is_float(dtype) && values == Values::normal) {
        // Values near 1, so that long products neither vanish nor overflow.
        x.fill_with([&](int64_t) {
          return 1.0L + (static_cast<long double>(random.uniform()) - 0.5L) * 0.25L;
        });
      }
      const std::string what = describe(op, dtype, c, values);
      const TestTensor* const inputs[] = {&x};
      if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
            b.reduce(op, o, in[0], c.dims);
          })) {
        return;
      }
      const std::vector<uint64_t> bits = x.bits();
      std::vector<uint64_t> expected;
      std::vector<long double> exact, tolerance;
      for (const std::vector<size_t>& group : groups(c.shape, c.dims)) {
        std::vector<uint64_t> row;
        long double sum = 0, magnitude = 0;
        for (size_t i : group) {
          row.push_back(bits[i]);
          const long double v = decode(dtype, bits[i]);
          sum += v, magnitude += std::fabs(v);
        }
        const auto n = static_cast<long double>(row.size());
        expected.push_back(reduce_group(op, dtype, row));
        exact.push_back(op == Op::mean ? sum / n : sum);
        if (is_float(dtype) && !format_of(dtype).has_infinity) {
          const long double most = format_of(dtype).max;
          exact.back() = std::clamp(exact.back(), -most, most);
        }
        const long double step = dtype == DType::f64 ? 0x1p-52L : 0x1p-23L;
        // The depth is at most some fifty additions: 32 in an accumulator, 7 in the tree, and the
        // chunks.
        tolerance.push_back(0.51L * ulp(dtype, exact.back()) +
                            50 * step * magnitude / (op == Op::mean ? n : 1));
      }
      expect_bits(what, y, expected);
      if (is_float(dtype) && values == Values::normal && (op == Op::sum || op == Op::mean)) {
        expect_within(what, y, exact, tolerance);
      }
      if (failed()) return;
    }
  }
}

void check_arg(Op op, DType dtype) {
  Random random(52);
  for (const Case& c : cases_of(dtype)) {
    if ((c.dims & (c.dims - 1)) != 0 || c.dims == 0) continue;
    if (c.shape.elems() == 0 && reduced_shape(c.shape, c.dims).elems() != 0) continue;
    if (!here(c.place, c.shape)) continue;
    const int dim = __builtin_ctz(c.dims);
    for (Values values : kAllValues) {
      if (values != Values::normal && c.shape.elems() > 20000) continue;
      TestTensor x(dtype, c.place, c.shape, 1);
      TestTensor y(DType::u32, c.place, reduced_shape(c.shape, c.dims), 2, true);
      x.fill(values, random);
      const std::string what = describe(op, dtype, c, values);
      const TestTensor* const inputs[] = {&x};
      if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
            b.arg_reduce(op, o, in[0], dim);
          })) {
        return;
      }
      const std::vector<uint64_t> bits = x.bits();
      std::vector<uint64_t> expected;
      for (const std::vector<size_t>& group : groups(c.shape, c.dims)) {
        std::vector<uint64_t> row;
        for (size_t i : group) row.push_back(bits[i]);
        const uint64_t best = reduce_group(op == Op::argmax ? Op::max : Op::min, dtype, row);
        size_t index = 0;
        while (!same_bits(dtype, row[index], best)) ++index;
        expected.push_back(index);
      }
      expect_bits(what, y, expected);
      if (failed()) return;
    }
  }
}

const bool added = [] {
#define WICK_REDUCE(name, ...) \
  add_rows(Op::name, [](DType dtype) { check_reduce(Op::name, dtype); });
#define WICK_ARG(name, ...) add_rows(Op::name, [](DType dtype) { check_arg(Op::name, dtype); });
#include "wick/op/ops.def"
  return true;
}();

}  // namespace
}  // namespace wick::parity
