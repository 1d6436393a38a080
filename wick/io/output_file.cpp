#include "wick/io/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::io {
namespace {

constexpr int kAttempts = 8;  // to find an unused name

/// The folder of `path` with a trailing slash; empty for the current folder.
std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// A temporary name in the folder of `path`. It is short, because a long file name may exceed the
/// limit.
std::string temporary_name(const std::string& path) {
  std::random_device random;
  return fmt::format("{}.wick-{:08x}{:08x}.tmp", folder_of(path), random(), random());
}

/// Opens an unnamed file in the folder of `path`, which vanishes when the process ends. Returns -1
/// if the file system doesn't support it, or if the file couldn't be named later.
int open_nameless([[maybe_unused]] const std::string& path, [[maybe_unused]] uint32_t permissions) {
#ifdef O_TMPFILE
  if (::access("/proc/self/fd", X_OK) != 0) return -1;
  const std::string folder = folder_of(path);
  return ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC,
                permissions);
#else
  return -1;
#endif
}

/// The path that symbolic links lead to from `path`. Errors: they lead to nothing, or in a circle.
std::string follow_links(std::string_view op, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  if (!error) return target.string();
  throw Error(ErrorKind::file, op, "cannot write", printable(path),
              "symbolic link to a file that isn't there");
}

}  // namespace

OutputFile::OutputFile(std::string_view op, std::string path, uint32_t permissions)
    : op_(op), path_(std::move(path)) {
  if (path_.find('\0') != std::string::npos) fail("cannot write", ENOENT);
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    // A rename would replace the device or pipe.
    if (S_ISDIR(status.st_mode)) fail("cannot write", EISDIR);
    throw Error(ErrorKind::file, op_, "cannot write", printable(path_), "Not a regular file");
  }
  // A file without a name has none that is too long.
  if (::lstat(path_.c_str(), &status) != 0 && errno == ENAMETOOLONG) {
    fail("cannot write", ENAMETOOLONG);
  }
  if (path_.empty() || path_.back() == '/') fail("cannot write", path_.empty() ? ENOENT : EISDIR);
  target_ = follow_links(op_, path_);
  fd_ = open_nameless(target_, permissions);
  for (int attempt = 0; fd_ < 0; ++attempt) {
    temporary_ = temporary_name(target_);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
    if (fd_ < 0 && (errno != EEXIST || attempt == kAttempts)) fail("cannot write", errno);
  }
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::fail(std::string_view what, int error) const {
  throw Error(ErrorKind::file, op_, what, printable(path_), std::generic_category().message(error));
}

void OutputFile::discard() noexcept {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::give_name() {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  for (int attempt = 0;; ++attempt) {
    const std::string name = temporary_name(target_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST || attempt == kAttempts) fail("cannot write", errno);
  }
}

void OutputFile::reserve(uint64_t bytes) {
#ifdef __linux__
  // posix_fallocate would write the whole file if the file system lacks the call.
  if (bytes == 0 || bytes > INT64_MAX) return;
  if (::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0 && errno == ENOSPC) {
    fail("cannot write", ENOSPC);
  }
#else
  (void)bytes;
#endif
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) fail("cannot write", EBADF);
  while (!bytes.empty()) {
    constexpr size_t kMaxWrite = size_t{1} << 30;  // the kernel's limit is slightly below 2 GiB
    const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), kMaxWrite));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : ENOSPC;
      discard();  // a file with a gap must never be finished
      fail("cannot write", error);
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    written_ += static_cast<uint64_t>(n);
  }
}

void OutputFile::finish() {
  if (fd_ < 0) fail("cannot write", EBADF);
  // Frees reserved space that wasn't used. The contents must reach the disk before the name refers
  // to them.
  if (::ftruncate(fd_, static_cast<off_t>(written_)) != 0 || ::fsync(fd_) != 0) {
    fail("cannot write", errno);
  }
  if (temporary_.empty()) give_name();  // linkat() can't replace a file, rename() can
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0 || std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail("cannot write", error);
  }
}

void require_writable(std::string_view op, const std::string& path) {
  const OutputFile probe(op, path);
}

void require_not_input(std::string_view op, const std::string& out,
                       std::span<const std::string> inputs) {
  for (const std::string& in : inputs) {
    std::error_code ignored;
    if (!std::filesystem::equivalent(in, out, ignored)) continue;
    throw Error(
        op, "input and output are the same file",
        in == out ? printable(in) : fmt::format("{} and {}", printable(in), printable(out)));
  }
}

}  // namespace wick::io
