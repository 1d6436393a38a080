#pragma once

// Arguments of the kernels that select slices of a tensor by ids, and of the sampling kernel.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/math/sampling.h"

namespace wick::gpu {

enum class IdType : u32 { id_u8, id_u32, id_i32, id_i64 };

/// Ids as they are passed to kernels.
struct Ids {
  const void* data = nullptr;
  IdType type = IdType::id_u32;
  u32 note = 0;  ///< identifies the launch in a fault
  FaultLine* line = nullptr;
  i64 size = 0;  ///< ids must be below it
  i64 step = 0;  ///< units of the tensor that ids index, from one slice to the next
};

/// select_BYTES. The operands of the strided index are the output, a slice of the input and the
/// ids.
struct SelectArgs {
  void* out;
  const void* in;
  StridedIndex<3> strided;
  Ids ids;
};

/// Elements of a vector of gather_BYTES, and vectors of a thread.
inline constexpr u32 kGatherVector = 4, kGatherEach = 2;

/// gather_BYTES. The operands of the strided index, which counts vectors, are the output, the input
/// without its strides along the dim, and the ids.
struct GatherArgs {
  void* out;
  const void* in;
  StridedIndex<3> strided;
  i64 in_step;  ///< elements of the input from one element of a vector to the next
  Ids ids;
};

/// Logits of a slab, whose maximum is stored; threads of a block; logits of a block.
inline constexpr u32 kSlab = 128, kSampleThreads = 512, kBlockLogits = 4 * kSampleThreads;

/// sample. See SampleState. Rows are sequences. Steps and rows count elements.
struct SampleArgs {
  const float* logits;
  i64 row, step;
  u32 count;
  u32 by_fours;      ///< logits are contiguous and aligned to 16 bytes
  float* penalized;  ///< [sequences, count], for sequences with penalties
  u32* largest;      ///< [sequences, slabs]
  u32* arrived;      ///< zeros, one for each sequence
  u32 *tokens, *positions, *history, *counts;
  const u32* options;  ///< SamplerWords of each sequence
  i64 token_step, position_step, history_row, history_step, counts_row, counts_step;
  i64 options_row, options_step;
  u32* chosen;
  i64 chosen_row, chosen_step;
  u32 room;    ///< capacity of the history
  u32 places;  ///< rows of `chosen`
  FaultLine* faults;
  u32 note;
};

}  // namespace wick::gpu
