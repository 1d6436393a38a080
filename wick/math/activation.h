#pragma once

// Quantisation of blocks of 32 activations to int8, for the gemms with quantised weights.

#include "wick/math/orders.h"
#include "wick/math/scalar.h"

namespace wick::math {

/// The metadata of a quantised block of activations, besides its 32 int8 values.
struct alignas(8) ActivationScale {
  float d;  ///< value = d·q
  i32 sum;  ///< Σ q
};

/// The quotients that the scale of a block takes: x/127 for 1e-30 < x < infinity, and 1/d for a d
/// with four significant bits. Correctly rounded, as all that take their place must be.
struct Divisions {
  WICK_FN float by_127(float x) const { return x / 127.0f; }
  WICK_FN float inverse(float d) const { return 1.0f / d; }
};
/// The same bits in three instructions each, for processors that take ten for a division.
/// Near()(d) is 1/d with an error of at most 1 ulp.
template <class Near>
struct RefinedQuotients {
  WICK_FN float by_127(float x) const {
    constexpr float kInverse = 1.0f / 127.0f;
    const float q = x * kInverse;
    return fma(fma(-127.0f, q, x), kInverse, q);
  }
  WICK_FN float inverse(float d) const {
    const float near = Near()(d);
    return fma(fma(-d, near, 1.0f), near, near);
  }
};

/// The scale of a block, computed from its largest magnitude. The steps are part of the numeric
/// contract, so every backend computes the same bits.
///
/// The scale has four significant bits. Its products with the int8 values therefore fit into the 11
/// significant bits of an f16, and its products with a weight's scale or an integer sum fit into an
/// f32. Kernels that apply the scale before the gemm, as f16 matrix units must, and kernels that
/// apply it afterwards get the same bits. The scale is rounded up, which keeps |q| ≤ 127 without a
/// clamp: d ≥ rn(amax/127) makes |x|/d at most 127·(1 + 2^-24), and two more roundings don't reach
/// 127.5.
class ActivationStep {
 public:
  /// `largest` is the bit pattern of the largest |x|. As an integer, NaN is above infinity, which
  /// is above every finite magnitude.
  WICK_FN explicit ActivationStep(u32 largest) : ActivationStep(largest, Divisions()) {}
  template <class Quotients>
  WICK_FN ActivationStep(u32 largest, const Quotients& quotients) {
    const float amax = bits_f32(largest);
    const bool special = largest >= 0x7f800000u;
    const bool zero = amax <= 1e-30f;
    const bool dead = special | zero;
    // The operand is far from denormals (1e-30/127) and from infinity (2.7e36), so a carry only
    // changes the exponent.
    const float d = round_up(dead ? 1.0f : quotients.by_127(amax));
    inverse_ = quotients.inverse(d);
    keep_ = dead ? 0u : ~0u;
    d_ = special ? detail::kNaNF32 : (zero ? 0.0f : d);
  }

  /// The smallest float with four significant bits that isn't below a positive normal x.
  WICK_FN static float round_up(float x) {
    return bits_f32((f32_bits(x) + 0x000fffffu) & 0xfff00000u);
  }

  /// Quantises a value of the block to -127 … 127.
  WICK_FN i32 quantize(float x) const {
    return static_cast<i32>(rint(bits_f32(f32_bits(x) & keep_) * inverse_));
  }
  /// Quantises four values of the block to the bytes of a word.
  WICK_FN u32 quantize_four(const float (&x)[4]) const {
    // Adding 1.5·2^23 rounds as rint does and leaves the integer in the low bits.
    u32 bytes = 0;
    for (int i = 0; i < 4; ++i) {
      bytes |= (f32_bits(x[i] * inverse_ + 0x1.8p23f) & 0xffu) << 8 * i;
    }
    return bytes & keep_;
  }
  WICK_FN float d() const { return d_; }

 private:
  float inverse_, d_;
  u32 keep_;
};

/// Quantises `blocks` times 32 floats to int8 with one scale d = max|x|/127, rounded up to four
/// significant bits: q = rint(x·(1/d)). sums[b] is Σ q of block b. Defined for every input: an
/// infinity or NaN gives d = NaN and q = 0; max|x| ≤ 1e-30 gives d = 0 and q = 0.
WICK_FN float quantize_activations(const float* x, int blocks, i8* q, i32* sums) {
  u32 largest = 0;
  for (int j = 0; j < kActivationBlock * blocks; ++j) {
    const u32 magnitude = f32_bits(x[j]) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  const ActivationStep step(largest);
  for (int b = 0; b < blocks; ++b) {
    i32 sum = 0;
    for (int j = kActivationBlock * b; j < kActivationBlock * (b + 1); ++j) {
      const i32 value = step.quantize(x[j]);
      q[j] = static_cast<i8>(value);
      sum += value;
    }
    sums[b] = sum;
  }
  return step.d();
}

/// Quantises one block with its own scale.
WICK_FN ActivationScale quantize_activation(const float* x, i8* q) {
  i32 sum = 0;
  const float d = quantize_activations(x, 1, q, &sum);
  return {d, sum};
}

}  // namespace wick::math
