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

std::string_view amd_metadata(std::string_view bytes) {
  constexpr uint32_t kNotes = 4, kMetadata = 32;  // types of a program header and of a note
  constexpr std::string_view kOwner("AMDGPU\0", 7);
  constexpr size_t kNoteBytes = 12;
  if (!bytes.starts_with(kMagic) || !is_whole_elf(bytes) ||
      read<uint16_t>(bytes, 18) != kAmdMachine) {
    return {};
  }
  const auto programs = read<uint64_t>(bytes, 32);
  const auto count = read<uint16_t>(bytes, 56);
  const auto padded = [](uint64_t size) { return (size + 3) / 4 * 4; };
  for (uint32_t i = 0; i < count; ++i) {
    const size_t header = programs + i * kProgramBytes;
    if (read<uint32_t>(bytes, header) != kNotes) continue;
    std::string_view notes =
        bytes.substr(read<uint64_t>(bytes, header + 8), read<uint64_t>(bytes, header + 32));
    while (notes.size() >= kNoteBytes) {
      const auto name_bytes = read<uint32_t>(notes, 0), size = read<uint32_t>(notes, 4);
      const uint64_t begin = kNoteBytes + padded(name_bytes), end = begin + padded(size);
      if (end > notes.size()) break;
      const bool is_metadata = read<uint32_t>(notes, 8) == kMetadata;
      if (is_metadata && notes.substr(kNoteBytes, name_bytes) == kOwner) {
        return notes.substr(begin, size);
      }
      notes.remove_prefix(end);
    }
  }
  return {};
}

}  // namespace wick::gpu
