// var, logsumexp, any and all, which the tensor layer composes of other rows. They must be
// bit-equal to the specified order of their steps in the compute type, and close to the exact
// value.

#include <fmt/format.h>

#include <cmath>

#include "tests/parity/grid.h"
#include "tests/parity/reduce_reference.h"
#include "tests/parity/tensors.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

using Bits = std::vector<uint64_t>;

struct Case {
  Place place;
  Shape shape;
  std::vector<int> dims;
};

/// Every layout with single dims, some combinations, and all dims.
std::vector<Case> cases() {
  std::vector<Case> list;
  for (const Geometry& g : geometries()) {
    const int rank = g.shape.rank();
    list.push_back({g.place, g.shape, {}});
    if (rank == 0) continue;
    list.push_back({g.place, g.shape, {rank - 1}});
    if (g.name.starts_with("large")) continue;
    list.push_back({g.place, g.shape, {0}});
    if (rank > 2) list.push_back({g.place, g.shape, {0, rank - 1}});
  }
  list.push_back({Place::contiguous, {2, 9001}, {1}});
  list.push_back({Place::scattered, {13, 4, 70}, {1}});
  return list;
}

uint32_t mask_of(const Case& c) {
  if (c.dims.empty()) return (1u << c.shape.rank()) - 1;
  uint32_t mask = 0;
  for (int d : c.dims) mask |= 1u << d;
  return mask;
}
Shape kept_shape(const Case& c, bool keepdim) {
  const uint32_t mask = mask_of(c);
  std::vector<int64_t> sizes;
  for (int d = 0; d < c.shape.rank(); ++d) {
    if (((mask >> d) & 1) == 0) sizes.push_back(c.shape[d]);
    if (((mask >> d) & 1) != 0 && keepdim) sizes.push_back(1);
  }
  return Shape(std::span<const int64_t>(sizes));
}

/// A reduction, with its result for a set of elements given by their bits.
struct Reduction {
  Op op;
  int64_t correction = 0;

  DType result(DType dtype) const {
    return op == Op::any || op == Op::all ? DType::boolean : dtype;
  }
  Tensor call(const Tensor& x, const Case& c, bool keepdim) const {
    if (op == Op::var) return var(x, c.dims, keepdim, correction);
    if (op == Op::logsumexp) return logsumexp(x, c.dims, keepdim);
    return op == Op::any ? any(x, c.dims, keepdim) : all(x, c.dims, keepdim);
  }
  uint64_t of(DType dtype, const Bits& x) const;
  /// Returns the exact value and the tolerance. Infinities and NaN have no bound.
  std::pair<long double, long double> truth(DType dtype, const Bits& x) const;
};

uint64_t Reduction::of(DType dtype, const Bits& x) const {
  if (op == Op::any || op == Op::all) {
    size_t set = 0;
    for (uint64_t bits : x) set += decode(dtype, bits) == 0 ? 0 : 1;
    return op == Op::any ? set > 0 : set == x.size();
  }
  if (op == Op::var) {
    uint64_t result = 0;
    with_compute_type(dtype, [&](auto zero) {
      using A = decltype(zero);
      std::vector<A> values, squares;
      for (uint64_t bits : x) values.push_back(static_cast<A>(decode(dtype, bits)));
      const A mean = ordered_sum<A>(values) / static_cast<A>(values.size());
      for (A v : values) squares.push_back((v - mean) * (v - mean));
      const auto left = std::max<int64_t>(static_cast<int64_t>(x.size()) - correction, 0);
      result = encode(dtype, ordered_sum<A>(squares) / static_cast<A>(left));
    });
    return result;
  }
  uint64_t result = 0;
  const long double largest = decode(dtype, reduce_group(Op::max, dtype, x));
  with_compute_type(dtype, [&](auto zero) {
    using A = decltype(zero);
    const A top = std::isinf(largest) ? A(0) : static_cast<A>(largest);
    std::vector<A> powers;
    for (uint64_t bits : x) powers.push_back(math::exp(static_cast<A>(decode(dtype, bits)) - top));
    result = encode(dtype, math::log(ordered_sum<A>(powers)) + top);
  });
  return result;
}

