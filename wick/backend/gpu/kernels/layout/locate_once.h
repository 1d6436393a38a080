#pragma once

// The offsets of an index in a strided index, in little code.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// StridedIndex::locate in little code, for kernels that call it once a thread.
template <u32 N>
WICK_FN void locate_once(const StridedIndex<N>& strided, u32 index, i64 (&at)[N]) {
  for (u32 k = 0; k < N; ++k) at[k] = 0;
#if defined(__CUDACC__) || defined(__HIP__)
#pragma unroll 1
#endif
  for (u32 d = strided.rank; d > 0; --d) {
    const u32 outer = d == 1 ? 0 : strided.size[d - 1].divide(index);
    const i64 here = index - outer * strided.size[d - 1].by;
    for (u32 k = 0; k < N; ++k) at[k] += here * strided.stride[k][d - 1];
    index = outer;
  }
}

}  // namespace wick::gpu
