#include "emu/tests/fuzz/forge.h"

namespace emu::test {
namespace {

template <class T>
void put(std::vector<uint8_t>& bytes, uint64_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::string kernel_name(uint32_t number) { return "k" + std::to_string(number); }

}  // namespace

uint64_t Forge::add(std::string_view data) {
  bytes.resize((bytes.size() + 63) / 64 * 64);
  const uint64_t offset = bytes.size();
  bytes.insert(bytes.end(), data.begin(), data.end());
  return offset;
}

std::string Forge::symbol(uint32_t name, uint8_t type, uint64_t value, uint64_t size) {
  std::string entry;
  append(entry, name);
  append(entry, static_cast<uint8_t>(1 << 4 | type));  // global
  append(entry, uint8_t{0});
  append(entry, uint16_t{1});  // defined in section 1
  append(entry, value);
  append(entry, size);
  return entry;
}

std::string Forge::relocation(uint64_t address) {
  std::string entry;
  append(entry, address);
  append(entry, uint64_t{13});  // R_AMDGPU_RELATIVE64
  append(entry, uint64_t{kCode});
  return entry;
}

std::string Forge::descriptor(uint64_t address) {
  std::vector<uint8_t> fields(64);
  put(fields, 16, kCode - address);
  put(fields, 56, uint16_t{1 << 10});
  return {fields.begin(), fields.end()};
}

uint32_t Forge::add_symbols(std::string_view entries, std::string_view names) {
  const uint64_t strings = add(names), table = add(entries);
  const auto link = static_cast<uint32_t>(sections.size());
  sections.push_back({kStrtab, 0, strings, names.size(), 0});
  sections.push_back({kSymtab, link, table, entries.size(), 24});
  return link + 1;
}

void Forge::add_debug(const std::string& name, std::string_view data) {
  constexpr uint32_t kProgbits = 1;
  sections.push_back({kProgbits, 0, add(data), data.size(), 0, name});
}

void Forge::add_metadata(std::string_view metadata) {
  std::string note;
  append(note, uint32_t{7});
  append(note, static_cast<uint32_t>(metadata.size()));
  append(note, uint32_t{32});  // NT_AMDGPU_METADATA
  note.append("AMDGPU\0\0", 8);
  note += metadata;
  const uint64_t offset = add(note);
  segments.push_back({kNote, kReadable, offset, offset, note.size(), note.size()});
}

void Forge::add_kernels(uint32_t count) {
  std::string names(1, '\0'), table, descriptors;
  const uint64_t first = add("");
  Pack metadata;
  metadata.map(1).text("amdhsa.kernels").array(count);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = kernel_name(i) + ".kd";
    const uint64_t at = first + 64 * uint64_t{i};
    descriptors += descriptor(at);
    table += symbol(static_cast<uint32_t>(names.size()), kVariable, at, 64);
    names += name + '\0';
    metadata.map(2).text(".symbol").text(name).text(".wavefront_size").number(32);
  }
  add(descriptors);
  add_symbols(table, names);
  add_metadata(metadata.bytes);
}

void Forge::load_all() {
  segments.push_back({kLoad, kReadable | kExecutable, kCode, kCode, kCodeBytes, kCodeBytes});
  const uint64_t rest = kCode + kCodeBytes, size = bytes.size() - rest;
  segments.push_back({kLoad, kReadable | kWritable, rest, rest, size, size});
}

std::vector<uint8_t> Forge::finish() {
  std::string headers, tables;
  for (const Segment& segment : segments) {
    append(headers, segment.type);
    append(headers, segment.flags);
    append(headers, segment.offset);
    append(headers, segment.address);
    append(headers, segment.address);
    append(headers, segment.file_bytes);
    append(headers, segment.memory_bytes);
    append(headers, uint64_t{64});
  }
  std::string names(1, '\0');
  for (const Section& section : sections) names += section.name + '\0';
  const uint64_t place = add(names);
  sections.push_back({kStrtab, 0, place, names.size(), 0});
  uint32_t name = 1;
  for (const Section& section : sections) {
    append(tables, section.name.empty() ? uint32_t{0} : name);
    name += static_cast<uint32_t>(section.name.size()) + 1;
    append(tables, section.type);
    append(tables, section.flags);
    append(tables, uint64_t{0});  // address
    append(tables, section.offset);
    append(tables, section.size);
    append(tables, section.link);
    append(tables, uint32_t{0});
    append(tables, uint64_t{8});
    append(tables, section.entry);
  }
  const uint64_t programs = add(headers), listed = add(tables);
  std::memcpy(bytes.data(),
              "\x7f"
              "ELF\2\1\1\x40\3",
              9);  // version 5 of objects for amdhsa
  put(bytes, 16, uint16_t{3});
  put(bytes, 18, uint16_t{224});  // EM_AMDGPU
  put(bytes, 20, uint32_t{1});
  put(bytes, 32, programs);
  put(bytes, 40, listed);
  put(bytes, 48, uint32_t{0x41});  // gfx1100
  put(bytes, 52, uint16_t{64});
  put(bytes, 54, uint16_t{56});
  put(bytes, 56, static_cast<uint16_t>(segments.size()));
  put(bytes, 58, uint16_t{64});
  put(bytes, 60, static_cast<uint16_t>(sections.size()));
  put(bytes, 62, static_cast<uint16_t>(sections.size() - 1));
  return bytes;
}

}  // namespace emu::test
