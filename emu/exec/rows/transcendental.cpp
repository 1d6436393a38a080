// Reciprocals, roots, exponentials, logarithms, sine and cosine. They are computed with some 50
// bits and rounded once; approximate() then moves them within the documented error on request. f32
// instructions treat denormal inputs and outputs as zero, as documented.

#include "emu/exec/approximate.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/scalar_floats.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr uint32_t kUlps64 = 1u << 29;  // documented error of the f64 instructions

EMU_INLINE F32 flush(F32 x) {
  return is_denormal(x) ? bits_as<F32>(float_bits(x) & 0x80000000u) : x;
}

template <int kTerms>
EMU_INLINE F64 polynomial(F64 x, const double (&terms)[kTerms]) {
  F64 r = splat<F64>(terms[kTerms - 1]);
  for (int i = kTerms - 2; i >= 0; --i) r = fma(r, x, splat<F64>(terms[i]));
  return r;
}

/// Coefficients: ln(2)^k / k!
constexpr double kExp2[] = {1.0,
                            0.6931471805599453,
                            0.2402265069591007,
                            0.055504108664821576,
                            0.009618129107628477,
                            0.0013333558146428441,
                            0.00015403530393381606,
                            1.5252733804059838e-05,
                            1.3215486790144305e-06,
                            1.0178086009239696e-07,
                            7.054911620801121e-09,
                            4.44553827187081e-10,
                            2.5678435993488196e-11,
                            1.3691488853904124e-12};

EMU_INLINE F64 exp2_wide(F64 x) {
  x = clip(x, -1100.0, 1100.0);
  const F64 whole = round_even(x);
  const F64 part = polynomial(x - whole, kExp2);
  return scale(part, convert<I32>(whole));
}

/// Coefficients: 2 / ln(2) / (2 k + 1)
constexpr double kLog2[] = {2.8853900817779268,  0.9617966939259756,  0.5770780163555853,
                            0.4121985831111324,  0.3205988979753252,  0.2623081892525388,
                            0.22195308321368667, 0.19235933878519512, 0.16972882833987804,
                            0.15186263588304877, 0.1373995277037108,  0.12545174268599682};

/// Handles positive normal numbers only.
EMU_INLINE F64 log2_wide(F64 x) {
  I64 bits = bits_as<I64>(x);
  // This reduces the fraction to [sqrt(1/2), sqrt(2)).
  const I64 exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;
  const F64 m = bits_as<F64>(bits - (exponent << 52));
  const F64 s = (m - 1.0) / (m + 1.0);
  return fma(polynomial(s * s, kLog2), s, convert<F64>(exponent));
}

/// Coefficients: (-1)^k (2 pi)^(2k+1) / (2k+1)!
constexpr double kSine[] = {6.283185307179586,     -41.341702240399755,   81.60524927607504,
                            -76.70585975306136,    42.058693944897634,    -15.094642576822984,
                            3.8199525848482803,    -0.7181223017785001,   0.10422916220813978,
                            -0.012031585942120619, 0.0011309237482517954, -8.823533599242996e-05,
                            5.8056524029499e-06};

/// Returns the sine of x revolutions for |x| <= 1/4.
EMU_INLINE F64 sine_quarter(F64 x) { return polynomial(x * x, kSine) * x; }

EMU_INLINE F64 sine_wide(F64 x, bool cosine) {
  const F64 r = x - round_even(x);  // in [-1/2, 1/2]
  const F64 magnitude = absolute(r);
  if (cosine) return sine_quarter(0.25 - magnitude);
  const F64 quarter = magnitude > 0.25 ? 0.5 - magnitude : magnitude;
  return sine_quarter(
      bits_as<F64>(bits_as<U64>(quarter) | (bits_as<U64>(r) & (uint64_t{1} << 63))));
}

template <class V>
EMU_INLINE V sine(V x, bool cosine) {
  const F32 narrow = convert<F32>(x);
  const F64 exact = sine_wide(convert<F64>(narrow), cosine);
  F32 result = convert<F32>(exact);
  result = is_nan(narrow) | is_infinite(narrow) ? splat<F32>(__builtin_nanf("")) : result;
  if (!cosine) result = narrow == 0.0f ? narrow : result;
  return approximate(convert<V>(result), exact);
}

EMU_INLINE F32 exp2_32(F32 x) {
  const F32 r = convert<F32>(exp2_wide(convert<F64>(x)));
  return is_nan(x) ? quieted(x) : r;
}

/// Returns the logarithm of zero, negative numbers, infinities and NaN.
EMU_INLINE F32 log2_special(F32 x, F32 result) {
  result = is_infinite(x) ? x : result;
  result = is_negative(x) ? splat<F32>(__builtin_nanf("")) : result;
  result = is_zero(x) ? splat<F32>(-__builtin_inff()) : result;
  return is_nan(x) ? quieted(x) : result;
}
EMU_INLINE F32 log2_32(F32 x) {
  return log2_special(x, convert<F32>(log2_wide(convert<F64>(absolute(x)))));
}

