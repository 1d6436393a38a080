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

  /// Says that `part` won't be read again soon, so that memory holding it may be given back. Its
  /// contents stay as they are.
  virtual void release(std::span<const std::byte> part) const noexcept;
  /// Whether the system can fetch pages that were given back again.
  virtual bool file_backed() const noexcept { return false; }
  /// Whether the bytes may be others than when they were opened. Asked after they were read, before
  /// what came of it is used.
  virtual bool changed() const noexcept { return false; }
  /// Errors, named after `op`: changed().
  void require_unchanged(std::string_view op) const;

  /// Bytes held in memory, aligned to 64.
  static std::shared_ptr<const Bytes> copy_of(std::span<const std::byte> bytes);

 protected:
  Bytes() = default;
  /// What errors call the bytes.
  virtual const std::string& name() const noexcept;

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// A whole file mapped read-only. Other processes may change the file while it is mapped, and with
/// it the bytes: a range that the file loses reads as zeros (see GuardedRange), and changed() tells
/// of that and of every write that changes the file's size or its time of modification. Not told: a
/// write within the clock tick (some milliseconds) of the file's last change before open(), and one
/// whose writer sets the time back. A file that is replaced by rename or deleted keeps its bytes.
class WICK_API MappedFile final : public Bytes {
 public:
  /// Maps the regular file `path`. Errors, named after `op`: missing, a directory or other special
  /// file, empty, no permission.
  static std::shared_ptr<const MappedFile> open(std::string_view op, const std::string& path);
  ~MappedFile() override;
  void release(std::span<const std::byte> part) const noexcept override;
  bool file_backed() const noexcept override { return true; }
  bool changed() const noexcept override;

 private:
  MappedFile(std::string path, int descriptor);
  const std::string& name() const noexcept override { return path_; }

  std::string path_;
  int descriptor_;  // open as long as the mapping, to ask for the file's state
  int64_t modified_seconds_ = 0, modified_nanoseconds_ = 0;
  std::unique_ptr<GuardedRange> guard_;
  mutable std::atomic<bool> changed_{false};  // stays set
};

}  // namespace wick::io
