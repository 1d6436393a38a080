#pragma once

// Arrays: memory of one or two dimensions that textures and surfaces read.

#include "emu/exec/image.h"
#include "emu/hip/api.h"
#include "emu/hip/texture_types.h"

/// An array of elements. Its rows are `pitch` bytes apart in the memory of its device.
struct hipArray {
  ~hipArray();
  uintptr_t memory = 0;
  size_t width = 0, height = 0;  // height: 0 if there is one dimension
  size_t pitch = 0;
  hipChannelFormatDesc desc{};
  unsigned flags = 0;
  int device = 0;

  size_t rows() const { return height == 0 ? 1 : height; }
  size_t element() const { return static_cast<size_t>(desc.x + desc.y + desc.z + desc.w) / 8; }
};

namespace emu::hip {

/// Throws hipErrorNotSupported if the device has no instructions for images.
void require_images(const Device& device);
/// Returns the format of elements, which has no size if there is no such format.
PixelFormat format_of(const hipChannelFormatDesc& desc);
/// Throws hipErrorInvalidHandle if it isn't an array.
std::shared_ptr<hipArray> find_array(hipArray_const_t handle);
/// Returns the copy with the arrays' memory in place of the arrays, and bytes in place of elements.
hipMemcpy3DParms without_arrays(const hipMemcpy3DParms& parms);
hip_Memcpy2D without_arrays(const hip_Memcpy2D& parms);

}  // namespace emu::hip
