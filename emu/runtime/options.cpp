#include "emu/runtime/options.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
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

size_t bytes_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  double unit = 1;
  switch (*end) {
    case 'k':
    case 'K':
      unit = 1024.0;
      break;
    case 'm':
    case 'M':
      unit = 1024.0 * 1024;
      break;
    case 'g':
    case 'G':
      unit = 1024.0 * 1024 * 1024;
      break;
    default:
      break;
  }
  const double bytes = number * unit;
  if (!(bytes >= 1 << 16) || bytes > 1e13) {
    complain("WICK_EMU_MEMORY: '" + text + "' is no size of a memory; 8G are taken");
    return size_t{8} << 30;
  }
  return static_cast<size_t>(bytes);
}

}  // namespace

void complain(const std::string& what) {
  const std::string line = "wick-emu: " + what + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

bool Options::wants(std::string kind) const {
  if (check == "all" || check == "1") return true;
  if (kind != "lds" && kind.ends_with('s')) kind.pop_back();  // race or races
  return check.find(kind) != std::string::npos;
}

Options Options::from_environment() {
  Options options;
  options.devices = split(variable("WICK_EMU_DEVICES", "gfx1100"));
  const std::vector<std::string> sizes = split(variable("WICK_EMU_MEMORY", "8G"));
  for (size_t i = 0; i < options.devices.size(); ++i) {
    const std::string& size = sizes.empty() ? "8G" : sizes[std::min(i, sizes.size() - 1)];
    options.device_bytes.push_back(bytes_of(size));
  }
  options.check = variable("WICK_EMU_CHECK", "");
  if (options.check == "0" || options.check == "none" || options.check == "off") options.check = "";
  options.seed = std::strtoull(variable("WICK_EMU_SEED", "0").c_str(), nullptr, 0);
  options.profile = variable("WICK_EMU_PROFILE", "");
  options.profile_table = variable("WICK_EMU_PROFILE_TABLE", "0") != "0";
  options.timeout = std::strtod(variable("WICK_EMU_TIMEOUT", "0").c_str(), nullptr);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  options.threads = std::atoi(variable("WICK_EMU_THREADS", "0").c_str());
  if (options.threads <= 0) options.threads = cores > 0 ? cores : 1;
  return options;
}

}  // namespace emu
