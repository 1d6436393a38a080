#pragma once

// The source of a kernel that is given as the text of its body.

#include <cstdint>
#include <string>
#include <vector>

#include "wick/backend/custom_kernel.h"

namespace wick::gpu {

/// The name of the kernel in the generated source: "custom_" and the op's name.
std::string kernel_name(std::string_view op);

/// The source that declares a kernel for a launch: the constants, a struct of arguments, names for
/// the body, and the body. Launches whose arguments differ only in addresses, sizes, strides and
/// numbers have the same source. Errors: a name isn't an identifier or is used twice; there are
/// several axes of threads.
std::string source_of(const KernelLaunch& launch);

/// A key: launches with the same key have the same source. The key is made at each launch, the
/// source only where the key is new.
std::string key_of(const KernelLaunch& launch);

/// The struct of arguments that the source declares, as words of 8 bytes.
std::vector<uint64_t> argument_words(const KernelLaunch& launch);

/// The arguments of a code object's kernel as a C compiler lays out a struct of them.
std::vector<std::byte> packed_arguments(std::span<const KernelArgument> arguments);

}  // namespace wick::gpu
