#include "emu/model/pm4.h"

#include "emu/model/memory.h"

namespace emu::model {
namespace {

enum Opcode : uint32_t {
  kNop = 0x10,
  kIndirectBuffer = 0x3f,
  kEventWrite = 0x46,
  kAcquireMemory = 0x58,
};

constexpr uint32_t kOneWordNop = 0xffff1000;

bool is_command(uint32_t word) { return word >> 30 == 3; }
uint32_t opcode(uint32_t word) { return word >> 8 & 0xff; }
/// Words of a command, with its first one.
uint32_t length(uint32_t word) { return word == kOneWordNop ? 1 : (word >> 16 & 0x3fff) + 2; }

}  // namespace

CommandBuffer command_buffer(std::span<const uint32_t> jump) {
  if (jump.size() < 4 || !is_command(jump[0]) || opcode(jump[0]) != kIndirectBuffer) return {};
  return {(uint64_t{jump[2] & 0xffff} << 32 | jump[1]) & ~uint64_t{3}, jump[3] & 0xfffff};
}

std::string other_than_caches(std::span<const uint32_t> words) {
  for (size_t at = 0; at < words.size();) {
    const uint32_t word = words[at];
    if (!is_command(word)) return "word " + hex(word);
    if (length(word) > words.size() - at) return "a command beyond the end";
    switch (opcode(word)) {
      case kNop:
      case kEventWrite:
      case kAcquireMemory:
        break;
      default:
        return "command " + hex(opcode(word));
    }
    at += length(word);
  }
  return "";
}

}  // namespace emu::model
