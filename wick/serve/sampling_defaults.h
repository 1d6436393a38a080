#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"
#include "wick/io/model_file.h"
#include "wick/text/sampler.h"

namespace wick::serve {

/// The sampling options that a model's file recommends (general.sampling.*; the
/// generation_config.json of a folder).
struct SamplingDefaults {
  text::SamplerOptions options;            ///< members that aren't recommended have wick's defaults
  std::vector<std::string> names;          ///< the recommended members, such as "top_k"
  std::vector<std::string> warnings = {};  ///< about values that are ignored
  bool recommends(std::string_view name) const;
};

/// Reads a file's recommendations. A value of the wrong type or out of range is ignored, with a
/// warning.
WICK_API SamplingDefaults sampling_defaults(const io::ModelFile& file);

/// Calls visit(name, pointer to member, key) for the members of SamplerOptions that files
/// recommend.
template <class Visit>
void for_each_recommended(const Visit& visit) {
  using O = text::SamplerOptions;
  visit("temperature", &O::temperature, "temp");
  visit("top_k", &O::top_k, "top_k");
  visit("top_p", &O::top_p, "top_p");
  visit("min_p", &O::min_p, "min_p");
  visit("repetition_penalty", &O::repetition_penalty, "penalty_repeat");
  visit("penalty_window", &O::penalty_window, "penalty_last_n");
  visit("xtc_probability", &O::xtc_probability, "xtc_probability");
  visit("xtc_threshold", &O::xtc_threshold, "xtc_threshold");
  visit("mirostat", &O::mirostat, "mirostat");
  visit("mirostat_tau", &O::mirostat_tau, "mirostat_tau");
  visit("mirostat_eta", &O::mirostat_eta, "mirostat_eta");
  visit("samplers", &O::order, "sequence");
}

}  // namespace wick::serve
