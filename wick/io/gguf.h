#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "wick/io/model_file.h"

namespace wick::io {

/// A little-endian GGUF file of version 2 or 3. Opening it checks the whole header: every count,
/// length and offset is compared with the file's size before it is used.
class WICK_API Gguf final : public ModelFile {
 public:
  /// Maps and checks a file. Errors: the file can't be read; any part of the header is invalid.
  static std::shared_ptr<const Gguf> open(const std::string& path);
  /// Checks a file in memory; `name` replaces the path in error messages.
  static std::shared_ptr<const Gguf> parse(std::shared_ptr<const Bytes> bytes,
                                           std::string name = "<memory>");

  uint32_t version() const { return version_; }
  uint32_t alignment() const { return alignment_; }
  std::string format() const override;
  std::vector<std::string> files() const override { return {path_}; }
  uint64_t file_bytes() const override { return bytes_->size(); }
  void require_unchanged(std::string_view op) const override { bytes_->require_unchanged(op); }

  /// The tensor's bytes in the file. Errors: wick can't read the type.
  std::span<const std::byte> data(const GgufTensor& tensor) const;
  using ModelFile::tensor;
  Tensor tensor(const GgufTensor& tensor) const override;
  std::shared_ptr<const Bytes> mapped(const GgufTensor&, int64_t) const override { return bytes_; }

  /// The owner of the file's bytes. It keeps data() valid without the Gguf.
  const std::shared_ptr<const Bytes>& bytes() const { return bytes_; }

 private:
  friend class GgufParser;
  Gguf() : ModelFile("gguf") {}

  std::shared_ptr<const Bytes> bytes_;
  std::shared_ptr<const Bytes> header_;  // storage of the keys, string values and names
  uint32_t version_ = 0;
  uint32_t alignment_ = 0;
};

}  // namespace wick::io
