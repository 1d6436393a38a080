#pragma once

// Builds code objects, sound ones and hostile ones, for tests of the reader's limits and as seeds
// of the fuzzer.

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace emu::test {

/// Appends MessagePack.
class Pack {
 public:
  std::string bytes;

  Pack& array(uint32_t count) { return put(0xdd, count, 4); }
  Pack& map(uint32_t count) { return put(0xdf, count, 4); }
  Pack& number(uint32_t value) { return put(0xce, value, 4); }
  Pack& text(std::string_view value) {
    put(0xdb, value.size(), 4);
    bytes += value;
    return *this;
  }
  Pack& raw(std::string_view value) {
    bytes += value;
    return *this;
  }

 private:
  Pack& put(int tag, uint64_t value, int size) {
    bytes += static_cast<char>(tag);
    for (int i = size - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i));
    return *this;
  }
};

/// An ELF file for gfx1100. Its memory is laid out as the file is, and the code starts at kCode.
class Forge {
 public:
  struct Segment {
    uint32_t type = 1, flags = 4;
    uint64_t offset = 0, address = 0, file_bytes = 0, memory_bytes = 0;
  };
  struct Section {
    uint32_t type = 0, link = 0;
    uint64_t offset = 0, size = 0, entry = 24;
    std::string name = {};
    uint64_t flags = 0;
  };
  static constexpr uint32_t kLoad = 1, kNote = 4, kExecutable = 1, kWritable = 2, kReadable = 4;
  static constexpr uint32_t kSymtab = 2, kStrtab = 3, kRela = 4;
  static constexpr uint8_t kVariable = 1, kFunction = 2;
  static constexpr uint64_t kCode = 64, kCodeBytes = 64;

  std::vector<uint8_t> bytes = std::vector<uint8_t>(kCode + kCodeBytes);
  std::vector<Segment> segments;
  std::vector<Section> sections = {{}};  // the first one is unused

  /// Appends data at a multiple of 64, and returns its offset.
  uint64_t add(std::string_view data);
  /// Returns a symbol table's entry.
  static std::string symbol(uint32_t name, uint8_t type, uint64_t value, uint64_t size);
  /// Returns a relocation table's entry, which writes a relative address.
  static std::string relocation(uint64_t address);
  /// Returns a descriptor at this address of a kernel that starts at kCode in waves of 32 lanes.
  static std::string descriptor(uint64_t address);
  /// Adds a symbol table with its strings, and returns the number of its section.
  uint32_t add_symbols(std::string_view entries, std::string_view names);
  /// Adds a section of debug information.
  void add_debug(const std::string& name, std::string_view data);
  /// Adds a segment with a note of metadata.
  void add_metadata(std::string_view metadata);
  /// Adds `count` kernels with names of a number, and the metadata of all.
  void add_kernels(uint32_t count);
  /// Adds the loaded segments of the code and of all that was added.
  void load_all();
  /// Writes the headers.
  std::vector<uint8_t> finish();
};

/// Appends a number's bytes.
template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A hostile object and what reading it must give: an error with this text, or success if empty.
struct Shape {
  std::string name;
  std::vector<uint8_t> object;
  std::string error;
};

/// Calls `use` with objects, one after the other, whose reading would take much more than their
/// size if it weren't limited. `scale` is 1 for objects of some kilobytes; those of scale 100 have
/// some megabytes.
void hostile_shapes(uint32_t scale, const std::function<void(const Shape&)>& use);

/// Sections of debug information.
struct Debug {
  std::string info, abbreviations, lines, ranges;
};

/// Calls `use` with objects whose debug information has such shapes, and with that information.
/// They can be loaded, but give no line of code: the error is that of check_debug_info.
void hostile_lines(uint32_t scale, const std::function<void(const Shape&, const Debug&)>& use);

}  // namespace emu::test
