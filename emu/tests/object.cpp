#include "emu/tests/object.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "emu/arch/architecture.h"

namespace emu::test {
namespace {

Descriptor read_descriptor(const uint8_t* bytes) {
  const auto word = [&](int at) {
    uint32_t value;
    std::memcpy(&value, bytes + at, sizeof value);
    return value;
  };
  Descriptor d;
  d.lds_bytes = word(0);
  d.scratch_bytes = word(4);
  d.kernarg_bytes = word(8);
  std::memcpy(&d.entry_offset, bytes + 16, sizeof d.entry_offset);
  d.rsrc3 = word(44);
  d.rsrc1 = word(48);
  d.rsrc2 = word(52);
  d.properties = static_cast<uint16_t>(word(56));
  return d;
}

template <class T>
T must(llvm::Expected<T> value) {
  if (!value) throw std::runtime_error(llvm::toString(value.takeError()));
  return std::move(*value);
}

/// Assigns each section an address: its own in a linked object, otherwise one after another.
std::map<uint64_t, uint64_t> lay_out(const llvm::object::ELFObjectFileBase& elf, uint64_t& size) {
  std::map<uint64_t, uint64_t> places;
  size = 0;
  for (const auto& section : elf.sections()) {
    if ((llvm::object::ELFSectionRef(section).getFlags() & llvm::ELF::SHF_ALLOC) == 0) continue;
    uint64_t place = section.getAddress();
    if (elf.isRelocatableObject()) place = (size + 4095) / 4096 * 4096;
    places[section.getIndex()] = place;
    size = std::max(size, place + section.getSize());
  }
  return places;
}

}  // namespace

Object::Object(const std::string& path, const std::string& arch) : arch_(arch) {
  auto file = must(llvm::object::ObjectFile::createObjectFile(path));
  const auto* elf = llvm::cast<llvm::object::ELFObjectFileBase>(file.getBinary());
  uint64_t size = 0;
  const auto places = lay_out(*elf, size);
  size = (size + 8191) / 4096 * 4096;
  image_.reset(static_cast<uint8_t*>(std::aligned_alloc(4096, size)));
  std::memset(image_.get(), 0, size);
  const auto base = reinterpret_cast<uint64_t>(image_.get());
  for (const auto& section : elf->sections()) {
    const auto place = places.find(section.getIndex());
    if (place == places.end()) continue;
    if (!section.isBSS()) {
      const llvm::StringRef bytes = must(section.getContents());
      std::memcpy(image_.get() + place->second, bytes.data(), bytes.size());
    }
    if (must(section.getName()) == ".text") {
      text_address_ = place->second;
      text_.assign(image_.get() + place->second, image_.get() + place->second + section.getSize());
    }
  }
  for (const auto& symbol : elf->symbols()) {
    const auto section = must(symbol.getSection());
    if (section == elf->section_end()) continue;
    const auto place = places.find(section->getIndex());
    if (place == places.end()) continue;
    const std::string name = must(symbol.getName()).str();
    const uint64_t at = must(symbol.getAddress()) - section->getAddress() + place->second;
    symbols_[name] = at;
    if (must(symbol.getType()) == llvm::object::SymbolRef::ST_Function) {
      functions_.push_back({name, at, llvm::object::ELFSymbolRef(symbol).getSize(), {at}});
    }
    if (name.ends_with(".kd")) {
      const Descriptor d = read_descriptor(image_.get() + at);
      const std::string kernel = name.substr(0, name.size() - 3);
      kernels_[kernel] = d;
      entries_[kernel] = at + static_cast<uint64_t>(d.entry_offset);
    }
  }
  for (const auto& section : elf->dynamic_relocation_sections()) {
    for (const auto& relocation : section.relocations()) {
      const auto addend = must(llvm::object::ELFRelocationRef(relocation).getAddend());
      uint64_t value = base + static_cast<uint64_t>(addend);
      if (relocation.getType() == llvm::ELF::R_AMDGPU_ABS64 &&
          relocation.getSymbol() != elf->symbol_end()) {
        value += symbols_.at(must(relocation.getSymbol()->getName()).str());
      }
      std::memcpy(image_.get() + relocation.getOffset(), &value, sizeof value);
    }
  }
  std::sort(functions_.begin(), functions_.end(),
            [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
}

Code& Object::code(bool wave64) {
  std::unique_ptr<Code>& code = codes_[wave64 ? 1 : 0];
  if (code == nullptr) {
    const Architecture* architecture = find_architecture(arch_);
    if (architecture == nullptr) throw std::runtime_error("no architecture " + arch_);
    const Traits traits = traits_of(*architecture, wave64);
    code = std::make_unique<Code>(arch_, traits, select_rows(false, traits.generation), text_,
                                  text_address_, functions_);
  }
  return *code;
}

uint64_t Object::address(const std::string& symbol) const {
  const auto it = symbols_.find(symbol);
  return it == symbols_.end() ? 0 : reinterpret_cast<uint64_t>(image_.get()) + it->second;
}

uint64_t Object::base() const { return reinterpret_cast<uint64_t>(image_.get()); }

uint64_t Object::function(const std::string& name) const { return symbols_.at(name); }

uint64_t Object::size(const std::string& function) const {
  const auto it = std::find_if(functions_.begin(), functions_.end(),
                               [&](const Symbol& symbol) { return symbol.name == function; });
  return it == functions_.end() ? 0 : it->size;
}

}  // namespace emu::test
