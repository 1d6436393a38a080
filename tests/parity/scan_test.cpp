// cumsum: bit-equal to the specified order along any dim, and close to the exact sums.

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
  list.push_back({Place::contiguous, {3000, 200}, 0});
  list.push_back({Place::contiguous, {100000}, 0});
  return list;
}

/// Computes inclusive sums of sixteen numbers with doubling distances.
template <class A>
void scan16(std::array<A, 16>& x) {
  for (size_t distance = 1; distance < 16; distance *= 2) {
    const std::array<A, 16> old = x;
    for (size_t i = 0; i < 16; ++i) x[i] = old[i] + (i >= distance ? old[i - distance] : A{0});
  }
}

/// Scans one line (all positions along the dim) in the specified order.
template <class A>
std::vector<A> ordered_scan(const std::vector<A>& x) {
  std::vector<A> y(x.size());
  A carry = 0;
  for (size_t start = 0; start < x.size(); start += 4096) {
    const size_t n = std::min<size_t>(4096, x.size() - start);
    std::array<std::array<A, 16>, 256> local{};
    std::array<std::array<A, 16>, 16> groups{};
    std::array<A, 16> supers{};
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
      const A of_supers = s > 0 ? supers[s - 1] : A{0};
      const A of_groups = g % 16 > 0 ? groups[s][g % 16 - 1] : A{0};
      y[start + c] = ((carry + of_supers) + of_groups) + local[g][c % 16];
    }
    carry = carry + supers[15];
  }
  return y;
}

uint64_t cut(DType dtype, uint64_t bits) {
  return bits & (~uint64_t{0} >> (64 - 8 * info(dtype).block_bytes));
}

/// Returns the bits of the sums along one line.
std::vector<uint64_t> scan_bits(DType dtype, const std::vector<uint64_t>& line) {
  std::vector<uint64_t> result;
  if (!is_float(dtype)) {
    uint64_t sum = 0;
    for (uint64_t bits : line) result.push_back(cut(dtype, sum += bits));
    return result;
  }
  with_compute_type(dtype, [&](auto zero) {
    using A = decltype(zero);
    std::vector<A> x;
    for (uint64_t bits : line) x.push_back(static_cast<A>(decode(dtype, bits)));
    for (A y : ordered_scan(x)) result.push_back(encode(dtype, y));
  });
  return result;
}

/// Expects sums within the error of some twenty additions, relative to the magnitudes so far.
void expect_near(const std::string& what, DType dtype, const std::vector<uint64_t>& line,
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

void check(DType dtype) {
  Random random(91);
  for (const Case& c : cases()) {
    if (!here(c.place, c.shape)) continue;
    for (Values values : kAllValues) {
      if (values != Values::normal && c.shape.elems() > 20000) continue;
      TestTensor x(dtype, c.place, c.shape, 1), y(dtype, c.place, c.shape, 0, true);
      x.fill(values, random);
      const std::string what = fmt::format("cumsum.{} {}{} dim {} {}", name(dtype), name(c.place),
                                           c.shape.str(), c.dim, name(values));
      const TestTensor* const inputs[] = {&x};
      if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
            b.scan(Op::cumsum, o, in[0], c.dim);
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
        const std::vector<uint64_t> sums = scan_bits(dtype, line);
        for (int64_t i = 0; i < around.n; ++i) expected[at(i)] = sums[static_cast<size_t>(i)];
        if (values == Values::normal) expect_near(what, dtype, line, sums);
      }
      expect_bits(what, y, expected);
      if (failed()) return;
    }
  }
}

/// Scans one long row, a few rows, and columns, for any number of threads.
void check_threads(DType dtype) {
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
      targets()[0].backend->scan(Op::cumsum, y.view(), std::as_const(x).view(), dim);
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
    cpu::ScanSum carry{}, sum{};
    table.row[d](in, 1, count, carry, out, 1, stream, &sum);
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
      check_streams(WICK_SELECT_KERNELS(isa, scan_kernels, v4), cpu::name(isa),
                    static_cast<DType>(d));
    }
  }
}

const bool added = [] {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    add_row("cumsum", name(dtype), [=] { check(dtype); });
  }
  for (DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i32}) {
    add(fmt::format("cumsum.threads.{}", name(dtype)), [=] { check_threads(dtype); });
  }
  add("cumsum_streams", check_all_streams);
  return true;
}();

}  // namespace
}  // namespace wick::parity
