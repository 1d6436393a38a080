// Adapters of PEFT: "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" is the factor
// A of "blk.0.attn_q.weight". The factors always multiply as b·a, whatever fan_in_fan_out says: it
// tells how the layer stores its own weight.
#include "wick/models/hf/peft.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/safetensors.h"
#include "wick/models/hf/elements.h"
#include "wick/models/hf/families.h"
#include "wick/models/hf/naming.h"
#include "wick/models/hf/peft_config.h"
#include "wick/tensor/ops.h"

namespace wick::models::hf {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kTable = "token_embd.weight", kOutput = "output.weight";

/// The tensors of a module.
struct Module {
  const io::SafeTensor *a = nullptr, *b = nullptr;  // factors
  const io::SafeTensor* magnitude = nullptr;        // norms of rows
  const io::SafeTensor* shift = nullptr;            // the bias of b
  const io::SafeTensor* bias = nullptr;             // of the module itself
  const io::SafeTensor* whole = nullptr;            // the module's own matrix
  bool is_table = false;                            // the factors are those of an embedding
};

struct Ending {
  std::string_view text;
  const io::SafeTensor* Module::*member;
};
// Longer endings come before those that end like them.
constexpr Ending kEndings[] = {
    {".lora_A.weight", &Module::a},
    {".lora_B.weight", &Module::b},
    {".lora_B.bias", &Module::shift},
    {".lora_embedding_A", &Module::a},
    {".lora_embedding_B", &Module::b},
    {".lora_magnitude_vector", &Module::magnitude},
    {".lora_magnitude_vector.weight", &Module::magnitude},
    {".base_layer.weight", &Module::whole},
    {".base_layer.bias", &Module::bias},
    {".weight", &Module::whole},
    {".bias", &Module::bias},
};

/// An integer of the model's metadata, or the first of an array.
int64_t first_integer(const io::ModelFile& model, std::string_view architecture,
                      std::string_view name, int64_t or_else) {
  const io::GgufValue* const value = model.find(fmt::format("{}.{}", architecture, name));
  if (value == nullptr || (value->is_array() && value->count() == 0)) return or_else;
  return (value->is_array() ? value->at(0) : *value).as_i64().value_or(or_else);
}

/// The heads of a model, as the forms of rows need them.
Sizes sizes_of(const io::ModelFile& model, std::string_view architecture) {
  const auto first = [&](const char* name, int64_t or_else) {
    return first_integer(model, architecture, name, or_else);
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

/// A matrix in the GGUF file that a module is, or the number of the expert whose matrix it is.
struct Place {
  std::string name;
  Form form;  // of the rows
  int64_t expert = -1;
  bool transposed = false;  // whether the module stores its own matrix as [k, n], as GPT-2 does
};

class Reader {
 public:
  Reader(const std::string& folder, std::string_view architecture, const io::ModelFile& model)
      : config_(folder),
        file_(io::Safetensors::open(folder + "/adapter_model.safetensors")),
        family_(family_of(architecture)),
        model_(model),
        sizes_(sizes_of(model, architecture)),
        experts_(first_integer(model, architecture, "expert_count", 0)) {
    if (family_ != nullptr) return;
    throw Error(ErrorKind::not_implemented, printable(file_->path()),
                "PEFT adapters of this architecture aren't supported",
                fmt::format("'{}'", printable(architecture)));
  }

  std::vector<PeftChange> read() {
    std::map<std::string, Module> modules;
    for (const io::SafeTensor& tensor : file_->tensors()) sort_in(tensor, modules);
    for (const auto& [name, module] : modules) add(name, module);
    add_stacks();
    file_->bytes()->require_unchanged("load");
    std::vector<PeftChange> all;
    for (auto& [name, change] : changes_) all.push_back({name, std::move(change)});
    return all;
  }

 private:
  [[noreturn]] void fail(const io::SafeTensor& tensor, std::string_view what,
                         std::string_view rule) const {
    throw Error(printable(file_->path()), what,
                fmt::format("{} {}", printable(tensor.name), tensor.str()), rule);
  }
  [[noreturn]] void unused(const io::SafeTensor& tensor, std::string_view why) const {
    throw Error(ErrorKind::not_implemented, printable(file_->path()),
                "factors that this version doesn't use", printable(tensor.name), why);
  }

  // ---- Which tensor belongs to which module ----

  void sort_in(const io::SafeTensor& tensor, std::map<std::string, Module>& modules) const {
    const std::string_view full = tensor.name;
    for (const Ending& ending : kEndings) {
      if (!full.starts_with(kPrefix) || !full.ends_with(ending.text)) continue;
      if (full.size() <= kPrefix.size() + ending.text.size()) continue;
      std::string name(
          full.substr(kPrefix.size(), full.size() - kPrefix.size() - ending.text.size()));
      if (ending.member == &Module::whole && is_copy(name, tensor)) return;
      if (!belongs(name, ending.member)) break;
      Module& module = modules[std::move(name)];
      if (module.*ending.member != nullptr) fail(tensor, "two tensors have the same meaning", "");
      module.*ending.member = &tensor;
      module.is_table = module.is_table || ending.text.starts_with(".lora_embedding");
      return;
    }
    fail(tensor, "tensor that isn't a factor",
         "need names base_model.model.MODULE.lora_A.weight and .lora_B.weight, or what "
         "adapter_config.json says is trained");
  }

  /// Whether the configuration says that a module has such a tensor.
  bool belongs(const std::string& module, const io::SafeTensor* Module::*member) const {
    if (member == &Module::whole) return config_.saves(module);
    if (member == &Module::bias) return config_.saves(module) || config_.trains_biases();
    return member != &Module::magnitude || config_.has_magnitudes();
  }

  /// Whether a tensor is a copy of the model's embedding table or output matrix, which PEFT saves
  /// beside factors of them. Errors: it has another shape, because the vocabulary was resized.
  bool is_copy(const std::string& module, const io::SafeTensor& tensor) const {
    if (config_.saves(module)) return false;
    const TensorName name = parse_name(module + ".weight");
    const std::string outer = name.layer < 0 ? std::string(outer_name(name.stem)) : "";
    if (outer != "token_embd" && outer != "output") return false;
    const io::GgufTensor* own = model_.find_tensor(outer + ".weight");
    if (own == nullptr) own = model_.find_tensor(kTable);  // the matrix is tied to the table
    if (own == nullptr || !(own->shape == tensor.shape)) {
      fail(tensor,
           fmt::format("{} differs from the model's",
                       outer == "output" ? "output matrix" : "embedding table"),
           own == nullptr ? "the model has none" : own->str());
    }
    return true;
  }

  // ---- What a module changes ----

  void check_floats(const io::SafeTensor& tensor, int rank) const {
    if (!tensor.dtype || !is_float(*tensor.dtype) || tensor.shape.rank() != rank) {
      fail(tensor, rank == 2 ? "factor isn't a matrix of floats" : "not a vector of floats",
           fmt::format("need F32, F16 or BF16 and {} dim{}", rank, rank == 1 ? "" : "s"));
    }
  }
  /// f32, dense
  Tensor floats(const io::SafeTensor& tensor, int rank) const {
    check_floats(tensor, rank);
    return file_->tensor(tensor).to(DType::f32);
  }

  /// The rows of a tensor in the GGUF file's order.
  Tensor placed(const Tensor& x, const Place& place, const io::SafeTensor& tensor) const {
    const bool vector = x.rank() == 1;
    const Tensor matrix = vector ? x.reshape({x.size(0), 1}) : x;
    const std::optional<FormView> view = view_of(place.form, matrix.shape(), sizes_);
    if (!view) fail(tensor, "factor has the wrong shape", fmt::format("for {}", place.name));
    const Tensor rows = elements_of(matrix, *view).reshape(view->shape);
    return vector ? rows.reshape({rows.size(0)}) : rows;
  }

  void add(const std::string& name, const Module& module) {
    const io::SafeTensor& any = first_of(module);
    const MatrixChange change = change_of(name, module);
    for (const Place& place : places(name, any, module.is_table)) {
      MatrixChange of_place = change;
      const auto place_rows = [&](Tensor MatrixChange::*member, const io::SafeTensor* stored) {
        if (stored != nullptr) of_place.*member = placed(change.*member, place, *stored);
      };
      if (!module.is_table) place_rows(&MatrixChange::b, module.b);
      place_rows(&MatrixChange::magnitude, module.magnitude);
      if (place.transposed && change.whole.defined()) {
        of_place.whole = change.whole.t().contiguous();
      } else {
        place_rows(&MatrixChange::whole, module.whole);
      }
      place_rows(&MatrixChange::shift, module.shift);
      place_rows(&MatrixChange::bias, module.bias);
      if (place.expert >= 0) {
        add_expert(place, any, std::move(of_place));
      } else if (!changes_.emplace(place.name, std::move(of_place)).second) {
        fail(any, "two modules have the same meaning", place.name);
      }
    }
  }

  static const io::SafeTensor& first_of(const Module& m) {
    for (const io::SafeTensor* t : {m.b, m.a, m.whole, m.magnitude, m.shift, m.bias}) {
      if (t != nullptr) return *t;
    }
    throw Error("peft", "module without tensors");
  }

  /// The change in the order of the module's own rows.
  MatrixChange change_of(const std::string& name, const Module& module) const {
    MatrixChange change;
    if (module.a != nullptr || module.b != nullptr) {
      read_factors(name, module, change);
    } else if (module.magnitude != nullptr || module.shift != nullptr) {
      fail(first_of(module), "the factors are missing", "need lora_A and lora_B of each module");
    }
    if (module.whole != nullptr) {
      if (module.a != nullptr) fail(*module.whole, "factors of a module that is saved", "");
      check_floats(*module.whole, 2);
      change.whole = dense_copy(file_->tensor(*module.whole));
    }
    if (module.bias != nullptr) change.bias = floats(*module.bias, 1);
    return change;
  }

  void read_factors(const std::string& name, const Module& module, MatrixChange& change) const {
    if (module.a == nullptr || module.b == nullptr) {
      fail(first_of(module), "the other factor is missing",
           "need lora_A and lora_B of each module");
    }
    const Tensor a = floats(*module.a, 2), b = floats(*module.b, 2);
    const double rank = config_.rank(name);
    if (static_cast<double>(a.size(0)) != rank || b.size(1) != a.size(0)) {
      fail(*module.b, "factors don't fit",
           fmt::format("lora_A is {}, and the rank in adapter_config.json {}", module.a->str(),
                       rank));
    }
    const float scale = config_.scale(name);
    change.a = module.is_table ? a.t().contiguous() : a;
    change.b = b * scale;
    if (config_.has_magnitudes() != (module.magnitude != nullptr) ||
        (module.is_table && module.magnitude != nullptr)) {
      fail(*module.b, "use_dora and the module's tensors disagree",
           module.is_table ? "DoRA of embeddings isn't supported"
                           : "need lora_magnitude_vector of each module");
    }
    if (module.magnitude != nullptr) change.magnitude = floats(*module.magnitude, 1);
    if (module.shift != nullptr) change.shift = floats(*module.shift, 1) * scale;
  }

  // ---- Stacks of experts ----

  struct Expert {
    MatrixChange change;
    const io::SafeTensor* stored;
  };

  void add_expert(const Place& place, const io::SafeTensor& stored, MatrixChange change) {
    if (place.expert >= experts_) {
      fail(stored, "expert that the model doesn't have", fmt::format("it has {}", experts_));
    }
    if (!change.a.defined() || change.magnitude.defined() || change.shift.defined() ||
        change.bias.defined()) {
      unused(stored, "only factors of experts are supported");
    }
    if (!stacks_[place.name].emplace(place.expert, Expert{std::move(change), &stored}).second) {
      fail(stored, "two modules have the same meaning", place.name);
    }
  }

  /// Joins the factors of each stack's experts. Those of experts that weren't trained are zeros.
  void add_stacks() {
    for (const auto& [name, experts] : stacks_) {
      const MatrixChange& first = experts.begin()->second.change;
      std::vector<Tensor> as, bs;
      for (int64_t i = 0; i < experts_; ++i) {
        const auto at = experts.find(i);
        const bool trained = at != experts.end();
        const Tensor a = trained ? at->second.change.a : Tensor::zeros(first.a.shape(), DType::f32);
        const Tensor b = trained ? at->second.change.b : Tensor::zeros(first.b.shape(), DType::f32);
        if (!(a.shape() == first.a.shape()) || !(b.shape() == first.b.shape())) {
          fail(*at->second.stored, "factors of a layer's experts have different shapes",
               fmt::format("expert {} has {} and {}", experts.begin()->first, first.a.str(),
                           first.b.str()));
        }
        as.push_back(a.unsqueeze(0)), bs.push_back(b.unsqueeze(0));
      }
      MatrixChange stack;
      stack.a = cat(as, 0), stack.b = cat(bs, 0);
      changes_.emplace(name, std::move(stack));
    }
  }

  // ---- Names ----

  /// The matrices that a module is in the GGUF file.
  std::vector<Place> places(const std::string& module, const io::SafeTensor& tensor,
                            bool is_table) const {
    const TensorName name = parse_name(module + ".weight");
    if (name.layer < 0) {
      const std::string outer = fmt::format("{}.weight", outer_name(name.stem));
      const bool known =
          outer == (is_table ? kTable : kOutput) ||
          (outer == kTable && tensor.name.ends_with(".weight") && config_.saves(module));
      if (!known)
        unused(tensor, "the model has no such matrix, or adapters of it aren't supported");
      return {{outer, Form::same}};
    }
    const std::vector<NameRule> rules = rules_for(*family_, name.stem);
    if (rules.empty() || is_table) unused(tensor, "the model has no such matrix");
    std::vector<Place> found;
    for (const NameRule& rule : rules) {
      // Latent attention splits the matrix, see LatentAttention::load_updates.
      if (rule.form == Form::latent_values) continue;
      const bool latent = rule.form == Form::latent_keys;
      // GPT-2 stores its matrices transposed, but the factors aren't.
      const bool transposed = rule.form == Form::transposed;
      const Form form = latent || transposed ? Form::same : rule.form;
      // The rows of b·a are those of b.
      if (!moves_rows(form)) unused(tensor, "adapters of this kind of matrix aren't supported");
      const std::string_view to = latent ? "attn_kv_b" : rule.to;
      found.push_back(
          {fmt::format("blk.{}.{}.weight", name.layer, to), form, name.number, transposed});
      if (name.number >= 0 && form != Form::same) {
        unused(tensor, "adapters of this kind of matrix aren't supported");
      }
    }
    return found;
  }

  const PeftConfig config_;
  const std::shared_ptr<const io::Safetensors> file_;
  const Family* const family_;
  const io::ModelFile& model_;
  const Sizes sizes_;
  const int64_t experts_;
  std::map<std::string, MatrixChange> changes_;
  std::map<std::string, std::map<int64_t, Expert>> stacks_;
};

}  // namespace

std::vector<PeftChange> read_peft(const std::string& folder, std::string_view architecture,
                                  const io::ModelFile& model) {
  return Reader(folder, architecture, model).read();
}

}  // namespace wick::models::hf
