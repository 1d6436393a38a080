#include "wick/io/gguf_metadata.h"

#include <fmt/format.h>

#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::io {
namespace {

constexpr uint32_t kVersion = 3;
constexpr size_t kMaxNameBytes = 65535;
constexpr std::string_view kAlignmentKey = "general.alignment";

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_string(std::string& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out += text;
}

template <class T>
std::string scalar(T value) {
  std::string out;
  append(out, value);
  return out;
}

std::string array_header(GgufType element, uint64_t count) {
  std::string out;
  append(out, static_cast<uint32_t>(element));
  append(out, count);
  return out;
}

template <class T>
std::string array(GgufType element, std::span<const T> values) {
  std::string out = array_header(element, values.size());
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return out;
}

}  // namespace

void GgufMetadata::fail(std::string_view what, std::string_view where,
                        std::string_view rule) const {
  throw Error("gguf", what, where, rule);
}

void GgufMetadata::set_payload(std::string_view key, GgufType type, std::string payload) {
  require_open();
  if (key.size() > kMaxNameBytes) {
    fail("key is too long", fmt::format("{} bytes", key.size()),
         fmt::format("at most {}", kMaxNameBytes));
  }
  // Readers use this key as the alignment of the data, which is fixed in this writer.
  if (key == kAlignmentKey) fail("key is reserved", key, "this writer's alignment is 32");
  const auto [found, added] = entry_index_.emplace(key, entries_.size());
  if (added) {
    entries_.push_back({std::string(key), type, std::move(payload), false});
  } else {
    entries_[found->second].type = type;
    entries_[found->second].payload = std::move(payload);
  }
}

void GgufMetadata::set(std::string_view key, const GgufValue& value) {
  const std::span<const std::byte> payload = value.payload();
  set_payload(key, value.type(),
              std::string(reinterpret_cast<const char*>(payload.data()), payload.size()));
}
void GgufMetadata::set_u32(std::string_view key, uint32_t value) {
  set_payload(key, GgufType::u32, scalar(value));
}
void GgufMetadata::set_i32(std::string_view key, int32_t value) {
  set_payload(key, GgufType::i32, scalar(value));
}
void GgufMetadata::set_u64(std::string_view key, uint64_t value) {
  set_payload(key, GgufType::u64, scalar(value));
}
void GgufMetadata::set_i64(std::string_view key, int64_t value) {
  set_payload(key, GgufType::i64, scalar(value));
}
void GgufMetadata::set_f32(std::string_view key, float value) {
  set_payload(key, GgufType::f32, scalar(value));
}
void GgufMetadata::set_f64(std::string_view key, double value) {
  set_payload(key, GgufType::f64, scalar(value));
}
void GgufMetadata::set_bool(std::string_view key, bool value) {
  set_payload(key, GgufType::boolean, scalar(static_cast<uint8_t>(value)));
}
void GgufMetadata::set_string(std::string_view key, std::string_view value) {
  std::string payload;
  append_string(payload, value);
  set_payload(key, GgufType::string, std::move(payload));
}
void GgufMetadata::set_u32s(std::string_view key, std::span<const uint32_t> values) {
  set_payload(key, GgufType::array, array(GgufType::u32, values));
}
void GgufMetadata::set_i32s(std::string_view key, std::span<const int32_t> values) {
  set_payload(key, GgufType::array, array(GgufType::i32, values));
}
void GgufMetadata::set_f32s(std::string_view key, std::span<const float> values) {
  set_payload(key, GgufType::array, array(GgufType::f32, values));
}
void GgufMetadata::set_bools(std::string_view key, const std::vector<bool>& values) {
  const std::vector<uint8_t> bytes(values.begin(), values.end());
  set_payload(key, GgufType::array, array(GgufType::boolean, std::span(bytes)));
}
void GgufMetadata::set_strings(std::string_view key, std::span<const std::string_view> values) {
  std::string payload = array_header(GgufType::string, values.size());
  for (std::string_view value : values) append_string(payload, value);
  set_payload(key, GgufType::array, std::move(payload));
}

void GgufMetadata::remove(std::string_view key) {
  require_open();
  const auto found = entry_index_.find(std::string(key));
  if (found == entry_index_.end()) return;
  // The entry stays in the list, marked as removed: moving the others would take quadratic time.
  entries_[found->second].removed = true;
  entry_index_.erase(found);
}

void GgufMetadata::copy_metadata(const ModelFile& from) {
  for (const GgufEntry& entry : from.metadata()) {
    if (entry.key != kAlignmentKey) set(entry.key, entry.value);
  }
}

void GgufMetadata::append_keys(std::string& out, uint64_t tensors) const {
  append(out, tensors);
  append<uint64_t>(out, entry_index_.size());
  for (const Entry& entry : entries_) {
    if (entry.removed) continue;
    append_string(out, entry.key);
    append(out, static_cast<uint32_t>(entry.type));
    out += entry.payload;
  }
}

std::string GgufMetadata::file() const {
  std::string out = "GGUF";
  append(out, kVersion);
  append_keys(out, 0);
  return out;
}

}  // namespace wick::io
