#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wick/base/dtype.h"
#include "wick/base/export.h"
#include "wick/base/keyed_hash.h"
#include "wick/base/shape.h"
#include "wick/io/gguf_value.h"
#include "wick/io/mapped_file.h"
#include "wick/tensor/tensor.h"

namespace wick::io {

/// A key and its value; both are views into the file's header.
struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

/// The description of a tensor in a file.
struct GgufTensor {
  std::string_view name;       ///< a view into the file's header
  uint32_t type = 0;           ///< the format's type number
  std::optional<DType> dtype;  ///< missing for types that wick can list but not read
  Shape shape;                 ///< row-major: [n, k] for a weight of n rows
  uint64_t offset = 0;         ///< from the start of the file, in bytes
  uint64_t bytes = 0;          ///< 0 if the format doesn't define the type

  /// "q4_1[49152,576]"
  WICK_API std::string str() const;
};

/// The layer of a tensor named "blk.LAYER.…". Nothing for other names.
WICK_API std::optional<int64_t> layer_of(std::string_view tensor);

/// A model's metadata and tensors under the names of GGUF files, whatever files hold them: one GGUF
/// file, several (split_file.h), or other files whose contents are given these names. Immutable, so
/// threads can share it. Views that it returns are valid as long as it lives.
class WICK_API ModelFile {
 public:
  virtual ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  /// The file or folder, for error messages.
  const std::string& path() const { return path_; }
  /// The format of the files, for users: "GGUF version 3".
  virtual std::string format() const = 0;
  /// The paths of all files with tensors, and the bytes of these files.
  virtual std::vector<std::string> files() const = 0;
  virtual uint64_t file_bytes() const = 0;
  /// Throws if a file was changed after it was opened. Callers check this after they read tensor
  /// data. Keys, values and names were copied when the file was opened and don't change. Errors:
  /// a file was changed; the message names `op` and the file.
  virtual void require_unchanged(std::string_view op) const = 0;

  // Metadata, in the file's order.
  const std::vector<GgufEntry>& metadata() const { return metadata_; }
  /// Returns the value of a key, or null if the file doesn't have it.
  const GgufValue* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // Typed values. Integer getters accept integers of every width if the value is in range; float
  // getters also accept integers. Errors: the key is missing and there is no default; the value has
  // another type or is out of range.
  uint32_t get_u32(std::string_view key) const;
  uint32_t get_u32(std::string_view key, uint32_t or_else) const;
  int32_t get_i32(std::string_view key) const;
  int32_t get_i32(std::string_view key, int32_t or_else) const;
  uint64_t get_u64(std::string_view key) const;
  uint64_t get_u64(std::string_view key, uint64_t or_else) const;
  int64_t get_i64(std::string_view key) const;
  int64_t get_i64(std::string_view key, int64_t or_else) const;
  float get_f32(std::string_view key) const;
  float get_f32(std::string_view key, float or_else) const;
  bool get_bool(std::string_view key) const;
  bool get_bool(std::string_view key, bool or_else) const;
  std::string_view get_string(std::string_view key) const;
  std::string_view get_string(std::string_view key, std::string_view or_else) const;

  // Typed arrays, with the conversions of the scalar getters.
  std::vector<uint32_t> get_u32s(std::string_view key) const;
  std::vector<int32_t> get_i32s(std::string_view key) const;
  std::vector<float> get_f32s(std::string_view key) const;
  std::vector<bool> get_bools(std::string_view key) const;
  std::vector<std::string_view> get_strings(std::string_view key) const;

  // Tensors, in the file's order.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  /// Returns a tensor's description, or null if the file doesn't have it.
  const GgufTensor* find_tensor(std::string_view name) const;
  /// Returns a tensor's description. Errors: the file doesn't have it.
  const GgufTensor& require_tensor(std::string_view name) const;
  /// Errors: wick can't read the type of a tensor.
  void require_readable(const GgufTensor& tensor) const;
  /// A read-only tensor, over a file's bytes without a copy if they are stored in this form. It
  /// keeps the bytes alive without this object. Errors: the file doesn't have the tensor; wick
  /// can't read its type.
  Tensor tensor(std::string_view name) const { return tensor(require_tensor(name)); }
  virtual Tensor tensor(const GgufTensor& tensor) const = 0;
  /// The number of parts of equal size, along the first dim, in which a tensor can be read.
  virtual int64_t parts(const GgufTensor&) const { return 1; }
  /// One of these parts, dense from the first byte of its storage. Errors: those of tensor().
  virtual Tensor part(const GgufTensor& whole, int64_t) const { return tensor(whole); }
  /// The file that maps the bytes of a part of a tensor; null if part() copies them.
  virtual std::shared_ptr<const Bytes> mapped(const GgufTensor& tensor, int64_t part) const = 0;

 protected:
  /// `op` begins the messages of errors.
  explicit ModelFile(std::string_view op) : op_(op) {}
  /// Adds an entry. Returns false if the name is taken.
  bool add(const GgufEntry& entry);
  bool add(const GgufTensor& tensor);

  std::string op_, path_;
  std::vector<GgufEntry> metadata_;
  std::vector<GgufTensor> tensors_;

 private:
  const GgufValue& require(std::string_view key) const;
  [[noreturn]] void wrong_value(std::string_view key, const GgufValue& value,
                                std::string_view need) const;
  template <class T>
  T to_integer(std::string_view key, const GgufValue& value) const;
  template <class T, class Get>
  std::vector<T> array(std::string_view key, std::string_view need, Get get) const;

  std::unordered_map<std::string_view, size_t, KeyedHash> key_index_;
  std::unordered_map<std::string_view, size_t, KeyedHash> tensor_index_;
};

/// Errors: general.type says that the file holds a saved session or an importance matrix.
WICK_API void require_model(const ModelFile& file);

}  // namespace wick::io
