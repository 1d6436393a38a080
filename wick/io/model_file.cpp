#include "wick/io/model_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/ggml_type.h"

namespace wick::io {
namespace {

template <class T>
std::optional<T> in_range(const GgufValue& value) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    return value.as_u64();
  } else {
    const std::optional<int64_t> i = value.as_i64();
    if (!i || !std::in_range<T>(*i)) return std::nullopt;
    return static_cast<T>(*i);
  }
}

template <class T>
std::string integer_rule() {
  return fmt::format("need an integer within {}..{}", std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max());
}

/// Returns nothing for numbers beyond f32's range, which would become infinities.
std::optional<float> as_f32(const GgufValue& value) {
  const std::optional<double> f = value.as_f64();
  if (!f || (std::isfinite(*f) && std::abs(*f) > std::numeric_limits<float>::max())) {
    return std::nullopt;
  }
  return static_cast<float>(*f);
}

constexpr std::string_view kNeedFloat = "need a number within f32's range";

}  // namespace

std::optional<int64_t> layer_of(std::string_view tensor) {
  constexpr std::string_view kPrefix = "blk.";
  if (!tensor.starts_with(kPrefix)) return std::nullopt;
  uint32_t layer = 0;
  const char* const end = tensor.data() + tensor.size();
  const auto [stop, error] = std::from_chars(tensor.data() + kPrefix.size(), end, layer);
  if (error != std::errc{} || stop == end || *stop != '.') return std::nullopt;
  return layer;
}

std::string GgufTensor::str() const { return ggml_type_name(type) + shape.str(); }

ModelFile::~ModelFile() = default;

const GgufValue* ModelFile::find(std::string_view key) const {
  const auto found = key_index_.find(key);
  return found == key_index_.end() ? nullptr : &metadata_[found->second].value;
}

const GgufValue& ModelFile::require(std::string_view key) const {
  if (const GgufValue* value = find(key)) return *value;
  throw Error(op_, "key is missing", fmt::format("{} in {}", printable(key), printable(path_)));
}

void ModelFile::wrong_value(std::string_view key, const GgufValue& value,
                            std::string_view need) const {
  throw Error(op_, "value doesn't fit",
              fmt::format("{} = {} ({}) in {}", printable(key), value.str(), value.type_str(),
                          printable(path_)),
              need);
}

template <class T>
T ModelFile::to_integer(std::string_view key, const GgufValue& value) const {
  const std::optional<T> result = in_range<T>(value);
  if (!result) wrong_value(key, value, integer_rule<T>());
  return *result;
}

template <class T, class Get>
std::vector<T> ModelFile::array(std::string_view key, std::string_view need, Get get) const {
  const GgufValue& value = require(key);
  if (!value.is_array()) wrong_value(key, value, need);
  if (value.count() > 0 && gguf_type_bytes(value.element_type()) == 0)
    wrong_value(key, value, need);
  std::vector<T> result;
  result.reserve(static_cast<size_t>(value.count()));  // checked: each element takes a byte
  for (uint64_t i = 0; i < value.count(); ++i) {
    const std::optional<T> item = get(value.at(i));
    if (!item) wrong_value(key, value, need);
    result.push_back(*item);
  }
  return result;
}

uint32_t ModelFile::get_u32(std::string_view key) const {
  return to_integer<uint32_t>(key, require(key));
}
uint32_t ModelFile::get_u32(std::string_view key, uint32_t or_else) const {
  return contains(key) ? get_u32(key) : or_else;
}
int32_t ModelFile::get_i32(std::string_view key) const {
  return to_integer<int32_t>(key, require(key));
}
int32_t ModelFile::get_i32(std::string_view key, int32_t or_else) const {
  return contains(key) ? get_i32(key) : or_else;
}
uint64_t ModelFile::get_u64(std::string_view key) const {
  return to_integer<uint64_t>(key, require(key));
}
uint64_t ModelFile::get_u64(std::string_view key, uint64_t or_else) const {
  return contains(key) ? get_u64(key) : or_else;
}
int64_t ModelFile::get_i64(std::string_view key) const {
  return to_integer<int64_t>(key, require(key));
}
int64_t ModelFile::get_i64(std::string_view key, int64_t or_else) const {
  return contains(key) ? get_i64(key) : or_else;
}

