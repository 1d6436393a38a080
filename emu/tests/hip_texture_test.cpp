// Textures and surfaces of one and two dimensions. References compute coordinates and
// filters from the definitions in HIP's documentation.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "emu/tests/hip_array_support.h"
#include "emu/tests/hip_stream_support.h"

namespace {

struct Pixel {
  float x, y, z, w;
  bool operator==(const Pixel&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Pixel& p) {
  return out << p.x << " " << p.y << " " << p.z << " " << p.w;
}

class HipTexture : public testing::Test {
 protected:
  Kernels kernels{"texture." + first_device() + ".hsaco"};

  template <class T, class Out, class In>
  std::vector<Out> run(const char* name, const T& object, const std::vector<In>& at,
                       size_t results) {
    Buffer<In> in(at.size());
    Buffer<Out> out(results);
    in.set(at);
    EXPECT_EQ(hipSuccess, launch(kernels[name], 1, static_cast<unsigned>(results), 0, nullptr,
                                 object, in.data, out.data));
    EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
    return out.get();
  }
};

/// The index of a texel outside [0, size), by the mode; -1 for the border.
int placed(int at, int size, hipTextureAddressMode mode) {
  if (mode == hipAddressModeClamp) return std::clamp(at, 0, size - 1);
  if (mode == hipAddressModeBorder) return at < 0 || at >= size ? -1 : at;
  while (at < 0 || at >= size) {
    if (mode == hipAddressModeWrap) {
      at += at < 0 ? size : -size;
    } else {
      at = at < 0 ? -1 - at : 2 * size - 1 - at;
    }
  }
  return at;
}

float at_index(int x, int y, hipTextureAddressMode mode) {
  const int px = placed(x, kWidth, mode), py = placed(y, kHeight, mode);
  return px < 0 || py < 0 ? 0 : texel(px, py);
}

/// The value at unnormalized coordinates. Fractions are rounded to 256ths.
float reference(float x, float y, hipTextureAddressMode mode, bool linear) {
  if (!linear) {
    return at_index(static_cast<int>(std::floor(x)), static_cast<int>(std::floor(y)), mode);
  }
  const float bx = std::round((x - 0.5f) * 256) / 256, by = std::round((y - 0.5f) * 256) / 256;
  const int ix = static_cast<int>(std::floor(bx)), iy = static_cast<int>(std::floor(by));
  const float fx = bx - static_cast<float>(ix), fy = by - static_cast<float>(iy);
  const auto row = [&](int y1) {
    return (1 - fx) * at_index(ix, y1, mode) + fx * at_index(ix + 1, y1, mode);
  };
  return (1 - fy) * row(iy) + fy * row(iy + 1);
}

std::vector<float> points() {
  std::vector<float> at;
  for (int i = 0; i < 200; ++i) {
    at.push_back(static_cast<float>(i * 29 % 101) * 0.375f - 12);  // multiples of 1/8
    at.push_back(static_cast<float>(i * 17 % 97) * 0.25f - 9);
  }
  return at;
}

TEST_F(HipTexture, FiltersAndAddressModes) {
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  fill(array);
  const std::vector<float> at = points();
  for (const auto mode :
       {hipAddressModeWrap, hipAddressModeClamp, hipAddressModeMirror, hipAddressModeBorder}) {
    for (const auto filter : {hipFilterModePoint, hipFilterModeLinear}) {
      for (const bool normalized : {false, true}) {
        const Texture texture(array.resource(), texture_desc(mode, filter, normalized));
        std::vector<float> scaled = at;
        for (size_t i = 0; normalized && i < at.size(); ++i) {
          // A little more than the quotient, so that rounding never reaches the texel before.
          scaled[i] = std::nextafter(at[i] / (i % 2 == 0 ? kWidth : kHeight), 1e9f);
        }
        const auto got = run<hipTextureObject_t, Pixel>("read_2d", texture, scaled, at.size() / 2);
        // Unnormalized coordinates have no wrap and mirror modes.
        const bool clamps =
            !normalized && (mode == hipAddressModeWrap || mode == hipAddressModeMirror);
        for (size_t i = 0; i < got.size(); ++i) {
          const float wanted =
              reference(at[2 * i], at[2 * i + 1], clamps ? hipAddressModeClamp : mode,
                        filter == hipFilterModeLinear);
          // Rounding a normalized coordinate may change a fraction by one unit: 10/256 of a texel.
          EXPECT_NEAR(got[i].x, wanted, normalized && filter == hipFilterModeLinear ? 0.3f : 1e-4f)
              << mode << " " << filter << " " << normalized << " at " << at[2 * i] << ", "
              << at[2 * i + 1];
          if (mode != hipAddressModeBorder) {
            EXPECT_EQ(got[i].y, 0);
            EXPECT_EQ(got[i].w, 1);
          }
        }
      }
    }
  }
}

TEST_F(HipTexture, EveryFormOfASample) {
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  fill(array);
  const std::vector<float> at = points();
  const size_t count = at.size() / 2;
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModeLinear, false));
  Buffer<float> in(at.size());
  Buffer<Pixel> out(4 * count);
  in.set(at);
  HIP_OK(launch(kernels["read_2d_forms"], 1, static_cast<unsigned>(count), 0, nullptr,
                texture.handle, in.data, out.data));
  const std::vector<Pixel> got = out.get();
  for (size_t i = 0; i < count; ++i) {
    const float wanted = reference(at[2 * i], at[2 * i + 1], hipAddressModeClamp, true);
    for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(got[4 * i + k].x, wanted, 1e-4) << k;
    EXPECT_EQ(got[4 * i + 3].x, static_cast<float>(static_cast<_Float16>(got[4 * i].x)));
    EXPECT_EQ(got[4 * i + 3].w, 1);
  }
  const auto moved = run<hipTextureObject_t, Pixel>("read_2d_offset", texture, at, count);
  const auto gathered = run<hipTextureObject_t, Pixel>("gather", texture, at, count);
  for (size_t i = 0; i < count; ++i) {
    const float x = at[2 * i], y = at[2 * i + 1];
    EXPECT_NEAR(moved[i].x, reference(x + 3, y - 2, hipAddressModeClamp, true), 1e-4);
    EXPECT_EQ(gathered[i], (Pixel{0, 0, 0, 0}));  // the second component, which the array lacks
  }
}

