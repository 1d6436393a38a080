#pragma once

// Reads DWARF's numbers one after the other.

#include "emu/object/bytes.h"

namespace emu {

/// Throws ObjectError at the end of the bytes. `what` names them in its text.
class Cursor {
 public:
  Cursor(Bytes bytes, uint64_t at, const char* what) : bytes_(bytes), at_(at), what_(what) {}

  bool done() const { return at_ >= bytes_.size(); }
  uint64_t at() const { return at_; }

  template <class T>
  T take() {
    const T value = read<T>(bytes_, at_, what_);
    at_ += sizeof(T);
    return value;
  }
  /// Takes a little-endian number of some bytes, at most eight.
  uint64_t fixed(uint64_t size) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < size; ++i) value |= uint64_t{take<uint8_t>()} << (8 * i);
    return value;
  }
  /// Takes a number in ULEB128. A number in SLEB128 is taken as if it were unsigned.
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    bad_image(std::string(what_) + " has too large a number");
  }
  void skip(uint64_t bytes) {
    part(bytes_, at_, bytes, what_);
    at_ += bytes;
  }
  void skip_string() { skip(read_string(bytes_, at_, what_).size() + 1); }

 private:
  Bytes bytes_;
  uint64_t at_;
  const char* what_;
};

}  // namespace emu
