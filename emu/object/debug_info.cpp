#include "emu/object/debug_info.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "emu/object/cursor.h"
#include "emu/object/limits.h"
#include "emu/object/line_header.h"

namespace emu {
namespace {

constexpr const char* kWhat = "debug information";

[[noreturn]] void bad(const std::string& what) { bad_image(std::string(kWhat) + ": " + what); }

enum Attribute : uint64_t {
  kLineTable = 0x10,  // DW_AT_stmt_list
  kRanges = 0x55,
  kListsBase = 0x74,  // DW_AT_rnglists_base
  kOtherFile = 0x76,  // DW_AT_dwo_name
  kOldOtherFile = 0x2130,
};

enum Form : uint64_t {
  kAddress = 0x01,
  kBlock2 = 0x03,
  kBlock4 = 0x04,
  kString = 0x08,
  kBlock = 0x09,
  kBlock1 = 0x0a,
  kRefAddress = 0x10,
  kExpression = 0x18,
  kImplicit = 0x21,
  kRangeList = 0x23,  // an index: DW_FORM_rnglistx
};

constexpr int kLeb = -1, kOther = -2, kUnknown = -3;
/// The size of a value by its form: a number of bytes, or one of the constants above. The values of
/// DW_FORM_indirect, 0x16, name their own forms; LLVM's reader misbehaves for them.
constexpr int kSizes[] = {
    kUnknown, kOther, kUnknown, kOther, kOther, 2, 4,  8, kOther, kOther, kOther,   1,
    1,        kLeb,   4,        kLeb,   kOther, 1, 2,  4, 8,      kLeb,   kUnknown, 4,
    kOther,   0,      kLeb,     kLeb,   4,      4, 16, 4, 8,      0,      kLeb,     kLeb,
    8,        1,      2,        3,      4,      1, 2,  3, 4,
};

static_assert(std::size(kSizes) == 0x2d);

struct Declaration {
  bool children = false;
  std::vector<std::pair<uint64_t, uint64_t>> attributes;  // and their forms
};

/// A table of declarations, whose codes are successive.
struct Declarations {
  uint64_t first = 0;
  std::vector<Declaration> all;

  const Declaration& find(uint64_t code) const {
    if (code < first || code - first >= all.size()) bad("an entry without a declaration");
    return all[code - first];
  }
};

/// What the values of a unit depend on.
struct Unit {
  uint16_t version = 0;
  uint8_t address_bytes = 0;
  std::optional<uint64_t> lists_base;
};

class Checker {
 public:
  explicit Checker(const DebugSections& sections)
      : sections_(sections),
        abbreviations_left_(sections.abbreviations.size()),
        lines_left_(sections.lines.size()),
        ranges_left_(kMostRangeReads * (sections.ranges.size() + sections.range_lists.size())) {}

  void check() {
    check_units(sections_.info, false);
    check_units(sections_.types, true);
  }

 private:
  void check_units(Bytes section, bool of_types) {
    Cursor units(section, 0, kWhat);
    while (!units.done()) {
      const auto size = units.take<uint32_t>();
      if (size >= 0xfffffff0) bad("a unit of 64 bits");
      check_unit(part(section, units.at(), size, kWhat), of_types);
      units.skip(size);
    }
  }

  void check_unit(Bytes bytes, bool of_types) {
    Cursor values(bytes, 0, kWhat);
    Unit unit;
    unit.version = values.take<uint16_t>();
    if (unit.version < 2 || unit.version > 5) bad("an unknown version");
    constexpr uint8_t kCompile = 1, kType = 2, kPartial = 3;
    if (unit.version == 5) {
      const auto type = values.take<uint8_t>();
      if (type != kCompile && type != kType && type != kPartial) bad("a unit of another file");
      of_types = type == kType;
      unit.address_bytes = values.take<uint8_t>();
    }
    const Declarations& declarations = declarations_at(values.take<uint32_t>());
    if (unit.version < 5) unit.address_bytes = values.take<uint8_t>();
    if (unit.address_bytes == 0 || unit.address_bytes > 8) bad("addresses of an unknown size");
    if (of_types) values.skip(8 + 4);  // the type's signature and place
    check_entries(values, declarations, unit);
  }

  void check_entries(Cursor& values, const Declarations& declarations, Unit& unit) {
    uint64_t depth = 0;
    while (!values.done()) {
      const uint64_t code = values.number();
      if (code == 0) {  // the end of a list of children, or padding
        depth -= depth == 0 ? 0 : 1;
        continue;
      }
      const Declaration& declaration = declarations.find(code);
      check_entry(values, declaration, unit);
      depth += declaration.children ? 1 : 0;
      if (depth > kMostNesting) {
        bad("more than " + std::to_string(kMostNesting) + " entries within each other");
      }
    }
  }

  void check_entry(Cursor& values, const Declaration& declaration, Unit& unit) {
    std::optional<uint64_t> ranges;
    bool is_index = false;
    for (const auto& [attribute, form] : declaration.attributes) {
      const uint64_t value = take(values, form, unit);
      if (attribute == kOtherFile || attribute == kOldOtherFile) bad("a unit of another file");
      if (attribute == kListsBase) unit.lists_base = value;
      if (attribute == kLineTable) check_lines(value);
      if (attribute != kRanges) continue;
      ranges = value;
      is_index = form == kRangeList;
    }
    if (ranges) check_ranges(*ranges, is_index, unit);
  }

