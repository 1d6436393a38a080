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

#include "wick/base/error.h"
#include "wick/base/pages.h"
#include "wick/base/printable.h"

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

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
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

std::shared_ptr<const MappedFile> MappedFile::open(std::string_view op, const std::string& path) {
  // A path with a NUL inside would silently name another file.
  if (path.find('\0') != std::string::npos) cannot_open(op, path, ENOENT);
  // Non-blocking: opening a named pipe must not wait for its writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) cannot_open(op, path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) cannot_open(op, path, errno);
  if (S_ISDIR(status.st_mode)) cannot_open(op, path, EISDIR);
  if (!S_ISREG(status.st_mode)) cannot_open(op, path, "Not a regular file");
  if (status.st_size <= 0) cannot_open(op, path, "File is empty");

  const auto size = static_cast<size_t>(status.st_size);
  std::shared_ptr<MappedFile> mapped(new MappedFile());
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) cannot_open(op, path, errno);
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->size_ = size;
  return mapped;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::span<const std::byte> part) const noexcept {
  release_whole_pages(const_cast<std::byte*>(part.data()), part.size());
}

}  // namespace wick::io
