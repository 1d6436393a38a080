#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick::io {

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

  /// Bytes held in memory, aligned to 64.
  static std::shared_ptr<const Bytes> copy_of(std::span<const std::byte> bytes);

 protected:
  Bytes() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// A whole file mapped read-only. Another process that shortens the file while it is mapped takes
/// the pages away: reading them then raises SIGBUS, as with any mapping.
class WICK_API MappedFile final : public Bytes {
 public:
  /// Maps the regular file `path`. Errors, named after `op`: missing, a directory or other special
  /// file, empty, no permission.
  static std::shared_ptr<const MappedFile> open(std::string_view op, const std::string& path);
  ~MappedFile() override;
  void release(std::span<const std::byte> part) const noexcept override;
  bool file_backed() const noexcept override { return true; }

 private:
  MappedFile() = default;
};

}  // namespace wick::io
