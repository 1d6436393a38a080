// Runs the functions of wick/math as loops over arrays on one core. Measures nanoseconds per
// element in the L1 cache, and for arrays in memory the share of the limit, which is the time of a
// copy of the same bytes (for two operands, of a sum) in the same run. Prints JSON.
//
//   math_bench [--isa scalar|x86-64-v2|x86-64-v3|x86-64-v4] [--only SUBSTRING] [--reps N]

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/math/oracle.h"

namespace {

using namespace wick::math_test;

struct Options {
  std::string isa, only;
  int reps = 9;
};

/// Returns this thread's CPU time, so that a busy machine disturbs less.
double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class Body>
double best_seconds(int reps, int inner, const Body& body) {
  double best = 1e30;
  for (int r = 0; r < reps; ++r) {
    const double start = seconds();
    for (int i = 0; i < inner; ++i) body();
    best = std::min(best, (seconds() - start) / inner);
  }
  return best;
}

/// Operands in the interesting range of the functions: x in (-5, 5), and above 0 for pow.
template <class T>
class Bench {
 public:
  Bench(const Options& options, const NamedLoops& set, Float type)
      : options_(options), set_(set), type_(type) {
    std::mt19937 g(1);
    std::uniform_real_distribution<double> u(-5, 5);
    for (std::size_t i = 0; i < kLarge; ++i) {
      a_.push_back(static_cast<T>(u(g)));
      b_.push_back(static_cast<T>(u(g)));
    }
    out_.resize(kLarge);
  }

  void run(bool* first) {
    const std::size_t bytes = kLarge * sizeof(T);
    const double copy =
        best_seconds(options_.reps, 1, [&] { std::memcpy(out_.data(), a_.data(), bytes); });
    const double sum = best_seconds(options_.reps, 1, [&] {
      for (std::size_t i = 0; i < kLarge; ++i) out_[i] = a_[i] + b_[i];
    });
    for (int f = 0; f < kUnaries; ++f) {
      const Loop1 loop = set_.loops->unary[type_][f];
      row(kUnaryNames[f], copy, first, [&](std::size_t n) { loop(a_.data(), out_.data(), n); });
    }
    for (int f = 0; f < kBinaries; ++f) {
      const Loop2 loop = set_.loops->binary[type_][f];
      if (f == static_cast<int>(Binary::k_pow)) {
        for (T& x : a_) x = std::fabs(x);
      }
      row(kBinaryNames[f], sum, first,
          [&](std::size_t n) { loop(a_.data(), b_.data(), out_.data(), n); });
    }
  }

 private:
  static constexpr std::size_t kSmall = 2048, kLarge = std::size_t{4} << 20;

  template <class Body>
  void row(const char* name, double limit, bool* first, const Body& body) {
    const std::string full = std::string(name) + (sizeof(T) == 4 ? ".f32" : ".f64");
    if (full.find(options_.only) == std::string::npos) return;
    const double cached = best_seconds(options_.reps, 100, [&] { body(kSmall); });
    const double large = best_seconds(options_.reps, 1, [&] { body(kLarge); });
    std::printf(
        "%s\n  {\"row\": \"%s\", \"cached_ns_per_elem\": %.4f, \"ns_per_elem\": %.4f, "
        "\"share_of_copy\": %.3f}",
        *first ? "" : ",", full.c_str(), cached * 1e9 / kSmall, large * 1e9 / kLarge,
        limit / large);
    std::fflush(stdout);
    *first = false;
  }

  const Options& options_;
  const NamedLoops& set_;
  Float type_;
  std::vector<T> a_, b_, out_;
};

int run(const Options& options) {
  const std::vector<NamedLoops> sets = available_loops();
  const NamedLoops* set = &sets.back();
  for (const NamedLoops& s : sets) {
    if (s.name == options.isa) set = &s;
  }
  if (!options.isa.empty() && set->name != options.isa) {
    std::fprintf(stderr, "math_bench: this processor has no %s\n", options.isa.c_str());
    return 2;
  }
  std::printf("{\"isa\": \"%s\", \"rows\": [", set->name.c_str());
  bool first = true;
  Bench<float>(options, *set, kFloat32).run(&first);
  Bench<double>(options, *set, kFloat64).run(&first);
  std::printf("\n]}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--isa") {
      options.isa = argv[i + 1];
    } else if (flag == "--only") {
      options.only = argv[i + 1];
    } else if (flag == "--reps") {
      options.reps = std::max(1, std::atoi(argv[i + 1]));
    } else {
      std::fprintf(stderr, "math_bench: bad argument: %s\n", argv[i]);
      return 2;
    }
  }
  return run(options);
}
