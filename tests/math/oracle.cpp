#include "tests/math/oracle.h"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace wick::math_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// One MPFR number.
class Big {
 public:
  Big() { mpfr_init2(v_, 160); }
  Big(const Big&) = delete;
  Big& operator=(const Big&) = delete;
  ~Big() { mpfr_clear(v_); }
  mpfr_ptr get() { return v_; }

 private:
  mpfr_t v_;
};

/// Computes y = f(x) with 160 bits.
void evaluate(Unary f, double x, mpfr_ptr y) {
  thread_local Big in, t, c;
  mpfr_set_d(in.get(), x, MPFR_RNDN);
  mpfr_ptr a = in.get();
  switch (f) {
    case k_expm1:
      mpfr_expm1(y, a, MPFR_RNDN);
      break;
    case k_log1p:
      mpfr_log1p(y, a, MPFR_RNDN);
      break;
    case k_erf:
      mpfr_erf(y, a, MPFR_RNDN);
      break;
    case k_normcdf:
    case k_gelu_erf:  // erfc(−x/√2)/2
      mpfr_sqrt_ui(t.get(), 2, MPFR_RNDN);
      mpfr_div(t.get(), a, t.get(), MPFR_RNDN);
      mpfr_neg(t.get(), t.get(), MPFR_RNDN);
      mpfr_erfc(t.get(), t.get(), MPFR_RNDN);
      mpfr_div_2ui(y, t.get(), 1, MPFR_RNDN);
      if (f == k_normcdf) break;
      if (x == -kInf) {
        mpfr_set_zero(y, -1);
      } else {
        mpfr_mul(y, y, a, MPFR_RNDN);
      }
      break;
    case k_gelu:  // x/(1 + exp(−2·√(2/π)·(x + 0.044715·x³)))
      if (x == -kInf) {
        mpfr_set_zero(y, -1);
        break;
      }
      mpfr_sqr(t.get(), a, MPFR_RNDN);
      mpfr_mul_ui(t.get(), t.get(), 44715, MPFR_RNDN);
      mpfr_div_ui(t.get(), t.get(), 1000000, MPFR_RNDN);
      mpfr_add_ui(t.get(), t.get(), 1, MPFR_RNDN);
      mpfr_mul(t.get(), t.get(), a, MPFR_RNDN);
      mpfr_const_pi(c.get(), MPFR_RNDN);
      mpfr_ui_div(c.get(), 8, c.get(), MPFR_RNDN);
      mpfr_sqrt(c.get(), c.get(), MPFR_RNDN);
      mpfr_mul(t.get(), t.get(), c.get(), MPFR_RNDN);
      mpfr_neg(t.get(), t.get(), MPFR_RNDN);
      mpfr_exp(t.get(), t.get(), MPFR_RNDN);
      mpfr_add_ui(t.get(), t.get(), 1, MPFR_RNDN);
      mpfr_div(y, a, t.get(), MPFR_RNDN);
      break;
    case k_sign:
      if (x < 0 || x > 0) {
        mpfr_set_si(y, x < 0 ? -1 : 1, MPFR_RNDN);
      } else {
        mpfr_set(y, a, MPFR_RNDN);
      }
      break;
    case k_exp:
      mpfr_exp(y, a, MPFR_RNDN);
      break;
    case k_log:
      mpfr_log(y, a, MPFR_RNDN);
      break;
    case k_tanh:
      mpfr_tanh(y, a, MPFR_RNDN);
      break;
    case k_silu:
    case k_sigmoid:
      mpfr_neg(t.get(), a, MPFR_RNDN);
      mpfr_exp(t.get(), t.get(), MPFR_RNDN);
      mpfr_add_ui(t.get(), t.get(), 1, MPFR_RNDN);
      if (f == k_sigmoid) {
        mpfr_ui_div(y, 1, t.get(), MPFR_RNDN);
      } else if (x == -kInf) {
        mpfr_set_zero(y, -1);  // the limit; the formula has no value here
      } else {
        mpfr_div(y, a, t.get(), MPFR_RNDN);
      }
      break;
    case k_rsqrt:
      mpfr_sqrt(t.get(), a, MPFR_RNDN);
      mpfr_ui_div(y, 1, t.get(), MPFR_RNDN);
      break;
    case k_recip:
      mpfr_ui_div(y, 1, a, MPFR_RNDN);
      break;
    case k_sqrt:
      mpfr_sqrt(y, a, MPFR_RNDN);
      break;
    case k_abs:
      mpfr_abs(y, a, MPFR_RNDN);
      break;
    case k_neg:
      mpfr_neg(y, a, MPFR_RNDN);
      break;
    case k_sqr:
    case k_square:
      mpfr_sqr(y, a, MPFR_RNDN);
      break;
    case k_relu:
      if (x <= 0) {
        mpfr_set_zero(y, 1);
      } else {
        mpfr_set(y, a, MPFR_RNDN);
      }
      break;
    case k_rint:
      mpfr_rint(y, a, MPFR_RNDN);
      break;
    case k_floor:
      mpfr_rint(y, a, MPFR_RNDD);
      break;
    case k_ceil:
      mpfr_rint(y, a, MPFR_RNDU);
      break;
    case k_round:
      mpfr_round(y, a);
      break;
    case k_sin:
      mpfr_sin(y, a, MPFR_RNDN);
      break;
    case k_cos:
      mpfr_cos(y, a, MPFR_RNDN);
      break;
    case kUnaries:
      mpfr_set_nan(y);
      break;
  }
}

