#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace wick::test {

/// Returns the shortest of three runs, in seconds.
inline double seconds_of(const std::function<void()>& f) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    least = std::min(least, taken.count());
  }
  return least;
}

/// Times prepare(n)() and prepare(16 n)(). Quadratic work takes 256 times as long, linear work 16
/// times. Runs that take less than 20 ms at 16 n pass, since their ratio is noise.
inline void expect_near_linear(const std::string& what, size_t n,
                               const std::function<std::function<void()>(size_t)>& prepare) {
  const double small = seconds_of(prepare(n)), large = seconds_of(prepare(16 * n));
  if (large < 0.02) return;
  EXPECT_LT(large, 70 * small) << what << ": " << small << " s, then " << large << " s";
}

}  // namespace wick::test
