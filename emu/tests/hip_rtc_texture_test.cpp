// Textures in programs of hiprtc: HIP's functions, compared with the texels that their definitions
// name.

#include <algorithm>
#include <cmath>

#include "emu/tests/hip_array_support.h"
#include "emu/tests/hip_rtc_support.h"

namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void planes(hipTextureObject_t t, const float* at, float* out) {
  const int i = threadIdx.x;
  const float x = at[2 * i], y = at[2 * i + 1];
  float* to = out + 6 * i;
  to[0] = tex2D<float>(t, x, y);
  to[1] = tex2DLod<float>(t, x, y, 0);
  to[2] = tex2DGrad<float>(t, x, y, make_float2(x, y), make_float2(y, x));
  to[3] = tex2DGrad<float>(t, x, y, make_float2(0, 0), make_float2(0, 0));
  tex2D(to + 4, t, x, y);
  to[5] = tex2D<float4>(t, x, y).w;
}
extern "C" __global__ void lines(hipTextureObject_t t, const float* at, float* out) {
  const int i = threadIdx.x;
  out[3 * i] = tex1D<float>(t, at[i]);
  out[3 * i + 1] = tex1DLod<float>(t, at[i], 0);
  out[3 * i + 2] = tex1DGrad<float>(t, at[i], at[i], at[i]);
}
template <class T>
__global__ void elements(hipTextureObject_t t, T* out) {
  out[threadIdx.x] = tex1Dfetch<T>(t, static_cast<int>(threadIdx.x));
}
template <class T>
__global__ void texels(hipTextureObject_t t, T* out) {
  tex2D(out + threadIdx.x, t, threadIdx.x + 0.5f, 0.5f);
}
extern "C" __global__ void gather(hipTextureObject_t t, const float* at, float4* out) {
  const int i = threadIdx.x;
  out[2 * i] = tex2Dgather<float4>(t, at[2 * i], at[2 * i + 1]);
  out[2 * i + 1] = tex2Dgather<float4>(t, at[2 * i], at[2 * i + 1], 1);
}
)";

float clamped(int x, int y) {
  return texel(std::clamp(x, 0, kWidth - 1), std::clamp(y, 0, kHeight - 1));
}

/// The value at coordinates in texels, which are multiples of 1/8.
float value_at(float x, float y, bool linear) {
  if (!linear) return clamped(static_cast<int>(std::floor(x)), static_cast<int>(std::floor(y)));
  const float bx = std::floor(x - 0.5f), by = std::floor(y - 0.5f);
  const float fx = x - 0.5f - bx, fy = y - 0.5f - by;
  const int ix = static_cast<int>(bx), iy = static_cast<int>(by);
  return (1 - fy) * ((1 - fx) * clamped(ix, iy) + fx * clamped(ix + 1, iy)) +
         fy * ((1 - fx) * clamped(ix, iy + 1) + fx * clamped(ix + 1, iy + 1));
}

std::vector<float> points() {
  std::vector<float> at;
  for (int i = 0; i < 60; ++i) {
    at.push_back(static_cast<float>(i * 29 % 101) * 0.25f - 6);
    at.push_back(static_cast<float>(i * 17 % 97) * 0.125f - 3);
  }
  return at;
}

TEST(HipRtcTexture, Planes) {
  const Compiled program(kSource);
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  fill(array);
  const std::vector<float> at = points();
  const size_t count = at.size() / 2;
  for (const bool linear : {false, true}) {
    for (const bool normalized : {false, true}) {
      const Texture texture(
          array.resource(),
          texture_desc(hipAddressModeClamp, linear ? hipFilterModeLinear : hipFilterModePoint,
                       normalized));
      std::vector<float> scaled = at;
      for (size_t i = 0; normalized && i < at.size(); ++i) {
        // A little more than the quotient, so that rounding doesn't reach the texel before.
        scaled[i] = std::nextafter(at[i] / (i % 2 == 0 ? kWidth : kHeight), 1e9f);
      }
      Buffer<float> in(at.size()), out(6 * count);
      in.set(scaled);
      run(program["planes"], 1, static_cast<unsigned>(count), texture.handle, in.data, out.data);
      const std::vector<float> got = out.get();
      for (size_t i = 0; i < count; ++i) {
        const float want = value_at(at[2 * i], at[2 * i + 1], linear);
        for (size_t k = 0; k < 5; ++k) {
          // A normalized coordinate may be rounded to another 256th, of 10 at most.
          EXPECT_NEAR(got[6 * i + k], want, linear && normalized ? 0.3f : 1e-4f)
              << linear << normalized << " function " << k << " at " << at[2 * i] << ", "
              << at[2 * i + 1];
        }
        EXPECT_EQ(got[6 * i + 5], 1);
      }
    }
  }
}

