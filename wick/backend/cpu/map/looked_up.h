#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/backend/cpu/map/map_kernels.h"
#include "wick/base/dtype.h"

namespace wick::cpu {

/// The results of all 65,536 numbers of a 16-bit float, for `elems` elements of a function that
/// costs more than finding them; null for others. A table is made once, by the kernel itself.
const uint16_t* results_to_look_up(Isa isa, Op op, DType dtype, UnaryKernel kernel, int64_t elems);

/// out[i] = table[in[i]] for dense runs of 16-bit elements.
void look_up(const uint16_t* table, int64_t n, void* out, const void* in);

}  // namespace wick::cpu
