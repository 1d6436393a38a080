// Random chains of ops on every instruction set and device: see chain.h. ctest runs them for
// seconds; by hand any number can be run:
//   parity_chains [--seed N] [--count N] [--print]

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string>

#include "tests/parity/chain.h"

namespace wick::parity {
namespace {

struct Options {
  uint64_t seed = 1, count = 1000;
  bool print = false;
};

int run(const Options& o) {
  int absent = 0;
  for (const Target& target : all_targets()) {
    if (target.backend != nullptr) continue;
    fmt::print("SKIPPED {}: absent: {}\n", target.name, target.missing);
    ++absent;
  }
  std::map<std::string, uint64_t> ops;
  uint64_t steps = 0, wrong = 0;
  for (uint64_t seed = o.seed; seed < o.seed + o.count; ++seed) {
    Chain chain(seed);
    steps += chain.steps();
    for (const std::string& op : chain.ops()) ++ops[op];
    if (o.print) fmt::print("chain {}\n{}", seed, chain.text(chain.steps()));
    const std::string what = chain.check();
    if (what.empty()) continue;
    ++wrong;
    fmt::print("FAILED chain {}:\n{}\nagain: parity_chains --seed {} --count 1\n", seed, what,
               seed);
    std::fflush(stdout);
    if (wrong == 10) break;
  }
  std::string devices;
  for (const Target& target : targets()) devices += " " + target.name;
  fmt::print("{} chains of {} steps, {} rows of ops.def, on{}: {} wrong, {} devices skipped\n",
             o.count, steps, ops.size(), devices, wrong, absent);
  if (o.count >= 1000 && ops.size() < 95) {
    fmt::print("FAILED: so many chains have more rows than that\n");
    return 1;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace wick::parity

int main(int argc, char** argv) {
  wick::parity::Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (flag == "--print") {
      o.print = true;
    } else if (value != nullptr && flag == "--seed") {
      o.seed = std::strtoull(value, nullptr, 10), ++i;
    } else if (value != nullptr && flag == "--count") {
      o.count = std::strtoull(value, nullptr, 10), ++i;
    } else {
      fmt::print(
          "usage: parity_chains [--seed N] [--count N] [--print]\n"
          "Runs chains of random ops with seeds from N on, on each instruction set and on the\n"
          "devices that WICK_TEST_DEVICES names. Exits with 1 if bits differ.\n");
      return flag == "--help" ? 0 : 2;
    }
  }
  return wick::parity::run(o);
}
