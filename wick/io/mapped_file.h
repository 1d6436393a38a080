#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick::io {

class GuardedRange;

/// Read-only bytes with an owner: a mapped file or a copy in memory.
class WICK_API Bytes {
 public:
  virtual ~Bytes();
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const std::byte> span() const { return {data_, size_}; }

  /// Tells that `part` won't be read again soon, so that its memory may be returned to the system.
  /// The contents don't change.
  virtual void release(std::span<const std::byte> part) const noexcept;
  /// Whether the system can read released pages again from a file.
  virtual bool file_backed() const noexcept { return false; }
  /// Whether the bytes may have changed since they were opened. Callers check this after they read
  /// the bytes and before they use the results.
  virtual bool changed() const noexcept { return false; }
  /// Errors: changed() is true; the message names `op`.
  void require_unchanged(std::string_view op) const;

  /// A copy of bytes in memory, aligned to 64 bytes.
  static std::shared_ptr<const Bytes> copy_of(std::span<const std::byte> bytes);

 protected:
  Bytes() = default;
  /// The name of the bytes in error messages.
  virtual const std::string& name() const noexcept;

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// A file mapped read-only. Other processes may change the file, and thereby the bytes, while it is
/// mapped. A range that the file loses reads as zeros (see GuardedRange). changed() reports that,
/// and every write that changes the file's size or modification time. It can't detect a write
/// within the clock tick (some milliseconds) of the last change before open(), or a write whose
/// writer resets the time. A file that is deleted or replaced by rename keeps its bytes.
class WICK_API MappedFile final : public Bytes {
 public:
  /// Maps the regular file `path`. Errors: the file is missing, empty or not a regular file;
  /// permission is denied; the message names `op`.
  static std::shared_ptr<const MappedFile> open(std::string_view op, const std::string& path);
  ~MappedFile() override;
  void release(std::span<const std::byte> part) const noexcept override;
  bool file_backed() const noexcept override { return true; }
  bool changed() const noexcept override;

 private:
  MappedFile(std::string path, int descriptor);
  const std::string& name() const noexcept override { return path_; }

  std::string path_;
  int descriptor_;  // stays open as long as the mapping, to query the file's state
  int64_t modified_seconds_ = 0, modified_nanoseconds_ = 0;
  std::unique_ptr<GuardedRange> guard_;
  mutable std::atomic<bool> changed_{false};  // never reset
};

/// Asks the system to read a whole file into memory in the background, which is faster than faults
/// of a mapping's pages. Does nothing if the file can't be opened.
WICK_API void read_ahead(const std::string& path) noexcept;

}  // namespace wick::io
