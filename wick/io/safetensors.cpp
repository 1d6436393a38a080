// The format: the header's length (u64), the header (a JSON object with the dtype, the shape and
// the place of each tensor), and the data.
#include "wick/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/json.h"

namespace wick::io {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "safetensors";
constexpr uint64_t kLengthBytes = 8, kMostHeaderBytes = uint64_t{32} << 20;
constexpr size_t kMostNameBytes = 65535;
constexpr uint64_t kMostElems = uint64_t{1} << 62;  // Shape's limit

struct Type {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> dtype;
};
constexpr Type kTypes[] = {
    {"F64", 8, DType::f64},        {"F32", 4, DType::f32},   {"F16", 2, DType::f16},
    {"BF16", 2, DType::bf16},      {"I64", 8, DType::i64},   {"I32", 4, DType::i32},
    {"I16", 2, DType::i16},        {"U32", 4, DType::u32},   {"U8", 1, DType::u8},
    {"F8_E4M3", 1, DType::f8e4m3}, {"BOOL", 1, DType::u8},   {"I8", 1, std::nullopt},
    {"F8_E5M2", 1, std::nullopt},  {"U16", 2, std::nullopt}, {"U64", 8, std::nullopt},
};

}  // namespace

std::string SafeTensor::str() const { return printable(type, 20) + shape.str(); }

Safetensors::Safetensors(std::shared_ptr<const Bytes> bytes, std::string path)
    : bytes_(std::move(bytes)), path_(std::move(path)) {
  const auto fail = [&](std::string_view what, std::string_view rule) {
    throw Error(ErrorKind::file, kFormat, what, printable(path_), rule);
  };
  if (bytes_->size() < kLengthBytes) {
    fail("file is truncated", fmt::format("it has {} bytes", bytes_->size()));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes_->data(), sizeof(length));
  if (length > kMostHeaderBytes) {
    fail("not a safetensors file, or its header is too large",
         fmt::format("{} bytes of header; at most {}", length, kMostHeaderBytes));
  }
  if (length > bytes_->size() - kLengthBytes) {
    fail("file is truncated", fmt::format("{} bytes of header where {} are left", length,
                                          bytes_->size() - kLengthBytes));
  }
  // A copy, because another process may write to a mapped file.
  const std::string header(reinterpret_cast<const char*>(bytes_->data()) + kLengthBytes,
                           static_cast<size_t>(length));
  read(header, kLengthBytes + length);
}

void Safetensors::read(std::string_view header, uint64_t data_start) {
  const uint64_t room = bytes_->size() - data_start;
  const auto fail = [&](std::string_view what, std::string_view name, std::string_view rule = {}) {
    throw Error(kFormat, what, fmt::format("{} in {}", printable(name), printable(path_)), rule);
  };
  const Json json = parse_json(header, path_);
  if (!json.is_object()) fail("header isn't an object", "the header");
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    if (name.size() > kMostNameBytes) fail("name is too long", name);
    const auto member = [&](const char* key) -> const Json& {
      const auto found = entry.is_object() ? entry.find(key) : entry.end();
      if (!entry.is_object() || found == entry.end()) fail(fmt::format("lacks '{}'", key), name);
      return *found;
    };
    const auto integers = [&](const char* key, size_t most) {
      const Json& list = member(key);
      std::vector<uint64_t> values;
      if (!list.is_array() || list.size() > most) fail(fmt::format("'{}' is invalid", key), name);
      for (const Json& value : list) {
        if (!value.is_number_unsigned()) fail(fmt::format("'{}' is invalid", key), name);
        values.push_back(value.get<uint64_t>());
      }
      return values;
    };
    SafeTensor tensor;
    tensor.name = name;
    const Json& type = member("dtype");
    if (!type.is_string()) fail("'dtype' is invalid", name);
    tensor.type = type.get<std::string>();
    std::vector<int64_t> dims;
    uint64_t elems = 1, product = 1;  // zeros count as 1 in the product, as in Shape
    for (const uint64_t size : integers("shape", Shape::kMaxRank)) {
      if (size > kMostElems / product) fail("tensor is too large", name);
      elems *= size;
      product *= std::max<uint64_t>(size, 1);
      dims.push_back(static_cast<int64_t>(size));
    }
    tensor.shape = Shape(std::span<const int64_t>(dims));
    const std::vector<uint64_t> place = integers("data_offsets", 2);
    if (place.size() != 2 || place[0] > place[1]) fail("'data_offsets' is invalid", name);
    if (place[1] > room) {
      fail("tensor lies outside the file", name,
           fmt::format("it ends at byte {} of {} bytes of data", place[1], room));
    }
    tensor.offset = data_start + place[0];
    tensor.bytes = place[1] - place[0];
    const auto known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const Type& t) { return t.name == tensor.type; });
    if (known != std::end(kTypes)) {
      tensor.dtype = known->dtype;
      if (elems != tensor.bytes / known->bytes || tensor.bytes % known->bytes != 0) {
        fail("tensor's bytes don't fit its shape", name,
             fmt::format("{} bytes for {}", tensor.bytes, tensor.str()));
      }
    }
    tensors_.push_back(std::move(tensor));
  }
  // If tensors could overlap, a small file could describe a huge model.
  std::vector<const SafeTensor*> placed;
  for (const SafeTensor& tensor : tensors_) {
    if (tensor.bytes > 0) placed.push_back(&tensor);
  }
  std::sort(placed.begin(), placed.end(),
            [](const SafeTensor* a, const SafeTensor* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < placed.size(); ++i) {
    if (placed[i]->offset < placed[i - 1]->offset + placed[i - 1]->bytes) {
      fail("tensors overlap", fmt::format("{} and {}", placed[i - 1]->name, placed[i]->name));
    }
  }
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

std::shared_ptr<const Safetensors> Safetensors::parse(std::shared_ptr<const Bytes> bytes,
                                                      std::string name) {
  try {
    std::shared_ptr<const Safetensors> file(new Safetensors(bytes, std::move(name)));
    bytes->require_unchanged(kFormat);
    return file;
  } catch (const Error&) {
    bytes->require_unchanged(kFormat);  // reports the change instead of an error in the contents
    throw;
  }
}

std::shared_ptr<const Safetensors> Safetensors::open(const std::string& path) {
  return parse(MappedFile::open(kFormat, path), path);
}

const SafeTensor* Safetensors::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

Tensor Safetensors::part(const SafeTensor& tensor, int64_t first, const Shape& shape) const {
  if (!tensor.dtype) {
    throw Error(
        ErrorKind::not_implemented, kFormat, "tensor has a type that wick doesn't read",
        fmt::format("{} in {}, {}", printable(tensor.name), printable(path_), tensor.str()));
  }
  const auto element = static_cast<size_t>(bytes_of(*tensor.dtype, 1));
  const auto bytes = static_cast<size_t>(shape.elems()) * element;
  const std::byte* data = bytes_->data() + tensor.offset + static_cast<size_t>(first) * element;
  if (reinterpret_cast<uintptr_t>(data) % element == 0) {
    return Tensor(Storage::map(data, bytes, bytes_, bytes_->file_backed()), *tensor.dtype,
                  Layout::contiguous(shape));
  }
  Tensor copy = Tensor::empty(shape, *tensor.dtype);
  if (bytes > 0) std::memcpy(copy.mutable_view().data, data, bytes);
  return copy;
}

}  // namespace wick::io
