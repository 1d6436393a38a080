#pragma once

// Compiled kernels on disk, so that a source is compiled once a machine. Many processes may use the
// folder at once, and be killed at any time: entries appear whole, by renaming, and one that is
// damaged is a miss.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace wick::gpu {

class KernelCache {
 public:
  /// Entries in a folder, made when it is first needed; of an empty path nothing is kept. What was
  /// not used for longest goes first once they take more than `limit_bytes`.
  KernelCache(std::filesystem::path folder, uint64_t limit_bytes);

  /// The user's: $WICK_KERNEL_CACHE (`off`: none), else wick/kernels in $XDG_CACHE_HOME or
  /// ~/.cache; 256 MiB, or $WICK_KERNEL_CACHE_MIB.
  static const KernelCache& standard();

  const std::filesystem::path& folder() const { return folder_; }
  /// What was stored under a key, which is a name fit for a file. Nothing where there is none or it
  /// is damaged; counts as a use.
  std::optional<std::string> load(const std::string& key) const;
  /// Keeps it where it can be kept.
  void store(const std::string& key, std::string_view image) const noexcept;

 private:
  void make_room() const;

  const std::filesystem::path folder_;
  const uint64_t limit_bytes_;
};

/// $XDG_CACHE_HOME or ~/.cache; empty where neither is known.
std::filesystem::path user_cache_folder();

}  // namespace wick::gpu
