// GoogleTest's main with the tests of rows. It names the test that crashes, since operands are
// placed between inaccessible pages.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "tests/parity/grid.h"

namespace {

void say(std::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

[[maybe_unused]] void on_crash(int signal) {
  say("\ncrashed on ");
  say(wick::parity::Blame::target());
  say(" in ");
  say(wick::parity::Blame::what());
  say("\n");
  raise(signal);  // the handler is removed, so this runs the default action
}

/// Escapes devices' names in a filter, because GoogleTest interprets '-' and ':' in names such as
/// cpu-v3 and hip:0.
std::string with_devices(const std::string& filter) {
  std::string cpus = std::regex_replace(filter, std::regex("\\.cpu-v4-vnni"), ".cpu?v4?vnni");
  cpus = std::regex_replace(cpus, std::regex("\\.cpu-neon-"), ".cpu?neon?");
  cpus = std::regex_replace(cpus, std::regex("\\.cpu-(v|neon|amx)"), ".cpu?$1");
  return std::regex_replace(cpus, std::regex("\\.(cuda|hip):([0-9])"), ".$1?$2");
}

/// Names the hardware of each target in GoogleTest's report, for tools/parity.py.
class NamesOfDevices final : public testing::Environment {
 public:
  void SetUp() override {
    for (const wick::parity::Target& target : wick::parity::all_targets()) {
      if (target.backend == nullptr || target.backend->device().kind == wick::DeviceKind::cpu) {
        continue;
      }
      std::string key = "device_" + target.name;
      std::replace(key.begin(), key.end(), ':', '_');
      testing::Test::RecordProperty(key, target.backend->description());
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  std::vector<char*> arguments;
  for (std::string& word : words) {
    if (word.starts_with("--gtest_filter=")) word = with_devices(word);
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);  // argv ends with null
  testing::InitGoogleTest(&argc, arguments.data());
#ifndef WICK_SANITIZED
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
#endif
  wick::parity::register_tests();
  testing::AddGlobalTestEnvironment(new NamesOfDevices);
  return RUN_ALL_TESTS();
}
