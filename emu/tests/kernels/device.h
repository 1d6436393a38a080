#pragma once

// Declarations of the device language for the test kernels, which use no vendor's headers.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

__device__ inline unsigned item() { return __builtin_amdgcn_workitem_id_x(); }
__device__ inline unsigned group() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline unsigned group_size() { return __builtin_amdgcn_workgroup_size_x(); }
/// Handles a smaller workgroup at the edge of the grid, too: the hidden arguments hold the number
/// of whole workgroups, from byte 12 on their sizes, and then the sizes of the remainder. Requires
/// code object version 5 or later.
__device__ inline unsigned own_group_size() {
  using Bytes = const __attribute__((address_space(4))) char*;
  const auto hidden = (Bytes)__builtin_amdgcn_implicitarg_ptr();
  const unsigned whole = *(const __attribute__((address_space(4))) unsigned*)hidden;
  const auto rest = (const __attribute__((address_space(4))) unsigned short*)(hidden + 18);
  return group() < whole ? group_size() : *rest;
}
__device__ inline unsigned global_item() { return group() * group_size() + item(); }
