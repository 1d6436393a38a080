#pragma once

// The arithmetic of choosing a token (wick/base/sampler.h), the same on every processor: logits
// after penalties, their order, probabilities as whole numbers, and where a draw falls.

#include "wick/math/fn.h"
#include "wick/math/random.h"
#include "wick/math/scalar.h"

namespace wick::math {

/// How a sequence's tokens are drawn (SamplerOptions), as it lies in a device's memory.
struct SamplerWords {
  float temperature, top_p, min_p, repetition, presence, frequency;
  u32 top_k, window;  ///< window: 2^32 - 1 for all tokens
  u32 seed_low, seed_high;
  u32 penalizes;  ///< whether the tokens so far have a say
  u32 unused;
};
inline constexpr int kSamplerWords = sizeof(SamplerWords) / 4;

/// The logit of a token that was seen `count` times. Every operation is rounded.
WICK_FN float penalized_logit(float logit, u32 count, float repetition, float frequency,
                              float presence) {
  logit = logit > 0 ? logit / repetition : logit * repetition;
  logit = logit - static_cast<float>(count) * frequency;
  return logit - presence;
}

/// The weight of the most likely token.
inline constexpr double kTopWeight = 0x1p40;

/// How likely a token is whose logit (over the temperature) is `less` than the first one's, in
/// units of 2^-40 of the first one's probability. less <= 0.
WICK_FN u64 token_weight(double less) { return static_cast<u64>(exp(less) * kTopWeight + 0.5); }

/// floor(r / 2^64 · total) for the 64 random bits r of a seed's draw: below total, which is below
/// 2^61.
WICK_FN u64 draw_point(u64 total, u64 seed, u64 draw) {
  const Philox4 random = philox(seed, 0, draw);
  const u64 bits = u64{random.v[0]} << 32 | random.v[1];
  // Split so that no product overflows.
  const u64 low =
      (total & 0xffffffffu) * (bits >> 32) + ((total & 0xffffffffu) * (bits & 0xffffffffu) >> 32);
  const u64 middle = (total >> 32) * (bits & 0xffffffffu);
  const u64 carry = ((low & 0xffffffffu) + (middle & 0xffffffffu)) >> 32;
  return (total >> 32) * (bits >> 32) + (low >> 32) + (middle >> 32) + carry;
}

/// A number that is larger for larger logits, and equal for -0 and +0. Not for NaN.
WICK_FN u32 logit_order(float logit) {
  const u32 b = f32_bits(logit + 0.0f);
  return (b >> 31) != 0 ? ~b : b | 0x80000000u;
}
/// The logit of such a number, -0 as +0.
WICK_FN float ordered_logit(u32 order) {
  return bits_f32((order >> 31) != 0 ? order & 0x7fffffffu : ~order);
}

/// A number that is larger for tokens that rank higher: by their logits, equal ones by their ids,
/// the lowest first.
WICK_FN u64 token_rank(float logit, u32 id) { return u64{logit_order(logit)} << 32 | ~id; }

}  // namespace wick::math
