#include "emu/model/code.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "emu/object/functions.h"
#include "emu/object/limits.h"
#include "emu/object/preload.h"

namespace emu::model {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint16_t kAmdgpu = 224;
constexpr size_t kMostRawCode = 65536;
// AMD's largest images have some ten thousand symbols, with names of some hundred bytes. The limits
// bound the time and the memory for an image whose tables lie.
constexpr size_t kMostSymbols = 1 << 20, kMostNameBytes = 1 << 26, kMostDynamicEntries = 1024;

/// The tables of an image's dynamic section. Addresses of 0: there is no such table.
struct Dynamic {
  uint64_t symbols = 0, strings = 0, string_bytes = 0, hash = 0;
};

std::vector<uint8_t> copy(const Range& memory, uint64_t offset, uint64_t bytes, const char* what) {
  const uint64_t size = memory.end - memory.begin;
  if (offset > size || bytes > size - offset) {
    bad_image(std::string(what) + " reaches past the end");
  }
  std::vector<uint8_t> copied(bytes);
  if (!copy_from(copied.data(), memory.begin + offset, bytes)) {
    bad_image(std::string(what) + " can't be read");
  }
  return copied;
}

template <class T>
T read_from(const Range& memory, uint64_t offset, const char* what) {
  return read<T>(copy(memory, offset, sizeof(T), what), 0, what);
}

bool is_image(const Range& memory) {
  Elf64_Ehdr header;
  return memory.contains(memory.begin, sizeof header) && read_at(memory.begin, header) &&
         std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kAmdgpu;
}

Dynamic read_dynamic(const Range& memory, uint64_t at) {
  Dynamic tables;
  for (size_t i = 0; i < kMostDynamicEntries; ++i, at += sizeof(Elf64_Dyn)) {
    const auto entry = read_from<Elf64_Dyn>(memory, at, "the dynamic section");
    if (entry.d_tag == DT_NULL) return tables;
    if (entry.d_tag == DT_SYMTAB) tables.symbols = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRTAB) tables.strings = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) tables.string_bytes = entry.d_un.d_val;
    if (entry.d_tag == DT_HASH) tables.hash = entry.d_un.d_ptr;
  }
  bad_image("the dynamic section has no end");
}

/// Adds the image's kernels, and returns the functions in its text.
std::vector<FunctionSymbol> read_symbols(const Range& memory, const Dynamic& tables, Image& image) {
  std::vector<FunctionSymbol> functions;
  if (tables.symbols == 0 || tables.strings == 0 || tables.hash == 0) return functions;
  // The hash table's second word is the number of symbols.
  const auto count = read_from<uint32_t>(memory, tables.hash + 4, "the hash table");
  if (count > kMostSymbols) bad_image(std::to_string(count) + " symbols");
  if (tables.string_bytes > kMostNameBytes) bad_image("the names are too long");
  const auto symbols = copy(memory, tables.symbols, count * sizeof(Elf64_Sym), "the symbols");
  const auto names = copy(memory, tables.strings, tables.string_bytes, "the symbols' names");
  const uint64_t end = image.text_address + image.text.size();
  size_t name_bytes = 0;  // of all symbols: one name may be that of many
  for (size_t i = 0; i < count; ++i) {
    const auto symbol = read<Elf64_Sym>(Bytes(symbols), i * sizeof(Elf64_Sym), "a symbol");
    if (symbol.st_shndx == SHN_UNDEF) continue;
    const std::string name(read_string(Bytes(names), symbol.st_name, "a symbol's name"));
    name_bytes += name.size();
    if (name_bytes > kMostNameBytes) bad_image("the names are too long");
    if (name.ends_with(".kd")) image.kernels[symbol.st_value] = name.substr(0, name.size() - 3);
    const bool inside = symbol.st_value >= image.text_address && symbol.st_value < end;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !inside || symbol.st_value % 4 != 0) continue;
    functions.push_back(
        {name, symbol.st_value, std::min<uint64_t>(symbol.st_size, end - symbol.st_value)});
  }
  return functions;
}

/// Adds the entries of the image's kernels to its functions. Descriptors that can't be read have
/// none.
void add_entries(const Range& memory, Image& image) {
  for (const auto& [address, name] : image.kernels) {
    if (address > image.bytes || image.bytes - address < 64) continue;
    int64_t offset;
    uint16_t preload;
    if (!read_at(memory.begin + address + 16, offset)) continue;
    if (!read_at(memory.begin + address + 58, preload)) continue;
    const uint64_t entry =
        address + static_cast<uint64_t>(offset) + Preload(preload).header_bytes();
    if (entry % 4 == 0) add_entry(image.functions, entry);
  }
}

/// Reads the segments that are loaded, and returns the address of the dynamic section; 0: none.
uint64_t read_segments(const Range& memory, Image& image) {
  const auto header = read_from<Elf64_Ehdr>(memory, 0, "an ELF header");
  const auto segments =
      copy(memory, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), "the program headers");
  uint64_t dynamic = 0;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(Bytes(segments), i * sizeof(Elf64_Phdr), "a segment");
    if (segment.p_type == PT_DYNAMIC) dynamic = segment.p_vaddr;
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr > kMostImage || segment.p_memsz > kMostImage - segment.p_vaddr) {
      bad_image("a segment beyond 4 GiB");
    }
    const uint64_t end = segment.p_vaddr + segment.p_memsz;
    if (!memory.contains(memory.begin, end)) bad_image("a segment reaches past the end");
    image.bytes = std::max(image.bytes, end);
    if ((segment.p_flags & PF_X) == 0) continue;
    if (!image.text.empty()) bad_image("two executable segments");
    image.text_address = segment.p_vaddr;
    // The code is what the file had. Zeros behind it may be gigabytes.
    image.text =
        copy(memory, segment.p_vaddr, std::min(segment.p_memsz, segment.p_filesz), "the code");
  }
  return dynamic;
}

