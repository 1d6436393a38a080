// Parses the header of a GGUF file. The contents aren't trusted: each count, length, offset, type
// and alignment is checked against the file's size before it is used or memory is allocated for it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/ggml_type.h"
#include "wick/io/gguf.h"

namespace wick::io {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kMinVersion = 2, kMaxVersion = 3;
constexpr uint32_t kDefaultAlignment = 32;
// The format requires a multiple of 8, which also allows reading f64 in place.
constexpr uint32_t kMinAlignment = 8;
constexpr uint32_t kMaxRank = 4;
constexpr int kMaxNesting = 4;
constexpr uint64_t kMaxNameBytes = 65535;
constexpr uint64_t kMaxElems = uint64_t{1} << 62;  // Shape's limit
// The minimum bytes of an entry, which limit the number of entries.
constexpr uint64_t kMinEntryBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;
// Tables are reserved up to this size; they grow further only as entries are parsed.
constexpr uint64_t kMaxReserve = 1024;

constexpr uint32_t swapped(uint32_t v) {
  return v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff0000) | v << 24;
}

}  // namespace

class GgufParser {
 public:
  /// `header`: the file's first bytes, which contain at least the whole header.
  GgufParser(std::shared_ptr<const Bytes> bytes, std::shared_ptr<const Bytes> header,
             std::string name)
      : file_(new Gguf()) {
    data_ = header->span();
    file_bytes_ = bytes->size();
    file_->bytes_ = std::move(bytes);
    file_->header_ = std::move(header);
    file_->path_ = std::move(name);
  }

  std::shared_ptr<const Gguf> run() {
    read_magic();
    const auto tensor_count = read<uint64_t>("the tensor count");
    const auto key_count = read<uint64_t>("the metadata count");
    check_count(key_count, kMinEntryBytes, "metadata entries");
    read_metadata(key_count);
    check_count(tensor_count, kMinTensorBytes, "tensors");
    read_alignment();
    read_tensors(tensor_count);
    place_tensors();
    return std::move(file_);
  }

  /// Returns the header's length. Reads each byte once, so that a concurrent change can't break it.
  size_t measure_header() {
    read_magic();
    const auto tensor_count = read<uint64_t>("the tensor count");
    const auto key_count = read<uint64_t>("the metadata count");
    check_count(key_count, kMinEntryBytes, "metadata entries");
    read_metadata(key_count);
    check_count(tensor_count, kMinTensorBytes, "tensors");
    read_tensors(tensor_count);
    return pos_;
  }

 private:
  uint64_t left() const { return data_.size() - pos_; }

  [[noreturn]] void fail(std::string_view what, std::string_view where,
                         std::string_view rule = {}) {
    throw Error("gguf", what, fmt::format("{}, {}", printable(file_->path_), where), rule);
  }

  /// Throws an error of kind `file`: bytes are missing.
  [[noreturn]] void too_short(std::string_view what, std::string_view where,
                              std::string_view rule) {
    throw Error(ErrorKind::file, "gguf", what,
                fmt::format("{}, {}", printable(file_->path_), where), rule);
  }

  [[noreturn]] void truncated(std::string_view what, uint64_t need) {
    too_short("file is truncated or corrupted", fmt::format("{} at byte {}", what, pos_),
              fmt::format("needs {} bytes where {} are left", need, left()));
  }

  template <class T>
  T read(std::string_view what) {
    if (left() < sizeof(T)) truncated(what, sizeof(T));
    T value;
    std::memcpy(&value, data_.data() + pos_, sizeof(T));
    pos_ += sizeof(T);
    return value;
  }

  void skip(uint64_t bytes, std::string_view what) {
    if (bytes > left()) truncated(what, bytes);
    pos_ += static_cast<size_t>(bytes);
  }

  std::string_view read_name(std::string_view what) {
    const auto length = read<uint64_t>(what);
    if (length > kMaxNameBytes && length <= left()) {
      fail("name is too long", fmt::format("{} at byte {}, {} bytes", what, pos_, length),
           fmt::format("at most {}", kMaxNameBytes));
    }
    const size_t start = pos_;
    skip(length, what);
    return {reinterpret_cast<const char*>(data_.data() + start), static_cast<size_t>(length)};
  }

  void check_count(uint64_t count, uint64_t least_bytes, std::string_view what) {
    if (count <= left() / least_bytes) return;
    too_short("file is truncated or corrupted", fmt::format("{} {} at byte {}", count, what, pos_),
              fmt::format("{} bytes are left, each takes at least {}", left(), least_bytes));
  }

