#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"

namespace wick::io {

/// The thirteen types of GGUF metadata, numbered as in files.
enum class GgufType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
inline constexpr uint32_t kGgufTypeCount = 13;

/// "u8" … "bool", "string", "array".
WICK_API std::string_view name(GgufType type);
/// Bytes of a value of a fixed size in a file; 0 for strings and arrays.
WICK_API int gguf_type_bytes(GgufType type);

/// A metadata value: a view into the file's bytes, which the Gguf it came from keeps alive.
///
/// The scalar getters give nothing where the value is of another kind or outside the range of the
/// type asked for: integers of every width serve each other, floats accept integers, and the rest
/// is strict.
class WICK_API GgufValue {
 public:
  GgufType type() const { return type_; }
  bool is_array() const { return type_ == GgufType::array; }
  /// Type of an array's elements; that of the value itself otherwise.
  GgufType element_type() const { return element_type_; }
  /// Elements of an array; 1 otherwise.
  uint64_t count() const { return count_; }

  std::optional<uint64_t> as_u64() const;
  std::optional<int64_t> as_i64() const;
  std::optional<double> as_f64() const;
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;

  /// The elements of an array, the value itself otherwise; at most the first `limit`.
  std::vector<GgufValue> elements(uint64_t limit = UINT64_MAX) const;
  /// Element `i` < count() of an array whose elements have a fixed size, at once.
  GgufValue at(uint64_t i) const;
  /// The strings of an array of strings; nothing for other values.
  std::optional<std::vector<std::string_view>> as_strings() const;

  /// For people: `42`, `"text"`, `[1, 2, 3, … 49152 in all]`, long text cut, controls escaped.
  std::string str(uint64_t max_elements = 8) const;
  /// "u32", "array of string".
  std::string type_str() const;

  /// The payload as it stands in the file: a string with its length, an array with its header.
  std::span<const std::byte> payload() const { return payload_; }

 private:
  friend class GgufParser;
  GgufValue(GgufType type, std::span<const std::byte> payload)
      : type_(type), element_type_(type), payload_(payload) {}
  void append_str(std::string& out, uint64_t max_elements) const;

  GgufType type_;
  GgufType element_type_;
  uint64_t count_ = 1;
  std::span<const std::byte> payload_;  // checked: every length in it stays inside
};

}  // namespace wick::io
