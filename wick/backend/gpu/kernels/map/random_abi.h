#pragma once

// Arguments of the kernels that draw random numbers.

#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/backend/gpu/kernels/map/map_abi.h"

namespace wick::gpu {

/// Random numbers of a call, from one counter on.
struct Draws {
  u64 seed;
  u64 first;  ///< counter of the kernel's first element
  Number a;   ///< least number, or mean
  Number b;   ///< width of the interval, or deviation
};

/// random_uniform_DTYPE and random_normal_DTYPE: the output is dense along its innermost dim, and
/// begins at a multiple of 16 bytes there. The strided index counts vectors of 16 bytes, and `rest`
/// elements follow the last vector.
struct RandomArgs {
  void* out;
  StridedIndex<1> strided;
  u32 rest;
  Draws draws;
};
/// random_scalar_uniform_DTYPE and random_scalar_normal_DTYPE: any layout. The strided index counts
/// elements. `skip` numbers of the first counter belong to elements before the kernel's first one.
struct RandomScalarArgs {
  void* out;
  StridedIndex<1> strided;
  u32 skip;
  Draws draws;
};

}  // namespace wick::gpu