TEST_F(HipTexture, GathersFourTexels) {
  const Array array(desc_of(32, 2, hipChannelFormatKindFloat), kWidth, kHeight);
  std::vector<float> all;
  for (const float value : texels()) all.insert(all.end(), {-1, value});
  HIP_OK(hipMemcpy2DToArray(array, 0, 0, all.data(), kWidth * 8, kWidth * 8, kHeight,
                            hipMemcpyHostToDevice));
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModePoint, false));
  const std::vector<float> at = points();
  const auto got = run<hipTextureObject_t, Pixel>("gather", texture, at, at.size() / 2);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto x = static_cast<int>(std::floor(at[2 * i] - 0.5f)),
               y = static_cast<int>(std::floor(at[2 * i + 1] - 0.5f));
    const auto value = [&](int dx, int dy) {
      return at_index(x + dx, y + dy, hipAddressModeClamp);
    };
    EXPECT_EQ(got[i], (Pixel{value(0, 1), value(1, 1), value(1, 0), value(0, 0)}));
  }
}

TEST_F(HipTexture, SizesOfAnImage) {
  const Array array(desc_of(8, 4, hipChannelFormatKindUnsigned), 1000, 77);
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModePoint, false));
  Buffer<uint32_t> out(4);
  HIP_OK(launch(kernels["size_2d"], 1, 1, 0, nullptr, texture.handle, out.data));
  EXPECT_EQ(out.get(), (std::vector<uint32_t>{1000, 77, 1, 1}));
}

/// Writes values of a type to an array and reads them back as registers.
template <class T>
std::vector<Pixel> fetched(const Kernels& kernels, hipChannelFormatKind kind, int channels,
                           const std::vector<T>& values, hipTextureReadMode mode) {
  const size_t count = values.size() / static_cast<size_t>(channels);
  const Array array(desc_of(8 * sizeof(T), channels, kind), count, 1);
  EXPECT_EQ(hipSuccess, hipMemcpy2DToArray(array, 0, 0, values.data(), values.size() * sizeof(T),
                                           values.size() * sizeof(T), 1, hipMemcpyHostToDevice));
  hipTextureDesc desc = texture_desc(hipAddressModeClamp, hipFilterModePoint, false);
  desc.readMode = mode;
  const Texture texture(array.resource(), desc);
  Buffer<int> at(2 * count);
  std::vector<int> indices;
  for (size_t i = 0; i < count; ++i) indices.insert(indices.end(), {static_cast<int>(i), 0});
  at.set(indices);
  Buffer<Pixel> out(count);
  EXPECT_EQ(hipSuccess, launch(kernels["fetch_2d"], 1, static_cast<unsigned>(count), 0, nullptr,
                               texture.handle, at.data, out.data));
  return out.get();
}

