#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick::io {

/// A file that appears whole or not at all. It is written without a name (O_TMPFILE), or under a
/// temporary one in the same folder where that isn't supported; finish() renames it over `path`.
/// Without finish() it is removed; only a killed process leaves a temporary file behind.
class WICK_API OutputFile {
 public:
  /// `permissions` are those of the file, less the bits of the umask. Errors, named after `op`: no
  /// such folder, no permission, `path` is no regular file.
  OutputFile(std::string_view op, std::string path, uint32_t permissions = 0666);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t written_bytes() const { return written_; }

  /// Allocates disk space for a file of `bytes`, so that a full disk is noticed early. Does nothing
  /// where the file system doesn't support that. Errors: disk full.
  void reserve(uint64_t bytes);
  /// Appends. Errors: disk full and other failures to write.
  void write(std::span<const std::byte> bytes);
  /// Flushes to the disk and renames. Errors as for write; the file is then not there.
  void finish();

 private:
  [[noreturn]] void fail(std::string_view what, int error) const;
  void discard() noexcept;
  void give_name();

  std::string op_;
  std::string path_;
  std::string temporary_;  // empty while the file has no name
  int fd_ = -1;
  uint64_t written_ = 0;
};

}  // namespace wick::io
