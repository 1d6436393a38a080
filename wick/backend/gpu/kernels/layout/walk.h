#pragma once

// What elementwise kernels share: where an item's elements lie, and the two forms that each kernel
// has.
//
// Packs: along the innermost dim the output is dense, and each operand is dense or one element;
// the nest counts packs. Singles: any layout; the nest counts elements.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/layout/nest.h"
#include "wick/backend/gpu/kernels/layout/spread.h"

namespace wick::gpu {

/// Eight bytes that are moved as one.
struct alignas(8) Bytes8 {
  u32 w[2];
};

/// The places, in elements of each operand, of kMany indices that are a group's width apart.
template <u32 N, u32 kMany>
struct Places {
  u32 index[kMany];
  i64 at[N][kMany] = {};

  WICK_DEVICE explicit Places(const Nest<N>& nest) {
    const u32 first = group() * (items() * kMany) + item();
    u32 rest[kMany];
#pragma unroll
    for (u32 u = 0; u < kMany; ++u) rest[u] = index[u] = first + u * items();
    if (nest.step != 0) {
#pragma unroll
      for (u32 u = 0; u < kMany; ++u) {
#pragma unroll
        for (u32 k = 0; k < N; ++k) at[k][u] = static_cast<i64>(u64{index[u]} * nest.step);
      }
      return;
    }
    // A loop, not eight copies of its body: they would be most of a kernel.
#pragma unroll 1
    for (u32 d = nest.rank; d-- > 0;) {
      const Divider size = nest.size[d];
#pragma unroll
      for (u32 u = 0; u < kMany; ++u) {
        const u32 outer = d == 0 ? 0 : size.divide(rest[u]);
        const u32 here = rest[u] - outer * size.by;
        rest[u] = outer;
#pragma unroll
        for (u32 k = 0; k < N; ++k) at[k][u] += static_cast<i64>(here) * nest.stride[k][d];
      }
    }
  }
};

/// Where the elements lie that are too few for a pack, behind a dense nest's last: this item's.
/// True in as many items as there are.
WICK_DEVICE bool is_rest(u32 rest) { return group() == groups() - 1 && item() < rest; }

/// A pack of an operand.
template <class T, u32 kPack>
WICK_DEVICE Pack<T, kPack> load_pack(const T* x) {
  return *reinterpret_cast<const Pack<T, kPack>*>(x);
}
/// Likewise, or one element in all places.
template <class T, u32 kPack>
WICK_DEVICE Pack<T, kPack> load_pack(const T* x, bool repeated) {
  return repeated ? Pack<T, kPack>::repeat(*x) : load_pack<T, kPack>(x);
}

}  // namespace wick::gpu