template <class T>
void check_format(const Kernels& kernels, hipChannelFormatKind kind, double divisor) {
  for (const int channels : {1, 2, 4}) {
    std::vector<T> values;
    for (int i = 0; i < 16 * channels; ++i) {
      values.push_back(static_cast<T>(static_cast<long long>(i) * 0x9e3779b97f4a7c15ll >> 17));
    }
    values[0] = std::numeric_limits<T>::min();
    values.back() = std::numeric_limits<T>::max();
    const bool normalized = divisor != 0;
    const auto got = fetched(kernels, kind, channels, values,
                             normalized ? hipReadModeNormalizedFloat : hipReadModeElementType);
    for (size_t i = 0; i < got.size(); ++i) {
      const float words[] = {got[i].x, got[i].y, got[i].z, got[i].w};
      for (size_t c = 0; c < 4; ++c) {
        const bool there = c < static_cast<size_t>(channels);
        const T value = there ? values[i * static_cast<size_t>(channels) + c] : T(0);
        if (normalized) {
          const double wanted = there    ? std::max(static_cast<double>(value) / divisor, -1.)
                                : c == 3 ? 1
                                         : 0;
          EXPECT_NEAR(words[c], wanted, 1e-7) << channels << " " << i << " " << c;
        } else {
          const auto wanted = there ? static_cast<uint32_t>(value) : c == 3 ? 1u : 0u;
          EXPECT_EQ(std::bit_cast<uint32_t>(words[c]), wanted) << channels << " " << i << " " << c;
        }
      }
    }
  }
}

TEST_F(HipTexture, Formats) {
  check_format<uint8_t>(kernels, hipChannelFormatKindUnsigned, 0);
  check_format<int8_t>(kernels, hipChannelFormatKindSigned, 0);
  check_format<uint16_t>(kernels, hipChannelFormatKindUnsigned, 0);
  check_format<int16_t>(kernels, hipChannelFormatKindSigned, 0);
  check_format<uint32_t>(kernels, hipChannelFormatKindUnsigned, 0);
  check_format<int32_t>(kernels, hipChannelFormatKindSigned, 0);
  check_format<uint8_t>(kernels, hipChannelFormatKindUnsigned, 255);
  check_format<int8_t>(kernels, hipChannelFormatKindSigned, 127);
  check_format<uint16_t>(kernels, hipChannelFormatKindUnsigned, 65535);
  check_format<int16_t>(kernels, hipChannelFormatKindSigned, 32767);
}

TEST_F(HipTexture, HalfsAndMasks) {
  std::vector<_Float16> values;
  for (int i = 0; i < 32; ++i) values.push_back(static_cast<_Float16>(i * 0.375 - 3));
  const auto got = fetched(kernels, hipChannelFormatKindFloat, 2, values, hipReadModeElementType);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i], (Pixel{static_cast<float>(values[2 * i]),
                             static_cast<float>(values[2 * i + 1]), 0, 1}));
  }
  const Array array(desc_of(32, 4, hipChannelFormatKindFloat), 1, 1);
  const float one[] = {1, 2, 3, 4};
  HIP_OK(hipMemcpy2DToArray(array, 0, 0, one, 16, 16, 1, hipMemcpyHostToDevice));
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModePoint, false));
  struct Two {
    float x, w;
  };
  const auto some = run<hipTextureObject_t, Two>("fetch_2d_xw", texture, std::vector<int>{0, 0}, 1);
  EXPECT_EQ(some[0].x, 1);
  EXPECT_EQ(some[0].w, 4);
}

