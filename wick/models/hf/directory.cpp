#include "wick/models/hf/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/ggml_type.h"
#include "wick/models/hf/elements.h"
#include "wick/models/hf/modules.h"
#include "wick/models/hf/naming.h"
#include "wick/models/hf/text_files.h"
#include "wick/tensor/ops.h"

namespace wick::models::hf {
namespace {

constexpr size_t kMostConfigBytes = size_t{4} << 20;
constexpr int kMostRank = 4;  // of GGUF files

/// x with its rows multiplied in f32.
Tensor multiply_rows(const Tensor& x, const std::vector<RowFactor>& factors) {
  std::vector<Tensor> pieces;
  int64_t row = 0;
  for (const RowFactor& one : factors) {
    const int64_t count = std::min(one.rows == 0 ? x.size(0) : one.rows, x.size(0) - row);
    pieces.push_back(x.narrow(0, row, count).to(DType::f32) * one.factor);
    row += count;
  }
  return cat(pieces, 0).to(x.dtype());
}

/// The name of a tensor in its layer.
std::string_view name_in_layer(std::string_view name) {
  constexpr std::string_view kLayer = "blk.";
  if (!name.starts_with(kLayer)) return name;
  name.remove_prefix(kLayer.size());
  return name.substr(name.find('.') + 1);
}

/// Whether a language model has no output matrix: neither a tensor nor the embedding table.
bool lacks_output(const Description& description, const Shards& shards) {
  if (description.family->encodes || description.tied ||
      !description.config.has({"tie_word_embeddings"})) {
    return false;
  }
  return std::none_of(shards.tensors.begin(), shards.tensors.end(), [](const Stored& stored) {
    const TensorName name = parse_name(stored.tensor->name);
    const std::string_view module = std::string_view(name.stem).substr(0, name.stem.find('.'));
    return name.layer < 0 && outer_name(module) == "output";
  });
}

/// Whether a folder is of a language model without its head: of MistralModel, not of
/// MistralForCausalLM.
bool is_headless(const Config& config) {
  const auto found = config.json().find("architectures");
  if (found == config.json().end() || !found->is_array() || found->size() != 1) return false;
  const nlohmann::json& name = found->front();
  return name.is_string() && name.get_ref<const std::string&>().ends_with("Model");
}

}  // namespace

Directory::Directory(const std::string& path) : ModelFile("model") {
  path_ = path;
  const Description description = describe(Config::read(path + "/config.json", kMostConfigBytes));
  scale_block_ = description.scale_block;
  int4_ = description.int4;
  sizes_ = description.sizes;
  io::GgufMetadata metadata;
  set_keys(description, metadata);
  text_keys(path, description.config, metadata);
  const std::string_view architecture = description.family->architecture;
  const std::vector<std::string> dense = read_modules(path, architecture, metadata);
  shards_ = Shards::open(path);
  if (lacks_output(description, shards_)) {
    metadata.set_bool(fmt::format("{}.has_output", architecture), false);
  }
  const std::string bytes = metadata.file();
  keys_ = io::Gguf::parse(io::Bytes::copy_of(std::as_bytes(std::span(bytes))), path);
  for (const io::GgufEntry& entry : keys_->metadata()) add(entry);
  read_tensors(description);
  for (size_t i = 0; i < dense.size(); ++i) {
    read_dense(dense[i], fmt::format("dense_{}", 2 + i), description.sizes);
  }
  for (const Target& target : targets_) {
    io::GgufTensor tensor;
    tensor.name = target.name;
    tensor.dtype = target.dtype;
    tensor.type = io::ggml_type_number(target.dtype).value();
    tensor.shape = target.shape;
    tensor.bytes = static_cast<uint64_t>(bytes_of(target.dtype, target.shape.elems()));
    add(tensor);
  }
}

/// Errors: config.json contradicts the tensors.
void Directory::check_tensors(const Description& description) const {
  const Config& config = description.config;
  const auto find = [&](std::string_view name) {
    const auto found = std::find_if(targets_.begin(), targets_.end(),
                                    [&](const Target& target) { return target.name == name; });
    return found == targets_.end() ? nullptr : &*found;
  };
  if (const std::optional<int64_t> size = config.integer({"vocab_size"})) {
    // Files may have further rows, up to a multiple of a number.
    const int64_t multiple =
        std::max<int64_t>(config.integer({"pad_vocab_size_multiple"}).value_or(1), 1);
    const int64_t padded = (*size + multiple - 1) / multiple * multiple;
    for (const char* name : {"token_embd.weight", "output.weight"}) {
      const Target* const target = find(name);
      if (target == nullptr || target->shape.rank() == 0) continue;
      if (target->shape[0] == *size || target->shape[0] == padded) continue;
      config.invalid("vocab_size",
                     fmt::format("{}, the rows of {}", target->shape[0],
                                 printable(target->sources.front().stored.tensor->name)));
    }
  }
  // Makers of embeddings need no output matrix. Families have other defaults of the flag.
  const bool makes_embeddings =
      description.family->encodes || is_headless(config) ||
      keys_->contains(fmt::format("{}.pooling_type", description.family->architecture));
  if (config.has({"tie_word_embeddings"}) && !description.tied && !makes_embeddings &&
      find("token_embd.weight") != nullptr && find("output.weight") == nullptr) {
    config.invalid("tie_word_embeddings", "true, because there is no tensor lm_head.weight");
  }
  for (const auto& [flag, part] : {std::pair{"attention_bias", ".attn_"}, {"mlp_bias", ".ffn_"}}) {
    const bool has_bias = std::any_of(
        targets_.begin(), targets_.end(), [&, part = std::string_view(part)](const Target& target) {
          return target.name.ends_with(".bias") && target.name.find(part) != std::string::npos;
        });
    if (config.flag(flag, false) && !has_bias) {
      config.invalid(flag, "false, because there are no such tensors");
    }
  }
}

/// Reads a dense layer that follows the pooling. Its weights are files of its own folder.
void Directory::read_dense(const std::string& folder, const std::string& name, const Sizes& sizes) {
  constexpr std::string_view kStem = "linear";
  Shards shards = Shards::open(folder);
  for (const Stored& stored : shards.tensors) {
    const std::string_view own = stored.tensor->name;
    const bool known = own == "linear.weight" || own == "linear.bias";
    if (!known) wrong_tensor(stored, "tensor has no place in a dense layer", "need linear.weight");
    Target target;
    target.name = name + std::string(own.substr(kStem.size()));
    target.sources = {{stored}};
    describe_target(target, sizes);
    targets_.push_back(std::move(target));
  }
  shards_.files.insert(shards_.files.end(), shards.files.begin(), shards.files.end());
}

void Directory::read_tensors(const Description& description) {
  for (auto& [name, values] : rope_tensors(description.config)) {
    Target target;
    target.name = name;
    target.shape = {static_cast<int64_t>(values.size())};
    target.values = std::move(values);
    targets_.push_back(std::move(target));
  }
  for (Named& named : name_tensors(description, shards_.tensors)) {
    Target target;
    const Family& family = *description.family;
    const std::string_view stem = name_in_layer(named.name);
    target.adds_one = family.adds_one && stem.ends_with("norm.weight") && stem != "ssm_norm.weight";
    target.negates_exp = stem == "ssm_a";
    if (family.factors != nullptr) target.factors = family.factors(description.config, stem);
    target.name = std::move(named.name);
    target.form = named.form;
    target.stacked = named.stacked;
    target.sources = std::move(named.sources);
    describe_target(target, description.sizes);
    targets_.push_back(std::move(target));
  }
  check_tensors(description);
}

void Directory::describe_target(Target& target, const Sizes& sizes) const {
  for (const Source& source : target.sources) {
    const io::SafeTensor& tensor = *source.stored.tensor;
    const bool is_int4 = source.int4.codes.tensor != nullptr;
    const std::optional<FormView> view =
        view_of(target.form, is_int4 ? int4_shape(int4_, source.int4) : tensor.shape, sizes);
    if (!view || view->shape.rank() + (target.stacked ? 1 : 0) > kMostRank) {
      wrong_tensor(source.stored, "tensor has the wrong shape", fmt::format("for {}", target.name));
    }
    const DType dtype = dtype_of(target, source);
    if (source.scale.tensor != nullptr && !is_mxfp4(target.form) &&
        !scales_fit(tensor.shape, source.scale.tensor->shape, scale_block_)) {
      wrong_tensor(source.scale, "scales don't fit the weight", tensor.str());
    }
    if (!target.views.empty()) {
      if (!(view->shape == target.views.front().shape) || dtype != target.dtype) {
        wrong_tensor(source.stored, "tensors of one kind differ in shape or type",
                     fmt::format("{} has {}", printable(target.sources.front().stored.tensor->name),
                                 target.sources.front().stored.tensor->str()));
      }
    }
    target.dtype = dtype;
    target.views.push_back(*view);
  }
  const std::span<const int64_t> dims = target.views.front().shape.dims();
  std::vector<int64_t> all(dims.begin(), dims.end());
  if (target.stacked) all.insert(all.begin(), static_cast<int64_t>(target.sources.size()));
  target.shape = Shape(std::span<const int64_t>(all));  // checks the number of elements
}

DType Directory::dtype_of(const Target& target, const Source& source) const {
  const io::SafeTensor& tensor = *source.stored.tensor;
  const bool has_scale = source.scale.tensor != nullptr;
  if (source.int4.codes.tensor != nullptr) {
    if (changes_values(target)) return DType::f16;
    return int4_dtype(int4_, source.int4, int4_shape(int4_, source.int4), target.form);
  }
  if (is_mxfp4(target.form)) {
    const Shape& blocks = tensor.shape;
    const bool fits = has_scale && tensor.dtype == DType::u8 &&
                      source.scale.tensor->dtype == DType::u8 &&
                      source.scale.tensor->shape == Shape{blocks[0], blocks[1], blocks[2]};
    if (!fits)
      wrong_tensor(source.stored, "need scales u8 [e, n, k/32] beside the blocks u8", target.name);
    return DType::mxfp4;
  }
  const bool e5m2 = is_e5m2(tensor);
  if (!e5m2 && (!tensor.dtype || !is_float(*tensor.dtype))) {
    wrong_tensor(source.stored, "tensor has a type that isn't supported",
                 "this version reads F64, F32, F16, BF16, F8_E4M3 and F8_E5M2");
  }
  if (has_scale &&
      ((tensor.dtype != DType::f8e4m3 && !e5m2) || !source.scale.tensor->dtype ||
       !is_float(*source.scale.tensor->dtype) || source.scale.tensor->dtype == DType::f8e4m3)) {
    wrong_tensor(source.scale, "scale of a type that isn't supported",
                 fmt::format("of {}, need floats for F8", tensor.str()));
  }
  if (target.adds_one || target.negates_exp || tensor.dtype == DType::f64) return DType::f32;
  if (e5m2) return has_scale ? DType::bf16 : DType::f16;
  return tensor.dtype == DType::f8e4m3 ? DType::bf16 : *tensor.dtype;
}

std::string Directory::format() const {
  const bool rounds = int4_.method != Int4Config::Method::none &&
                      std::any_of(targets_.begin(), targets_.end(), [](const Target& target) {
                        return target.dtype == DType::f16 && !target.sources.empty() &&
                               target.sources.front().int4.codes.tensor != nullptr;
                      });
  return fmt::format("Hugging Face directory, {} safetensors file{}{}", shards_.files.size(),
                     shards_.files.size() == 1 ? "" : "s",
                     rounds ? ", 4-bit weights are rounded to f16" : "");
}

std::vector<std::string> Directory::files() const {
  std::vector<std::string> paths;
  for (const auto& file : shards_.files) paths.push_back(file->path());
  return paths;
}

uint64_t Directory::file_bytes() const {
  uint64_t bytes = 0;
  for (const auto& file : shards_.files) bytes += file->bytes()->size();
  return bytes;
}

void Directory::require_unchanged(std::string_view op) const {
  for (const auto& file : shards_.files) file->bytes()->require_unchanged(op);
}

/// The tensor is found by its name, so it may be a copy.
const Directory::Target& Directory::target_of(const io::GgufTensor& tensor) const {
  return targets_[static_cast<size_t>(&require_tensor(tensor.name) - tensors().data())];
}

bool Directory::is_mapped(const Target& target, size_t source) {
  return !changes_values(target) && !is_mxfp4(target.form) && target.views[source].more.empty() &&
         target.sources[source].stored.tensor->dtype == target.dtype &&
         target.views[source].layout.is_contiguous();
}

/// The result of one source.
Tensor Directory::load(const Target& target, size_t source) const {
  const auto& [stored, scale, int4] = target.sources[source];
  const FormView& view = target.views[source];
  if (is_mapped(target, source)) {
    return stored.file->part(*stored.tensor, view.layout.offset(), view.shape);
  }
  if (int4.codes.tensor != nullptr) {
    const Tensor weight = int4_weight(int4_, int4, target.form, sizes_);
    return target.factors.empty() ? weight : multiply_rows(weight, target.factors);
  }
  Tensor raw = is_e5m2(*stored.tensor) ? e5m2_to_f16(stored) : stored.file->tensor(*stored.tensor);
  const Tensor scales = scale.tensor != nullptr ? scale.file->tensor(*scale.tensor) : Tensor();
  if (is_mxfp4(target.form)) return mxfp4_of(target.form, raw, scales);
  if (raw.dtype() == DType::f8e4m3 || scales.defined()) {
    raw = f8_to_bf16(raw, scales, scale_block_);
  }
  Tensor result = elements_of(raw, view).reshape(view.shape);
  if (result.dtype() != target.dtype) result = result.to(target.dtype);
  if (target.adds_one) result = result + 1.0;
  if (target.negates_exp) result = neg(exp(result));
  if (!target.factors.empty()) result = multiply_rows(result, target.factors);
  return result;
}

Tensor Directory::tensor(const io::GgufTensor& tensor) const {
  const Target& target = target_of(tensor);
  if (target.sources.empty()) return Tensor::from(target.values, target.shape);
  if (!target.stacked) return load(target, 0);
  Tensor all = Tensor::empty(target.shape, target.dtype);
  auto* to = static_cast<std::byte*>(all.mutable_view().data);
  for (size_t i = 0; i < target.sources.size(); ++i) {
    const Tensor part = load(target, i);
    const auto bytes = static_cast<size_t>(bytes_of(target.dtype, part.elems()));
    if (bytes > 0) std::memcpy(to, part.storage()->data(), bytes);
    to += bytes;
  }
  return all;
}

int64_t Directory::parts(const io::GgufTensor& tensor) const {
  const Target& target = target_of(tensor);
  if (target.stacked) return static_cast<int64_t>(target.sources.size());
  // A file's tensor of several matrices can be read matrix by matrix if its elements aren't packed.
  const bool splits = target.shape.rank() > 2 && target.shape[0] > 0 && !changes_values(target) &&
                      !is_mxfp4(target.form) &&
                      target.sources.front().stored.tensor->dtype == target.dtype &&
                      target.views.front().layout.shape() == target.shape;
  return splits ? target.shape[0] : 1;
}

Tensor Directory::part(const io::GgufTensor& whole, int64_t index) const {
  const Target& target = target_of(whole);
  if (target.stacked) return load(target, static_cast<size_t>(index));
  if (parts(whole) == 1) return tensor(whole);
  const Stored& stored = target.sources.front().stored;
  const Layout layout = target.views.front().layout.narrow(0, index, 1);
  if (layout.is_contiguous()) {
    return stored.file->part(*stored.tensor, layout.offset(), layout.shape());
  }
  const Tensor raw = stored.file->tensor(*stored.tensor);
  return dense_copy(Tensor(raw.storage(), raw.dtype(), layout));
}

std::shared_ptr<const io::Bytes> Directory::mapped(const io::GgufTensor& tensor,
                                                   int64_t part) const {
  const Target& target = target_of(tensor);
  if (target.sources.empty()) return nullptr;
  const size_t source = target.stacked ? static_cast<size_t>(part) : 0;
  // Each part of a tensor that is read in parts is dense if the dims after the first are.
  const bool maps = parts(tensor) > 1 && !target.stacked
                        ? target.views.front().layout.narrow(0, 0, 1).is_contiguous()
                        : is_mapped(target, source);
  return maps ? target.sources[source].stored.file->bytes() : nullptr;
}

}  // namespace wick::models::hf
