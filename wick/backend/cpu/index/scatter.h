#pragma once

#include <cstdint>

#include "wick/backend/cpu/index/ids.h"
#include "wick/backend/cpu/isa.h"

namespace wick::cpu {

/// Places [first, first + count) of a dim: a thread's share of what is written, at whose first
/// place a strip's `chosen` then starts. Ids outside belong to others, or are padding.
struct Share {
  uint64_t first, count;
};

/// A strip of scatter_add for f16, bf16 and f8e4m3: sums in f32 from the output's elements on, each
/// rounded once at the end.
void add_narrow(const Strip& s, bool along, DType dtype, DType id_type, Share share, Isa isa);

}  // namespace wick::cpu