TEST_F(HipTexture, OneDimension) {
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), 10, 0);
  std::vector<float> values;
  for (int i = 0; i < 10; ++i) values.push_back(static_cast<float>(i * i));
  HIP_OK(hipMemcpy2DToArray(array, 0, 0, values.data(), 40, 40, 1, hipMemcpyHostToDevice));
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeWrap, hipFilterModeLinear, true));
  const std::vector<float> at = {0.05f, 0.1f, 0.55f, 1.25f, -0.2f};  // 0.5, 1, 5.5, 12.5, -2
  const auto got = run<hipTextureObject_t, Pixel>("read_1d", texture, at, at.size());
  const float wanted[] = {0, 0.5f, 25, 4, 56.5f};
  for (size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(got[i].x, wanted[i], 0.1) << i;
  // A read beyond the image by index gives zeros.
  const auto indexed =
      run<hipTextureObject_t, Pixel>("fetch_1d", texture, std::vector<int>{3, 9, 10, -1}, 4);
  EXPECT_EQ(indexed[0], (Pixel{9, 0, 0, 1}));
  EXPECT_EQ(indexed[1], (Pixel{81, 0, 0, 1}));
  EXPECT_EQ(indexed[2].x, 0);
  EXPECT_EQ(indexed[3].x, 0);
}

TEST_F(HipTexture, LinearMemory) {
  Buffer<uint8_t> memory(64);
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 64; ++i) bytes.push_back(static_cast<uint8_t>(i * 4));
  memory.set(bytes);
  hipResourceDesc resource{};
  resource.resType = hipResourceTypeLinear;
  resource.res.linear = {memory.data, desc_of(8, 2, hipChannelFormatKindUnsigned), 64};
  hipTextureDesc desc{};
  desc.readMode = hipReadModeNormalizedFloat;
  const Texture texture(resource, desc);
  const auto got = run<hipTextureObject_t, Pixel>("fetch_linear", texture,
                                                  std::vector<int>{0, 5, 31, 32, -1, 1 << 30}, 6);
  EXPECT_EQ(got[1], (Pixel{40 / 255.f, 44 / 255.f, 0, 1}));
  EXPECT_EQ(got[2], (Pixel{248 / 255.f, 252 / 255.f, 0, 1}));
  // Beyond the memory, components that the descriptor sets to 1 are 1, as AMD's documents say.
  for (const size_t i : {3u, 4u, 5u}) EXPECT_EQ(got[i], (Pixel{0, 0, 0, 1})) << i;
}

TEST_F(HipTexture, PitchedMemory) {
  uint8_t* memory = nullptr;
  size_t pitch = 0;
  HIP_OK(hipMallocPitch(reinterpret_cast<void**>(&memory), &pitch, kWidth * 4, kHeight));
  const std::vector<float> all = texels();
  HIP_OK(hipMemcpy2D(memory, pitch, all.data(), kWidth * 4, kWidth * 4, kHeight,
                     hipMemcpyHostToDevice));
  hipResourceDesc resource{};
  resource.resType = hipResourceTypePitch2D;
  resource.res.pitch2D = {memory, desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight,
                          pitch};
  {
    const Texture texture(resource, texture_desc(hipAddressModeBorder, hipFilterModeLinear, false));
    const std::vector<float> at = points();
    const auto got = run<hipTextureObject_t, Pixel>("read_2d", texture, at, at.size() / 2);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].x, reference(at[2 * i], at[2 * i + 1], hipAddressModeBorder, true), 1e-4);
    }
    hipResourceDesc asked{};
    HIP_OK(hipGetTextureObjectResourceDesc(&asked, texture));
    EXPECT_EQ(asked.res.pitch2D.devPtr, memory);
    hipTextureDesc desc{};
    HIP_OK(hipGetTextureObjectTextureDesc(&desc, texture));
    EXPECT_EQ(desc.addressMode[0], hipAddressModeBorder);
  }
  HIP_OK(hipFree(memory));
}

