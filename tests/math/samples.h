#pragma once

// Inputs for the tests of wick/math.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "tests/math/loops.h"

namespace wick::math_test {

template <class To, class From>
To view(const From& x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}

/// Returns the start of every binade, NaNs, infinities, zeros, and the thresholds of exp, tanh and
/// similar functions, each with its neighbours and with both signs.
inline std::vector<float> edges_f32() {
  std::vector<std::uint32_t> bits = {0x7f800001u, 0x7fc00000u, 0x7fffffffu};
  const auto around = [&](std::uint32_t b) {
    for (std::int64_t d = -3; d <= 3; ++d) {
      const std::int64_t n = std::int64_t{b} + d;
      if (n >= 0 && n <= 0x7f800000) bits.push_back(static_cast<std::uint32_t>(n));
    }
  };
  for (std::uint32_t e = 0; e < 256; ++e) around(e << 23);
  for (const float x : {0.3465736f, 0.55f,      0.6666667f, 0.5f,      1.3333334f, 2.5f,      9.0f,
                        10.0f,      16.63f,     17.33f,     87.33655f, 88.02969f,  88.72284f, 89.0f,
                        103.27893f, 103.97208f, 104.0f,     108.66f,   110.0f,     120.0f}) {
    around(view<std::uint32_t>(x));
  }
  std::vector<float> all;
  for (const std::uint32_t b : bits) {
    all.push_back(view<float>(b));
    all.push_back(view<float>(b | 0x80000000u));
  }
  return all;
}

/// The same values for double.
inline std::vector<double> edges_f64() {
  std::vector<std::uint64_t> bits = {0x7ff0000000000001u, 0x7ff8000000000000u, 0x7fffffffffffffffu};
  const auto around = [&](std::uint64_t b) {
    for (std::int64_t d = -3; d <= 3; ++d) {
      const std::int64_t n = static_cast<std::int64_t>(b) + d;
      if (n >= 0 && n <= 0x7ff0000000000000) bits.push_back(static_cast<std::uint64_t>(n));
    }
  };
  for (std::uint64_t e = 0; e < 2048; ++e) around(e << 52);
  for (const double x :
       {0.34657359027997264, 0.55, 0.7071067811865476, 1.4142135623730951, 0.5, 2.5, 19.1, 20.0,
        36.7368005696771, 37.43, 708.3964185322641, 709.782712893384, 710.0, 744.4400719213812,
        745.1332191019412, 746.0, 751.8, 760.0, 780.0}) {
    around(view<std::uint64_t>(x));
  }
  std::vector<double> all;
  for (const std::uint64_t b : bits) {
    all.push_back(view<double>(b));
    all.push_back(view<double>(b | 0x8000000000000000u));
  }
  return all;
}

/// Returns n patterns spread evenly over all floats. The odd step reaches every exponent and low
/// bit.
inline std::vector<float> spread_f32(std::size_t n, std::uint32_t start) {
  const std::uint32_t step = static_cast<std::uint32_t>((std::uint64_t{1} << 32) / n) | 1u;
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; ++i)
    all[i] = view<float>(start + static_cast<std::uint32_t>(i) * step);
  return all;
}

/// Returns n doubles: half have random patterns, half have a random exponent in the range where
/// functions are interesting.
inline std::vector<double> random_f64(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 g(seed);
  std::vector<double> all(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t b = g();
    if (i % 2 == 0) b = (b & 0x800fffffffffffffu) | (1023 - 20 + (b >> 52) % 31) << 52;
    all[i] = view<double>(b);
  }
  return all;
}

/// Returns a number with a random pattern, or one between 2^-12 and 2^8 in magnitude.
template <class F>
F any_number(std::mt19937_64& g) {
  if constexpr (sizeof(F) == 4) {
    return view<F>(static_cast<std::uint32_t>(g()));
  } else {
    return view<F>(g());
  }
}
template <class F>
F middle_number(std::mt19937_64& g) {
  const double scale = std::ldexp(1.0, static_cast<int>(g() % 20) - 12);
  return static_cast<F>(scale * (static_cast<double>(g() >> 11) * 0x1p-52 - 1));
}
template <class F>
std::vector<F> middle_numbers(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 g(seed);
  std::vector<F> all(n);
  for (F& x : all) x = middle_number<F>(g);
  return all;
}
inline std::vector<float> middle_f32(std::size_t n, std::uint64_t seed) {
  return middle_numbers<float>(n, seed);
}
inline std::vector<double> middle_f64(std::size_t n, std::uint64_t seed) {
  return middle_numbers<double>(n, seed);
}

/// Returns a pair for a function of two numbers, with random patterns or moderate magnitudes. For
/// pow, most results are in range, near overflow or underflow, or have an x near 1. For rem, some
/// are near multiples.
template <class F>
std::pair<F, F> random_pair(Binary f, std::mt19937_64& g) {
  const std::uint64_t kind = g();
  F x = (kind & 1) != 0 ? any_number<F>(g) : middle_number<F>(g);
  F y = (kind & 2) != 0 ? any_number<F>(g) : middle_number<F>(g);
  if (f == Binary::k_pow && (kind & 12) != 0) {
    x = std::fabs(x);
    if ((kind & 4) != 0 && x > 0 && x <= std::numeric_limits<F>::max()) {
      x = F(1) + std::ldexp(x, -std::ilogb(x) - 1 - static_cast<int>(kind >> 8 & 31));
    }
    const double range = sizeof(F) == 4 ? 155 : 1080;
    const double power = (static_cast<double>(g() >> 11) * 0x1p-52 - 1) * range;
    y = static_cast<F>(power / std::log2(static_cast<double>(x)));
  }
  if (f == Binary::k_rem && (kind & 12) == 12) y = x / static_cast<F>((kind >> 8) % 1000 + 1);
  return {x, y};
}

/// Returns the special cases of functions of two numbers: zeros, ones, infinities, NaN, denormals,
/// the largest number, even and odd integers up to where all are even, and halves.
template <class F>
std::vector<F> specials() {
  using L = std::numeric_limits<F>;
  const F whole = std::ldexp(F(1), L::digits);
  std::vector<F> all;
  for (const F x : {F(0),
                    F(1),
                    F(2),
                    F(3),
                    F(0.5),
                    F(1.5),
                    F(2.5),
                    F(7),
                    F(1e10),
                    whole,
                    whole - 1,
                    whole - 2,
                    whole / 2 - F(0.5),
                    F(1) - L::epsilon() / 2,
                    F(1) + L::epsilon(),
                    L::denorm_min(),
                    3 * L::denorm_min(),
                    L::min(),
                    L::min() - L::denorm_min(),
                    L::max(),
                    L::max() / 2,
                    L::infinity(),
                    L::quiet_NaN()}) {
    all.push_back(x), all.push_back(-x);
  }
  return all;
}

}  // namespace wick::math_test
