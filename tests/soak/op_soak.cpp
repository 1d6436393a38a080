// Random calls of every op on one device, for any time, compared with a reference in long double
// that shares no code with the kernels.
//
//   op_soak [--device cpu|hip:0|cuda:0] [--seconds N] [--seed S|today] [--first I] [--count K]
//           [--only ROW] [--elems N] [--plant N] [--list] [--verbose]
//
// Case I of a seed is always the same, so `--first I --count 1` repeats it; a wrong result prints
// that line. --elems: limit of the elements of one operand. --plant N: every Nth result gets one
// wrong element, which must be found. --verbose: prints each case's row on stderr before it runs.
// Ctrl-C ends the test and prints the summary. Exits with 1 if a result was wrong,
// and with 2 if the test couldn't run.

#include <fmt/format.h>
#include <signal.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <set>

#include "tests/soak/soak.h"
#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/memory.h"

namespace wick::soak {
namespace {

volatile sig_atomic_t interrupted = 0;

constexpr int kMostFailures = 20;

struct Options {
  Device device;
  double seconds = 10;
  uint64_t seed = 1;
  int64_t first = 0, count = -1, elems = 0, plant = 0;
  std::string only;
  bool list = false, verbose = false;
};

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

int64_t number(const char* text, const char* option) {
  int64_t value = 0;
  const char* const end = text + std::strlen(text);
  if (std::from_chars(text, end, value).ptr != end || value < 0)
    throw Error(option, "not a number", text);
  return value;
}

uint64_t today() {
  const std::time_t t = std::time(nullptr);
  std::tm date{};
  gmtime_r(&t, &date);
  return static_cast<uint64_t>((date.tm_year + 1900) * 10000 + (date.tm_mon + 1) * 100 +
                               date.tm_mday);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--list" || option == "--verbose") {
      (option == "--list" ? o.list : o.verbose) = true;
      continue;
    }
    if (++i == argc) throw Error(option, "no such option, or no value");
    const char* const value = argv[i];
    if (option == "--device") {
      o.device = Device::parse(value);
    } else if (option == "--seconds") {
      o.seconds = static_cast<double>(number(value, "--seconds"));
    } else if (option == "--seed") {
      o.seed =
          std::string(value) == "today" ? today() : static_cast<uint64_t>(number(value, "--seed"));
    } else if (option == "--first") {
      o.first = number(value, "--first");
    } else if (option == "--count") {
      o.count = number(value, "--count");
    } else if (option == "--elems") {
      o.elems = number(value, "--elems");
    } else if (option == "--plant") {
      o.plant = number(value, "--plant");
    } else if (option == "--only") {
      o.only = value;
    } else {
      throw Error(option, "no such option");
    }
  }
  if (o.elems == 0) o.elems = o.device.kind == DeviceKind::cpu ? 20000 : 5000;
  return o;
}

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options), rows_(all_rows()) {
    if (!options.only.empty())
      std::erase_if(rows_, [&](const Row& r) { return r.name != options.only; });
    if (rows_.empty()) throw Error("--only", "no such row", options.only);
  }

  /// Returns whether all results were correct.
  bool run() {
    const double start = now();
    double next_line = start + 10;
    int64_t i = options_.first;
    for (; interrupted == 0 && failures_ < kMostFailures; ++i) {
      if (options_.count >= 0 ? i >= options_.first + options_.count
                              : now() >= start + options_.seconds)
        break;
      one(i);
      if (now() < next_line || options_.count >= 0) continue;
      next_line = now() + 10;
      fmt::print("{:.0f} s: {} cases, {} wrong\n", now() - start, cases_, failures_);
      std::fflush(stdout);
    }
    summary(i, now() - start);
    return failures_ == 0;
  }

 private:
  void one(int64_t i) {
    // Adjacent seeds give correlated sequences, so the seeds are random.
    Random seeds(options_.seed * 1'000'003 + static_cast<uint64_t>(i));
    const Row& row = rows_[static_cast<size_t>(seeds.next() % rows_.size())];
    rows_run_.insert(row.name);
    Case c(options_.device, seeds.next(), options_.elems);
    c.what = row.name;
    c.plant = options_.plant > 0 && i % options_.plant == 0 ? 1 : 0;
    if (options_.verbose) fmt::print(stderr, "case {}: {}\n", i, row.name);
    try {
      row.run(c);
      c.check_operands();
      if (c.plant == 2) report(i, c.what + ": a planted error wasn't found");
    } catch (const std::exception& error) {
      if (c.plant != 2) report(i, error.what() == c.what ? c.what : said(c, error));
      planted_ += c.plant == 2 ? 1 : 0;
    }
    ++cases_;
  }

  static std::string said(const Case& c, const std::exception& error) {
    const std::string text = error.what();
    return text.starts_with(c.what) ? text : c.what + ": threw " + text;
  }

  void report(int64_t i, const std::string& text) {
    ++failures_;
    fmt::print(
        "wrong: {}\n  repeat: op_soak --device {} --seed {} --elems {}{} --first {} --count 1\n",
        text, options_.device.str(), options_.seed, options_.elems,
        options_.only.empty() ? "" : " --only " + options_.only, i);
    std::fflush(stdout);
  }

  void summary(int64_t end, double seconds) const {
    fmt::print(
        "{}: cases {} to {} of seed {}, {} run in {:.0f} s ({:.0f} a minute), {} of {} rows, {} "
        "wrong{}{}\n",
        options_.device.str(), options_.first, end - 1, options_.seed, cases_, seconds,
        static_cast<double>(cases_) * 60 / std::max(seconds, 0.001), rows_run_.size(), rows_.size(),
        failures_, options_.plant > 0 ? fmt::format(", {} planted errors found", planted_) : "",
        interrupted != 0 ? " (interrupted)" : "");
  }

  const Options options_;
  std::vector<Row> rows_;
  std::set<std::string> rows_run_;
  int64_t cases_ = 0, failures_ = 0, planted_ = 0;
};

}  // namespace
}  // namespace wick::soak

int main(int argc, char** argv) {
  using namespace wick;
  try {
    const soak::Options options = soak::parse(argc, argv);
    if (options.list) {
      for (const soak::Row& row : soak::all_rows()) fmt::print("{}\n", row.name);
      return 0;
    }
    backend(options.device);  // throws if the device is missing
    signal(SIGINT, [](int) { soak::interrupted = 1; });
    return soak::Soak(options).run() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "op_soak: {}\n", error.what());
    return 2;
  }
}
