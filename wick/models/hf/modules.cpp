#include "wick/models/hf/modules.h"

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

/// The folder of a module, in the model's. Errors: it isn't a name, or it leads elsewhere.
std::string folder_of(const Config& module, const std::string& folder) {
  const std::string name = module.text({"path"}).value_or("");
  const bool inside = !name.empty() && name.find('/') == std::string::npos && name != "..";
  if (!inside) module.invalid("path", "the name of a folder");
  return folder + "/" + name;
}

/// Sets the keys of the dense layer that files call dense_`index`.
void dense_keys(const Config& config, std::string_view architecture, size_t index,
                io::GgufMetadata& metadata) {
  constexpr size_t kMost = 3;
  constexpr const char* kActivation = "activation_function";
  if (index > kMost) config.unsupported("in_features", "this version supports two dense layers");
  // Without the key, sentence-transformers takes Tanh.
  if (!config.text({kActivation}).value_or("").ends_with("Identity")) {
    config.unsupported(kActivation, "need torch.nn.modules.linear.Identity");
  }
  const auto set = [&](const char* from, const char* to) {
    metadata.set_u32(fmt::format("{}.dense_{}_{}", architecture, index, to),
                     static_cast<uint32_t>(config.require_integer({from})));
  };
  set("in_features", "feat_in");
  set("out_features", "feat_out");
}

}  // namespace

std::vector<std::string> read_modules(const std::string& folder, std::string_view architecture,
                                      io::GgufMetadata& metadata) {
  std::vector<std::string> dense;
  const std::string path = folder + "/modules.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return dense;
  const nlohmann::json modules = io::read_json(path, kMostBytes);
  if (!modules.is_array()) throw Error(printable(path), "not a JSON array");
  bool pools = false;
  for (const nlohmann::json& one : modules) {
    const Config module(one, path);
    const std::string type = module.text({"type"}).value_or("");
    const bool is_pooling = type.ends_with("Pooling"), is_dense = type.ends_with("Dense");
    if (!is_pooling && !is_dense) continue;
    const std::string at = folder_of(module, folder);
    const Config config = Config::read(at + "/config.json", kMostBytes);
    if (is_pooling && !pools) {
      pools = true;
      metadata.set_u32(fmt::format("{}.pooling_type", architecture), pooling_of(config));
    } else if (is_dense) {
      dense_keys(config, architecture, 2 + dense.size(), metadata);
      dense.push_back(at);
    }
  }
  return dense;
}

}  // namespace wick::models::hf
