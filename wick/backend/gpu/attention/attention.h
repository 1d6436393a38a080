#pragma once

// Attention that quantises its result for a gemm, and switches for tests.

#include <cstdint>

#include "wick/backend/gpu/linear/quantize_activations.h"

namespace wick::gpu {

/// cached_attention of few rows of k values, whose result is quantised to blocks. Returns false,
/// and does nothing, if no kernel takes the call.
bool attention_to_blocks(Gpu& gpu, const ConstView& qkv, const CachedAttention& where, int64_t k,
                         const RowBlocks& to);

/// Whether results must have the CPU's bits even where the contract allows an error bound:
/// attention of many queries then takes the ordered form too. Errors: WICK_REPRODUCIBLE is neither
/// 0 nor 1.
bool ordered_attention();

/// Whether attention of few queries stages keys and values in shared memory if they fit. `stream`
/// streams them wherever shapes allow it, even with few chunks.
enum class AttentionStaging : uint8_t { where_copies_run_alone, never, always, stream };
extern AttentionStaging attention_staging;
/// Whether attention of few queries copies to shared memory: where copies run beside computations,
/// or where a test asks for it.
bool stages_attention(const Gpu& gpu);

}  // namespace wick::gpu
