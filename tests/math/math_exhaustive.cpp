// Tests all 2^32 floats with the ops of one f32 argument and the conversions from f32, and random
// pairs with the functions of two, on every instruction set of this CPU. The whole test takes an
// hour and records its results function by function. It is run by hand; ctest runs a sample.

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/math/loops.h"
#include "tests/math/oracle.h"
#include "tests/math/samples.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/thread_pool.h"

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
  std::string record;  // a Markdown file: rows are added, and recorded rows are skipped
};

struct Result {
  double worst = -1;
  float at = 0, and_at = 0;
  std::uint64_t differing = 0;  // between instruction sets, or from the conversion's reference
};

/// A float function on one instruction set.
struct Runner {
  std::string name;
  std::function<void(const float* in, float* out, std::size_t n)> run;
  bool calls_fma;  // slow: tests only a sixteenth of the inputs
};

/// An op with one f32 argument, or another function of wick/math.
struct Subject {
  std::string name;
  Unary function;          // the reference
  bool is_elu = false;     // elu with alpha 1: expm1 below 0
  std::vector<Runner> on;  // the fastest is last
};

/// Rows of ops.def run in the backends of the instruction sets, including everything that a kernel
/// does around the function. Other functions run as plain loops.
Subject subject_of(const std::string& name, Unary function, bool is_elu) {
  static std::deque<cpu::CpuBackend> backends;
  if (backends.empty()) {
    for (const cpu::Isa isa : cpu::available_isas()) backends.emplace_back(isa);
  }
  Subject s{name, function, is_elu, {}};
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    if (wick::name(op) != name || !info(op).dtypes.contains(DType::f32)) continue;
    for (cpu::CpuBackend& backend : backends) {
      const auto run = [&backend, op, is_elu](const float* in, float* out, std::size_t n) {
        const Layout layout = Layout::contiguous(Shape{static_cast<std::int64_t>(n)});
        const View y{out, DType::f32, layout};
        const ConstView x{in, DType::f32, layout};
        is_elu ? backend.unary_with(op, y, x, 1.0, 0.0) : backend.unary(op, y, x);
      };
      s.on.push_back(
          {"cpu-" + std::string(cpu::name(backend.isa())), run, backend.isa() == cpu::Isa::v2});
    }
  }
  if (!s.on.empty()) return s;
  for (const NamedLoops& set : available_loops()) {
    s.on.push_back({set.name, set.loops->unary[kFloat32][function], set.calls_fma});
  }
  return s;
}

double fast_of(const Subject& s, double x) {
  return s.is_elu && x > 0 ? x : fast_value(s.function, x);
}
double true_of(const Subject& s, double x) {
  return s.is_elu && x > 0 ? x : true_value(s.function, x);
}
double limit_of(const Subject& s) {
  return s.is_elu ? limit_f32(Binary::k_elu) : limit_f32(s.function);
}

/// Prints a row of the table and adds it to the record.
class Report {
 public:
  explicit Report(const Options& o) : options_(o) {
    std::ifstream in(o.record);
    for (std::string line; std::getline(in, line);) before_ += line + '\n';
  }
  /// Returns whether a row is selected and hasn't been recorded.
  bool wants(const std::string& name) {
    if (options_.only != "all" && options_.only != name) return false;
    any_ = true;
    start_ = std::chrono::steady_clock::now();
    return before_.find("| " + name + " |") == std::string::npos;
  }
  void row(const std::string& name, std::uint64_t inputs, const char* worst, double limit,
           const std::string& at, std::uint64_t differing, const std::string& sets, bool good) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    char text[512];
    std::snprintf(text, sizeof text, "| %s | %llu | %s | %.4g | %s | %llu | %s | %.0f | %s |\n",
                  name.c_str(), static_cast<unsigned long long>(inputs), worst, limit, at.c_str(),
                  static_cast<unsigned long long>(differing), sets.c_str(), seconds,
                  good ? "pass" : "FAIL");
    good_ &= good;
    std::fputs(text, stdout);
    std::fflush(stdout);
    if (options_.record.empty()) return;
    std::ofstream out(options_.record, std::ios::app);
    if (before_.empty()) out << kHead;
    before_ += text;
    out << text;
  }
  int end() const {
    if (!any_)
      std::fprintf(stderr, "math_exhaustive: no function named %s\n", options_.only.c_str());
    return good_ && any_ && before_.find("| FAIL |") == std::string::npos ? 0 : 1;
  }

 private:
  static constexpr const char* kHead =
      "| function | inputs | worst, ulp | limit | at | differing | on | s | |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  const Options& options_;
  std::string before_;
  std::chrono::steady_clock::time_point start_;
  bool good_ = true, any_ = false;
};

std::string hex(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", x);
  return text;
}

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

