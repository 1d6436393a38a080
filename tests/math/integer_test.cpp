#include "wick/math/integer.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/math/loops.h"
#include "tests/math/oracle.h"
#include "wick/math/arithmetic.h"

namespace wick::math_test {
namespace {

using Wide = __int128;

/// Returns the extreme values of a type and random numbers of every magnitude.
template <class T>
std::vector<T> samples() {
  using L = std::numeric_limits<T>;
  std::vector<T> all = {T(0),
                        T(1),
                        T(2),
                        T(3),
                        T(7),
                        T(8),
                        T(15),
                        T(16),
                        T(31),
                        T(32),
                        T(63),
                        T(64),
                        T(-1),
                        T(-2),
                        T(-7),
                        T(100),
                        T(-100),
                        L::min(),
                        T(L::min() + 1),
                        L::max(),
                        T(L::max() - 1)};
  std::mt19937_64 g(sizeof(T));
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t magnitude = g() >> g() % 64;
    all.push_back(static_cast<T>(i % 2 == 0 ? magnitude : ~magnitude + 1));
  }
  return all;
}

template <class T>
T wrapped(Wide x) {
  return static_cast<T>(static_cast<std::uint64_t>(x));
}
Wide floor_div(Wide a, Wide b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0); }

/// Shifts by one bit at a time.
template <class T>
Wide shifted(T a, T count, bool left) {
  Wide x = a;
  const bool all = count < T{0} || static_cast<Wide>(count) >= 64;
  const int steps = all ? 64 : static_cast<int>(count);
  for (int i = 0; i < steps; ++i) x = left ? static_cast<Wide>(wrapped<T>(x * 2)) : floor_div(x, 2);
  return x;
}

template <class T>
Wide expected(WholeUnary f, T v) {
  const Wide x = v;
  switch (f) {
    case WholeUnary::k_neg:
      return -x;
    case WholeUnary::k_abs:
      return x < 0 ? -x : x;
    case WholeUnary::k_sqr:
      return static_cast<Wide>(static_cast<unsigned __int128>(x) *
                               static_cast<unsigned __int128>(x));
    case WholeUnary::k_relu:
      return x > 0 ? x : 0;
    case WholeUnary::k_sign:
      return x > 0 ? 1 : (x < 0 ? -1 : 0);
    case WholeUnary::k_bitwise_not:
      return -1 - x;
    case WholeUnary::k_logical_not:
      return x == 0 ? 1 : 0;
    case WholeUnary::k_to_bool:
      return x == 0 ? 0 : 1;
    case WholeUnary::kCount:
      break;
  }
  return 0;
}

template <class T>
Wide expected(WholeBinary f, T u, T v) {
  const Wide a = u, b = v;
  switch (f) {
    case WholeBinary::k_add:
      return a + b;
    case WholeBinary::k_sub:
      return a - b;
    case WholeBinary::k_mul:
      return static_cast<Wide>(static_cast<unsigned __int128>(a) *
                               static_cast<unsigned __int128>(b));
    case WholeBinary::k_maximum:
      return a < b ? b : a;
    case WholeBinary::k_minimum:
      return a < b ? a : b;
    case WholeBinary::k_bitwise_and:
      return a & b;
    case WholeBinary::k_bitwise_or:
      return a | b;
    case WholeBinary::k_bitwise_xor:
      return a ^ b;
    case WholeBinary::k_logical_and:
      return a != 0 && b != 0 ? 1 : 0;
    case WholeBinary::k_logical_or:
      return a != 0 || b != 0 ? 1 : 0;
    case WholeBinary::k_logical_xor:
      return (a != 0) != (b != 0) ? 1 : 0;
    case WholeBinary::k_shift_left:
      return shifted(u, v, true);
    case WholeBinary::k_shift_right:
      return shifted(u, v, false);
    case WholeBinary::kCount:
      break;
  }
  return 0;
}

template <class T>
bool expected(Compare f, T a, T b) {
  const bool less = a<b, more = a> b, same = a == b;
  switch (f) {
    case Compare::k_eq:
      return same;
    case Compare::k_ne:
      return !same;
    case Compare::k_lt:
      return less;
    case Compare::k_le:
      return less || same;
    case Compare::k_gt:
      return more;
    case Compare::k_ge:
      return more || same;
    case Compare::kCount:
      break;
  }
  return false;
}

