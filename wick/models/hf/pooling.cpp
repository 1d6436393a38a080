#include "wick/models/hf/pooling.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/json.h"
#include "wick/models/hf/config.h"

namespace wick::models::hf {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

/// The number of a pooling in GGUF files.
uint32_t pooling_of(const Config& config) {
  constexpr std::pair<const char*, const char*> kModes[] = {
      {"pooling_mode_mean_tokens", "mean"},
      {"pooling_mode_cls_token", "cls"},
      {"pooling_mode_lasttoken", "lasttoken"}};
  const std::string mode = config.text({"pooling_mode"}).value_or("");
  uint32_t number = 0, found = 0;
  for (const auto& [flag, name] : kModes) {
    ++number;
    if (found == 0 && (config.flag(flag, false) || mode == name)) found = number;
  }
  if (found == 0) config.unsupported("pooling_mode", "this version supports mean, cls, lasttoken");
  return found;
}

}  // namespace

void pooling_key(const std::string& folder, std::string_view architecture,
                 io::GgufMetadata& metadata) {
  const std::string path = folder + "/modules.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  const nlohmann::json modules = io::read_json(path, kMostBytes);
  if (!modules.is_array()) throw Error(printable(path), "not a JSON array");
  for (const nlohmann::json& one : modules) {
    const Config module(one, path);
    if (!module.text({"type"}).value_or("").ends_with("Pooling")) continue;
    const std::string name = module.text({"path"}).value_or("");
    const bool inside = !name.empty() && name.find('/') == std::string::npos && name != "..";
    if (!inside) module.invalid("path", "the name of a folder");
    const Config config = Config::read(folder + "/" + name + "/config.json", kMostBytes);
    metadata.set_u32(fmt::format("{}.pooling_type", architecture), pooling_of(config));
    return;
  }
}

}  // namespace wick::models::hf
