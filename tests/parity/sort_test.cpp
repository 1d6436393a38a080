// sort, argsort and topk have a unique result, because positions decide between equal elements.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"

namespace wick::parity {
namespace {

struct Case {
  Place place;
  Shape shape;
  int dim;
  int64_t keep;
};

std::vector<Case> cases(Op op) {
  std::vector<Case> list;
  const auto add = [&](Place place, const Shape& shape, int dim) {
    const int64_t n = shape[dim];
    if (op != Op::topk) return list.push_back({place, shape, dim, n});
    for (int64_t keep : {int64_t{1}, n / 12, n / 2}) {
      if (keep <= n) list.push_back({place, shape, dim, keep});
    }
  };
  for (const Geometry& g : geometries()) {
    for (int dim = 0; dim < g.shape.rank(); ++dim) add(g.place, g.shape, dim);
  }
  for (int64_t n : {1, 2, 8, 9, 64, 159, 160, 161, 255, 256, 257, 511, 1000, 5000}) {
    add(Place::contiguous, {3, n}, 1);
    add(Place::contiguous, {n, 19}, 0);
    add(Place::stepped, {2, n}, 1);
  }
  add(Place::contiguous, {70000}, 0);
  // Around the lengths at which GPUs change their plan.
  for (int64_t n : {31, 33, 127, 128, 129, 1023, 1025, 2049}) add(Place::contiguous, {2, n}, 1);
  for (int64_t n : {8192, 8193, 12289}) add(Place::contiguous, {n}, 0);
  add(Place::contiguous, {8193, 2}, 0);
  add(Place::stepped, {2, 129, 3}, 1);
  return list;
}

/// Returns whether element a precedes b, which has a later position.
bool before(DType dtype, uint64_t a, uint64_t b, bool descending) {
  if (!is_float(dtype)) {
    const int64_t x = decode_int(dtype, a), y = decode_int(dtype, b);
    return descending ? x > y : x < y;
  }
  const long double x = decode(dtype, a), y = decode(dtype, b);
  if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
  if (x == 0 && y == 0) {
    return descending ? std::signbit(y) && !std::signbit(x) : std::signbit(x) && !std::signbit(y);
  }
  return descending ? x > y : x < y;
}

/// The order of the elements before sorting.
enum class Order : uint8_t { normal, special, bits, few, rising, falling, equal };

void fill(TestTensor& x, Order order, Random& random) {
  const DType dtype = x.dtype();
  switch (order) {
    case Order::normal:
      return x.fill(Values::normal, random);
    case Order::special:
      return x.fill(Values::special, random);
    case Order::bits:
      return x.fill(Values::bits, random);
    case Order::few:
      return x.fill_with([&](int64_t) { return static_cast<long double>(random.below(3)); });
    case Order::equal:
      return x.fill_with([&](int64_t) { return 7.0L; });
    default:
      const auto n = static_cast<long double>(std::max<int64_t>(x.elems(), 1));
      const long double most = is_float(dtype) ? 400 : dtype == DType::i64 ? 0x1p62L : 120;
      x.fill_with([&](int64_t i) {
        const long double part = static_cast<long double>(i) / n;
        return std::floor(most * (order == Order::rising ? part : 1 - part));
      });
  }
}

constexpr Order kOrders[] = {Order::normal, Order::special, Order::bits, Order::few,
                             Order::rising, Order::falling, Order::equal};

/// Computes both outputs, separately and together; for argsort, the indices only.
bool run(Op op, const std::string& what, const Case& c, const TestTensor& x, TestTensor& values,
         TestTensor& indices, bool descending) {
  const TestTensor* const inputs[] = {&x};
  const View none{nullptr, x.dtype(), {}}, no_indices{nullptr, DType::u32, {}};
  std::vector<uint32_t> together(static_cast<size_t>(indices.elems()));
  const bool places_good = run_everywhere(
      what + " indices", indices, inputs,
      [&](Backend& b, const View& o, auto in) { b.sort(none, o, in[0], c.dim, descending); });
  if (op == Op::argsort) return places_good;
  const bool good =
      places_good &&
      run_everywhere(what + " values", values, inputs,
                     [&](Backend& b, const View& o, auto in) {
                       b.sort(o, no_indices, in[0], c.dim, descending);
                     }) &&
      run_everywhere(what + " both", values, inputs, [&](Backend& b, const View& o, auto in) {
        const size_t bytes = together.size() * sizeof(uint32_t);
        void* memory = b.alloc(bytes);
        const View places{memory, DType::u32, Layout::contiguous(indices.shape())};
        b.sort(o, places, in[0], c.dim, descending);
        const test::OwnCopies own(b.device());
        b.download(together.data(), memory, bytes);
        b.free(memory, bytes);
      });
  if (good && c.keep > 0) {
    const std::vector<uint64_t> alone = indices.bits();
    EXPECT_TRUE(std::equal(together.begin(), together.end(), alone.begin())) << what;
  }
  return good;
}

void check(Op op, DType dtype) {
  Random random(81);
  for (const Case& c : cases(op)) {
    if (!here(c.place, c.shape)) continue;
    for (Order order : kOrders) {
      if (c.shape.elems() > 20000 && order != Order::normal && order != Order::special) continue;
      const bool is_long = c.shape[c.dim] > 8000;
      if (is_long && order != Order::normal && order != Order::special && order != Order::equal) {
        continue;
      }
      const bool descending = op == Op::topk || random.below(2) == 0;
      TestTensor x(dtype, c.place, c.shape, 1);
      const Shape kept = c.shape.with(c.dim, c.keep);
      TestTensor values(dtype, c.place, kept, 2, true), indices(DType::u32, c.place, kept, 0, true);
      fill(x, order, random);
      const std::string what =
          fmt::format("{}.{} {}{} dim {} keep {} order {} {}", name(op), name(dtype), name(c.place),
                      c.shape.str(), c.dim, c.keep, static_cast<int>(order),
                      descending ? "descending" : "ascending");
      if (!run(op, what, c, x, values, indices, descending)) return;
      const std::vector<uint64_t> bits = x.bits();
      const Around around(c.shape, c.dim);
      std::vector<uint64_t> places(static_cast<size_t>(kept.elems())), sorted = places;
      std::vector<int64_t> line(static_cast<size_t>(around.n));
      for (int64_t o = 0; o < around.outer * around.inner; ++o) {
        const int64_t outer = o / around.inner, inner = o % around.inner;
        const auto at = [&](int64_t i, int64_t n) {
          return static_cast<size_t>((outer * n + i) * around.inner + inner);
        };
        std::iota(line.begin(), line.end(), 0);
        std::stable_sort(line.begin(), line.end(), [&](int64_t a, int64_t b) {
          return before(dtype, bits[at(a, around.n)], bits[at(b, around.n)], descending);
        });
        for (int64_t i = 0; i < c.keep; ++i) {
          const int64_t place = line[static_cast<size_t>(i)];
          places[at(i, c.keep)] = static_cast<uint64_t>(place);
          sorted[at(i, c.keep)] = bits[at(place, around.n)];
        }
      }
      expect_bits(what + " indices", indices, places);
      if (op != Op::argsort) expect_bits(what + " values", values, sorted);
      if (failed()) return;
    }
  }
}

const bool added = [] {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    add_row("sort", name(dtype), [=] { check(Op::sort, dtype); });
    add_row("argsort", name(dtype), [=] { check(Op::argsort, dtype); });
    add_row("topk", name(dtype), [=] { check(Op::topk, dtype); });
  }
  // Rows that are longer than the rows in check().
  add("argsort.large", [] {
    Random random(82);
    TestTensor x(DType::f32, Place::contiguous, {3, 300001}, 1);
    TestTensor y(DType::u32, Place::contiguous, {3, 300001}, 0, true);
    x.fill(Values::normal, random);
    const TestTensor* const inputs[] = {&x};
    run_everywhere("argsort", y, inputs, [&](Backend& b, const View& o, auto in) {
      b.sort({nullptr, DType::f32, {}}, o, in[0], 1, false);
    });
    const std::vector<double> values = x.doubles();
    const std::vector<int64_t> places = y.ints();
    for (size_t i = 1; i < places.size(); ++i) {
      if (i % 300001 == 0) continue;
      const size_t row = i / 300001 * 300001;
      const auto a = static_cast<size_t>(places[i - 1]), b = static_cast<size_t>(places[i]);
      const double left = values[row + a], right = values[row + b];
      ASSERT_TRUE(left < right || (left == right && a < b)) << i;
    }
  });
  // topk of long rows: k up to 1024, the most that GPUs select from chunks, and one more.
  for (const DType dtype : {DType::bf16, DType::f32, DType::i64}) {
    add(fmt::format("topk.large.{}", name(dtype)), [=] {
      Random random(83);
      for (const int64_t keep : {1, 40, 1024, 1025}) {
        TestTensor x(dtype, Place::contiguous, {2, 131072}, 1);
        TestTensor y(dtype, Place::contiguous, {2, keep}, 2, true);
        TestTensor places(DType::u32, Place::contiguous, {2, keep}, 0, true);
        x.fill(keep == 40 ? Values::special : Values::normal, random);
        const TestTensor* const inputs[] = {&x};
        run_everywhere("topk values", y, inputs, [&](Backend& b, const View& o, auto in) {
          b.sort(o, {nullptr, DType::u32, {}}, in[0], 1, true);
        });
        run_everywhere("topk indices", places, inputs, [&](Backend& b, const View& o, auto in) {
          b.sort({nullptr, dtype, {}}, o, in[0], 1, true);
        });
        // The CPU's selection is compared with a reference in check().
        const std::vector<uint64_t> bits = x.bits(), values = y.bits();
        const std::vector<int64_t> from = places.ints();
        for (size_t i = 0; i < from.size(); ++i) {
          const size_t row = i / static_cast<size_t>(keep) * 131072;
          if (is_float(dtype) && std::isnan(decode(dtype, values[i]))) continue;
          ASSERT_EQ(values[i], bits[row + static_cast<size_t>(from[i])]) << keep << " " << i;
        }
      }
    });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
