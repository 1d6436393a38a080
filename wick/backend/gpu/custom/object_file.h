#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "wick/base/device.h"

namespace wick::gpu {

/// Checks that the bytes are PTX or a complete ELF file for the vendor's GPUs. A driver isn't told
/// the size of an image, so it would read beyond the end of a truncated file. `op` begins the error
/// message. Errors: the bytes are neither.
void check_code(std::string_view op, DeviceKind kind, std::string_view bytes);

/// The bytes of the arguments, hidden ones included, of the kernels of a code object for AMD GPUs,
/// by the kernels' names. Empty if the bytes are something else. Source: the LLVM project's
/// documentation of AMDGPU's kernel descriptors.
std::unordered_map<std::string, int64_t> kernel_argument_bytes(std::string_view bytes);

}  // namespace wick::gpu
