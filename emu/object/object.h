#pragma once

// A code object, from which a module is loaded. Reading is safe for any input: limits.h says how
// work and memory are limited.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emu/object/bytes.h"
#include "emu/object/target.h"

namespace emu {

/// An argument of a kernel, explicit or hidden.
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

  /// Returns the size of the arguments that the caller passes.
  uint32_t explicit_bytes() const;
};

/// A function of the code. If it has no symbol, its name contains its address.
struct FunctionSymbol {
  std::string name;
  uint64_t address = 0, size = 0;
  std::vector<uint64_t> entries = {};  // its own address if it has a symbol, and those of kernels
};

/// A variable that host code finds by name.
struct Variable {
  std::string name;
  uint64_t address = 0, size = 0;
};

/// A segment of the loaded object. Bytes beyond those of the file are zero.
struct ObjectSegment {
  uint64_t address = 0, memory_bytes = 0;
  std::vector<uint8_t> bytes;
  bool executable = false, writable = false;
};

struct ObjectRelocation {
  uint64_t address = 0;  // where to write
  uint32_t type = 0;     // R_AMDGPU_…
  // The value is relative to the object; false if the symbol is undefined, with value 0.
  bool of_object = true;
  uint64_t value = 0;  // symbol plus addend
};

struct CodeObject {
  Target target;
  int version = 5;            // version of the code object format
  uint64_t memory_bytes = 0;  // from address 0 to the end of the last segment
  std::vector<ObjectSegment> segments;
  std::vector<ObjectRelocation> relocations;
  std::vector<KernelInfo> kernels;
  std::vector<FunctionSymbol> functions;  // sorted by address, without overlaps
  std::vector<Variable> variables;
  std::vector<std::string> print_formats;  // of kernels that print into a buffer
  std::vector<uint8_t> text;
  uint64_t text_address = 0;
  std::vector<uint8_t> file;  // kept for the line tables
};

/// Throws ObjectError.
CodeObject read_object(std::vector<uint8_t> file);

}  // namespace emu