/// The nearest texel is the one that a coordinate lies in, however close the next one is.
TEST(HipRtcTexture, NearestTexel) {
  const Compiled program(kSource);
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  fill(array);
  std::vector<float> at;
  for (int i = 1; i < kWidth; ++i) {
    at.push_back(std::nextafter(static_cast<float>(i), 0.f));
    at.push_back(std::nextafter(static_cast<float>(i % kHeight + 1), 0.f));
  }
  const size_t count = at.size() / 2;
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModePoint, false));
  Buffer<float> in(at.size()), out(6 * count);
  in.set(at);
  run(program["planes"], 1, static_cast<unsigned>(count), texture.handle, in.data, out.data);
  const std::vector<float> got = out.get();
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(got[6 * i], texel(static_cast<int>(i), static_cast<int>((i + 1) % kHeight))) << i;
  }
}

TEST(HipRtcTexture, Lines) {
  const Compiled program(kSource);
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), 10, 0);
  std::vector<float> values;
  for (int i = 0; i < 10; ++i) values.push_back(static_cast<float>(i * i));
  HIP_OK(hipMemcpy2DToArray(array, 0, 0, values.data(), 40, 40, 1, hipMemcpyHostToDevice));
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModeLinear, false));
  const std::vector<float> at = {0.5f, 1, 5.5f, 9.25f, -2, 40};
  const float want[] = {0, 0.5f, 25, 64 + 17 * 0.75f, 0, 81};
  Buffer<float> in(at.size()), out(3 * at.size());
  in.set(at);
  run(program["lines"], 1, static_cast<unsigned>(at.size()), texture.handle, in.data, out.data);
  const std::vector<float> got = out.get();
  for (size_t i = 0; i < at.size(); ++i) {
    for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(got[3 * i + k], want[i], 1e-4) << i << " " << k;
  }
}

/// Elements of each type, read from linear memory and from an array.
template <class T>
void check_elements(const char* type, int channels, hipChannelFormatKind kind) {
  const std::string names[] = {"elements<" + std::string(type) + ">",
                               "texels<" + std::string(type) + ">"};
  const Compiled program(kSource, {}, {names[0].c_str(), names[1].c_str()});
  constexpr size_t kCount = 24;
  std::vector<T> values(kCount * static_cast<size_t>(channels));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(static_cast<int64_t>(i * 2654435761u) - (1ll << 30));
  }
  const hipChannelFormatDesc desc = desc_of(8 * sizeof(T), channels, kind);
  Buffer<T> memory(values.size()), out(values.size());
  memory.set(values);
  hipResourceDesc resource{};
  resource.resType = hipResourceTypeLinear;
  resource.res.linear = {memory.data, desc, values.size() * sizeof(T)};
  {
    const Texture texture(resource, hipTextureDesc{});
    run(program.named(names[0].c_str()), 1, kCount, texture.handle, out.data);
    EXPECT_EQ(out.get(), values) << type;
  }
  const Array array(desc, kCount, 1);
  const size_t bytes = values.size() * sizeof(T);
  HIP_OK(hipMemcpy2DToArray(array, 0, 0, values.data(), bytes, bytes, 1, hipMemcpyHostToDevice));
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModePoint, false));
  out.set(std::vector<T>(values.size()));
  run(program.named(names[1].c_str()), 1, kCount, texture.handle, out.data);
  EXPECT_EQ(out.get(), values) << type;
}

TEST(HipRtcTexture, TypesOfElements) {
  check_elements<float>("float", 1, hipChannelFormatKindFloat);
  check_elements<float>("float4", 4, hipChannelFormatKindFloat);
  check_elements<int>("int2", 2, hipChannelFormatKindSigned);
  check_elements<uint32_t>("unsigned", 1, hipChannelFormatKindUnsigned);
  check_elements<int16_t>("short4", 4, hipChannelFormatKindSigned);
  check_elements<uint16_t>("ushort2", 2, hipChannelFormatKindUnsigned);
  check_elements<int8_t>("char4", 4, hipChannelFormatKindSigned);
  check_elements<uint8_t>("uchar1", 1, hipChannelFormatKindUnsigned);
  check_elements<uint8_t>("unsigned char", 1, hipChannelFormatKindUnsigned);
}

TEST(HipRtcTexture, Gather) {
  const Compiled program(kSource);
  const Array array(desc_of(32, 2, hipChannelFormatKindFloat), kWidth, kHeight);
  std::vector<float> all;
  for (const float value : texels()) all.insert(all.end(), {value, -value});
  HIP_OK(hipMemcpy2DToArray(array, 0, 0, all.data(), kWidth * 8, kWidth * 8, kHeight,
                            hipMemcpyHostToDevice));
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModePoint, false));
  const std::vector<float> at = points();
  Buffer<float> in(at.size()), out(4 * at.size());
  in.set(at);
  run(program["gather"], 1, static_cast<unsigned>(at.size() / 2), texture.handle, in.data,
      out.data);
  const std::vector<float> got = out.get();
  for (size_t i = 0; i < at.size() / 2; ++i) {
    const int x = static_cast<int>(std::floor(at[2 * i] - 0.5f)),
              y = static_cast<int>(std::floor(at[2 * i + 1] - 0.5f));
    const float want[] = {clamped(x, y + 1), clamped(x + 1, y + 1), clamped(x + 1, y),
                          clamped(x, y)};
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(got[8 * i + k], want[k]) << i << " " << k;
      EXPECT_EQ(got[8 * i + 4 + k], -want[k]) << i << " " << k;
    }
  }
}

}  // namespace
