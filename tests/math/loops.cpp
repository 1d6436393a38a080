#include "tests/math/loops.h"

#include "wick/math/activation.h"
#include "wick/math/arithmetic.h"
#include "wick/math/half.h"
#include "wick/math/narrow.h"
#include "wick/math/quants.h"
#include "wick/math/random.h"

namespace wick::math_test {
namespace {

using namespace wick::math;  // NOLINT(google-build-using-namespace)

/// Converts a storage type to its compute type, and back.
template <class T>
auto wide(T x) {
  if constexpr (math::Real<T>) {
    return x;
  } else {
    return to_f32(x);
  }
}
template <class T, class Y>
T narrow(Y y) {
  if constexpr (kSame<T, Y>) {
    return y;
  } else {
    return from_f32<T>(y);
  }
}

// Calls the function of a name for numbers that are loaded from a storage type and stored as it.
#define WICK_MATH_CALL(name, ...)      \
  if constexpr (kSame<T, bf16>) {      \
    return of_bf16::name(__VA_ARGS__); \
  } else if constexpr (!Number<T>) {   \
    return of_f16::name(__VA_ARGS__);  \
  } else {                             \
    return math::name(__VA_ARGS__);    \
  }

#define X(name)                                                          \
  template <class T>                                                     \
  void name##_loop(const void* in, void* out, std::size_t n) {           \
    const T* __restrict x = static_cast<const T*>(in);                   \
    T* __restrict y = static_cast<T*>(out);                              \
    const auto f = [](auto v) { WICK_MATH_CALL(name, v) };               \
    for (std::size_t i = 0; i < n; ++i) y[i] = narrow<T>(f(wide(x[i]))); \
  }
WICK_MATH_UNARY(X)
#undef X
#define X(name)                                                  \
  template <class T>                                             \
  void name##_loop(const void* in, void* out, std::size_t n) {   \
    const T* __restrict x = static_cast<const T*>(in);           \
    T* __restrict y = static_cast<T*>(out);                      \
    for (std::size_t i = 0; i < n; ++i) y[i] = math::name(x[i]); \
  }
X(sin_of_near)
X(cos_of_near)
#undef X
#define X(name)                                                                      \
  template <class T>                                                                 \
  void name##_loop2(const void* a, const void* b, void* out, std::size_t n) {        \
    const T* __restrict x = static_cast<const T*>(a);                                \
    const T* __restrict y = static_cast<const T*>(b);                                \
    T* __restrict z = static_cast<T*>(out);                                          \
    const auto f = [](auto u, auto v) { WICK_MATH_CALL(name, u, v) };                \
    for (std::size_t i = 0; i < n; ++i) z[i] = narrow<T>(f(wide(x[i]), wide(y[i]))); \
  }
WICK_MATH_BINARY(X)
#undef X
#define X(name)                                                                  \
  template <class T>                                                             \
  void whole_##name(const void* in, void* out, std::size_t n) {                  \
    const T* __restrict x = static_cast<const T*>(in);                           \
    T* __restrict y = static_cast<T*>(out);                                      \
    for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<T>(math::name(x[i])); \
  }
WICK_MATH_WHOLE_UNARY(X)
#undef X
#define X(name)                                                                        \
  template <class T>                                                                   \
  void whole2_##name(const void* a, const void* b, void* out, std::size_t n) {         \
    const T* __restrict x = static_cast<const T*>(a);                                  \
    const T* __restrict y = static_cast<const T*>(b);                                  \
    T* __restrict z = static_cast<T*>(out);                                            \
    for (std::size_t i = 0; i < n; ++i) z[i] = static_cast<T>(math::name(x[i], y[i])); \
  }
WICK_MATH_WHOLE_BINARY(X)
#undef X
#define X(name)                                                                 \
  template <class T>                                                            \
  void compare_##name(const void* a, const void* b, void* out, std::size_t n) { \
    const T* __restrict x = static_cast<const T*>(a);                           \
    const T* __restrict y = static_cast<const T*>(b);                           \
    u8* __restrict z = static_cast<u8*>(out);                                   \
    for (std::size_t i = 0; i < n; ++i) z[i] = math::name(x[i], y[i]) ? 1 : 0;  \
  }
WICK_MATH_COMPARE(X)
#undef X

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

