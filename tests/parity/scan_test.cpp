// cumsum and cumprod: bit-equal to the specified order along any dim, and close to the exact sums
// and products.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/backend/cpu/scan/scan_kernels.h"
#include "wick/backend/cpu/thread_pool.h"

namespace wick::parity {
namespace {

struct Case {
  Place place;
  Shape shape;
  int dim;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const Geometry& g : geometries()) {
    for (int dim = 0; dim < g.shape.rank(); ++dim) list.push_back({g.place, g.shape, dim});
  }
  for (int64_t n : {1, 15, 16, 17, 255, 256, 257, 300, 4095, 4096, 4097, 9000}) {
    list.push_back({Place::contiguous, {2, n}, 1});
    list.push_back({Place::stepped, {2, n}, 1});
    list.push_back({Place::contiguous, {n, 21}, 0});
    list.push_back({Place::sliced, {n, 3}, 0});
  }
  // Around the lengths at which GPUs change their plan.
  for (int64_t n : {31, 32, 33, 511, 513, 2049}) {
    list.push_back({Place::contiguous, {3, n}, 1});
    list.push_back({Place::contiguous, {n, 17}, 0});
  }
  list.push_back({Place::stepped, {3, 300, 9}, 1});
  list.push_back({Place::contiguous, {8193, 8}, 0});
  list.push_back({Place::contiguous, {3000, 200}, 0});
  list.push_back({Place::contiguous, {100000}, 0});
  return list;
}

/// A term of a sum; the default is +0.
template <class A>
struct Term {
  A value = 0;

  friend Term combine(Term a, Term b) { return {a.value + b.value}; }
};

/// A factor as an f64 mantissa with an unbounded exponent.
struct Factor {
  double mantissa = 1;  // in [1/2, 1), or 0, infinite or NaN; 1 by default
  int64_t exponent = 0;