/// Returns the number of positions where two results differ; any NaN equals any other.
std::uint64_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < kChunk; ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    n += !both_nan && to_bits(a[i]) != to_bits(b[i]) ? 1 : 0;
  }
  return n;
}

void check_function(const Options& o, Report& report, const Subject& f) {
  const double limit = limit_of(f);
  Result r = over_all(o, [&](const std::vector<float>& in, Result& result) {
    thread_local std::vector<float> out(kChunk), other(kChunk);
    f.on.back().run(in.data(), out.data(), kChunk);
    for (std::size_t s = 0; s + 1 < f.on.size(); ++s) {
      if (f.on[s].calls_fma && to_bits(in[0]) / kChunk % 16 != 0) continue;
      f.on[s].run(in.data(), other.data(), kChunk);
      result.differing += differing(out, other);
    }
    for (std::size_t i = 0; i < kChunk; ++i) {
      const double x = static_cast<double>(in[i]);
      double error = ulp_error(out[i], fast_of(f, x));
      // The C library's doubles have an error of some 1e-9 ulp of a float, so MPFR decides close to
      // the limit.
      if (error > limit - 1e-6 && error > 0) error = ulp_error(out[i], true_of(f, x));
      if (error > result.worst) result.worst = error, result.at = in[i];
    }
  });
  float got;
  f.on.back().run(&r.at, &got, 1);
  const double at = static_cast<double>(r.at);
  r.worst = ulp_error(got, true_of(f, at));  // the exact error, computed with MPFR
  char worst[32];
  std::snprintf(worst, sizeof worst, "%.4f", r.worst);
  std::string sets;
  for (const Runner& on : f.on) {
    sets += (sets.empty() ? "" : ", ") + on.name + (on.calls_fma ? " (1/16)" : "");
  }
  report.row(f.name, (kAll + o.step - 1) / o.step, worst, limit, hex(at), r.differing, sets,
             r.differing == 0 && r.worst <= limit);
}

void check_pairs(const Options& o, Report& report, Binary f) {
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
  char worst[32];
  std::snprintf(worst, sizeof worst, "%.4f", r.worst);
  report.row(kBinaryNames[index], o.pairs, worst, limit_f32(f), hex(a) + ", " + hex(b), r.differing,
             "loops", r.differing == 0 && r.worst <= limit_f32(f));
}

void check_conversion(const Options& o, Report& report, Real to) {
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
  report.row(kRealNames[to], (kAll + o.step - 1) / o.step, r.differing == 0 ? "0.5" : "wrong", 0.5,
             r.differing == 0 ? "" : hex(static_cast<double>(r.at)), r.differing, "loops",
             r.differing == 0);
}

int run(const Options& o) {
  cpu::ThreadPool::global().set_threads(1);  // this program's own threads share the work
  Report report(o);
  for (int f = 0; f < kUnaries; ++f) {
    if (!report.wants(kUnaryNames[f])) continue;
    check_function(o, report, subject_of(kUnaryNames[f], static_cast<Unary>(f), false));
  }
  if (report.wants("elu")) check_function(o, report, subject_of("elu", k_expm1, true));
  for (const Real to : {kF16, kBF16, kF8E4M3}) {
    if (report.wants(kRealNames[to])) check_conversion(o, report, to);
  }
  for (int f = 0; f < kBinaries; ++f) {
    if (kBinaryNames[f] == std::string("elu")) continue;  // tested above
    if (report.wants(kBinaryNames[f])) check_pairs(o, report, static_cast<Binary>(f));
  }
  return report.end();
}

constexpr const char* kHelp =
    "usage: math_exhaustive [--function NAME] [--threads N] [--step N] [--pairs N] [--record "
    "FILE]\n"
    "Tests the f32 ops of one argument and the conversions to f16, bf16 and f8e4m3 with all 2^32\n"
    "floats, and the f32 functions of two arguments with random pairs, on every instruction set\n"
    "that this processor has. Prints the worst error against MPFR. Instruction sets without fma\n"
    "are slow, so they are tested with a sixteenth of the floats.\n"
    "  --function NAME  one function (exp, log, ...) or target type (f16, bf16, f8e4m3); default "
    "all\n"
    "  --threads N      default: one per processor\n"
    "  --step N         only every N-th float (an odd N reaches every exponent and low bit)\n"
    "  --pairs N        default 2^30\n"
    "  --record FILE    adds a row of Markdown per function; skips functions that FILE has\n"
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
    } else if (value != nullptr && flag == "--record") {
      o.record = value;
    } else {
      std::fprintf(stderr, "math_exhaustive: bad argument: %s\n%s", flag.c_str(),
                   wick::math_test::kHelp);
      return 2;
    }
  }
  if (o.threads == 0) o.threads = 1;
  return wick::math_test::run(o);
}