/// Every pair of the samples.
template <class T>
struct Pairs {
  std::vector<T> a, b;
  explicit Pairs(const std::vector<T>& x) {
    for (const T u : x) {
      for (const T v : x) a.push_back(u), b.push_back(v);
    }
  }
};

template <class T>
void check_compare(int type, const Pairs<T>& p) {
  std::vector<unsigned char> out(p.a.size());
  for (const NamedLoops& set : available_loops()) {
    for (int f = 0; f < kCompares; ++f) {
      set.loops->compare[type][f](p.a.data(), p.b.data(), out.data(), out.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], expected(static_cast<Compare>(f), p.a[i], p.b[i]) ? 1 : 0)
            << set.name << " comparison " << f << " of " << +p.a[i] << " and " << +p.b[i];
      }
    }
  }
}

template <class T>
void check(Real dtype) {
  const std::vector<T> x = samples<T>();
  const Pairs<T> p(x);
  std::vector<T> y(x.size()), z(p.a.size());
  for (const NamedLoops& set : available_loops()) {
    for (int f = 0; f < kWholeUnaries; ++f) {
      set.loops->whole_unary[dtype][f](x.data(), y.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(y[i], wrapped<T>(expected(static_cast<WholeUnary>(f), x[i])))
            << set.name << " function " << f << " of " << +x[i];
      }
    }
    for (int f = 0; f < kWholeBinaries; ++f) {
      set.loops->whole_binary[dtype][f](p.a.data(), p.b.data(), z.data(), z.size());
      for (std::size_t i = 0; i < z.size(); ++i) {
        ASSERT_EQ(z[i], wrapped<T>(expected(static_cast<WholeBinary>(f), p.a[i], p.b[i])))
            << set.name << " function " << f << " of " << +p.a[i] << " and " << +p.b[i];
      }
    }
  }
  check_compare<T>(dtype, p);
  for (std::size_t i = 0; i < p.a.size(); ++i) {
    const T a = p.a[i], b = p.b[i];
    if (b == T{0}) continue;
    const T quotient = wrapped<T>(static_cast<Wide>(a) / static_cast<Wide>(b));
    const T remainder =
        wrapped<T>(static_cast<Wide>(a) -
                   floor_div(static_cast<Wide>(a), static_cast<Wide>(b)) * static_cast<Wide>(b));
    ASSERT_EQ(math::div(a, b), quotient) << +a << " over " << +b;
    ASSERT_EQ(math::rem(a, b), remainder) << +a << " over " << +b;
    ASSERT_EQ(math::rem_from_quotient(a, b, quotient), remainder) << +a << " over " << +b;
    ASSERT_EQ(math::clamp(a, b, T{100}), std::min(std::max(a, b), T{100}));
  }
}

TEST(Integer, U8) { check<math::u8>(kU8); }
TEST(Integer, U32) { check<math::u32>(kU32); }
TEST(Integer, I16) { check<math::i16>(kI16); }
TEST(Integer, I32) { check<math::i32>(kI32); }
TEST(Integer, I64) { check<math::i64>(kI64); }

/// NaN is unequal to everything and unordered; zeros of both signs are equal.
TEST(Integer, ComparisonsOfFloats) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-kInf, -1.5f, -0x1p-149f,
                                -0.0f, 0.0f,  0x1p-149f,
                                1.5f,  kInf,  std::numeric_limits<float>::quiet_NaN()};
  check_compare<float>(kWholes, Pairs<float>(x));
  check_compare<double>(kWholes + 1, Pairs<double>(std::vector<double>(x.begin(), x.end())));
}

TEST(Integer, Shifts) {
  EXPECT_EQ(math::shift_left(math::u8{1}, math::u8{8}), 0);
  EXPECT_EQ(math::shift_left(math::i32{1}, math::i32{-1}), 0);
  EXPECT_EQ(math::shift_right(math::i16{-5}, math::i16{16}), -1);
  EXPECT_EQ(math::shift_right(math::i64{-5}, math::i64{-3}), -1);
  EXPECT_EQ(math::shift_right(math::i32{5}, math::i32{32}), 0);
  EXPECT_EQ(math::shift_right(math::u32{0x80000000u}, math::u32{31}), 1u);
  EXPECT_EQ(math::shift_right(math::u32{0x80000000u}, math::u32{32}), 0u);
}

}  // namespace
}  // namespace wick::math_test
