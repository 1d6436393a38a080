#include "emu/object/elf.h"

#include <algorithm>
#include <utility>

#include "emu/object/limits.h"

namespace emu::elf {
namespace {

constexpr uint32_t kSymtab = 2, kRela = 4, kDynsym = 11;

struct Section {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t alignment, entry;
};

struct Header {
  uint8_t ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, segments, sections;
  uint32_t flags;
  uint16_t size, segment_size, segment_count, section_size, section_count, names;
};

/// `names_left`: how many bytes the names of this table and of later ones may have.
std::vector<Symbol> read_symbols(Bytes file, const Section& table, const Section& strings,
                                 uint64_t& names_left) {
  if (table.entry != 24) bad_image("symbols of an unknown size");
  const Bytes entries = part(file, table.offset, table.size, "symbol table");
  const Bytes names = part(file, strings.offset, strings.size, "string table");
  std::vector<Symbol> symbols;
  symbols.reserve(entries.size() / 24);
  for (uint64_t at = 0; at + 24 <= entries.size(); at += 24) {
    Symbol symbol;
    const auto name = read<uint32_t>(entries, at, "symbol");
    const auto info = read<uint8_t>(entries, at + 4, "symbol");
    symbol.type = info & 15;
    symbol.binding = info >> 4;
    symbol.defined = read<uint16_t>(entries, at + 6, "symbol") != 0;
    symbol.value = read<uint64_t>(entries, at + 8, "symbol");
    symbol.size = read<uint64_t>(entries, at + 16, "symbol");
    if (name != 0) symbol.name = read_string(names, name, "a symbol's name");
    if (symbol.name.size() > names_left) {
      bad_image("the symbols' names have more than " + std::to_string(kMostNames) +
                " times the file's bytes");
    }
    names_left -= symbol.name.size();
    symbols.push_back(symbol);
  }
  return symbols;
}

void read_relocations(Bytes file, const Section& table, std::vector<Relocation>& relocations) {
  if (table.entry != 24) bad_image("relocations of an unknown size");
  const Bytes entries = part(file, table.offset, table.size, "relocation table");
  for (uint64_t at = 0; at + 24 <= entries.size(); at += 24) {
    const auto info = read<uint64_t>(entries, at + 8, "relocation");
    relocations.push_back({read<uint64_t>(entries, at, "relocation"), static_cast<uint32_t>(info),
                           static_cast<uint32_t>(info >> 32),
                           read<int64_t>(entries, at + 16, "relocation")});
  }
}

/// Returns whether two ranges have something in common. Their ends may be beyond 2^64.
bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) {
  if (a_size == 0 || b_size == 0) return false;
  return a <= b ? b - a < a_size : a - b < b_size;
}

[[noreturn]] void bad_pair(const char* what, size_t a, size_t b, const char* shared) {
  bad_image(std::string(what) + " " + std::to_string(std::min(a, b)) + " and " +
            std::to_string(std::max(a, b)) + " overlap in " + shared);
}

void check_overlaps(const std::vector<Segment>& segments) {
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& a = segments[i];
    if (a.type != kLoad && a.type != kNote) continue;
    for (size_t k = i + 1; k < segments.size(); ++k) {
      const Segment& b = segments[k];
      if (a.type != b.type) continue;  // notes lie within segments that are loaded
      if (overlap(a.offset, a.file_bytes, b.offset, b.file_bytes)) {
        bad_pair("segments", i, k, "the file");
      }
      if (a.type == kLoad && overlap(a.address, a.memory_bytes, b.address, b.memory_bytes)) {
        bad_pair("segments", i, k, "memory");
      }
    }
  }
}

bool is_table(const Section& section) {
  return section.type == kSymtab || section.type == kDynsym || section.type == kRela;
}

/// Checks that no two tables have a byte in common.
void check_overlaps(const std::vector<Section>& sections) {
  std::vector<size_t> tables;
  for (size_t i = 0; i < sections.size(); ++i) {
    if (is_table(sections[i]) && sections[i].size != 0) tables.push_back(i);
  }
  std::sort(tables.begin(), tables.end(), [&](size_t a, size_t b) {
    return std::pair(sections[a].offset, a) < std::pair(sections[b].offset, b);
  });
  for (size_t i = 1; i < tables.size(); ++i) {
    const Section &a = sections[tables[i - 1]], &b = sections[tables[i]];
    if (overlap(a.offset, a.size, b.offset, b.size)) {
      bad_pair("the tables of sections", tables[i - 1], tables[i], "the file");
    }
  }
}

}  // namespace

