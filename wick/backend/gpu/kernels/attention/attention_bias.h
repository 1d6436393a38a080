#pragma once

// Terms that attention adds to the scores of a row: a mask and ALiBi slopes; and its sink, a score
// without a key. A chunk is hidden if the scores of all keys that its row sees are -inf; it adds
// nothing to the row. The order of operations is that of docs/design/numerics/attention.md.

#include "wick/backend/gpu/kernels/attention/attention.h"

namespace wick::gpu {

/// No terms.
struct NoBias {};

/// A score with the element of an added mask, or of a mask that hides.
WICK_DEVICE float masked(float score, float element) { return score + element; }
WICK_DEVICE float masked(float score, u8 element) {
  return element != 0 ? score : -detail::kInfF32;
}

/// The terms of one row, a query of one head.
struct RowBias {
  const ScoreBias& of;
  i64 mask_row;  // the mask's element for key 0
  float slope;
  WICK_DEVICE RowBias(const ScoreBias& bias, u32 batch, u32 head, u32 query)
      : of(bias),
        mask_row(batch * bias.mask_batch + head * bias.mask_head + query * bias.mask_query),
        slope(bias.slopes == nullptr ? 0.0f : bias.slopes[head * bias.slope_step]) {}

  /// The score with the terms of a key. `own` is the key at the query's position.
  WICK_DEVICE float add(float score, i32 key, i32 own) const {
    if (of.slopes != nullptr) score = score + slope * static_cast<float>(key - own);
    if (of.mask == nullptr) return score;
    const i64 at = mask_row + key * of.mask_key;
    if (of.kind == kMaskF32) return masked(score, static_cast<const float*>(of.mask)[at]);
    if (of.kind == kMaskHides) return masked(score, static_cast<const u8*>(of.mask)[at]);
    if (of.kind == kMaskF16) return masked(score, to_f32(static_cast<const f16*>(of.mask)[at]));
    return masked(score, to_f32(static_cast<const bf16*>(of.mask)[at]));
  }
};

/// chunk_exponentials with add(key, score) in place of each score; keys count from the chunk's
/// first key. In a hidden chunk all exponentials are +0.
template <class Add>
WICK_DEVICE float biased_exponentials(const AttentionCall& c, float (&s)[8], KeyRange seen,
                                      Add&& add) {
  shape_scores(c, s);
  float largest = -detail::kInfF32;
#pragma unroll
  for (u32 i = 0; i < 8; ++i) {
    const i32 key = key_of_lane(i);
    s[i] = key >= seen.begin && key < seen.end ? add(key, s[i]) : -detail::kInfF32;
    largest = s[i] > largest ? s[i] : largest;
  }
  largest = warp_largest(largest);
  const float base = largest == -detail::kInfF32 ? 0.0f : largest;
#pragma unroll
  for (u32 i = 0; i < 8; ++i) {
    const i32 key = key_of_lane(i);
    const float e = exp_of_negative(s[i] - base);
    s[i] = key >= seen.begin && key < seen.end ? e : 0.0f;
  }
  return largest;
}

WICK_DEVICE bool is_hidden(RowSoftmax soft) {
  return soft.largest == -detail::kInfF32 && soft.sum == 0.0f;
}

/// The sink of a head; -inf if there is none.
WICK_DEVICE float sink_of(const ScoreBias& bias, u32 head) {
  return bias.sinks == nullptr ? -detail::kInfF32 : bias.sinks[head * bias.sink_step];
}

/// Whether a mask hides all keys of a row whose exponentials have this sum.
WICK_DEVICE bool sees_nothing(const NoBias&, float) { return false; }
WICK_DEVICE bool sees_nothing(const ScoreBias& bias, float sum) {
  return bias.mask != nullptr && sum == 0.0f;
}

WICK_DEVICE float combine_chunks(const AttentionPartials& partials, u64 row, u32 first, u32 end,
                                 u32 e, u32 x, u32, const NoBias&) {
  return combine_chunks(partials, row, first, end, e, x);
}
/// combine_chunks for a row of head `head` with bias: the sink comes before the chunks, and hidden
/// chunks are skipped.
WICK_DEVICE float combine_chunks(const AttentionPartials& partials, u64 row, u32 first, u32 end,
                                 u32 e, u32 x, u32 head, const ScoreBias& bias) {
  const float* ml = partials.largest_sum + 2 * row * partials.chunks;
  const float* o = partials.out + row * partials.chunks * e + x;
  const float sink = sink_of(bias, head);
  const bool sinks = sink != -detail::kInfF32;
  float m = sinks ? sink : ml[2 * first], l = sinks ? 1.0f : ml[2 * first + 1];
  float y = sinks || is_hidden({m, l}) ? 0.0f : o[u64{first} * e];
  for (u32 c = sinks ? first : first + 1; c < end; ++c) {
    const RowSoftmax soft = {ml[2 * c], ml[2 * c + 1]};
    if (is_hidden(soft)) continue;
    const Combine combine(m, soft.largest);
    m = combine.largest;
    l = combine(l, soft.sum);
    y = combine(y, o[u64{c} * e]);
  }
  return sees_nothing(bias, l) ? 0.0f : y / l;
}

}  // namespace wick::gpu
