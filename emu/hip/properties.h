#pragma once

// What a device says of itself: see attributes.cpp.

#include "emu/hip/api.h"

namespace emu::hip {

void fill_properties(const Device& device, hipDeviceProp_tR0600& properties);
/// The structure as it was before HIP 6.
void fill_properties(const Device& device, hipDeviceProp_tR0000& properties);

/// Throws for what isn't known.
int attribute_of(const Device& device, hipDeviceAttribute_t attribute);

}  // namespace emu::hip
