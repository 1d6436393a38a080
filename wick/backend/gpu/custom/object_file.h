#pragma once

#include <string>
#include <string_view>

#include "wick/base/device.h"

namespace wick::gpu {

/// Checks that the bytes are PTX or a complete ELF file for the vendor's GPUs. A driver isn't told
/// the size of an image, so it would read beyond the end of a truncated file. `op` begins the error
/// message. Errors: the bytes are neither.
void check_code(std::string_view op, DeviceKind kind, std::string_view bytes);

}  // namespace wick::gpu
