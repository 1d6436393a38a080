// Mathematics, half and bfloat16 in programs of hiprtc, compared with the host's.

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "emu/tests/hip_rtc_support.h"

namespace {

struct Function {
  const char* name;
  double (*reference)(double, double);
  int arguments;
  double from, to;  // of the arguments
};

// The name, the reference and the number of arguments.
#define ONE(name) #name, [](double x, double) { return static_cast<double>(std::name(x)); }, 1
#define TWO(name) #name, [](double x, double y) { return static_cast<double>(std::name(x, y)); }, 2
constexpr Function kFunctions[] = {
    {ONE(sin), -100, 100},
    {ONE(cos), -100, 100},
    {ONE(tan), -10, 10},
    {ONE(asin), -1, 1},
    {ONE(acos), -1, 1},
    {ONE(atan), -50, 50},
    {ONE(sinh), -20, 20},
    {ONE(cosh), -20, 20},
    {ONE(tanh), -20, 20},
    {ONE(asinh), -1e6, 1e6},
    {ONE(acosh), 1, 1e6},
    {ONE(atanh), -0.99, 0.99},
    {ONE(exp), -80, 80},
    {ONE(exp2), -100, 100},
    {ONE(expm1), -5, 5},
    {ONE(log), 1e-6, 1e6},
    {ONE(log2), 1e-6, 1e6},
    {ONE(log10), 1e-6, 1e6},
    {ONE(log1p), -0.9, 100},
    {ONE(sqrt), 0, 1e6},
    {ONE(cbrt), -1e6, 1e6},
    {ONE(erf), -3, 3},
    {ONE(erfc), -3, 3},
    {ONE(floor), -50, 50},
    {ONE(ceil), -50, 50},
    {ONE(trunc), -50, 50},
    {ONE(round), -50, 50},
    {ONE(rint), -50, 50},
    {ONE(fabs), -50, 50},
    {ONE(logb), 0.1, 1e6},
    {TWO(pow), 0.01, 20},
    {TWO(atan2), -5, 5},
    {TWO(fmod), -50, 50},
    {TWO(hypot), -100, 100},
    {TWO(fmax), -5, 5},
    {TWO(fmin), -5, 5},
    {TWO(fdim), -5, 5},
    {TWO(copysign), -5, 5},
    {TWO(remainder), -50, 50},
    {"rsqrt", [](double x, double) { return 1 / std::sqrt(x); }, 1, 0.01, 1e6},
    {"exp10", [](double x, double) { return std::pow(10., x); }, 1, -30, 30},
    {"sinpi", [](double x, double) { return std::sin(M_PI * x); }, 1, 0.1, 0.9},
    {"normcdf", [](double x, double) { return std::erfc(-x * M_SQRT1_2) / 2; }, 1, -3, 3},
};
#undef ONE
#undef TWO

std::string math_kernels() {
  std::string source;
  for (const Function& f : kFunctions) {
    const std::string two = f.arguments == 2 ? ", y[i]" : "";
    for (const char* type : {"float", "double"}) {
      source += "extern \"C\" __global__ void " + std::string(f.name) + "_" + type + "(const " +
                type + "* x, const " + type + "* y, " + type +
                "* to) { const int i = threadIdx.x; " + "to[i] = " + f.name + "(x[i]" + two + "); ";
      if (*type == 'f') {  // the name with an f gives the same bits
        source += "if (to[i] != " + std::string(f.name) + "f(x[i]" + two + ")) to[i] = NAN_; ";
      }
      source += "}\n";
    }
  }
  return "#define NAN_ __builtin_nanf(\"\")\n" + source;
}

template <class T>
void check_function(const Compiled& program, const Function& f, double units) {
  constexpr int kCount = 256;
  const std::string name = std::string(f.name) + (sizeof(T) == 4 ? "_float" : "_double");
  std::vector<T> x, y;
  for (int i = 0; i < kCount; ++i) {
    x.push_back(static_cast<T>(f.from + (f.to - f.from) * i / (kCount - 1)));
    y.push_back(static_cast<T>(f.from + (f.to - f.from) * (i * 37 % kCount + 0.3) / kCount));
  }
  Buffer<T> bx(kCount), by(kCount), to(kCount);
  bx.set(x);
  by.set(y);
  run(program[name.c_str()], 1, kCount, bx.data, by.data, to.data);
  const std::vector<T> got = to.get();
  for (size_t i = 0; i < kCount; ++i) {
    const double wanted = f.reference(static_cast<double>(x[i]), static_cast<double>(y[i]));
    const double unit = std::max(std::abs(wanted), 1e-30) * (sizeof(T) == 4 ? 0x1p-23 : 0x1p-52);
    EXPECT_NEAR(static_cast<double>(got[i]), wanted, units * unit)
        << name << " of " << x[i] << ", " << y[i];
  }
}

TEST(HipRtcMath, FloatAndDouble) {
  const Compiled program(math_kernels());
  for (const Function& f : kFunctions) {
    // The references of these are inexact by the size of their intermediate values; erfc is
    // accurate to some tens of units.
    const std::string name = f.name;
    const bool wide = name == "sinpi" || name == "exp10" || name == "erfc" || name == "normcdf";
    check_function<float>(program, f, 2);
    check_function<double>(program, f, wide ? 64 : 8);
  }
}

TEST(HipRtcMath, FastFormsAndOthers) {
  const Compiled program(R"(
    extern "C" __global__ void fast(const float* x, float* to) {
      const float a = x[threadIdx.x];
      float* mine = to + 32 * threadIdx.x;
      float s, c, w;
      int e, q;
      sincosf(a, &s, &c);
      mine[0] = __sinf(a); mine[1] = __cosf(a); mine[2] = __expf(a); mine[3] = __logf(a); mine[4] = __log2f(a);
      mine[5] = __powf(a, 2.5f); mine[6] = __fdividef(1, a); mine[7] = s; mine[8] = c; mine[9] = __saturatef(a - 1);
      mine[10] = frexpf(a, &e); mine[11] = e; mine[12] = modff(a, &w); mine[13] = w; mine[14] = remquof(a, 0.7f, &q);
      mine[15] = ldexpf(a, 3); mine[16] = fmaf(a, a, -1); mine[17] = __fadd_rn(a, 1e-8f); mine[18] = __frcp_rn(a);
      mine[19] = isnan(a - a) + 2 * isinf(a / 0) + 4 * isfinite(a) + 8 * signbit(-a); mine[20] = norm3df(a, a, a);
      mine[21] = lroundf(a * 10); mine[22] = powif(a, 3); mine[23] = nextafterf(a, 9); mine[24] = pow(a, 2);
      mine[25] = __fsqrt_rn(a); mine[26] = min(a, 1.5f) + max(a, 1.5f); mine[27] = abs(-a);
    })");
  constexpr int kCount = 32;
  std::vector<float> x;
  for (int i = 0; i < kCount; ++i) x.push_back(0.3f + 0.09f * static_cast<float>(i));
  Buffer<float> bx(kCount), to(32 * kCount);
  bx.set(x);
  run(program["fast"], 1, kCount, bx.data, to.data);
  const std::vector<float> got = to.get();
  for (size_t i = 0; i < kCount; ++i) {
    const float a = x[i];
    int e, q;
    float w;
    const float m = std::frexp(a, &e), rest = std::modf(a, &w);
    const float wanted[] = {std::sin(a),
                            std::cos(a),
                            std::exp(a),
                            std::log(a),
                            std::log2(a),
                            std::pow(a, 2.5f),
                            1 / a,
                            std::sin(a),
                            std::cos(a),
                            std::min(std::max(a - 1, 0.f), 1.f),
                            m,
                            static_cast<float>(e),
                            rest,
                            w,
                            std::remquo(a, 0.7f, &q),
                            a * 8,
                            std::fma(a, a, -1.f),
                            a + 1e-8f,
                            1 / a,
                            14,
                            std::sqrt(3 * a * a),
                            static_cast<float>(std::lround(a * 10)),
                            a * a * a,
                            std::nextafter(a, 9.f),
                            a * a,
                            std::sqrt(a),
                            a + 1.5f,
                            a};
    for (size_t k = 0; k < 28; ++k) {
      EXPECT_NEAR(got[32 * i + k], wanted[k], 4e-6f * std::max(1.f, std::abs(wanted[k])))
          << i << " " << k;
    }
  }
}

/// Applies an operation to all 65536 bit patterns, and to pairs of them.
constexpr char kSmallFloats[] = R"(
  #include <hip/hip_fp16.h>
  #include <hip/hip_bf16.h>
  __device__ unsigned short bits(__half x) { return __half_as_ushort(x); }
  __device__ unsigned short bits(__hip_bfloat16 x) { return __bfloat16_as_ushort(x); }
  template <class T> __device__ T of(unsigned short x);
  template <> __device__ __half of<__half>(unsigned short x) { return __ushort_as_half(x); }
  template <> __device__ __hip_bfloat16 of<__hip_bfloat16>(unsigned short x) { return __ushort_as_bfloat16(x); }
  template <class T> __global__ void operate(unsigned short* to) {
    const unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    const T a = of<T>(i), b = of<T>(i * 40503u >> 3);
    unsigned short* mine = to + 8 * i;
    mine[0] = bits(a + b); mine[1] = bits(__hsub(a, b)); mine[2] = bits(a * b); mine[3] = bits(a / b);
    mine[4] = bits(__hfma(a, b, a)); mine[5] = (a < b) + 2 * __hge(a, b) + 4 * (a == b) + 8 * __hisnan(a) + 16 * (__hisinf(a) != 0);
    mine[6] = bits(T(static_cast<float>(a) * 1.001f)); mine[7] = bits(-a);
  }
  extern "C" __global__ void directed(const float* x, unsigned short* to) {
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    to[4 * i] = bits(__float2half_rn(x[i])); to[4 * i + 1] = bits(__float2half_rz(x[i]));
    to[4 * i + 2] = bits(__float2half_ru(x[i])); to[4 * i + 3] = bits(__float2half_rd(x[i]));
  }
  extern "C" __global__ void pairs(const float* x, float* to) {
    const __half2 a = __floats2half2_rn(x[0], x[1]), b(__half(3), __half(0.5f));
    const __half2 c = __hfma2(a, b, a) - h2sqrt(b * b);
    to[0] = __low2float(c); to[1] = __high2float(c);
    const __hip_bfloat162 d = __floats2bfloat162_rn(x[0], x[1]), e = d * d + d;
    to[2] = e.x; to[3] = e.y;
    to[4] = __half2int_rn(__half(2.5f)) + 10 * __half2int_ru(__half(2.25f)) + 100 * __half2uint_rz(__half(-3));
    to[5] = __half2float(hexp(__half(1))) ; to[6] = __hbgt2(a, b);
    __shared__ __half2 sum;
    if (threadIdx.x == 0) sum = __half2(__half(0), __half(0));
    __syncthreads();
    atomicAdd(&sum, __half2(__half(1), __half(2)));
    __syncthreads();
    to[7] = __low2float(sum) + 1000 * __high2float(sum);
  })";

