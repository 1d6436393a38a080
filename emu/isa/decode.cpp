#include "emu/isa/decode.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace emu {
namespace {

[[noreturn]] void refuse(std::span<const uint8_t> code, uint64_t address, const char* why) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4 && i < code.size(); ++i) word |= uint32_t{code[i]} << (8 * i);
  char text[160];
  std::snprintf(text, sizeof text, "%s: 0x%08x at 0x%llx", why, word,
                static_cast<unsigned long long>(address));
  throw std::runtime_error(text);
}

}  // namespace

int generation_of(std::string_view architecture) {
  // gfx90a is generation 9, minor 0, stepping a.
  const std::string_view digits = architecture.substr(3, architecture.size() - 5);
  int generation = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), generation);
  return generation;
}

Decoder::Decoder(const std::string& architecture, bool wave64)
    : disassembler_(architecture, wave64),
      vectors_(disassembler_, generation_of(architecture), wave64) {}

std::vector<Inst> Decoder::decode(std::span<const uint8_t> code, uint64_t address) {
  uint32_t words[3] = {};
  const size_t count = std::min(code.size() / 4, std::size(words));
  std::memcpy(words, code.data(), 4 * count);
  std::vector<Inst> found;
  try {
    found = vectors_.decode(std::span(words, count));
  } catch (const std::runtime_error& error) {
    refuse(code, address, error.what());
  }
  if (found.empty()) return decode_text(code, address);
  // LLVM's text would lack fields, and its printer crashes on some words that aren't instructions.
  for (Inst& inst : found) {
    inst.address = address;
    inst.text = to_text(inst);
  }
  return found;
}

std::vector<Inst> Decoder::decode_text(std::span<const uint8_t> code, uint64_t address) const {
  const auto text = disassembler_.read(code, address);
  // LLVM has a name for the word 0, which isn't an instruction either.
  if (!text || text->text.find("v_illegal") != std::string::npos) {
    refuse(code, address, "no instruction");
  }
  std::vector<Inst> found = parse_instruction(text->text);
  for (Inst& inst : found) {
    inst.address = address;
    inst.size = text->size;
    if (!text->immediates.empty()) {
      inst.first_immediate = text->immediates.front();
      inst.immediate = text->immediates.back();
    }
  }
  return found;
}

}  // namespace emu
