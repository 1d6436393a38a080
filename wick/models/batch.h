#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/nn/kv_cache.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// Selects the logits that a step returns: those of each sequence's last token, or of all tokens.
enum class Logits : uint8_t { last, all };

/// The next tokens of one of a cache's sequences.
struct BatchInput {
  int64_t sequence = 0;
  std::span<const int32_t> tokens;
  std::span<const float> scales = {};  ///< of the model's adapters; missing ones are 1
  /// The sequence's length after the last part of a prompt that is run in parts, which decides on
  /// the angles of LongRoPE. A smaller number than the length after these tokens means the latter.
  int64_t end = 0;
};

/// What a model's steps need to know besides tokens, see CausalLm.
struct BatchOptions {
  int64_t vocabulary = 0, adapters = 0, chunk = 0, short_context = 0;
};

/// A sequence's scales of `adapters` adapters; missing ones are 1. Errors: there are more; one
/// isn't finite.
std::vector<float> scales_of(std::span<const float> given, int64_t adapters);

/// One step of a model. Each row is the next token of a sequence. The step reads all its inputs
/// from the device, so a captured step can be replayed with other tokens, positions and pages.
struct WICK_API Batch {
  /// Consecutive rows of sequences that have equally many rows each.
  struct Run {
    Tensor positions;   ///< u32 [t]: position of each row in its sequence
    Tensor tables;      ///< u32 [sequences, pages]: page tables, see KvCache::tables
    Tensor slots = {};  ///< u32 [sequences]: see KvCache::slots; undefined without recurrent states
    /// bool [t, 1]: rows with LongRoPE's angles of long sequences, whatever their positions.
    /// Others have the angles of a sequence that they end. Undefined if the model has one kind.
    Tensor is_long = {};
  };
  Tensor tokens;  ///< u32 [t]
  std::vector<Run> runs;
  Tensor scales;  ///< f32 [t, adapters]; undefined if the model has no adapters
  Tensor wanted;  ///< u32: rows whose logits are returned, ascending; undefined: all rows

  /// The batch with all tensors on a device.
  Batch to(Device device) const;
  int64_t rows() const { return tokens.size(0); }

  /// Makes a step from tokens that follow the cached positions of their sequences, and reserves
  /// cache pages for them. No run has rows of a sequence on both sides of a multiple of `chunk`
  /// positions, unless it is 0. Errors: there are no sequences; a sequence has no tokens or is
  /// given twice; an id is outside the vocabulary; the cache is full.
  static Batch of(nn::KvCache& cache, std::span<const BatchInput> inputs, Logits logits,
                  const BatchOptions& options, Device device);
};

/// A batch on each device that it is asked for.
class WICK_API BatchOnDevices {
 public:
  explicit BatchOnDevices(const Batch& batch) : copies_{batch} {}
  const Batch& on(Device device);

 private:
  std::deque<Batch> copies_;  // the first is the given one
};

}  // namespace wick::models
