#include "wick/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/pages.h"
#include "wick/base/printable.h"
#include "wick/io/guarded_range.h"

namespace wick::io {
namespace {

constexpr std::align_val_t kAlignment{64};

class HeapBytes final : public Bytes {
 public:
  explicit HeapBytes(std::span<const std::byte> bytes) {
    auto* copy = static_cast<std::byte*>(::operator new(bytes.size(), kAlignment));
    if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
    data_ = copy;
    size_ = bytes.size();
  }
  ~HeapBytes() override { ::operator delete(const_cast<std::byte*>(data_), kAlignment); }
};

[[noreturn]] void cannot_open(std::string_view op, const std::string& path, std::string_view why) {
  throw Error(ErrorKind::file, op, "cannot open", printable(path), why);
}

[[noreturn]] void cannot_open(std::string_view op, const std::string& path, int error) {
  cannot_open(op, path, std::generic_category().message(error));
}

}  // namespace

Bytes::~Bytes() = default;

void Bytes::release(std::span<const std::byte>) const noexcept {}

std::shared_ptr<const Bytes> Bytes::copy_of(std::span<const std::byte> bytes) {
  return std::make_shared<HeapBytes>(bytes);
}

const std::string& Bytes::name() const noexcept {
  static const std::string none = "<memory>";
  return none;
}

void Bytes::require_unchanged(std::string_view op) const {
  if (!changed()) return;
  throw Error(ErrorKind::file, op, "file was changed while it was in use", printable(name()),
              "load it again");
}

MappedFile::MappedFile(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

std::shared_ptr<const MappedFile> MappedFile::open(std::string_view op, const std::string& path) {
  // A path that contains a NUL would silently name another file.
  if (path.find('\0') != std::string::npos) cannot_open(op, path, ENOENT);
  // Non-blocking, because opening a named pipe must not wait for a writer.
  const std::shared_ptr<MappedFile> mapped(
      new MappedFile(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  const int file = mapped->descriptor_;
  if (file < 0) cannot_open(op, path, errno);
  struct stat status {};
  if (::fstat(file, &status) != 0) cannot_open(op, path, errno);
  if (S_ISDIR(status.st_mode)) cannot_open(op, path, EISDIR);
  if (!S_ISREG(status.st_mode)) cannot_open(op, path, "Not a regular file");
  if (status.st_size <= 0) cannot_open(op, path, "File is empty");

  const auto size = static_cast<size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED) cannot_open(op, path, errno);
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->size_ = size;
  mapped->modified_seconds_ = status.st_mtim.tv_sec;
  mapped->modified_nanoseconds_ = status.st_mtim.tv_nsec;
  mapped->guard_ = std::make_unique<GuardedRange>(data, size);
  return mapped;
}

MappedFile::~MappedFile() {
  guard_.reset();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool MappedFile::changed() const noexcept {
  GuardedRange::claim_signal();
  if (changed_.load()) return true;
  struct stat now {};
  const bool same = !guard_->is_damaged() && ::fstat(descriptor_, &now) == 0 &&
                    static_cast<size_t>(now.st_size) == size_ &&
                    now.st_mtim.tv_sec == modified_seconds_ &&
                    now.st_mtim.tv_nsec == modified_nanoseconds_;
  if (!same) changed_.store(true);
  return !same;
}

void MappedFile::release(std::span<const std::byte> part) const noexcept {
  release_whole_pages(const_cast<std::byte*>(part.data()), part.size());
}

void read_ahead(const std::string& path) noexcept {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return;
  ::posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED);
  ::close(file);
}

}  // namespace wick::io
