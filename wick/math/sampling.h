#pragma once

// The arithmetic of sampling a token (wick/base/sampling/sampler.h), equal on every processor:
// penalised logits, their order, integer weights, and the position of a draw.

#include "wick/math/fn.h"
#include "wick/math/random.h"
#include "wick/math/scalar.h"

namespace wick::math {

/// SamplerOptions in device memory.
struct SamplerWords {
  float temperature, top_p, min_p, repetition, presence, frequency;
  u32 top_k, window;  ///< window: 2^32 - 1 for all tokens
  u32 seed_low, seed_high;
  u32 penalizes;  ///< whether any penalty is set
  u32 unused;
};
inline constexpr int kSamplerWords = sizeof(SamplerWords) / 4;

/// A logit, or the largest finite one for +inf, which has no distance to others.
WICK_FN float largest_finite(float logit) {
  return logit > 0x1.fffffep127f ? 0x1.fffffep127f : logit;
}

/// The penalised logit of a token that was seen `count` times. Every operation is rounded.
WICK_FN float penalized_logit(float logit, u32 count, float repetition, float frequency,
                              float presence) {
  logit = logit > 0 ? logit / repetition : logit * repetition;
  logit = logit - static_cast<float>(count) * frequency;
  return largest_finite(logit - presence);
}

/// The weight of the most likely token.
inline constexpr double kTopWeight = 0x1p40;

/// The weight of a token whose logit, divided by the temperature, differs from the largest by
/// `less` <= 0, in units of 2^-40 of the most likely token's probability.
WICK_FN u64 token_weight(double less) { return static_cast<u64>(exp(less) * kTopWeight + 0.5); }

/// What a token adds to the sum of weight · −less, of which the entropy of all tokens is made. The
/// sum of 2^21 tokens is below 2^61.
WICK_FN u64 weighted_distance(u64 weight, double less) {
  if (weight == 0) return 0;  // less may be -inf
  return static_cast<u64>(static_cast<double>(weight) * -less + 0.5);
}

/// floor(r / 2^64 · total) for 64 random bits r of a draw. The result is below total, which must be
/// below 2^61.
WICK_FN u64 draw_point(u64 total, u64 seed, u64 draw) {
  const Philox4 random = philox(seed, 0, draw);
  const u64 bits = u64{random.v[0]} << 32 | random.v[1];
  // Multiplies in 32-bit halves so that no product overflows.
  const u64 low =
      (total & 0xffffffffu) * (bits >> 32) + ((total & 0xffffffffu) * (bits & 0xffffffffu) >> 32);
  const u64 middle = (total >> 32) * (bits & 0xffffffffu);
  const u64 carry = ((low & 0xffffffffu) + (middle & 0xffffffffu)) >> 32;
  return (total >> 32) * (bits >> 32) + (low >> 32) + (middle >> 32) + carry;
}

/// A number with the order of logits; -0 and +0 give the same. Undefined for NaN.
WICK_FN u32 logit_order(float logit) {
  const u32 b = f32_bits(logit + 0.0f);
  return (b >> 31) != 0 ? ~b : b | 0x80000000u;
}
/// The inverse of logit_order; -0 becomes +0.
WICK_FN float ordered_logit(u32 order) {
  return bits_f32((order >> 31) != 0 ? order & 0x7fffffffu : ~order);
}

/// A number with the order of tokens by rank: by logit, and for equal logits by id, the lowest id
/// ranking highest.
WICK_FN u64 token_rank(float logit, u32 id) { return u64{logit_order(logit)} << 32 | ~id; }

}  // namespace wick::math
