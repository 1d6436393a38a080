// A source of its own, because tests replace it.

#include "wick/backend/cpu/amx.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace wick::cpu {

#if defined(__x86_64__)
namespace {
// Options of arch_prctl, and the number of the state XTILEDATA.
constexpr long kGetSupported = 0x1021, kRequestPermission = 0x1023, kTileData = 18;
}  // namespace
#endif

namespace {

// Bits of cpuid.
constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;

/// Whether the processor has the features, and the system knows the state of tiles.
bool has_features([[maybe_unused]] unsigned features) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & features) != features) return false;
  uint64_t states = 0;
  return syscall(SYS_arch_prctl, kGetSupported, &states) == 0 && (states >> kTileData & 1) != 0;
#else
  return false;
#endif
}

}  // namespace

bool has_amx() { return has_features(kTile | kInt8); }
bool has_amx_bf16() { return has_features(kTile | kBf16); }

bool request_amx() {
#if defined(__x86_64__)
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace wick::cpu
