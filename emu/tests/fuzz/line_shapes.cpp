#include "emu/object/limits.h"
#include "emu/tests/fuzz/forge.h"

namespace emu::test {
namespace {

constexpr char kSubprogram = 0x2e, kCompileUnit = 0x11, kStmtList = 0x10, kRangesOf = 0x55,
               kExternal = 0x3f;
constexpr char kOffset = 0x17, kPresent = 0x19, kNumber = 0x0f;  // forms

/// A unit of DWARF 4 with these entries.
std::string unit(uint32_t abbreviations, const std::string& entries) {
  std::string bytes;
  append(bytes, static_cast<uint32_t>(7 + entries.size()));
  append(bytes, uint16_t{4});
  append(bytes, abbreviations);
  append(bytes, uint8_t{8});
  return bytes + entries;
}

/// A declaration with pairs of an attribute and a form.
std::string declaration(char code, char tag, bool children, const std::string& attributes) {
  return std::string{code, tag, static_cast<char>(children ? 1 : 0)} + attributes +
         std::string(2, '\0');
}

std::string offset_entry(char code, uint32_t offset) {
  std::string entry(1, code);
  append(entry, offset);
  return entry;
}

/// A list of ranges of DWARF 4, of the code and of as many others.
std::string range_list(uint32_t count) {
  std::string list;
  for (uint32_t i = 0; i < count; ++i) {
    append(list, Forge::kCode + 4 * uint64_t{i});
    append(list, Forge::kCode + 4 * uint64_t{i} + 4);
  }
  return list + std::string(16, '\0');
}

using Use = std::function<void(const Shape&, const Debug&)>;

void add(const char* name, const Debug& debug, const char* error, const Use& use) {
  Forge forge;
  forge.add_kernels(1);
  forge.load_all();
  forge.add_debug(".debug_info", debug.info);
  forge.add_debug(".debug_abbrev", debug.abbreviations);
  forge.add_debug(".debug_line", debug.lines);
  forge.add_debug(".debug_ranges", debug.ranges);
  use({name, forge.finish(), error}, debug);
}

/// Each unit's declarations start at another byte of one table.
Debug declarations_that_overlap(uint32_t scale) {
  Debug debug;
  for (uint32_t i = 1; i <= 400 * scale; ++i) {
    // In three bytes of seven bits.
    const std::string code{static_cast<char>(i | 0x80), static_cast<char>(i >> 7 | 0x80),
                           static_cast<char>(i >> 14)};
    debug.info += unit(static_cast<uint32_t>(debug.abbreviations.size()), code);
    debug.abbreviations += code + declaration(0, kCompileUnit, false, "").substr(1);
  }
  debug.abbreviations += '\0';
  return debug;
}

/// Each entry has a byte besides its code, and attributes that have none.
Debug entries_of_many_attributes(uint32_t scale) {
  Debug debug;
  std::string attributes{kExternal, kNumber};
  for (uint32_t i = 0; i < 100 * scale; ++i) attributes += {kExternal, kPresent};
  debug.abbreviations = declaration(1, kCompileUnit, true, std::string{kRangesOf, kOffset}) +
                        declaration(2, kSubprogram, false, attributes) + '\0';
  debug.ranges = range_list(1);
  std::string entries = offset_entry(1, 0);
  for (uint32_t i = 0; i < 2000 * scale; ++i) entries += {2, 0};
  debug.info = unit(0, entries + '\0');
  return debug;
}

/// All units, or all functions of one, have one list of ranges.
Debug users_of_one_list(uint32_t scale, bool units) {
  Debug debug;
  const std::string attributes{kRangesOf, kOffset};
  debug.abbreviations = declaration(1, kCompileUnit, true, attributes) +
                        declaration(2, kSubprogram, false, attributes) + '\0';
  debug.ranges = range_list(100 * scale);
  std::string entries = offset_entry(1, 0);
  for (uint32_t i = 0; i < 200 * scale; ++i) {
    if (units) {
      debug.info += unit(0, offset_entry(1, 0));
    } else {
      entries += offset_entry(2, 0);
    }
  }
  debug.info += unit(0, entries + '\0');
  return debug;
}

/// Each function is in another one.
Debug functions_nested_deeply(uint32_t scale) {
  Debug debug;
  const std::string attributes{kRangesOf, kOffset};
  debug.abbreviations =
      declaration(1, kCompileUnit, true, attributes) + declaration(2, kSubprogram, true, "") + '\0';
  debug.ranges = range_list(1);
  debug.info = unit(0, offset_entry(1, 0) + std::string(10000 * scale, 2));
  return debug;
}

/// Each unit's line table starts at another place of one table, and lists folders up to its end.
Debug line_tables_that_overlap(uint32_t scale) {
  Debug debug;
  debug.abbreviations = declaration(1, kCompileUnit, false, std::string{kStmtList, kOffset}) + '\0';
  const uint32_t size = 10000 * scale;
  for (uint32_t at = 0; at < size; at += 32) {
    std::string table;
    append(table, size + 512 - at - 4);
    append(table, uint16_t{5});
    table += std::string{8, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1};  // no opcodes
    const uint32_t folders = (size - at) / 16;                 // of 16 bytes
    table += {1,
              1,
              0x1e,
              static_cast<char>(folders | 0x80),
              static_cast<char>(folders >> 7 | 0x80),
              static_cast<char>(folders >> 14)};
    table.resize(32);
    debug.lines += table;
    debug.info += unit(0, offset_entry(1, at));
  }
  debug.lines.resize(size + 512);
  return debug;
}

}  // namespace

void hostile_lines(uint32_t scale, const Use& use) {
  const char *const declarations = "tables of declarations that overlap",
                    *const attributes = "an entry of more than 64 attributes",
                    *const lists = "lists of ranges that are used too often",
                    *const nested = "more than 1024 entries within each other",
                    *const lines = "line tables that overlap";
  add("declarations_that_overlap", declarations_that_overlap(scale), declarations, use);
  add("entries_of_many_attributes", entries_of_many_attributes(scale), attributes, use);
  add("units_of_one_list", users_of_one_list(scale, true), lists, use);
  add("functions_of_one_list", users_of_one_list(scale, false), lists, use);
  add("functions_nested_deeply", functions_nested_deeply(scale), nested, use);
  add("line_tables_that_overlap", line_tables_that_overlap(scale), lines, use);
}

}  // namespace emu::test
