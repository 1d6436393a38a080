// Floating point of every width: division, roots, rounding, classes, conversions.
#include "corpus.h"

KERNEL float_arithmetic(ARGUMENTS) {
  ENTER;
  const float a = in.f[0], b = in.f[1], c = in.f[2];
  out.put(a + b);
  out.put(a - b);
  out.put(a * b);
  out.put(__builtin_fmaf(a, b, c));
  out.put(-a * __builtin_fabsf(b));
  out.put(__builtin_fmaf(-a, b, __builtin_fabsf(c)));
  out.put(a * 0.5f + 3.25f);
  out.put(__builtin_fmaf(a, 3.14159f, b));
  out.put(__builtin_fmaf(a, b, 2.71828f));
  out.put(a < b ? a : c);
  out.put(a >= c);
  out.put(!(a > b));
  out.put(__builtin_copysignf(a, b));
  out.put(a == b || c != a);
}

KERNEL float_division(ARGUMENTS) {
  ENTER;
  out.put(in.f[0] / in.f[1]);
  out.put(1.0f / in.f[2]);
  out.put(in.d[0] / in.d[1]);
  out.put(1.0 / in.d[2]);
  out.put(in.h[0] / in.h[1]);
  out.put(__builtin_sqrtf(__builtin_fabsf(in.f[3])));
  out.put(__builtin_sqrt(__builtin_fabs(in.d[3])));
  out.put(in.f[4] / 3.0f);
}

KERNEL double_arithmetic(ARGUMENTS) {
  ENTER;
  const double a = in.d[0], b = in.d[1], c = in.d[2];
  out.put(a + b);
  out.put(a - b);
  out.put(a * b);
  out.put(__builtin_fma(a, b, c));
  out.put(__builtin_floor(a));
  out.put(__builtin_ceil(b));
  out.put(__builtin_trunc(c));
  out.put(__builtin_rint(a));
  out.put(a < b ? c : a);
  out.put(a > 1.0 ? b * 2.0 : b * 0.1);
  out.put(__builtin_ldexp(a, static_cast<int>(in.small[0] % 40) - 20));
}

KERNEL half_arithmetic(ARGUMENTS) {
  ENTER;
  const half a = in.h[0], b = in.h[1], c = in.h[2];
  out.put(static_cast<half>(a + b));
  out.put(static_cast<half>(a - b));
  out.put(static_cast<half>(a * b));
  out.put(static_cast<half>(a * b + c));
  out.put(a < b);
  out.put(a == c ? a : b);
  out.put(static_cast<float>(a) + in.f[0]);
  out.put(static_cast<half>(in.f[1]));
  out.put(static_cast<float>(c));
  out.put(static_cast<half>(static_cast<float>(a) * static_cast<float>(b) + static_cast<float>(c)));
  out.put(__builtin_fmaf(static_cast<float>(a), static_cast<float>(b), in.f[2]));
  out.put(static_cast<half>(static_cast<i16>(in.i[0] & 0x3ff)));
  out.put(static_cast<i32>(static_cast<half>(static_cast<float>(in.small[1]))));
}