TEST_F(HipTexture, SurfacesAreWritten) {
  const Array array(desc_of(16, 4, hipChannelFormatKindSigned), 5, 4, hipArraySurfaceLoadStore);
  const std::vector<int16_t> zeros(80);
  HIP_OK(hipMemcpy2DToArray(array, 0, 0, zeros.data(), 40, 40, 4, hipMemcpyHostToDevice));
  hipSurfaceObject_t surface = nullptr;
  const hipResourceDesc resource = array.resource();
  HIP_OK(hipCreateSurfaceObject(&surface, &resource));
  Buffer<int> at(8);
  Buffer<int> values(16);
  at.set({1, 2, 4, 3, 5, 0, 0, -1});  // the last two are beyond the image
  values.set({1, -2, 70000, -70000, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9});
  HIP_OK(launch(kernels["write_2d"], 1, 4, 0, nullptr, surface, at.data, values.data));
  std::vector<int16_t> got(80);
  HIP_OK(hipMemcpy2DFromArray(got.data(), 40, array, 0, 0, 40, 4, hipMemcpyDeviceToHost));
  std::vector<int16_t> wanted(80);
  const int16_t first[] = {1, -2, 32767, -32768}, second[] = {5, 6, 7, 8};
  std::copy_n(first, 4, &wanted[4 * (2 * 5 + 1)]);
  std::copy_n(second, 4, &wanted[4 * (3 * 5 + 4)]);
  EXPECT_EQ(got, wanted);
  HIP_OK(hipDestroySurfaceObject(surface));
  EXPECT_EQ(hipErrorInvalidValue, hipDestroySurfaceObject(surface));
}

/// Holds up a stream until a thread that open_soon() starts lets its work run.
class HeldStream {
 public:
  HeldStream() { EXPECT_EQ(hipSuccess, hipLaunchHostFunc(stream_, Gate::wait, &gate_)); }
  ~HeldStream() {
    gate_.open = true;
    if (opener_.joinable()) opener_.join();
    EXPECT_EQ(hipSuccess, hipStreamSynchronize(stream_));
  }
  operator hipStream_t() const { return stream_; }
  void open_soon() {
    opener_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      gate_.open = true;
    });
  }

 private:
  const Stream stream_;
  Gate gate_;
  std::thread opener_;
};

TEST_F(HipTexture, DestroyingWaitsForKernels) {
  const Array array(desc_of(16, 4, hipChannelFormatKindSigned), 5, 4, hipArraySurfaceLoadStore);
  const hipResourceDesc resource = array.resource();
  const hipTextureDesc desc = texture_desc(hipAddressModeClamp, hipFilterModePoint, false);
  Buffer<int> at(8);
  Buffer<Pixel> out(4);
  Buffer<int> values(16);
  {
    HeldStream stream;
    hipTextureObject_t texture = nullptr;
    HIP_OK(hipCreateTextureObject(&texture, &resource, &desc, nullptr));
    HIP_OK(launch(kernels["fetch_2d"], 1, 4, 0, stream, texture, at.data, out.data));
    stream.open_soon();
    HIP_OK(hipDestroyTextureObject(texture));
    EXPECT_EQ(hipSuccess, hipStreamQuery(stream));
  }
  HeldStream stream;
  hipSurfaceObject_t surface = nullptr;
  HIP_OK(hipCreateSurfaceObject(&surface, &resource));
  HIP_OK(launch(kernels["write_2d"], 1, 4, 0, stream, surface, at.data, values.data));
  stream.open_soon();
  HIP_OK(hipDestroySurfaceObject(surface));
  EXPECT_EQ(hipSuccess, hipStreamQuery(stream));
}

/// The error of a kernel belongs to the call that asks for it.
TEST_F(HipTexture, FreeingAnArrayLeavesErrors) {
  Buffer<uint32_t> object(20);  // zeros, which are no descriptor
  Buffer<float> at(2);
  Buffer<Pixel> out(1);
  testing::internal::CaptureStderr();
  {
    const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
    HIP_OK(launch(kernels["read_2d"], 1, 1, 0, nullptr, object.data, at.data, out.data));
  }
  EXPECT_EQ(hipErrorLaunchFailure, hipDeviceSynchronize());
  testing::internal::GetCapturedStderr();
  (void)hipGetLastError();
}

