// Every one of the 2^32 floats through the functions of one f32 argument and the conversions from
// f32, and random pairs through those of two, on every instruction set this processor has. Minutes
// of work: run by hand, not by ctest.

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/math/loops.h"
#include "tests/math/oracle.h"
#include "tests/math/samples.h"

namespace wick::math_test {
namespace {

constexpr std::uint64_t kAll = std::uint64_t{1} << 32;
constexpr std::size_t kChunk = 1 << 16;

float from_bits(std::uint32_t b) {
  float x;
  std::memcpy(&x, &b, sizeof x);
  return x;
}
std::uint32_t to_bits(float x) {
  std::uint32_t b;
  std::memcpy(&b, &x, sizeof b);
  return b;
}

struct Options {
  std::string only = "all";
  unsigned threads = std::thread::hardware_concurrency();
  std::uint64_t step = 1;
  std::uint64_t pairs = std::uint64_t{1} << 30;
};

struct Result {
  double worst = -1;
  float at = 0, and_at = 0;
  std::uint64_t differing = 0;  // between instruction sets, or from the conversion's oracle
};

/// Calls body(chunk, result) for the chunks [0, count) on several threads.
template <class Body>
Result over_chunks(const Options& o, std::uint64_t count, const Body& body) {
  std::atomic<std::uint64_t> next{0};
  std::vector<Result> results(o.threads);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < o.threads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t c; (c = next.fetch_add(1)) < count;) body(c, results[t]);
    });
  }
  for (std::thread& t : threads) t.join();
  Result all;
  for (const Result& r : results) {
    const std::uint64_t differing = all.differing + r.differing;
    if (r.worst > all.worst) all = r;
    all.differing = differing;
  }
  return all;
}

/// Calls body(inputs, result) for chunks of all patterns.
template <class Body>
Result over_all(const Options& o, const Body& body) {
  const std::uint64_t chunk = kChunk * o.step;
  return over_chunks(o, (kAll + chunk - 1) / chunk, [&](std::uint64_t c, Result& result) {
    thread_local std::vector<float> in(kChunk);
    for (std::size_t i = 0; i < kChunk; ++i) {
      in[i] = from_bits(static_cast<std::uint32_t>(c * chunk + i * o.step));
    }
    body(in, result);
  });
}

/// The places where two results differ, NaN being equal to NaN.
std::uint64_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < kChunk; ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    n += !both_nan && to_bits(a[i]) != to_bits(b[i]) ? 1 : 0;
  }
  return n;
}

bool check_function(const Options& o, Unary f) {
  const std::vector<NamedLoops> sets = available_loops();
  Result r = over_all(o, [&](const std::vector<float>& in, Result& result) {
    thread_local std::vector<float> out(kChunk), other(kChunk);
    sets.back().loops->unary[kFloat32][f](in.data(), out.data(), kChunk);
    for (std::size_t s = 0; s + 1 < sets.size(); ++s) {
      if (sets[s].calls_fma && to_bits(in[0]) / kChunk % 16 != 0) continue;  // a library call each
      sets[s].loops->unary[kFloat32][f](in.data(), other.data(), kChunk);
      result.differing += differing(out, other);
    }
    for (std::size_t i = 0; i < kChunk; ++i) {
      const double error = ulp_error(out[i], fast_value(f, static_cast<double>(in[i])));
      if (error > result.worst) result.worst = error, result.at = in[i];
    }
  });
  float got;
  sets.back().loops->unary[kFloat32][f](&r.at, &got, 1);
  r.worst = ulp_error(got, true_value(f, static_cast<double>(r.at)));  // the exact figure, by MPFR
  const bool good = r.differing == 0 && r.worst <= limit_f32(f);
  std::printf(
      "%-8s f32  worst %.4f ulp (limit %.2f) at %a; %llu differ between instruction sets%s\n",
      kUnaryNames[f], r.worst, limit_f32(f), static_cast<double>(r.at),
      static_cast<unsigned long long>(r.differing), good ? "" : "  FAILED");
  std::fflush(stdout);
  return good;
}

