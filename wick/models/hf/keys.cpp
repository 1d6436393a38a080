#include "wick/models/hf/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/math/scalar.h"

namespace wick::models::hf {
namespace {

using Json = nlohmann::json;

constexpr double kPi = 3.14159265358979323846;

/// The elements of a head.
int64_t head_size(const Config& c) {
  constexpr int64_t kMost = 65536;
  if (const std::optional<int64_t> size = c.integer({"head_dim"})) {
    if (*size > kMost) c.invalid("head_dim", fmt::format("at most {}", kMost));
    return *size;
  }
  const int64_t heads = c.require_integer({"num_attention_heads", "n_head"});
  if (heads < 1) c.invalid("num_attention_heads", "at least 1");
  return std::min(kMost, c.require_integer({"hidden_size", "n_embd"}) / heads);
}

std::string rope_type(const Config& rope) { return rope.text({"rope_type"}).value_or("default"); }

/// The factor of a scaling. Errors: it is missing or isn't positive.
double scaling_factor(const Config& rope) {
  const double factor = rope.require_number({"factor"});
  if (!(factor > 0)) rope.invalid("factor", "more than 0");
  return factor;
}

/// Positions beyond max_position_embeddings have a larger base.
void dynamic_keys(const Config& c, const Config& rope, Keys& k) {
  const double factor = rope.require_number({"factor"});
  if (!(factor >= 1)) rope.invalid("factor", "at least 1");
  const int64_t trained = c.require_integer({"max_position_embeddings"});
  constexpr double kMostContext = 1 << 30;
  k.set("rope.scaling.type", "dynamic");
  k.set("rope.scaling.factor", factor);
  k.set("rope.scaling.original_context_length", trained);
  k.set("context_length",
        static_cast<int64_t>(std::min(kMostContext, factor * static_cast<double>(trained))));
}

}  // namespace

void rope_scaling_keys(const Config& c, Keys& k) {
  const Config rope = rope_of(c);
  const std::string type = rope_type(rope);
  // A scaling without its type would have no effect.
  if (rope.has({"factor"})) rope.require({"rope_type"});
  constexpr std::string_view kElsewhere[] = {"default", "llama3", "proportional"};
  if (std::find(std::begin(kElsewhere), std::end(kElsewhere), type) != std::end(kElsewhere)) return;
  if (type == "dynamic") {
    dynamic_keys(c, rope, k);
  } else if (type == "linear") {
    k.set("rope.scaling.type", "linear");
    k.set("rope.scaling.factor", scaling_factor(rope));
  } else if (type == "yarn") {
    k.set("rope.scaling.type", "yarn");
    k.set("rope.scaling.factor", scaling_factor(rope));
    k.set("rope.scaling.original_context_length",
          rope.integer({"original_max_position_embeddings"}));
    k.set("rope.scaling.attn_factor", rope.number({"attention_factor", "attn_factor"}));
    k.set("rope.scaling.yarn_beta_fast", rope.number({"beta_fast"}));
    k.set("rope.scaling.yarn_beta_slow", rope.number({"beta_slow"}));
  } else if (type == "longrope" || type == "su") {
    k.set("rope.scaling.type", "longrope");
  } else {
    rope.unsupported("rope_type",
                     "this version supports default, linear, yarn, llama3, longrope, proportional "
                     "and dynamic");
  }
}

namespace {

/// Divisors that leave high frequencies as they are and divide low ones by the factor, with a
/// transition between.
std::vector<float> llama3_divisors(const Config& c, const Config& rope) {
  const int64_t size = head_size(c);
  const double base = rope.number({"rope_theta"}).value_or(10000.0);
  const double factor = scaling_factor(rope);
  const double low = rope.require_number({"low_freq_factor"});
  const double high = rope.require_number({"high_freq_factor"});
  const double context = rope.require_number({"original_max_position_embeddings"});
  if (!(low > 0) || !(high > low))
    rope.invalid("high_freq_factor", "more than low_freq_factor > 0");
  std::vector<float> divisors;
  for (int64_t i = 0; i < size; i += 2) {
    const double wave =
        2 * kPi * math::pow(base, static_cast<double>(i) / static_cast<double>(size));
    double divisor = 1.0;
    if (wave > context / low) {
      divisor = factor;
    } else if (wave >= context / high) {
      const double smooth = (context / wave - low) / (high - low);
      divisor = 1.0 / ((1.0 - smooth) / factor + smooth);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

/// The first pairs of elements rotate, the others have a divisor that keeps their angles at 0.
std::vector<float> proportional_divisors(const Config& c, const Config& rope) {
  constexpr float kNoRotation = 1e30f;
  const double part = rope.number({"partial_rotary_factor"}).value_or(1.0);
  if (!(part > 0 && part <= 1)) rope.invalid("partial_rotary_factor", "more than 0, at most 1");
  const int64_t size = gemma4_head_size(c);
  const auto rotated = static_cast<size_t>(part * static_cast<double>(size) / 2);
  std::vector<float> divisors(static_cast<size_t>(size / 2), kNoRotation);
  std::fill_n(divisors.begin(), std::min(rotated, divisors.size()), 1.0f);
  return divisors;
}

}  // namespace

std::string Keys::key(std::string_view name) const {
  return fmt::format("{}.{}", architecture_, name);
}

void Keys::set(std::string_view name, int64_t value) {
  out_.set_u32(key(name), static_cast<uint32_t>(value));
}

void Keys::set(std::string_view name, double value) {
  out_.set_f32(key(name), static_cast<float>(value));
}

void Keys::set(std::string_view name, std::optional<int64_t> value) {
  if (value) set(name, *value);
}

void Keys::set(std::string_view name, std::optional<double> value) {
  if (value) set(name, *value);
}

void Keys::set(std::string_view name, std::string_view value) { out_.set_string(key(name), value); }

void Keys::set_flag(std::string_view name, bool value) { out_.set_bool(key(name), value); }

void Keys::set_integers(std::string_view name, const std::vector<int64_t>& values) {
  std::vector<int32_t> all;
  for (const int64_t value : values) all.push_back(static_cast<int32_t>(value));
  out_.set_i32s(key(name), all);
}

void Keys::remove(std::string_view name) { out_.remove(key(name)); }

void Keys::set_flags(std::string_view name, const std::vector<bool>& values) {
  out_.set_bools(key(name), values);
}

// Files have rope_parameters (transformers 5), or rope_scaling with rope_theta and others beside
// it. Either may have one object for layers with a window and one for the others.
Config rope_of(const Config& c) {
  Config rope = c.object(c.has({"rope_parameters"}) ? "rope_parameters" : "rope_scaling");
  Json members = Json::object();
  if (rope.has({"full_attention"}) || rope.has({"sliding_attention"})) {
    members["local_theta"] = rope.object("sliding_attention").json().value("rope_theta", Json());
    rope = rope.object("full_attention");
  }
  const auto beside = [&](const char* name, Config::Names names) {
    for (const char* one : names) {
      if (members[name].is_null() && c.has({one})) members[name] = c.json().at(one);
    }
  };
  beside("rope_theta", {"rope_theta", "rotary_emb_base", "global_rope_theta"});
  beside("local_theta", {"rope_local_base_freq", "local_rope_theta"});
  beside("partial_rotary_factor", {"partial_rotary_factor", "rotary_pct", "rope_pct"});
  beside("original_max_position_embeddings", {"original_max_position_embeddings"});
  members["rope_type"] = rope.json().value("type", Json());
  rope.add_missing(members);
  return rope;
}

void common_keys(const Config& c, Keys& k) {
  k.set("block_count", c.require_integer({"num_hidden_layers", "n_layer", "num_layers"}));
  k.set("context_length", c.require_integer({"max_position_embeddings", "n_positions", "n_ctx"}));
  k.set("embedding_length", c.require_integer({"hidden_size", "n_embd"}));
  k.set("feed_forward_length", c.integer({"intermediate_size", "n_inner"}));
  k.set("attention.head_count", c.require_integer({"num_attention_heads", "n_head"}));
  k.set("attention.head_count_kv", c.integer({"num_key_value_heads"}));
  k.set("vocab_size", c.integer({"vocab_size"}));
  const Config rope = rope_of(c);
  k.set("rope.freq_base", rope.number({"rope_theta"}));
  k.set("rope.freq_base_swa", rope.number({"local_theta"}));
  if (const auto part = rope.number({"partial_rotary_factor"})) {
    if (!(*part > 0 && *part <= 1)) rope.invalid("partial_rotary_factor", "more than 0, at most 1");
    k.set("rope.dimension_count", static_cast<int64_t>(*part * static_cast<double>(head_size(c))));
  }
  k.set("attention.layer_norm_rms_epsilon", c.number({"rms_norm_eps", "norm_eps"}));
  k.set("attention.layer_norm_epsilon",
        c.number({"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"}));
  k.set("expert_count", c.integer({"num_local_experts", "num_experts", "n_routed_experts"}));
  k.set("expert_used_count", c.integer({"num_experts_per_tok"}));
  k.set("attention.key_length", c.integer({"head_dim"}));
  k.set("attention.value_length", c.integer({"head_dim"}));
}

ExtraTensors rope_tensors(const Config& c) {
  const Config rope = rope_of(c);
  const std::string type = rope_type(rope);
  if (type == "llama3") return {{"rope_freqs.weight", llama3_divisors(c, rope)}};
  if (type == "proportional") return {{"rope_freqs.weight", proportional_divisors(c, rope)}};
  if (type != "longrope" && type != "su") return {};
  const double part = rope.number({"partial_rotary_factor"}).value_or(1.0);
  const auto pairs = static_cast<size_t>(part * static_cast<double>(head_size(c))) / 2;
  ExtraTensors tensors;
  for (const char* name : {"long_factor", "short_factor"}) {
    rope.require({name});
    std::vector<float> factors;
    for (const double factor : rope.numbers(name)) factors.push_back(static_cast<float>(factor));
    if (factors.size() != pairs) rope.invalid(name, fmt::format("{} numbers", pairs));
    tensors.emplace_back(fmt::format("rope_factors_{}.weight",
                                     name == std::string_view("long_factor") ? "long" : "short"),
                         std::move(factors));
  }
  return tensors;
}

}  // namespace wick::models::hf
