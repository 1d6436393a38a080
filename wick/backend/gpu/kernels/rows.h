#pragma once

// The order of row sums (docs/design/numerics/reduce.md) on a GPU, in two forms.
//
// By teams: a team of 32 lanes sums a chunk; lane l holds the accumulators 4l … 4l + 3, so that a team
// reads 128 neighbouring elements at a time. For sums, which look at each element once.
//
// By items: 128 items hold a chunk in registers, item a the elements of accumulator a. For norms and
// softmax, which look again at what they have read.

#include "wick/backend/gpu/kernels/device.h"
#include "wick/backend/gpu/kernels/element.h"

namespace wick::gpu {

inline constexpr u32 kChunk = 4096, kAccumulators = 128;

/// The sum of n <= 4096 elements, in every lane of a team. load(c) gives elements c … c + 3, zeros
/// from n on: a sum that starts at +0 isn't changed by adding +0.
template <class A, class Load>
WICK_DEVICE A team_chunk_sum(u32 n, const Load& load) {
  A acc[4] = {0, 0, 0, 0};
#pragma unroll 8
  for (u32 c = lane() * 4; c < n; c += kAccumulators) {
    const Pack<A, 4> x = load(c);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) acc[i] = acc[i] + x.x[i];
  }
  return team_sum((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

/// Four elements as the type that computes. `whole`: all four are there and lie at a multiple of four
/// elements in memory.
template <class T>
WICK_DEVICE auto load4(const T* x, u32 c, u32 n, bool whole) {
  using A = decltype(widen(T()));
  Pack<A, 4> y;
  if (whole) {
    const Pack<T, 4> raw = *reinterpret_cast<const Pack<T, 4>*>(x + c);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) y.x[i] = widen(raw.x[i]);
  } else {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) y.x[i] = c + i < n ? widen(x[c + i]) : A(0);
  }
  return y;
}

/// The row sum of at most 8 partial results.
template <class A>
WICK_DEVICE A sum_of_8(const A* t) {
  return ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
}

/// The sum of the accumulators of 128 items, in all of them; and where a group has several times 128
/// items, of their chunks. Every item of the group has to come here. `shared` holds 32 of A for each
/// 128 items.
template <class A>
WICK_DEVICE A group_row_sum(A acc, u32 chunks, A* shared) {
  acc = acc + shuffle_xor<1>(acc);
  acc = acc + shuffle_xor<2>(acc);
  const u32 chunk = item() / kAccumulators, quad = lane() / 4;
  A* part = shared + chunk * 32;
  if (lane() % 4 == 0) part[team() % 4 * 8 + quad] = acc;
  sync();
  A total = 0;
  A sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
  for (u32 k = 0; k < 8; ++k) {
    if (k >= chunks) break;
    const A* p = shared + k * 32 + quad;
    A s = (p[0] + p[16]) + (p[8] + p[24]);
    s = s + shuffle_xor<16>(s);
    s = s + shuffle_xor<8>(s);
    sums[k] = s + shuffle_xor<4>(s);
  }
  total = chunks == 1 ? sums[0] : sum_of_8(sums);
  return total;
}

}  // namespace wick::gpu
