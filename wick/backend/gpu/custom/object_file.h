#pragma once

#include <string_view>

#include "wick/base/device.h"

namespace wick::gpu {

/// Checks that the bytes are PTX or a complete ELF file for the vendor's GPUs. A driver isn't told
/// the size of an image, so it would read beyond the end of a truncated file. `op` begins the error
/// message. Errors: the bytes are neither.
void check_code(std::string_view op, DeviceKind kind, std::string_view bytes);

/// The metadata of a code object for AMD GPUs, in MessagePack; a part of `bytes`. Empty if the
/// bytes are something else. Source: the LLVM project's documentation of AMDGPU's code objects.
std::string_view amd_metadata(std::string_view bytes);

}  // namespace wick::gpu
