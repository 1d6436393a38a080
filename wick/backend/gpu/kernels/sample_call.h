#pragma once

// What the host hands to the kernel that chooses a token, by value.

#include "wick/backend/gpu/kernels/fault.h"
#include "wick/math/fn.h"

namespace wick::gpu {

/// Logits whose largest one is known, and that a group looks at.
inline constexpr math::u32 kSlab = 128, kSampleItems = 512, kGroupLogits = 4 * kSampleItems;

/// See SampleState and SamplerOptions. Steps count elements.
struct SampleCall {
  const float* logits;
  math::i64 step;
  math::u32 count;
  math::u32 by_fours;  ///< logits lie side by side at multiples of 16 bytes
  float* penalized;    ///< [count], where tokens of the history are penalised; else null
  math::u32* largest;  ///< [slabs]
  math::u32* arrived;  ///< a zero
  math::u32 *token, *position, *history, *counts;
  math::i64 history_step, counts_step;
  math::u32 room;    ///< of the history
  math::u32 window;  ///< tokens of the history that count
  float repetition, presence, frequency;
  float temperature, top_p, min_p;
  math::u32 top_k;
  math::u64 seed;
  FaultLine* faults;
  math::u32 note;
};

}  // namespace wick::gpu
