// Adapters of PEFT: "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" is the factor
// A of "blk.0.attn_q.weight". The factors always multiply as b·a, whatever fan_in_fan_out says: it
// tells how the layer stores its own weight.
#include "wick/models/hf/peft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/safetensors.h"
#include "wick/models/hf/config.h"
#include "wick/models/hf/elements.h"
#include "wick/models/hf/families.h"
#include "wick/models/hf/naming.h"

namespace wick::models::hf {
namespace {

constexpr size_t kMostConfigBytes = size_t{4} << 20;
constexpr std::string_view kPrefix = "base_model.model.", kA = ".lora_A.weight",
                           kB = ".lora_B.weight", kBase = ".base_layer.weight";

/// Errors: the adapter isn't of a kind that is only b·a beside the weights.
void check_kind(const Config& config) {
  if (config.text({"peft_type"}).value_or("") != "LORA") {
    config.unsupported("peft_type", "this version supports LORA");
  }
  const std::string bias = config.text({"bias"}).value_or("none");
  if (bias != "none") config.unsupported("bias", "this version supports none");
  for (const char* name :
       {"use_dora", "use_qalora", "lora_bias", "modules_to_save", "target_parameters",
        "layer_replication", "trainable_token_indices", "alora_invocation_tokens", "use_bdlora",
        "arrow_config", "velora_config", "monteclora_config", "kasa_config"}) {
    if (!config.has({name})) continue;
    const nlohmann::json& value = config.json().at(name);
    const bool unset = value == false || (value.is_structured() && value.empty());
    if (!unset) config.unsupported(name, "this version supports plain LoRA");
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

/// The value of the pattern that a module's name ends with, at a dot.
std::optional<double> matching(const Config& patterns, const std::string& module) {
  std::optional<double> found;
  for (const auto& [pattern, value] : patterns.json().items()) {
    const bool whole = pattern.starts_with('^');
    const std::string name = whole ? pattern.substr(1) : pattern;
    // Other patterns are regular expressions.
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.';
    });
    if (!plain) patterns.unsupported(pattern.c_str(), "this version reads names of modules");
    const bool matches = module == name || (!whole && module.ends_with("." + name));
    if (!matches) continue;
    const double number = patterns.require_number({pattern.c_str()});
    if (found && *found != number) {
      patterns.invalid(pattern.c_str(),
                       fmt::format("one pattern that matches {}", printable(module)));
    }
    found = number;
  }
  return found;
}

/// What adapter_config.json says of the sizes and scales.
class Scales {
 public:
  explicit Scales(const Config& config)
      : rank_(config.integer({"r"}).value_or(8)),
        alpha_(config.number({"lora_alpha"}).value_or(8)),
        roots_(config.flag("use_rslora", false)),
        ranks_(config.object("rank_pattern")),
        alphas_(config.object("alpha_pattern")) {
    if (rank_ < 1) config.invalid("r", "at least 1");
  }
  double rank(const std::string& module) const {
    return matching(ranks_, module).value_or(static_cast<double>(rank_));
  }
  float scale(const std::string& module) const {
    const double alpha = matching(alphas_, module).value_or(alpha_), r = rank(module);
    return static_cast<float>(alpha / (roots_ ? std::sqrt(r) : r));
  }

 private:
  int64_t rank_;
  double alpha_;
  bool roots_;
  Config ranks_, alphas_;
};

/// The heads of a model, as the forms of rows need them.
Sizes sizes_of(const io::ModelFile& model, std::string_view architecture) {
  const auto first = [&](const char* name, int64_t or_else) {
    const io::GgufValue* const value = model.find(fmt::format("{}.{}", architecture, name));
    if (value == nullptr || (value->is_array() && value->count() == 0)) return or_else;
    return (value->is_array() ? value->at(0) : *value).as_i64().value_or(or_else);
  };
  Sizes sizes;
  sizes.heads = first("attention.head_count", 0);
  sizes.kv_heads = first("attention.head_count_kv", sizes.heads);
  sizes.linear_heads = first("ssm.group_count", 0);
  sizes.linear_keys = first("ssm.state_size", 0);
  if (sizes.linear_heads > 0) {
    sizes.linear_values = first("ssm.inner_size", 0) / sizes.linear_heads;
  }
  return sizes;
}

class Reader {
 public:
  Reader(const std::string& folder, std::string_view architecture, const io::ModelFile& model)
      : config_(Config::read(folder + "/adapter_config.json", kMostConfigBytes)),
        scales_(config_),
        file_(io::Safetensors::open(folder + "/adapter_model.safetensors")),
        family_(family_of(architecture)),
        model_(model),
        sizes_(sizes_of(model, architecture)) {
    check_kind(config_);
    if (family_ != nullptr) return;
    throw Error(ErrorKind::not_implemented, printable(file_->path()),
                "PEFT adapters of this architecture aren't supported",
                fmt::format("'{}'", printable(architecture)));
  }

