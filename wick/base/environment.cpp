// The table of environment variables that wick reads, and checks of their values.
#include "wick/base/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick {
namespace {

using Kind = EnvironmentKind;

constexpr std::array<std::string_view, 2> kOnOff = {"on", "off"};
constexpr std::array<std::string_view, 2> kBit = {"0", "1"};
constexpr std::array<std::string_view, 3> kLibraryUse = {"off", "auto", "only"};
constexpr std::array<std::string_view, 3> kConvUse = {"own", "auto", "library"};
constexpr std::array<std::string_view, 3> kMainLoop = {"plain", "mma", "wgmma"};
constexpr std::array<std::string_view, 2> kPool = {"shared", "exact"};
constexpr std::array<std::string_view, 2> kPrecision = {"full", "fast"};
constexpr std::array<std::string_view, 5> kLinear = {"dot", "few", "many", "int8", "f16"};

constexpr std::array kVariables = {
    EnvironmentVariable{"WICK_CPU_ISA", Kind::instruction_set, {}},
    EnvironmentVariable{"WICK_CUBLASLT_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_CUDA_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_CUDNN_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_GPU_ATTENTION", Kind::choice, kMainLoop},
    EnvironmentVariable{"WICK_GPU_CONV", Kind::choice, kConvUse},
    EnvironmentVariable{"WICK_GPU_GEMM", Kind::choice, kMainLoop},
    EnvironmentVariable{"WICK_GPU_IMAGES", Kind::choice, kOnOff},
    EnvironmentVariable{"WICK_GPU_LIBRARIES", Kind::choice, kLibraryUse},
    EnvironmentVariable{"WICK_GPU_LINEAR", Kind::choice, kLinear},
    EnvironmentVariable{"WICK_GPU_POOL", Kind::choice, kPool},
    EnvironmentVariable{"WICK_GPU_RECORD", Kind::choice, kOnOff},
    EnvironmentVariable{"WICK_HIPBLASLT_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_HIPRTC_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_HIP_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_KERNEL_CACHE", Kind::folder, {}},
    EnvironmentVariable{"WICK_KERNEL_CACHE_MIB", Kind::mebibytes, {}},
    EnvironmentVariable{"WICK_MIOPEN_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_NVRTC_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_PRECISION", Kind::choice, kPrecision},
    EnvironmentVariable{"WICK_REPRODUCIBLE", Kind::choice, kBit},
    EnvironmentVariable{"WICK_ROCBLAS_LIBRARY", Kind::library, {}},
    EnvironmentVariable{"WICK_TRACE", Kind::file, {}},
};

const EnvironmentVariable* find_variable(std::string_view name) {
  for (const EnvironmentVariable& variable : kVariables) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

/// The number of single-character insertions, deletions and replacements from a to b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

/// The variable that `name` may be a misspelling of: at most a third of its letters may differ.
std::string_view nearest_variable(std::string_view name) {
  constexpr size_t kLongest = 64;  // longer names aren't compared
  if (name.size() > kLongest) return {};
  std::string_view nearest;
  size_t least = (name.size() - std::strlen("WICK_")) / 3 + 1;
  for (const EnvironmentVariable& variable : kVariables) {
    // A truncated name is similar, too, for example WICK_CUDA_LIB.
    const bool beginning = name.size() > 9 && variable.name.starts_with(name);
    const size_t distance = beginning ? 1 : edit_distance(name, variable.name);
    if (distance >= least) continue;
    least = distance;
    nearest = variable.name;
  }
  return nearest;
}

void check_folder(const char* variable) {
  const std::string_view chosen = environment(variable);
  if (chosen.empty() || chosen == "off") return;
  std::error_code failed;
  const auto status = std::filesystem::status(std::filesystem::path(chosen), failed);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    throw Error(ErrorKind::runtime, variable, "not a folder",
                fmt::format("'{}'", printable(chosen)), "use a folder, or off");
  }
}

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

std::string_view environment(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

std::string user_cache_folder() {
  // The XDG Base Directory Specification says that relative paths are to be ignored.
  const std::string_view cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
  if (cache.starts_with('/')) return std::string(cache);
  return home.starts_with('/') ? std::string(home) + "/.cache" : std::string();
}

std::string_view environment_choice(const char* variable) {
  const std::string_view wanted = environment(variable);
  const EnvironmentVariable* const row = find_variable(variable);
  if (row == nullptr || row->kind != Kind::choice) {
    throw Error(ErrorKind::runtime, "environment_choice", "not a variable with choices", variable);
  }
  const auto& choices = row->choices;
  if (wanted.empty() || std::find(choices.begin(), choices.end(), wanted) != choices.end()) {
    return wanted;
  }
  throw Error(ErrorKind::runtime, variable, "no such choice",
              fmt::format("'{}'", printable(wanted)),
              fmt::format("use {}", fmt::join(choices, ", ")));
}

uint64_t environment_bytes(const char* variable, uint64_t or_else) {
  const std::string_view text = environment(variable);
  if (text.empty()) return or_else;
  uint64_t mebibytes = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, mebibytes);
  if (error != std::errc() || last != end || mebibytes > (uint64_t{1} << 40)) {
    throw Error(ErrorKind::runtime, variable, "not a size", fmt::format("'{}'", printable(text)),
                "a number of MiB");
  }
  return mebibytes << 20;
}

void check_environment() {
  for (const EnvironmentVariable& variable : kVariables) {
    const char* const name = variable.name.data();  // a literal, so it is zero-terminated
    if (variable.kind == Kind::choice) environment_choice(name);
    if (variable.kind == Kind::mebibytes) environment_bytes(name, 0);
    if (variable.kind == Kind::folder) check_folder(name);
  }
}

std::vector<UnknownVariable> unknown_environment_variables() {
  std::vector<UnknownVariable> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals + 1 == text.size()) continue;
    const std::string_view name = text.substr(0, equals);
    if (!name.starts_with("WICK_") || find_variable(name) != nullptr) continue;
    if (name.starts_with("WICK_EMU_") || name.starts_with("WICK_TEST_") ||
        name.starts_with("WICK_STAND_IN_")) {
      continue;
    }
    unknown.push_back({std::string(name), nearest_variable(name)});
  }
  std::sort(unknown.begin(), unknown.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return unknown;
}

}  // namespace wick
