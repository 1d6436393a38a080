#pragma once

// Finds the code of a kernel in device memory. The runtime's loader leaves a code object's segments
// there, at the addresses of its program headers; the runtime's own kernels have a descriptor and
// code alone.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emu/arch/architecture.h"
#include "emu/exec/launch.h"
#include "emu/model/memory.h"
#include "emu/object/bytes.h"
#include "emu/object/object.h"

namespace emu::model {

/// What a loaded image contains. Addresses are relative to its start.
struct Image {
  uint64_t bytes = 0;  // size in memory
  uint64_t text_address = 0;
  std::vector<uint8_t> text;
  std::vector<FunctionSymbol> functions;    // cover the whole text, sorted by address
  std::map<uint64_t, std::string> kernels;  // names by the address of the descriptor
};

/// Reads the image that starts at the first of these addresses, and may end before the last one.
/// Reads only copies of the memory, which may be freed meanwhile. Throws ObjectError.
Image read_image(const Range& memory);

/// Returns the number of bytes of code without symbols, which ends at an s_endpgm that zeros,
/// padding or the end of the memory follow. Returns 0 if there is none in the first 64 KiB.
size_t code_bytes(Bytes memory, int generation);

/// The code of a kernel, and where it lies.
struct LoadedCode {
  uint64_t base = 0;  // where the image starts
  Image image;
  std::unique_ptr<Code> codes[2];  // for waves of 32 and 64 lanes
};

class CodeTable {
 public:
  CodeTable(DeviceMemory& memory, const Architecture& architecture)
      : memory_(memory), architecture_(architecture) {}

  /// Returns the code that contains the descriptor of a kernel and its entry. Throws ObjectError if
  /// there is none.
  std::shared_ptr<LoadedCode> find(uint64_t descriptor, uint64_t entry);
  /// Returns the code lowered for waves of 32 or 64 lanes.
  Code& lowered(LoadedCode& loaded, bool wave64);
  /// Removes code in memory that was freed.
  void forget(uint64_t address, uint64_t bytes);
  /// The runtime may have changed code: what is found next is compared with the memory.
  void invalidate();

 private:
  struct Entry {
    std::shared_ptr<LoadedCode> loaded;
    uint64_t checked = 0;  // the generation in which it was last compared
  };
  std::shared_ptr<LoadedCode> load(uint64_t descriptor, uint64_t entry);

  DeviceMemory& memory_;
  const Architecture& architecture_;
  std::mutex mutex_;
  uint64_t generation_ = 1;
  std::map<uint64_t, Entry> entries_;  // by the first address of their text
};

}  // namespace emu::model
