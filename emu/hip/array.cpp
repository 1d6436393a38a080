#include "emu/hip/array.h"

#include <algorithm>

#include "emu/hip/copy.h"

namespace emu::hip {
namespace {

constexpr size_t kMostWidth = 16384, kPitchAlignment = 256;

Handles<hipArray>& arrays() {
  static auto* all = new Handles<hipArray>;
  return *all;
}

hipArray_t make_array(const hipChannelFormatDesc& desc, size_t width, size_t height,
                      unsigned flags) {
  Device& d = current_device();
  require_images(d);
  refuse_unsafe_in_capture();
  require((flags & (hipArrayLayered | hipArrayCubemap)) == 0, hipErrorNotSupported);
  require((flags & ~(hipArraySurfaceLoadStore | hipArrayTextureGather)) == 0);
  require(width != 0 && width <= kMostWidth && height <= kMostWidth);
  const PixelFormat format = format_of(desc);
  require(format.known() && format.components != 3);
  auto array = std::make_shared<hipArray>();
  array->width = width;
  array->height = height;
  array->pitch = (width * format.size() + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  array->desc = desc;
  array->flags = flags;
  array->device = d.ordinal;
  Allocation wanted;
  wanted.bytes = array->pitch * array->rows();
  wanted.device = d.ordinal;
  array->memory = memory().allocate(wanted);
  if (array->memory == 0) throw Error{hipErrorOutOfMemory};
  return arrays().add<hipArray_t>(std::move(array));
}

void free_array(hipArray_t handle) {
  require(handle != nullptr);
  refuse_unsafe_in_capture();
  const std::shared_ptr<hipArray> array = find_array(handle);
  device(array->device).wait();
  arrays().remove(handle);
}

hipChannelFormatDesc desc_of(const HIP_ARRAY_DESCRIPTOR& asked) {
  struct Kind {
    hipArray_Format format;
    int bits;
    hipChannelFormatKind kind;
  };
  constexpr Kind kKinds[] = {{HIP_AD_FORMAT_UNSIGNED_INT8, 8, hipChannelFormatKindUnsigned},
                             {HIP_AD_FORMAT_UNSIGNED_INT16, 16, hipChannelFormatKindUnsigned},
                             {HIP_AD_FORMAT_UNSIGNED_INT32, 32, hipChannelFormatKindUnsigned},
                             {HIP_AD_FORMAT_SIGNED_INT8, 8, hipChannelFormatKindSigned},
                             {HIP_AD_FORMAT_SIGNED_INT16, 16, hipChannelFormatKindSigned},
                             {HIP_AD_FORMAT_SIGNED_INT32, 32, hipChannelFormatKindSigned},
                             {HIP_AD_FORMAT_HALF, 16, hipChannelFormatKindFloat},
                             {HIP_AD_FORMAT_FLOAT, 32, hipChannelFormatKindFloat}};
  const unsigned channels = asked.NumChannels;
  require(channels == 1 || channels == 2 || channels == 4);
  for (const Kind& k : kKinds) {
    if (k.format != asked.Format) continue;
    return {k.bits, channels > 1 ? k.bits : 0, channels > 2 ? k.bits : 0, channels > 2 ? k.bits : 0,
            k.kind};
  }
  throw Error{hipErrorInvalidValue};
}

/// Returns the address of a row's byte. Throws if the box isn't within the array.
char* place(const hipArray& array, size_t x, size_t y, size_t width, size_t height) {
  const size_t row = array.width * array.element();
  require(x <= row && width <= row - x && y <= array.rows() && height <= array.rows() - y);
  return reinterpret_cast<char*>(array.memory + y * array.pitch + x);
}

/// Copies bytes that fill rows from (x, y) on. `box` copies a box of the array at a byte of the
/// linear memory.
template <class Box>
void copy_rows(const hipArray& array, size_t x, size_t y, size_t bytes, const Box& box) {
  const size_t row = array.width * array.element();
  require(x <= row && y < array.rows() && bytes <= row * (array.rows() - y) - x);
  for (size_t done = 0; done < bytes;) {
    const size_t part = std::min(bytes - done, row - x);
    box(place(array, x, y, part, 1), done, part);
    done += part;
    x = 0;
    ++y;
  }
}

}  // namespace

void require_images(const Device& device) {
  require(has_images(device.architecture.generation), hipErrorNotSupported);
}

PixelFormat format_of(const hipChannelFormatDesc& desc) {
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  if (desc.x != 8 && desc.x != 16 && desc.x != 32) return {};
  uint8_t components = 0;
  while (components < 4 && bits[components] == desc.x) ++components;
  for (size_t i = components; i < 4; ++i) {
    if (bits[i] != 0) return {};
  }
  Numbers numbers = Numbers::real;
  if (desc.f == hipChannelFormatKindSigned) numbers = Numbers::sint;
  if (desc.f == hipChannelFormatKindUnsigned) numbers = Numbers::uint;
  if (desc.f > hipChannelFormatKindFloat || (numbers == Numbers::real && desc.x == 8)) return {};
  return {components, static_cast<uint8_t>(desc.x / 8), numbers};
}

std::shared_ptr<hipArray> find_array(hipArray_const_t handle) {
  std::shared_ptr<hipArray> array = arrays().find(handle);
  require(array != nullptr, hipErrorInvalidHandle);
  return array;
}

hipMemcpy3DParms without_arrays(const hipMemcpy3DParms& p) {
  hipMemcpy3DParms result = p;
  require(p.srcArray == nullptr || p.srcPtr.ptr == nullptr);
  require(p.dstArray == nullptr || p.dstPtr.ptr == nullptr);
  size_t element = 0;
  const auto replace = [&](hipArray_t& handle, hipPitchedPtr& to, hipPos& at) {
    if (handle == nullptr) return;
    const std::shared_ptr<hipArray> array = find_array(handle);
    require(element == 0 || element == array->element());
    require(at.x <= array->width && p.extent.width <= array->width - at.x && at.z == 0);
    require(at.y <= array->rows() && p.extent.height <= array->rows() - at.y &&
            p.extent.depth <= 1);
    element = array->element();
    to = {reinterpret_cast<void*>(array->memory), array->pitch, array->width * element,
          array->rows()};
    at.x *= element;
    handle = nullptr;
  };
  replace(result.srcArray, result.srcPtr, result.srcPos);
  replace(result.dstArray, result.dstPtr, result.dstPos);
  if (element != 0) result.extent.width *= element;
  return result;
}

hip_Memcpy2D without_arrays(const hip_Memcpy2D& p) {
  hip_Memcpy2D result = p;
  if (p.srcMemoryType == hipMemoryTypeArray) {
    require(p.srcArray != nullptr);
    const std::shared_ptr<hipArray> array = find_array(p.srcArray);
    place(*array, p.srcXInBytes, p.srcY, p.WidthInBytes, p.Height);
    result.srcMemoryType = hipMemoryTypeDevice;
    result.srcDevice = reinterpret_cast<hipDeviceptr_t>(array->memory);
    result.srcPitch = array->pitch;
  }
  if (p.dstMemoryType == hipMemoryTypeArray) {
    require(p.dstArray != nullptr);
    const std::shared_ptr<hipArray> array = find_array(p.dstArray);
    place(*array, p.dstXInBytes, p.dstY, p.WidthInBytes, p.Height);
    result.dstMemoryType = hipMemoryTypeDevice;
    result.dstDevice = reinterpret_cast<hipDeviceptr_t>(array->memory);
    result.dstPitch = array->pitch;
  }
  return result;
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

hipArray::~hipArray() {
  if (memory != 0) Runtime::get().memory->free(memory);
}

EMU_API hipChannelFormatDesc hipCreateChannelDesc(int x, int y, int z, int w,
                                                  hipChannelFormatKind f) {
  return {x, y, z, w, f};
}

EMU_API hipError_t hipMallocArray(hipArray_t* array, const hipChannelFormatDesc* desc, size_t width,
                                  size_t height, unsigned flags) {
  EMU_CALL({
    require(array != nullptr && desc != nullptr);
    *array = make_array(*desc, width, height, flags);
  });
}

EMU_API hipError_t hipMalloc3DArray(hipArray_t* array, const hipChannelFormatDesc* desc,
                                    hipExtent extent, unsigned flags) {
  EMU_CALL({
    require(array != nullptr && desc != nullptr);
    require(extent.depth == 0, hipErrorNotSupported);
    *array = make_array(*desc, extent.width, extent.height, flags);
  });
}

EMU_API hipError_t hipArrayCreate(hipArray_t* array, const HIP_ARRAY_DESCRIPTOR* desc) {
  EMU_CALL({
    require(array != nullptr && desc != nullptr);
    *array = make_array(desc_of(*desc), desc->Width, desc->Height, hipArrayDefault);
  });
}

EMU_API hipError_t hipFreeArray(hipArray_t array) {
  EMU_CALL({ free_array(array); });
}
EMU_API hipError_t hipArrayDestroy(hipArray_t array) {
  EMU_CALL({ free_array(array); });
}

EMU_API hipError_t hipArrayGetInfo(hipChannelFormatDesc* desc, hipExtent* extent, unsigned* flags,
                                   hipArray_t handle) {
  EMU_CALL({
    const std::shared_ptr<hipArray> array = find_array(handle);
    if (desc != nullptr) *desc = array->desc;
    if (extent != nullptr) *extent = {array->width, array->height, 0};
    if (flags != nullptr) *flags = array->flags;
  });
}

EMU_API hipError_t hipArrayGetDescriptor(HIP_ARRAY_DESCRIPTOR* desc, hipArray_t handle) {
  EMU_CALL({
    require(desc != nullptr);
    const std::shared_ptr<hipArray> array = find_array(handle);
    const PixelFormat format = format_of(array->desc);
    unsigned number = format.bytes == 4 ? 3u : format.bytes;
    if (format.numbers == Numbers::sint) number += 7;
    if (format.numbers == Numbers::real) number = format.bytes == 2 ? 16 : 32;
    *desc = {array->width, array->height, static_cast<hipArray_Format>(number), format.components};
  });
}

EMU_API hipError_t hipGetChannelDesc(hipChannelFormatDesc* desc, hipArray_const_t array) {
  EMU_CALL({
    require(desc != nullptr && array != nullptr);
    *desc = find_array(array)->desc;
  });
}

namespace {

void copy_to(hipArray_t handle, size_t x, size_t y, const void* from, size_t pitch, size_t width,
             size_t height, hipMemcpyKind kind, hipStream_t stream, bool async) {
  require(handle != nullptr && from != nullptr);
  const std::shared_ptr<hipArray> array = find_array(handle);
  char* to = place(*array, x, y, width, height);
  copy(copy_op(to, array->pitch, from, pitch, width, height, kind), stream, async);
}

void copy_from(void* to, size_t pitch, hipArray_const_t handle, size_t x, size_t y, size_t width,
               size_t height, hipMemcpyKind kind, hipStream_t stream, bool async) {
  require(handle != nullptr && to != nullptr);
  const std::shared_ptr<hipArray> array = find_array(handle);
  const char* from = place(*array, x, y, width, height);
  copy(copy_op(to, pitch, from, array->pitch, width, height, kind), stream, async);
}

void copy_rows_to(hipArray_t handle, size_t x, size_t y, const void* from, size_t bytes,
                  hipMemcpyKind kind) {
  require(handle != nullptr && from != nullptr);
  const std::shared_ptr<hipArray> array = find_array(handle);
  copy_rows(*array, x, y, bytes, [&](char* place, size_t at, size_t part) {
    copy(copy_op(place, static_cast<const char*>(from) + at, part, kind), nullptr, false);
  });
}

void copy_rows_from(void* to, hipArray_const_t handle, size_t x, size_t y, size_t bytes,
                    hipMemcpyKind kind) {
  require(handle != nullptr && to != nullptr);
  const std::shared_ptr<hipArray> array = find_array(handle);
  copy_rows(*array, x, y, bytes, [&](const char* place, size_t at, size_t part) {
    copy(copy_op(static_cast<char*>(to) + at, place, part, kind), nullptr, false);
  });
}

}  // namespace

EMU_API hipError_t hipMemcpy2DToArray(hipArray_t to, size_t x, size_t y, const void* from,
                                      size_t pitch, size_t width, size_t height,
                                      hipMemcpyKind kind) {
  EMU_CALL({ copy_to(to, x, y, from, pitch, width, height, kind, nullptr, false); });
}

EMU_API hipError_t hipMemcpy2DToArrayAsync(hipArray_t to, size_t x, size_t y, const void* from,
                                           size_t pitch, size_t width, size_t height,
                                           hipMemcpyKind kind, hipStream_t stream) {
  EMU_CALL({ copy_to(to, x, y, from, pitch, width, height, kind, stream, true); });
}

EMU_API hipError_t hipMemcpy2DFromArray(void* to, size_t pitch, hipArray_const_t from, size_t x,
                                        size_t y, size_t width, size_t height, hipMemcpyKind kind) {
  EMU_CALL({ copy_from(to, pitch, from, x, y, width, height, kind, nullptr, false); });
}

EMU_API hipError_t hipMemcpy2DFromArrayAsync(void* to, size_t pitch, hipArray_const_t from,
                                             size_t x, size_t y, size_t width, size_t height,
                                             hipMemcpyKind kind, hipStream_t stream) {
  EMU_CALL({ copy_from(to, pitch, from, x, y, width, height, kind, stream, true); });
}

EMU_API hipError_t hipMemcpy2DArrayToArray(hipArray_t to, size_t to_x, size_t to_y,
                                           hipArray_const_t from, size_t from_x, size_t from_y,
                                           size_t width, size_t height, hipMemcpyKind kind) {
  EMU_CALL({
    require(to != nullptr && from != nullptr);
    const std::shared_ptr<hipArray> target = find_array(to), source = find_array(from);
    char* at = place(*target, to_x, to_y, width, height);
    const char* of = place(*source, from_x, from_y, width, height);
    copy(copy_op(at, target->pitch, of, source->pitch, width, height, kind), nullptr, false);
  });
}

EMU_API hipError_t hipMemcpyToArray(hipArray_t to, size_t x, size_t y, const void* from,
                                    size_t bytes, hipMemcpyKind kind) {
  EMU_CALL({ copy_rows_to(to, x, y, from, bytes, kind); });
}

EMU_API hipError_t hipMemcpyFromArray(void* to, hipArray_const_t from, size_t x, size_t y,
                                      size_t bytes, hipMemcpyKind kind) {
  EMU_CALL({ copy_rows_from(to, from, x, y, bytes, kind); });
}

EMU_API hipError_t hipMemcpyHtoA(hipArray_t to, size_t offset, const void* from, size_t bytes) {
  EMU_CALL({ copy_rows_to(to, offset, 0, from, bytes, hipMemcpyHostToDevice); });
}

EMU_API hipError_t hipMemcpyAtoH(void* to, hipArray_t from, size_t offset, size_t bytes) {
  EMU_CALL({ copy_rows_from(to, from, offset, 0, bytes, hipMemcpyDeviceToHost); });
}
