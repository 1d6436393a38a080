#include "wick/backend/gpu/custom/object_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "wick/base/error.h"

namespace wick::gpu {
namespace {

// Source: the ELF-64 object file format.
constexpr std::string_view kMagic("\177ELF\002\001", 6);  // 64 bits, little-endian
constexpr size_t kHeaderBytes = 64, kProgramBytes = 56, kSectionBytes = 64;
constexpr uint16_t kCudaMachine = 190, kAmdMachine = 224;
constexpr uint32_t kNoBits = 8;  // a section without bytes in the file

template <class T>
T read(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool is_inside(std::string_view bytes, uint64_t at, uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}

/// Whether the file contains a table of `count` entries of `size` bytes, and the bytes that the
/// entries refer to. An entry holds the offset of its bytes at `place` and their number at
/// `length`; has_bytes(at) tells whether the entry at `at` refers to bytes.
template <class HasBytes>
bool is_whole(std::string_view bytes, uint64_t table, uint64_t count, uint64_t size, size_t place,
              size_t length, const HasBytes& has_bytes) {
  if (!is_inside(bytes, table, count * size)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t at = table + i * size;
    if (has_bytes(at) &&
        !is_inside(bytes, read<uint64_t>(bytes, at + place), read<uint64_t>(bytes, at + length))) {
      return false;
    }
  }
  return true;
}

bool is_whole_elf(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return false;
  const auto programs = read<uint64_t>(bytes, 32), sections = read<uint64_t>(bytes, 40);
  const auto program_bytes = read<uint16_t>(bytes, 54), program_count = read<uint16_t>(bytes, 56);
  const auto section_bytes = read<uint16_t>(bytes, 58), section_count = read<uint16_t>(bytes, 60);
  const auto names = read<uint16_t>(bytes, 62);
  if (program_count != 0 && program_bytes != kProgramBytes) return false;
  if (section_count != 0 && (section_bytes != kSectionBytes || names >= section_count)) {
    return false;
  }
  return is_whole(bytes, programs, program_count, kProgramBytes, 8, 32,
                  [](size_t) { return true; }) &&
         is_whole(bytes, sections, section_count, kSectionBytes, 24, 32,
                  [&](size_t at) { return read<uint32_t>(bytes, at + 4) != kNoBits; });
}

bool is_ptx(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos &&
         bytes.find(".version") != std::string_view::npos &&
         bytes.find(".target") != std::string_view::npos;
}

}  // namespace

void check_code(std::string_view op, DeviceKind kind, std::string_view bytes) {
  const bool cuda = kind == DeviceKind::cuda;
  const char* const need = cuda ? "need PTX or a cubin" : "need an ELF code object for AMD GPUs";
  const std::string size = fmt::format("{} bytes", bytes.size());
  if (bytes.empty()) throw Error(op, "no code", size, need);
  if (bytes.starts_with(kMagic)) {
    if (!is_whole_elf(bytes)) throw Error(op, "a truncated or damaged code object", size, need);
    const auto machine = read<uint16_t>(bytes, 18);
    if (machine != (cuda ? kCudaMachine : kAmdMachine)) {
      throw Error(op, "a code object for other processors", fmt::format("ELF machine {}", machine),
                  need);
    }
    return;
  }
  if (cuda && is_ptx(bytes)) return;
  throw Error(op, "not a code object", size, need);
}

std::unordered_map<std::string, int64_t> kernel_argument_bytes(std::string_view bytes) {
  constexpr uint32_t kDynamicSymbols = 11;
  constexpr size_t kSymbolBytes = 24, kDescriptorBytes = 64, kArgumentBytes = 8;
  std::unordered_map<std::string, int64_t> found;
  if (!bytes.starts_with(kMagic) || !is_whole_elf(bytes) ||
      read<uint16_t>(bytes, 18) != kAmdMachine) {
    return found;
  }
  const auto sections = read<uint64_t>(bytes, 40);
  const auto count = read<uint16_t>(bytes, 60);
  /// The part of the file that a section holds.
  const auto part = [&](uint32_t section) {
    const size_t at = sections + uint64_t{section} * kSectionBytes;
    const bool holds = section < count && read<uint32_t>(bytes, at + 4) != kNoBits;
    return holds ? bytes.substr(read<uint64_t>(bytes, at + 24), read<uint64_t>(bytes, at + 32))
                 : std::string_view();
  };
  for (uint32_t i = 0; i < count; ++i) {
    const size_t header = sections + uint64_t{i} * kSectionBytes;
    if (read<uint32_t>(bytes, header + 4) != kDynamicSymbols) continue;
    const std::string_view symbols = part(i), names = part(read<uint32_t>(bytes, header + 40));
    for (size_t at = 0; at + kSymbolBytes <= symbols.size(); at += kSymbolBytes) {
      const auto name_at = read<uint32_t>(symbols, at);
      if (name_at >= names.size()) continue;
      std::string_view name = names.substr(name_at);
      name = name.substr(0, name.find('\0'));
      const uint32_t holder = read<uint16_t>(symbols, at + 6);
      const std::string_view data = part(holder);
      if (!name.ends_with(".kd") || data.empty()) continue;
      const uint64_t address = read<uint64_t>(bytes, sections + holder * kSectionBytes + 16);
      const uint64_t place = read<uint64_t>(symbols, at + 8) - address;
      if (!is_inside(data, place, kDescriptorBytes)) continue;
      name.remove_suffix(3);
      found.emplace(name, read<uint32_t>(data, place + kArgumentBytes));
    }
  }
  return found;
}

}  // namespace wick::gpu
