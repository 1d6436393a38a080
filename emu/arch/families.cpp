#include "emu/arch/architecture.h"

namespace emu {

extern const Family gfx9_family, gfx10_family, gfx11_family, gfx12_family;

namespace {

constexpr const Family* kFamilies[] = {&gfx9_family, &gfx10_family, &gfx11_family, &gfx12_family};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  name = name.substr(0, name.find(':'));
  for (const Family* family : kFamilies) {
    for (const Architecture& architecture : family->architectures) {
      if (name == architecture.name) return &architecture;
    }
  }
  return nullptr;
}

std::string_view row_name(int generation, std::string_view name) {
  for (const Family* family : kFamilies) {
    if (family->traits.generation != generation) continue;
    for (const Renamed& renamed : family->renamed) {
      if (renamed.name == name) return renamed.row;
    }
  }
  return name;
}

Traits traits_of(const Architecture& architecture, bool wave64) {
  Traits traits;
  for (const Family* family : kFamilies) {
    if (family->traits.generation == architecture.generation) traits = family->traits;
  }
  traits.wave64 = wave64;
  const bool is_gfx950 = architecture.generation == 9 && architecture.minor == 5;
  traits.ocp_float8 = is_gfx950 || architecture.generation >= 12;
  return traits;
}

}  // namespace emu
