#pragma once

// Kernels for tests of custom ops.

#include <cstdint>

#include "wick/backend/custom_kernel.h"

namespace wick::gpu {

/// A kernel that uses all that the text of a body may.
inline const KernelText& everything() {
  static const KernelText text{.body = R"(
    WICK_SHARED float sums[64];
    float* const more = shared_memory<float>();
    const u32 thread = thread_index();
    float sum = 0;
    for (i64 i = global_index(); i < x_elems; i += global_threads()) {
      sum += twice(widen(x[offset_of(i, x_shape, x_strides)])) * scale;
    }
    sums[thread] = more[thread] = sum;
    sync();
    if (thread == 0 && block_index_y() == 0 && block_index_z() == 0) {
      for (u32 t = 1; t < block_threads(); ++t) sum += sums[t];
      const elem rounded = narrow<elem>(exp(sum * 0.0f) - 1 + sum + (flag ? offset : 0));
      y[block_index()] = rounded;
    }
  )",
                               .header =
                                   "#include \"wick/math/random.h\"\n"
                                   "template <class T>\nT twice(T x) { return x + x; }\n",
                               .constants = {{"scale", 0.5f},
                                             {"elem", DType::f32},
                                             {"flag", true},
                                             {"big", uint64_t{1} << 63},
                                             {"small", INT64_MIN},
                                             {"wide", 0.1}}};
  return text;
}

}  // namespace wick::gpu
