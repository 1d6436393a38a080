#pragma once

// What programs that hiprtc compiles find as <hip/hip_runtime.h>, which every program includes:
// the vocabulary of HIP's device language. device_library.h has the mathematics and the calls of
// the host.

#define __HIPCC__ 1
#define __HIPCC_RTC__ 1
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
#define HIP_VERSION_MAJOR 6
#define HIP_VERSION_MINOR 4
#define HIP_VERSION_PATCH 0
#define HIP_VERSION 60400000

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...) __WICK_LAUNCH_BOUNDS(__VA_ARGS__, 1, 0)
#define __WICK_LAUNCH_BOUNDS(threads, waves, ...) \
  __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name

// In the order in which they need each other.
// clang-format off
#include "types.h"
#include "lanes.h"
#include "atomics.h"
#include "bits.h"
#include "device_library.h"
#include "memory.h"
#include "math.h"
#include "textures.h"
