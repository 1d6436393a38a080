#include <algorithm>

#include "emu/tests/fuzz/forge.h"

namespace emu::test {
namespace {

/// Starts an object with one sound kernel.
Forge with_kernel() {
  Forge forge;
  forge.add_kernels(1);
  return forge;
}

Shape shape(const char* name, Forge& forge, const char* error) {
  return {name, forge.finish(), error};
}

/// As many segments or sections as a header can have, and fewer at small scales.
uint32_t many(uint32_t scale) { return std::min(500 * scale, 50000u); }

Shape segments_of_one_range(uint32_t scale) {
  Forge forge = with_kernel();
  forge.add(std::string(10000 * scale, 'x'));
  forge.load_all();
  Forge::Segment copy = forge.segments.back();
  for (uint32_t i = 0; i < many(scale); ++i) {
    copy.address += copy.memory_bytes;
    forge.segments.push_back(copy);
  }
  return shape("segments_of_one_range", forge, "segments, more than 64");
}

Shape segments_that_share_bytes(uint32_t scale) {
  Forge forge = with_kernel();
  forge.add(std::string(2000 * scale * scale, 'x'));
  forge.load_all();
  Forge::Segment copy = forge.segments.back();  // number 2, after the note and the code
  for (int i = 0; i < 60; ++i) {
    copy.address += copy.memory_bytes;
    forge.segments.push_back(copy);
  }
  return shape("segments_that_share_bytes", forge, "segments 2 and 3 overlap in the file");
}

Shape segments_that_share_memory() {
  Forge forge = with_kernel();
  forge.load_all();
  Forge::Segment zeros = forge.segments.back();
  zeros.address += 64;
  zeros.file_bytes = 0;
  zeros.memory_bytes = uint64_t{1} << 31;
  forge.segments.push_back(zeros);
  return shape("segments_that_share_memory", forge, "segments 2 and 3 overlap in memory");
}

Shape memory_of_8_gib() {
  Forge forge = with_kernel();
  forge.load_all();
  for (uint64_t i = 1; i < 4; ++i) {
    forge.segments.push_back({Forge::kLoad, 6, 0, i << 31, 0, uint64_t{1} << 31});
  }
  return shape("memory_of_8_gib", forge, "a segment beyond 4 GiB");
}

Shape relocations_of_many_pages(uint32_t scale) {
  Forge forge = with_kernel();
  std::string entries;
  const uint64_t zeros = 1 << 20, apart = 1 << 16, count = 600 * uint64_t{scale};
  for (uint64_t i = 0; i < count; ++i) entries += Forge::relocation(zeros + i * apart);
  forge.sections.push_back({Forge::kRela, 0, forge.add(entries), entries.size(), 24});
  forge.load_all();
  forge.segments.back().memory_bytes = apart * count + zeros;
  return shape("relocations_of_many_pages", forge, "a relocation of bytes that the object's file");
}

Shape tables_of_one_range(uint32_t scale, uint32_t type, const char* name) {
  Forge forge = with_kernel();
  const uint64_t size = 24 * 400 * uint64_t{scale}, table = forge.add(std::string(size, '\0'));
  forge.load_all();
  for (uint32_t i = 0; i < many(scale); ++i) forge.sections.push_back({type, 1, table, size, 24});
  return shape(name, forge, "the tables of sections 3 and 4 overlap in the file");
}

Shape symbols_of_one_name(uint32_t scale, bool functions) {
  Forge forge = with_kernel();
  std::string entries, names(1, '\0');
  names += std::string(10000 * scale, 'n') + '\0';
  const uint8_t type = functions ? Forge::kFunction : Forge::kVariable;
  for (uint32_t i = 0; i < 400 * scale; ++i) entries += Forge::symbol(1, type, Forge::kCode, 4);
  forge.add_symbols(entries, names);
  forge.load_all();
  return shape(functions ? "functions_of_one_name" : "variables_of_one_name", forge,
               "names have more than 2 times the file's bytes");
}

/// Each table has one symbol, whose name is nearly the whole file.
Shape tables_of_one_name(uint32_t scale) {
  Forge forge = with_kernel();
  const std::string names = std::string(1, '\0') + std::string(400 * scale * scale, 'n') + '\0';
  const uint32_t first = forge.add_symbols(Forge::symbol(1, 0, 0, 0), names);
  for (uint32_t i = 0; i < many(scale); ++i) {
    const uint64_t table = forge.add(Forge::symbol(1, 0, 0, 0));
    forge.sections.push_back({Forge::kSymtab, first - 1, table, 24, 24});
  }
  forge.load_all();
  return shape("tables_of_one_name", forge, "names have more than 2 times the file's bytes");
}

Shape many_kernels(uint32_t scale) {
  Forge forge;
  forge.add_kernels(6 * scale * scale);
  forge.load_all();
  return shape("many_kernels", forge, "");
}

Forge with_metadata(const std::string& metadata) {
  Forge forge;
  forge.add_symbols(Forge::symbol(1, Forge::kVariable, 256, 64), std::string("\0k.kd\0", 6));
  forge.bytes.resize(256);
  forge.add(Forge::descriptor(256));
  forge.add_metadata(metadata);
  forge.load_all();
  return forge;
}

Shape of_metadata(const char* name, const Pack& metadata, const char* error) {
  Forge forge = with_metadata(metadata.bytes);
  return shape(name, forge, error);
}

void small_values(uint32_t scale, const std::function<void(const Shape&)>& use) {
  const uint32_t count = 1000 * scale * scale;
  const auto array = [&](char value) {
    return Pack().array(count).raw(std::string(count, value)).bytes;
  };
  const char nil = static_cast<char>(0xc0), empty_map = static_cast<char>(0x80),
             one_element = static_cast<char>(0x91);
  use(of_metadata("metadata_of_nils", Pack().map(1).text("x").raw(array(nil)), ""));
  use(of_metadata("metadata_of_maps", Pack().map(1).text("x").raw(array(empty_map)), ""));
  use(of_metadata(
      "metadata_nested_deeply",
      Pack().map(1).text("x").raw(std::string(count, one_element)).raw(std::string(1, nil)), ""));
  use(of_metadata("kernels_of_nothing", Pack().map(1).text("amdhsa.kernels").raw(array(empty_map)),
                  "has no descriptor"));
  use(of_metadata("formats_of_nothing", Pack().map(1).text("amdhsa.printf").raw(array(nil)),
                  "more than 65536 formats of printf"));
  use(of_metadata("metadata_that_lies", Pack().map(1).text("x").raw("\xdd\xff\xff\xff\xff"),
                  "more values than bytes"));
  Pack kernel;
  kernel.map(1).text("amdhsa.kernels").array(1).map(3).text(".symbol").text("k.kd");
  kernel.text(".wavefront_size").number(32).text(".args").raw(array(empty_map));
  use(of_metadata("arguments_of_nothing", kernel, "has no offset or no size"));
}

Shape kernels_of_one_descriptor(uint32_t scale) {
  Pack metadata;
  const uint32_t count = 50 * scale * scale;
  metadata.map(1).text("amdhsa.kernels").array(count);
  for (uint32_t i = 0; i < count; ++i) {
    metadata.map(2).text(".symbol").text("k.kd").text(".wavefront_size").number(32);
  }
  return of_metadata("kernels_of_one_descriptor", metadata, "");
}

/// Descriptors at every byte of one descriptor and the zeros behind it.
Shape descriptors_that_overlap(uint32_t scale) {
  Forge forge;
  std::string names(1, '\0'), entries;
  const uint64_t at =
      forge.add(Forge::descriptor(forge.bytes.size()) + std::string(100 * scale, '\0'));
  Pack metadata;
  metadata.map(1).text("amdhsa.kernels").array(100 * scale);
  for (uint32_t i = 0; i < 100 * scale; ++i) {
    const std::string name = "k" + std::to_string(i) + ".kd";
    entries += Forge::symbol(static_cast<uint32_t>(names.size()), Forge::kVariable, at + i, 64);
    names += name + '\0';
    metadata.map(2).text(".symbol").text(name).text(".wavefront_size").number(32);
  }
  forge.add_symbols(entries, names);
  forge.add_metadata(metadata.bytes);
  forge.load_all();
  return shape("descriptors_that_overlap", forge, "the descriptors of kernels k0 and k1 overlap");
}

/// Notes of twelve zeros, which may start at every byte of the zeros.
Shape notes_that_overlap(uint32_t scale) {
  Forge forge = with_kernel();
  const uint64_t size = 3000 * uint64_t{scale} * scale;
  const uint64_t zeros = forge.add(std::string(size, '\0'));
  forge.load_all();
  for (uint64_t i = 0; i < 12; ++i) {
    forge.segments.push_back({Forge::kNote, 4, zeros + i, zeros + i, size - 12, size - 12});
  }
  return shape("notes_that_overlap", forge, "segments 3 and 4 overlap in the file");
}

}  // namespace

void hostile_shapes(uint32_t scale, const std::function<void(const Shape&)>& use) {
  use(segments_of_one_range(scale));
  use(segments_that_share_bytes(scale));
  use(segments_that_share_memory());
  use(memory_of_8_gib());
  use(relocations_of_many_pages(scale));
  use(tables_of_one_range(scale, Forge::kRela, "relocations_of_one_table"));
  use(tables_of_one_range(scale, Forge::kSymtab, "symbols_of_one_table"));
  use(symbols_of_one_name(scale, true));
  use(symbols_of_one_name(scale, false));
  use(tables_of_one_name(scale));
  use(many_kernels(scale));
  small_values(scale, use);
  use(kernels_of_one_descriptor(scale));
  use(descriptors_that_overlap(scale));
  use(notes_that_overlap(scale));
}

}  // namespace emu::test
