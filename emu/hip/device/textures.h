#pragma once

// Textures of one and two dimensions. A texture object is an image's or a buffer's descriptor, the
// image's width in dword 10, and a sampler's descriptor from dword 12 on. The compiler has no
// builtins for image instructions, so the intrinsics are called by their names.

typedef struct __hip_texture* hipTextureObject_t;
typedef struct __hip_surface* hipSurfaceObject_t;

namespace __wick {

typedef float Texel __attribute__((ext_vector_type(4)));
typedef float Sizes __attribute__((ext_vector_type(2)));
typedef int Buffer __attribute__((ext_vector_type(4)));
typedef int Sampler __attribute__((ext_vector_type(4)));
typedef int Image __attribute__((ext_vector_type(8)));

extern "C" {
#define WICK_INTRINSIC(name) __asm("llvm.amdgcn." name)
__device__ Texel __wick_load_buffer(Buffer d, int index, int offset, int scalar, int cache)
    WICK_INTRINSIC("struct.buffer.load.format.v4f32");
__device__ Sizes __wick_size_2d(int mask, int level, Image t, int fail, int cache)
    WICK_INTRINSIC("image.getresinfo.2d.v2f32.i32.v8i32");
__device__ Texel __wick_sample_1d(int mask, float x, Image t, Sampler s, bool whole, int fail,
                                  int cache)
    WICK_INTRINSIC("image.sample.lz.1d.v4f32.f32.v8i32.v4i32");
__device__ Texel __wick_sample_1d_l(int mask, float x, float level, Image t, Sampler s, bool whole,
                                    int fail, int cache)
    WICK_INTRINSIC("image.sample.l.1d.v4f32.f32.v8i32.v4i32");
__device__ Texel __wick_sample_1d_d(int mask, float dxh, float dxv, float x, Image t, Sampler s,
                                    bool whole, int fail, int cache)
    WICK_INTRINSIC("image.sample.d.1d.v4f32.f32.f32.v8i32.v4i32");
__device__ Texel __wick_sample_2d(int mask, float x, float y, Image t, Sampler s, bool whole,
                                  int fail, int cache)
    WICK_INTRINSIC("image.sample.lz.2d.v4f32.f32.v8i32.v4i32");
__device__ Texel __wick_sample_2d_l(int mask, float x, float y, float level, Image t, Sampler s,
                                    bool whole, int fail, int cache)
    WICK_INTRINSIC("image.sample.l.2d.v4f32.f32.v8i32.v4i32");
__device__ Texel __wick_sample_2d_d(int mask, float dxh, float dyh, float dxv, float dyv, float x,
                                    float y, Image t, Sampler s, bool whole, int fail, int cache)
    WICK_INTRINSIC("image.sample.d.2d.v4f32.f32.f32.v8i32.v4i32");
__device__ Texel __wick_gather_2d(int mask, float x, float y, Image t, Sampler s, bool whole,
                                  int fail, int cache)
    WICK_INTRINSIC("image.gather4.lz.2d.v4f32.f32.v8i32.v4i32");
#undef WICK_INTRINSIC
}

/// The descriptors of a texture object.
struct Object {
  typedef const __attribute__((address_space(4))) int* Dwords;

  __device__ explicit Object(hipTextureObject_t handle) : dwords((Dwords)handle) {}
  __device__ Image image() const { return *(const __attribute__((address_space(4))) Image*)dwords; }
  __device__ Buffer buffer() const {
    return *(const __attribute__((address_space(4))) Buffer*)dwords;
  }
  __device__ Sampler sampler() const {
    return *(const __attribute__((address_space(4))) Sampler*)(dwords + 12);
  }
  __device__ bool nearest() const { return (dwords[14] >> 20 & 1) == 0; }
  __device__ bool normalized() const { return (dwords[12] >> 15 & 1) == 0; }
  __device__ float width() const { return static_cast<float>(dwords[10]); }
  __device__ float height() const {
    // A variable of its own: clang 19's bit cast of a vector's element reads the first element.
    const float height = __wick_size_2d(3, 0, image(), 0, 0).y;
    return static_cast<float>(__builtin_bit_cast(int, height));
  }
  /// The hardware rounds coordinates to 256ths of a texel. Where the nearest texel is read, the
  /// coordinate is moved to the texel's middle, so that no other one is reached.
  __device__ float x(float at) const { return nearest() ? middle(at, width()) : at; }
  __device__ float y(float at) const { return nearest() ? middle(at, height()) : at; }