float ModelFile::get_f32(std::string_view key) const {
  const GgufValue& value = require(key);
  const std::optional<float> result = as_f32(value);
  if (!result) wrong_value(key, value, kNeedFloat);
  return *result;
}
float ModelFile::get_f32(std::string_view key, float or_else) const {
  return contains(key) ? get_f32(key) : or_else;
}

bool ModelFile::get_bool(std::string_view key) const {
  const GgufValue& value = require(key);
  const std::optional<bool> result = value.as_bool();
  if (!result) wrong_value(key, value, "need a bool");
  return *result;
}
bool ModelFile::get_bool(std::string_view key, bool or_else) const {
  return contains(key) ? get_bool(key) : or_else;
}

std::string_view ModelFile::get_string(std::string_view key) const {
  const GgufValue& value = require(key);
  const std::optional<std::string_view> result = value.as_string();
  if (!result) wrong_value(key, value, "need a string");
  return *result;
}
std::string_view ModelFile::get_string(std::string_view key, std::string_view or_else) const {
  return contains(key) ? get_string(key) : or_else;
}

std::vector<uint32_t> ModelFile::get_u32s(std::string_view key) const {
  return array<uint32_t>(key, "need an array of integers within u32's range", in_range<uint32_t>);
}
std::vector<int32_t> ModelFile::get_i32s(std::string_view key) const {
  return array<int32_t>(key, "need an array of integers within i32's range", in_range<int32_t>);
}
std::vector<float> ModelFile::get_f32s(std::string_view key) const {
  return array<float>(key, "need an array of numbers within f32's range", as_f32);
}
std::vector<bool> ModelFile::get_bools(std::string_view key) const {
  return array<bool>(key, "need an array of bools",
                     [](const GgufValue& value) { return value.as_bool(); });
}

std::vector<std::string_view> ModelFile::get_strings(std::string_view key) const {
  const GgufValue& value = require(key);
  if (value.is_array() && value.count() == 0) return {};
  std::optional<std::vector<std::string_view>> result = value.as_strings();
  if (!result) wrong_value(key, value, "need an array of strings");
  return *std::move(result);
}

const GgufTensor* ModelFile::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

const GgufTensor& ModelFile::require_tensor(std::string_view name) const {
  if (const GgufTensor* tensor = find_tensor(name)) return *tensor;
  throw Error(op_, "tensor is missing", fmt::format("{} in {}", printable(name), printable(path_)));
}

void ModelFile::require_readable(const GgufTensor& tensor) const {
  if (tensor.dtype) return;
  throw Error(ErrorKind::not_implemented, op_, "tensor has a type that wick doesn't read",
              fmt::format("{} in {}, {} (number {})", printable(tensor.name), printable(path_),
                          ggml_type_name(tensor.type), tensor.type));
}

bool ModelFile::add(const GgufEntry& entry) {
  if (!key_index_.emplace(entry.key, metadata_.size()).second) return false;
  metadata_.push_back(entry);
  return true;
}

bool ModelFile::add(const GgufTensor& tensor) {
  if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) return false;
  tensors_.push_back(tensor);
  return true;
}

void require_model(const ModelFile& file) {
  const GgufValue* const value = file.find("general.type");
  const std::optional<std::string_view> type = value ? value->as_string() : std::nullopt;
  if (type != "session" && type != "imatrix") return;
  throw Error(printable(file.path()), "not a model",
              type == "session" ? "it is a saved session" : "it is an importance matrix");
}

}  // namespace wick::io
