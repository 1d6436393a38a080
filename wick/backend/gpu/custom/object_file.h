#pragma once

#include <string>
#include <string_view>

#include "wick/base/device.h"

namespace wick::gpu {

/// Checks that bytes are code that a driver can be given: an ELF file for the vendor whose parts
/// all lie inside, or PTX. Drivers are told no size, so a truncated file would make them read
/// beyond its end. Errors: the bytes are anything else; the message begins with `op`.
void check_code(std::string_view op, DeviceKind kind, std::string_view bytes);

}  // namespace wick::gpu
