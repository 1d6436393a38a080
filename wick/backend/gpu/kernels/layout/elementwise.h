#pragma once

// What elementwise kernels share: the places of a thread's elements, and the two forms of each
// kernel.
//
// Vectorized: along the innermost dim the output is dense, and each operand is dense or one
// repeated element. The strided index counts vectors.
// Scalar: any layout. The strided index counts elements.

#include "wick/backend/gpu/kernels/device/uniform.h"
#include "wick/backend/gpu/kernels/layout/spread.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Eight bytes that are moved at once.
struct alignas(8) Bytes8 {
  u32 w[2];
};

/// Offsets, in elements of each of N operands, of a thread's kMany indices. The indices are one
/// block width apart.
template <u32 N, u32 kMany>
struct Places {
  u32 index[kMany];
  i64 at[N][kMany] = {};

  WICK_DEVICE explicit Places(const StridedIndex<N>& strided) {
    const u32 first = block_index() * (block_threads() * kMany) + thread_index();
    u32 rest[kMany];
#pragma unroll
    for (u32 u = 0; u < kMany; ++u) rest[u] = index[u] = first + u * block_threads();
    if (strided.step != 0) {
#pragma unroll
      for (u32 u = 0; u < kMany; ++u) {
#pragma unroll
        for (u32 k = 0; k < N; ++k) at[k][u] = static_cast<i64>(u64{index[u]} * strided.step);
      }
      return;
    }
    // The loop isn't unrolled: eight copies of its body would be most of a kernel.
#pragma unroll 1
    for (u32 d = strided.rank; d-- > 0;) {
      const Divider size = strided.size[d];
#pragma unroll
      for (u32 u = 0; u < kMany; ++u) {
        const u32 outer = d == 0 ? 0 : size.divide(rest[u]);
        const u32 here = rest[u] - outer * size.by;
        rest[u] = outer;
#pragma unroll
        for (u32 k = 0; k < N; ++k) at[k][u] += static_cast<i64>(here) * strided.stride[k][d];
      }
    }
  }
};

/// True in the `rest` threads that handle the elements behind the last whole vector of dense
/// operands.
WICK_DEVICE bool is_rest(u32 rest) {
  return block_index() == grid_blocks() - 1 && thread_index() < rest;
}

/// Loads kPack neighbouring elements.
template <class T, u32 kPack>
WICK_DEVICE Vec<T, kPack> load_vec(const T* x) {
  return *reinterpret_cast<const Vec<T, kPack>*>(x);
}
/// Loads kPack neighbouring elements, or one element kPack times if `repeated`.
template <class T, u32 kPack>
WICK_DEVICE Vec<T, kPack> load_vec(const T* x, bool repeated) {
  return repeated ? Vec<T, kPack>::repeat(load_repeated(x)) : load_vec<T, kPack>(x);
}

}  // namespace wick::gpu