std::pair<long double, long double> Reduction::truth(DType dtype, const Bits& x) const {
  const auto n = static_cast<long double>(x.size());
  long double mean = 0, top = -std::numeric_limits<long double>::infinity(), largest = 0;
  for (uint64_t bits : x) {
    const long double v = decode(dtype, bits);
    mean += v / n, top = std::max(top, v), largest = std::max(largest, std::fabs(v));
  }
  long double sum = 0;
  for (uint64_t bits : x) {
    const long double v = decode(dtype, bits);
    sum += op == Op::var ? (v - mean) * (v - mean) : std::exp(v - top);
  }
  if (op == Op::logsumexp) {
    // Each difference, power and sum is rounded, then the logarithm, the last sum and the result.
    const long double value = top + std::log(sum), own = dtype == DType::f64 ? 0x1p-53L : 0x1p-24L;
    return {value, 0.51L * ulp(dtype, value) +
                       own * (2 * largest + 8 + 2 * std::fabs(value) + 2 * std::log(n))};
  }
  const long double divisor = n - static_cast<long double>(correction), value = sum / divisor;
  const long double own = dtype == DType::f64 ? 0x1p-53L : 0x1p-24L;  // unit of the compute type
  const long double shift = 2 * own * largest;  // error of the mean, squared in each term
  return {value, 0.51L * ulp(dtype, value) + 12 * own * value + 4 * shift * shift * n / divisor};
}

void check_reduction(const Reduction& row, DType dtype) {
  Random random(53);
  for (const Case& c : cases()) {
    if (!here(c.place, c.shape)) continue;
    const bool of_none = c.shape.elems() == 0 && kept_shape(c, false).elems() != 0;
    if (of_none && row.op == Op::logsumexp) continue;  // the maximum of an empty set is an error
    for (Values values : kAllValues) {
      if (values != Values::normal && c.shape.elems() > 20000) continue;
      TestTensor x(dtype, c.place, c.shape, 1);
      x.fill(values, random);
      if (row.op == Op::all || row.op == Op::any) {
        // Includes sets that contain only zeros, and empty sets.
        const Bits all = x.bits();
        const uint64_t few = row.op == Op::any ? 19 : 3;
        x.fill_bits([&](int64_t i) {
          const bool zero = c.place != Place::broadcast && random.below(20) < int64_t(few);
          return zero ? 0 : all[static_cast<size_t>(i)];
        });
      }
      Bits expected;
      std::vector<std::pair<long double, long double>> near;
      const Bits bits = x.bits();
      for (const std::vector<size_t>& group : groups(c.shape, mask_of(c))) {
        Bits of;
        for (size_t i : group) of.push_back(bits[i]);
        expected.push_back(row.of(dtype, of));
        const bool says = values == Values::normal && is_float(dtype) && !of.empty() &&
                          static_cast<int64_t>(of.size()) > row.correction;
        if (says && row.result(dtype) == dtype) near.push_back(row.truth(dtype, of));
      }
      for (bool keepdim : {false, true}) {
        const std::string what =
            fmt::format("{}.{}.{}{} dims {:#b} correction {} {}", name(row.op), name(dtype),
                        name(c.place), c.shape.str(), mask_of(c), row.correction, name(values));
        const TestTensor* const inputs[] = {&x};
        const DType out = row.result(dtype);
        run_tensors(
            what, inputs, out, kept_shape(c, keepdim),
            [&](auto in) { return row.call(in[0], c, keepdim); },
            [&](const Bits& got) {
              expect_same(what, out, got, expected);
              for (size_t i = 0; i < near.size() && near.size() == got.size(); ++i) {
                const long double value = decode(out, got[i]);
                if (std::fabs(value - near[i].first) <= near[i].second) continue;
                ADD_FAILURE() << what << ": element " << i << " is " << value << ", the truth "
                              << near[i].first << " ± " << near[i].second;
                return;
              }
            });
        if (failed()) return;
      }
    }
  }
}

const bool added = [] {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (Op op : {Op::any, Op::all}) {
      add_row(name(op), name(dtype), [=] { check_reduction({op}, dtype); });
    }
    if (!is_float(dtype)) continue;
    add_row("var", name(dtype), [=] {
      for (int64_t correction : {1, 0}) check_reduction({Op::var, correction}, dtype);
    });
    add_row("logsumexp", name(dtype), [=] { check_reduction({Op::logsumexp}, dtype); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