TEST_F(HipTexture, WhatIsRefused) {
  const hipChannelFormatDesc floats = desc_of(32, 1, hipChannelFormatKindFloat);
  hipArray_t none = nullptr;
  const auto make = [&](const hipChannelFormatDesc& desc, size_t width, size_t height,
                        unsigned flags) {
    return hipMallocArray(&none, &desc, width, height, flags);
  };
  EXPECT_EQ(hipErrorInvalidValue, make(floats, 0, 5, 0));
  EXPECT_EQ(hipErrorInvalidValue, make(floats, 100000, 5, 0));
  EXPECT_EQ(hipErrorNotSupported, make(floats, 5, 5, hipArrayLayered));
  EXPECT_EQ(hipErrorNotSupported, make(floats, 5, 5, hipArrayCubemap));
  EXPECT_EQ(hipErrorInvalidValue, make(floats, 5, 5, 64));
  EXPECT_EQ(hipErrorInvalidValue, make(desc_of(8, 1, hipChannelFormatKindFloat), 5, 5, 0));
  EXPECT_EQ(hipErrorInvalidValue, make(desc_of(32, 3, hipChannelFormatKindFloat), 5, 5, 0));
  EXPECT_EQ(hipErrorInvalidValue, make(desc_of(13, 1, hipChannelFormatKindSigned), 5, 5, 0));
  EXPECT_EQ(hipErrorNotSupported, hipMalloc3DArray(&none, &floats, {4, 4, 4}, 0));
  EXPECT_EQ(hipErrorInvalidHandle, hipFreeArray(reinterpret_cast<hipArray_t>(&none)));
  EXPECT_EQ(hipErrorInvalidValue, hipFreeArray(nullptr));
  EXPECT_EQ(nullptr, none);

  const Array array(floats, kWidth, kHeight);
  const float value = 0;
  const auto put = [&](size_t x, size_t y, size_t width, size_t height) {
    return hipMemcpy2DToArray(array, x, y, &value, width, width, height, hipMemcpyHostToDevice);
  };
  EXPECT_EQ(hipErrorInvalidValue, put(4 * kWidth, 0, 4, 1));
  EXPECT_EQ(hipErrorInvalidValue, put(0, kHeight, 4, 1));
  EXPECT_EQ(hipErrorInvalidValue, put(0, 0, 4, kHeight + 1));
  EXPECT_EQ(hipErrorInvalidValue, put(~size_t{0}, 0, 4, 1));

  hipTextureObject_t texture = nullptr;
  hipResourceDesc resource = array.resource();
  hipTextureDesc desc{};
  const auto create = [&] { return hipCreateTextureObject(&texture, &resource, &desc, nullptr); };
  desc.maxAnisotropy = 4;
  EXPECT_EQ(hipErrorNotSupported, create());
  desc = {};
  desc.sRGB = 1;
  EXPECT_EQ(hipErrorNotSupported, create());
  desc = {};
  desc.addressMode[0] = static_cast<hipTextureAddressMode>(7);
  EXPECT_EQ(hipErrorInvalidValue, create());
  desc = {};
  resource.res.array.array = reinterpret_cast<hipArray_t>(&none);
  EXPECT_EQ(hipErrorInvalidHandle, create());
  resource.resType = static_cast<hipResourceType>(9);
  EXPECT_EQ(hipErrorInvalidValue, create());
  Buffer<float> memory(64);
  resource.resType = hipResourceTypeLinear;
  resource.res.linear = {memory.data + 1, floats, 64};
  EXPECT_EQ(hipErrorInvalidValue, create());
  resource.res.linear = {memory.data, floats, 1 << 20};
  EXPECT_NE(hipSuccess, create());
  resource.resType = hipResourceTypePitch2D;
  resource.res.pitch2D = {memory.data, floats, 16, 1, 100};
  EXPECT_EQ(hipErrorInvalidValue, create());
  EXPECT_EQ(hipErrorInvalidValue,
            hipDestroyTextureObject(reinterpret_cast<hipTextureObject_t>(&texture)));
  EXPECT_EQ(hipErrorNotSupported, hipBindTexture(nullptr, nullptr, memory.data, &floats, 4));
  (void)hipGetLastError();
}

/// A kernel that uses a descriptor that isn't one fails; the process continues.
TEST_F(HipTexture, DescriptorsThatAreNone) {
  Buffer<uint32_t> object(20);
  Buffer<float> at(2);
  Buffer<Pixel> out(1);
  uint64_t state = 3;
  int failed = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<uint32_t> words(20);
    for (uint32_t& word : words) {
      state = state * 6364136223846793005 + 1442695040888963407;
      word = static_cast<uint32_t>(state >> 32);
    }
    if (round % 2 == 0) words[3] = 9u << 28 | (words[3] & 0xfff);  // a plane without mip levels
    object.set(words);
    testing::internal::CaptureStderr();
    EXPECT_EQ(hipSuccess,
              launch(kernels["read_2d"], 1, 1, 0, nullptr, object.data, at.data, out.data));
    failed += hipDeviceSynchronize() != hipSuccess;
    testing::internal::GetCapturedStderr();
    (void)hipGetLastError();
  }
  EXPECT_GT(failed, 50);
}

}  // namespace
