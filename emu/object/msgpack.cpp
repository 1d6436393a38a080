#include "emu/object/msgpack.h"

namespace emu::msgpack {
namespace {

constexpr int kDepth = 32;

[[noreturn]] void bad(const char* what) {
  throw ObjectError(ObjectError::Kind::kernel, std::string("metadata: ") + what);
}

class Parser {
 public:
  explicit Parser(Bytes bytes) : bytes_(bytes) {}

  Value value(int depth) {
    if (depth > kDepth) bad("nested too deeply");
    const auto tag = static_cast<uint8_t>(number(1));
    if (tag < 0x80) return integer(tag);
    if (tag < 0x90) return map(tag & 15, depth);
    if (tag < 0xa0) return array(tag & 15, depth);
    if (tag < 0xc0) return string(tag & 31);
    if (tag >= 0xe0) return integer(static_cast<uint64_t>(int64_t{static_cast<int8_t>(tag)}));
    return tagged(tag, depth);
  }

 private:
  Value tagged(uint8_t tag, int depth) {
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
        return array(number(2 << (tag - 0xdc)), depth);
      case 0xde:
      case 0xdf:
        return map(number(2 << (tag - 0xde)), depth);
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
    result.string.assign(text.begin(), text.end());
    return result;
  }

  Value skip(uint64_t size) {
    take(size);
    Value result;
    result.kind = Value::Kind::other;
    return result;
  }

  Value array(uint64_t count, int depth) {
    // Each element has at least one byte.
    if (count > bytes_.size()) bad("an array longer than the file");
    Value result;
    result.kind = Value::Kind::array;
    for (uint64_t i = 0; i < count; ++i) result.array.push_back(value(depth + 1));
    return result;
  }

  Value map(uint64_t count, int depth) {
    if (count > bytes_.size() / 2) bad("a map longer than the file");
    Value result;
    result.kind = Value::Kind::map;
    for (uint64_t i = 0; i < count; ++i) {
      Value key = value(depth + 1);
      Value entry = value(depth + 1);
      if (key.kind == Value::Kind::string) {
        result.keys.push_back(std::move(key.string));
        result.array.push_back(std::move(entry));
      }
    }
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

  Bytes bytes_;
};

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &array[i];
  }
  return nullptr;
}

uint64_t Value::integer_or(std::string_view key, uint64_t otherwise) const {
  const Value* value = find(key);
  const bool number =
      value != nullptr && (value->kind == Kind::integer || value->kind == Kind::boolean);
  return number ? value->integer : otherwise;
}

std::string Value::string_or(std::string_view key, std::string otherwise) const {
  const Value* value = find(key);
  return value != nullptr && value->kind == Kind::string ? value->string : std::move(otherwise);
}

Value parse(Bytes bytes) { return Parser(bytes).value(0); }

}  // namespace emu::msgpack
