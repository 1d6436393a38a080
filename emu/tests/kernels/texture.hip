// Kernels that read and write images. The compiler has no builtins for the instructions, so the
// intrinsics are called by their names, as ROCm's device libraries do.

#include "device.h"

typedef float Float4 __attribute__((ext_vector_type(4)));
typedef float Float2 __attribute__((ext_vector_type(2)));
typedef _Float16 Half4 __attribute__((ext_vector_type(4)));
typedef int Int4 __attribute__((ext_vector_type(4)));
typedef int Int8 __attribute__((ext_vector_type(8)));

#define INTRINSIC(name) __asm("llvm.amdgcn." name)
extern "C" {
__device__ Float4 load_1d(int mask, int x, Int8 t, int fail, int cache)
    INTRINSIC("image.load.1d.v4f32.i32.v8i32");
__device__ Float4 load_2d(int mask, int x, int y, Int8 t, int fail, int cache)
    INTRINSIC("image.load.2d.v4f32.i32.v8i32");
__device__ Float2 load_2d_xw(int mask, int x, int y, Int8 t, int fail, int cache)
    INTRINSIC("image.load.2d.v2f32.i32.v8i32");
__device__ void store_2d(Float4 value, int mask, int x, int y, Int8 t, int fail, int cache)
    INTRINSIC("image.store.2d.v4f32.i32.v8i32");
__device__ Float4 sample_1d(int mask, float x, Int8 t, Int4 s, bool unorm, int fail, int cache)
    INTRINSIC("image.sample.1d.v4f32.f32.v8i32.v4i32");
__device__ Float4 sample_2d(int mask, float x, float y, Int8 t, Int4 s, bool unorm, int fail,
                            int cache) INTRINSIC("image.sample.2d.v4f32.f32.v8i32.v4i32");
__device__ Float4 sample_2d_lz(int mask, float x, float y, Int8 t, Int4 s, bool unorm, int fail,
                               int cache) INTRINSIC("image.sample.lz.2d.v4f32.f32.v8i32.v4i32");
__device__ Float4 sample_2d_l(int mask, float x, float y, float level, Int8 t, Int4 s, bool unorm,
                              int fail, int cache)
    INTRINSIC("image.sample.l.2d.v4f32.f32.v8i32.v4i32");
__device__ Float4 sample_2d_d(int mask, float dxh, float dyh, float dxv, float dyv, float x,
                              float y, Int8 t, Int4 s, bool unorm, int fail, int cache)
    INTRINSIC("image.sample.d.2d.v4f32.f32.f32.v8i32.v4i32");
__device__ Float4 sample_2d_o(int mask, int offset, float x, float y, Int8 t, Int4 s, bool unorm,
                              int fail, int cache)
    INTRINSIC("image.sample.lz.o.2d.v4f32.f32.v8i32.v4i32");
__device__ Half4 sample_2d_half(int mask, float x, float y, Int8 t, Int4 s, bool unorm, int fail,
                                int cache) INTRINSIC("image.sample.lz.2d.v4f16.f32.v8i32.v4i32");
__device__ Float4 gather_2d(int mask, float x, float y, Int8 t, Int4 s, bool unorm, int fail,
                            int cache) INTRINSIC("image.gather4.lz.2d.v4f32.f32.v8i32.v4i32");
__device__ Float4 resource_2d(int mask, int level, Int8 t, int fail, int cache)
    INTRINSIC("image.getresinfo.2d.v4f32.i32.v8i32");
__device__ Float4 load_buffer(Int4 d, int index, int offset, int scalar, int cache)
    INTRINSIC("struct.buffer.load.format.v4f32");
}

/// A texture object: the image, and the sampler twelve dwords later.
using Dwords = const __attribute__((address_space(4))) int*;
__device__ Int8 image(Dwords object) {
  return *(const __attribute__((address_space(4))) Int8*)object;
}
__device__ Int4 sampler(Dwords object) {
  return *(const __attribute__((address_space(4))) Int4*)(object + 12);
}

extern "C" __global__ void fetch_1d(Dwords object, const int* at, Float4* out) {
  out[global_item()] = load_1d(15, at[global_item()], image(object), 0, 0);
}
extern "C" __global__ void fetch_2d(Dwords object, const int* at, Float4* out) {
  const unsigned i = global_item();
  out[i] = load_2d(15, at[2 * i], at[2 * i + 1], image(object), 0, 0);
}
extern "C" __global__ void fetch_2d_xw(Dwords object, const int* at, Float2* out) {
  const unsigned i = global_item();
  out[i] = load_2d_xw(9, at[2 * i], at[2 * i + 1], image(object), 0, 0);
}
extern "C" __global__ void fetch_linear(Dwords object, const int* at, Float4* out) {
  const Int4 buffer = *(const __attribute__((address_space(4))) Int4*)object;
  out[global_item()] = load_buffer(buffer, at[global_item()], 0, 0, 0);
}
extern "C" __global__ void write_2d(Dwords object, const int* at, const Float4* values) {
  const unsigned i = global_item();
  store_2d(values[i], 15, at[2 * i], at[2 * i + 1], image(object), 0, 0);
}
extern "C" __global__ void read_1d(Dwords object, const float* at, Float4* out) {
  out[global_item()] =
      sample_1d(15, at[global_item()], image(object), sampler(object), false, 0, 0);
}
extern "C" __global__ void read_2d(Dwords object, const float* at, Float4* out) {
  const unsigned i = global_item();
  out[i] = sample_2d(15, at[2 * i], at[2 * i + 1], image(object), sampler(object), false, 0, 0);
}
/// All forms of a sample give the same texels, since there are no mip levels.
extern "C" __global__ void read_2d_forms(Dwords object, const float* at, Float4* out) {
  const unsigned i = global_item();
  const float x = at[2 * i], y = at[2 * i + 1];
  const Int8 t = image(object);
  const Int4 s = sampler(object);
  out[4 * i] = sample_2d_lz(15, x, y, t, s, false, 0, 0);
  out[4 * i + 1] = sample_2d_l(15, x, y, 0, t, s, false, 0, 0);
  out[4 * i + 2] = sample_2d_d(15, x * 0.1f, y * 0.2f, x * 0.3f, y, x, y, t, s, false, 0, 0);
  const Half4 h = sample_2d_half(15, x, y, t, s, false, 0, 0);
  out[4 * i + 3] = Float4{static_cast<float>(h.x), static_cast<float>(h.y), static_cast<float>(h.z),
                          static_cast<float>(h.w)};
}
extern "C" __global__ void read_2d_offset(Dwords object, const float* at, Float4* out) {
  const unsigned i = global_item();  // 3 to the right, 2 up
  out[i] = sample_2d_o(15, 3 | 62 << 8, at[2 * i], at[2 * i + 1], image(object), sampler(object),
                       false, 0, 0);
}
extern "C" __global__ void gather(Dwords object, const float* at, Float4* out) {
  const unsigned i = global_item();
  out[i] = gather_2d(2, at[2 * i], at[2 * i + 1], image(object), sampler(object), false, 0, 0);
}
extern "C" __global__ void size_2d(Dwords object, Float4* out) {
  out[global_item()] = resource_2d(15, 0, image(object), 0, 0);
}
