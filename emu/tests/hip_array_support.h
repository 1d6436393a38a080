#pragma once

// Helpers that the tests of arrays and of textures share.

#include "emu/hip/texture_types.h"
#include "emu/tests/hip_support.h"

inline hipChannelFormatDesc desc_of(int bits, int channels, hipChannelFormatKind kind) {
  return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}

/// An array that is freed at the end of its scope.
struct Array {
  Array(const hipChannelFormatDesc& desc, size_t width, size_t height, unsigned flags = 0) {
    EXPECT_EQ(hipSuccess, hipMallocArray(&handle, &desc, width, height, flags));
  }
  ~Array() { EXPECT_EQ(hipSuccess, hipFreeArray(handle)); }
  operator hipArray_t() const { return handle; }
  hipResourceDesc resource() const {
    hipResourceDesc resource{};
    resource.resType = hipResourceTypeArray;
    resource.res.array.array = handle;
    return resource;
  }
  hipArray_t handle = nullptr;
};

struct Texture {
  Texture(const hipResourceDesc& resource, const hipTextureDesc& desc) {
    EXPECT_EQ(hipSuccess, hipCreateTextureObject(&handle, &resource, &desc, nullptr));
  }
  ~Texture() { EXPECT_EQ(hipSuccess, hipDestroyTextureObject(handle)); }
  operator hipTextureObject_t() const { return handle; }
  hipTextureObject_t handle = nullptr;
};

inline hipTextureDesc texture_desc(hipTextureAddressMode mode, hipTextureFilterMode filter,
                                   bool normalized) {
  hipTextureDesc desc{};
  desc.addressMode[0] = desc.addressMode[1] = desc.addressMode[2] = mode;
  desc.filterMode = filter;
  desc.normalizedCoords = normalized;
  return desc;
}

constexpr int kWidth = 13, kHeight = 7;

inline float texel(int x, int y) { return static_cast<float>(10 * y + x) + 0.25f; }

inline std::vector<float> texels() {
  std::vector<float> all;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) all.push_back(texel(x, y));
  }
  return all;
}

inline void fill(const Array& array) {
  const std::vector<float> all = texels();
  HIP_OK(hipMemcpy2DToArray(array, 0, 0, all.data(), kWidth * 4, kWidth * 4, kHeight,
                            hipMemcpyHostToDevice));
}
