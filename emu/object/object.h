#pragma once

// A code object: what a loaded module is made from. Reading one never crashes, whatever it holds.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emu/object/bytes.h"
#include "emu/object/target.h"

namespace emu {

/// An argument of a kernel, hidden ones among them.
struct Argument {
  std::string name, kind;  // kind: by_value, global_buffer, hidden_block_count_x …
  uint32_t offset = 0, size = 0;

  bool hidden() const { return kind.starts_with("hidden_"); }
};

struct KernelInfo {
  std::string name;
  uint64_t descriptor = 0, entry = 0;  // addresses in the object
  uint8_t descriptor_bytes[64] = {};
  std::vector<Argument> arguments;
  uint32_t kernarg_bytes = 0, kernarg_alignment = 16;
  uint32_t lds_bytes = 0, scratch_bytes = 0, wavefront = 0, sgprs = 0, vgprs = 0, agprs = 0;
  uint32_t sgpr_spills = 0, vgpr_spills = 0, max_items = 1024;
  uint32_t required_block[3] = {0, 0, 0};
  bool dynamic_stack = false, uniform_groups = false, wgp_mode = false;

  /// Bytes of the arguments that a caller hands over.
  uint32_t explicit_bytes() const;
};

/// A function of the code; of those without a symbol the name says where they lie.
struct FunctionSymbol {
  std::string name;
  uint64_t address = 0, size = 0;
};

/// A variable that hosts find by name.
struct Variable {
  std::string name;
  uint64_t address = 0, size = 0;
};

/// A part of the image of the loaded object. Bytes beyond the file's are zero.
struct ObjectSegment {
  uint64_t address = 0, memory_bytes = 0;
  std::vector<uint8_t> bytes;
  bool executable = false, writable = false;
};

struct ObjectRelocation {
  uint64_t address = 0;   // where to write
  uint32_t type = 0;      // R_AMDGPU_…
  bool of_object = true;  // the value is within the object, else 0: nothing defines the symbol
  uint64_t value = 0;     // symbol and addend
};

struct CodeObject {
  Target target;
  int version = 5;            // of the code object's format
  uint64_t memory_bytes = 0;  // from address 0 to the end of the last segment
  std::vector<ObjectSegment> segments;
  std::vector<ObjectRelocation> relocations;
  std::vector<KernelInfo> kernels;
  std::vector<FunctionSymbol> functions;  // by address, none over another
  std::vector<Variable> variables;
  std::vector<uint8_t> text;
  uint64_t text_address = 0;
  std::vector<uint8_t> file;  // for line tables
};

/// Throws ObjectError.
CodeObject read_object(Bytes bytes);

}  // namespace emu
