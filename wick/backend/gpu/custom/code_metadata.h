#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace wick::gpu {

/// The bytes of the arguments, without hidden ones, of the kernels of a code object for AMD GPUs,
/// by the kernels' names. Empty if the bytes are something else or damaged. Source: the LLVM
/// project's documentation of AMDGPU's code object metadata, and MessagePack's specification.
std::unordered_map<std::string, int64_t> kernel_argument_bytes(std::string_view bytes);

}  // namespace wick::gpu
