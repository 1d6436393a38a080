#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/io/gguf.h"

namespace wick::io::test {

/// Builds GGUF files, valid or invalid, without the library's writer. The type numbers are those of
/// the format.
class GgufBuilder {
 public:
  template <class T>
  static std::string raw(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  static std::string text(std::string_view s) { return raw<uint64_t>(s.size()) + std::string(s); }
  static std::string array(uint32_t element_type, uint64_t count, std::string_view elements) {
    return raw(element_type) + raw(count) + std::string(elements);
  }
  template <class T>
  static std::string bytes_of(const std::vector<T>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }

  uint32_t version = 3;
  uint64_t alignment = 32;

  GgufBuilder& key(std::string_view name, uint32_t type, std::string_view payload) {
    metadata_ += text(name) + raw(type) + std::string(payload);
    ++keys_;
    return *this;
  }
  GgufBuilder& u32(std::string_view name, uint32_t value) { return key(name, 4, raw(value)); }
  GgufBuilder& f32(std::string_view name, float value) { return key(name, 6, raw(value)); }
  GgufBuilder& string(std::string_view name, std::string_view value) {
    return key(name, 8, text(value));
  }
  /// `dims` are innermost first, as in files.
  GgufBuilder& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type,
                      std::string_view data) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    tensor_at(name, dims, type, data_.size());
    data_ += data;
    return *this;
  }
  /// Adds a tensor with an arbitrary offset.
  GgufBuilder& tensor_at(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                         uint64_t offset) {
    tensors_ += text(name) + raw(static_cast<uint32_t>(dims.size()));
    for (uint64_t d : dims) tensors_ += raw(d);
    tensors_ += raw(type) + raw(offset);
    ++tensor_count_;
    return *this;
  }

  std::string header() const {
    return "GGUF" + raw(version) + raw(tensor_count_) + raw(keys_) + metadata_ + tensors_;
  }
  std::string build() const {
    std::string out = header();
    if (tensor_count_ > 0) out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data_;
  }

 private:
  std::string metadata_, tensors_, data_;
  uint64_t keys_ = 0, tensor_count_ = 0;
};

inline std::shared_ptr<const Gguf> parse(std::string_view bytes) {
  return Gguf::parse(Bytes::copy_of(std::as_bytes(std::span(bytes))), "test.gguf");
}

/// Returns a file with all thirteen types, nested arrays and three tensors.
inline GgufBuilder everything() {
  using B = GgufBuilder;
  B b;
  b.key("t.u8", 0, B::raw<uint8_t>(200)).key("t.i8", 1, B::raw<int8_t>(-100));
  b.key("t.u16", 2, B::raw<uint16_t>(60000)).key("t.i16", 3, B::raw<int16_t>(-30000));
  b.u32("t.u32", 4000000000u).key("t.i32", 5, B::raw<int32_t>(-2000000000));
  b.f32("t.f32", 1.5f).key("t.bool", 7, B::raw<uint8_t>(1)).string("t.string", "h\xc3\xa9llo");
  b.key("t.u64", 10, B::raw<uint64_t>(UINT64_MAX)).key("t.i64", 11, B::raw<int64_t>(INT64_MIN));
  b.key("t.f64", 12, B::raw<double>(1e300));
  b.key("t.i32s", 9, B::array(5, 3, B::bytes_of<int32_t>({1, -2, 3})));
  b.key("t.f32s", 9, B::array(6, 2, B::bytes_of<float>({0.5f, -1.0f})));
  b.key("t.strings", 9, B::array(8, 3, B::text("a") + B::text("") + B::text("ccc")));
  b.key("t.bools", 9, B::array(7, 2, std::string("\1\0", 2)));
  b.key("t.empty", 9, B::array(4, 0, ""));
  b.key("t.nested", 9, B::array(9, 2, B::array(0, 2, "ab") + B::array(8, 1, B::text("deep"))));
  b.tensor("w.f32", {3, 2}, 0, B::bytes_of<float>({1, 2, 3, 4, 5, 6}));
  b.tensor("w.q8_0", {32, 2}, 8, std::string(68, '\1'));
  b.tensor("w.odd", {5}, 77, "");
  return b;
}

}  // namespace wick::io::test
