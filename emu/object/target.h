#pragma once

// Architectures: their names, their numbers in ELF headers, and which code runs on which device.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace emu {

/// What a code object was built for, or what a device is.
struct Target {
  enum class Feature : uint8_t { unsupported, any, off, on };
  std::string processor;  // gfx1100, or gfx11-generic
  Feature xnack = Feature::unsupported, sramecc = Feature::unsupported;

  bool generic() const { return processor.ends_with("-generic"); }
  /// As compilers write it: `gfx90a:sramecc+:xnack-`.
  std::string name() const;
};

/// From the e_flags of an ELF header with ABI version 4 to 6; none where the number isn't known.
std::optional<Target> target_of_flags(uint32_t flags, int abi);

/// From `gfx90a:sramecc+:xnack-`, or with `amdgcn-amd-amdhsa--` before it.
std::optional<Target> parse_target(std::string_view name);

/// How well code fits a device: 0 not at all, 1 as a generic target, 2 exactly.
int fit(const Target& code, const Target& device);

}  // namespace emu
