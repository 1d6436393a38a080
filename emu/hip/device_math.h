#pragma once

// The mathematics of device_library.h, which includes this file and defines WICK_DEVICE. The
// functions take doubles; float functions are derived from them.

#pragma clang system_header

namespace wick_device {
/// A number as the sum of two doubles, of which the second is about 2^-53 of the first.
struct Pair {
  double high, low;
};

constexpr double kPi = 0x1.921fb54442d18p+1, kPiLow = 0x1.1a62633145c07p-53;
constexpr double kLog2E = 0x1.71547652b82fep+0, kLog2ELow = 0x1.777d0ffda0d24p-56;
constexpr double kLog10E = 0x1.bcb7b1526e50ep-2, kLog10ELow = 0x1.95355baaafad3p-57;
constexpr double kLn10 = 0x1.26bb1bbb55516p+1, kLn10Low = -0x1.f48ad494ea3e9p-53;
// kLn2 has so few bits that its product with an exponent is exact; kLn2Rest is the remainder.
constexpr double kLn2 = 0x1.62e42feep-1, kLn2Rest = 0x1.a39ef35793c76p-33;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1, kSqrtHalfLow = -0x1.bdd3413b26456p-55;
constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp+0;

WICK_DEVICE double infinity() { return __builtin_inf(); }
WICK_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
WICK_DEVICE double absolute(double x) { return __builtin_fabs(x); }

template <int kTerms>
WICK_DEVICE double polynomial(const double (&terms)[kTerms], double x) {
  double sum = terms[kTerms - 1];
#pragma unroll
  for (int i = kTerms - 2; i >= 0; --i) sum = fma(sum, x, terms[i]);
  return sum;
}

/// Returns x y, where x is a Pair.
WICK_DEVICE Pair product(Pair x, double y) {
  const double high = x.high * y;
  return {high, fma(x.high, y, -high) + x.low * y};
}

/// Returns e^r - 1 for |r| < 0.35.
WICK_DEVICE double exp_minus_1_of_small(double r) {
  constexpr double kTerms[] = {1. / 2,          1. / 6,        1. / 24,        1. / 120,
                               1. / 720,        1. / 5040,     1. / 40320,     1. / 362880,
                               1. / 3628800,    1. / 39916800, 1. / 479001600, 1. / 6227020800,
                               1. / 87178291200};
  return fma(r * r, polynomial(kTerms, r), r);
}

WICK_DEVICE double exp(Pair x) {
  if (x.high > 800) return infinity();
  if (x.high < -800) return 0;
  const double power = __builtin_rint(x.high * kLog2E);
  const double r = fma(-power, kLn2Rest, fma(-power, kLn2, x.high)) + x.low;
  return __builtin_ldexp(1 + exp_minus_1_of_small(r), static_cast<int>(power));
}

WICK_DEVICE double exp_minus_1(double x) {
  if (x == 0) return x;
  return absolute(x) < 0.35 ? exp_minus_1_of_small(x) : exp({x, 0}) - 1;
}

/// Returns (artanh(s) - s) / s for s^2 = z < 0.0295.
WICK_DEVICE double artanh_rest(double z) {
  constexpr double kTerms[] = {1. / 3,  1. / 5,  1. / 7,  1. / 9,  1. / 11,
                               1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21};
  return z * polynomial(kTerms, z);
}

/// Returns the logarithm of a positive, finite number with some 60 bits.
WICK_DEVICE Pair log_of_positive(double x) {
  int exponent;
  double m = __builtin_frexp(x, &exponent);
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  // ln m = 2 artanh s with s = (m - 1) / (m + 1).
  const double above = m - 1, below = m + 1, below_low = m - (below - 1);
  const double s = above / below;
  const double s_low = (fma(-s, below, above) - s * below_low) / below;
  const double big = exponent * kLn2, small = 2 * s;
  const double sum = big + small, part = sum - big;
  const double lost = (big - (sum - part)) + (small - part);
  const double low = lost + (2 * s_low + small * artanh_rest(s * s) + exponent * kLn2Rest);
  const double high = sum + low;
  return {high, low - (high - sum)};
}

/// Returns the logarithm times `factor`.
WICK_DEVICE double log(double x, Pair factor) {
  if (!(x > 0)) return x == 0 ? -infinity() : __builtin_nan("");
  if (x == infinity()) return x;
  const Pair natural = log_of_positive(x), scaled = product(factor, natural.high);
  return scaled.high + (scaled.low + factor.high * natural.low);
}
WICK_DEVICE double log(double x) { return log(x, {1, 0}); }

WICK_DEVICE double log_of_1_plus(double x) {
  if (absolute(x) < 0.2) {
    const double s = x / (2 + x);
    return 2 * fma(s, artanh_rest(s * s), s);
  }
  const double sum = 1 + x;
  return sum > 0 && sum < infinity() ? log(sum) + (x - (sum - 1)) / sum : log(sum);
}

WICK_DEVICE double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (__builtin_isnan(x) || __builtin_isnan(y)) return x + y;
  const double base = absolute(x);
  const bool whole = __builtin_trunc(y) == y;
  const bool odd = whole && absolute(y) < 0x1p53 && __builtin_trunc(y / 2) != y / 2;
  double result;
  if (__builtin_isinf(y)) {
    result = base == 1 ? 1 : (base > 1) == (y > 0) ? infinity() : 0;
  } else if (base == 0 || base == infinity()) {
    result = (base == 0) == (y > 0) ? 0 : infinity();
  } else if (x < 0 && !whole) {
    return __builtin_nan("");
  } else {
    const Pair logarithm = log_of_positive(base);
    // A larger product would turn its low part into an infinity.
    const double bounded = __builtin_fmin(__builtin_fmax(y, -0x1p80), 0x1p80);
    result = exp(product(logarithm, bounded));
  }
  return odd ? __builtin_copysign(result, x) : result;
}

