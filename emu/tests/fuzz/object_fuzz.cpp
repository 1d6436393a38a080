// What a program hands over as a module, from any bytes to lowered code: bundles, ELF, metadata,
// line tables, decoding and lowering of every function. Errors are exceptions of known types;
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

/// Enough of a hostile object's functions: each may span the whole text.
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const emu::Bytes bytes(data, size);
  load(bytes, "gfx1100", size % 2 == 0);
  load(bytes, "gfx90a", size % 2 != 0);
  return 0;
}
