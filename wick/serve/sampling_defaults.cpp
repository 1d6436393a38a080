// The keys general.sampling.* are those of llama.cpp, which also uses them unless an option is
// given.
#include "wick/serve/sampling_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <type_traits>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::serve {
namespace {

/// The steps of a text such as "top_k;top_p;temperature". Errors: a name is unknown.
std::vector<SamplerStep> steps_of(std::string_view text) {
  std::vector<SamplerStep> steps;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!name.empty()) steps.push_back(parse_sampler_step(name == "typ_p" ? "typical_p" : name));
  }
  return steps;
}

/// Converts a value to the type of `to`. Returns why it can't be converted; empty if it can.
template <class T>
std::string convert(const io::GgufValue& value, T& to) {
  if constexpr (std::is_same_v<T, std::vector<SamplerStep>>) {
    const std::optional<std::string_view> text = value.as_string();
    if (!text) return fmt::format("wrong type {}: need a string", value.type_str());
    to = steps_of(*text);
  } else {
    const std::optional<double> number = value.as_f64();
    if (!number) return fmt::format("wrong type {}: need a number", value.type_str());
    constexpr auto kLeast = static_cast<double>(std::numeric_limits<T>::lowest()),
                   kMost = static_cast<double>(std::numeric_limits<T>::max());
    if (!(*number >= kLeast && *number <= kMost)) return "out of range";  // also NaN
    to = static_cast<T>(*number);
    if (std::is_integral_v<T> && static_cast<double>(to) != *number) return "not an integer";
  }
  return {};
}

/// What users call a key: its name in generation_config.json if the file is a folder.
std::string shown_key(const io::ModelFile& file, const std::string& key,
                      std::string_view short_key) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(file.path(), ignored)) {
    return fmt::format("{}: {}", printable(file.path()), key);
  }
  const std::string_view name = short_key == "temp"             ? "temperature"
                                : short_key == "penalty_repeat" ? "repetition_penalty"
                                                                : short_key;
  return fmt::format("{}/generation_config.json: {}", printable(file.path()), name);
}

}  // namespace

bool SamplingDefaults::recommends(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

SamplingDefaults sampling_defaults(const io::ModelFile& file) {
  SamplingDefaults defaults;
  for_each_recommended([&](const char* name, auto member, const char* short_key) {
    const std::string key = fmt::format("general.sampling.{}", short_key);
    const io::GgufValue* const value = file.find(key);
    if (value == nullptr) return;
    text::SamplerOptions one;
    std::string reason;
    try {
      reason = convert(*value, one.*member);
      check_sampler_options(one);
    } catch (const Error& e) {
      reason = e.what();
    }
    if (!reason.empty()) {
      defaults.warnings.push_back(fmt::format(
          "{} = {} is ignored: {}", shown_key(file, key, short_key), value->str(), reason));
      return;
    }
    defaults.options.*member = one.*member;
    defaults.names.emplace_back(name);
  });
  return defaults;
}

}  // namespace wick::serve
