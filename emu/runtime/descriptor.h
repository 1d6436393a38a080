#pragma once

#include "emu/exec/launch.h"
#include "emu/object/bytes.h"

namespace emu {

/// Reads the 64 bytes of a kernel's descriptor. Source: AMDGPU backend guide, code object V3 kernel
/// descriptor.
Descriptor read_descriptor(Bytes bytes);

}  // namespace emu
