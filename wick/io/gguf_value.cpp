#include "wick/io/gguf_value.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::io {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

struct TypeInfo {
  std::string_view name;
  int bytes;
};
constexpr std::array<TypeInfo, kGgufTypeCount> kTypes = {{
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
}};

// The bytes before an array's elements: element type and count.
constexpr size_t kArrayHeaderBytes = 12;

/// Loads a value; values in files aren't aligned.
template <class T>
T load(std::span<const std::byte> bytes, size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::string_view text_of(std::span<const std::byte> bytes, uint64_t length) {
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length)};
}

/// The size of the value at the start of `bytes`. The parser has limited the nesting of arrays.
size_t payload_bytes(GgufType type, std::span<const std::byte> bytes) {
  if (const int fixed = gguf_type_bytes(type)) return static_cast<size_t>(fixed);
  if (type == GgufType::string) return sizeof(uint64_t) + load<uint64_t>(bytes);
  const auto element = static_cast<GgufType>(load<uint32_t>(bytes));
  const auto count = load<uint64_t>(bytes, sizeof(uint32_t));
  size_t size = kArrayHeaderBytes;
  if (const int fixed = gguf_type_bytes(element)) return size + count * static_cast<size_t>(fixed);
  for (uint64_t i = 0; i < count; ++i) size += payload_bytes(element, bytes.subspan(size));
  return size;
}

}  // namespace

std::string_view name(GgufType type) {
  const auto i = static_cast<size_t>(type);
  return i < kTypes.size() ? kTypes[i].name : "unknown";
}

int gguf_type_bytes(GgufType type) {
  const auto i = static_cast<size_t>(type);
  return i < kTypes.size() ? kTypes[i].bytes : 0;
}

std::optional<uint64_t> GgufValue::as_u64() const {
  if (type_ == GgufType::u64) return load<uint64_t>(payload_);
  const std::optional<int64_t> value = as_i64();
  if (!value || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<int64_t> GgufValue::as_i64() const {
  switch (type_) {
    case GgufType::u8:
      return load<uint8_t>(payload_);
    case GgufType::i8:
      return load<int8_t>(payload_);
    case GgufType::u16:
      return load<uint16_t>(payload_);
    case GgufType::i16:
      return load<int16_t>(payload_);
    case GgufType::u32:
      return load<uint32_t>(payload_);
    case GgufType::i32:
      return load<int32_t>(payload_);
    case GgufType::i64:
      return load<int64_t>(payload_);
    case GgufType::u64: {
      const auto value = load<uint64_t>(payload_);
      if (value > INT64_MAX) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> GgufValue::as_f64() const {
  if (type_ == GgufType::f32) return static_cast<double>(load<float>(payload_));
  if (type_ == GgufType::f64) return load<double>(payload_);
  if (type_ == GgufType::u64) return static_cast<double>(load<uint64_t>(payload_));
  if (const std::optional<int64_t> value = as_i64()) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<bool> GgufValue::as_bool() const {
  if (type_ != GgufType::boolean) return std::nullopt;
  return load<uint8_t>(payload_) != 0;
}

std::optional<std::string_view> GgufValue::as_string() const {
  if (type_ != GgufType::string) return std::nullopt;
  return text_of(payload_.subspan(sizeof(uint64_t)), load<uint64_t>(payload_));
}

std::vector<GgufValue> GgufValue::elements(uint64_t limit) const {
  if (!is_array()) return {*this};
  std::vector<GgufValue> values;
  std::span<const std::byte> rest = payload_.subspan(kArrayHeaderBytes);
  for (uint64_t i = 0; i < count_ && i < limit; ++i) {
    const size_t bytes = payload_bytes(element_type_, rest);
    GgufValue value(element_type_, rest.first(bytes));
    if (value.is_array()) {
      value.element_type_ = static_cast<GgufType>(load<uint32_t>(rest));
      value.count_ = load<uint64_t>(rest, sizeof(uint32_t));
    }
    values.push_back(value);
    rest = rest.subspan(bytes);
  }
  return values;
}

GgufValue GgufValue::at(uint64_t i) const {
  const auto bytes = static_cast<size_t>(gguf_type_bytes(element_type_));
  if (!is_array() || bytes == 0 || i >= count_) {
    throw Error(ErrorKind::index, "gguf", "no such element",
                fmt::format("element {} of {} x {}", i, count_, type_str()));
  }
  const size_t start = kArrayHeaderBytes + static_cast<size_t>(i) * bytes;
  return {element_type_, payload_.subspan(start, bytes)};
}

std::optional<std::vector<std::string_view>> GgufValue::as_strings() const {
  if (!is_array() || element_type_ != GgufType::string) return std::nullopt;
  std::vector<std::string_view> strings;
  strings.reserve(static_cast<size_t>(count_));  // checked: each takes at least 8 bytes
  std::span<const std::byte> rest = payload_.subspan(kArrayHeaderBytes);
  for (uint64_t i = 0; i < count_; ++i) {
    const auto length = load<uint64_t>(rest);
    strings.push_back(text_of(rest.subspan(sizeof(uint64_t)), length));
    rest = rest.subspan(sizeof(uint64_t) + static_cast<size_t>(length));
  }
  return strings;
}

std::string GgufValue::str(uint64_t max_elements) const {
  std::string out;
  append_str(out, max_elements);
  return out;
}

void GgufValue::append_str(std::string& out, uint64_t max_elements) const {
  switch (type_) {
    case GgufType::string:
      out += '"' + printable(*as_string()) + '"';
      return;
    case GgufType::boolean:
      out += *as_bool() ? "true" : "false";
      return;
    case GgufType::f32:
      out += fmt::format("{}", load<float>(payload_));
      return;
    case GgufType::f64:
      out += fmt::format("{}", load<double>(payload_));
      return;
    case GgufType::u64:
      out += fmt::format("{}", load<uint64_t>(payload_));
      return;
    case GgufType::array: {
      out += '[';
      const char* separator = "";
      for (const GgufValue& value : elements(max_elements)) {
        out += separator;
        value.append_str(out, max_elements);
        separator = ", ";
      }
      if (count_ > max_elements) out += fmt::format("{}… {} in all", separator, count_);
      out += ']';
      return;
    }
    default:
      out += fmt::format("{}", as_i64().value_or(0));
  }
}

std::string GgufValue::type_str() const {
  if (!is_array()) return std::string(name(type_));
  return fmt::format("array of {}", name(element_type_));
}

}  // namespace wick::io
