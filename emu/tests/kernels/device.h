#pragma once

// What the test kernels need of the device's language, without any vendor's header.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

__device__ inline unsigned item() { return __builtin_amdgcn_workitem_id_x(); }
__device__ inline unsigned group() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline unsigned group_size() { return __builtin_amdgcn_workgroup_size_x(); }
__device__ inline unsigned global_item() { return group() * group_size() + item(); }
