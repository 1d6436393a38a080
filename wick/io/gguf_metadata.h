#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wick/base/export.h"
#include "wick/base/keyed_hash.h"
#include "wick/io/model_file.h"

namespace wick::io {

/// Keys and values in the encoding of GGUF files.
class WICK_API GgufMetadata {
 public:
  virtual ~GgufMetadata() = default;

  // Setting a key again replaces its value and keeps its position. Errors: a key exceeds 65535
  // bytes; the key is that of the alignment.
  void set(std::string_view key, const GgufValue& value);
  void set_u32(std::string_view key, uint32_t value);
  void set_i32(std::string_view key, int32_t value);
  void set_u64(std::string_view key, uint64_t value);
  void set_i64(std::string_view key, int64_t value);
  void set_f32(std::string_view key, float value);
  void set_f64(std::string_view key, double value);
  void set_bool(std::string_view key, bool value);
  void set_string(std::string_view key, std::string_view value);
  void set_u32s(std::string_view key, std::span<const uint32_t> values);
  void set_i32s(std::string_view key, std::span<const int32_t> values);
  void set_f32s(std::string_view key, std::span<const float> values);
  void set_bools(std::string_view key, const std::vector<bool>& values);
  void set_strings(std::string_view key, std::span<const std::string_view> values);
  void remove(std::string_view key);
  /// Sets all keys and values of a model except its alignment, because this file has its own.
  void copy_metadata(const ModelFile& from);

  /// The bytes of a GGUF file of version 3 with these keys and without tensors.
  std::string file() const;

 protected:
  /// Called before each change; throws if changes aren't allowed.
  virtual void require_open() const {}
  [[noreturn]] virtual void fail(std::string_view what, std::string_view where,
                                 std::string_view rule = {}) const;
  /// Appends the number of tensors, the number of keys, and the keys with their values.
  void append_keys(std::string& out, uint64_t tensors) const;

 private:
  struct Entry {
    std::string key;
    GgufType type;
    std::string payload;
    bool removed;
  };
  void set_payload(std::string_view key, GgufType type, std::string payload);

  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t, KeyedHash> entry_index_;
};

}  // namespace wick::io
