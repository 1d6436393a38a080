// Reads the metadata of AMD's code objects: a MessagePack map in a note of the ELF file.

#include "wick/backend/gpu/custom/code_metadata.h"

#include <algorithm>

#include "wick/backend/gpu/custom/object_file.h"

namespace wick::gpu {
namespace {

enum class Kind { map, array, text, number, other };

/// A MessagePack value. count: of a map's pairs or an array's elements, which follow; a number's
/// value; or the bytes of a text or another value.
struct Value {
  Kind kind = Kind::other;
  uint64_t count = 0;
  std::string_view text;
};

/// Thrown by Reader if the bytes aren't MessagePack.
struct Damaged {};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  /// The next value. The contents of maps and arrays are the values after it.
  Value next() {
    const auto head = static_cast<uint8_t>(take(1)[0]);
    if (head < 0x80) return {Kind::number, head, {}};
    if (head < 0x90) return {Kind::map, head & 15u, {}};
    if (head < 0xa0) return {Kind::array, head & 15u, {}};
    if (head < 0xc0) return text(head & 31u);
    if (head >= 0xe0) return {};  // a negative number of one byte
    switch (head) {
      case 0xc4:
      case 0xc5:
      case 0xc6:  // binary
        return bytes(number(1u << (head - 0xc4)));
      case 0xc7:
      case 0xc8:
      case 0xc9:  // an extension, with a byte for its type
        return bytes(number(1u << (head - 0xc7)) + 1);
      case 0xca:
      case 0xcb:  // floats
        return bytes(4u << (head - 0xca));
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return {Kind::number, number(1u << (head - 0xcc)), {}};
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:  // signed numbers
        return bytes(1u << (head - 0xd0));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:  // extensions of fixed sizes
        return bytes((1u << (head - 0xd4)) + 1);
      case 0xd9:
      case 0xda:
      case 0xdb:
        return text(number(1u << (head - 0xd9)));
      case 0xdc:
      case 0xdd:
        return {Kind::array, number(2u << (head - 0xdc)), {}};
      case 0xde:
      case 0xdf:
        return {Kind::map, number(2u << (head - 0xde)), {}};
      default:  // nil and booleans
        return {};
    }
  }

  /// The number of values behind a map or array, which next() has returned.
  uint64_t count(const Value& value, Kind kind) {
    if (value.kind != kind || value.count > rest_.size()) throw Damaged();
    return value.count;
  }

  /// Skips the next value and its contents.
  void skip() {
    for (uint64_t left = 1; left > 0; --left) {
      const Value value = next();
      if (value.kind == Kind::array) left += count(value, Kind::array);
      if (value.kind == Kind::map) left += 2 * count(value, Kind::map);
    }
  }

  /// Calls use(key) for each pair of the next value, a map. use() reads the pair's value.
  template <class Use>
  void each_pair(const Use& use) {
    for (uint64_t left = count(next(), Kind::map); left > 0; --left) {
      const Value key = next();
      if (key.kind != Kind::text) throw Damaged();
      use(key.text);
    }
  }

  /// Calls use() for each element of the next value, an array. use() reads the element.
  template <class Use>
  void each_element(const Use& use) {
    for (uint64_t left = count(next(), Kind::array); left > 0; --left) use();
  }

 private:
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) throw Damaged();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  /// A big-endian number.
  uint64_t number(uint64_t size) {
    uint64_t value = 0;
    for (const char byte : take(size)) value = value << 8 | static_cast<uint8_t>(byte);
    return value;
  }
  Value text(uint64_t size) { return {Kind::text, size, take(size)}; }
  Value bytes(uint64_t size) { return {Kind::other, size, take(size)}; }

  std::string_view rest_;
};

/// The end of the argument that the next value describes; 0 if it is hidden.
uint64_t argument_end(Reader& reader) {
  uint64_t offset = 0, size = 0;
  bool hidden = false;
  reader.each_pair([&](std::string_view key) {
    if (key == ".offset") {
      offset = reader.next().count;
    } else if (key == ".size") {
      size = reader.next().count;
    } else if (key == ".value_kind") {
      hidden = reader.next().text.starts_with("hidden_");
    } else {
      reader.skip();
    }
  });
  constexpr uint64_t kMost = uint64_t{1} << 32;
  if (offset > kMost || size > kMost) throw Damaged();
  return hidden ? 0 : offset + size;
}

}  // namespace

std::unordered_map<std::string, int64_t> kernel_argument_bytes(std::string_view bytes) {
  std::unordered_map<std::string, int64_t> found;
  const std::string_view metadata = amd_metadata(bytes);
  if (metadata.empty()) return found;
  Reader reader(metadata);
  const auto add_kernel = [&] {
    std::string name;
    uint64_t end = 0;
    reader.each_pair([&](std::string_view key) {
      if (key == ".name") {
        name = reader.next().text;
      } else if (key == ".args") {
        reader.each_element([&] { end = std::max(end, argument_end(reader)); });
      } else {
        reader.skip();
      }
    });
    found.emplace(std::move(name), static_cast<int64_t>(end));
  };
  try {
    reader.each_pair([&](std::string_view key) {
      if (key == "amdhsa.kernels") {
        reader.each_element(add_kernel);
      } else {
        reader.skip();
      }
    });
  } catch (const Damaged&) {
    found.clear();
  }
  return found;
}

}  // namespace wick::gpu