float bf16_value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
/// Rounds to the nearest bfloat16 by comparing with both neighbours.
uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  const uint32_t low = bits & 0xffff, up = bits >> 16;
  const bool round_up = low > 0x8000 || (low == 0x8000 && (up & 1) != 0);
  return static_cast<uint16_t>(up + (round_up ? 1 : 0));
}
bool is_nan16(uint16_t bits, bool half) { return (bits & 0x7fff) > (half ? 0x7c00 : 0x7f80); }

template <class Value, class Bits>
void check_small(const char* type, bool half, const Value& value, const Bits& bits) {
  const std::string expression = std::string("operate<") + type + ">";
  const Compiled program(kSmallFloats, {}, {expression.c_str()});
  Buffer<uint16_t> to(8 * 65536);
  run(program.named(expression.c_str()), 256, 256, to.data);
  const std::vector<uint16_t> got = to.get();
  int wrong = 0;
  for (unsigned i = 0; i < 65536 && wrong < 10; ++i) {
    const auto ai = static_cast<uint16_t>(i), bi = static_cast<uint16_t>(i * 40503u >> 3);
    const float a = value(ai), b = value(bi);
    // float has more than twice the digits, so rounding twice gives what rounding once does; fma is
    // computed in double.
    const uint16_t fma =
        half
            ? std::bit_cast<uint16_t>(static_cast<_Float16>(std::fma(static_cast<double>(a), b, a)))
            : bits(std::fma(a, b, a));
    const uint16_t wanted[] = {bits(a + b),
                               bits(a - b),
                               bits(a * b),
                               bits(a / b),
                               fma,
                               static_cast<uint16_t>((a < b) + 2 * (a >= b) + 4 * (a == b) +
                                                     8 * std::isnan(a) + 16 * std::isinf(a)),
                               bits(a * 1.001f),
                               static_cast<uint16_t>(ai ^ 0x8000)};
    for (size_t k = 0; k < 8; ++k) {
      const uint16_t result = got[8 * i + k];
      // The compiler makes the product and its rounding one fma with the addend +0.
      const bool zero = k == 6 && half && (ai & 0x7fff) == 0 && (result & 0x7fff) == 0;
      const bool both_nan = k != 5 && is_nan16(result, half) && is_nan16(wanted[k], half);
      if (!both_nan && !zero && result != wanted[k] &&
          !(k == 4 && half && std::abs(result - wanted[k]) <= 1)) {
        ADD_FAILURE() << type << " " << i << " operation " << k << ": " << result << " for "
                      << wanted[k];
        ++wrong;
      }
    }
  }
}

