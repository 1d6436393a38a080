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

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_string(std::string& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out += text;
}

}  // namespace

GgufWriter::GgufWriter(const std::string& path, uint32_t permissions)
    : file_("gguf", path, permissions) {}

void GgufWriter::fail(std::string_view what, std::string_view where, std::string_view rule) const {
  throw Error("gguf", what, fmt::format("{}, {}", printable(file_.path()), where), rule);
}

void GgufWriter::require_open() const {
  if (header_written_) fail("header is already written", "set metadata and tensors first");
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, const Shape& shape) {
  require_open();
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
  append_keys(out, tensors_.size());
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
  put(std::as_bytes(std::span(head)));
  header_written_ = true;
  advance();
}

void GgufWriter::put(std::span<const std::byte> bytes) {
  file_.write(bytes);
  if (checksum_) checksum_->add(bytes);
}

void GgufWriter::keep_checksum() {
  require_open();
  checksum_.emplace();
}

uint64_t GgufWriter::checksum() {
  if (!checksum_) fail("no checksum is kept", "call keep_checksum() first");
  if (!header_written_) start_data();
  return checksum_->value();
}

void GgufWriter::advance() {
  while (current_ < tensors_.size() && current_bytes_ == tensors_[current_].bytes) {
    static constexpr std::array<std::byte, kAlignment> kZeros{};
    const uint64_t padding = aligned(current_bytes_) - current_bytes_;
    put(std::span(kZeros).first(static_cast<size_t>(padding)));
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
  put(bytes);
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
