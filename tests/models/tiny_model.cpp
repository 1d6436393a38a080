#include "tests/models/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/io/safetensors_builder.h"
#include "tests/models/tiny_llama.h"
#include "wick/tensor/ops.h"

namespace wick::test {
namespace {

/// The pseudo-random number in [0, 1) of an element: reference/make_models.py has the same
/// function.
double random_of(uint32_t seed, uint32_t index) {
  uint32_t x = index * 2654435769U + seed;
  x = (x ^ (x >> 16)) * 0x7FEB352DU;
  x = (x ^ (x >> 15)) * 0x846CA68BU;
  x ^= x >> 16;
  return static_cast<double>(x >> 8) / 0x1p24;
}

uint32_t seed_of(const std::string& text) {
  uint32_t seed = 2166136261U;
  for (const char c : text) seed = (seed ^ static_cast<uint8_t>(c)) * 16777619U;
  return seed;
}

/// The range of a tensor's values.
std::pair<double, double> range_of(const std::string& name, const Shape& shape) {
  const size_t dot = name.rfind('.');
  const std::string stem = dot == std::string::npos ? "" : name.substr(0, dot);
  const std::string suffix = name.substr(dot + 1);
  if (name.ends_with("ssm_a")) return {-4.5, -0.5};
  if (name.ends_with("exp_probs_b.bias")) return {0.0, 0.5};
  if (suffix == "weight" &&
      (stem.find("norm") != std::string::npos || stem.ends_with("layer_output_scale"))) {
    return {0.75, 1.25};
  }
  if (stem.ends_with("sinks") || suffix == "bias" || shape.rank() == 1) return {-0.5, 0.5};
  if (stem.ends_with("token_embd") || stem.ends_with("position_embd")) return {-1.0, 1.0};
  const double most = std::sqrt(3.0 / static_cast<double>(shape.back()));
  return {-most, most};
}

std::vector<float> values_of(const std::string& seed, const std::string& name, const Shape& shape) {
  const auto [low, high] = range_of(name, shape);
  const uint32_t of_name = seed_of(seed + name);
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elems(); ++i) {
    const double u = random_of(of_name, static_cast<uint32_t>(i));
    values.push_back(static_cast<float>(low + (high - low) * u));
  }
  return values;
}

}  // namespace

std::vector<float> random_values(const std::string& name, const Shape& shape, double low,
                                 double high) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elems(); ++i) {
    const double u = random_of(seed_of(name), static_cast<uint32_t>(i));
    values.push_back(static_cast<float>(low + (high - low) * u));
  }
  return values;
}

std::vector<std::string> TinyModel::names() {
  std::vector<std::string> all;
  for (const auto& file : std::filesystem::directory_iterator(WICK_MODELS_DATA)) {
    if (file.path().extension() == ".json") all.push_back(file.path().stem());
  }
  std::sort(all.begin(), all.end());
  return all;
}

TinyModel TinyModel::read(const std::string& name) {
  std::ifstream file(std::string(WICK_MODELS_DATA) + "/" + name + ".json");
  if (!file) throw std::runtime_error("no description of the model " + name);
  const nlohmann::json described = nlohmann::json::parse(file);
  TinyModel model;
  model.name = name.substr(name.find('/') + 1);
  model.architecture = described.at("architecture");
  for (const auto& key : described.at("metadata")) {
    model.keys_.push_back({key.at("key"), key.at("type"), key.at("value").dump()});
  }
  for (const auto& tensor : described.at("tensors")) {
    const std::vector<int64_t> sizes = tensor.at("shape");
    Entry entry{tensor.at("name"), Shape(std::span(sizes)), {}};
    if (tensor.contains("values")) entry.values = tensor.at("values").get<std::vector<float>>();
    model.entries_.push_back(std::move(entry));
  }
  if (described.contains("config")) model.config = described.at("config").dump();
  for (const auto& parameter : described.value("parameters", nlohmann::json::array())) {
    Parameter& read = model.parameters_.emplace_back();
    read.name = parameter.at("name");
    read.shape = parameter.at("shape").get<std::vector<int64_t>>();
    for (const auto& part : parameter.at("parts")) {
      using List = std::vector<int64_t>;
      read.parts.push_back({part.at("from"), part.value("sizes", List()), part.value("to", List()),
                            part.value("at", List()), part.value("add", 0.0f),
                            part.value("divide", 1.0f), part.value("negated_log", false)});
    }
  }
  const auto read_rows = [&](const char* key, std::vector<float>& rows) {
    if (!described.contains(key)) return;
    for (const auto& row : described.at(key)) {
      for (const float value : row.get<std::vector<float>>()) rows.push_back(value);
    }
  };
  model.tokens = described.value("tokens", model.tokens);
  model.positions = described.value("positions", model.positions);
  read_rows("logits", model.logits);
  read_rows("embeddings", model.embeddings);
  return model;
}

