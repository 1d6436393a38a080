#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
#include "wick/io/mapped_file.h"
#include "wick/tensor/tensor.h"

namespace wick::io {

/// The description of a tensor in a safetensors file.
struct SafeTensor {
  std::string name;
  std::string type;            ///< the format's name of the type: "BF16"
  std::optional<DType> dtype;  ///< missing for types that wick can't read
  Shape shape;
  uint64_t offset = 0;  ///< from the start of the file, in bytes
  uint64_t bytes = 0;

  /// "BF16[49152,576]"
  WICK_API std::string str() const;
};

/// A safetensors file. Opening it checks the whole header: every size and offset is compared with
/// the file's size. Immutable, so threads can share it.
class WICK_API Safetensors {
 public:
  /// Maps and checks a file. Errors: the file can't be read; the header is invalid, or larger than
  /// 32 MiB.
  static std::shared_ptr<const Safetensors> open(const std::string& path);
  /// Checks a file in memory; `name` replaces the path in error messages.
  static std::shared_ptr<const Safetensors> parse(std::shared_ptr<const Bytes> bytes,
                                                  std::string name = "<memory>");

  const std::string& path() const { return path_; }
  /// The owner of the file's bytes.
  const std::shared_ptr<const Bytes>& bytes() const { return bytes_; }

  /// In the order of their names.
  const std::vector<SafeTensor>& tensors() const { return tensors_; }
  /// Returns a tensor's description, or null if the file doesn't have it.
  const SafeTensor* find(std::string_view name) const;
  /// A read-only tensor over the file's bytes; a copy if they aren't aligned to the elements' size.
  /// It keeps the bytes alive. Errors: wick can't read the type.
  Tensor tensor(const SafeTensor& tensor) const { return part(tensor, 0, tensor.shape); }
  /// A part of a tensor: the elements from `first` on, with a shape. Errors: those of tensor().
  Tensor part(const SafeTensor& tensor, int64_t first, const Shape& shape) const;

 private:
  Safetensors(std::shared_ptr<const Bytes> bytes, std::string path);
  void read(std::string_view header, uint64_t data_start);

  std::shared_ptr<const Bytes> bytes_;
  std::string path_;
  std::vector<SafeTensor> tensors_;
  std::unordered_map<std::string_view, size_t, KeyedHash> index_;
};

}  // namespace wick::io
