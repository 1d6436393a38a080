#include "emu/exec/approximate.h"

#include <cstdlib>

namespace emu {

const uint32_t approximation_seed = [] {
  const char* seed = std::getenv("WICK_EMU_APPROX");
  return seed == nullptr ? 0u : static_cast<uint32_t>(std::strtoul(seed, nullptr, 0));
}();

}  // namespace emu
