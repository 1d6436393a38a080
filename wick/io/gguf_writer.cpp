#include "wick/io/gguf_writer.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/ggml_type.h"

namespace wick::io {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;
constexpr size_t kMaxNameBytes = 65535;
constexpr int kMaxRank = 4;
constexpr std::string_view kAlignmentKey = "general.alignment";

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

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

GgufWriter::GgufWriter(const std::string& path, uint32_t permissions)
    : file_("gguf", path, permissions) {}

void GgufWriter::fail(std::string_view what, std::string_view where, std::string_view rule) const {
  throw Error("gguf", what, fmt::format("{}, {}", printable(file_.path()), where), rule);
}

void GgufWriter::require_header_open() const {
  if (header_written_) fail("header is already written", "set metadata and tensors first");
}

void GgufWriter::set_payload(std::string_view key, GgufType type, std::string payload) {
  require_header_open();
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

void GgufWriter::set(std::string_view key, const GgufValue& value) {
  const std::span<const std::byte> payload = value.payload();
  set_payload(key, value.type(),
              std::string(reinterpret_cast<const char*>(payload.data()), payload.size()));
}
void GgufWriter::set_u32(std::string_view key, uint32_t value) {
  set_payload(key, GgufType::u32, scalar(value));
}
void GgufWriter::set_i32(std::string_view key, int32_t value) {
  set_payload(key, GgufType::i32, scalar(value));
}
void GgufWriter::set_u64(std::string_view key, uint64_t value) {
  set_payload(key, GgufType::u64, scalar(value));
}
void GgufWriter::set_i64(std::string_view key, int64_t value) {
  set_payload(key, GgufType::i64, scalar(value));
}
void GgufWriter::set_f32(std::string_view key, float value) {
  set_payload(key, GgufType::f32, scalar(value));
}
void GgufWriter::set_f64(std::string_view key, double value) {
  set_payload(key, GgufType::f64, scalar(value));
}
void GgufWriter::set_bool(std::string_view key, bool value) {
  set_payload(key, GgufType::boolean, scalar(static_cast<uint8_t>(value)));
}
void GgufWriter::set_string(std::string_view key, std::string_view value) {
  std::string payload;
  append_string(payload, value);
  set_payload(key, GgufType::string, std::move(payload));
}
void GgufWriter::set_u32s(std::string_view key, std::span<const uint32_t> values) {
  set_payload(key, GgufType::array, array(GgufType::u32, values));
}
void GgufWriter::set_i32s(std::string_view key, std::span<const int32_t> values) {
  set_payload(key, GgufType::array, array(GgufType::i32, values));
}
void GgufWriter::set_f32s(std::string_view key, std::span<const float> values) {
  set_payload(key, GgufType::array, array(GgufType::f32, values));
}
void GgufWriter::set_bools(std::string_view key, const std::vector<bool>& values) {
  const std::vector<uint8_t> bytes(values.begin(), values.end());
  set_payload(key, GgufType::array, array(GgufType::boolean, std::span(bytes)));
}
void GgufWriter::set_strings(std::string_view key, std::span<const std::string_view> values) {
  std::string payload = array_header(GgufType::string, values.size());
  for (std::string_view value : values) append_string(payload, value);
  set_payload(key, GgufType::array, std::move(payload));
}

void GgufWriter::remove(std::string_view key) {
  require_header_open();
  const auto found = entry_index_.find(std::string(key));
  if (found == entry_index_.end()) return;
  // The entry stays in the list, marked as removed: moving the others would take quadratic time.
  entries_[found->second].removed = true;
  entry_index_.erase(found);
}

void GgufWriter::copy_metadata(const ModelFile& from) {
  for (const GgufEntry& entry : from.metadata()) {
    if (entry.key != kAlignmentKey) set(entry.key, entry.value);
  }
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, const Shape& shape) {
  require_header_open();
  const std::string where = fmt::format("{} {}{}", printable(name), wick::name(dtype), shape.str());
  const std::optional<uint32_t> type = ggml_type_number(dtype);
  if (!type) fail("format has no such tensor type", where);
  if (shape.rank() > kMaxRank) {
    fail("tensor has too many dimensions", where, fmt::format("at most {}", kMaxRank));
  }
  if (name.size() > kMaxNameBytes) {
    fail("name is too long", fmt::format("{} bytes", name.size()),
         fmt::format("at most {}", kMaxNameBytes));
  }
  const int32_t block = info(dtype).block_elems;
  if ((shape.rank() > 0 ? shape.back() : 1) % block != 0) {
    fail("tensor's rows aren't whole blocks", where,
         fmt::format("the last size must be a multiple of {}", block));
  }
  uint64_t bytes = 0, end = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(shape.elems() / block),
                             static_cast<uint64_t>(info(dtype).block_bytes), &bytes) ||
      __builtin_add_overflow(data_bytes_, bytes, &end) || end > INT64_MAX - kAlignment) {
    fail("tensor is too large", where);
  }
  if (!tensor_index_.emplace(name, tensors_.size()).second) fail("tensor appears twice", where);
  tensors_.push_back({std::string(name), *type, shape, data_bytes_, bytes});
  data_bytes_ = aligned(end);
}

