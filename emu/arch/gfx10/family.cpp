// RDNA2.

#include "emu/arch/architecture.h"

namespace emu {
namespace {

constexpr Architecture common() {
  Architecture a = kRdna;
  a.generation = a.major = 10;
  a.minor = 3;
  a.vgprs = 1024;
  a.vgpr_granule = 16;
  return a;
}

constexpr Architecture kArchitectures[] = {
    device(common(), "gfx1030", "AMD Radeon RX 6900 XT (wick-emu)", 0, 40, 2250000, 1000000, 256,
           4 << 20),
};

}  // namespace

extern const Family gfx10_family = {{.generation = 10}, kArchitectures};

}  // namespace emu
