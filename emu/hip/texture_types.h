#pragma once

// The types of arrays, textures and surfaces, in the layout of HIP's public headers.

#include <cstddef>
#include <cstdint>

#include "emu/hip/types.h"

enum hipChannelFormatKind : unsigned {
  hipChannelFormatKindSigned = 0,
  hipChannelFormatKindUnsigned = 1,
  hipChannelFormatKindFloat = 2,
  hipChannelFormatKindNone = 3
};
struct hipChannelFormatDesc {
  int x, y, z, w;  // bits of each component
  hipChannelFormatKind f;
};
enum hipArray_Format : unsigned {
  HIP_AD_FORMAT_UNSIGNED_INT8 = 1,
  HIP_AD_FORMAT_UNSIGNED_INT16 = 2,
  HIP_AD_FORMAT_UNSIGNED_INT32 = 3,
  HIP_AD_FORMAT_SIGNED_INT8 = 8,
  HIP_AD_FORMAT_SIGNED_INT16 = 9,
  HIP_AD_FORMAT_SIGNED_INT32 = 10,
  HIP_AD_FORMAT_HALF = 16,
  HIP_AD_FORMAT_FLOAT = 32
};
struct HIP_ARRAY_DESCRIPTOR {
  size_t Width, Height;
  hipArray_Format Format;
  unsigned NumChannels;
};

constexpr unsigned hipArrayDefault = 0, hipArrayLayered = 1, hipArraySurfaceLoadStore = 2,
                   hipArrayCubemap = 4, hipArrayTextureGather = 8;

enum hipResourceType : unsigned {
  hipResourceTypeArray = 0,
  hipResourceTypeMipmappedArray = 1,
  hipResourceTypeLinear = 2,
  hipResourceTypePitch2D = 3
};
struct hipResourceDesc {
  hipResourceType resType;
  union {
    struct {
      hipArray_t array;
    } array;
    struct {
      void* mipmap;
    } mipmap;
    struct {
      void* devPtr;
      hipChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      hipChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct hipResourceViewDesc {
  unsigned format;
  size_t width, height, depth;
  unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
};

enum hipTextureAddressMode : unsigned {
  hipAddressModeWrap = 0,
  hipAddressModeClamp = 1,
  hipAddressModeMirror = 2,
  hipAddressModeBorder = 3
};
enum hipTextureFilterMode : unsigned { hipFilterModePoint = 0, hipFilterModeLinear = 1 };
enum hipTextureReadMode : unsigned { hipReadModeElementType = 0, hipReadModeNormalizedFloat = 1 };
struct hipTextureDesc {
  hipTextureAddressMode addressMode[3];
  hipTextureFilterMode filterMode;
  hipTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  hipTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
};

typedef struct __hip_texture* hipTextureObject_t;
typedef struct __hip_surface* hipSurfaceObject_t;
typedef const struct hipArray* hipArray_const_t;

extern "C" {

hipChannelFormatDesc hipCreateChannelDesc(int x, int y, int z, int w, hipChannelFormatKind f);
hipError_t hipMallocArray(hipArray_t* array, const hipChannelFormatDesc* desc, size_t width,
                          size_t height, unsigned flags);
hipError_t hipMalloc3DArray(hipArray_t* array, const hipChannelFormatDesc* desc, hipExtent extent,
                            unsigned flags);
hipError_t hipFreeArray(hipArray_t array);
hipError_t hipArrayCreate(hipArray_t* array, const HIP_ARRAY_DESCRIPTOR* desc);
hipError_t hipArrayDestroy(hipArray_t array);
hipError_t hipArrayGetInfo(hipChannelFormatDesc* desc, hipExtent* extent, unsigned* flags,
                           hipArray_t array);
hipError_t hipArrayGetDescriptor(HIP_ARRAY_DESCRIPTOR* desc, hipArray_t array);
hipError_t hipGetChannelDesc(hipChannelFormatDesc* desc, hipArray_const_t array);
hipError_t hipMemcpy2DToArray(hipArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                              size_t width, size_t height, hipMemcpyKind kind);
hipError_t hipMemcpy2DToArrayAsync(hipArray_t to, size_t x, size_t y, const void* from,
                                   size_t pitch, size_t width, size_t height, hipMemcpyKind kind,
                                   hipStream_t stream);
hipError_t hipMemcpy2DFromArray(void* to, size_t pitch, hipArray_const_t from, size_t x, size_t y,
                                size_t width, size_t height, hipMemcpyKind kind);
hipError_t hipMemcpy2DFromArrayAsync(void* to, size_t pitch, hipArray_const_t from, size_t x,
                                     size_t y, size_t width, size_t height, hipMemcpyKind kind,
                                     hipStream_t stream);
hipError_t hipMemcpy2DArrayToArray(hipArray_t to, size_t to_x, size_t to_y, hipArray_const_t from,
                                   size_t from_x, size_t from_y, size_t width, size_t height,
                                   hipMemcpyKind kind);
hipError_t hipMemcpyToArray(hipArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                            hipMemcpyKind kind);
hipError_t hipMemcpyFromArray(void* to, hipArray_const_t from, size_t x, size_t y, size_t bytes,
                              hipMemcpyKind kind);
hipError_t hipMemcpyHtoA(hipArray_t to, size_t offset, const void* from, size_t bytes);
hipError_t hipMemcpyAtoH(void* to, hipArray_t from, size_t offset, size_t bytes);

hipError_t hipCreateTextureObject(hipTextureObject_t* texture, const hipResourceDesc* resource,
                                  const hipTextureDesc* desc, const hipResourceViewDesc* view);
hipError_t hipDestroyTextureObject(hipTextureObject_t texture);
hipError_t hipGetTextureObjectResourceDesc(hipResourceDesc* resource, hipTextureObject_t texture);
hipError_t hipGetTextureObjectTextureDesc(hipTextureDesc* desc, hipTextureObject_t texture);
hipError_t hipGetTextureObjectResourceViewDesc(hipResourceViewDesc* view,
                                               hipTextureObject_t texture);
hipError_t hipCreateSurfaceObject(hipSurfaceObject_t* surface, const hipResourceDesc* resource);
hipError_t hipDestroySurfaceObject(hipSurfaceObject_t surface);
// The old references of textures.
hipError_t hipBindTexture(size_t* offset, const void* reference, const void* memory,
                          const hipChannelFormatDesc* desc, size_t bytes);
hipError_t hipBindTexture2D(size_t* offset, const void* reference, const void* memory,
                            const hipChannelFormatDesc* desc, size_t width, size_t height,
                            size_t pitch);
hipError_t hipBindTextureToArray(const void* reference, hipArray_const_t array,
                                 const hipChannelFormatDesc* desc);
hipError_t hipUnbindTexture(const void* reference);
hipError_t hipGetTextureReference(const void** reference, const void* symbol);
hipError_t hipModuleGetTexRef(void** reference, hipModule_t module, const char* name);

}  // extern "C"