/// An angle minus a multiple of pi / 2.
struct Angle {
  double high, low;  // at most pi / 4
  int quarters;      // the multiple; only its two lowest bits matter
};

/// Reduces a large angle. It multiplies by those 192 bits of 2 / pi that determine the quarter and
/// the fraction.
WICK_DEVICE Angle reduce_large(double x) {
  // The leading zero serves angles so small that bits before the binary point are read.
  constexpr uint64_t kTwoOverPi[] = {0,
                                     0xa2f9836e4e441529,
                                     0xfc2757d1f534ddc0,
                                     0xdb6295993c439041,
                                     0xfe5163abdebbc561,
                                     0xb7246e3a424dd2e0,
                                     0x06492eea09d1921c,
                                     0xfe1deb1cb129a73e,
                                     0xe88235f52ebb4484,
                                     0xe99c7026b45f7e41,
                                     0x3991d639835339f4,
                                     0x9c845f8bbdf9283b,
                                     0x1ff897ffde05980f,
                                     0xef2f118b5a0a6d1f,
                                     0x6d367ecf27cb09b7,
                                     0x4f463f669e5fea2d,
                                     0x7527bac7ebe5f17b,
                                     0x3d0739f78a5292ea,
                                     0x6bfb5fb11f8d5d08,
                                     0x56033046fc7b6bab,
                                     0xf0cfbc209af4361d};
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52 & 2047) - 1075;
  const uint64_t m = (bits & 0xfffffffffffff) | 0x10000000000000;
  const int first = exponent - 2 + 64, word = first / 64, shift = first % 64;
  uint64_t window[3];
  for (int i = 0; i < 3; ++i) {
    window[i] = kTwoOverPi[word + i] << shift;
    if (shift != 0) window[i] |= kTwoOverPi[word + i + 1] >> (64 - shift);
  }
  using Wide = unsigned __int128;
  const Wide low = static_cast<Wide>(m) * window[2];
  const Wide middle = static_cast<Wide>(m) * window[1] + (low >> 64);
  const uint64_t high = m * window[0] + static_cast<uint64_t>(middle >> 64);
  Wide fraction = (static_cast<Wide>(high) << 64 | static_cast<uint64_t>(middle)) << 2 |
                  static_cast<uint64_t>(low) >> 62;
  int quarters = static_cast<int>(high >> 62);
  double sign = 1;
  if (fraction >> 127) {
    ++quarters;
    fraction = -fraction;
    sign = -1;
  }
  int zeros = static_cast<int>(__ockl_clz_u64(static_cast<uint64_t>(fraction >> 64)));
  if (zeros == 64) zeros += static_cast<int>(__ockl_clz_u64(static_cast<uint64_t>(fraction)));
  const uint64_t top = static_cast<uint64_t>((fraction << (zeros & 127)) >> 64);
  const double a = sign * static_cast<double>(top >> 11),
               b = sign * static_cast<double>(top & 2047);
  const Pair r = product({kPi / 2, kPiLow / 2}, a);
  const double all = r.high + (r.low + b * (kPi / 4096));
  const double rest = (r.high - all) + (r.low + b * (kPi / 4096));
  const int scale = 11 - 64 - zeros;
  const bool negative = x < 0;
  return {__builtin_ldexp(negative ? -all : all, scale),
          __builtin_ldexp(negative ? -rest : rest, scale), negative ? -quarters : quarters};
}