/// Computes z = f(x, y) with 160 bits.
void evaluate(Binary f, double x, double y, mpfr_ptr z) {
  thread_local Big in_a, in_b;
  mpfr_ptr a = in_a.get(), b = in_b.get();
  mpfr_set_d(a, x, MPFR_RNDN);
  mpfr_set_d(b, y, MPFR_RNDN);
  const bool nan = std::isnan(x) || std::isnan(y);
  switch (f) {
    case Binary::k_pow:
      mpfr_pow(z, a, b, MPFR_RNDN);
      break;
    case Binary::k_atan2:
      mpfr_atan2(z, a, b, MPFR_RNDN);
      break;
    case Binary::k_rem:
      mpfr_fmod(z, a, b, MPFR_RNDN);  // has a's sign, and is a for an infinite b
      if (mpfr_nan_p(z)) break;
      if (mpfr_zero_p(z)) {
        mpfr_set_zero(z, std::signbit(y) ? -1 : 1);
      } else if ((mpfr_signbit(z) != 0) != std::signbit(y)) {
        mpfr_add(z, z, b, MPFR_RNDN);
      }
      break;
    case Binary::k_elu:
      if (x > 0) {
        mpfr_set(z, a, MPFR_RNDN);
      } else {
        mpfr_expm1(z, a, MPFR_RNDN);
        mpfr_mul(z, z, b, MPFR_RNDN);
      }
      break;
    case Binary::k_maximum:
    case Binary::k_minimum: {
      const bool less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
      mpfr_set(z, less == (f == Binary::k_maximum) ? b : a, MPFR_RNDN);
      if (nan) mpfr_set_nan(z);
      break;
    }
    case Binary::kCount:
      mpfr_set_nan(z);
      break;
  }
}

/// Returns |got − w| in ulps of double.
double ulp_error_f64(mpfr_ptr w, double got) {
  thread_local Big t;
  if (mpfr_nan_p(w) || std::isnan(got)) return mpfr_nan_p(w) && std::isnan(got) ? 0 : kInf;
  if ((mpfr_signbit(w) != 0) != std::signbit(got)) return kInf;
  if (mpfr_inf_p(w)) return std::isinf(got) ? 0 : kInf;
  const mpfr_exp_t exponent =
      mpfr_zero_p(w) ? -1022 : std::max<mpfr_exp_t>(mpfr_get_exp(w) - 1, -1022);
  if (exponent > 1023) return std::isinf(got) ? 0 : kInf;
  if (std::isinf(got)) {  // infinity counts as 2^1024
    mpfr_set_si_2exp(t.get(), std::signbit(got) ? -1 : 1, 1024, MPFR_RNDN);
  } else {
    mpfr_set_d(t.get(), got, MPFR_RNDN);
  }
  mpfr_sub(t.get(), t.get(), w, MPFR_RNDN);
  mpfr_mul_2si(t.get(), t.get(), 52 - exponent, MPFR_RNDN);
  return std::fabs(mpfr_get_d(t.get(), MPFR_RNDN));
}

/// exp(high + low) and erfc(high + low), where low is far below an ulp of high.
double exp_of(long double x) {
  const double high = static_cast<double>(x);
  const double low = std::fabs(high) > 800 ? 0 : static_cast<double>(x - high);
  return std::exp(high) * (1 + low);
}
double erfc_of(long double x) {
  const double high = static_cast<double>(x);
  if (!(high > 2 && high < 40)) return std::erfc(high);
  return std::erfc(high) * (1 - static_cast<double>(x - high) * (2 * high + 1 / high));
}

}  // namespace

double true_value(Unary f, double x) {
  thread_local Big y;
  evaluate(f, x, y.get());
  return mpfr_get_d(y.get(), MPFR_RNDN);
}
double true_value(Binary f, double x, double y) {
  thread_local Big z;
  evaluate(f, x, y, z.get());
  return mpfr_get_d(z.get(), MPFR_RNDN);
}