std::string GgufWriter::header() const {
  std::string out = "GGUF";
  append(out, kVersion);
  append<uint64_t>(out, tensors_.size());
  append<uint64_t>(out, entry_index_.size());
  for (const Entry& entry : entries_) {
    if (entry.removed) continue;
    append_string(out, entry.key);
    append(out, static_cast<uint32_t>(entry.type));
    out += entry.payload;
  }
  for (const Pending& tensor : tensors_) {
    append_string(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.shape.rank()));
    for (int i = 0; i < tensor.shape.rank(); ++i) {
      append(out, static_cast<uint64_t>(tensor.shape.back(i)));
    }
    append(out, tensor.type);
    append(out, tensor.offset);
  }
  out.resize(static_cast<size_t>(aligned(out.size())), '\0');
  return out;
}

uint64_t GgufWriter::file_bytes() const {
  return (header_written_ ? data_start_ : header().size()) + data_bytes_;
}

void GgufWriter::start_data() {
  const std::string head = header();
  data_start_ = head.size();
  file_.reserve(data_start_ + data_bytes_);
  file_.write(std::as_bytes(std::span(head)));
  header_written_ = true;
  advance();
}

void GgufWriter::advance() {
  while (current_ < tensors_.size() && current_bytes_ == tensors_[current_].bytes) {
    static constexpr std::array<std::byte, kAlignment> kZeros{};
    const uint64_t padding = aligned(current_bytes_) - current_bytes_;
    file_.write(std::span(kZeros).first(static_cast<size_t>(padding)));
    ++current_;
    current_bytes_ = 0;
  }
}

void GgufWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (!header_written_) start_data();
  if (bytes.empty()) return;
  if (current_ == tensors_.size() || tensors_[current_].name != name) {
    fail("tensors must be written in the order announced", printable(name),
         current_ == tensors_.size()
             ? "all are written"
             : fmt::format("next is {}", printable(tensors_[current_].name)));
  }
  const uint64_t left = tensors_[current_].bytes - current_bytes_;
  if (bytes.size() > left) {
    fail("more bytes than the tensor has", printable(name),
         fmt::format("{} written where {} are left", bytes.size(), left));
  }
  file_.write(bytes);
  current_bytes_ += bytes.size();
  advance();
}

void GgufWriter::finish() {
  if (!header_written_) start_data();
  if (current_ < tensors_.size()) {
    fail("tensor lacks bytes", printable(tensors_[current_].name),
         fmt::format("{} of {} are written", current_bytes_, tensors_[current_].bytes));
  }
  file_.finish();
}

}  // namespace wick::io
