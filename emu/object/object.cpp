#include "emu/object/object.h"

#include <algorithm>
#include <map>
#include <utility>

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
    if (segment.address > kMostImage || segment.memory_bytes > kMostImage - segment.address) {
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

/// Returns the number of bytes that a relocation of this type writes.
uint64_t relocated_bytes(uint32_t type) {
  return type == 3 || type == 5 || type == 13 ? 8 : 4;  // ABS64, REL64, RELATIVE64
}

/// Relocations change bytes that the file has. Each of those in memory that is all zeros could use
/// a page of its own.
bool is_in_file(const CodeObject& object, uint64_t address, uint64_t size) {
  return std::any_of(object.segments.begin(), object.segments.end(), [&](const auto& segment) {
    const uint64_t within = address - segment.address;
    return within < segment.bytes.size() && size <= segment.bytes.size() - within;
  });
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
    if (!is_in_file(object, relocation.address, relocated_bytes(relocation.type))) {
      bad_image("a relocation of bytes that the object's file doesn't have");
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
      bad_image("variable " + shown(symbol.name) + " lies beyond the object");
    }
    object.variables.push_back({std::string(symbol.name), symbol.value, symbol.size});
  }
}

uint32_t small(std::string_view key, uint64_t value) {
  if (value > (uint64_t{1} << 31)) bad_kernel("metadata: " + std::string(key) + " is too large");
  return static_cast<uint32_t>(value);
}

/// The fields of a kernel's metadata that are numbers.
constexpr std::pair<std::string_view, uint32_t KernelInfo::*> kNumbers[] = {
    {".kernarg_segment_size", &KernelInfo::kernarg_bytes},
    {".kernarg_segment_align", &KernelInfo::kernarg_alignment},
    {".group_segment_fixed_size", &KernelInfo::lds_bytes},
    {".private_segment_fixed_size", &KernelInfo::scratch_bytes},
    {".wavefront_size", &KernelInfo::wavefront},
    {".sgpr_count", &KernelInfo::sgprs},
    {".vgpr_count", &KernelInfo::vgprs},
    {".agpr_count", &KernelInfo::agprs},
    {".sgpr_spill_count", &KernelInfo::sgpr_spills},
    {".vgpr_spill_count", &KernelInfo::vgpr_spills},
    {".max_flat_workgroup_size", &KernelInfo::max_items},
};

constexpr std::pair<std::string_view, bool KernelInfo::*> kFlags[] = {
    {".uses_dynamic_stack", &KernelInfo::dynamic_stack},
    {".uniform_work_group_size", &KernelInfo::uniform_groups},
    {".workgroup_processor_mode", &KernelInfo::wgp_mode},
};

/// What the metadata has about a kernel.
struct Described {
  KernelInfo kernel;
  std::string symbol;  // of the descriptor
  msgpack::Value arguments;
};

void read_number(std::string_view key, uint64_t value, KernelInfo& kernel) {
  for (const auto& [name, member] : kNumbers) {
    if (key == name) kernel.*member = small(key, value);
  }
  for (const auto& [name, member] : kFlags) {
    if (key == name) kernel.*member = value != 0;
  }
}

void read_block(const msgpack::Value& block, KernelInfo& kernel) {
  size_t axis = 0;
  block.for_each_element([&](const msgpack::Value& size) {
    if (axis < 3) kernel.required_block[axis++] = static_cast<uint32_t>(size.integer);
  });
}

Described describe(const msgpack::Value& map) {
  Described result;
  KernelInfo& kernel = result.kernel;
  kernel.wavefront = 64;
  map.for_each_entry([&](std::string_view key, const msgpack::Value& value) {
    if (const auto number = value.number()) read_number(key, *number, kernel);
    if (key == ".name") kernel.name = value.string;
    if (key == ".symbol") result.symbol = value.string;
    if (key == ".reqd_workgroup_size") read_block(value, kernel);
    if (key == ".args") result.arguments = value;
  });
  kernel.kernarg_alignment = std::max(kernel.kernarg_alignment, 1u);
  if (result.symbol.empty()) result.symbol = kernel.name + ".kd";
  if (result.symbol.ends_with(".kd")) {
    kernel.name = result.symbol.substr(0, result.symbol.size() - 3);
  }
  return result;
}

Argument read_argument(const msgpack::Value& map, const KernelInfo& kernel) {
  Argument argument;
  std::optional<uint64_t> offset, size;
  map.for_each_entry([&](std::string_view key, const msgpack::Value& value) {
    if (key == ".name") argument.name = value.string;
    if (key == ".value_kind") argument.kind = value.string;
    if (key == ".offset") offset = value.number();
    if (key == ".size") size = value.number();
  });
  if (!offset || !size) {
    bad_kernel("an argument of kernel " + shown(kernel.name) + " has no offset or no size");
  }
  argument.offset = small(".offset", *offset);
  argument.size = small(".size", *size);
  if (uint64_t{argument.offset} + argument.size > kernel.kernarg_bytes) {
    bad_kernel("an argument of kernel " + shown(kernel.name) +
               " lies beyond its arguments' segment");
  }
  return argument;
}

/// Rejects sizes of registers and arguments that no hardware has.
void check_kernel(const KernelInfo& kernel) {
  if (kernel.kernarg_bytes > 1 << 20) bad_kernel("arguments of more than 1 MiB");
  if (kernel.scratch_bytes > kMostScratch) bad_kernel("scratch of more than 16 MiB a lane");
  if (kernel.lds_bytes > 1 << 20) bad_kernel("LDS of more than 1 MiB");
  if (kernel.max_items > kMostItems) bad_kernel("workgroups of more than 1024 items");
  if (kernel.wavefront != 32 && kernel.wavefront != 64) bad_kernel("waves of an unknown width");
}

