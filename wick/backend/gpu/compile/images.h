#pragma once

// Kernels as the build left them in the binary: for each architecture one archive of compiled
// images, and one of their sources. An archive is compressed; it is unpacked when a device first
// needs it.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wick::gpu {

/// Files by name.
using Files = std::map<std::string, std::string, std::less<>>;

/// "sm_86" and "sm_90a" → 86 and 90; 0 for anything else.
int cuda_number(std::string_view architecture);

/// Architectures that the binary has images for ("sm_90a", "gfx1100"), of both vendors.
std::vector<std::string> image_architectures();

/// The images for a device: "map" → the code object of map.gpu. Of several that would do the
/// closest: the architecture itself, then generic ones, then PTX of an older one. Nothing where
/// none does. `chosen` gets the name of the archive.
std::optional<Files> find_images(std::string_view architecture, std::string& chosen);
/// Whether there are some, without unpacking them.
bool has_images(std::string_view architecture, std::string& chosen);

/// The text of every header and kernel, by its path in the repository.
const Files& kernel_sources();

}  // namespace wick::gpu
