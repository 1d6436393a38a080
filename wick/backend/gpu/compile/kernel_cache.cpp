#include "wick/backend/gpu/compile/kernel_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "wick/base/environment.h"
#include "wick/base/error.h"
#include "wick/base/sha256.h"

namespace wick::gpu {
namespace {

namespace fs = std::filesystem;

/// An entry is kMagic, the digest of its key and image, and the image.
constexpr std::string_view kMagic = "wick kernel 1\n";
constexpr size_t kHeadBytes = kMagic.size() + 32;
constexpr std::string_view kEntry = ".kernel", kUnfinished = ".unfinished-";
/// Files that were left unfinished this long ago are removed.
constexpr auto kAbandoned = std::chrono::hours(1);

std::array<uint8_t, 32> digest_of(std::string_view key, std::string_view image) {
  Sha256 sum;
  sum.add(key);
  sum.add(std::string_view("\0", 1));
  sum.add(image);
  return sum.finish();
}

/// A file that is closed with the object.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  bool close() {
    const int open = std::exchange(descriptor_, -1);
    return open < 0 || ::close(open) == 0;
  }
  bool write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return true;
  }

 private:
  int descriptor_;
};

/// The whole file; nothing if it can't be read.
std::optional<std::string> read_all(const File& file) {
  struct stat status;
  if (fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t done = ::read(file.descriptor(), text.data() + at, text.size() - at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return std::nullopt;
    at += static_cast<size_t>(done);
  }
  return text;
}

/// The image of an undamaged entry.
std::optional<std::string> image_of(std::string_view key, std::string entry) {
  if (entry.size() < kHeadBytes || !entry.starts_with(kMagic)) return std::nullopt;
  const auto digest = digest_of(key, std::string_view(entry).substr(kHeadBytes));
  if (std::memcmp(entry.data() + kMagic.size(), digest.data(), digest.size()) != 0) {
    return std::nullopt;
  }
  return entry.substr(kHeadBytes);
}

uint64_t standard_limit() {
  return environment_bytes("WICK_KERNEL_CACHE_MIB", uint64_t{256} << 20);
}

fs::path standard_folder() {
  const std::string_view chosen = environment("WICK_KERNEL_CACHE");
  if (!chosen.empty()) return chosen == "off" ? fs::path() : fs::path(chosen);
  const fs::path cache = user_cache_folder();
  return cache.empty() ? fs::path() : cache / "wick" / "kernels";
}

}  // namespace

KernelCache::KernelCache(fs::path folder, uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

const KernelCache& KernelCache::standard() {
  static const KernelCache cache(standard_folder(), standard_limit());
  return cache;
}

std::optional<std::string> KernelCache::load(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const File file(::open((folder_ / (key + std::string(kEntry))).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::optional<std::string> entry = read_all(file);
  if (!entry) return std::nullopt;
  std::optional<std::string> image = image_of(key, std::move(*entry));
  // The modification time records the last use, because access times are often disabled. A damaged
  // entry is left alone, because another process may be replacing it.
  if (image) futimens(file.descriptor(), nullptr);
  return image;
}

void KernelCache::store(const std::string& key, std::string_view image) const noexcept try {
  if (folder_.empty() || image.size() + kHeadBytes > limit_bytes_) return;
  std::error_code failed;
  fs::create_directories(folder_, failed);
  std::string unfinished = (folder_ / (std::string(kUnfinished) + "XXXXXX")).string();
  File file(mkostemp(unfinished.data(), O_CLOEXEC));
  if (!file) return;
  const auto digest = digest_of(key, image);
  const bool whole =
      file.write_all(kMagic) &&
      file.write_all({reinterpret_cast<const char*>(digest.data()), digest.size()}) &&
      file.write_all(image) && file.close();
  const fs::path entry = folder_ / (key + std::string(kEntry));
  if (!whole || ::rename(unfinished.c_str(), entry.c_str()) != 0) ::unlink(unfinished.c_str());
  make_room();
} catch (...) {
  // Out of memory or of file names: the kernel is compiled again next time.
}

void KernelCache::make_room() const {
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t all = 0;
  std::error_code failed;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(folder_, failed), end; !failed && at != end;
       at.increment(failed)) {
    // Other processes remove files at the same time. A removed file has no size.
    std::error_code gone;
    const fs::path& path = at->path();
    const uint64_t bytes = at->file_size(gone);
    const fs::file_time_type used = gone ? now : at->last_write_time(gone);
    if (gone) continue;
    const std::string name = path.filename().string();
    if (name.starts_with(kUnfinished) && now - used > kAbandoned) fs::remove(path, gone);
    if (!name.ends_with(kEntry)) continue;
    entries.push_back({used, bytes, path});
    all += bytes;
  }
  if (all <= limit_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (all <= limit_bytes_) return;
    std::error_code gone;
    fs::remove(entry.path, gone);
    all -= entry.bytes;
  }
}

}  // namespace wick::gpu
