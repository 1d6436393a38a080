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

/// The types of GGUF metadata, with their numbers in files.
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

/// Returns "u8" … "bool", "string" or "array".
WICK_API std::string_view name(GgufType type);
/// Returns the bytes of a value in a file; 0 for strings and arrays, whose size varies.
WICK_API int gguf_type_bytes(GgufType type);

/// A metadata value: a view into the file's bytes, which the Gguf keeps alive.
///
/// Scalar getters return nothing if the value has another type or is out of range. Integer getters
/// accept integers of every width, float getters also accept integers.
class WICK_API GgufValue {
 public:
  GgufType type() const { return type_; }
  bool is_array() const { return type_ == GgufType::array; }
  /// The element type of an array, else the type of the value.
  GgufType element_type() const { return element_type_; }
  /// The number of elements of an array, else 1.
  uint64_t count() const { return count_; }

  std::optional<uint64_t> as_u64() const;
  std::optional<int64_t> as_i64() const;
  std::optional<double> as_f64() const;
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;

  /// Returns at most the first `limit` elements of an array, or the value itself if it isn't an
  /// array.
  std::vector<GgufValue> elements(uint64_t limit = UINT64_MAX) const;
  /// Returns element `i` < count() of an array of fixed-size elements, in constant time.
  GgufValue at(uint64_t i) const;
  /// Returns the strings of an array of strings, or nothing for other values.
  std::optional<std::vector<std::string_view>> as_strings() const;

  /// Text for users: `42`, `"text"`, `[1, 2, 3, … 49152 in all]`. Long text is cut, control
  /// characters are escaped.
  std::string str(uint64_t max_elements = 8) const;
  /// The type's name: "u32", "array of string".
  std::string type_str() const;

  /// The bytes of the value in the file: a string with its length, an array with its header.
  std::span<const std::byte> payload() const { return payload_; }

 private:
  friend class GgufParser;
  GgufValue(GgufType type, std::span<const std::byte> payload)
      : type_(type), element_type_(type), payload_(payload) {}
  void append_str(std::string& out, uint64_t max_elements) const;

  GgufType type_;
  GgufType element_type_;
  uint64_t count_ = 1;
  std::span<const std::byte> payload_;  // all lengths inside were checked
};

}  // namespace wick::io
