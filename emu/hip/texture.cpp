// Objects of textures and surfaces: descriptors of images and samplers in device memory, where
// kernels read them. The object's address is its handle.

#include <algorithm>
#include <cstring>

#include "emu/hip/array.h"

namespace emu::hip {
namespace {

// Dwords of an object, as HIP's device functions expect them. They read an image's width to round
// coordinates.
constexpr size_t kWidthAt = 10, kSamplerAt = 12;
constexpr uint32_t kMostWidth = 16384;     // of images
constexpr size_t kMostElements = 1 << 27;  // of linear memory
constexpr size_t kAlignment = 256;

/// An object and what it was made of. The array remains as long as the object.
struct Object {
  ~Object() {
    if (memory != 0) Runtime::get().memory->free(memory);
  }
  uintptr_t memory = 0;
  int device = 0;
  hipResourceDesc resource{};
  hipTextureDesc texture{};
  hipResourceViewDesc view{};
  std::shared_ptr<hipArray> array;
};

class Objects {
 public:
  void add(const std::shared_ptr<Object>& object) {
    std::lock_guard lock(mutex_);
    all_[object->memory] = object;
  }
  std::shared_ptr<Object> find(const void* handle) {
    std::lock_guard lock(mutex_);
    const auto at = all_.find(address(handle));
    require(at != all_.end());
    return at->second;
  }
  /// Waits for kernels that may still read the descriptors, which go with the last reference.
  void destroy(const void* handle) {
    const std::shared_ptr<Object> object = find(handle);
    device(object->device).wait();
    std::lock_guard lock(mutex_);
    require(all_.erase(address(handle)) != 0);
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, std::shared_ptr<Object>> all_;
};

Objects& textures() {
  static auto* all = new Objects;
  return *all;
}
Objects& surfaces() {
  static auto* all = new Objects;
  return *all;
}

/// Missing components are 0, and a missing fourth one is 1.
uint32_t selectors_of(PixelFormat format) {
  constexpr uint32_t kAll[] = {4, 5, 6, 7};
  uint32_t selectors = 0;
  for (unsigned i = 0; i < 4; ++i) {
    selectors |= (i < format.components ? kAll[i] : i == 3 ? 1 : 0) << 3 * i;
  }
  return selectors;
}

/// Integers of 8 and 16 bits are read as fractions if the texture asks for it.
PixelFormat read_format(const hipChannelFormatDesc& desc, const hipTextureDesc& texture) {
  PixelFormat format = format_of(desc);
  require(format.known());
  if (texture.readMode == hipReadModeNormalizedFloat && format.bytes < 4 && format.integer()) {
    format.numbers = format.numbers == Numbers::uint ? Numbers::unorm : Numbers::snorm;
  }
  return format;
}

Image image_of(const hipArray& array, PixelFormat format) {
  Image image;
  image.base = array.memory;
  image.width = static_cast<uint32_t>(array.width);
  image.height = static_cast<uint32_t>(array.rows());
  image.pitch = array.pitch;
  image.format = format;
  image.selectors = selectors_of(format);
  image.type = array.height == 0 ? ImageType::line : ImageType::plane;
  return image;
}

Image image_of(const hipResourceDesc& resource, PixelFormat format) {
  const auto& r = resource.res.pitch2D;
  require(r.devPtr != nullptr && address(r.devPtr) % kAlignment == 0);
  require(r.width != 0 && r.width < kMostWidth && r.height != 0 && r.height < kMostWidth);
  require(r.pitchInBytes % kAlignment == 0 && r.pitchInBytes % format.size() == 0);
  require(r.pitchInBytes >= r.width * format.size());
  require(r.pitchInBytes / format.size() <= kMostWidth);
  check_range(r.devPtr, (r.height - 1) * r.pitchInBytes + r.width * format.size(), "the texture");
  Image image;
  image.base = address(r.devPtr);
  image.width = static_cast<uint32_t>(r.width);
  image.height = static_cast<uint32_t>(r.height);
  image.pitch = r.pitchInBytes;
  image.format = format;
  image.selectors = selectors_of(format);
  return image;
}

/// Writes the descriptor of a buffer, by which kernels read textures of linear memory.
void write_buffer(const hipResourceDesc& resource, PixelFormat format, int generation,
                  uint32_t* d) {
  const auto& r = resource.res.linear;
  require(r.devPtr != nullptr && address(r.devPtr) % kAlignment == 0);
  const size_t elements = r.sizeInBytes / format.size();
  require(elements < kMostElements);
  check_range(r.devPtr, r.sizeInBytes, "the texture");
  const uint64_t base = address(r.devPtr);
  std::fill(d, d + 8, 0u);
  d[0] = static_cast<uint32_t>(base);
  d[1] = static_cast<uint32_t>(base >> 32) | format.size() << 16;
  d[2] = static_cast<uint32_t>(elements);
  d[3] = selectors_of(format) | format_number(generation, format) << 12;
}

Sampler sampler_of(const hipResourceDesc& resource, const hipTextureDesc& texture) {
  Sampler sampler;
  sampler.unnormalized = texture.normalizedCoords == 0;
  if (resource.resType == hipResourceTypeLinear) return sampler;
  // As in AMD's runtime, the first dimension's mode holds for all.
  Clamp clamp = Clamp::edge;
  const hipTextureAddressMode mode = texture.addressMode[0];
  if (mode == hipAddressModeWrap && texture.normalizedCoords != 0) clamp = Clamp::wrap;
  if (mode == hipAddressModeMirror && texture.normalizedCoords != 0) clamp = Clamp::mirror;
  if (mode == hipAddressModeBorder) clamp = Clamp::border;
  sampler.clamp[0] = sampler.clamp[1] = clamp;
  sampler.linear = sampler.linear_small = texture.filterMode == hipFilterModeLinear;
  return sampler;
}

void check_texture(const hipResourceDesc& resource, const hipTextureDesc& texture,
                   const hipResourceViewDesc* view) {
  require(resource.resType <= hipResourceTypePitch2D);
  require(view == nullptr || resource.resType <= hipResourceTypeMipmappedArray);
  require(texture.addressMode[0] <= hipAddressModeBorder);
  require(texture.filterMode <= hipFilterModeLinear &&
          texture.readMode <= hipReadModeNormalizedFloat);
  if (resource.resType == hipResourceTypeMipmappedArray) {
    require(resource.res.mipmap.mipmap != nullptr && texture.normalizedCoords != 0);
    throw Error{hipErrorNotSupported};
  }
  require(view == nullptr, hipErrorNotSupported);
  require(texture.maxAnisotropy == 0 && texture.mipmapLevelBias == 0 &&
              texture.minMipmapLevelClamp == 0 && texture.maxMipmapLevelClamp == 0,
          hipErrorNotSupported);
  require(texture.sRGB == 0, hipErrorNotSupported);
}

void write_object(const Image& image, int generation, uint32_t* words) {
  write_image(image, generation, words);
  words[kWidthAt] = image.width;
}

/// Allocates an object's memory and writes the descriptors there.
void publish(Object& object, Device& device, const uint32_t (&words)[kSamplerAt + 8]) {
  Allocation wanted;
  wanted.bytes = sizeof words;
  wanted.kind = MemoryKind::internal;
  wanted.device = object.device = device.ordinal;
  wanted.label = "an object of a texture or surface";
  object.memory = memory().allocate(wanted);
  if (object.memory == 0) throw Error{hipErrorOutOfMemory};
  std::memcpy(reinterpret_cast<void*>(object.memory), words, sizeof words);
  memory().shadow().written(object.memory, sizeof words);
}

std::shared_ptr<Object> make_texture(const hipResourceDesc& resource,
                                     const hipTextureDesc& texture) {
  Device& d = current_device();
  const int generation = d.architecture.generation;
  auto object = std::make_shared<Object>();
  object->resource = resource;
  object->texture = texture;
  uint32_t words[kSamplerAt + 8] = {};
  if (resource.resType == hipResourceTypeArray) {
    require(resource.res.array.array != nullptr);
    object->array = find_array(resource.res.array.array);
    const PixelFormat format = read_format(object->array->desc, texture);
    write_object(image_of(*object->array, format), generation, words);
  } else if (resource.resType == hipResourceTypePitch2D) {
    write_object(image_of(resource, read_format(resource.res.pitch2D.desc, texture)), generation,
                 words);
  } else {
    write_buffer(resource, read_format(resource.res.linear.desc, texture), generation, words);
  }
  write_sampler(sampler_of(resource, texture), words + kSamplerAt);
  publish(*object, d, words);
  return object;
}

hipError_t no_references() { return hipErrorNotSupported; }

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipCreateTextureObject(hipTextureObject_t* texture,
                                          const hipResourceDesc* resource,
                                          const hipTextureDesc* desc,
                                          const hipResourceViewDesc* view) {
  EMU_CALL({
    require_images(current_device());
    require(texture != nullptr && resource != nullptr && desc != nullptr);
    check_texture(*resource, *desc, view);
    const std::shared_ptr<Object> object = make_texture(*resource, *desc);
    textures().add(object);
    *texture = reinterpret_cast<hipTextureObject_t>(object->memory);
  });
}

EMU_API hipError_t hipDestroyTextureObject(hipTextureObject_t texture) {
  EMU_CALL({
    if (texture != nullptr) textures().destroy(texture);
  });
}

EMU_API hipError_t hipGetTextureObjectResourceDesc(hipResourceDesc* resource,
                                                   hipTextureObject_t texture) {
  EMU_CALL({
    require(resource != nullptr && texture != nullptr);
    *resource = textures().find(texture)->resource;
  });
}

EMU_API hipError_t hipGetTextureObjectTextureDesc(hipTextureDesc* desc,
                                                  hipTextureObject_t texture) {
  EMU_CALL({
    require(desc != nullptr && texture != nullptr);
    *desc = textures().find(texture)->texture;
  });
}

EMU_API hipError_t hipGetTextureObjectResourceViewDesc(hipResourceViewDesc* view,
                                                       hipTextureObject_t texture) {
  EMU_CALL({
    require(view != nullptr && texture != nullptr);
    *view = textures().find(texture)->view;
  });
}

EMU_API hipError_t hipCreateSurfaceObject(hipSurfaceObject_t* surface,
                                          const hipResourceDesc* resource) {
  EMU_CALL({
    Device& d = current_device();
    require_images(d);
    require(surface != nullptr && resource != nullptr);
    require(resource->resType == hipResourceTypeArray);
    require(resource->res.array.array != nullptr);
    auto object = std::make_shared<Object>();
    object->resource = *resource;
    object->array = find_array(resource->res.array.array);
    uint32_t words[kSamplerAt + 8] = {};
    write_object(image_of(*object->array, format_of(object->array->desc)),
                 d.architecture.generation, words);
    publish(*object, d, words);
    surfaces().add(object);
    *surface = reinterpret_cast<hipSurfaceObject_t>(object->memory);
  });
}

EMU_API hipError_t hipDestroySurfaceObject(hipSurfaceObject_t surface) {
  EMU_CALL({
    if (surface != nullptr) surfaces().destroy(surface);
  });
}

// HIP 5's headers declare both functions with C++ linkage.
EMU_API void create_surface_with_cpp_linkage() __asm__(
    "_Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc")
    __attribute__((alias("hipCreateSurfaceObject")));
EMU_API void destroy_surface_with_cpp_linkage() __asm__(
    "_Z23hipDestroySurfaceObjectP13__hip_surface")
    __attribute__((alias("hipDestroySurfaceObject")));

// The compiler no longer knows variables that are textures, so no program has references.
EMU_API hipError_t hipBindTexture(size_t*, const void*, const void*, const hipChannelFormatDesc*,
                                  size_t) {
  EMU_CALL({ return no_references(); });
}
EMU_API hipError_t hipBindTexture2D(size_t*, const void*, const void*, const hipChannelFormatDesc*,
                                    size_t, size_t, size_t) {
  EMU_CALL({ return no_references(); });
}
EMU_API hipError_t hipBindTextureToArray(const void*, hipArray_const_t,
                                         const hipChannelFormatDesc*) {
  EMU_CALL({ return no_references(); });
}
EMU_API hipError_t hipUnbindTexture(const void*) {
  EMU_CALL({ return no_references(); });
}
EMU_API hipError_t hipGetTextureReference(const void**, const void*) {
  EMU_CALL({ return no_references(); });
}
EMU_API hipError_t hipModuleGetTexRef(void**, hipModule_t, const char*) {
  EMU_CALL({ return no_references(); });
}
