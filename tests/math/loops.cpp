#include "tests/math/loops.h"

#include "wick/math/activation.h"
#include "wick/math/half.h"
#include "wick/math/k_blocks.h"
#include "wick/math/random.h"
#include "wick/math/scalar.h"

namespace wick::math_test {
namespace {

using namespace wick::math;  // NOLINT(google-build-using-namespace)

#define X(name)                                                                         \
  void f32_##name(const float* __restrict in, float* __restrict out, std::size_t n) {   \
    for (std::size_t i = 0; i < n; ++i) out[i] = math::name(in[i]);                     \
  }                                                                                     \
  void f64_##name(const double* __restrict in, double* __restrict out, std::size_t n) { \
    for (std::size_t i = 0; i < n; ++i) out[i] = math::name(in[i]);                     \
  }                                                                                     \
  template <class T>                                                                    \
  void half_##name(const void* in, void* out, std::size_t n) {                          \
    const T* __restrict x = static_cast<const T*>(in);                                  \
    T* __restrict y = static_cast<T*>(out);                                             \
    for (std::size_t i = 0; i < n; ++i) y[i] = from_f32<T>(math::name(to_f32(x[i])));   \
  }
WICK_MATH_UNARY(X)
#undef X

void f64_sin(const double* __restrict in, double* __restrict out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = math::sin(in[i]);
}
void f64_cos(const double* __restrict in, double* __restrict out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = math::cos(in[i]);
}

template <class F>
void maximum_loop(const F* __restrict a, const F* __restrict b, F* __restrict out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = math::maximum(a[i], b[i]);
}
template <class F>
void minimum_loop(const F* __restrict a, const F* __restrict b, F* __restrict out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = math::minimum(a[i], b[i]);
}

template <class To, class From>
void cast_loop(const void* in, void* out, std::size_t n) {
  const From* __restrict x = static_cast<const From*>(in);
  To* __restrict y = static_cast<To*>(out);
  for (std::size_t i = 0; i < n; ++i) y[i] = cast<To>(x[i]);
}

template <class Block>
void dequantize_loop(const void* in, float* __restrict out, std::size_t blocks) {
  const Block* __restrict b = static_cast<const Block*>(in);
  for (std::size_t i = 0; i < blocks; ++i) dequantize(b[i], out + kBlockValues<Block> * i);
}
template <class Block>
void quantize_loop(const float* __restrict in, void* out, std::size_t blocks) {
  Block* __restrict b = static_cast<Block*>(out);
  for (std::size_t i = 0; i < blocks; ++i) quantize(in + kBlockValues<Block> * i, b + i);
}

void activation_loop(const float* __restrict x, signed char* __restrict q, float* __restrict d,
                     int* __restrict sum, std::size_t blocks) {
  for (std::size_t i = 0; i < blocks; ++i) {
    const ActivationScale s = quantize_activation(x + 32 * i, q + 32 * i);
    d[i] = s.d;
    sum[i] = s.sum;
  }
}

void uniform_f32_loop(unsigned long seed, float* __restrict out, std::size_t groups) {
  for (std::size_t i = 0; i < groups; ++i) {
    const Philox4 r = philox(seed, 0, i);
    for (std::size_t j = 0; j < 4; ++j) out[4 * i + j] = uniform_f32(r.v[j]);
  }
}
void uniform_f64_loop(unsigned long seed, double* __restrict out, std::size_t groups) {
  for (std::size_t i = 0; i < groups; ++i) {
    const Philox4 r = philox(seed, 0, i);
    out[2 * i] = uniform_f64(r.v[0], r.v[1]);
    out[2 * i + 1] = uniform_f64(r.v[2], r.v[3]);
  }
}

}  // namespace

#define WICK_CAST_ROW(To)                                                                  \
  {                                                                                        \
    cast_loop<To, u8>, cast_loop<To, u32>, cast_loop<To, i16>, cast_loop<To, i32>,         \
        cast_loop<To, i64>, cast_loop<To, bf16>, cast_loop<To, f16>, cast_loop<To, float>, \
        cast_loop<To, double>, cast_loop<To, f8e4m3>                                       \
  }

extern const Loops WICK_MATH_LOOPS = {
#define X(name) f32_##name,
    {WICK_MATH_UNARY(X)},
#undef X
#define X(name) f64_##name,
    {WICK_MATH_UNARY(X) f64_sin, f64_cos},
#undef X
#define X(name) half_##name<math::f16>,
    {WICK_MATH_UNARY(X)},
#undef X
#define X(name) half_##name<math::bf16>,
    {WICK_MATH_UNARY(X)},
#undef X
    maximum_loop<float>,
    minimum_loop<float>,
    maximum_loop<double>,
    minimum_loop<double>,
    {WICK_CAST_ROW(u8), WICK_CAST_ROW(u32), WICK_CAST_ROW(i16), WICK_CAST_ROW(i32),
     WICK_CAST_ROW(i64), WICK_CAST_ROW(bf16), WICK_CAST_ROW(f16), WICK_CAST_ROW(float),
     WICK_CAST_ROW(double), WICK_CAST_ROW(f8e4m3)},
    {dequantize_loop<BlockQ4_0>, dequantize_loop<BlockQ4_1>, dequantize_loop<BlockQ5_0>,
     dequantize_loop<BlockQ5_1>, dequantize_loop<BlockQ8_0>, dequantize_loop<BlockQ4_K>,
     dequantize_loop<BlockQ6_K>},
    {quantize_loop<BlockQ4_0>, quantize_loop<BlockQ4_1>, quantize_loop<BlockQ5_0>, nullptr,
     quantize_loop<BlockQ8_0>, quantize_loop<BlockQ4_K>, quantize_loop<BlockQ6_K>},
    activation_loop,
    uniform_f32_loop,
    uniform_f64_loop,
};

}  // namespace wick::math_test
