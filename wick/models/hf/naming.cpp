// Names of tensors: "model.layers.3.mlp.experts.7.up_proj.weight" is part 7 of
// "blk.3.ffn_up_exps.weight".
#include "wick/models/hf/naming.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::models::hf {
namespace {

constexpr int64_t kAfterLayers = INT32_MAX, kMostNumber = 65535;

std::optional<int64_t> number_of(std::string_view digits) {
  int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || stop != end || number < 0) return std::nullopt;
  return number;
}

/// Takes the first component off a dotted name.
std::string_view take(std::string_view& name) {
  const size_t dot = name.find('.');
  const std::string_view first = name.substr(0, dot);
  name.remove_prefix(dot == std::string_view::npos ? name.size() : dot + 1);
  return first;
}

/// The name without those of the modules around the layers.
std::string_view without_prefixes(std::string_view name) {
  for (const std::string_view prefix :
       {"model.language_model.", "language_model.", "model.", "transformer.", "gpt_neox.", "bert.",
        "backbone.", "encoder."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return name;
}

/// Tensors that no decoder uses: buffers of old versions, scales of activations and of the cache,
/// layers that predict further tokens, and the parts of models of images and text that see.
bool is_ignored(std::string_view name) {
  constexpr std::string_view kEndings[] = {
      "rotary_emb.inv_freq", ".attn.bias", ".masked_bias", ".input_scale",
      ".activation_scale",   ".k_scale",   ".v_scale",     ".attention.bias",
      ".input_scale_ub"};
  constexpr std::string_view kParts[] = {
      "vision_tower.",    "vision_model.", "vision_encoder.", "multi_modal_projector.",
      "visual.",          "audio_tower.",  "embed_vision.",   "embed_audio.",
      "patch_merger.",    "mtp_block.",    "mtp_emb_norm.",   "mtp_hidden_norm.",
      "mtp_linear_proj.", "mtp."};
  std::string_view part = name;
  constexpr std::string_view kModel = "model.";
  if (part.starts_with(kModel)) part.remove_prefix(kModel.size());
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); }) ||
         std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view prefix) { return part.starts_with(prefix); });
}