double fast_value(Unary f, double x) {
  constexpr long double kRootHalf = 0.70710678118654752440L, kGelu = 1.5957691216057307117L;
  switch (f) {
    case k_expm1:
      return std::expm1(x);
    case k_log1p:
      return std::log1p(x);
    case k_erf:
      return std::erf(x);
    case k_normcdf:
      return 0.5 * erfc_of(-kRootHalf * static_cast<long double>(x));
    case k_gelu_erf:
      return x == -kInf ? -0.0 : x * (0.5 * erfc_of(-kRootHalf * static_cast<long double>(x)));
    case k_gelu: {
      const long double wide = x;
      return x == -kInf ? -0.0 : x / (1 + exp_of(-kGelu * (wide + 0.044715L * wide * wide * wide)));
    }
    case k_sign:
      return x < 0 ? -1 : (x > 0 ? 1 : x);
    case k_ceil:
      return std::ceil(x);
    case k_exp:
      return std::exp(x);
    case k_log:
      return std::log(x);
    case k_tanh:
      return std::tanh(x);
    case k_sigmoid:
      return 1 / (1 + std::exp(-x));
    case k_silu:
      return x == -kInf ? -0.0 : x / (1 + std::exp(-x));
    case k_rsqrt:
      return 1 / std::sqrt(x);
    case k_recip:
      return 1 / x;
    case k_sqrt:
      return std::sqrt(x);
    case k_abs:
      return std::fabs(x);
    case k_neg:
      return -x;
    case k_sqr:
    case k_square:
      return x * x;
    case k_relu:
      return x <= 0 ? 0 : x;
    case k_rint:
      return std::nearbyint(x);
    case k_floor:
      return std::floor(x);
    case k_round:
      return std::round(x);
    case k_sin:
      return std::sin(x);
    case k_cos:
      return std::cos(x);
    case kUnaries:
      break;
  }
  return std::nan("");
}

double fast_value(Binary f, double x, double y) {
  switch (f) {
    case Binary::k_pow:
      return std::pow(x, y);
    case Binary::k_atan2:
      return std::atan2(x, y);
    case Binary::k_elu:
      return x > 0 ? x : y * std::expm1(x);
    case Binary::k_rem: {
      const double r = std::fmod(x, y);
      if (std::isnan(r)) return r;
      return r == 0 ? std::copysign(0.0, y) : (std::signbit(r) != std::signbit(y) ? r + y : r);
    }
    default:
      return true_value(f, x, y);
  }
}

double fast_error(Unary f) {
  return f == k_normcdf || f == k_gelu_erf || f == k_gelu ? 0x1p-47 : 0x1p-48;
}

double ulp_error(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : kInf;
  if (std::signbit(want) != std::signbit(got)) return kInf;
  const double w = std::fabs(want), g = std::fabs(static_cast<double>(got));
  if (std::isinf(g)) return w >= 0x1p128 ? 0 : (0x1p128 - w) / 0x1p104;
  if (w >= 0x1p128) return kInf;
  std::uint64_t bits;
  std::memcpy(&bits, &w, sizeof bits);
  const std::uint64_t biased = std::max<std::uint64_t>(bits >> 52, 1023 - 126);
  const std::uint64_t inverse_ulp = (2 * 1023 + 23 - biased) << 52;  // 2^(23 − exponent)
  double scale;
  std::memcpy(&scale, &inverse_ulp, sizeof scale);
  return std::fabs(g - w) * scale;
}

double ulp_error_f64(Unary f, double x, double got) {
  thread_local Big y;
  evaluate(f, x, y.get());
  return ulp_error_f64(y.get(), got);
}
double ulp_error_f64(Binary f, double x, double y, double got) {
  thread_local Big z;
  evaluate(f, x, y, z.get());
  return ulp_error_f64(z.get(), got);
}

double limit_f32(Unary f) {
  switch (f) {
    case k_exp:
      return 0.90;
    case k_log:
      return 0.85;
    case k_tanh:
      return 1.40;
    case k_expm1:
      return 1.35;
    case k_log1p:
    case k_sin:
    case k_cos:
      return 1.65;
    case k_erf:
      return 1.25;
    case k_normcdf:
      return 3.60;
    case k_gelu:
      return 1.90;
    case k_gelu_erf:
      return 3.95;
    case k_sigmoid:
      return 1.85;
    case k_silu:
      return 1.90;
    case k_rsqrt:
      return 1.50;
    case k_recip:
    case k_sqrt:
    case k_sqr:
    case k_square:
      return 0.5;
    default:
      return 0;
  }
}

