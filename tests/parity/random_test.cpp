// uniform and normal must give the numbers that docs/design/numerics/random.md specifies, for every
// layout, with the correct distribution.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tests/parity/grid.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/math/normal.h"

namespace wick::parity {
namespace {

/// Philox4x32-10 as in its paper.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               1, 0};
  std::array<uint32_t, 2> k = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * c[0], b = uint64_t{0xcd9e8d57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    k[0] += 0x9e3779b9;
    k[1] += 0xbb67ae85;
  }
  return c;
}

/// Returns the number in [0, 1) that random words represent: 24 bits of one word, or 53 bits of
/// two.
long double spread(const std::array<uint32_t, 4>& words, size_t index, bool wide) {
  if (!wide) return std::ldexp(static_cast<long double>(words[index] >> 8), -24);
  const uint64_t both = uint64_t{words[2 * index]} << 32 | words[2 * index + 1];
  return std::ldexp(static_cast<long double>(both >> 11), -53);
}

/// Number i of a call, in the compute type and before the last steps.
struct Drawn {
  long double uniform;
  long double first, second;  ///< inputs of the Box-Muller method
  bool sine;
};
Drawn draw(uint64_t seed, uint64_t first, uint64_t i, bool wide) {
  const uint64_t each = wide ? 2 : 4;
  const auto words = philox(seed, first + i / each);
  const size_t k = i % each;
  const size_t pair = k / 2 * 2;
  return {spread(words, k, wide), spread(words, pair, wide), spread(words, pair + 1, wide),
          k % 2 == 1};
}

template <class A>
A normal_number(const Drawn& d) {
  const auto pair = math::normal_pair(static_cast<A>(d.first), static_cast<A>(d.second));
  return d.sine ? pair.b : pair.a;
}

uint64_t expected_bits(Op op, DType dtype, const Drawn& d, double a, double b) {
  if (dtype == DType::f64) {
    if (op == Op::normal) return encode(dtype, a + normal_number<double>(d) * b);
    const double u = static_cast<double>(d.uniform), product = u * (b - a);
    return encode(dtype, a + product);
  }
  const auto x = static_cast<float>(a), y = static_cast<float>(b);
  const float width = y - x;
  const float product =
      op == Op::normal ? normal_number<float>(d) * y : static_cast<float>(d.uniform) * width;
  return encode(dtype, x + product);
}

/// All layouts, and sizes around the numbers of elements that a thread and a thread block of a GPU
/// generate.
std::vector<Geometry> cases() {
  std::vector<Geometry> list(geometries().begin(), geometries().end());
  for (int64_t n : {1, 2, 3, 5, 15, 16, 17, 31, 33, 4093, 4096, 9001}) {
    list.push_back({"contiguous", Place::contiguous, {n}});
  }
  list.push_back({"sliced", Place::sliced, {1001}});
  list.push_back({"sliced", Place::sliced, {9, 48}});
  return list;
}

void check(Op op, DType dtype) {
  const bool wide = dtype == DType::f64;
  const std::pair<double, double> parameters[] = {{0, 1}, {-3.5, 2.25}};
  for (const Geometry& g : cases()) {
    if (!here(g)) continue;
    for (const auto& [a, b] : parameters) {
      const double low = a, high = b;
      const uint64_t seed = 0x123456789abcdefu + static_cast<uint64_t>(g.shape.elems());
      const uint64_t first =
          g.shape.rank() == 2 ? 0xfffffffdu : 5;  // across a carry of the counter
      TestTensor out(dtype, g.place, g.shape, 0, true);
      const std::string what =
          fmt::format("{}.{} {}{}", name(op), name(dtype), g.name, g.shape.str());
      if (!run_everywhere(what, out, {}, [&](Backend& backend, const View& o, auto) {
            backend.random(op, o, seed, first, low, high);
          })) {
        return;
      }
      std::vector<uint64_t> expected(static_cast<size_t>(out.elems()));
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = expected_bits(op, dtype, draw(seed, first, i, wide), low, high);
      }
      expect_bits(what, out, expected);
      if (failed()) return;
    }
  }
}

std::vector<double> sample(Op op, DType dtype, int64_t n, uint64_t seed) {
  TestTensor out(dtype, Place::contiguous, {n}, 0, true);
  Backend* fastest = nullptr;
  for (const Target& target : targets()) {
    if (target.name.starts_with("cpu")) fastest = target.backend;
  }
  fastest->random(op, out.view(), seed, 0, 0, 1);
  return out.doubles();
}

double distribution(Op op, double x) {
  return op == Op::uniform ? std::clamp(x, 0.0, 1.0) : 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// Checks moments, and the largest distance between the sample's distribution and the exact one
/// (Kolmogorov-Smirnov). Each limit is exceeded by one sample in a million.
void check_statistics(Op op, DType dtype) {
  constexpr int64_t kCount = 1 << 20;
  const double n = static_cast<double>(kCount), root = std::sqrt(n);
  for (uint64_t seed : {1u, 2u, 3u}) {
    std::vector<double> x = sample(op, dtype, kCount, seed);
    const bool uniform = op == Op::uniform;
    const double center = uniform ? 0.5 : 0.0, variance = uniform ? 1.0 / 12 : 1.0;
    double mean = 0, second = 0, third = 0, fourth = 0, lagged = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = (x[i] - center) / std::sqrt(variance);
      mean += d, second += d * d, third += d * d * d, fourth += d * d * d * d;
      if (i > 0) lagged += d * (x[i - 1] - center) / std::sqrt(variance);
    }
    EXPECT_LT(std::fabs(mean / n), 5 / root);
    EXPECT_LT(std::fabs(second / n - 1), 5 * (uniform ? 0.9 : 1.42) / root);
    EXPECT_LT(std::fabs(third / n), 5 * (uniform ? 2.0 : 3.9) / root);
    EXPECT_LT(std::fabs(fourth / n - (uniform ? 1.8 : 3.0)), 5 * (uniform ? 2.6 : 9.8) / root);
    EXPECT_LT(std::fabs(lagged / n), 5 / root);
    std::sort(x.begin(), x.end());
    double distance = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double f = distribution(op, x[i]), at = static_cast<double>(i);
      distance = std::max({distance, f - at / n, (at + 1) / n - f});
    }
    EXPECT_LT(distance, 2.7 / root);
    EXPECT_GE(x.front(), uniform ? 0.0 : -7.0);
    EXPECT_LT(x.back(), uniform ? 1.0 : 7.0);
  }
}

void check_threads() {
  cpu::ThreadPool& pool = cpu::ThreadPool::global();
  const int usual = pool.threads();
  for (Op op : {Op::uniform, Op::normal}) {
    std::vector<double> first;
    for (int threads : {1, 2, 3, 7}) {
      pool.set_threads(threads);
      const std::vector<double> x = sample(op, DType::f32, 100003, 9);
      if (threads == 1) first = x;
      EXPECT_EQ(x, first) << threads << " threads";
    }
  }
  pool.set_threads(usual);
}

const bool added = [] {
  for (Op op : {Op::uniform, Op::normal}) {
    add_rows(op, [=](DType dtype) { check(op, dtype); });
    for (DType dtype : {DType::f32, DType::f64}) {
      add(fmt::format("{}.statistics.{}", name(op), name(dtype)),
          [=] { check_statistics(op, dtype); });
    }
  }
  add("uniform.threads", check_threads);
  return true;
}();

}  // namespace
}  // namespace wick::parity
