#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <functional>
#include <string>

namespace wick::test {

/// The processor time of this process, in seconds. Other programs' load doesn't change it.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Returns the shortest of three runs, in seconds of processor time.
inline double seconds_of(const std::function<void()>& f) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = processor_seconds();
    f();
    least = std::min(least, processor_seconds() - start);
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
