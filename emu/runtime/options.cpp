#include "emu/runtime/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string_view>
#include <thread>

namespace emu {
namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

constexpr size_t kPage = 4096;

size_t bytes_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  double unit = 1;
  if (const size_t power = std::string_view("kmg").find(static_cast<char>(*end | 0x20));
      power != std::string_view::npos) {
    for (size_t i = 0; i <= power; ++i) unit *= 1024;
    ++end;
  }
  const double bytes = number * unit;
  if (!(bytes >= 1 << 16) || bytes > 1e13 || *end != 0) {
    complain("WICK_EMU_MEMORY: '" + text + "' is no size of a memory; 8G are taken");
    return size_t{8} << 30;
  }
  return static_cast<size_t>(bytes) / kPage * kPage;
}

/// Returns a variable's non-negative number. For anything else, prints a line on stderr and returns
/// `otherwise`.
double number_of(const char* name, double otherwise) {
  const std::string text = variable(name, "");
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end == 0 && value >= 0 && value < 1e19) return value;
  complain(std::string(name) + ": '" + text + "' is no number; it is left out");
  return otherwise;
}

/// Returns the requested checks; prints a line on stderr for unknown names.
std::string checks_of(const std::string& text) {
  static const char* const kNames[] = {
      "0",     "1",        "none",  "off",       "all",      "memory", "lds",  "registers", "waits",
      "races", "barriers", "leaks", "alignment", "register", "wait",   "race", "barrier",   "leak"};
  for (const std::string& word : split(text)) {
    if (std::find(std::begin(kNames), std::end(kNames), word) == std::end(kNames)) {
      complain("WICK_EMU_CHECK: '" + word + "' is no check; there are memory, alignment, lds, " +
               "registers, waits, races, barriers, leaks, and all (all but alignment)");
    }
  }
  return text;
}

void check_isa(const std::string& isa) {
  const bool wide = __builtin_cpu_supports("x86-64-v4");
  if (isa != "v3" && isa != "v4") {
    complain("WICK_EMU_ISA: '" + isa + "' is none of v3, v4; it is left out");
  } else if (isa == "v4" && !wide) {
    complain("WICK_EMU_ISA: this processor has no AVX-512; v3 is taken");
  }
}

}  // namespace

void complain(const std::string& what) {
  const std::string line = "wick-emu: " + what + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

bool Options::wants(std::string kind) const {
  if (kind != "lds" && kind.ends_with('s')) kind.pop_back();  // accepts both "race" and "races"
  if (check.find(kind) != std::string::npos) return true;
  // Compilers emit loads that aren't aligned on purpose, so that check must be named.
  if (kind == "alignment") return false;
  const std::vector<std::string> words = split(check);
  return std::find(words.begin(), words.end(), "all") != words.end() || check == "1";
}

Options Options::from_environment() {
  Options options;
  options.devices = split(variable("WICK_EMU_DEVICES", "gfx1100"));
  const std::vector<std::string> sizes = split(variable("WICK_EMU_MEMORY", "8G"));
  for (size_t i = 0; i < options.devices.size(); ++i) {
    const std::string& size = sizes.empty() ? "8G" : sizes[std::min(i, sizes.size() - 1)];
    options.device_bytes.push_back(bytes_of(size));
  }
  options.check = checks_of(variable("WICK_EMU_CHECK", ""));
  if (options.check == "0" || options.check == "none" || options.check == "off") options.check = "";
  if (const std::string isa = variable("WICK_EMU_ISA", ""); !isa.empty()) check_isa(isa);
  options.seed = static_cast<uint64_t>(number_of("WICK_EMU_SEED", 0));
  options.profile = variable("WICK_EMU_PROFILE", "");
  options.profile_table = variable("WICK_EMU_PROFILE_TABLE", "0") != "0";
  options.timeout = number_of("WICK_EMU_TIMEOUT", 0);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  options.threads = static_cast<int>(std::min(number_of("WICK_EMU_THREADS", 0), 1024.0));
  if (options.threads <= 0) options.threads = cores > 0 ? cores : 1;
  return options;
}

}  // namespace emu
