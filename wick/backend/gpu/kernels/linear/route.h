#pragma once

// The choice of experts by a warp from a row of a router's logits, with the bits of softmax or
// sigmoid, an addition of a bias, topk, gather, and a softmax or a division by the sum
// (docs/design/numerics/reduce.md). Lane l holds experts 128·b + 4·l to 128·b + 4·l + 3, which are
// the elements of its four accumulators in the order of row_sum. Each chosen expert is the minimum
// over the warp of the keys of those that are left.

#include "wick/backend/gpu/kernels/index/sort.h"
#include "wick/backend/gpu/kernels/linear/experts_abi.h"
#include "wick/math/arithmetic.h"

namespace wick::gpu {

/// row_sum of at most 32 values, one in each lane; lanes without a value have +0.
WICK_DEVICE float sum_of_chosen(float x) {
  x += 0.0f;  // no sum is -0
  x += shuffle_xor<1>(x);
  x += shuffle_xor<2>(x);
  x += shuffle_xor<16>(x);
  x += shuffle_xor<8>(x);
  return x + shuffle_xor<4>(x);
}
WICK_DEVICE float largest_of_lanes(float x) {
  x = larger(x, shuffle_xor<16>(x));
  x = larger(x, shuffle_xor<8>(x));
  x = larger(x, shuffle_xor<4>(x));
  x = larger(x, shuffle_xor<2>(x));
  return larger(x, shuffle_xor<1>(x));
}
template <u32 kMask>
WICK_DEVICE u64 smaller_with(u64 x) {
  const u64 y = shuffle_xor<kMask>(x);
  return y < x ? y : x;
}
/// The smallest x of the warp.
WICK_DEVICE u64 smallest_of_lanes(u64 x) {
#if WICK_MMA
  // Two reductions of words take a quarter of the time of ten shuffles.
  const u32 upper = __reduce_min_sync(~0u, static_cast<u32>(x >> 32));
  const u32 lower = static_cast<u32>(x >> 32) == upper ? static_cast<u32>(x) : ~0u;
  return u64{upper} << 32 | __reduce_min_sync(~0u, lower);
#else
  x = smaller_with<16>(x);
  x = smaller_with<8>(x);
  x = smaller_with<4>(x);
  x = smaller_with<2>(x);
  return smaller_with<1>(x);
#endif
}

/// A key whose order is that of a descending sort; of equal scores, the lower id is first.
WICK_DEVICE u64 key_of(float score, u32 id) {
  constexpr SortKeys kDescending = {.sign = 0x80000000u,
                                    .most = 0x7f800000u,
                                    .positive = 0x7fffffffu,
                                    .negative = 0,
                                    .turn = 0xffffffffu};
  return u64{key_of(f32_bits(score), kDescending)} << 32 | id;
}

/// Chooses the experts of a row of logits. Lane j gets the id of the chosen expert j. kBlocks: a
/// lane holds four experts of each of so many blocks of 128. all: the scores of the row's 128 ·
/// kBlocks experts. A whole warp calls it.
template <u32 kBlocks>
WICK_DEVICE u32 choose_experts(const RouteArgs& p, u32 row, float* all) {
  constexpr u32 kEach = kBlocks * 4, kInfinity = 0x7f800000u;
  const u32 l = lane();
  const float* const from = p.logits + row * p.row_step;
  const auto id_of = [&](u32 i) { return i / 4 * 128 + 4 * l + i % 4; };
  float x[kEach];
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) x[i] = id_of(i) < p.experts ? from[id_of(i) * p.step] : 0.0f;
  if (p.scores == 1) {
    float m = bits_f32(kInfinity | 0x80000000u), sums[4] = {};
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      if (id_of(i) < p.experts) m = larger(m, x[i]);
    }
    m = largest_of_lanes(m);
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) {
      x[i] = exp_of_negative(x[i] - m);
      if (id_of(i) < p.experts) sums[i % 4] += x[i];
    }
    const float r = 1.0f / warp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) x[i] = x[i] * r;
  } else if (p.scores == 2) {
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) x[i] = sigmoid(x[i]);
  }
  u64 keys[kEach];
#pragma unroll
  for (u32 i = 0; i < kEach; ++i) {
    all[id_of(i)] = x[i];
    const bool exists = id_of(i) < p.experts;
    const float biased = p.bias != nullptr && exists ? x[i] + p.bias[id_of(i) * p.bias_step] : x[i];
    keys[i] = exists ? key_of(biased, id_of(i)) : ~u64{0};
  }
  u32 mine = 0;  // of lane j: the id of the chosen expert j
#pragma unroll 1
  for (u32 j = 0; j < p.used; ++j) {
    u64 best = keys[0];
#pragma unroll
    for (u32 i = 1; i < kEach; ++i) best = keys[i] < best ? keys[i] : best;
    best = smallest_of_lanes(best);
#pragma unroll
    for (u32 i = 0; i < kEach; ++i) keys[i] = keys[i] == best ? ~u64{0} : keys[i];
    if (l == j) mine = static_cast<u32>(best);
  }
  return mine;
}

/// Stores the ids that choose_experts() returned, and their weights, if `live`. Between the two
/// calls lies a sync().
WICK_DEVICE void weigh_experts(const RouteArgs& p, u32 row, bool live, u32 mine, const float* all) {
  constexpr u32 kInfinity = 0x7f800000u;
  const u32 l = lane();
  const bool has = l < p.used;
  float w = has ? all[mine] : 0.0f;
  if (p.softmax_of_chosen != 0) {
    const float m = largest_of_lanes(has ? w : bits_f32(kInfinity | 0x80000000u));
    const float e = has ? exp_of_negative(w - m) : 0.0f;
    w = e * (1.0f / sum_of_chosen(e));
  }
  if (p.normalize != 0) w = w / sum_of_chosen(has ? w : 0.0f);
  if (p.scaled != 0) w = w * p.scale;
  if (live && has) {
    p.ids[u64{row} * p.used + l] = mine;
    p.weights[u64{row} * p.used + l] = w;
  }
}

}  // namespace wick::gpu
