// RDNA3.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture common() {
  Architecture a = kRdna;
  a.generation = a.major = 11;
  return a;
}

/// RDNA3.5 adds scalar floats, which other chips of the family lack in LLVM's dictionary.
constexpr Architecture rdna35(Architecture a) {
  a.minor = 5;
  return a;
}

constexpr Architecture kArchitectures[] = {
    device(common(), "gfx1100", "AMD Radeon RX 7900 XTX (wick-emu)", 0, 48, 2482000, 1249000, 384,
           6 << 20),
    device(common(), "gfx1101", "AMD Radeon RX 7800 XT (wick-emu)", 1, 30, 2430000, 1218000, 256,
           4 << 20),
    rdna35(device(common(), "gfx1151", "AMD Radeon 8060S (wick-emu)", 1, 20, 2900000, 2000000, 256,
                  2 << 20)),
};

}  // namespace

extern const Family gfx11_family = {{.generation = 11}, kArchitectures};

}  // namespace emu