  std::vector<PeftFactors> read() {
    std::map<std::string, std::pair<const io::SafeTensor*, const io::SafeTensor*>> modules;
    for (const io::SafeTensor& tensor : file_->tensors()) {
      const std::string_view name = tensor.name;
      const bool is_a = name.ends_with(kA), is_b = name.ends_with(kB);
      if (is_output(tensor)) continue;
      if (!name.starts_with(kPrefix) || (!is_a && !is_b)) {
        fail(tensor, "tensor that isn't a factor of a matrix",
             "need names base_model.model.MODULE.lora_A.weight and .lora_B.weight");
      }
      const size_t ending = is_a ? kA.size() : kB.size();
      auto& [a, b] =
          modules[std::string(name.substr(kPrefix.size(), name.size() - kPrefix.size() - ending))];
      (is_a ? a : b) = &tensor;
    }
    for (const auto& [module, factors] : modules) add(module, factors.first, factors.second);
    file_->bytes()->require_unchanged("load");
    return std::move(all_);
  }

 private:
  [[noreturn]] void fail(const io::SafeTensor& tensor, std::string_view what,
                         std::string_view rule) const {
    throw Error(printable(file_->path()), what,
                fmt::format("{} {}", printable(tensor.name), tensor.str()), rule);
  }

  /// Whether a tensor is the model's own output matrix, which PEFT saves with adapters of it.
  /// Errors: it has another shape, because the vocabulary was resized.
  bool is_output(const io::SafeTensor& tensor) const {
    if (tensor.name != fmt::format("{}lm_head{}", kPrefix, kBase)) return false;
    const io::GgufTensor* const own = model_.find_tensor("output.weight");
    if (own == nullptr || !(own->shape == tensor.shape)) {
      fail(tensor, "output matrix differs from the model's",
           own == nullptr ? "the model has none" : own->str());
    }
    return true;
  }

  /// f32, dense
  Tensor factor(const io::SafeTensor& tensor) const {
    if (!tensor.dtype || !is_float(*tensor.dtype) || tensor.shape.rank() != 2) {
      fail(tensor, "factor isn't a matrix of floats", "need F32, F16 or BF16 and two dims");
    }
    return file_->tensor(tensor).to(DType::f32);
  }

  void add(const std::string& module, const io::SafeTensor* stored_a,
           const io::SafeTensor* stored_b) {
    if (stored_a == nullptr || stored_b == nullptr) {
      fail(stored_a == nullptr ? *stored_b : *stored_a, "the other factor is missing",
           "need lora_A and lora_B of each module");
    }
    const Tensor a = factor(*stored_a), b = factor(*stored_b);
    const double rank = scales_.rank(module);
    if (static_cast<double>(a.size(0)) != rank || b.size(1) != a.size(0)) {
      fail(*stored_b, "factors don't fit",
           fmt::format("lora_A is {}, and the rank in adapter_config.json {}", stored_a->str(),
                       rank));
    }
    for (auto& [name, form] : places(module, *stored_b)) {
      const std::optional<FormView> view = view_of(form, b.shape(), sizes_);
      if (!view) fail(*stored_b, "factor has the wrong shape", fmt::format("for {}", name));
      all_.push_back(
          {name, module, a, elements_of(b, *view).reshape(view->shape), scales_.scale(module)});
    }
  }

  /// The matrices that a module is in the GGUF file.
  std::vector<std::pair<std::string, Form>> places(const std::string& module,
                                                   const io::SafeTensor& tensor) const {
    const auto unused = [&](std::string_view why) {
      throw Error(ErrorKind::not_implemented, printable(file_->path()),
                  "factors that this version doesn't use", printable(tensor.name), why);
    };
    const TensorName name = parse_name(module + ".weight");
    if (name.layer < 0) {
      const std::string_view outer = outer_name(name.stem);
      if (outer != "output")
        unused("the model has no such matrix, or adapters of it aren't supported");
      return {{"output.weight", Form::same}};
    }
    if (name.number >= 0 || name.stem.find("experts") != std::string::npos) {
      unused("adapters of experts aren't supported");
    }
    const std::vector<NameRule> rules = rules_for(*family_, name.stem);
    if (rules.empty()) unused("the model has no such matrix");
    std::vector<std::pair<std::string, Form>> found;
    for (const NameRule& rule : rules) {
      // GPT-2 stores its matrices transposed, but the factors aren't.
      const Form form = rule.form == Form::transposed ? Form::same : rule.form;
      // The rows of b·a are those of b.
      if (!moves_rows(form)) unused("adapters of this kind of matrix aren't supported");
      found.emplace_back(fmt::format("blk.{}.{}.weight", name.layer, rule.to), form);
    }
    return found;
  }

  const Config config_;
  const Scales scales_;
  const std::shared_ptr<const io::Safetensors> file_;
  const Family* const family_;
  const io::ModelFile& model_;
  const Sizes sizes_;
  std::vector<PeftFactors> all_;
};

}  // namespace

std::vector<PeftFactors> read_peft(const std::string& folder, std::string_view architecture,
                                   const io::ModelFile& model) {
  return Reader(folder, architecture, model).read();
}

}  // namespace wick::models::hf
