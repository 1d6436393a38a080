#pragma once

// Hardware features of the target. Kernels test the macros. Each image exports a word of Feature
// bits (features.gpu), which the host reads instead of comparing architecture names. The file
// includes nothing that a host compiler doesn't know.
//
// AMD targets are recognised by the builtins that their compiler offers. Older MFMA units, which
// need other instructions, are recognised by name, so that an unknown newer chip takes the newest
// form.

#include "wick/math/fn.h"

#if defined(__AMDGCN__)
#if __has_builtin(__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12)
#define WICK_WMMA 12
#elif __has_builtin(__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32)
#define WICK_WMMA 11
#elif defined(__gfx908__)
#define WICK_MFMA 1
#elif defined(__gfx90a__)
#define WICK_MFMA 2
#elif __has_builtin(__builtin_amdgcn_mfma_f32_16x16x16f16)
#define WICK_MFMA 3
#endif
#if __has_builtin(__builtin_amdgcn_sudot4)
#define WICK_DOT4_MIXED 1
#elif __has_builtin(__builtin_amdgcn_sdot4)
#define WICK_DOT4_SIGNED 1
#endif
#if __has_builtin(__builtin_amdgcn_sudot8)
#define WICK_DOT8_MIXED 1
#elif __has_builtin(__builtin_amdgcn_udot8)
#define WICK_DOT8_UNSIGNED 1
#endif
// Lanes of a wave. The builtin exists for waves of 32 lanes only, and GFX9 has waves of 64 lanes
// only. For others there was a macro, which LLVM 22 removed.
#if __has_builtin(__builtin_amdgcn_ballot_w32)
#define WICK_WAVE 32
#elif defined(__GFX9__)
#define WICK_WAVE 64
#elif defined(__AMDGCN_WAVEFRONT_SIZE__)
#define WICK_WAVE __AMDGCN_WAVEFRONT_SIZE__
#else
#error "the compiler doesn't say how many lanes a wave has"
#endif
#elif defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ >= 800
#define WICK_MMA 1
#define WICK_ASYNC_COPIES 1
#endif
#if __CUDA_ARCH__ >= 900
#define WICK_CLUSTER 1
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WICK_WGMMA 1
#endif
#endif

// Features that the target lacks are 0.
#ifndef WICK_WMMA
#define WICK_WMMA 0
#endif
#ifndef WICK_MFMA
#define WICK_MFMA 0
#endif
#ifndef WICK_DOT4_MIXED
#define WICK_DOT4_MIXED 0
#endif
#ifndef WICK_DOT4_SIGNED
#define WICK_DOT4_SIGNED 0
#endif
#ifndef WICK_DOT8_MIXED
#define WICK_DOT8_MIXED 0
#endif
#ifndef WICK_DOT8_UNSIGNED
#define WICK_DOT8_UNSIGNED 0
#endif
#ifndef WICK_WAVE
#define WICK_WAVE 32
#endif
#ifndef WICK_MMA
#define WICK_MMA 0
#endif
#ifndef WICK_ASYNC_COPIES
#define WICK_ASYNC_COPIES 0
#endif
#ifndef WICK_CLUSTER
#define WICK_CLUSTER 0
#endif
#ifndef WICK_WGMMA
#define WICK_WGMMA 0
#endif

// Matrix units for f16 and bf16, and for int8. So far a target has both or neither.
#define WICK_MATRIX_UNIT (WICK_WMMA || WICK_MFMA || WICK_MMA)
#define WICK_BYTE_UNIT WICK_MATRIX_UNIT

namespace wick::gpu {

/// Lanes of a warp, on every device.
inline constexpr math::u32 kWarp = 32;

/// Bits of an image's feature word.
enum class Feature : math::u32 {
  matrix_unit = 1,    ///< multiplies f16 and bf16 matrices: mma.h
  byte_unit = 2,      ///< multiplies int8 matrices: imma.h
  wgmma = 4,          ///< warpgroup multiplication from shared memory: wgmma.h
  cluster = 8,        ///< thread block clusters, and programmatic dependent launch
  async_copies = 16,  ///< asynchronous copies to shared memory: copy.h
  wave64 = 32         ///< waves of 64 lanes, which work as two warps
};
constexpr math::u32 bit(Feature feature, bool there = true) {
  return there ? static_cast<math::u32>(feature) : 0u;
}

inline constexpr math::u32 kFeatures =
    bit(Feature::matrix_unit, WICK_MATRIX_UNIT) | bit(Feature::byte_unit, WICK_BYTE_UNIT) |
    bit(Feature::wgmma, WICK_WGMMA) | bit(Feature::cluster, WICK_CLUSTER) |
    bit(Feature::async_copies, WICK_ASYNC_COPIES) | bit(Feature::wave64, WICK_WAVE == 64);

/// Precedes the word in an image: "wickfeat".
inline constexpr math::u32 kFeatureMark[2] = {0x6b636977u, 0x74616566u};

}  // namespace wick::gpu
