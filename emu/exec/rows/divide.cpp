// The instructions around the Newton iteration of a division: v_div_scale keeps operands away from
// overflow and underflow, v_div_fmas undoes the scaling in the last step, and v_div_fixup handles
// special operands.

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

/// Limits of a type's exponents in their stored (biased) form.
template <class V>
struct Division;
template <>
struct Division<F32> {
  static constexpr int kFar = 96, kTiny = 23, kUnderflow = -150, kStep = 64;
};
template <>
struct Division<F64> {
  static constexpr int kFar = 768, kTiny = 53, kUnderflow = -1075, kStep = 128;
};

template <class V>
EMU_INLINE Truth<V> stored_exponent(V x) {
  using L = Layout<V>;
  return bits_as<Truth<V>>(float_bits(absolute(x)) >> static_cast<typename L::E>(L::kFraction));
}

template <class V>
EMU_INLINE V power(int n) {
  using L = Layout<V>;
  using E = typename L::E;
  return bits_as<V>(
      splat<typename L::B>(static_cast<E>(static_cast<E>(n + L::kBias) << L::kFraction)));
}

/// Source 0 repeats the denominator or the numerator. The result's lanes are those whose quotient
/// must be scaled back.
template <class V>
EMU_INLINE WithLanes<V> div_scale(V x, V denominator, V numerator) {
  using D = Division<V>;
  using T = Truth<V>;
  using E = Element<T>;
  constexpr E kBias = Layout<V>::kBias;
  const T distance = stored_exponent(numerator) - stored_exponent(denominator);
  const V up = x * power<V>(D::kStep), down = x * power<V>(-D::kStep);
  const T is_denominator = x == denominator, is_numerator = x == numerator;
  // Where MODE flushes denormals, the comparison counts them as zeros.
  const T zero = (numerator == 0) | (denominator == 0);
  const T huge = distance >= static_cast<E>(D::kFar);
  const T denormal = is_denormal(denominator);
  const T inverse_tiny = stored_exponent(denominator) >= static_cast<E>(2 * kBias - 1);
  const T quotient_tiny = distance <= static_cast<E>(1 - kBias);
  const T numerator_tiny = stored_exponent(numerator) <= static_cast<E>(D::kTiny);
  // The rules are applied from the last to the first, and each one overrides those before it.
  V r = numerator_tiny ? up : x;
  r = quotient_tiny ? (is_numerator ? up : x) : r;
  r = inverse_tiny ? down : r;
  r = inverse_tiny & quotient_tiny ? (is_denominator ? down : x) : r;
  r = denormal ? up : r;
  r = huge ? (is_denominator ? up : x) : r;
  r = zero ? bits_as<V>(splat<Unsigned<V>>(Layout<V>::kInfinity | Layout<V>::kQuiet)) : r;
  const T scaled = zero | huge | (~denormal & quotient_tiny);
  return {r, {lane_mask(scaled)}};
}

/// Returns `sum` times 2^-kStep, rounded as if `error` had been added first: a value midway between
/// two denormals is rounded in the direction of the error.
template <class V>
EMU_INLINE V scaled_down(V sum, V error) {
  using D = Division<V>;
  using L = Layout<V>;
  const V rounded = sum * power<V>(-D::kStep);
  const V rest = sum - rounded * power<V>(D::kStep);
  const V midway = power<V>(D::kStep - L::kBias - L::kFraction);
  const V smallest = bits_as<V>((float_bits(rest) & L::kSign) | typename L::E{1});
  const auto beyond = (absolute(rest) == midway) & (error != 0) & ((error > 0) == (rest > 0));
  return beyond ? rounded + smallest : rounded;
}

/// Returns a * b + c, scaled up or down in the lanes of `scaled`. It rounds once, since the result
/// may be a denormal.
template <class V>
EMU_INLINE V div_fmas(V a, V b, V c, Lanes scaled) {
  const V sum = fma(a, b, c);
  if (scaled.bits == 0) [[likely]]
    return sum;
  const V product = a * b, product_error = fma(a, b, -product);
  const V rough = product + c;
  const V error = (rough - sum) + (sum_error(product, c, rough) + product_error);
  const auto upwards = stored_exponent(c) > Element<Truth<V>>{Layout<V>::kBias};
  const V result = upwards ? sum * power<V>(Division<V>::kStep) : scaled_down(sum, error);
  return select(scaled.bits, result, sum);
}

