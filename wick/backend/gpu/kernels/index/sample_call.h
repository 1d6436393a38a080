#pragma once

// What the host hands to the kernel that chooses a token, by value.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/math/fn.h"
#include "wick/math/sampling.h"

namespace wick::gpu {

/// Logits whose largest one is known, and that a thread block looks at.
inline constexpr math::u32 kSlab = 128, kSampleThreads = 512, kBlockLogits = 4 * kSampleThreads;

/// See SampleState. Rows are sequences; steps and rows count elements.
struct SampleCall {
  const float* logits;
  math::i64 row, step;
  math::u32 count;
  math::u32 by_fours;  ///< logits lie side by side at multiples of 16 bytes
  float* penalized;    ///< [sequences, count], for those whose history penalises tokens
  math::u32* largest;  ///< [sequences, slabs]
  math::u32* arrived;  ///< zeros, one a sequence
  math::u32 *tokens, *positions, *history, *counts;
  const math::u32* options;  ///< SamplerWords of each sequence
  math::i64 token_step, position_step, history_row, history_step, counts_row, counts_step;
  math::i64 options_row, options_step;
  math::u32* chosen;
  math::i64 chosen_row, chosen_step;
  math::u32 room;    ///< of the history
  math::u32 places;  ///< rows of `chosen`
  FaultLine* faults;
  math::u32 note;
};

}  // namespace wick::gpu