WICK_DEVICE Angle reduce(double x) {
  if (absolute(x) >= 0x1p19) {
    if (!(absolute(x) < infinity())) return {__builtin_nan(""), 0, 0};
    return reduce_large(x);
  }
  // pi / 2 as two terms of 33 bits, whose multiples are exact, and a remainder.
  constexpr double kFirst = 0x1.921fb544p+0, kSecond = 0x1.0b4611a6p-34,
                   kThird = 0x1.3198a2e037073p-69;
  const double quarters = __builtin_rint(x * (2 / kPi));
  const double t = fma(-quarters, kFirst, x), w = quarters * kSecond;
  const double r = t - w;
  const double lost = ((t - r) - w) - quarters * kThird;
  const double high = r + lost;
  return {high, lost - (high - r), static_cast<int>(quarters)};
}

WICK_DEVICE double sin_of_small(double x, double low) {
  constexpr double kTerms[] = {-1. / 6,
                               1. / 120,
                               -1. / 5040,
                               1. / 362880,
                               -1. / 39916800,
                               1. / 6227020800,
                               -1. / 1307674368e3,
                               1. / 355687428096e3,
                               -1. / 121645100408832e3};
  const double z = x * x;
  return x + fma(x * z, polynomial(kTerms, z), low);
}
WICK_DEVICE double cos_of_small(double x, double low) {
  constexpr double kTerms[] = {
      1. / 24,        -1. / 720,         1. / 40320,         -1. / 3628800,
      1. / 479001600, -1. / 87178291200, 1. / 20922789888e3, -1. / 6402373705728e3};
  const double z = x * x, half = z / 2, near = 1 - half;
  return near + (((1 - near) - half) + fma(z * z, polynomial(kTerms, z), -x * low));
}

WICK_DEVICE double sin(Angle angle) {
  const bool swap = angle.quarters & 1;
  const double value =
      swap ? cos_of_small(angle.high, angle.low) : sin_of_small(angle.high, angle.low);
  return angle.quarters & 2 ? -value : value;
}
WICK_DEVICE double cos(Angle angle) { return sin({angle.high, angle.low, angle.quarters + 1}); }
WICK_DEVICE double sin(double x) { return absolute(x) < 0x1p-30 ? x : sin(reduce(x)); }
WICK_DEVICE double cos(double x) { return cos(reduce(x)); }
WICK_DEVICE double tan(double x) {
  if (absolute(x) < 0x1p-30) return x;
  const Angle angle = reduce(x);
  return sin(angle) / cos(angle);
}

/// Reduces an angle given in units of pi.
WICK_DEVICE Angle reduce_of_pi(double x) {
  if (!(absolute(x) < infinity())) return {__builtin_nan(""), 0, 0};
  const double turn = fma(-2, __builtin_rint(x / 2), x);  // -1 to 1
  const double quarters = __builtin_rint(2 * turn);
  const Pair r = product({kPi, kPiLow}, fma(-0.5, quarters, turn));
  return {r.high, r.low, static_cast<int>(quarters)};
}
WICK_DEVICE double sin_of_pi(double x) {
  const double value = sin(reduce_of_pi(x));
  return value == 0 ? __builtin_copysign(0., x) : value;
}
WICK_DEVICE double cos_of_pi(double x) { return cos(reduce_of_pi(x)) + 0.; }

/// Returns the arctangent of x in [0, 1]. Halving the angle twice makes the series short.
WICK_DEVICE double atan_of_small(double x) {
  constexpr double kTerms[] = {-1. / 3,  1. / 5,  -1. / 7,  1. / 9,  -1. / 11, 1. / 13,
                               -1. / 15, 1. / 17, -1. / 19, 1. / 21, -1. / 23};
  double s = x / (1 + __builtin_sqrt(fma(x, x, 1)));
  s = s / (1 + __builtin_sqrt(fma(s, s, 1)));
  const double z = s * s;
  return 4 * fma(s * z, polynomial(kTerms, z), s);
}

