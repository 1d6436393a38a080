#include "emu/object/object.h"

#include <algorithm>

#include "emu/object/elf.h"
#include "emu/object/functions.h"
#include "emu/object/limits.h"
#include "emu/object/msgpack.h"
#include "emu/object/preload.h"

namespace emu {
namespace {

constexpr uint16_t kMachine = 224;  // EM_AMDGPU
constexpr uint8_t kOsAbi = 64;      // ELFOSABI_AMDGPU_HSA
constexpr uint32_t kMetadata = 32;  // NT_AMDGPU_METADATA

[[noreturn]] void bad_kernel(const std::string& what) {
  throw ObjectError(ObjectError::Kind::kernel, what);
}

void check_header(const elf::File& file, CodeObject& object) {
  if (file.machine != kMachine) bad_image("an ELF file for another machine");
  if (file.abi != kOsAbi) bad_image("not a code object for amdhsa");
  if (file.abi_version < 2 || file.abi_version > 4) {
    bad_image("code object version " + std::to_string(file.abi_version + 2) + " isn't supported");
  }
  object.version = file.abi_version + 2;
  const std::optional<Target> target = target_of_flags(file.flags, object.version);
  if (!target) {
    throw ObjectError(ObjectError::Kind::no_binary, "a code object for an unknown architecture");
  }
  object.target = *target;
}

void read_segments(const elf::File& file, CodeObject& object) {
  for (const elf::Segment& segment : file.segments) {
    if (segment.type != elf::kLoad || segment.memory_bytes == 0) continue;
    if (segment.file_bytes > segment.memory_bytes) bad_image("a segment larger than its memory");
    if (segment.address > kMostImage || segment.memory_bytes > kMostImage) {
      bad_image("a segment beyond 4 GiB");
    }
    const Bytes bytes = part(file.bytes, segment.offset, segment.file_bytes, "segment");
    ObjectSegment loaded;
    loaded.address = segment.address;
    loaded.memory_bytes = segment.memory_bytes;
    loaded.bytes.assign(bytes.begin(), bytes.end());
    loaded.executable = (segment.flags & elf::kExecutable) != 0;
    loaded.writable = (segment.flags & elf::kWritable) != 0;
    object.memory_bytes = std::max(object.memory_bytes, segment.address + segment.memory_bytes);
    if (loaded.executable) {
      if (!object.text.empty()) bad_image("two executable segments");
      object.text = loaded.bytes;
      object.text_address = loaded.address;
    }
    object.segments.push_back(std::move(loaded));
  }
  if (object.segments.empty()) bad_image("nothing to load");
}

void read_relocations(const elf::File& file, CodeObject& object) {
  for (const elf::Relocation& relocation : file.relocations) {
    if (relocation.type == 0) continue;
    ObjectRelocation result{relocation.address, relocation.type, true,
                            static_cast<uint64_t>(relocation.addend)};
    if (relocation.symbol != 0) {
      if (relocation.symbol >= file.dynamic_symbols.size()) bad_image("a relocation's symbol");
      const elf::Symbol& symbol = file.dynamic_symbols[relocation.symbol];
      result.of_object = symbol.defined;
      if (symbol.defined) result.value += symbol.value;
    }
    if (relocation.address > object.memory_bytes || object.memory_bytes - relocation.address < 8) {
      if (relocation.address > object.memory_bytes ||
          object.memory_bytes - relocation.address < 4 || relocation.type == 3 ||
          relocation.type == 5 || relocation.type == 13) {
        bad_image("a relocation beyond the object");
      }
    }
    object.relocations.push_back(result);
  }
}

void read_functions(const elf::File& file, CodeObject& object) {
  const uint64_t begin = object.text_address, end = begin + object.text.size();
  std::vector<FunctionSymbol> found;
  for (const elf::Symbol& symbol : file.symbols) {
    const bool inside = symbol.value >= begin && symbol.value < end && symbol.value % 4 == 0;
    if (symbol.type != elf::kFunction || !symbol.defined || !inside) continue;
    found.push_back(
        {std::string(symbol.name), symbol.value, std::min(symbol.size, end - symbol.value)});
  }
  object.functions = cover_text(std::move(found), begin, end);
}

void read_variables(const elf::File& file, CodeObject& object) {
  for (const elf::Symbol& symbol : file.symbols) {
    if (symbol.type != elf::kObject || !symbol.defined || symbol.binding == elf::kLocal) continue;
    if (symbol.name.ends_with(".kd")) continue;
    if (symbol.value > object.memory_bytes || symbol.size > object.memory_bytes - symbol.value) {
      bad_image("variable " + std::string(symbol.name) + " lies beyond the object");
    }
    object.variables.push_back({std::string(symbol.name), symbol.value, symbol.size});
  }
}

uint32_t small(const msgpack::Value& map, std::string_view key, uint64_t otherwise) {
  const uint64_t value = map.integer_or(key, otherwise);
  if (value > (uint64_t{1} << 31)) bad_kernel("metadata: " + std::string(key) + " is too large");
  return static_cast<uint32_t>(value);
}

void read_arguments(const msgpack::Value& map, KernelInfo& kernel) {
  const msgpack::Value* arguments = map.find(".args");
  if (arguments == nullptr) return;
  for (const msgpack::Value& entry : arguments->array) {
    Argument argument{entry.string_or(".name", ""), entry.string_or(".value_kind", ""),
                      small(entry, ".offset", 0), small(entry, ".size", 0)};
    if (uint64_t{argument.offset} + argument.size > kernel.kernarg_bytes) {
      bad_kernel("an argument of kernel " + kernel.name + " lies beyond its arguments' segment");
    }
    kernel.arguments.push_back(std::move(argument));
  }
}

/// Rejects sizes of registers and arguments that no hardware has.
void check_kernel(const KernelInfo& kernel) {
  if (kernel.kernarg_bytes > 1 << 20) bad_kernel("arguments of more than 1 MiB");
  if (kernel.scratch_bytes > kMostScratch) bad_kernel("scratch of more than 16 MiB a lane");
  if (kernel.lds_bytes > 1 << 20) bad_kernel("LDS of more than 1 MiB");
  if (kernel.max_items > kMostItems) bad_kernel("workgroups of more than 1024 items");
  if (kernel.wavefront != 32 && kernel.wavefront != 64) bad_kernel("waves of an unknown width");
}

KernelInfo read_kernel(const elf::File& file, const CodeObject& object, const msgpack::Value& map) {
  KernelInfo kernel;
  kernel.name = map.string_or(".name", "");
  const std::string symbol = map.string_or(".symbol", kernel.name + ".kd");
  if (symbol.ends_with(".kd")) kernel.name = symbol.substr(0, symbol.size() - 3);
  kernel.kernarg_bytes = small(map, ".kernarg_segment_size", 0);
  kernel.kernarg_alignment = std::max(small(map, ".kernarg_segment_align", 16), 1u);
  kernel.lds_bytes = small(map, ".group_segment_fixed_size", 0);
  kernel.scratch_bytes = small(map, ".private_segment_fixed_size", 0);
  kernel.wavefront = small(map, ".wavefront_size", 64);
  kernel.sgprs = small(map, ".sgpr_count", 0);
  kernel.vgprs = small(map, ".vgpr_count", 0);
  kernel.agprs = small(map, ".agpr_count", 0);
  kernel.sgpr_spills = small(map, ".sgpr_spill_count", 0);
  kernel.vgpr_spills = small(map, ".vgpr_spill_count", 0);
  kernel.max_items = small(map, ".max_flat_workgroup_size", kMostItems);
  kernel.dynamic_stack = map.integer_or(".uses_dynamic_stack", 0) != 0;
  kernel.uniform_groups = map.integer_or(".uniform_work_group_size", 0) != 0;
  kernel.wgp_mode = map.integer_or(".workgroup_processor_mode", 0) != 0;
  if (const msgpack::Value* block = map.find(".reqd_workgroup_size")) {
    for (size_t i = 0; i < 3 && i < block->array.size(); ++i) {
      kernel.required_block[i] = static_cast<uint32_t>(block->array[i].integer);
    }
  }
  check_kernel(kernel);
  read_arguments(map, kernel);

  const auto at = std::find_if(file.symbols.begin(), file.symbols.end(), [&](const auto& known) {
    return known.defined && known.name == symbol;
  });
  if (at == file.symbols.end()) bad_kernel("kernel " + kernel.name + " has no descriptor");
  kernel.descriptor = at->value;
  const Bytes descriptor = file.at(at->value, 64, "a kernel descriptor");
  std::copy(descriptor.begin(), descriptor.end(), kernel.descriptor_bytes);
  kernel.entry = kernel.descriptor + read<uint64_t>(descriptor, 16, "a kernel descriptor") +
                 Preload(read<uint16_t>(descriptor, 58, "a kernel descriptor")).header_bytes();
  if (kernel.entry < object.text_address || kernel.entry % 4 != 0 ||
      kernel.entry - object.text_address >= object.text.size()) {
    bad_kernel("kernel " + kernel.name + " doesn't start in the code");
  }
  const auto properties = read<uint16_t>(descriptor, 56, "a kernel descriptor");
  if (kernel.wavefront != ((properties >> 10 & 1) != 0 ? 32u : 64u)) {
    bad_kernel("kernel " + kernel.name + ": descriptor and metadata differ in the waves' width");
  }
  return kernel;
}

void read_kernels(const elf::File& file, CodeObject& object) {
  const std::vector<Bytes> notes = file.notes("AMDGPU", kMetadata);
  if (notes.empty()) bad_kernel("no metadata");
  for (const Bytes& note : notes) {
    const msgpack::Value root = msgpack::parse(note);
    if (const msgpack::Value* formats = root.find("amdhsa.printf")) {
      for (const msgpack::Value& format : formats->array) {
        object.print_formats.push_back(format.string);
      }
    }
    const msgpack::Value* kernels = root.find("amdhsa.kernels");
    if (kernels == nullptr) continue;  // variables only
    for (const msgpack::Value& map : kernels->array) {
      object.kernels.push_back(read_kernel(file, object, map));
    }
  }
}

}  // namespace

uint32_t KernelInfo::explicit_bytes() const {
  uint32_t bytes = 0;
  for (const Argument& argument : arguments) {
    if (!argument.hidden()) bytes = std::max(bytes, argument.offset + argument.size);
  }
  return bytes;
}

CodeObject read_object(Bytes bytes) {
  const elf::File file(bytes);
  CodeObject object;
  check_header(file, object);
  read_segments(file, object);
  read_relocations(file, object);
  read_functions(file, object);
  read_variables(file, object);
  read_kernels(file, object);
  for (const KernelInfo& kernel : object.kernels) add_entry(object.functions, kernel.entry);
  object.file.assign(bytes.begin(), bytes.end());
  return object;
}

}  // namespace emu