 private:
  __device__ float middle(float at, float size) const {
    const float scale = normalized() ? size : 1;
    return (__builtin_floorf(at * scale) + 0.5f) / scale;
  }
  Dwords dwords;
};

/// Converts a component: registers hold floats and integers of 32 bits.
template <class T>
__device__ inline T component(float word) {
  if constexpr (__is_same(T, float)) {
    return word;
  } else {
    static_assert(__is_integral(T) && sizeof(T) <= 4, "no texture has elements of this type");
    return static_cast<T>(__builtin_bit_cast(int, word));
  }
}

template <class T>
struct Element {
  static __device__ T of(Texel t) { return component<T>(t.x); }
};
template <class T, unsigned kCount>
struct Element<HIP_vector_type<T, kCount>> {
  static_assert(kCount != 3, "no texture has elements of three components");
  static __device__ HIP_vector_type<T, kCount> of(Texel t) {
    HIP_vector_type<T, kCount> result;
    for (unsigned i = 0; i < kCount; ++i) result[i] = component<T>(t[i]);
    return result;
  }
};

}  // namespace __wick

#define WICK_TEXTURE \
  template <class T> \
  __device__ inline

WICK_TEXTURE T tex1Dfetch(hipTextureObject_t texture, int x) {
  const __wick::Object object(texture);
  return __wick::Element<T>::of(__wick::__wick_load_buffer(object.buffer(), x, 0, 0, 0));
}
WICK_TEXTURE T tex1D(hipTextureObject_t texture, float x) {
  const __wick::Object object(texture);
  return __wick::Element<T>::of(
      __wick::__wick_sample_1d(15, object.x(x), object.image(), object.sampler(), false, 0, 0));
}
WICK_TEXTURE T tex1DLod(hipTextureObject_t texture, float x, float level) {
  const __wick::Object object(texture);
  return __wick::Element<T>::of(__wick::__wick_sample_1d_l(15, object.x(x), level, object.image(),
                                                           object.sampler(), false, 0, 0));
}
WICK_TEXTURE T tex1DGrad(hipTextureObject_t texture, float x, float dx, float dy) {
  const __wick::Object object(texture);
  return __wick::Element<T>::of(__wick::__wick_sample_1d_d(15, dx, dy, object.x(x), object.image(),
                                                           object.sampler(), false, 0, 0));
}
WICK_TEXTURE T tex2D(hipTextureObject_t texture, float x, float y) {
  const __wick::Object object(texture);
  return __wick::Element<T>::of(__wick::__wick_sample_2d(
      15, object.x(x), object.y(y), object.image(), object.sampler(), false, 0, 0));
}
WICK_TEXTURE T tex2DLod(hipTextureObject_t texture, float x, float y, float level) {
  const __wick::Object object(texture);
  return __wick::Element<T>::of(__wick::__wick_sample_2d_l(
      15, object.x(x), object.y(y), level, object.image(), object.sampler(), false, 0, 0));
}
WICK_TEXTURE T tex2DGrad(hipTextureObject_t texture, float x, float y, float2 dx, float2 dy) {
  const __wick::Object object(texture);
  return __wick::Element<T>::of(__wick::__wick_sample_2d_d(15, dx.x, dx.y, dy.x, dy.y, object.x(x),
                                                           object.y(y), object.image(),
                                                           object.sampler(), false, 0, 0));
}
/// Returns one component of the four texels around a point.
WICK_TEXTURE T tex2Dgather(hipTextureObject_t texture, float x, float y, int component = 0) {
  const __wick::Object object(texture);
  const __wick::Image t = object.image();
  const __wick::Sampler s = object.sampler();
  switch (component) {
    case 1:
      return __wick::Element<T>::of(__wick::__wick_gather_2d(2, x, y, t, s, false, 0, 0));
    case 2:
      return __wick::Element<T>::of(__wick::__wick_gather_2d(4, x, y, t, s, false, 0, 0));
    case 3:
      return __wick::Element<T>::of(__wick::__wick_gather_2d(8, x, y, t, s, false, 0, 0));
    default:
      return __wick::Element<T>::of(__wick::__wick_gather_2d(1, x, y, t, s, false, 0, 0));
  }
}

// The same functions, which store their result.
#define WICK_TEXTURE_TO(name, parameters, arguments)                                  \
  WICK_TEXTURE void name(T* to, hipTextureObject_t texture, WICK_UNPACK parameters) { \
    *to = name<T>(texture, WICK_UNPACK arguments);                                    \
  }
#define WICK_UNPACK(...) __VA_ARGS__
WICK_TEXTURE_TO(tex1Dfetch, (int x), (x))
WICK_TEXTURE_TO(tex1D, (float x), (x))
WICK_TEXTURE_TO(tex1DLod, (float x, float level), (x, level))
WICK_TEXTURE_TO(tex1DGrad, (float x, float dx, float dy), (x, dx, dy))
WICK_TEXTURE_TO(tex2D, (float x, float y), (x, y))
WICK_TEXTURE_TO(tex2DLod, (float x, float y, float level), (x, y, level))
WICK_TEXTURE_TO(tex2DGrad, (float x, float y, float2 dx, float2 dy), (x, y, dx, dy))
WICK_TEXTURE_TO(tex2Dgather, (float x, float y, int component = 0), (x, y, component))
#undef WICK_UNPACK
#undef WICK_TEXTURE_TO
#undef WICK_TEXTURE
