#pragma once

// Elements as another dtype.
//
// Computes: out[i] = cast(in[i]), wick/math/half.h.
// Index map: see walk.h; an item takes some packs or elements, a group's width apart.
// Bytes moved: each element read once and written once.

#include "wick/backend/gpu/kernels/layout/walk.h"
#include "wick/backend/gpu/kernels/move/move_abi.h"

namespace wick::gpu {

template <class To, class From>
WICK_DEVICE void cast_packs(To* WICK_RESTRICT out, const From* WICK_RESTRICT in,
                            const Nest<2>& nest, u32 rest) {
  constexpr u32 kPack = map_pack(sizeof(To), sizeof(From));
  constexpr u32 kUnroll = map_unroll(sizeof(To), sizeof(From));
  using P = Pack<To, kPack>;
  const Places<2, kUnroll> places(nest);
  wait_for_earlier();
  let_later_start();
  Pack<From, kPack> x[kUnroll];
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] < nest.elems) x[u] = load_pack<From, kPack>(in + places.at[1][u]);
  }
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] >= nest.elems) continue;
    P y;
    if constexpr (kSame<Compute<From>, float> && kNarrow<To>) {
      float z[kPack];
#pragma unroll
      for (u32 i = 0; i < kPack; ++i) z[i] = x[u][i];
      y = P::of(z);
    } else {
      To z[kPack];
#pragma unroll
      for (u32 i = 0; i < kPack; ++i) z[i] = cast<To>(x[u][i]);
      y = P::of_stored(z);
    }
    *reinterpret_cast<P*>(out + places.at[0][u]) = y;
  }
  if (is_rest(rest)) {
    const u64 at = u64{nest.elems} * kPack + item();
    out[at] = cast<To>(in[at]);
  }
}

/// Calls body(element of the dtype), by the number that it has in dtypes.def.
template <class Body>
WICK_DEVICE void with_real_dtype(u32 dtype, Body body) {
  u32 number = 0;
#define WICK_DTYPE(name, block_elems, block_bytes, kind) WICK_REAL_DTYPE_##block_elems(name)
#define WICK_REAL_DTYPE_1(name) \
  if (dtype == number++) return body(Storage_##name());
#define WICK_REAL_DTYPE_32(name)
#define WICK_REAL_DTYPE_256(name)
#include "wick/base/dtypes.def"
}

template <class From>
WICK_DEVICE void cast_singles(void* out, const From* WICK_RESTRICT in, const Nest<2>& nest,
                              u32 to) {
  const Places<2, kMapEach> places(nest);
  wait_for_earlier();
  let_later_start();
  From x[kMapEach];
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] < nest.elems) x[u] = in[places.at[1][u]];
  }
  with_real_dtype(to, [&](auto zero) {
    using To = decltype(zero);
#pragma unroll
    for (u32 u = 0; u < kMapEach; ++u) {
      if (places.index[u] < nest.elems) static_cast<To*>(out)[places.at[0][u]] = cast<To>(x[u]);
    }
  });
}

}  // namespace wick::gpu

#define WICK_CAST_KERNEL(from, to)                                                           \
  WICK_KERNEL(cast_##from##_##to, CastArgs, wick::gpu::kMapItems) {                       \
    wick::gpu::cast_packs(static_cast<wick::gpu::Storage_##to*>(args.out),                   \
                          static_cast<const wick::gpu::Storage_##from*>(args.in), args.nest, \
                          args.rest);                                                        \
  }
#define WICK_CAST_SINGLES(from)                                                               \
  WICK_KERNEL(cast_singles_##from, CastSinglesArgs, wick::gpu::kMapItems) {                \
    wick::gpu::cast_singles(args.out, static_cast<const wick::gpu::Storage_##from*>(args.in), \
                            args.nest, args.to);                                              \
  }
