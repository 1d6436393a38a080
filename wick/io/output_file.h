#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick::io {

/// A file that appears complete or not at all. It is written without a name (O_TMPFILE), or under a
/// temporary name in the same folder if that isn't supported; finish() renames it to `path`.
/// Without finish() it is removed. Only a killed process can leave a temporary file behind. If
/// `path` is a symbolic link, the file that it refers to is replaced and the link stays, as with
/// cp; of a file with several hard links, only the name `path` is replaced.
class WICK_API OutputFile {
 public:
  /// `permissions` are the new file's permission bits, restricted by the umask. Errors: the folder
  /// doesn't exist; permission is denied; `path` isn't a regular file, or is a symbolic link to no
  /// file; the message names `op`.
  OutputFile(std::string_view op, std::string path, uint32_t permissions = 0666);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t written_bytes() const { return written_; }

  /// Allocates disk space for `bytes`, so that a full disk is detected early. Does nothing if the
  /// file system doesn't support it. Errors: the disk is full.
  void reserve(uint64_t bytes);
  /// Appends bytes. Errors: the disk is full, or the write fails.
  void write(std::span<const std::byte> bytes);
  /// Flushes the file to the disk and renames it. Errors: those of write; `path` isn't written
  /// then.
  void finish();

 private:
  [[noreturn]] void fail(std::string_view what, int error) const;
  void discard() noexcept;
  void give_name();

  std::string op_;
  std::string path_;       // as it was given
  std::string target_;     // the file that path_ refers to by symbolic links
  std::string temporary_;  // empty while the file has no name
  int fd_ = -1;
  uint64_t written_ = 0;
};

/// Errors: a file can't be written at `path`, as OutputFile's constructor says. Leaves no file.
WICK_API void require_writable(std::string_view op, const std::string& path);

/// Errors: `out` is one of the files `inputs`, also by a link or another spelling of the path; the
/// message names both. Inputs that don't exist are left out.
WICK_API void require_not_input(std::string_view op, const std::string& out,
                                std::span<const std::string> inputs);

}  // namespace wick::io
