#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wick/base/checksum.h"
#include "wick/base/dtype.h"
#include "wick/base/export.h"
#include "wick/base/keyed_hash.h"
#include "wick/base/shape.h"
#include "wick/io/gguf_metadata.h"
#include "wick/io/output_file.h"

namespace wick::io {

/// Writes a GGUF file of version 3: the metadata and the list of tensors, followed by the tensors'
/// data in that order. Metadata can be changed until tensor data is written. The file appears under
/// its name only after finish().
class WICK_API GgufWriter final : public GgufMetadata {
 public:
  /// `permissions` are the new file's permission bits, restricted by the umask. Errors: the file
  /// can't be created.
  explicit GgufWriter(const std::string& path, uint32_t permissions = 0666);

  /// Declares a tensor; the file keeps the order of declaration. Errors: the format has no number
  /// for the dtype; the last size isn't a multiple of the block; the rank is above 4; the name is
  /// taken or exceeds 65535 bytes; tensor data has been written already.
  void add_tensor(std::string_view name, DType dtype, const Shape& shape);

  /// Appends bytes to the first incomplete tensor, whose name must be `name`; pieces may have any
  /// size. Errors: another tensor's name; bytes beyond the tensor's end; the disk is full.
  void write(std::string_view name, std::span<const std::byte> bytes);

  /// Makes checksum() work from now on. Errors: tensor data has been written already.
  void keep_checksum();
  /// The checksum of the header and of the tensor data written so far, with the padding of complete
  /// tensors. Afterwards the metadata can't be changed.
  uint64_t checksum();

  /// Completes the file and gives it its name. Errors: a tensor is incomplete; the disk is full.
  void finish();

  /// The size of the whole file with the tensors declared so far.
  uint64_t file_bytes() const;

 private:
  struct Pending {
    std::string name;
    uint32_t type;
    Shape shape;
    uint64_t offset;  // offset from the start of the tensor data
    uint64_t bytes;
  };

  [[noreturn]] void fail(std::string_view what, std::string_view where,
                         std::string_view rule = {}) const override;
  void require_open() const override;
  std::string header() const;
  void start_data();
  /// Writes bytes to the file and adds them to the checksum.
  void put(std::span<const std::byte> bytes);
  /// Skips tensors that are complete.
  void advance();

  OutputFile file_;
  std::optional<Checksum> checksum_;
  std::vector<Pending> tensors_;
  std::unordered_map<std::string, size_t, KeyedHash> tensor_index_;
  uint64_t data_bytes_ = 0;
  bool header_written_ = false;
  uint64_t data_start_ = 0;
  size_t current_ = 0;          // the first incomplete tensor
  uint64_t current_bytes_ = 0;  // bytes of the current tensor written so far
};

}  // namespace wick::io
