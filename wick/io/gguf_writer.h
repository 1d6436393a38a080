#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wick/base/dtype.h"
#include "wick/base/export.h"
#include "wick/base/keyed_hash.h"
#include "wick/base/shape.h"
#include "wick/io/model_file.h"
#include "wick/io/output_file.h"

namespace wick::io {

/// Writes a GGUF file of version 3: the metadata and the list of tensors, followed by the tensors'
/// data in that order. The file appears under its name only after finish().
class WICK_API GgufWriter {
 public:
  /// `permissions` are the new file's permission bits, restricted by the umask. Errors: the file
  /// can't be created.
  explicit GgufWriter(const std::string& path, uint32_t permissions = 0666);

  // Metadata. Setting a key again replaces its value and keeps its position. Errors: tensor data
  // has been written already; a key exceeds 65535 bytes.
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

  /// Declares a tensor; the file keeps the order of declaration. Errors: the format has no number
  /// for the dtype; the last size isn't a multiple of the block; the rank is above 4; the name is
  /// taken or exceeds 65535 bytes; tensor data has been written already.
  void add_tensor(std::string_view name, DType dtype, const Shape& shape);

  /// Appends bytes to the first incomplete tensor, whose name must be `name`; pieces may have any
  /// size. Errors: another tensor's name; bytes beyond the tensor's end; the disk is full.
  void write(std::string_view name, std::span<const std::byte> bytes);

  /// Completes the file and gives it its name. Errors: a tensor is incomplete; the disk is full.
  void finish();

  /// The size of the whole file with the tensors declared so far.
  uint64_t file_bytes() const;

 private:
  struct Entry {
    std::string key;
    GgufType type;
    std::string payload;
    bool removed;
  };
  struct Pending {
    std::string name;
    uint32_t type;
    Shape shape;
    uint64_t offset;  // offset from the start of the tensor data
    uint64_t bytes;
  };

  [[noreturn]] void fail(std::string_view what, std::string_view where,
                         std::string_view rule = {}) const;
  void set_payload(std::string_view key, GgufType type, std::string payload);
  void require_header_open() const;
  std::string header() const;
  void start_data();
  /// Skips tensors that are complete.
  void advance();

  OutputFile file_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t, KeyedHash> entry_index_;
  std::vector<Pending> tensors_;
  std::unordered_map<std::string, size_t, KeyedHash> tensor_index_;
  uint64_t data_bytes_ = 0;
  bool header_written_ = false;
  uint64_t data_start_ = 0;
  size_t current_ = 0;          // the first incomplete tensor
  uint64_t current_bytes_ = 0;  // bytes of the current tensor written so far
};

}  // namespace wick::io