  Factor() = default;
  explicit Factor(double x, int64_t power = 0) {
    int own = 0;
    mantissa = std::isfinite(x) ? std::frexp(x, &own) : x;
    exponent = own + power;
  }
  friend Factor combine(const Factor& a, const Factor& b) {
    Factor product;
    product.mantissa = a.mantissa * b.mantissa;
    product.exponent = a.exponent + b.exponent;
    if (std::fabs(product.mantissa) < 0.5) {  // 0, or at least 1/4
      product.mantissa *= 2;
      --product.exponent;
    }
    return product;
  }
  double value() const {
    return std::ldexp(mantissa, static_cast<int>(std::clamp<int64_t>(exponent, -3000, 3000)));
  }
};

/// Inclusive scan of sixteen numbers, by doubling distances.
template <class N>
void scan16(std::array<N, 16>& x) {
  for (size_t distance = 1; distance < 16; distance *= 2) {
    const std::array<N, 16> old = x;
    for (size_t i = 0; i < 16; ++i) x[i] = combine(old[i], i >= distance ? old[i - distance] : N{});
  }
}

/// Scans one line (all positions along the dim) in the specified order.
template <class N>
std::vector<N> ordered_scan(const std::vector<N>& x) {
  std::vector<N> y(x.size());
  N carry{};
  for (size_t start = 0; start < x.size(); start += 4096) {
    const size_t n = std::min<size_t>(4096, x.size() - start);
    std::array<std::array<N, 16>, 256> local{};
    std::array<std::array<N, 16>, 16> groups{};
    std::array<N, 16> supers{};
    for (size_t c = 0; c < n; ++c) local[c / 16][c % 16] = x[start + c];
    for (size_t g = 0; g < 256; ++g) {
      scan16(local[g]);
      groups[g / 16][g % 16] = local[g][15];
    }
    for (size_t s = 0; s < 16; ++s) {
      scan16(groups[s]);
      supers[s] = groups[s][15];
    }
    scan16(supers);
    for (size_t c = 0; c < n; ++c) {
      const size_t g = c / 16, s = g / 16;
      const N of_supers = s > 0 ? supers[s - 1] : N{};
      const N of_groups = g % 16 > 0 ? groups[s][g % 16 - 1] : N{};
      y[start + c] = combine(combine(combine(carry, of_supers), of_groups), local[g][c % 16]);
    }
    carry = combine(carry, supers[15]);
  }
  return y;
}

uint64_t cut(DType dtype, uint64_t bits) {
  return bits & (~uint64_t{0} >> (64 - 8 * info(dtype).block_bytes));
}

/// Returns the bits of the sums or products along one line.
std::vector<uint64_t> scan_bits(Op op, DType dtype, const std::vector<uint64_t>& line) {
  std::vector<uint64_t> result;
  if (!is_float(dtype)) {
    uint64_t total = op == Op::cumsum ? 0 : 1;
    for (uint64_t bits : line) {
      total = op == Op::cumsum ? total + bits : total * bits;
      result.push_back(cut(dtype, total));
    }
    return result;
  }
  if (op == Op::cumprod) {
    std::vector<Factor> x;
    for (uint64_t bits : line) x.push_back(Factor(static_cast<double>(decode(dtype, bits))));
    for (const Factor& y : ordered_scan(x)) result.push_back(encode(dtype, y.value()));
    return result;
  }
  with_compute_type(dtype, [&](auto zero) {
    using A = decltype(zero);
    std::vector<Term<A>> x;
    for (uint64_t bits : line) x.push_back({static_cast<A>(decode(dtype, bits))});
    for (Term<A> y : ordered_scan(x)) result.push_back(encode(dtype, y.value));
  });
  return result;
}

/// Expects products near those of sequential multiplication in long double, as long as these are
/// in its range.
void expect_near_products(const std::string& what, DType dtype, const std::vector<uint64_t>& line,
                          const std::vector<uint64_t>& products) {
  if (!is_float(dtype)) return;
  long double exact = 1;
  const FloatFormat format = format_of(dtype);
  for (size_t i = 0; i < line.size(); ++i) {
    exact *= decode(dtype, line[i]);
    if (!std::isnormal(exact)) return;
    const long double near = std::clamp(exact, -format.max, format.max);
    const long double tolerance =
        0.51L * ulp(dtype, near) + static_cast<long double>(i) * 0x1p-53L * std::fabs(near);
    const long double got = decode(dtype, products[i]);
    if (std::isinf(got) && std::fabs(exact) >= format.max) continue;
    if (std::fabs(got - near) > tolerance) {
      ADD_FAILURE() << what << ": element " << i << " is " << got << ", not " << exact;
      return;
    }
  }
}

/// Expects sums within the error of some twenty additions, relative to the magnitudes so far.
void expect_near_sums(const std::string& what, DType dtype, const std::vector<uint64_t>& line,
                      const std::vector<uint64_t>& sums) {
  if (!is_float(dtype)) return;
  long double exact = 0, magnitude = 0;
  const long double step = dtype == DType::f64 ? 0x1p-52L : 0x1p-23L;
  const FloatFormat format = format_of(dtype);
  for (size_t i = 0; i < line.size(); ++i) {
    exact += decode(dtype, line[i]);
    magnitude += std::fabs(decode(dtype, line[i]));
    const long double near = std::clamp(exact, -format.max, format.max);
    const long double tolerance = 0.51L * ulp(dtype, near) + 20 * step * magnitude;
    const long double got = decode(dtype, sums[i]);
    if (std::isinf(got) && std::fabs(exact) >= format.max) continue;
    if (std::fabs(got - near) > tolerance) {
      ADD_FAILURE() << what << ": element " << i << " is " << got << ", not " << exact;
      return;
    }
  }
}

void check(Op op, DType dtype) {
  Random random(91);
  const auto& expect_near = op == Op::cumsum ? expect_near_sums : expect_near_products;
  for (const Case& c : cases()) {
    if (!here(c.place, c.shape)) continue;
    for (Values values : kAllValues) {
      if (values != Values::normal && c.shape.elems() > 20000) continue;
      TestTensor x(dtype, c.place, c.shape, 1), y(dtype, c.place, c.shape, 0, true);
      x.fill(values, random);
      const std::string what = fmt::format("{}.{} {}{} dim {} {}", name(op), name(dtype),
                                           name(c.place), c.shape.str(), c.dim, name(values));
      const TestTensor* const inputs[] = {&x};
      if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
            b.scan(op, o, in[0], c.dim);
          })) {
        return;
      }
      const std::vector<uint64_t> bits = x.bits();
      std::vector<uint64_t> expected(bits.size());
      const Around around(c.shape, c.dim);
      for (int64_t o = 0; o < around.outer * around.inner; ++o) {
        const auto at = [&](int64_t i) {
          return static_cast<size_t>((o / around.inner * around.n + i) * around.inner +
                                     o % around.inner);
        };
        std::vector<uint64_t> line;
        for (int64_t i = 0; i < around.n; ++i) line.push_back(bits[at(i)]);
        const std::vector<uint64_t> totals = scan_bits(op, dtype, line);
        for (int64_t i = 0; i < around.n; ++i) expected[at(i)] = totals[static_cast<size_t>(i)];
        if (values == Values::normal) expect_near(what, dtype, line, totals);
      }
      expect_bits(what, y, expected);
      if (failed()) return;
    }
  }
}

/// Scans one long row, a few rows, and columns, for any number of threads.
void check_threads(Op op, DType dtype) {
  cpu::ThreadPool& pool = cpu::ThreadPool::global();
  const int usual = pool.threads();
  Random random(92);
  for (const auto& [shape, dim] :
       {std::pair{Shape{200001}, 0}, {Shape{3, 40000}, 1}, {Shape{700, 300}, 0}}) {
    TestTensor x(dtype, Place::contiguous, shape, 1), y(dtype, Place::contiguous, shape, 0, true);
    x.fill(Values::normal, random);
    std::vector<uint64_t> first;
    for (int threads : {1, 2, 3, 7}) {
      pool.set_threads(threads);
      targets()[0].backend->scan(op, y.view(), std::as_const(x).view(), dim);
      if (threads == 1) first = y.bits();
      EXPECT_EQ(y.bits(), first) << shape.str() << " with " << threads << " threads";
    }
  }
  pool.set_threads(usual);
}

