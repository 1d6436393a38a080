// Compares a GPU backend with the CPU backend on random cases, for any duration: random ops,
// dtypes, layouts, sizes, graphs and errors. At the end, no byte of device memory may be lost.
//
//   gpu_soak --device cuda:0 [--other cuda:1] [--seconds N] [--seed S] [--elems N] [--slack MIB]
//            [--only CASE] [--from I] [--to I]
//
// Case i of a seed is always the same, except for its memory addresses: `--seed S --from i --to i`
// repeats it. --other: a second device, to which tensors move and from which they return. --elems:
// the size of the largest operands. --slack: the device memory that the driver may use for itself,
// 8 MiB by default. With WICK_REPRODUCIBLE=1, attention of long prompts must have the CPU's bits as
// well. Ctrl-C ends the test after the current case and prints the summary. Exits with 1 if a
// result was wrong or memory was lost.

#include <signal.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/backend/soak.h"
#include "tests/backend/soak_chain.h"
#include "wick/base/error.h"

namespace wick::soak {
namespace {

volatile sig_atomic_t interrupted = 0;

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/// The state of the device's memory after the test has released everything.
struct Ground {
  size_t in_use = 0, free = 0;
  int modules = 0;
};

class Session {
 public:
  explicit Session(const Options& options) : soak_(options) {
    for (const auto list : {element_cases(), product_cases(), memory_cases()}) {
      for (const Case& c : list) {
        if (!options.only.empty() && options.only != c.name) continue;
        for (int i = 0; i < c.weight; ++i) cases_.push_back(&c);
      }
    }
    if (cases_.empty()) throw Error("--only", "no such case", options.only);
  }

  void run() {
    const double start = now(), end = start + soak_.options.seconds;
    double next_line = start + 1, next_ground = start + soak_.options.seconds / 4;
    first_ = last_ = ground();
    for (index_ = soak_.options.from; interrupted == 0; ++index_) {
      const double t = now();
      if (soak_.options.to >= 0 ? index_ > soak_.options.to : t >= end) break;
      if (t >= next_ground) {
        check_ground();
        next_ground += soak_.options.seconds / 4;
      }
      one();
      if (failures_ >= 20) break;
      if (t < next_line) continue;
      next_line = t + 1;
      const MemoryInfo memory = soak_.gpu.memory_info();
      fmt::print("{:.0f} s: {} cases, {} recordings, {:.1f} MiB in use, {:.1f} cached, {} wrong\n",
                 t - start, index_ + 1 - soak_.options.from, soak_.chains.size(),
                 static_cast<double>(memory.in_use_bytes) / 0x1p20,
                 static_cast<double>(memory.cached_bytes) / 0x1p20, failures_);
      std::fflush(stdout);
    }
    check_ground();
    fmt::print(
        "{} on {}: {} cases of seed {} in {:.0f} s{}, {} wrong, {} leaks, peak {:.1f} MiB, "
        "{} modules, {:.1f} MiB kept by the driver\n",
        soak_.options.device.str(), soak_.gpu.description(), index_ - soak_.options.from,
        soak_.options.seed, now() - start, interrupted != 0 ? " (interrupted)" : "", failures_,
        leaks_, static_cast<double>(soak_.gpu.memory_info().peak_bytes) / 0x1p20, last_.modules,
        static_cast<double>(lost_) / 0x1p20);
  }
  bool failed() const { return failures_ + leaks_ > 0; }

 private:
  void one() {
    // Adjacent seeds give the same sequence shifted by one, so the seeds are random.
    Random seeds(soak_.options.seed * 1'000'003 + static_cast<uint64_t>(index_));
    soak_.random = Random(seeds.next());
    const auto at = static_cast<size_t>(soak_.random.below(static_cast<int64_t>(cases_.size())));
    soak_.what = cases_[at]->name;
    try {
      cases_[at]->run(soak_);
    } catch (const std::exception& error) {
      ++failures_;
      const std::string text = error.what();
      fmt::print("wrong: case {} ({}): {}{}{}\n", index_, cases_[at]->name, text,
                 text.starts_with(soak_.what) ? "" : " in ",
                 text.starts_with(soak_.what) ? "" : soak_.what);
      std::fflush(stdout);
    }
  }

  /// Releases everything.
  Ground ground() {
    try {
      for (const auto& held : soak_.held) held->check();
    } catch (const std::exception& error) {
      ++failures_;
      fmt::print("wrong: {}\n", error.what());
    }
    soak_.held.clear();
    soak_.chains.clear();
    soak_.gpu.synchronize();
    soak_.gpu.trim();
    Ground result;
    result.free = soak_.gpu.free_memory();
    result.in_use = soak_.gpu.memory_info().in_use_bytes;
    if (const auto& other = soak_.options.other) {
      Backend& there = backend(*other);
      there.synchronize();
      there.trim();
      result.in_use += there.memory_info().in_use_bytes;
    }
    result.modules = soak_.device().modules_loaded();
    return result;
  }
  /// Free device memory may shrink when modules are loaded, and otherwise by what the driver keeps
  /// for itself: CUDA's heap grows in steps of 2 MiB.
  void check_ground() {
    const Ground here = ground();
    if (here.in_use != first_.in_use || soak_.gpu.memory_info().cached_bytes != 0) {
      ++leaks_;
      fmt::print("leak: {} bytes in use before case {}, {} at the start, {} cached after a trim\n",
                 here.in_use, index_, first_.in_use, soak_.gpu.memory_info().cached_bytes);
    }
    if (here.modules == last_.modules) lost_ += static_cast<int64_t>(last_.free - here.free);
    last_ = here;
    if (lost_ > soak_.options.slack_mib << 20 && !told_) {
      ++leaks_;
      told_ = true;
      fmt::print("leak: the device has {} bytes less before case {}\n", lost_, index_);
    }
  }

  Soak soak_;
  std::vector<const Case*> cases_;
  int64_t index_ = 0;
  int failures_ = 0, leaks_ = 0;
  int64_t lost_ = 0;  // device memory, not counting modules
  bool told_ = false;
  Ground first_, last_;
};

bool parse(int argc, char** argv, Options& options) {
  const auto number = [](std::string_view text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  bool named = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i], value = argv[i + 1];
    bool fine = true;
    if (option == "--device") {
      options.device = Device::parse(value);
      named = options.device.kind != DeviceKind::cpu;
    } else if (option == "--other") {
      options.other = Device::parse(value);
    } else if (option == "--seconds") {
      fine = number(value, options.seconds);
    } else if (option == "--seed") {
      fine = number(value, options.seed);
    } else if (option == "--elems") {
      fine = number(value, options.elems) && options.elems > 1000;
    } else if (option == "--from") {
      fine = number(value, options.from);
    } else if (option == "--to") {
      fine = number(value, options.to);
    } else if (option == "--slack") {
      fine = number(value, options.slack_mib);
    } else if (option == "--only") {
      options.only = value;
    } else {
      fine = false;
    }
    if (!fine) return false;
  }
  return named && argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  try {
    if (!parse(argc, argv, options)) {
      fmt::print(stderr,
                 "gpu_soak --device cuda:0|hip:0 [--other cuda:1|hip:1] [--seconds N] [--seed S]\n"
                 "         [--elems N > 1000] [--slack MIB] [--only CASE] [--from I] [--to I]\n");
      return 2;
    }
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = 1; };
    sigaction(SIGINT, &action, nullptr);
    Session session(options);
    session.run();
    return session.failed() ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_soak: {}\n", error.what());
    return 2;
  }
}

}  // namespace wick::soak

int main(int argc, char** argv) { return wick::soak::main(argc, argv); }
