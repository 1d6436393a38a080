#include "emu/object/line_header.h"

#include <vector>

#include "emu/object/cursor.h"
#include "emu/object/limits.h"

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

void skip_form(Cursor& header, uint64_t form) {
  switch (form) {
    case kData1:
      return header.skip(1);
    case kData2:
      return header.skip(2);
    case kData4:
    case kStrp:
    case kLineStrp:
      return header.skip(4);
    case kData8:
      return header.skip(8);
    case kData16:
      return header.skip(16);
    case kUdata:
      header.number();
      return;
    case kString:
      return header.skip_string();
    case kBlock:
      return header.skip(header.number());
    default:
      bad_image(std::string(kWhat) + " has an unknown form");
  }
}

/// Skips the table of folders or of files: the format of its entries, their number, and the
/// entries.
void skip_entries(Cursor& header) {
  std::vector<uint64_t> forms(header.take<uint8_t>());
  for (uint64_t& form : forms) {
    header.number();  // content type
    form = header.number();
  }
  const uint64_t count = header.number();
  if (count > 0 && forms.empty()) bad_image(std::string(kWhat) + " has entries of nothing");
  if (count > kMostSourceFiles) {
    bad_image(std::string(kWhat) + " has more than " + std::to_string(kMostSourceFiles) + " files");
  }
  for (uint64_t i = 0; i < count; ++i) {
    for (const uint64_t form : forms) skip_form(header, form);
  }
}

}  // namespace

uint64_t check_line_header(Bytes section, uint64_t offset) {
  const uint64_t size = uint64_t{read<uint32_t>(section, offset, kWhat)} + 4;
  if (size >= 0xfffffff4) bad_image(std::string(kWhat) + " has 64 bits");
  Cursor header(part(section, offset, size, kWhat), 4, kWhat);
  if (header.take<uint16_t>() < 5) return size;  // older versions contain only strings and numbers
  header.skip(2 + 4);                            // sizes of addresses and of the header
  header.skip(5);                                // parameters of the line number program
  const auto operations = header.take<uint8_t>();
  header.skip(operations == 0 ? 0 : operations - 1);
  skip_entries(header);
  skip_entries(header);
  return size;
}

}  // namespace emu
