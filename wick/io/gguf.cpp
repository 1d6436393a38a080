#include "wick/io/gguf.h"

#include <fmt/format.h>

namespace wick::io {

std::shared_ptr<const Gguf> Gguf::open(const std::string& path) {
  return parse(MappedFile::open("gguf", path), path);
}

std::string Gguf::format() const { return fmt::format("GGUF version {}", version_); }

std::span<const std::byte> Gguf::data(const GgufTensor& tensor) const {
  require_readable(tensor);
  return bytes_->span().subspan(static_cast<size_t>(tensor.offset),
                                static_cast<size_t>(tensor.bytes));
}

Tensor Gguf::tensor(const GgufTensor& tensor) const {
  const std::span<const std::byte> part = data(tensor);
  return Tensor(Storage::map(part.data(), part.size(), bytes_, bytes_->file_backed()),
                *tensor.dtype, Layout::contiguous(tensor.shape));
}

}  // namespace wick::io
