#include "emu/object/msgpack.h"

namespace emu::msgpack {
namespace {

[[noreturn]] void bad(const char* what) {
  throw ObjectError(ObjectError::Kind::kernel, std::string("metadata: ") + what);
}

/// Reads one value without those inside it.
class Parser {
 public:
  explicit Parser(Bytes& bytes) : bytes_(bytes) {}

  Value head() {
    const auto tag = static_cast<uint8_t>(number(1));
    if (tag < 0x80) return integer(tag);
    if (tag < 0x90) return map(tag & 15);
    if (tag < 0xa0) return array(tag & 15);
    if (tag < 0xc0) return string(tag & 31);
    if (tag >= 0xe0) return integer(static_cast<uint64_t>(int64_t{static_cast<int8_t>(tag)}));
    return tagged(tag);
  }

 private:
  Value tagged(uint8_t tag) {
    switch (tag) {
      case 0xc0:
        return {};
      case 0xc2:
      case 0xc3:
        return boolean(tag == 0xc3);
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return skip(number(1 << (tag - 0xc4)));
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return skip(number(1 << (tag - 0xc7)) + 1);
      case 0xca:
        return skip(4);
      case 0xcb:
        return skip(8);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return integer(number(1 << (tag - 0xcc)));
      case 0xd0:
        return integer(extend(8));
      case 0xd1:
        return integer(extend(16));
      case 0xd2:
        return integer(extend(32));
      case 0xd3:
        return integer(number(8));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return skip((uint64_t{1} << (tag - 0xd4)) + 1);
      case 0xd9:
      case 0xda:
      case 0xdb:
        return string(number(1 << (tag - 0xd9)));
      case 0xdc:
      case 0xdd:
        return array(number(2 << (tag - 0xdc)));
      case 0xde:
      case 0xdf:
        return map(number(2 << (tag - 0xde)));
      default:
        bad("a byte that starts no value");
    }
  }

  static Value integer(uint64_t value) {
    Value result;
    result.kind = Value::Kind::integer;
    result.integer = value;
    return result;
  }

  static Value boolean(bool value) {
    Value result = integer(value ? 1 : 0);
    result.kind = Value::Kind::boolean;
    return result;
  }

  Value string(uint64_t size) {
    const Bytes text = take(size);
    Value result;
    result.kind = Value::Kind::string;
    result.string = {reinterpret_cast<const char*>(text.data()), text.size()};
    return result;
  }

  Value skip(uint64_t size) {
    take(size);
    Value result;
    result.kind = Value::Kind::other;
    return result;
  }

  /// `count` has at most 32 bits.
  Value array(uint64_t count) { return container(Value::Kind::array, count); }
  Value map(uint64_t count) { return container(Value::Kind::map, 2 * count); }

  static Value container(Value::Kind kind, uint64_t count) {
    Value result;
    result.kind = kind;
    result.count = count;
    return result;
  }

  Bytes take(uint64_t size) {
    if (size > bytes_.size()) bad("cut short");
    const Bytes taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }

  uint64_t number(int size) {
    uint64_t value = 0;
    for (const uint8_t byte : take(static_cast<uint64_t>(size))) value = value << 8 | byte;
    return value;
  }

  uint64_t extend(int bits) {
    const uint64_t value = number(bits / 8);
    const uint64_t sign = uint64_t{1} << (bits - 1);
    return (value ^ sign) - sign;
  }

  Bytes& bytes_;
};

/// Removes `count` values from the bytes. A loop, since recursion would need stack for each level.
void skip(Bytes& bytes, uint64_t count) {
  while (count > 0) {
    // Each value has at least one byte.
    if (count > bytes.size()) bad("an array or map with more values than bytes");
    count += Parser(bytes).head().count - 1;
  }
}

}  // namespace

std::optional<uint64_t> Value::number() const {
  if (kind != Kind::integer && kind != Kind::boolean) return std::nullopt;
  return integer;
}

Value take(Bytes& bytes) {
  Value value = Parser(bytes).head();
  const Bytes inside = bytes;
  skip(bytes, value.count);
  value.inside = inside.first(inside.size() - bytes.size());
  return value;
}

Value parse(Bytes bytes) { return take(bytes); }

}  // namespace emu::msgpack
