// Measures the cost of starting and ending a parallel region, compared with a serial call. Prints
// one JSON object. Usage: thread_pool_bench [THREADS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/error.h"

namespace {

using Clock = std::chrono::steady_clock;

/// Returns the nanoseconds per call of `f`: the minimum and the median of many runs of 1000.
template <class F>
std::pair<double, double> time_ns(F&& f) {
  std::vector<double> runs;
  for (int run = 0; run < 300; ++run) {
    const auto start = Clock::now();
    for (int i = 0; i < 1000; ++i) f();
    runs.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / 1000);
  }
  std::sort(runs.begin(), runs.end());
  return {runs.front(), runs[runs.size() / 2]};
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  try {
    auto& pool = wick::cpu::ThreadPool::global();
    pool.set_threads(threads);
    const auto [best, median] = time_ns([&] { pool.run(threads, [](int) {}); });
    // The lower limit: moving one cache line to another core and back takes about as long.
    const auto [serial, serial_median] = time_ns([&] { pool.run(1, [](int) {}); });
    std::printf(
        "{\"threads\": %d, \"region_ns\": {\"best\": %.0f, \"median\": %.0f}, "
        "\"serial_ns\": %.1f, \"median_over_limit_1000_ns\": %.2f}\n",
        threads, best, median, serial_median, median / 1000);
    (void)serial;
    return 0;
  } catch (const wick::Error& e) {
    std::fprintf(stderr, "thread_pool_bench: %s\n", e.what());
    return 2;
  }
}
