// Fuzzes everything between the bytes of a module and lowered code: bundles, ELF, metadata, line
// tables, and decoding and lowering of every function. Errors must be exceptions of known types;
// anything else is a find.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "emu/arch/architecture.h"
#include "emu/exec/launch.h"
#include "emu/object/bundle.h"
#include "emu/object/error.h"
#include "emu/object/lines.h"
#include "emu/object/object.h"

namespace {

/// Limits the number of a hostile object's functions, each of which may span the whole text.
constexpr size_t kMostFunctions = 64;

void lower_all(const emu::CodeObject& object, const emu::Architecture& architecture, bool checked) {
  const bool wave64 = !object.kernels.empty() && object.kernels[0].wavefront == 64;
  const emu::Traits traits = emu::traits_of(architecture, wave64);
  std::vector<emu::Symbol> functions;
  for (const emu::FunctionSymbol& f : object.functions) {
    functions.push_back({f.name, f.address, f.size});
  }
  emu::Code code(architecture.name, traits, emu::select_rows(checked, traits.generation),
                 object.text, object.text_address, functions);
  size_t left = kMostFunctions;
  for (const emu::Symbol& function : functions) {
    if (left-- == 0) return;
    try {
      code.at(function.address);
    } catch (const std::runtime_error&) {
    }
  }
}

void load(emu::Bytes bytes, const char* device, bool checked) {
  const emu::Architecture* architecture = emu::find_architecture(device);
  try {
    const auto image = emu::select_image(bytes, *emu::parse_target(architecture->full_name));
    const emu::CodeObject object = emu::read_object(image);
    lower_all(object, *architecture, checked);
    const auto lines = emu::Lines::of(object.file);
    for (const emu::KernelInfo& kernel : object.kernels) lines->at(kernel.entry);
  } catch (const emu::ObjectError&) {
  }
}

/// Lowers these instructions as one function.
void lower_text(emu::Bytes text, uint8_t kind) {
  static constexpr const char* kArchitectures[] = {"gfx1100", "gfx90a", "gfx1030", "gfx1200"};
  const emu::Architecture& architecture = *emu::find_architecture(kArchitectures[kind % 4]);
  const bool wave64 = architecture.generation == 9 || (kind & 4) != 0, checked = (kind & 8) != 0;
  const emu::Traits traits = emu::traits_of(architecture, wave64);
  constexpr uint64_t kAddress = 0x1000;
  emu::Code code(architecture.name, traits, emu::select_rows(checked, traits.generation),
                 {text.begin(), text.end()}, kAddress, {{"text", kAddress, text.size()}});
  code.profiled = (kind & 16) != 0;
  try {
    code.at(kAddress);
  } catch (const std::runtime_error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const emu::Bytes bytes(data, size);
  if (size > 2 && data[0] == 'T') {
    lower_text(bytes.subspan(2), data[1]);
    return 0;
  }
  load(bytes, "gfx1100", size % 2 == 0);
  load(bytes, "gfx90a", size % 2 != 0);
  return 0;
}