/// Adds what the kernel's descriptor has. `kernel.descriptor` is its address.
void read_descriptor(const elf::File& file, const CodeObject& object, KernelInfo& kernel) {
  const Bytes descriptor = file.at(kernel.descriptor, 64, "a kernel descriptor");
  std::copy(descriptor.begin(), descriptor.end(), kernel.descriptor_bytes);
  kernel.entry = kernel.descriptor + read<uint64_t>(descriptor, 16, "a kernel descriptor") +
                 Preload(read<uint16_t>(descriptor, 58, "a kernel descriptor")).header_bytes();
  if (kernel.entry < object.text_address || kernel.entry % 4 != 0 ||
      kernel.entry - object.text_address >= object.text.size()) {
    bad_kernel("kernel " + shown(kernel.name) + " doesn't start in the code");
  }
  const auto properties = read<uint16_t>(descriptor, 56, "a kernel descriptor");
  if (kernel.wavefront != ((properties >> 10 & 1) != 0 ? 32u : 64u)) {
    bad_kernel("kernel " + shown(kernel.name) +
               ": descriptor and metadata differ in the waves' width");
  }
}

/// Finds defined symbols by name. A sorted table, since hostile names may all have one hash.
class SymbolTable {
 public:
  explicit SymbolTable(const std::vector<elf::Symbol>& symbols) {
    for (const elf::Symbol& symbol : symbols) {
      if (symbol.defined) sorted_.push_back(&symbol);
    }
    std::sort(sorted_.begin(), sorted_.end(), [](const auto* a, const auto* b) {
      const auto left = key(a->name), right = key(b->name);
      return left == right ? a < b : left < right;
    });
  }

  /// Returns the first symbol of that name, or null.
  const elf::Symbol* find(std::string_view name) const {
    const auto at =
        std::lower_bound(sorted_.begin(), sorted_.end(), name,
                         [](const auto* a, std::string_view b) { return key(a->name) < key(b); });
    return at == sorted_.end() || (*at)->name != name ? nullptr : *at;
  }

 private:
  /// Most names differ in their length, which is compared at once.
  static std::pair<size_t, std::string_view> key(std::string_view name) {
    return {name.size(), name};
  }

  std::vector<const elf::Symbol*> sorted_;
};

class KernelReader {
 public:
  KernelReader(const elf::File& file, CodeObject& object)
      : file_(file), object_(object), symbols_(file.symbols) {}

  void add(const msgpack::Value& map) {
    Described described = describe(map);
    KernelInfo& kernel = described.kernel;
    check_kernel(kernel);
    const elf::Symbol* symbol = symbols_.find(described.symbol);
    if (symbol == nullptr) bad_kernel("kernel " + shown(kernel.name) + " has no descriptor");
    kernel.descriptor = symbol->value;
    if (!is_new(kernel)) return;
    described.arguments.for_each_element([&](const msgpack::Value& argument) {
      kernel.arguments.push_back(read_argument(argument, kernel));
    });
    read_descriptor(file_, object_, kernel);
    object_.kernels.push_back(std::move(kernel));
  }

 private:
  /// Returns false for a kernel that another note has, too: objects may be linked from several with
  /// one kernel. Otherwise, kernels mustn't share a descriptor, so that a kernel of some bytes of
  /// metadata doesn't take some hundred bytes of memory.
  bool is_new(const KernelInfo& kernel) {
    const auto bad = [&](const std::string& other) {
      bad_kernel("the descriptors of kernels " + shown(other) + " and " + shown(kernel.name) +
                 " overlap");
    };
    const auto after = found_.lower_bound(kernel.descriptor);
    if (after != found_.end() && after->first - kernel.descriptor < 64) {
      const std::string& other = object_.kernels[after->second].name;
      if (after->first == kernel.descriptor && other == kernel.name) return false;
      bad(other);
    }
    if (after != found_.begin() && kernel.descriptor - std::prev(after)->first < 64) {
      bad(object_.kernels[std::prev(after)->second].name);
    }
    found_.emplace_hint(after, kernel.descriptor, object_.kernels.size());
    return true;
  }

  const elf::File& file_;
  CodeObject& object_;
  const SymbolTable symbols_;
  std::map<uint64_t, size_t> found_;  // numbers of kernels by the address of their descriptor
};

void read_print_formats(const msgpack::Value& formats, CodeObject& object) {
  formats.for_each_element([&](const msgpack::Value& format) {
    if (object.print_formats.size() == kMostPrintFormats) {
      bad_kernel("more than " + std::to_string(kMostPrintFormats) + " formats of printf");
    }
    object.print_formats.emplace_back(format.string);
  });
}

void read_kernels(const elf::File& file, CodeObject& object) {
  const std::vector<Bytes> notes = file.notes("AMDGPU", kMetadata);
  if (notes.empty()) bad_kernel("no metadata");
  KernelReader reader(file, object);
  for (const Bytes& note : notes) {
    msgpack::parse(note).for_each_entry([&](std::string_view key, const msgpack::Value& value) {
      if (key == "amdhsa.printf") read_print_formats(value, object);
      if (key != "amdhsa.kernels") return;
      value.for_each_element([&](const msgpack::Value& map) { reader.add(map); });
    });
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

CodeObject read_object(std::vector<uint8_t> bytes) {
  const elf::File file(bytes);
  CodeObject object;
  check_header(file, object);
  read_segments(file, object);
  read_relocations(file, object);
  read_functions(file, object);
  read_variables(file, object);
  read_kernels(file, object);
  for (const KernelInfo& kernel : object.kernels) add_entry(object.functions, kernel.entry);
  object.file = std::move(bytes);
  return object;
}

}  // namespace emu
