#include "emu/isa/dictionary.h"

#include <cstring>

namespace emu {
namespace {

std::optional<Disassembly> read(const Disassembler& disassembler, const Words& words) {
  uint8_t bytes[sizeof words];
  std::memcpy(bytes, words.data(), sizeof bytes);
  return disassembler.read(bytes, 0);
}

/// Tries the values of choice `i` and of those that follow it.
bool ask_from(const Disassembler& disassembler, const Probes& probes, size_t i, Answer& answer) {
  if (i == probes.choices.size()) {
    const auto found = read(disassembler, answer.words);
    if (found) answer.inst = parse_instruction(found->text).at(0);
    return found.has_value();
  }
  for (const uint32_t value : probes.choices[i].values) {
    probes.choices[i].bits.put(answer.words, value);
    if (ask_from(disassembler, probes, i + 1, answer)) return true;
  }
  return false;
}

}  // namespace

uint32_t Bits::of(std::span<const uint32_t> words) const {
  if (width == 0) return 0;
  return words[at / 32] >> at % 32 & static_cast<uint32_t>((uint64_t{1} << width) - 1);
}

void Bits::put(Words& words, uint32_t value) const {
  const auto mask = static_cast<uint32_t>((uint64_t{1} << width) - 1) << at % 32;
  uint32_t& word = words[at / 32];
  word = (word & ~mask) | (value << at % 32 & mask);
}

int64_t signed_value(Bits bits, std::span<const uint32_t> words) {
  const auto top = int64_t{1} << (bits.width - 1);
  return (int64_t{bits.of(words)} ^ top) - top;
}

std::optional<Answer> ask(const Disassembler& disassembler, const Probes& probes) {
  Answer answer{probes.words, {}};
  if (!ask_from(disassembler, probes, 0, answer)) return std::nullopt;
  return answer;
}

bool is_known(const Disassembler& disassembler, const Words& words) {
  return read(disassembler, words).has_value();
}

}  // namespace emu