/// Tensors of an encoder's heads for other tasks than embeddings.
bool is_other_head(std::string_view name) {
  constexpr std::string_view kParts[] = {"pooler.", "cls.predictions.", "cls.seq_relationship.",
                                         "head.",   "decoder.",         "lm_head."};
  name = without_prefixes(name);
  return name == "embeddings.position_ids" ||
         std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// The tensors that were named so far.
class Naming {
 public:
  explicit Naming(const Description& description) : description_(description) {}

  /// Keeps a tensor of scales of a weight, or one that belongs to the codes of GPTQ and AWQ.
  /// Returns false for other tensors.
  bool add_scale(const Stored& stored) {
    const std::string_view name = stored.tensor->name;
    if (description_.int4.method != Int4Config::Method::none) {
      const size_t dot = std::min(name.rfind('.'), name.size());
      const std::string_view module = name.substr(0, dot), part = name.substr(dot);
      Stored Int4Tensors::*member = part == ".qzeros"   ? &Int4Tensors::zeros
                                    : part == ".scales" ? &Int4Tensors::scales
                                    : part == ".g_idx"  ? &Int4Tensors::order
                                                        : nullptr;
      if (member != nullptr) {
        int4_[module].*member = stored;
        return true;
      }
    }
    const std::string_view weight = weight_of_scale(name);
    if (weight.empty() || (!weight.ends_with(".weight") && !weight.ends_with("_proj")))
      return false;
    scales_.emplace(weight, stored);
    return true;
  }

  void add(const Stored& stored) {
    std::string full = stored.tensor->name;
    if (is_codes(full)) full.replace(full.size() - kCodes.size(), kCodes.size(), ".weight");
    const TensorName name = parse_name(full);
    if (name.layer < 0) {
      const std::string_view outer = outer_name(name.stem);
      if (outer.empty()) return unknown(stored);
      if (outer == "output" && description_.tied && name.suffix == ".weight") return;
      const int64_t place = outer.starts_with("output") ? kAfterLayers : -1;
      put(stored, place, fmt::format("{}{}", outer, name.suffix), Form::same, -1);
      // Factors of the table and of the output matrix are two.
      if (outer == "token_embd" && description_.tied && has_factors()) {
        put(stored, kAfterLayers, "output.weight", Form::same, -1);
      }
      return;
    }
    if (name.layer >= description_.layers) {
      if (description_.config.has({"num_nextn_predict_layers"})) return;  // predict further tokens
      wrong_tensor(stored, "tensor of a layer that the model doesn't have",
                   fmt::format("num_hidden_layers is {}", description_.layers));
    }
    const std::vector<NameRule> rules = rules_for(*description_.family, name.stem);
    if (rules.empty()) return unknown(stored);
    for (const NameRule& rule : rules) {
      const bool complete = rule.bare || is_complete(rule.to);
      put(stored, name.layer,
          fmt::format("blk.{}.{}{}", name.layer, rule.to, complete ? "" : name.suffix), rule.form,
          name.number);
    }
  }

  /// Errors: a tensor of a stack is missing.
  std::vector<Named> result() const {
    std::vector<Named> all;
    for (const auto& [place, sources] : found_) {
      Named named{place.second, sources.begin()->second.first, sources.begin()->first >= 0, {}};
      for (const auto& [number, source] : sources) {
        const auto expected = static_cast<int64_t>(named.sources.size());
        if (named.stacked && number != expected) {
          wrong_tensor(source.second.stored, "tensors before this one are missing",
                       fmt::format("number {} of {}", expected, named.name));
        }
        named.sources.push_back(source.second);
      }
      all.push_back(std::move(named));
    }
    return all;
  }

 private:
  static bool is_complete(std::string_view name) {
    return name.ends_with(".weight") || name.ends_with(".bias") || name.ends_with(".scale");
  }

  /// Whether the table or the output matrix is multiplied.
  bool has_factors() const {
    const auto factors = description_.family->factors;
    return factors != nullptr && (!factors(description_.config, "token_embd.weight").empty() ||
                                  !factors(description_.config, "output.weight").empty());
  }

  static std::string_view weight_of_scale(std::string_view name) {
    for (const std::string_view ending : {"_scale_inv", "_scale", "_scales"}) {
      if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
    }
    return {};
  }

  bool is_codes(std::string_view name) const {
    return description_.int4.method != Int4Config::Method::none && name.ends_with(kCodes);
  }

  Source source_of(const Stored& stored) const {
    std::string_view name = stored.tensor->name;
    if (is_codes(name)) {
      Source source{stored};
      const auto found = int4_.find(name.substr(0, name.size() - kCodes.size()));
      if (found != int4_.end()) source.int4 = found->second;
      source.int4.codes = stored;
      return source;
    }
    constexpr std::string_view kBlocks = "_blocks";
    if (name.ends_with(kBlocks)) name.remove_suffix(kBlocks.size());
    const auto scale = scales_.find(name);
    return {stored, scale == scales_.end() ? Stored{nullptr, nullptr} : scale->second};
  }

  void put(const Stored& stored, int64_t layer, std::string name, Form form, int64_t number) {
    if (number > kMostNumber) {
      wrong_tensor(stored, "number is too large", fmt::format("at most {}", kMostNumber));
    }
    auto& sources = found_[{layer, std::move(name)}];
    const auto [at, added] = sources.emplace(number, std::pair(form, source_of(stored)));
    if (!added) {
      wrong_tensor(
          stored, "two tensors have the same meaning",
          fmt::format("the other is {}", printable(at->second.second.stored.tensor->name)));
    }
  }

  [[noreturn]] void unknown(const Stored& stored) const {
    throw Error(ErrorKind::not_implemented, printable(stored.file->path()),
                "tensor that this version doesn't use",
                fmt::format("{} {}", printable(stored.tensor->name), stored.tensor->str()),
                "the model may be of a variant that isn't supported");
  }

  static constexpr std::string_view kCodes = ".qweight";
  const Description& description_;
  std::map<std::string_view, Stored> scales_;     // by the name of the weight
  std::map<std::string_view, Int4Tensors> int4_;  // by the name of the module
  // By the layer and the name, with the number of each source. Tensors of no layer come first, or
  // after the layers.
  std::map<std::pair<int64_t, std::string>, std::map<int64_t, std::pair<Form, Source>>> found_;
};

}  // namespace

TensorName parse_name(std::string_view name) {
  TensorName parsed;
  // Norms of old BERTs have a gamma and a beta.
  constexpr std::pair<std::string_view, std::string_view> kSuffixes[] = {
      {".weight", ".weight"}, {".bias", ".bias"}, {".gamma", ".weight"}, {".beta", ".bias"}};
  for (const auto& [ending, suffix] : kSuffixes) {
    if (!name.ends_with(ending)) continue;
    parsed.suffix = suffix;
    name.remove_suffix(ending.size());
    break;
  }
  name = without_prefixes(name);
  std::string_view rest = name;
  const std::string_view first = take(rest);
  if (first == "layers" || first == "h" || first == "layer") {
    if (const std::optional<int64_t> layer = number_of(take(rest))) {
      parsed.layer = *layer;
      name = rest;
    }
  }
  while (!name.empty()) {
    const std::string_view component = take(name);
    const std::optional<int64_t> number = number_of(component);
    if (number) parsed.number = *number;
    if (!parsed.stem.empty()) parsed.stem += '.';
    parsed.stem += number ? "*" : component;
  }
  return parsed;
}

void wrong_tensor(const Stored& stored, std::string_view what, std::string_view rule) {
  throw Error(printable(stored.file->path()), what,
              fmt::format("{} {}", printable(stored.tensor->name), stored.tensor->str()), rule);
}

std::vector<Named> name_tensors(const Description& description,
                                const std::vector<Stored>& tensors) {
  Naming naming(description);
  std::vector<Stored> weights;
  for (const Stored& stored : tensors) {
    if (is_ignored(stored.tensor->name)) continue;
    if (description.family->encodes && is_other_head(stored.tensor->name)) continue;
    if (!naming.add_scale(stored)) weights.push_back(stored);
  }
  for (const Stored& stored : weights) naming.add(stored);
  return naming.result();
}

}  // namespace wick::models::hf
