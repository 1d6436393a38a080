#include "emu/object/line_header.h"

#include <vector>

namespace emu {
namespace {

constexpr const char* kWhat = "a line table's header";

enum Form : uint64_t {  // the forms that compilers use in these headers
  kData2 = 0x05,
  kData4 = 0x06,
  kData8 = 0x07,
  kString = 0x08,
  kBlock = 0x09,
  kData1 = 0x0b,
  kStrp = 0x0e,
  kUdata = 0x0f,
  kData16 = 0x1e,
  kLineStrp = 0x1f,
};

/// Reads sequentially and throws at the end of the bytes.
class Header {
 public:
  Header(Bytes bytes, uint64_t at) : bytes_(bytes), at_(at) {}

  template <class T>
  T take() {
    const T value = read<T>(bytes_, at_, kWhat);
    at_ += sizeof(T);
    return value;
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    bad_image(std::string(kWhat) + " has too large a number");
  }
  void skip(uint64_t bytes) {
    part(bytes_, at_, bytes, kWhat);
    at_ += bytes;
  }
  void skip_form(uint64_t form);
  /// Skips the table of folders or of files: the format of its entries, their number, and the
  /// entries.
  void skip_entries();

 private:
  Bytes bytes_;
  uint64_t at_;
};

void Header::skip_form(uint64_t form) {
  switch (form) {
    case kData1:
      return skip(1);
    case kData2:
      return skip(2);
    case kData4:
    case kStrp:
    case kLineStrp:
      return skip(4);
    case kData8:
      return skip(8);
    case kData16:
      return skip(16);
    case kUdata:
      number();
      return;
    case kString:
      return skip(read_string(bytes_, at_, kWhat).size() + 1);
    case kBlock:
      return skip(number());
    default:
      bad_image(std::string(kWhat) + " has an unknown form");
  }
}

void Header::skip_entries() {
  std::vector<uint64_t> forms(take<uint8_t>());
  for (uint64_t& form : forms) {
    number();  // content type
    form = number();
  }
  const uint64_t count = number();
  if (count > 0 && forms.empty()) bad_image(std::string(kWhat) + " has entries of nothing");
  for (uint64_t i = 0; i < count; ++i) {
    for (const uint64_t form : forms) skip_form(form);
  }
}

void check(Bytes section, uint64_t offset) {
  Header header(section, offset);
  if (header.take<uint32_t>() >= 0xfffffff0) bad_image(std::string(kWhat) + " has 64 bits");
  if (header.take<uint16_t>() < 5) return;  // older versions contain only strings and numbers
  header.skip(2 + 4);                       // sizes of addresses and of the header
  header.skip(5);                           // parameters of the line number program
  const auto operations = header.take<uint8_t>();
  header.skip(operations == 0 ? 0 : operations - 1);
  header.skip_entries();
  header.skip_entries();
}

}  // namespace

bool sound_line_header(Bytes section, uint64_t offset) {
  try {
    check(section, offset);
    return true;
  } catch (const ObjectError&) {
    return false;
  }
}

}  // namespace emu