bool check_pairs(const Options& o, Binary f) {
  const std::vector<NamedLoops> sets = available_loops();
  const int index = static_cast<int>(f);
  const auto body = [&](std::uint64_t c, Result& result) {
    thread_local std::vector<float> a(kChunk), b(kChunk), out(kChunk), other(kChunk);
    std::mt19937_64 g(c);
    for (std::size_t i = 0; i < kChunk; ++i) std::tie(a[i], b[i]) = random_pair<float>(f, g);
    sets.back().loops->binary[kFloat32][index](a.data(), b.data(), out.data(), kChunk);
    for (std::size_t s = 0; s + 1 < sets.size(); ++s) {
      if (sets[s].calls_fma && c % 16 != 0) continue;
      sets[s].loops->binary[kFloat32][index](a.data(), b.data(), other.data(), kChunk);
      result.differing += differing(out, other);
    }
    for (std::size_t i = 0; i < kChunk; ++i) {
      const double want = fast_value(f, static_cast<double>(a[i]), static_cast<double>(b[i]));
      const double error = ulp_error(out[i], want);
      if (error > result.worst) result.worst = error, result.at = a[i], result.and_at = b[i];
    }
  };
  Result r = over_chunks(o, (o.pairs + kChunk - 1) / kChunk, body);
  float got;
  sets.back().loops->binary[kFloat32][index](&r.at, &r.and_at, &got, 1);
  const double a = static_cast<double>(r.at), b = static_cast<double>(r.and_at);
  r.worst = ulp_error(got, true_value(f, a, b));
  const bool good = r.differing == 0 && r.worst <= limit_f32(f);
  std::printf(
      "%-8s f32  worst %.4f ulp (limit %.2f) at %a, %a of %llu pairs; %llu differ between "
      "instruction sets%s\n",
      kBinaryNames[index], r.worst, limit_f32(f), a, b, static_cast<unsigned long long>(o.pairs),
      static_cast<unsigned long long>(r.differing), good ? "" : "  FAILED");
  std::fflush(stdout);
  return good;
}

bool check_conversion(const Options& o, Real to) {
  const SmallFloat& format = *small_float(to);
  const std::vector<NamedLoops> sets = available_loops();
  const Result r = over_all(o, [&](const std::vector<float>& in, Result& result) {
    thread_local std::vector<unsigned char> out(kChunk * 2);
    thread_local std::vector<std::uint32_t> want(kChunk);
    for (std::size_t i = 0; i < kChunk; ++i) want[i] = format.nearest(in[i]);
    for (const NamedLoops& set : sets) {
      set.loops->cast[to][kF32](in.data(), out.data(), kChunk);
      for (std::size_t i = 0; i < kChunk; ++i) {
        std::uint32_t got = out[i];
        if (kRealBytes[to] == 2) got = out[2 * i] | static_cast<std::uint32_t>(out[2 * i + 1]) << 8;
        if (got != want[i] && !(format.is_nan(got) && format.is_nan(want[i]))) {
          ++result.differing;
          result.worst = 1, result.at = in[i];
        }
      }
    }
  });
  std::printf("%-8s from f32: %llu wrong%s\n", kRealNames[to],
              static_cast<unsigned long long>(r.differing), r.differing == 0 ? "" : "  FAILED");
  std::fflush(stdout);
  return r.differing == 0;
}

int run(const Options& o) {
  bool good = true, any = false;
  for (int f = 0; f < kUnaries; ++f) {
    if (o.only != "all" && o.only != kUnaryNames[f]) continue;
    any = true;
    good &= check_function(o, static_cast<Unary>(f));
  }
  for (int f = 0; f < kBinaries; ++f) {
    if (o.only != "all" && o.only != kBinaryNames[f]) continue;
    any = true;
    good &= check_pairs(o, static_cast<Binary>(f));
  }
  for (const Real to : {kF16, kBF16, kF8E4M3}) {
    if (o.only != "all" && o.only != kRealNames[to]) continue;
    any = true;
    good &= check_conversion(o, to);
  }
  if (!any) std::fprintf(stderr, "math_exhaustive: no function named %s\n", o.only.c_str());
  return good && any ? 0 : 1;
}

constexpr const char* kHelp =
    "usage: math_exhaustive [--function NAME] [--threads N] [--step N] [--pairs N]\n"
    "Puts all 2^32 floats through the f32 functions and the conversions to f16, bf16 and f8e4m3,\n"
    "and random pairs through the f32 functions of two arguments,\n"
    "on every instruction set this processor has, and prints the worst error against MPFR. (The "
    "sets\n"
    "without an fma instruction are slow: they see a sixteenth of the patterns.)\n"
    "  --function NAME  one function (exp, log, ...) or target type (f16, bf16, f8e4m3); default "
    "all\n"
    "  --threads N      default: one per processor\n"
    "  --step N         only every N-th pattern (odd numbers reach every exponent and low bit)\n"
    "  --pairs N        default 2^30\n"
    "Exits with 1 if an error exceeds the function's limit or two instruction sets differ.\n";

}  // namespace
}  // namespace wick::math_test

int main(int argc, char** argv) {
  wick::math_test::Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      std::fputs(wick::math_test::kHelp, stdout);
      return 0;
    }
    const char* value = i + 1 < argc ? argv[++i] : nullptr;
    const unsigned long long number = value != nullptr ? std::strtoull(value, nullptr, 10) : 0;
    if (value != nullptr && flag == "--function") {
      o.only = value;
    } else if (flag == "--threads" && number > 0 && number <= 4096) {
      o.threads = static_cast<unsigned>(number);
    } else if (flag == "--step" && number > 0) {
      o.step = number;
    } else if (flag == "--pairs" && number > 0) {
      o.pairs = number;
    } else {
      std::fprintf(stderr, "math_exhaustive: bad argument: %s\n%s", flag.c_str(),
                   wick::math_test::kHelp);
      return 2;
    }
  }
  if (o.threads == 0) o.threads = 1;
  return wick::math_test::run(o);
}
