#include "emu/model/code.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace emu::model {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint16_t kAmdgpu = 224;
constexpr size_t kMostRawCode = 65536;

/// The tables of an image's dynamic section.
struct Dynamic {
  uint64_t symbols = 0, strings = 0, hash = 0;
};

bool is_image(Bytes memory) {
  if (memory.size() < sizeof(Elf64_Ehdr)) return false;
  const auto header = read<Elf64_Ehdr>(memory, 0, "an ELF header");
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kAmdgpu;
}

Dynamic read_dynamic(Bytes memory, uint64_t at) {
  Dynamic tables;
  for (;; at += sizeof(Elf64_Dyn)) {
    const auto entry = read<Elf64_Dyn>(memory, at, "the dynamic section");
    if (entry.d_tag == DT_NULL) return tables;
    if (entry.d_tag == DT_SYMTAB) tables.symbols = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRTAB) tables.strings = entry.d_un.d_ptr;
    if (entry.d_tag == DT_HASH) tables.hash = entry.d_un.d_ptr;
  }
}

/// Adds the image's kernels, and the functions in its text.
void read_symbols(Bytes memory, const Dynamic& tables, Image& image) {
  if (tables.symbols == 0 || tables.strings == 0 || tables.hash == 0) return;
  // The hash table's second word is the number of symbols.
  const auto count = read<uint32_t>(memory, tables.hash + 4, "the hash table");
  const uint64_t end = image.text_address + image.text.size();
  for (uint32_t i = 0; i < count; ++i) {
    const auto symbol =
        read<Elf64_Sym>(memory, tables.symbols + uint64_t{i} * sizeof(Elf64_Sym), "a symbol");
    if (symbol.st_shndx == SHN_UNDEF) continue;
    const std::string name(read_string(memory, tables.strings + symbol.st_name, "a symbol's name"));
    if (name.ends_with(".kd")) image.kernels[symbol.st_value] = name.substr(0, name.size() - 3);
    const bool inside = symbol.st_value >= image.text_address && symbol.st_value < end;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !inside || symbol.st_value % 4 != 0) continue;
    image.functions.push_back(
        {name, symbol.st_value, std::min<uint64_t>(symbol.st_size, end - symbol.st_value)});
  }
}

/// Gives every byte of the text to one function. Code without a symbol becomes a function of its
/// own.
void cover_text(Image& image) {
  std::vector<Symbol> found = std::move(image.functions);
  image.functions.clear();
  std::sort(found.begin(), found.end(), [](const Symbol& a, const Symbol& b) {
    return std::tie(a.address, a.name) < std::tie(b.address, b.name);
  });
  const uint64_t begin = image.text_address, end = begin + image.text.size();
  uint64_t at = begin;
  const auto fill = [&](uint64_t to) {
    if (to > at) image.functions.push_back({"text+" + std::to_string(at - begin), at, to - at});
  };
  for (size_t i = 0; i < found.size(); ++i) {
    const uint64_t next = i + 1 < found.size() ? found[i + 1].address : end;
    if (next == found[i].address) continue;  // another name of the same function
    if (found[i].size == 0 || found[i].size > next - found[i].address) {
      found[i].size = next - found[i].address;
    }
    fill(found[i].address);
    at = found[i].address + found[i].size;
    image.functions.push_back(std::move(found[i]));
  }
  fill(end);
}

uint32_t end_of_program(int generation) { return generation >= 11 ? 0xbfb00000 : 0xbf810000; }

/// Returns whether a word is what assemblers put behind code: zeros, or s_code_end.
bool is_padding(uint32_t word) { return word == 0 || word == 0xbf9f0000; }

}  // namespace

Image read_image(Bytes memory) {
  if (!is_image(memory)) bad_image("no ELF header of an AMD code object");
  const auto header = read<Elf64_Ehdr>(memory, 0, "an ELF header");
  Image image;
  uint64_t dynamic = 0;
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(memory, header.e_phoff + uint64_t{i} * sizeof(Elf64_Phdr),
                                          "a program header");
    if (segment.p_type == PT_DYNAMIC) dynamic = segment.p_vaddr;
    if (segment.p_type != PT_LOAD) continue;
    const Bytes loaded = part(memory, segment.p_vaddr, segment.p_memsz, "a segment");
    image.bytes = std::max<uint64_t>(image.bytes, segment.p_vaddr + segment.p_memsz);
    if ((segment.p_flags & PF_X) == 0) continue;
    image.text_address = segment.p_vaddr;
    image.text.assign(loaded.begin(), loaded.end());
  }
  if (image.text.empty() || image.text_address % 4 != 0) bad_image("no code");
  if (dynamic != 0) read_symbols(memory, read_dynamic(memory, dynamic), image);
  cover_text(image);
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
      const auto* now = reinterpret_cast<const void*>(begin);
      const std::vector<uint8_t>& text = loaded.image.text;
      if (std::memcmp(now, text.data(), text.size()) == 0) return at->second.loaded;
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
  const auto from = [&](uint64_t address) {
    return Bytes(reinterpret_cast<const uint8_t*>(address), range.end - address);
  };
  auto loaded = std::make_shared<LoadedCode>();
  for (uint64_t page = descriptor / kPage * kPage; page >= range.begin; page -= kPage) {
    if (!is_image(from(page))) continue;
    loaded->base = page;
    loaded->image = read_image(from(page));
    const Image& image = loaded->image;
    const Range text{page + image.text_address, page + image.text_address + image.text.size()};
    if (text.contains(entry, 4) && descriptor < page + image.bytes) return loaded;
    break;  // another image's end, before code without an image
  }
  const size_t bytes = code_bytes(from(entry), architecture_.generation);
  if (bytes == 0) bad_image("no end of the code was found");
  loaded->base = entry;
  loaded->image = {};
  loaded->image.bytes = bytes;
  loaded->image.text.assign(from(entry).begin(),
                            from(entry).begin() + static_cast<ptrdiff_t>(bytes));
  loaded->image.functions = {{"code without symbols", 0, bytes}};
  return loaded;
}

Code& CodeTable::lowered(LoadedCode& loaded, bool wave64) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Code>& code = loaded.codes[wave64 ? 1 : 0];
  if (code == nullptr) {
    const Traits traits = traits_of(architecture_, wave64);
    const Image& image = loaded.image;
    code = std::make_unique<Code>(architecture_.name, traits, select_rows(false, traits.generation),
                                  image.text, image.text_address, image.functions);
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