/// 1 / sqrt(x) in f64 is accurate enough for one rounding to f32.
EMU_INLINE F32 rsq_32(F32 x) {
  return convert<F32>(1.0 / __builtin_elementwise_sqrt(convert<F64>(x)));
}

EMU_INLINE F64 rcp_64(F64 x) { return 1.0 / x; }
EMU_INLINE F64 rsq_64(F64 x) { return 1.0 / __builtin_elementwise_sqrt(x); }

// If all bits of a divisor's fraction are ones, the Newton iteration reaches the correct quotient
// only from the nearest reciprocal (Markstein 1990). Compiled divisions are correct on real GPUs,
// so their v_rcp returns the nearest reciprocal.
constexpr auto kRcp = [](F32 x) {
  const F32 in = flush(x), nearest = flush(1.0f / in);
  const F32 moved = approximate(nearest, 1.0 / convert<F64>(in));
  return (float_bits(in) & 0x7fffff) == 0x7fffff ? nearest : moved;
};
constexpr auto kRsq = [](F32 x) {
  const F32 in = flush(x);
  return approximate(rsq_32(in), rsq_64(convert<F64>(in)));
};
constexpr auto kSqrt = [](F32 x) {
  const F32 in = flush(x);
  return approximate(__builtin_elementwise_sqrt(in), __builtin_elementwise_sqrt(convert<F64>(in)));
};
constexpr auto kLog = [](F32 x) {
  const F32 in = flush(x);
  return approximate(log2_32(in), log2_wide(convert<F64>(absolute(in))));
};
constexpr auto kExp = [](F32 x) {
  return approximate(flush(exp2_32(x)), exp2_wide(convert<F64>(x)));
};

/// The f16 version of a function, computed in f32.
template <auto F>
constexpr auto kOfHalf = [](F16 x) {
  const F32 exact = F(convert<F32>(x));
  return approximate(convert<F16>(exact), exact);
};

constexpr auto kRcpOfHalf = kOfHalf<[](F32 x) { return 1.0f / x; }>;
constexpr auto kRsqOfHalf = kOfHalf<[](F32 x) { return rsq_32(x); }>;
constexpr auto kSqrtOfHalf = kOfHalf<[](F32 x) { return __builtin_elementwise_sqrt(x); }>;
constexpr auto kExpOfHalf = kOfHalf<[](F32 x) { return exp2_32(x); }>;
constexpr auto kLogOfHalf = kOfHalf<[](F32 x) { return log2_32(x); }>;

constexpr Row kRows[] = {
    of_scalars_row<kRcp>("v_s_rcp_f32"),
    of_scalars_row<kRsq>("v_s_rsq_f32"),
    of_scalars_row<kSqrt>("v_s_sqrt_f32"),
    of_scalars_row<kExp>("v_s_exp_f32"),
    of_scalars_row<kLog>("v_s_log_f32"),
    warm<kRcp>("v_rcp_f32"),
    warm<kRcp>("v_rcp_iflag_f32"),
    warm<kRsq>("v_rsq_f32"),
    warm<kSqrt>("v_sqrt_f32"),
    warm<kExp>("v_exp_f32"),
    vop<kExp>("v_exp_legacy_f32"),
    warm<kLog>("v_log_f32"),
    vop<kLog>("v_log_legacy_f32"),
    warm<[](F32 x) { return sine(flush(x), false); }>("v_sin_f32"),
    warm<[](F32 x) { return sine(flush(x), true); }>("v_cos_f32"),
    vop<[](F64 x) { return approximate_coarse(rcp_64(x), kUlps64); }>("v_rcp_f64"),
    vop<[](F64 x) { return approximate_coarse(rsq_64(x), kUlps64); }>("v_rsq_f64"),
    vop<[](F64 x) { return approximate_coarse(__builtin_elementwise_sqrt(x), kUlps64); }>(
        "v_sqrt_f64"),
    vop<kRcpOfHalf>("v_rcp_f16"),
    of_scalars_row<kRcpOfHalf>("v_s_rcp_f16"),
    vop<kRsqOfHalf>("v_rsq_f16"),
    of_scalars_row<kRsqOfHalf>("v_s_rsq_f16"),
    vop<kSqrtOfHalf>("v_sqrt_f16"),
    of_scalars_row<kSqrtOfHalf>("v_s_sqrt_f16"),
    vop<kExpOfHalf>("v_exp_f16"),
    of_scalars_row<kExpOfHalf>("v_s_exp_f16"),
    vop<kLogOfHalf>("v_log_f16"),
    of_scalars_row<kLogOfHalf>("v_s_log_f16"),
    vop<[](F16 x) { return sine(x, false); }>("v_sin_f16"),
    vop<[](F16 x) { return sine(x, true); }>("v_cos_f16"),
};

}  // namespace

std::span<const Row> transcendental_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
