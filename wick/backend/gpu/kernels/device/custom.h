#pragma once

// What the kernels of custom ops may use besides device.h: conversion of elements (element.h), the
// functions of wick/math, and indices. docs/custom-ops.md documents the names for users.

#include "wick/backend/gpu/kernels/device/element.h"

namespace wick::gpu {

#if WICK_AMD
WICK_DEVICE u32 block_index_z() { return __builtin_amdgcn_workgroup_id_z(); }
#else
WICK_DEVICE u32 block_index_z() { return blockIdx.z; }
#endif

/// The index of this thread among all threads along the first axis of the grid.
WICK_DEVICE i64 global_index() { return i64{block_index()} * block_threads() + thread_index(); }
/// The number of threads along the first axis of the grid.
WICK_DEVICE i64 global_threads() { return i64{grid_blocks()} * block_threads(); }

extern WICK_SHARED Bytes16 dynamic_shared[];
/// The dynamic shared memory of the thread block, aligned to 16 bytes. Its size is that of the
/// launch.
template <class T>
WICK_DEVICE T* shared_memory() {
  return reinterpret_cast<T*>(dynamic_shared);
}

/// The offset of element `index`, in row-major order over `shape`, of a tensor with these strides.
template <int kRank>
WICK_DEVICE i64 offset_of(i64 index, const i64 (&shape)[kRank], const i64 (&strides)[kRank]) {
  i64 at = 0;
#pragma unroll
  for (int d = kRank - 1; d >= 0; --d) {
    at += index % shape[d] * strides[d];
    index /= shape[d];
  }
  return at;
}

}  // namespace wick::gpu