  /// Takes a value and returns it if it is a number.
  static uint64_t take(Cursor& values, uint64_t form, const Unit& unit) {
    const int size = kSizes[form];
    if (size == kLeb) return values.number();
    if (size == 16) return values.skip(16), 0;
    if (size >= 0) return values.fixed(static_cast<uint64_t>(size));
    switch (form) {
      case kAddress:
        return values.fixed(unit.address_bytes);
      case kRefAddress:
        return values.fixed(unit.version == 2 ? unit.address_bytes : 4);
      case kString:
        return values.skip_string(), 0;
      case kBlock1:
        return values.skip(values.take<uint8_t>()), 0;
      case kBlock2:
        return values.skip(values.take<uint16_t>()), 0;
      case kBlock4:
        return values.skip(values.take<uint32_t>()), 0;
      default:
        return values.skip(values.number()), 0;  // kBlock, kExpression
    }
  }

  const Declarations& declarations_at(uint64_t offset) {
    const auto [found, is_new] = declarations_.try_emplace(offset);
    Declarations& table = found->second;
    if (!is_new) return table;
    Cursor cursor(sections_.abbreviations, offset, kWhat);
    while (const uint64_t code = cursor.number()) {
      if (table.all.empty()) table.first = code;
      // For others, LLVM's reader goes through the whole table.
      if (code - table.first != table.all.size()) bad("declarations with codes in no order");
      cursor.number();  // tag
      Declaration& declaration = table.all.emplace_back();
      declaration.children = cursor.take<uint8_t>() != 0;
      read_attributes(cursor, declaration);
      if (cursor.at() - offset > abbreviations_left_) bad("tables of declarations that overlap");
    }
    abbreviations_left_ -= std::min(abbreviations_left_, cursor.at() - offset);
    return table;
  }

  static void read_attributes(Cursor& cursor, Declaration& declaration) {
    while (true) {
      const uint64_t attribute = cursor.number(), form = cursor.number();
      if (attribute == 0 && form == 0) return;
      if (form >= std::size(kSizes) || kSizes[form] == kUnknown) bad("an unknown form");
      if (form == kImplicit) cursor.number();
      if (declaration.attributes.size() == kMostAttributes) {
        bad("an entry of more than " + std::to_string(kMostAttributes) + " attributes");
      }
      declaration.attributes.emplace_back(attribute, form);
    }
  }

  void check_lines(uint64_t offset) {
    if (!line_tables_.insert(offset).second) return;
    const uint64_t size = check_line_header(sections_.lines, offset);
    if (size > lines_left_) bad("line tables that overlap");
    lines_left_ -= size;
  }

  void check_ranges(uint64_t value, bool is_index, const Unit& unit) {
    const Bytes section = unit.version < 5 ? sections_.ranges : sections_.range_lists;
    uint64_t offset = value;
    if (is_index) {
      if (!unit.lists_base || value > section.size()) bad("an index of no list of ranges");
      const uint64_t place = *unit.lists_base + 4 * value;
      offset = *unit.lists_base + read<uint32_t>(section, place, kWhat);
    }
    Cursor list(section, offset, kWhat);
    while (unit.version < 5 ? skip_pair(list, unit) : skip_range(list, unit)) {
      if (list.at() - offset > ranges_left_) bad("lists of ranges that are used too often");
    }
    ranges_left_ -= std::min(ranges_left_, list.at() - offset);
  }

  /// Returns false at the end of a list of DWARF 4.
  static bool skip_pair(Cursor& list, const Unit& unit) {
    const uint64_t first = list.fixed(unit.address_bytes), second = list.fixed(unit.address_bytes);
    return first != 0 || second != 0;
  }

  /// Returns false at the end of a list of DWARF 5.
  static bool skip_range(Cursor& list, const Unit& unit) {
    switch (list.take<uint8_t>()) {
      case 0:
        return false;
      case 1:  // DW_RLE_base_addressx
        list.number();
        return true;
      case 2:  // startx_endx, startx_length and offset_pair
      case 3:
      case 4:
        list.number();
        list.number();
        return true;
      case 5:  // base_address
        list.skip(unit.address_bytes);
        return true;
      case 6:  // start_end
        list.skip(uint64_t{2} * unit.address_bytes);
        return true;
      case 7:  // start_length
        list.skip(unit.address_bytes);
        list.number();
        return true;
      default:
        bad("an unknown kind of range");
    }
  }

  const DebugSections& sections_;
  std::map<uint64_t, Declarations> declarations_;  // by the offset of their table
  std::set<uint64_t> line_tables_;
  // How many bytes of each section may still be read by users of parts that aren't shared.
  uint64_t abbreviations_left_, lines_left_, ranges_left_;
};

}  // namespace

void check_debug_info(const DebugSections& sections) { Checker(sections).check(); }

}  // namespace emu