std::vector<TinyModel> TinyModel::all() {
  std::vector<TinyModel> models;
  for (const std::string& name : names()) models.push_back(read(name));
  return models;
}

void TinyModel::set(io::GgufWriter& w, const Key& key) const {
  const nlohmann::json value = nlohmann::json::parse(key.value);
  if (key.type == "uint32") return w.set_u32(key.name, value);
  if (key.type == "int32") return w.set_i32(key.name, value);
  if (key.type == "float32") return w.set_f32(key.name, value);
  if (key.type == "bool") return w.set_bool(key.name, value);
  if (key.type == "string") return w.set_string(key.name, value.get<std::string>());
  if (key.type == "bool[]") return w.set_bools(key.name, value);
  if (key.type == "float32[]") {
    return w.set_f32s(key.name, value.get<std::vector<float>>());
  }
  if (key.type == "int32[]" || key.type == "uint32[]") {
    return w.set_i32s(key.name, value.get<std::vector<int32_t>>());
  }
  throw std::runtime_error(key.name + " has the unknown type " + key.type);
}

DType TinyModel::dtype_of(const Entry& entry) const {
  const bool matrix = entry.shape.rank() > 1 && entry.values.empty() &&
                      entry.name.find("norm") == std::string::npos &&
                      entry.name.find("ssm_") == std::string::npos &&
                      entry.name.find("conv") == std::string::npos &&
                      entry.name.find("ffn_gate_inp") == std::string::npos &&
                      entry.name.find("position_embd") == std::string::npos &&
                      entry.name.find(".bias") == std::string::npos;
  return matrix && entry.shape.back() % info(dtype).block_elems == 0 ? dtype : DType::f32;
}

Shape TinyModel::shape_of(const std::string& tensor) const {
  for (const Entry& entry : entries_) {
    if (entry.name == tensor) return entry.shape;
  }
  throw std::runtime_error(name + " has no " + tensor);
}

bool TinyModel::has_experts() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.name.find("_exps") != std::string::npos;
  });
}

std::vector<TinyModel::Entry> TinyModel::written_entries() const {
  std::vector<Entry> written;
  for (Entry entry : entries_) {
    if (without.contains(entry.name)) continue;
    if (const auto it = shapes.find(entry.name); it != shapes.end()) entry.shape = it->second;
    written.push_back(std::move(entry));
  }
  if (multiplied) return written;
  for (const auto& [matrix, values] : factors) {
    written.push_back({matrix + ".scale", {static_cast<int64_t>(values.size())}, values});
  }
  return written;
}

std::vector<float> TinyModel::written_values(const Entry& entry) const {
  std::vector<float> values = entry.values;
  if (values.empty() || shapes.contains(entry.name)) {
    values = values_of(seed, entry.name, entry.shape);
  }
  if (const auto it = deltas.find(entry.name); it != deltas.end() && !dequantized) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += it->second.at(i);
  }
  if (!multiplied || !entry.name.ends_with(".weight")) return values;
  if (const auto it = factors.find(entry.name.substr(0, entry.name.size() - 7));
      it != factors.end()) {
    const size_t each = values.size() / it->second.size();
    for (size_t i = 0; i < values.size(); ++i) values[i] *= it->second[i / each];
  }
  return values;
}

