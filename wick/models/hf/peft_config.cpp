#include "wick/models/hf/peft_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wick/base/error.h"
#include "wick/io/json.h"

namespace wick::models::hf {
namespace {

/// The most patterns, and names of saved modules: each module of the model is compared with all.
constexpr size_t kMostNames = 4096;

constexpr size_t kMostAdapterConfigBytes = size_t{4} << 20;

/// Errors: the adapter is of a kind or has a feature that isn't supported.
void check_kind(const Config& config) {
  if (config.text({"peft_type"}).value_or("") != "LORA") {
    config.unsupported("peft_type", "this version supports LORA");
  }
  for (const char* name :
       {"use_qalora", "target_parameters", "layer_replication", "trainable_token_indices",
        "alora_invocation_tokens", "use_bdlora", "arrow_config", "velora_config",
        "monteclora_config", "kasa_config", "ensure_weight_tying"}) {
    if (!config.has({name})) continue;
    const nlohmann::json& value = config.json().at(name);
    const bool unset = value == false || (value.is_structured() && value.empty());
    if (!unset) config.unsupported(name, "this version supports LoRA without it");
  }
  if (config.flag("use_dora", false) && config.flag("lora_bias", false)) {
    config.unsupported("lora_bias", "this version supports it without use_dora");
  }
  const char* const init = "init_lora_weights";
  if (!config.has({init}) || !config.json().at(init).is_string()) return;
  const std::string how = config.json().at(init);
  for (const char* changes : {"pissa", "olora", "corda", "loftq", "lora_ga"}) {
    if (how.starts_with(changes)) {
      config.unsupported(init, "it changes the model's weights: convert the adapter to plain LoRA");
    }
  }
}

/// The names of an object's members in the order of the file, which nlohmann::json doesn't keep.
/// In a file with Infinity, which isn't JSON, they are sorted.
std::vector<std::string> names_in_order(const Config& config, const char* name) {
  std::vector<std::string> names;
  const Config object = config.object(name);
  if (object.json().empty()) return names;
  bool inside = false;
  const auto see = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event != nlohmann::json::parse_event_t::key) return true;
    if (depth == 1) {
      inside = parsed == name;
      if (inside) names.clear();
    }
    if (depth == 2 && inside) names.push_back(parsed.get<std::string>());
    return true;
  };
  const auto file = nlohmann::json::parse(
      io::read_small_file(config.path(), kMostAdapterConfigBytes), see, false);
  if (file.is_discarded()) {
    names.clear();
    for (const auto& member : object.json().items()) names.push_back(member.key());
  }
  return names;
}

}  // namespace

ModulePatterns::ModulePatterns(const Config& config, const char* name) {
  const Config object = config.object(name);
  const std::vector<std::string> names = names_in_order(config, name);
  if (names.size() > kMostNames)
    config.invalid(name, fmt::format("at most {} patterns", kMostNames));
  for (const std::string& pattern : names) {
    const double number = object.require_number({pattern.c_str()});
    try {
      patterns_.emplace_back(text::Regex(fmt::format("\\A(?:.*\\.)?(?:{})\\z", pattern)), number);
    } catch (const Error& e) {
      object.invalid(pattern.c_str(), fmt::format("a regular expression ({})", e.what()));
    }
  }
}

double ModulePatterns::of(const std::string& module, double or_else) const {
  for (const auto& [regex, number] : patterns_) {
    text::Regex::Scratch scratch(regex);
    text::Regex::Range range{};
    if (regex.find(module, 0, scratch, range)) return number;
  }
  return or_else;
}

PeftConfig::PeftConfig(const std::string& folder)
    : config_(Config::read(folder + "/adapter_config.json", kMostAdapterConfigBytes)),
      rank_(static_cast<double>(config_.integer({"r"}).value_or(8))),
      alpha_(config_.number({"lora_alpha"}).value_or(8)),
      by_root_(config_.flag("use_rslora", false)),
      ranks_(config_, "rank_pattern"),
      alphas_(config_, "alpha_pattern") {
  check_kind(config_);
  if (rank_ < 1) config_.invalid("r", "at least 1");
  const std::string bias = config_.text({"bias"}).value_or("none");
  if (bias != "none" && bias != "all" && bias != "lora_only") {
    config_.unsupported("bias", "this version supports none, all and lora_only");
  }
  trains_biases_ = bias != "none";
  has_magnitudes_ = config_.flag("use_dora", false);
  saved_ = config_.texts("modules_to_save");
  if (saved_.size() > kMostNames) {
    config_.invalid("modules_to_save", fmt::format("at most {} names", kMostNames));
  }
}

float PeftConfig::scale(const std::string& module) const {
  const double alpha = alphas_.of(module, alpha_), r = rank(module);
  return static_cast<float>(alpha / (by_root_ ? std::sqrt(r) : r));
}

bool PeftConfig::saves(std::string_view module) const {
  return std::any_of(saved_.begin(), saved_.end(), [&](const std::string& name) {
    return module == name || module.ends_with("." + name);
  });
}

}  // namespace wick::models::hf
