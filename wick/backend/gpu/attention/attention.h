#pragma once

// Attention in front of products, and what tests want to choose of it.

#include <cstdint>

#include "wick/backend/gpu/linear/quantize_activations.h"

namespace wick::gpu {

/// cached_attention of few rows of k values whose result goes into blocks; false, and nothing done,
/// where no kernel does that.
bool attention_to_blocks(Gpu& gpu, const ConstView& qkv, const CachedAttention& where, int64_t k,
                         const RowBlocks& to);

/// Whether results have to have the CPU's bits where the contract lets them be free: attention of
/// many queries then takes the ordered form, too. Errors: WICK_REPRODUCIBLE is neither 0 nor 1.
bool ordered_attention();

/// Whether attention of few queries takes keys and values through shared memory, where they fit;
/// as a stream, where shapes allow it, however few chunks there are.
enum class AttentionStaging : uint8_t { where_copies_run_alone, never, always, stream };
extern AttentionStaging attention_staging;

}  // namespace wick::gpu
