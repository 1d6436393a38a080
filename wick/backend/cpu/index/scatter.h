#pragma once

#include <cstdint>

#include "wick/backend/cpu/index/ids.h"
#include "wick/backend/cpu/isa.h"

namespace wick::cpu {

/// Indices [first, first + count) of a dim: a thread's share of the output. A strip's `chosen` then
/// starts at `first`. Ids outside belong to other threads, or are padding.
struct Share {
  uint64_t first, count;
};

/// scatter_add of a strip of f16, bf16 or f8e4m3: sums in f32 that start from the output's elements
/// and are rounded once at the end.
void add_narrow(const Strip& s, bool along, DType dtype, DType id_type, Share share, Isa isa);

}  // namespace wick::cpu
