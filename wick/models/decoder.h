#pragma once

#include <cstdint>
#include <memory>

#include "wick/base/export.h"
#include "wick/models/causal_lm.h"
#include "wick/tensor/recording.h"

namespace wick::models {

/// Runs a model one token at a time on a device that gains from recording the step: after the first
/// token its kernels are launched as one. Belongs to one cache, which outlives it.
class WICK_API Decoder {
 public:
  Decoder(const CausalLm& model, nn::KvCache& cache, Device device);

  /// The logits after a token at position cache.length(): f32 [1, vocabulary], overwritten by the
  /// next step. Errors: those of CausalLm::forward.
  Tensor step(int32_t token);

 private:
  const CausalLm& model_;
  nn::KvCache& cache_;
  Device device_;
  Tensor input_;                          // u32 [2]: the token and its position
  Tensor logits_;                         // of the recording
  std::unique_ptr<Recording> recording_;  // for the cache's capacity at the time
  int64_t capacity_ = 0;
};

}  // namespace wick::models