uint32_t end_of_program(int generation) { return generation >= 11 ? 0xbfb00000 : 0xbf810000; }

/// Returns whether a word is what assemblers put behind code: zeros, or s_code_end.
bool is_padding(uint32_t word) { return word == 0 || word == 0xbf9f0000; }

}  // namespace

Image read_image(const Range& memory) {
  if (!is_image(memory)) bad_image("no ELF header of an AMD code object");
  Image image;
  const uint64_t dynamic = read_segments(memory, image);
  if (image.text.empty() || image.text_address % 4 != 0) bad_image("no code");
  std::vector<FunctionSymbol> functions;
  if (dynamic != 0) functions = read_symbols(memory, read_dynamic(memory, dynamic), image);
  image.functions =
      cover_text(std::move(functions), image.text_address, image.text_address + image.text.size());
  add_entries(memory, image);
  return image;
}

size_t code_bytes(Bytes memory, int generation) {
  const size_t limit = std::min(memory.size(), kMostRawCode) / 4 * 4;
  for (size_t at = 0; at + 4 <= limit; at += 4) {
    if (read<uint32_t>(memory, at, "code") != end_of_program(generation)) continue;
    const bool last = at + 8 > memory.size();
    if (last || is_padding(read<uint32_t>(memory, at + 4, "code"))) return at + 4;
  }
  return 0;
}

std::shared_ptr<LoadedCode> CodeTable::find(uint64_t descriptor, uint64_t entry) {
  std::lock_guard lock(mutex_);
  auto at = entries_.upper_bound(entry);
  if (at != entries_.begin()) {
    --at;
    const LoadedCode& loaded = *at->second.loaded;
    const uint64_t begin = loaded.base + loaded.image.text_address;
    if (Range{begin, begin + loaded.image.text.size()}.contains(entry, 4)) {
      if (at->second.checked == generation_) return at->second.loaded;
      at->second.checked = generation_;
      std::vector<uint8_t> now(loaded.image.text.size());
      if (copy_from(now.data(), begin, now.size()) && now == loaded.image.text) {
        return at->second.loaded;
      }
      entries_.erase(at);
    }
  }
  auto loaded = load(descriptor, entry);
  entries_[loaded->base + loaded->image.text_address] = {loaded, generation_};
  return loaded;
}

std::shared_ptr<LoadedCode> CodeTable::load(uint64_t descriptor, uint64_t entry) {
  const Range range = memory_.around(descriptor);
  if (!range.contains(descriptor, 64) || !range.contains(entry, 4)) {
    bad_image("the code isn't in the descriptor's allocation");
  }
  const auto from = [&](uint64_t address) { return Range{address, range.end}; };
  auto loaded = std::make_shared<LoadedCode>();
  const uint64_t last = descriptor / kPage * kPage;
  for (uint64_t page = last; page >= range.begin && last - page < kMostImage; page -= kPage) {
    if (!is_image(from(page))) continue;
    loaded->base = page;
    loaded->image = read_image(from(page));
    const Image& image = loaded->image;
    const Range text{page + image.text_address, page + image.text_address + image.text.size()};
    if (text.contains(entry, 4) && descriptor < page + image.bytes) return loaded;
    break;  // another image's end, before code without an image
  }
  // The word behind the code says whether the code ends there.
  std::vector<uint8_t> text =
      copy(from(entry), 0, std::min<uint64_t>(range.end - entry, kMostRawCode + 4), "the code");
  const size_t bytes = code_bytes(text, architecture_.generation);
  if (bytes == 0) bad_image("no end of the code was found");
  loaded->base = entry;
  loaded->image = {};
  loaded->image.bytes = bytes;
  text.resize(bytes);
  loaded->image.text = std::move(text);
  loaded->image.functions = {{"code without symbols", 0, bytes, {0}}};
  return loaded;
}

Code& CodeTable::lowered(LoadedCode& loaded, bool wave64) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Code>& code = loaded.codes[wave64 ? 1 : 0];
  if (code == nullptr) {
    const Traits traits = traits_of(architecture_, wave64);
    const Image& image = loaded.image;
    std::vector<Symbol> functions;
    for (const FunctionSymbol& f : image.functions) {
      functions.push_back({f.name, f.address, f.size, f.entries});
    }
    code = std::make_unique<Code>(architecture_.name, traits, select_rows(false, traits.generation),
                                  image.text, image.text_address, std::move(functions));
  }
  return *code;
}

void CodeTable::forget(uint64_t address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  entries_.erase(entries_.lower_bound(address), entries_.lower_bound(address + bytes));
}

void CodeTable::invalidate() {
  std::lock_guard lock(mutex_);
  ++generation_;
}

}  // namespace emu::model