void TinyModel::write(const std::string& path) const {
  io::GgufWriter w(path);
  w.set_string("general.architecture", architecture);
  for (const Key& key : keys_) set(w, key);
  TinyLlama::write_vocabulary(w);
  if (edit) edit(w);
  const std::vector<Entry> written = written_entries();
  for (const Entry& entry : written) {
    w.add_tensor(entry.name, dequantized ? DType::f32 : dtype_of(entry), entry.shape);
  }
  for (const Entry& entry : written) {
    const Tensor values = Tensor::from(written_values(entry), entry.shape);
    const DType type = dtype_of(entry);
    std::mt19937 random(static_cast<unsigned>(entry.name.size()));
    Tensor t = !is_block(type)                         ? values.to(type)
               : dtypes::kWrittenBlocks.contains(type) ? quantize(values, type)
                                                       : random_blocks(type, entry.shape, random);
    if (dequantized && is_block(type)) t = dequantize(t);
    if (const auto it = deltas.find(entry.name); it != deltas.end() && dequantized) {
      t = t.to(DType::f32) + Tensor::from(it->second, entry.shape);
    }
    w.write(entry.name, {static_cast<const std::byte*>(t.storage()->data()), t.storage()->bytes()});
  }
  w.finish();
}

std::vector<float> TinyModel::values_of_parameter(const Parameter& parameter) const {
  int64_t count = 1;
  for (const int64_t size : parameter.shape) count *= size;
  std::vector<float> result(static_cast<size_t>(count));
  for (const Part& part : parameter.parts) {
    const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& e) { return e.name == part.from; });
    const std::vector<float> values = values_of(seed, entry->name, entry->shape);
    // Without loops, the elements are in the same order.
    const std::vector<int64_t> in_order = {0, 1};
    const auto dims =
        part.to.empty() ? std::vector{std::min(count, entry->shape.elems())} : part.sizes;
    const auto to = part.to.empty() ? in_order : part.to;
    const auto at = part.at.empty() ? in_order : part.at;
    std::vector<int64_t> index(dims.size());
    for (bool more = true; more;) {
      int64_t to_element = to[0], at_element = at[0];
      for (size_t d = 0; d < dims.size(); ++d) {
        to_element += index[d] * to[d + 1];
        at_element += index[d] * at[d + 1];
      }
      const float value = values[static_cast<size_t>(at_element)] / part.divide + part.add;
      result[static_cast<size_t>(to_element)] = part.negated_log ? std::log(-value) : value;
      more = false;
      for (size_t d = dims.size(); d-- > 0 && !more;) {
        more = ++index[d] < dims[d];
        if (!more) index[d] = 0;
      }
    }
  }
  return result;
}

std::string TinyModel::write_directory(const std::string& folder, int shards, DType type) const {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << config;
  std::string map;
  for (int shard = 0; shard < shards; ++shard) {
    const std::string file = shards == 1 ? "model.safetensors"
                                         : "model-0000" + std::to_string(shard + 1) + "-of-0000" +
                                               std::to_string(shards) + ".safetensors";
    io::test::SafetensorsBuilder b;
    for (size_t i = static_cast<size_t>(shard); i < parameters_.size();
         i += static_cast<size_t>(shards)) {
      const Parameter& parameter = parameters_[i];
      if (without.contains(parameter.name)) continue;
      const Tensor t = Tensor::from(values_of_parameter(parameter),
                                    Shape(std::span<const int64_t>(parameter.shape)))
                           .to(type);
      b.tensor(parameter.name,
               type == DType::f32   ? "F32"
               : type == DType::f16 ? "F16"
                                    : "BF16",
               parameter.shape,
               {static_cast<const char*>(t.storage()->data()), t.storage()->bytes()});
      map += (map.empty() ? "\"" : ",\"") + parameter.name + "\":\"" + file + "\"";
    }
    std::ofstream(folder + "/" + file, std::ios::binary) << b.build();
  }
  if (shards > 1) {
    std::ofstream(folder + "/model.safetensors.index.json")
        << R"({"metadata":{"total_size":0},"weight_map":{)" << map << "}}";
  }
  return folder;
}

}  // namespace wick::test