  void read_magic() {
    const size_t there = std::min(data_.size(), kMagic.size());
    if (there > 0 && std::memcmp(data_.data(), kMagic.data(), there) != 0) {
      throw Error("gguf", "not a GGUF file", printable(file_->path_),
                  "such a file starts with \"GGUF\"");
    }
    skip(kMagic.size(), "the magic");
    const auto version = read<uint32_t>("the version");
    if (const uint32_t other = swapped(version); other >= 1 && other <= kMaxVersion) {
      throw Error("gguf", "file is big-endian", printable(file_->path_),
                  "only little-endian files are read");
    }
    if (version < kMinVersion || version > kMaxVersion) {
      fail("version isn't supported", fmt::format("version {}", version), "need 2 or 3");
    }
    file_->version_ = version;
  }

  void read_metadata(uint64_t count) {
    file_->metadata_.reserve(static_cast<size_t>(std::min(count, kMaxReserve)));
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view key = read_name("a metadata key");
      key_ = key;
      const GgufType type = read_type();
      const size_t start = pos_;
      GgufValue value(type, {});
      if (type == GgufType::array) {
        std::tie(value.element_type_, value.count_) = skip_array(1);
      } else {
        skip_values(type, 1);
      }
      value.payload_ = data_.subspan(start, pos_ - start);
      if (!file_->add(GgufEntry{key, value})) fail("key appears twice", printable(key));
    }
  }

  std::string of_key() const { return fmt::format("the value of {}", printable(key_)); }

  GgufType read_type() {
    if (left() < sizeof(uint32_t)) truncated(of_key(), sizeof(uint32_t));
    const auto type = read<uint32_t>("a type");
    if (type >= kGgufTypeCount) {
      fail("value type is unknown", fmt::format("{}, type {}", printable(key_), type),
           fmt::format("types are 0..{}", kGgufTypeCount - 1));
    }
    return static_cast<GgufType>(type);
  }

  /// Skips `count` values that aren't arrays.
  void skip_values(GgufType type, uint64_t count) {
    if (const auto bytes = static_cast<uint64_t>(gguf_type_bytes(type))) {
      if (count > left() / bytes) truncated_values(count, bytes);
      if (type == GgufType::boolean) check_bools(count);
      pos_ += static_cast<size_t>(count * bytes);
      return;
    }
    // Only the lengths of strings are read, which takes a millisecond for tens of thousands of
    // tokens.
    if (count > left() / sizeof(uint64_t)) truncated_values(count, sizeof(uint64_t));
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t length = 0;
      if (left() < sizeof(length)) truncated(of_key(), sizeof(length));
      std::memcpy(&length, data_.data() + pos_, sizeof(length));
      pos_ += sizeof(length);
      if (length > left()) truncated(of_key(), length);
      pos_ += static_cast<size_t>(length);
    }
  }

  [[noreturn]] void truncated_values(uint64_t count, uint64_t least_bytes) {
    too_short("file is truncated or corrupted",
              fmt::format("{}, {} elements at byte {}", of_key(), count, pos_),
              fmt::format("{} bytes are left, each takes at least {}", left(), least_bytes));
  }

  void check_bools(uint64_t count) {
    for (const std::byte b : data_.subspan(pos_, static_cast<size_t>(count))) {
      if (b > std::byte{1}) {
        fail("bool is neither 0 nor 1",
             fmt::format("{}, byte {}", of_key(), std::to_integer<int>(b)));
      }
    }
  }

  /// Skips an array; returns its element type and count.
  std::pair<GgufType, uint64_t> skip_array(int depth) {
    const GgufType element = read_type();
    if (left() < sizeof(uint64_t)) truncated(of_key(), sizeof(uint64_t));
    const auto count = read<uint64_t>("an array's length");
    if (element != GgufType::array) {
      skip_values(element, count);
      return {element, count};
    }
    if (depth == kMaxNesting) {
      fail("arrays are nested too deep", of_key(), fmt::format("at most {} levels", kMaxNesting));
    }
    constexpr uint64_t kHeaderBytes = sizeof(uint32_t) + sizeof(uint64_t);
    if (count > left() / kHeaderBytes) truncated_values(count, kHeaderBytes);
    for (uint64_t i = 0; i < count; ++i) skip_array(depth + 1);
    return {element, count};
  }

  void read_alignment() {
    const uint32_t alignment = file_->get_u32("general.alignment", kDefaultAlignment);
    if (alignment < kMinAlignment || (alignment & (alignment - 1)) != 0) {
      fail("alignment is invalid", fmt::format("general.alignment = {}", alignment),
           fmt::format("need a power of two >= {}", kMinAlignment));
    }
    file_->alignment_ = alignment;
  }

  void read_tensors(uint64_t count) {
    file_->tensors_.reserve(static_cast<size_t>(std::min(count, kMaxReserve)));
    for (uint64_t i = 0; i < count; ++i) {
      GgufTensor tensor;
      tensor.name = read_name("a tensor's name");
      const auto rank = read<uint32_t>("a tensor's rank");
      if (rank > kMaxRank) {
        fail("tensor has too many dimensions",
             fmt::format("{}, rank {}", printable(tensor.name), rank),
             fmt::format("at most {}", kMaxRank));
      }
      std::array<int64_t, kMaxRank> dims{};
      read_dims(tensor.name, std::span(dims).first(rank));
      tensor.shape = Shape(std::span<const int64_t>(dims).first(rank));
      tensor.type = read<uint32_t>("a tensor's type");
      tensor.offset = read<uint64_t>("a tensor's offset");
      measure(tensor);
      if (!file_->add(tensor)) fail("tensor appears twice", printable(tensor.name));
    }
  }

  /// Reads sizes. Files list the innermost dim first, a Shape lists it last.
  void read_dims(std::string_view name, std::span<int64_t> dims) {
    uint64_t product = 1;  // zeros count as 1, as in Shape
    for (size_t d = dims.size(); d-- > 0;) {
      const auto size = read<uint64_t>("a tensor's dimensions");
      if (size > 0 && product > kMaxElems / size) {
        fail("tensor is too large", fmt::format("{}, dimension {} is {}", printable(name), d, size),
             "at most 2^62 elements");
      }
      product *= std::max<uint64_t>(size, 1);
      dims[d] = static_cast<int64_t>(size);
    }
  }

  /// Sets dtype and bytes.
  void measure(GgufTensor& tensor) {
    const GgmlType* type = find_ggml_type(tensor.type);
    if (type == nullptr) return;  // can be listed, but not read
    tensor.dtype = type->dtype;
    const int64_t row = tensor.shape.rank() > 0 ? tensor.shape.back() : 1;
    if (row % type->block_elems != 0) {
      fail("tensor's rows aren't whole blocks",
           fmt::format("{} {}", printable(tensor.name), tensor.str()),
           fmt::format("the last size must be a multiple of {}", type->block_elems));
    }
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(tensor.shape.elems() / type->block_elems),
                               static_cast<uint64_t>(type->block_bytes), &bytes) ||
        bytes > file_bytes_) {
      too_short("tensor doesn't fit in the file",
                fmt::format("{} {}", printable(tensor.name), tensor.str()),
                fmt::format("the file has {} bytes", file_bytes_));
    }
    tensor.bytes = bytes;
  }

  /// Converts offsets to file positions and checks that tensors don't overlap.
  void place_tensors() {
    const uint64_t alignment = file_->alignment_;
    const uint64_t base = (uint64_t{pos_} + alignment - 1) / alignment * alignment;
    const uint64_t room = file_bytes_ > base ? file_bytes_ - base : 0;
    std::vector<const GgufTensor*> placed;
    for (GgufTensor& tensor : file_->tensors_) {
      if (tensor.offset % alignment != 0) {
        fail("tensor isn't aligned",
             fmt::format("{}, offset {}", printable(tensor.name), tensor.offset),
             fmt::format("need a multiple of {}", alignment));
      }
      if (tensor.offset > room || tensor.bytes > room - tensor.offset) {
        too_short("tensor lies outside the file",
                  fmt::format("{} {}, {} bytes at offset {}", printable(tensor.name), tensor.str(),
                              tensor.bytes, tensor.offset),
                  fmt::format("{} bytes of data are there", room));
      }
      tensor.offset += base;
      if (tensor.bytes > 0) placed.push_back(&tensor);
    }
    // If tensors could overlap, a small file could describe a huge model.
    std::sort(placed.begin(), placed.end(),
              [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < placed.size(); ++i) {
      if (placed[i]->offset < placed[i - 1]->offset + placed[i - 1]->bytes) {
        fail("tensors overlap",
             fmt::format("{} and {}", printable(placed[i - 1]->name), printable(placed[i]->name)));
      }
    }
  }

  std::shared_ptr<Gguf> file_;
  std::span<const std::byte> data_;  // the header; what follows it isn't read
  uint64_t file_bytes_ = 0;
  size_t pos_ = 0;
  std::string_view key_;  // the key whose value is being read, for error messages
};

std::shared_ptr<const Gguf> Gguf::parse(std::shared_ptr<const Bytes> bytes, std::string name) {
  if (!bytes->file_backed()) return GgufParser(bytes, bytes, std::move(name)).run();
  // Another process may write to a mapped file between a check and the use of the checked value.
  // Therefore the first pass only measures the header, and the second pass parses a copy of it.
  try {
    const size_t header_bytes = GgufParser(bytes, bytes, name).measure_header();
    const auto header = Bytes::copy_of(bytes->span().first(header_bytes));
    bytes->require_unchanged("gguf");
    return GgufParser(bytes, header, name).run();
  } catch (const Error&) {
    bytes->require_unchanged(
        "gguf");  // reports the change instead of an error in the changed contents
    throw;
  }
}

}  // namespace wick::io
