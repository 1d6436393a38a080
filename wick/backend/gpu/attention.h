#pragma once

// What tests want to choose of attention.

#include <cstdint>

namespace wick::gpu {

/// Whether attention of few queries takes keys and values through shared memory, where they fit.
enum class AttentionStaging : uint8_t { where_copies_run_alone, never, always };
extern AttentionStaging attention_staging;

}  // namespace wick::gpu
