#pragma once

// Compiled kernels on disk, so that a machine compiles each source once. Many processes may use the
// folder at once, and may be killed at any time: entries appear atomically by renaming, and a
// damaged entry is a miss.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace wick::gpu {

class KernelCache {
 public:
  /// Keeps entries in a folder, which is made on first use; an empty path disables the cache. If
  /// entries exceed `limit_bytes`, the least recently used ones are removed.
  KernelCache(std::filesystem::path folder, uint64_t limit_bytes);

  /// The user's cache: $WICK_KERNEL_CACHE (`off`: none), otherwise wick/kernels in $XDG_CACHE_HOME
  /// or ~/.cache. The limit is 256 MiB or $WICK_KERNEL_CACHE_MIB.
  static const KernelCache& standard();

  const std::filesystem::path& folder() const { return folder_; }
  /// The image stored under a key, which must be a valid file name. Nothing if there is none or it
  /// is damaged. A call counts as a use.
  std::optional<std::string> load(const std::string& key) const;
  /// Stores an image, if possible.
  void store(const std::string& key, std::string_view image) const noexcept;

 private:
  void make_room() const;

  const std::filesystem::path folder_;
  const uint64_t limit_bytes_;
};

}  // namespace wick::gpu