WICK_DEVICE double atan2(double y, double x) {
  if (__builtin_isnan(x) || __builtin_isnan(y)) return x + y;
  const double dx = absolute(x), dy = absolute(y);
  double angle;
  if (dx == dy) {
    angle = dx == 0 ? 0 : kPi / 4;
  } else if (dy < dx) {
    const double ratio = dy / dx;
    angle = ratio < 0x1p-30 ? ratio : atan_of_small(ratio);
  } else {
    angle = kPi / 2 - (atan_of_small(dx / dy) - kPiLow / 2);
  }
  if (__builtin_signbit(x)) angle = kPi - (angle - kPiLow);
  return __builtin_copysign(angle, y);
}

WICK_DEVICE double cosh(double x) {
  const double half = exp({absolute(x) - 1, 0}) * (0x1.5bf0a8b145769p+1 / 2);
  return absolute(x) > 20 ? half : 0.5 * (exp({x, 0}) + exp({-x, 0}));
}
WICK_DEVICE double sinh(double x) {
  const double size = absolute(x);
  if (size > 20) return __builtin_copysign(exp({size - 1, 0}) * (0x1.5bf0a8b145769p+1 / 2), x);
  const double e = exp_minus_1(size);
  return __builtin_copysign(0.5 * (e + e / (e + 1)), x);
}
WICK_DEVICE double tanh(double x) {
  const double e = exp_minus_1(2 * absolute(x));
  return __builtin_copysign(absolute(x) > 20 ? 1 : e / (e + 2), x);
}
WICK_DEVICE double arsinh(double x) {
  const double size = absolute(x), square = size * size;
  const double value = size > 0x1p28
                           ? log(size) + (kLn2 + kLn2Rest)
                           : log_of_1_plus(size + square / (1 + __builtin_sqrt(square + 1)));
  return __builtin_copysign(value, x);
}
WICK_DEVICE double arcosh(double x) {
  if (!(x >= 1)) return __builtin_nan("");
  if (x > 0x1p28) return log(x) + (kLn2 + kLn2Rest);
  const double above = x - 1;
  return log_of_1_plus(above + __builtin_sqrt(fma(above, above, 2 * above)));
}
WICK_DEVICE double artanh(double x) {
  const double size = absolute(x);
  return __builtin_copysign(0.5 * log_of_1_plus(2 * size / (1 - size)), x);
}

/// Returns e^-(x^2).
WICK_DEVICE double bell(Pair x) {
  const double square = x.high * x.high;
  return exp({-square, -fma(2 * x.high, x.low, fma(x.high, x.high, -square))});
}
/// Handles x >= 1 with a continued fraction, which is longer for smaller x.
WICK_DEVICE double erfc_of_large(Pair argument) {
  const double x = argument.high;
  if (x > 28) return 0;
  double below = x;
  for (int i = 40 + static_cast<int>(200 / (x * x)); i > 0; --i) below = x + 0.5 * i / below;
  return bell(argument) * (kTwoOverSqrtPi / 2) / below;
}
WICK_DEVICE double erf(double x) {
  const double size = absolute(x);
  if (__builtin_isnan(x)) return x;
  if (size > 6) return __builtin_copysign(1., x);
  if (size > 2) return __builtin_copysign(1 - erfc_of_large({size, 0}), x);
  // All terms are positive, so nothing cancels.
  const double square = 2 * x * x;
  double term = 1, sum = 1;
  for (int i = 3; i < 200 && term > sum * 0x1p-56; i += 2) {
    term *= square / i;
    sum += term;
  }
  return x * kTwoOverSqrtPi * bell({x, 0}) * sum;
}
WICK_DEVICE double erfc(Pair x) { return x.high >= 1 ? erfc_of_large(x) : 1 - erf(x.high); }