File::File(Bytes all) : bytes(all) {
  const auto header = read<Header>(bytes, 0, "ELF header");
  if (std::memcmp(header.ident,
                  "\x7f"
                  "ELF",
                  4) != 0)
    bad_image("not an ELF file");
  if (header.ident[4] != 2 || header.ident[5] != 1)
    bad_image("not a little-endian 64-bit ELF file");
  abi = header.ident[7];
  abi_version = header.ident[8];
  type = header.type;
  machine = header.machine;
  flags = header.flags;
  if (header.segment_count != 0 && header.segment_size != 56) {
    bad_image("program headers of an unknown size");
  }
  if (header.segment_count > kMostSegments) {
    bad_image(std::to_string(header.segment_count) + " segments, more than " +
              std::to_string(kMostSegments));
  }
  for (uint64_t i = 0; i < header.segment_count; ++i) {
    const Bytes entry =
        part(bytes, header.segments, (i + 1) * 56, "program header").subspan(i * 56);
    const auto field = [&](uint64_t at) { return read<uint64_t>(entry, at, "program header"); };
    segments.push_back({read<uint32_t>(entry, 0, "program header"),
                        read<uint32_t>(entry, 4, "program header"), field(8), field(16), field(32),
                        field(40), field(48)});
  }
  check_overlaps(segments);
  if (header.section_count != 0) {
    read_sections(header.sections, header.section_count, header.section_size);
  }
}

void File::read_sections(uint64_t offset, uint16_t count, uint16_t entry) {
  if (entry != sizeof(Section)) bad_image("section headers of an unknown size");
  const Bytes table = part(bytes, offset, uint64_t{count} * entry, "section headers");
  std::vector<Section> sections;
  for (uint64_t i = 0; i < count; ++i) {
    sections.push_back(read<Section>(table, i * sizeof(Section), "section header"));
  }
  check_overlaps(sections);
  uint64_t names_left = kMostNames * bytes.size();
  for (const Section& section : sections) {
    if (section.type == kSymtab || section.type == kDynsym) {
      if (section.link >= sections.size()) bad_image("a symbol table without strings");
      std::vector<Symbol> found = read_symbols(bytes, section, sections[section.link], names_left);
      (section.type == kSymtab ? symbols : dynamic_symbols) = std::move(found);
    } else if (section.type == kRela) {
      read_relocations(bytes, section, relocations);
    }
  }
  if (symbols.empty()) symbols = dynamic_symbols;
}

Bytes File::at(uint64_t address, uint64_t size, const char* what) const {
  for (const Segment& segment : segments) {
    if (segment.type != kLoad || address < segment.address) continue;
    const uint64_t within = address - segment.address;
    if (within >= segment.file_bytes || size > segment.file_bytes - within) continue;
    return part(part(bytes, segment.offset, segment.file_bytes, "segment"), within, size, what);
  }
  bad_image(std::string(what) + " is in no segment");
}

std::vector<Bytes> File::notes(std::string_view owner, uint32_t wanted) const {
  std::vector<Bytes> found;
  for (const Segment& segment : segments) {
    if (segment.type != kNote) continue;
    Bytes rest = part(bytes, segment.offset, segment.file_bytes, "notes");
    while (rest.size() >= 12) {
      const auto name_bytes = read<uint32_t>(rest, 0, "note");
      const auto size = read<uint32_t>(rest, 4, "note");
      const auto kind = read<uint32_t>(rest, 8, "note");
      const Bytes name = part(rest, 12, name_bytes, "a note's name");
      const uint64_t start = 12 + (uint64_t{name_bytes} + 3) / 4 * 4;
      const Bytes description = part(rest, start, size, "a note");
      const std::string_view text(reinterpret_cast<const char*>(name.data()),
                                  name.empty() ? 0 : name.size() - 1);
      if (kind == wanted && text == owner) found.push_back(description);
      const uint64_t end = start + (uint64_t{size} + 3) / 4 * 4;
      rest = rest.subspan(std::min<uint64_t>(end, rest.size()));
    }
  }
  return found;
}

}  // namespace emu::elf
