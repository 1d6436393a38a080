#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/nn/kv_cache.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// Which of the given tokens' logits are returned: of each sequence's last one, or of all.
enum class Logits : uint8_t { last, all };

/// The next tokens of a sequence of a cache.
struct BatchInput {
  int64_t sequence = 0;
  std::span<const int32_t> tokens;
};

/// One step of a model: rows, each the next token of one of some sequences. What a step reads lies
/// on the device, so that a recorded step can be replayed with other tokens, positions and pages.
struct WICK_API Batch {
  /// Neighbouring rows that belong to sequences of equally many rows each.
  struct Run {
    Tensor positions;  ///< u32 [t], of the rows in their sequences
    Tensor tables;     ///< u32 [sequences, pages], see KvCache::tables
  };
  Tensor tokens;  ///< u32 [t]
  std::vector<Run> runs;
  Tensor wanted;  ///< u32: rows whose logits are wanted, ascending; undefined: all of them

  int64_t rows() const { return tokens.size(0); }

  /// A step of the given tokens, whose positions are those after their sequences' lengths; makes
  /// room for them in the cache. Errors: no sequences or no tokens of one, a sequence that is there
  /// twice, an id outside the vocabulary, a full cache.
  static Batch of(nn::KvCache& cache, std::span<const BatchInput> inputs, Logits logits,
                  int64_t vocabulary, Device device);
};

}  // namespace wick::models
