#include "emu/isa/decode.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "emu/isa/disassembler.h"
#include "emu/isa/matrix.h"
#include "emu/isa/memory/buffer.h"
#include "emu/isa/memory/flat.h"
#include "emu/isa/memory/image.h"
#include "emu/isa/memory/lds.h"
#include "emu/isa/memory/scalar_memory.h"
#include "emu/isa/scalar.h"
#include "emu/isa/vector.h"

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

Chip chip_of(std::string_view architecture) {
  Chip chip;
  chip.generation = generation_of(architecture);
  chip.gfx950 = architecture == "gfx950";
  chip.gfx940 = chip.gfx950 || architecture == "gfx942";
  return chip;
}

int generation_of(std::string_view architecture) {
  // gfx90a is generation 9, minor 0, stepping a.
  const std::string_view digits = architecture.substr(3, architecture.size() - 5);
  int generation = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), generation);
  return generation;
}

struct Decoder::Parts {
  // LLVM 19 doesn't know gfx950, which has gfx942's instructions and more.
  Parts(const std::string& architecture, const Chip& chip, bool wave64)
      : disassembler(chip.gfx950 ? "gfx942" : architecture, wave64),
        vectors(disassembler, chip.generation, wave64, chip.gfx950),
        matrices(disassembler, chip.generation, chip.gfx950),
        lds(disassembler, chip.generation, chip.gfx950),
        scalars(disassembler, chip.generation),
        scalar_memory(disassembler, chip.generation),
        flat(disassembler, chip),
        buffers(disassembler, chip),
        images(disassembler, chip) {}

  /// Returns nothing if the words aren't an instruction.
  std::vector<Inst> decode(std::span<const uint32_t> words);
  std::string text_of(const Inst& inst, std::span<const uint8_t> code) const;

  const Disassembler disassembler;
  VectorDecoder vectors;
  MatrixDecoder matrices;
  LdsDecoder lds;
  ScalarDecoder scalars;
  ScalarMemoryDecoder scalar_memory;
  FlatDecoder flat;
  BufferDecoder buffers;
  ImageDecoder images;
};

Decoder::Decoder(const std::string& architecture, bool wave64)
    : parts_(std::make_unique<Parts>(architecture, chip_of(architecture), wave64)) {}

Decoder::~Decoder() = default;

std::vector<Inst> Decoder::decode(std::span<const uint8_t> code, uint64_t address) {
  uint32_t words[4] = {};
  const size_t count = std::min(code.size() / 4, std::size(words));
  std::memcpy(words, code.data(), 4 * count);
  std::vector<Inst> found;
  try {
    found = parts_->decode(std::span(words, count));
  } catch (const std::runtime_error& error) {
    refuse(code, address, error.what());
  }
  if (found.empty()) refuse(code, address, "no instruction");
  for (Inst& inst : found) {
    inst.address = address;
    inst.text = parts_->text_of(inst, code);
  }
  return found;
}

/// Returns the text for messages. Of vector instructions, LLVM's text would lack fields, and its
/// printer crashes on some words that aren't instructions. Of scalar ones, it has names for
/// numbers: counters, messages, hardware registers.
std::string Decoder::Parts::text_of(const Inst& inst, std::span<const uint8_t> code) const {
  if (!inst.name.starts_with("s_")) return to_text(inst);
  const auto found = disassembler.read(code, inst.address);
  if (!found) return to_text(inst);
  return found->text.substr(std::min(found->text.find_first_not_of(" \t"), found->text.size()));
}

std::vector<Inst> Decoder::Parts::decode(std::span<const uint32_t> words) {
  std::vector<Inst> found = vectors.decode(words);
  if (!found.empty()) return found;
  auto one = matrices.decode(words);
  if (!one) one = lds.decode(words);
  if (!one) one = scalars.decode(words);
  if (!one) one = scalar_memory.decode(words);
  if (!one) one = flat.decode(words);
  if (!one) one = buffers.decode(words);
  if (!one) one = images.decode(words);
  if (one) found.push_back(std::move(*one));
  return found;
}

}  // namespace emu
