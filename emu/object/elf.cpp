#include "emu/object/elf.h"

#include <algorithm>
#include <set>

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

std::vector<Symbol> read_symbols(Bytes file, const Section& table, const Section& strings) {
  if (table.entry != 24) bad_image("symbols of an unknown size");
  const Bytes entries = part(file, table.offset, table.size, "symbol table");
  const Bytes names = part(file, strings.offset, strings.size, "string table");
  std::vector<Symbol> symbols;
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

/// Returns the ranges in the order of their addresses, without those that overlap an earlier one.
std::vector<Bytes> without_overlaps(std::vector<Bytes> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](Bytes a, Bytes b) { return a.data() < b.data(); });
  std::vector<Bytes> kept;
  for (const Bytes range : ranges) {
    if (kept.empty() || range.data() >= kept.back().data() + kept.back().size()) {
      kept.push_back(range);
    }
  }
  return kept;
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
  for (uint64_t i = 0; i < header.segment_count; ++i) {
    const Bytes entry =
        part(bytes, header.segments, (i + 1) * 56, "program header").subspan(i * 56);
    const auto field = [&](uint64_t at) { return read<uint64_t>(entry, at, "program header"); };
    segments.push_back({read<uint32_t>(entry, 0, "program header"),
                        read<uint32_t>(entry, 4, "program header"), field(8), field(16), field(32),
                        field(40), field(48)});
  }
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
  for (const Section& section : sections) {
    if (section.type == kSymtab || section.type == kDynsym) {
      if (section.link >= sections.size()) bad_image("a symbol table without strings");
      std::vector<Symbol> found = read_symbols(bytes, section, sections[section.link]);
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

std::vector<Bytes> File::notes(std::string_view owner, uint32_t type) const {
  // Segments of a hostile file may overlap, so that 65535 of them contain the same notes. From one
  // place on, every segment has the same notes up to its end. The segment that ends last is
  // therefore read first, and the others only up to a note that was read.
  std::vector<Bytes> ranges, found;
  for (const Segment& segment : segments) {
    if (segment.type != kNote) continue;
    ranges.push_back(part(bytes, segment.offset, segment.file_bytes, "notes"));
  }
  std::sort(ranges.begin(), ranges.end(),
            [](Bytes a, Bytes b) { return a.data() + a.size() > b.data() + b.size(); });
  std::set<const uint8_t*> seen;
  for (Bytes rest : ranges) {
    while (rest.size() >= 12 && seen.insert(rest.data()).second) {
      const auto name_bytes = read<uint32_t>(rest, 0, "note");
      const auto bytes = read<uint32_t>(rest, 4, "note");
      const auto kind = read<uint32_t>(rest, 8, "note");
      const Bytes name = part(rest, 12, name_bytes, "a note's name");
      const uint64_t start = 12 + (uint64_t{name_bytes} + 3) / 4 * 4;
      const Bytes description = part(rest, start, bytes, "a note");
      const std::string_view text(reinterpret_cast<const char*>(name.data()),
                                  name.empty() ? 0 : name.size() - 1);
      if (kind == type && text == owner) found.push_back(description);
      const uint64_t end = start + (uint64_t{bytes} + 3) / 4 * 4;
      rest = rest.subspan(std::min<uint64_t>(end, rest.size()));
    }
  }
  return without_overlaps(std::move(found));
}

}  // namespace emu::elf
