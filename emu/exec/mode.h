#pragma once

// The MODE register sets rounding and the treatment of denormals, separately for 32-bit floats and
// for 16- and 64-bit ones. The host's MXCSR follows the 32-bit settings. Compilers set rounding to
// nearest with denormals, and this setting costs nothing.

#include <cstdint>

#include "emu/exec/wave.h"

namespace emu {

inline constexpr uint32_t kDefaultFloatMode = 0xf0;
/// With this bit, minimum and maximum return signalling NaNs as quiet NaNs.
inline constexpr uint32_t kIeeeMode = 0x200;
/// With this bit, FP16_OVFL, numbers too large for an 8-bit float become its largest number.
inline constexpr uint32_t kClampsOverflow = 1 << 23;
// MXCSR: round to nearest, denormals kept, exceptions masked
inline constexpr uint32_t kHostDefault = 0x1f80;

inline bool unusual_mode(const Wave* w) { return (w->mode & 0xff) != kDefaultFloatMode; }

/// Returns the MXCSR for two bits of rounding and two of denormal handling.
inline uint32_t host_mode(uint32_t round, uint32_t denormals) {
  constexpr uint32_t kRounding[] = {0, 2, 1, 3};  // MODE: nearest, up, down, to zero
  uint32_t host = kHostDefault | kRounding[round & 3] << 13;
  if ((denormals & 1) == 0) host |= 1 << 6;   // source denormals are zero
  if ((denormals & 2) == 0) host |= 1 << 15;  // result denormals are zero
  return host;
}
inline uint32_t host_mode_32(uint32_t mode) { return host_mode(mode, mode >> 4); }
inline uint32_t host_mode_64(uint32_t mode) { return host_mode(mode >> 2, mode >> 6); }

inline void set_host_mode(uint32_t host) { asm volatile("ldmxcsr %0" ::"m"(host) : "memory"); }

/// Runs a wave under its own mode and restores the host's default mode afterwards.
template <class Run>
auto under_mode(Wave* w, const Run& run) {
  const bool before = unusual_mode(w);
  if (before) [[unlikely]]
    set_host_mode(host_mode_32(w->mode));
  const auto result = run();
  if (before || unusual_mode(w)) [[unlikely]]
    set_host_mode(kHostDefault);
  return result;
}

}  // namespace emu
