#pragma once

// Target names, their numbers in ELF headers, and which code runs on which device.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace emu {

/// The target of a code object, or the identity of a device.
struct Target {
  enum class Feature : uint8_t { unsupported, any, off, on };
  std::string processor;  // gfx1100, or gfx11-generic
  Feature xnack = Feature::unsupported, sramecc = Feature::unsupported;

  bool generic() const { return processor.ends_with("-generic"); }
  /// Returns the name in the compiler's format: `gfx90a:sramecc+:xnack-`.
  std::string name() const;
};

/// Reads the e_flags of an ELF header with ABI version 4 to 6. Returns nothing for an unknown
/// number.
std::optional<Target> target_of_flags(uint32_t flags, int abi);

/// Parses `gfx90a:sramecc+:xnack-`, with or without the prefix `amdgcn-amd-amdhsa--`.
std::optional<Target> parse_target(std::string_view name);

/// Returns how well code fits a device: 0 not at all, 1 as a generic target, 2 exactly.
int fit(const Target& code, const Target& device);

}  // namespace emu