double limit_f64(Unary f) {
  switch (f) {
    case k_exp:
      return 0.95;
    case k_log:
      return 0.90;
    case k_expm1:
      return 1.60;
    case k_log1p:
      return 1.40;
    case k_sin:
    case k_cos:
      return 0.85;
    case k_erf:
      return 1.50;
    case k_normcdf:
      return 3.00;
    case k_gelu:
      return 1.80;
    case k_gelu_erf:
      return 3.20;
    case k_tanh:
      return 1.40;
    case k_sigmoid:
      return 1.80;
    case k_silu:
      return 1.90;
    case k_rsqrt:
      return 1.50;
    case k_recip:
    case k_sqrt:
    case k_sqr:
    case k_square:
      return 0.5;
    default:
      return 0;
  }
}

double limit_f32(Binary f) {
  switch (f) {
    case Binary::k_pow:
      return 1.10;
    case Binary::k_atan2:
      return 1.60;
    case Binary::k_elu:
      return 2.80;  // expm1's error can double if the product crosses a power of two
    case Binary::k_rem:
      return 0.5001;  // exact, then one rounding, after at most one rounding to double
    default:
      return 0;
  }
}

double limit_f64(Binary f) {
  switch (f) {
    case Binary::k_pow:
      return 1.10;
    case Binary::k_atan2:
      return 1.60;
    case Binary::k_elu:
      return 2.30;
    case Binary::k_rem:
      return 0.5;
    default:
      return 0;
  }
}

std::vector<NamedLoops> available_loops() {
  std::vector<NamedLoops> all = {{"scalar", &kLoopsScalar, true}};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")) {
    all.push_back({"x86-64-v2", &kLoopsV2, true});
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    all.push_back({"x86-64-v3", &kLoopsV3, false});
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    all.push_back({"x86-64-v4", &kLoopsV4, false});
  }
#endif
  return all;
}

SmallFloat::SmallFloat(int exponent_bits, int mantissa_bits, bool has_infinity)
    : exponent_bits_(exponent_bits), mantissa_bits_(mantissa_bits), has_infinity_(has_infinity) {
  const std::uint32_t end = has_infinity
                                ? ((std::uint32_t{1} << exponent_bits) - 1) << mantissa_bits
                                : (std::uint32_t{1} << (exponent_bits + mantissa_bits)) - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  for (std::uint32_t p = 0; p < end; ++p) {
    const int exponent = static_cast<int>(p >> mantissa_bits);
    const double fraction =
        static_cast<double>(p % (1u << mantissa_bits)) / static_cast<double>(1u << mantissa_bits);
    finite_.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                    : std::ldexp(1 + fraction, exponent - bias));
  }
}

double SmallFloat::value(std::uint32_t bits) const {
  const double sign = bits >= sign_bit() ? -1 : 1;
  const std::uint32_t magnitude = bits % sign_bit();
  if (magnitude < finite_.size()) return sign * finite_[magnitude];
  return has_infinity_ && magnitude == finite_.size() ? sign * kInf : std::nan("");
}

std::uint32_t SmallFloat::nearest(long double x) const {
  const auto end = static_cast<std::uint32_t>(finite_.size());
  if (std::isnan(x)) return end + (has_infinity_ ? 1 : 0);
  const std::uint32_t sign = std::signbit(x) ? sign_bit() : 0;
  const long double a = std::fabs(x);
  const auto above = static_cast<std::uint32_t>(
      std::lower_bound(finite_.begin(), finite_.end(), a,
                       [](double v, long double w) { return static_cast<long double>(v) < w; }) -
      finite_.begin());
  if (above < end && static_cast<long double>(finite_[above]) == a) return sign | above;
  const std::uint32_t below = above - 1;  // 0 is a value, so this index exists
  const double step =
      above < end ? finite_[above] - finite_[below] : finite_[below] - finite_[below - 1];
  if (above == end && !has_infinity_) return sign | below;
  const long double middle =
      static_cast<long double>(finite_[below]) + static_cast<long double>(step) / 2;
  if (a != middle) return sign | (a < middle ? below : above);
  return sign | (below % 2 == 0 ? below : above);
}

const SmallFloat& small_f16() {
  static const SmallFloat format(5, 10, true);
  return format;
}
const SmallFloat& small_bf16() {
  static const SmallFloat format(8, 7, true);
  return format;
}
const SmallFloat& small_f8e4m3() {
  static const SmallFloat format(4, 3, false);
  return format;
}

const SmallFloat* small_float(Real dtype) {
  switch (dtype) {
    case kF16:
      return &small_f16();
    case kBF16:
      return &small_bf16();
    case kF8E4M3:
      return &small_f8e4m3();
    default:
      return nullptr;
  }
}

}  // namespace wick::math_test