void shared_activation_loop(const float* __restrict x, signed char* __restrict q,
                            float* __restrict d, int* __restrict sum, std::size_t blocks) {
  for (std::size_t i = 0; i < blocks; i += kSharedBlocks) {
    const float scale = quantize_activations(x + 32 * i, kSharedBlocks, q + 32 * i, sum + i);
    for (std::size_t b = i; b < i + kSharedBlocks; ++b) d[b] = scale;
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

#define WICK_CAST_ROW(To)                                                                  \
  {                                                                                        \
    cast_loop<To, u8>, cast_loop<To, u32>, cast_loop<To, i16>, cast_loop<To, i32>,         \
        cast_loop<To, i64>, cast_loop<To, bf16>, cast_loop<To, f16>, cast_loop<To, float>, \
        cast_loop<To, double>, cast_loop<To, f8e4m3>                                       \
  }

template <class T>
constexpr void set_functions(Loop1 (&unary)[kUnaries], Loop2 (&binary)[kBinaries]) {
  int i = 0, j = 0;
#define X(name) unary[i++] = name##_loop<T>;
  WICK_MATH_UNARY(X)
#undef X
#define X(name) binary[j++] = name##_loop2<T>;
  WICK_MATH_BINARY(X)
#undef X
}

template <class T>
constexpr void set_whole(Loop1 (&unary)[kWholeUnaries], Loop2 (&binary)[kWholeBinaries]) {
  int i = 0, j = 0;
#define X(name) unary[i++] = whole_##name<T>;
  WICK_MATH_WHOLE_UNARY(X)
#undef X
#define X(name) binary[j++] = whole2_##name<T>;
  WICK_MATH_WHOLE_BINARY(X)
#undef X
}

template <class T>
constexpr void set_compare(Loop2 (&compare)[kCompares]) {
  int i = 0;
#define X(name) compare[i++] = compare_##name<T>;
  WICK_MATH_COMPARE(X)
#undef X
}

constexpr Loops make_loops() {
  Loops l = {
      {},
      {},
      {},
      {},
      {},
      sin_of_near_loop<float>,
      cos_of_near_loop<float>,
      sin_of_near_loop<double>,
      cos_of_near_loop<double>,
      {WICK_CAST_ROW(u8), WICK_CAST_ROW(u32), WICK_CAST_ROW(i16), WICK_CAST_ROW(i32),
       WICK_CAST_ROW(i64), WICK_CAST_ROW(bf16), WICK_CAST_ROW(f16), WICK_CAST_ROW(float),
       WICK_CAST_ROW(double), WICK_CAST_ROW(f8e4m3)},
      {
#define WICK_QUANT(name, Type, ...) dequantize_loop<Block##Type>,
#include "wick/math/quants.def"
      },
      {
#define WICK_OF_written(Block) quantize_loop<Block>
#define WICK_OF_searched(Block) nullptr
#define WICK_OF_read(Block) nullptr
#define WICK_QUANT(name, Type, number, values, bytes, bits, offset, code, part, scale, at, \
                   minimum_at, products, writes, reach)                                    \
  WICK_OF_##writes(Block##Type),
#include "wick/math/quants.def"
      },
      activation_loop,
      shared_activation_loop,
      uniform_f32_loop,
      uniform_f64_loop,
  };
  set_functions<float>(l.unary[kFloat32], l.binary[kFloat32]);
  set_functions<double>(l.unary[kFloat64], l.binary[kFloat64]);
  set_functions<f16>(l.unary[kFloat16], l.binary[kFloat16]);
  set_functions<bf16>(l.unary[kFloatB16], l.binary[kFloatB16]);
  set_functions<f8e4m3>(l.unary[kFloat8], l.binary[kFloat8]);
  set_whole<u8>(l.whole_unary[kU8], l.whole_binary[kU8]);
  set_whole<u32>(l.whole_unary[kU32], l.whole_binary[kU32]);
  set_whole<i16>(l.whole_unary[kI16], l.whole_binary[kI16]);
  set_whole<i32>(l.whole_unary[kI32], l.whole_binary[kI32]);
  set_whole<i64>(l.whole_unary[kI64], l.whole_binary[kI64]);
  set_compare<u8>(l.compare[kU8]);
  set_compare<u32>(l.compare[kU32]);
  set_compare<i16>(l.compare[kI16]);
  set_compare<i32>(l.compare[kI32]);
  set_compare<i64>(l.compare[kI64]);
  set_compare<float>(l.compare[kWholes]);
  set_compare<double>(l.compare[kWholes + 1]);
  return l;
}

}  // namespace

extern const Loops WICK_MATH_LOOPS;
const Loops WICK_MATH_LOOPS = make_loops();

}  // namespace wick::math_test
