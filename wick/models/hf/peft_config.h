#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/models/hf/config.h"
#include "wick/text/split/regex.h"

namespace wick::models::hf {

/// Regular expressions over the names of modules, each with a number: PEFT's rank_pattern and
/// alpha_pattern.
class ModulePatterns {
 public:
  /// The object `name` of a configuration. Errors: it isn't one; a value isn't a number; a pattern
  /// is malformed.
  ModulePatterns(const Config& config, const char* name);
  /// The number of the first pattern that matches the end of a module's name, from its start or
  /// from behind a dot; `or_else` if none does.
  double of(const std::string& module, double or_else) const;

 private:
  std::vector<std::pair<text::Regex, double>> patterns_;
};

/// adapter_config.json of a LoRA adapter.
class PeftConfig {
 public:
  /// Errors: the file is missing or invalid; the adapter isn't LoRA, or is of a variant that this
  /// version doesn't support.
  explicit PeftConfig(const std::string& folder);

  double rank(const std::string& module) const { return ranks_.of(module, rank_); }
  /// The factor of B·A.
  float scale(const std::string& module) const;
  /// Whether biases are trained.
  bool trains_biases() const { return trains_biases_; }
  /// Whether the rows of the adapted matrices have trained norms (DoRA).
  bool has_magnitudes() const { return has_magnitudes_; }
  /// Whether a module is trained as a whole and saved.
  bool saves(std::string_view module) const;

 private:
  Config config_;
  double rank_, alpha_;
  bool by_root_;  // the scale is alpha / √rank
  bool trains_biases_ = false, has_magnitudes_ = false;
  std::vector<std::string> saved_;
  ModulePatterns ranks_, alphas_;
};

}  // namespace wick::models::hf