DEVICE float bf16(u32 x) { return __builtin_bit_cast(float, x << 16); }
DEVICE u32 to_bf16(float x) {
  const u32 u = __builtin_bit_cast(u32, x);
  return x != x ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

KERNEL bfloat_arithmetic(ARGUMENTS) {
  ENTER;
  const float a = bf16(in.i[0] & 0xffff), b = bf16(in.i[1] >> 16);
  out.put(to_bf16(a + b));
  out.put(to_bf16(a * b) << 16 | to_bf16(in.f[0]));
  const __bf16 x = static_cast<__bf16>(in.f[1]), y = static_cast<__bf16>(in.f[2]);
  out.put(static_cast<float>(x));
  const float product = static_cast<float>(x) * static_cast<float>(y);
  out.put(product);
}

KERNEL rounding(ARGUMENTS) {
  ENTER;
  const float a = in.f[0], b = in.f[1];
  out.put(__builtin_floorf(a));
  out.put(__builtin_ceilf(a));
  out.put(__builtin_truncf(b));
  out.put(__builtin_rintf(b));
  out.put(__builtin_nearbyintf(a));
  out.put(__builtin_roundf(b));
  out.put(__builtin_ldexpf(a, static_cast<int>(in.small[0] % 60) - 30));
#ifdef __AMDGCN__
  out.put(__builtin_amdgcn_fractf(__builtin_fabsf(a) < 1e30f ? a : 0.0f));
  out.put(__builtin_amdgcn_frexp_mantf(a));
  out.put(__builtin_amdgcn_frexp_expf(__builtin_fabsf(a) < 1e38f ? a : 0.0f));
  out.put(__builtin_amdgcn_fmed3f(1.0f, in.small[0] * 0.01f, in.small[1] * 0.01f));
#else
  const float x = std::fabs(a) < 1e30f ? a : 0.0f;
  out.put(std::min(x - std::floor(x), 0x1.fffffep-1f));
  int e = 0;
  out.put(std::isinf(a) ? a : std::frexp(a, &e));
  std::frexp(std::fabs(a) < 1e38f ? a : 0.0f, &e);
  out.put(e);
  const float p = in.small[0] * 0.01f, q = in.small[1] * 0.01f;
  out.put(std::max(std::min(1.0f, p), std::min(std::max(1.0f, p), q)));
#endif
}

KERNEL least_and_most(ARGUMENTS) {
  ENTER;
  // Zeros of different sign must not occur here, because the languages leave their order open.
  const float a = in.f[0] + 1.0f, b = in.f[1] + 1.0f, c = in.f[2] + 1.0f;
  out.put(__builtin_fminf(a, b));
  out.put(__builtin_fmaxf(a, b));
  out.put(__builtin_fmaxf(__builtin_fmaxf(a, b), c));
  out.put(__builtin_fminf(__builtin_fminf(a, b), c));
  out.put(__builtin_fminf(__builtin_fmaxf(a, -5.0f), 5.0f));
  out.put(__builtin_fmaxf(__builtin_fminf(a, b), c));
  out.put(__builtin_fmin(in.d[0] + 1, in.d[1] + 1));
  out.put(__builtin_fmax(in.d[0] + 1, in.d[2] + 1));
  out.put(__builtin_fminf(__builtin_fmaxf(a * b, 0.0f), 1.0f) + 0.0f);
}

KERNEL classes(ARGUMENTS) {
  ENTER;
  out.put(__builtin_isnan(in.f[0]) != 0);
  out.put(__builtin_isinf(in.f[1]) != 0);
  out.put(__builtin_isfinite(in.f[2]) != 0);
  out.put(__builtin_isnormal(in.f[3]) != 0);
  out.put(__builtin_isfpclass(in.f[4], 0x90) != 0);
  out.put(__builtin_isinf(in.d[0]) != 0);
  out.put(__builtin_isnormal(in.d[1]) != 0);
  out.put(__builtin_signbit(in.f[5]) != 0);
}

KERNEL conversions(ARGUMENTS) {
  ENTER;
  out.put(static_cast<float>(static_cast<i32>(in.i[0])));
  out.put(static_cast<float>(in.i[1]));
  out.put(static_cast<double>(static_cast<i32>(in.i[2])));
  out.put(static_cast<double>(in.i[3]));
  out.put(static_cast<float>(in.l[0]));
  out.put(static_cast<double>(in.l[1]));
  out.put(static_cast<float>(static_cast<u64>(in.l[2])));
  out.put(static_cast<double>(static_cast<u64>(in.l[3])));
  out.put(static_cast<float>(in.d[0]));
  out.put(static_cast<double>(in.f[0]));
  const float moderate = static_cast<float>(static_cast<i32>(in.i[4])) * 0.37f;
  out.put(static_cast<i32>(moderate));
  out.put(static_cast<u32>(moderate < 0 ? -moderate : moderate));
  out.put(static_cast<i64>(moderate * 1000.0f));
  out.put(static_cast<u64>(static_cast<double>(in.i[5]) * 12345.678));
  out.put(static_cast<i32>(static_cast<double>(static_cast<i32>(in.i[6])) * 0.77));
  out.put(static_cast<float>(in.i[7] & 255) + static_cast<float>(in.i[7] >> 24) * 2.0f +
          static_cast<float>(in.i[7] >> 8 & 255) * 4.0f + static_cast<float>(in.i[7] >> 16 & 255));
  out.put(static_cast<i32>(static_cast<i8>(in.i[0])) + static_cast<i32>(static_cast<i16>(in.i[1])));
  out.put(static_cast<u32>(static_cast<double>(in.i[1]) * 0.9));
}

/// These results may have a relative error, since their bits are unspecified.
KERNEL approx_functions(ARGUMENTS) {
  ENTER;
  const float x = static_cast<float>(in.small[0]) * 0.01f + 0.125f;
#ifdef __AMDGCN__
  out.put(__builtin_amdgcn_rcpf(x));
  out.put(__builtin_amdgcn_rsqf(x));
  out.put(__builtin_amdgcn_sqrtf(x));
  out.put(__builtin_amdgcn_exp2f(x));
  out.put(__builtin_amdgcn_logf(x + 1.5f));
  out.put(__builtin_amdgcn_sinf(x * 0.001f) + 2.0f);
  out.put(__builtin_amdgcn_cosf(x * 0.001f) + 2.0f);
  out.put(static_cast<float>(__builtin_amdgcn_rcp(static_cast<double>(x))));
  out.put(static_cast<float>(__builtin_amdgcn_rsq(static_cast<double>(x))));
#else
  out.put(1.0f / x);
  out.put(1.0f / std::sqrt(x));
  out.put(std::sqrt(x));
  out.put(std::exp2(x));
  out.put(std::log2(x + 1.5f));
  out.put(static_cast<float>(std::sin(x * 0.001f * 6.283185307)) + 2.0f);
  out.put(static_cast<float>(std::cos(x * 0.001f * 6.283185307)) + 2.0f);
  out.put(static_cast<float>(1.0 / static_cast<double>(x)));
  out.put(static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))));
#endif
  out.put(__builtin_elementwise_exp2(x));
  out.put(__builtin_elementwise_log2(x + 1.5f));
  out.put(__builtin_elementwise_sin(x) + 2.0f);
  out.put(__builtin_elementwise_cos(x) + 2.0f);
  out.put(__builtin_elementwise_exp(x));
  out.put(__builtin_elementwise_log(x + 2.0f));
  out.put(__builtin_elementwise_log10(x + 2.0f));
}
