// RDNA4.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture common() {
  Architecture a = kRdna;
  a.generation = a.major = 12;
  return a;
}

constexpr Architecture kArchitectures[] = {
    device(common(), "gfx1200", "AMD Radeon RX 9060 XT (wick-emu)", 0, 16, 3130000, 1258000, 128,
           4 << 20),
};

}  // namespace

extern const Family gfx12_family = {{.generation = 12}, kArchitectures};

}  // namespace emu
