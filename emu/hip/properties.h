#pragma once

// Device properties and attributes, implemented in attributes.cpp.

#include "emu/hip/api.h"

namespace emu::hip {

void fill_properties(const Device& device, hipDeviceProp_tR0600& properties);
/// The layout of the structure before HIP 6.
void fill_properties(const Device& device, hipDeviceProp_tR0000& properties);

/// Throws if the attribute is unknown.
int attribute_of(const Device& device, hipDeviceAttribute_t attribute);

}  // namespace emu::hip