TEST(HipRtcMath, Half) {
  check_small(
      "__half", true, [](uint16_t b) { return static_cast<float>(std::bit_cast<_Float16>(b)); },
      [](float v) { return std::bit_cast<uint16_t>(static_cast<_Float16>(v)); });
}
TEST(HipRtcMath, Bfloat16) { check_small("__hip_bfloat16", false, &bf16_value, &bf16_bits); }

/// Directed rounding to half, by search among all halfs.
TEST(HipRtcMath, DirectedRoundingToHalf) {
  const Compiled program(kSmallFloats);
  std::vector<float> x;
  for (int i = 0; i < 1024; ++i) {
    const float size = std::ldexp(1 + static_cast<float>(i * 37 % 1009) / 1009, i % 46 - 28);
    x.push_back(i % 2 == 0 ? size : -size);
  }
  x[0] = 0, x[1] = 65504, x[2] = -65504, x[3] = 1e-9f, x[4] = -1e-9f, x[5] = 2048.5f;
  Buffer<float> bx(1024);
  Buffer<uint16_t> to(4096);
  bx.set(x);
  run(program["directed"], 4, 256, bx.data, to.data);
  const std::vector<uint16_t> got = to.get();
  std::vector<float> halfs;  // ascending, finite
  for (int i = 0x7bff; i > 0; --i)
    halfs.push_back(-static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(i))));
  for (int i = 0; i <= 0x7bff; ++i)
    halfs.push_back(static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(i))));
  const auto value = [](uint16_t bits) {
    return static_cast<float>(std::bit_cast<_Float16>(bits));
  };
  for (size_t i = 0; i < 1024; ++i) {
    if (std::abs(x[i]) > 65504) continue;
    const float up = *std::lower_bound(halfs.begin(), halfs.end(), x[i]);
    const float down = *(std::upper_bound(halfs.begin(), halfs.end(), x[i]) - 1);
    EXPECT_EQ(value(got[4 * i]), static_cast<float>(static_cast<_Float16>(x[i])));
    EXPECT_EQ(value(got[4 * i + 1]), x[i] < 0 ? up : down) << x[i];
    EXPECT_EQ(value(got[4 * i + 2]), up) << x[i];
    EXPECT_EQ(value(got[4 * i + 3]), down) << x[i];
  }
}

TEST(HipRtcMath, PairsOfSmallFloats) {
  const Compiled program(kSmallFloats);
  Buffer<float> x(2), to(8);
  x.set({1.5f, 2.25f});
  run(program["pairs"], 1, 32, x.data, to.data);
  const std::vector<float> got = to.get();
  EXPECT_EQ(got[0], 1.5f * 3 + 1.5f - 3);
  EXPECT_EQ(got[1], 2.25f * 0.5f + 2.25f - 0.5f);
  EXPECT_EQ(got[2], bf16_value(bf16_bits(bf16_value(bf16_bits(1.5f * 1.5f)) + 1.5f)));
  EXPECT_EQ(got[3], bf16_value(bf16_bits(bf16_value(bf16_bits(2.25f * 2.25f)) + 2.25f)));
  EXPECT_EQ(got[4], 2 + 30);
  EXPECT_NEAR(got[5], std::exp(1.f), 2e-3);
  EXPECT_EQ(got[6], 0);
  EXPECT_EQ(got[7], 32 + 64000);
}

}  // namespace
