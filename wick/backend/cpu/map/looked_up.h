#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/backend/cpu/map/map_kernels.h"
#include "wick/base/dtype.h"

namespace wick::cpu {

/// A table of the results for all 65,536 bit patterns of a 16-bit float, if looking up `elems`
/// elements is faster than computing them; else null. The kernel computes each table once.
const uint16_t* results_to_look_up(Isa isa, Op op, DType dtype, UnaryKernel kernel, int64_t elems);

/// out[i] = table[in[i]] for dense runs of 16-bit elements.
void look_up(const uint16_t* table, int64_t n, void* out, const void* in);

}  // namespace wick::cpu
