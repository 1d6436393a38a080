#include "wick/serve/model_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "wick/base/checksum.h"
#include "wick/base/sha256.h"

namespace wick::serve {
namespace {

constexpr int64_t kSampledTensors = 32, kSamples = 4, kSampleBytes = 64;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Adds some bytes of the first part of a tensor. Parts that would have to be made aren't read.
void add_samples(Sha256& sum, const io::ModelFile& file, const io::GgufTensor& tensor) {
  if (!tensor.dtype || file.mapped(tensor, 0) == nullptr) return;
  const Tensor part = file.part(tensor, 0);
  const int64_t size = bytes_of(part.dtype(), part.elems());
  const auto* const bytes =
      static_cast<const char*>(part.view().data) + bytes_of(part.dtype(), part.layout().offset());
  const int64_t count = std::min(size, kSampleBytes);
  for (int64_t i = 0; i < kSamples; ++i) {
    sum.add({bytes + (size - count) * i / (kSamples - 1), static_cast<size_t>(count)});
  }
}

void add_adapter(Sha256& sum, const std::string& path) {
  constexpr size_t kBytes = size_t{1} << 16;
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  for (const char* name : {"/adapter_config.json", "/adapter_model.safetensors"}) {
    const std::string file = folder ? path + name : path;
    const auto size = std::filesystem::file_size(file, ignored);
    std::string bytes(kBytes, '\0');
    std::ifstream in(file, std::ios::binary);
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    sum.add(fmt::format("adapter {} ", ignored ? 0 : size));
    sum.add(bytes);
    if (!folder) return;
  }
}

/// Adds the keys of the vocabulary, so that equal token ids are the same text. A vocabulary may
/// have many megabytes, so a checksum stands for them. The chat template doesn't change the tokens.
void add_vocabulary(Sha256& sum, const io::ModelFile& file) {
  Checksum all;
  for (const io::GgufEntry& entry : file.metadata()) {
    if (!entry.key.starts_with("tokenizer.") || entry.key.starts_with("tokenizer.chat_template")) {
      continue;
    }
    all.add(std::as_bytes(std::span(entry.key)));
    all.add(entry.value.payload());
  }
  sum.add(fmt::format("vocabulary {}", all.value()));
}

}  // namespace

std::string model_digest(const io::ModelFile& file, std::span<const std::string> adapters) {
  Sha256 sum;
  const std::string architecture(file.get_string("general.architecture", ""));
  sum.add(architecture);
  for (const io::GgufEntry& entry : file.metadata()) {
    if (!entry.key.starts_with(architecture + ".")) continue;
    sum.add(entry.key);
    sum.add(text_of(entry.value.payload()));
  }
  add_vocabulary(sum, file);
  const auto count = static_cast<int64_t>(file.tensors().size());
  const int64_t step = std::max<int64_t>(1, count / kSampledTensors);
  for (int64_t i = 0; i < count; ++i) {
    const io::GgufTensor& tensor = file.tensors()[static_cast<size_t>(i)];
    sum.add(tensor.name);
    sum.add(tensor.str());
    if (i % step == 0) add_samples(sum, file, tensor);
  }
  for (const std::string& adapter : adapters) add_adapter(sum, adapter);
  constexpr size_t kDigits = 16;
  return hex(sum.finish()).substr(0, kDigits);
}

}  // namespace wick::serve
