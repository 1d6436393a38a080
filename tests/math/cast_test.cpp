#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/math/loops.h"
#include "tests/math/oracle.h"
#include "tests/math/samples.h"

// An x87 long double represents every value of all ten dtypes exactly, so the reference needs no
// conversion between two dtypes.
static_assert(std::numeric_limits<long double>::digits >= 64);

namespace wick::math_test {
namespace {

bool is_integer(Real t) { return t <= kI64; }
bool is_signed(Real t) { return t == kI16 || t == kI32 || t == kI64; }
int bits(Real t) { return 8 * kRealBytes[t]; }

template <class T>
T load(const unsigned char* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

/// Returns the value stored at p.
long double value(Real t, const unsigned char* p) {
  switch (t) {
    case kU8:
      return *p;
    case kU32:
      return load<std::uint32_t>(p);
    case kI16:
      return load<std::int16_t>(p);
    case kI32:
      return load<std::int32_t>(p);
    case kI64:
      return load<std::int64_t>(p);
    case kF32:
      return load<float>(p);
    case kF64:
      return load<double>(p);
    case kF8E4M3:
      return small_f8e4m3().value(*p);
    default:
      return small_float(t)->value(load<std::uint16_t>(p));
  }
}

/// Returns the low bits of the pattern that v becomes in type `to`.
std::uint64_t expected(Real from, Real to, long double v) {
  if (const SmallFloat* format = small_float(to)) return format->nearest(v);
  if (to == kF32) return view<std::uint32_t>(static_cast<float>(v));
  if (to == kF64) return view<std::uint64_t>(static_cast<double>(v));
  if (std::isnan(v)) return 0;
  const long double low = is_signed(to) ? -std::ldexp(1.0L, bits(to) - 1) : 0.0L;
  const long double high = std::ldexp(1.0L, bits(to) - (is_signed(to) ? 1 : 0)) - 1;
  if (!is_integer(from)) v = v < low ? low : (v > high ? high : std::trunc(v));
  const auto exact = static_cast<__int128>(v);
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits(to));
  return static_cast<std::uint64_t>(exact) & mask;
}

/// Returns patterns of a type: the extreme values of every dtype that it represents, and random
/// ones.
std::vector<unsigned char> samples(Real t, std::size_t* count) {
  std::vector<unsigned char> out;
  const auto push = [&](std::uint64_t pattern) {
    for (int i = 0; i < kRealBytes[t]; ++i) {
      out.push_back(static_cast<unsigned char>(pattern >> (8 * i)));
    }
  };
  if (bits(t) <= 16) {
    for (std::uint32_t p = 0; p < 1u << bits(t); ++p) push(p);
  } else if (is_integer(t)) {
    for (int shift = 0; shift < bits(t); ++shift) {
      for (std::int64_t d = -3; d <= 3; ++d) {
        const std::uint64_t p = (std::uint64_t{1} << shift) + static_cast<std::uint64_t>(d);
        push(p), push(~p + 1);
        // Half an ulp of 8, 11, 24 and 53 bits next to the power of two.
        for (const int digits : {4, 8, 11, 24, 53}) {
          if (shift < digits) continue;
          const std::uint64_t half = std::uint64_t{1} << (shift - digits);
          push(p + half), push(p + 3 * half), push(~(p + half) + 1), push(~(p + 3 * half) + 1);
        }
      }
    }
    for (const std::uint64_t p : {448u, 464u, 65504u, 65519u, 65520u, 65536u})
      push(p), push(~p + 1);
  } else {
    if (t == kF32) {
      for (const float x : edges_f32()) push(view<std::uint32_t>(x));
    } else {
      for (const double x : edges_f64()) push(view<std::uint64_t>(x));
    }
    for (const double end : {128.0, 255.0, 256.0, 448.0, 464.0, 32767.0, 32768.0, 65504.0, 65520.0,
                             2147483647.0, 2147483648.0, 4294967295.0, 4294967296.0, 0x1p63, 0x1p64,
                             0x1.fffffep127, 0x1.fffffefffffffp127, 0x1.ffffffp127}) {
      for (const double x : {end, end - 1, end + 1, end - 0.5, end + 0.5, std::nextafter(end, 0.0),
                             std::nextafter(end, 1e300)}) {
        for (const double y : {x, -x}) {
          push(t == kF32 ? view<std::uint32_t>(static_cast<float>(y)) : view<std::uint64_t>(y));
        }
      }
    }
  }
  std::mt19937_64 g(static_cast<unsigned>(t) + 1);
  for (int i = 0; i < 20000; ++i) {
    std::uint64_t p = g();
    if (is_integer(t)) p >>= g() % 64;  // every magnitude
    if (t == kF64 && i % 2 == 0) p = (p & ~(std::uint64_t{0x7ff} << 52)) | (990 + p % 100) << 52;
    push(p);
  }
  *count = out.size() / static_cast<std::size_t>(kRealBytes[t]);
  return out;
}

bool is_nan_pattern(Real t, std::uint64_t p) {
  unsigned char bytes[8];
  std::memcpy(bytes, &p, 8);
  return std::isnan(value(t, bytes));
}

class Cast : public testing::TestWithParam<int> {};

TEST_P(Cast, FromEveryDtype) {
  const auto to = static_cast<Real>(GetParam());
  for (int k = 0; k < kReals; ++k) {
    const auto from = static_cast<Real>(k);
    std::size_t count = 0;
    const std::vector<unsigned char> in = samples(from, &count);
    ASSERT_GT(count, 20000u);
    std::vector<unsigned char> out(count * 8);
    for (const NamedLoops& set : available_loops()) {
      set.loops->cast[to][from](in.data(), out.data(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const long double v = value(from, &in[i * static_cast<std::size_t>(kRealBytes[from])]);
        std::uint64_t got = 0;
        const auto size = static_cast<std::size_t>(kRealBytes[to]);
        std::memcpy(&got, &out[i * size], size);
        const std::uint64_t want = expected(from, to, v);
        if (is_nan_pattern(to, want) && is_nan_pattern(to, got)) continue;
        ASSERT_EQ(got, want) << kRealNames[from] << " to " << kRealNames[to] << " on " << set.name
                             << ": " << static_cast<double>(v);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Math, Cast, testing::Range(0, static_cast<int>(kReals)),
                         [](const auto& test) { return kRealNames[test.param]; });

}  // namespace
}  // namespace wick::math_test
