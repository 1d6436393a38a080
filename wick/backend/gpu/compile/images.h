#pragma once

// The kernels in the binary: one archive of compiled images for each architecture, and one of the
// sources. An archive is compressed, and is unpacked when a device first needs it.

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

/// The architectures of both vendors that the binary has images for ("sm_90a", "gfx1100").
std::vector<std::string> image_architectures();

/// The images for a device, such as "map_f32" → the code object of map_f32.gpu. If several archives
/// suit, the closest is taken: the architecture itself, then a generic one, then PTX of an older
/// one. Nothing if none suits. `chosen` gets the name of the archive.
std::optional<Files> find_images(std::string_view architecture, std::string& chosen);
/// Whether there are images for a device. It doesn't unpack them.
bool has_images(std::string_view architecture, std::string& chosen);

/// The text of every header and kernel file, by its path in the repository.
const Files& kernel_sources();

}  // namespace wick::gpu
