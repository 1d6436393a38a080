#pragma once

// Casts to another dtype.
//
// Computes: out[i] = cast(in[i]) (wick/math/half.h).
// Index map: see layout/elementwise.h. A thread takes several vectors or elements, one block width
// apart.
// Bytes moved: each element is read once and written once.

#include "wick/backend/gpu/kernels/layout/elementwise.h"
#include "wick/backend/gpu/kernels/move/move_abi.h"

namespace wick::gpu {

template <class To, class From>
WICK_DEVICE void cast_vectorized(To* WICK_RESTRICT out, const From* WICK_RESTRICT in,
                                 const StridedIndex<2>& strided, u32 rest) {
  constexpr u32 kPack = map_vec(sizeof(To), sizeof(From));
  constexpr u32 kUnroll = map_unroll(sizeof(To), sizeof(From));
  using P = Vec<To, kPack>;
  const Places<2, kUnroll> places(strided);
  pdl_wait();
  pdl_launch_dependents();
  Vec<From, kPack> x[kUnroll];
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] < strided.elems) x[u] = load_vec<From, kPack>(in + places.at[1][u]);
  }
#pragma unroll
  for (u32 u = 0; u < kUnroll; ++u) {
    if (places.index[u] >= strided.elems) continue;
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
    const u64 at = u64{strided.elems} * kPack + thread_index();
    out[at] = cast<To>(in[at]);
  }
}

/// Calls body(zero of the dtype) for the dtype with this index in dtypes.def.
template <class Body>
WICK_DEVICE void with_real_dtype(u32 dtype, Body body) {
  u32 number = 0;
#define WICK_DTYPE(name, block_elems, block_bytes, kind) WICK_DTYPE_OF_##kind(name)
#define WICK_DTYPE_OF_unsigned_integer(name) \
  if (dtype == number++) return body(Storage_##name());
#define WICK_DTYPE_OF_signed_integer(name) WICK_DTYPE_OF_unsigned_integer(name)
#define WICK_DTYPE_OF_floating(name) WICK_DTYPE_OF_unsigned_integer(name)
#define WICK_DTYPE_OF_block(name)
#include "wick/base/dtypes.def"
}

template <class From>
WICK_DEVICE void cast_scalar(void* out, const From* WICK_RESTRICT in,
                             const StridedIndex<2>& strided, u32 to) {
  const Places<2, kMapEach> places(strided);
  pdl_wait();
  pdl_launch_dependents();
  From x[kMapEach];
#pragma unroll
  for (u32 u = 0; u < kMapEach; ++u) {
    if (places.index[u] < strided.elems) x[u] = in[places.at[1][u]];
  }
  with_real_dtype(to, [&](auto zero) {
    using To = decltype(zero);
#pragma unroll
    for (u32 u = 0; u < kMapEach; ++u) {
      if (places.index[u] < strided.elems) static_cast<To*>(out)[places.at[0][u]] = cast<To>(x[u]);
    }
  });
}

}  // namespace wick::gpu

#define WICK_CAST_KERNEL(from, to)                                                     \
  WICK_KERNEL(cast_##from##_##to, CastArgs, wick::gpu::kMapThreads) {                  \
    wick::gpu::cast_vectorized(static_cast<wick::gpu::Storage_##to*>(args.out),        \
                               static_cast<const wick::gpu::Storage_##from*>(args.in), \
                               args.strided, args.rest);                               \
  }
#define WICK_CAST_SCALAR(from)                                                               \
  WICK_KERNEL(cast_scalar_##from, CastScalarArgs, wick::gpu::kMapThreads) {                  \
    wick::gpu::cast_scalar(args.out, static_cast<const wick::gpu::Storage_##from*>(args.in), \
                           args.strided, args.to);                                           \
  }