/// Returns the remainder of positive numbers, and the lowest bits of the quotient.
WICK_DEVICE double remainder_of_positive(double x, double y, uint* quotient) {
  int x_exponent, y_exponent;
  __builtin_frexp(y, &y_exponent);
  *quotient = 0;
  // A double's exponent range bounds the number of steps. The explicit limit is for -ffast-math,
  // which lets infinities through.
  for (int steps = 0; steps < 2200 && x >= y; ++steps) {
    __builtin_frexp(x, &x_exponent);
    int power = x_exponent - y_exponent;
    double multiple = __builtin_ldexp(y, power);
    if (multiple > x) multiple = __builtin_ldexp(y, --power);
    x -= multiple;  // exact: they are within a factor of two
    if (power < 32) *quotient += 1u << power;
  }
  return x;
}
WICK_DEVICE double fmod(double x, double y) {
  if (!(absolute(x) < infinity()) || __builtin_isnan(y) || y == 0) return __builtin_nan("");
  uint quotient;
  return __builtin_copysign(remainder_of_positive(absolute(x), absolute(y), &quotient), x);
}
WICK_DEVICE double remquo(double x, double y, int* quotient) {
  *quotient = 0;
  if (!(absolute(x) < infinity()) || __builtin_isnan(y) || y == 0) return __builtin_nan("");
  const double size = absolute(y);
  uint count;
  double r = remainder_of_positive(absolute(x), size, &count);
  // Rounds to the nearest multiple, and to the even one in a tie.
  if (r > size - r || (r == size - r && (count & 1))) {
    r -= size;
    ++count;
  }
  const int low = static_cast<int>(count & 0x7fffffff);
  *quotient = __builtin_signbit(x) != __builtin_signbit(y) ? -low : low;
  return r == 0 ? __builtin_copysign(0., x) : __builtin_signbit(x) ? -r : r;
}

WICK_DEVICE double length(double x, double y, double z, double w) {
  x = absolute(x), y = absolute(y), z = absolute(z), w = absolute(w);
  const double largest = __builtin_fmax(__builtin_fmax(x, y), __builtin_fmax(z, w));
  if (largest == infinity()) return largest;
  if (largest == 0) return x + y + z + w;  // NaN if any argument is NaN
  int exponent;
  __builtin_frexp(largest, &exponent);
  x = __builtin_ldexp(x, -exponent), y = __builtin_ldexp(y, -exponent);
  z = __builtin_ldexp(z, -exponent), w = __builtin_ldexp(w, -exponent);
  return __builtin_ldexp(__builtin_sqrt(fma(x, x, fma(y, y, fma(z, z, w * w)))), exponent);
}

WICK_DEVICE double cbrt(double x) {
  const double size = absolute(x);
  if (!(size > 0 && size < infinity())) return x;
  int exponent;
  const double m = __builtin_frexp(size, &exponent);
  const int third = exponent / 3;  // the remaining exponent is in [-2, 2]
  const double scaled = __builtin_ldexp(m, exponent - 3 * third);
  double root = exp({log(scaled) / 3, 0});
  root -= fma(root * root, root, -scaled) / (3 * root * root);
  return __builtin_copysign(__builtin_ldexp(root, third), x);
}

WICK_DEVICE int ilogb(double x) {
  if (x == 0 || __builtin_isnan(x)) return -2147483647 - 1;
  if (__builtin_isinf(x)) return 2147483647;
  int exponent;
  __builtin_frexp(x, &exponent);
  return exponent - 1;
}
WICK_DEVICE double logb(double x) {
  if (x == 0) return -infinity();
  return absolute(x) < infinity() ? ilogb(x) : x * x;
}

WICK_DEVICE double scalb(double x, double exponent) {
  if (__builtin_isnan(exponent)) return exponent;
  const double bounded = __builtin_fmin(__builtin_fmax(exponent, -5000.), 5000.);
  return __builtin_ldexp(x, static_cast<int>(bounded));
}

template <class Float, class Bits>
WICK_DEVICE Float nextafter(Float x, Float y) {
  if (__builtin_isnan(x) || __builtin_isnan(y)) return x + y;
  if (x == y) return y;
  Bits bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  if (x == 0) {
    bits = 1;
  } else {
    bits += (x < y) == (x > 0) ? 1 : -1;
  }
  Float next;
  __builtin_memcpy(&next, &bits, sizeof next);
  return x == 0 ? __builtin_copysign(next, y) : next;
}

template <class Float>
WICK_DEVICE Float modf(Float x, Float* whole) {
  *whole = __builtin_elementwise_trunc(x);
  return __builtin_elementwise_copysign(__builtin_isinf(x) ? Float(0) : x - *whole, x);
}
}  // namespace wick_device