/// Returns the quotient with the sign of its operands, or the result for special operands.
template <class V>
EMU_INLINE V div_fixup(V quotient, V denominator, V numerator) {
  using L = Layout<V>;
  using B = typename L::B;
  using E = typename L::E;
  const B sign = (float_bits(denominator) ^ float_bits(numerator)) & L::kSign;
  const auto distance = stored_exponent(numerator) - stored_exponent(denominator);
  const B zero = sign, infinity = sign | L::kInfinity;
  constexpr E kInvalid = static_cast<E>(L::kSign | L::kInfinity | L::kQuiet);
  B r = float_bits(absolute(quotient)) | sign;
  if constexpr (!std::is_same_v<V, F16>) {
    using T = Element<Truth<V>>;
    r = distance < static_cast<T>(Division<V>::kUnderflow) ? zero : r;
    // For such quotients the iteration overflows before the result is final.
    r = distance > static_cast<T>(L::kBias + 1) ? infinity : r;
  }
  r = is_infinite(denominator) | is_zero(numerator) ? zero : r;
  r = is_zero(denominator) | is_infinite(numerator) ? infinity : r;
  r = is_infinite(denominator) & is_infinite(numerator) ? splat<B>(kInvalid) : r;
  r = is_zero(denominator) & is_zero(numerator) ? splat<B>(kInvalid) : r;
  r = is_nan(denominator) ? float_bits(quieted(denominator)) : r;
  r = is_nan(numerator) ? float_bits(quieted(numerator)) : r;
  return bits_as<V>(r);
}

template <class V>
inline constexpr auto kFma = [](V a, V b, V c) { return fma(a, b, c); };

/// The instruction's text omits VCC, which is a fourth source.
template <class V>
Stop fmas(Wave* w, const Op* op) {
  const bool own_mode = sizeof(V) == 256 && unusual_mode(w);
  if (own_mode) set_host_mode(host_mode_64(w->mode));
  for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
    const V a = argument<V>(w, op, 0, h), b = argument<V>(w, op, 1, h),
            c = argument<V>(w, op, 2, h);
    Known known = sources_known<kFma<V>>(w, op, vector_sources(*op->extra), h);
    if constexpr (kChecked) known.all &= known_bits(w, op, sgpr_offset(kVcc) + 4 * uint32_t(h));
    result_known<V>(w, op, h, known);
    finish(w, op, h, w->s[kExec + h], div_fmas(a, b, c, Lanes{w->s[kVcc + h]}));
  }
  if (own_mode) set_host_mode(host_mode_32(w->mode));
  EMU_NEXT;
}

template <class V>
void lower_fmas(Lowering& l, const Inst& inst) {
  constexpr Value kValues[] = {value_of<V>(), value_of<V>(), value_of<V>()};
  l.place_vector(inst, {}, kValues);
  l.ops.back().fn = &fmas<V>;
}

constexpr Row kRows[] = {
    warm<[](F32 x, F32 d, F32 n) { return div_scale(x, d, n); }>("v_div_scale_f32"),
    warm<[](F64 x, F64 d, F64 n) { return div_scale(x, d, n); }>("v_div_scale_f64"),
    {"v_div_fmas_f32", &lower_fmas<F32>},
    {"v_div_fmas_f64", &lower_fmas<F64>},
    warm<[](F32 q, F32 d, F32 n) { return div_fixup(q, d, n); }>("v_div_fixup_f32"),
    warm<[](F64 q, F64 d, F64 n) { return div_fixup(q, d, n); }>("v_div_fixup_f64"),
    keeping<[](F16 q, F16 d, F16 n) { return div_fixup(q, d, n); }>("v_div_fixup_f16"),
    vop<[](F16 q, F16 d, F16 n) { return div_fixup(q, d, n); }>("v_div_fixup_legacy_f16"),
};

}  // namespace

std::span<const Row> divide_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