/// Kernels with non-temporal stores, which only long results use, must give the bits of the others,
/// wherever a chunk starts.
void check_streams(const cpu::ScanKernels& table, std::string_view isa, DType dtype) {
  Random random(93);
  const auto d = static_cast<size_t>(dtype);
  const int64_t bytes = bytes_of(dtype, 1), n = 2 * cpu::kScanChunk;
  TestTensor x(dtype, Place::contiguous, {n}, 1), y(dtype, Place::contiguous, {n}, 2, true);
  x.fill(Values::normal, random);
  const auto run = [&](bool stream, int64_t from, int64_t count) {
    y.wipe();
    const char* in = reinterpret_cast<const char*>(std::as_const(x).storage().data());
    char* out = reinterpret_cast<char*>(y.storage().data()) + from * bytes;
    cpu::ScanTotal total{};
    table.row[d](in, 1, count, table.identity[d], out, 1, stream, &total);
    const auto all = y.storage();
    return std::vector<std::byte>(all.begin(), all.end());
  };
  for (int64_t from : {0, 1, 7, 32}) {
    for (int64_t count : {int64_t{3}, int64_t{64}, int64_t{4000}, cpu::kScanChunk}) {
      EXPECT_EQ(run(true, from, count), run(false, from, count))
          << isa << " " << name(dtype) << " from " << from << ", " << count << " elements";
    }
  }
}

void check_all_streams() {
  for (cpu::Isa isa : cpu::available_isas()) {
    for (int d = 0; d < kRealDTypeCount; ++d) {
      check_streams(WICK_SELECT_KERNELS(isa, scan_kernels, no_dots), cpu::name(isa),
                    static_cast<DType>(d));
      check_streams(WICK_SELECT_KERNELS(isa, product_scan_kernels, no_dots), cpu::name(isa),
                    static_cast<DType>(d));
    }
  }
}

/// Products whose prefixes leave the range of f64 and return to it.
void check_ranges() {
  constexpr int64_t kLength = 10000;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8e4m3}) {
    const long double large = format_of(dtype).max, small = 1 / large;
    TestTensor x(dtype, Place::contiguous, {kLength}, 1), y(dtype, Place::contiguous, {kLength}, 0);
    const auto product_of = [&](const std::function<long double(int64_t)>& element) {
      x.fill_bits([&](int64_t i) { return encode(dtype, element(i)); });
      targets()[0].backend->scan(Op::cumprod, y.view(), std::as_const(x).view(), 0);
      std::vector<long double> values;
      for (const uint64_t bits : y.bits()) values.push_back(decode(dtype, bits));
      return values;
    };
    // The first element is 0.
    for (const long double v : product_of([&](int64_t i) { return i == 0 ? 0 : large; })) {
      ASSERT_EQ(v, 0) << name(dtype);
    }
    // A later element is 0.
    const auto behind = product_of([&](int64_t i) { return i == 9000 ? 0 : large; });
    ASSERT_TRUE(behind[8999] >= large) << name(dtype);
    ASSERT_EQ(behind[9000], 0) << name(dtype);
    ASSERT_EQ(behind.back(), 0) << name(dtype);
    // Powers of two that leave the range and return.
    const auto back = product_of([&](int64_t i) { return i < kLength / 2 ? 4 : 0.25L; });
    ASSERT_EQ(back[2], 64) << name(dtype);
    ASSERT_EQ(back.back(), 1) << name(dtype);
    const auto forth = product_of([&](int64_t i) { return i < kLength / 2 ? 0.25L : 4; });
    ASSERT_EQ(forth[kLength / 2], 0) << name(dtype);
    ASSERT_EQ(forth.back(), 1) << name(dtype);
    ASSERT_EQ(product_of([&](int64_t i) { return i < 5000 ? small : 1; }).back(), 0) << name(dtype);
    // An infinite element, then 0.
    if (dtype == DType::f8e4m3) continue;
    const auto infinite = product_of([&](int64_t i) {
      return i == 0 ? HUGE_VALL : i == 9 ? 0 : 1;
    });
    ASSERT_TRUE(std::isinf(infinite[8]) && std::isnan(infinite[9])) << name(dtype);
  }
}

const bool added = [] {
  for (const Op op : {Op::cumsum, Op::cumprod}) {
    for (int d = 0; d < kRealDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      add_row(name(op), name(dtype), [=] { check(op, dtype); });
    }
    for (DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i32}) {
      add(fmt::format("{}.threads.{}", name(op), name(dtype)), [=] { check_threads(op, dtype); });
    }
  }
  add("cumprod_ranges", check_ranges);
  add("scan_streams", check_all_streams);
  return true;
}();

}  // namespace
}  // namespace wick::parity
