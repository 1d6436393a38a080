#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "wick/base/export.h"
#include "wick/base/sampler.h"
#include "wick/models/causal_lm.h"
#include "wick/tensor/recording.h"

namespace wick::models {

/// Runs a model one token at a time on its device: after the first token a step's kernels are
/// launched as one recording. Tokens are given by the caller (step), or sampled on the device
/// (start, next), which then is a step ahead of the host. The cache must outlive it. Calls may come
/// from one thread at a time.
class WICK_API Decoder {
 public:
  /// Tokens are drawn from the first `vocabulary` logits; 0: all.
  Decoder(const CausalLm& model, nn::KvCache& cache, int64_t vocabulary = 0);

  /// The logits after a token at position cache.length(): f32 [1, vocabulary], overwritten by the
  /// next step. Errors: those of CausalLm::forward.
  Tensor step(int32_t token);

  /// Starts sampling: draws the token after the cache's last one, from its logits [1, vocabulary].
  /// history: the tokens so far, oldest first, for the penalties. Errors: those of Sampler.
  void start(const Tensor& logits, std::span<const int32_t> history, const SamplerOptions& options);
  /// The next token, as Sampler draws it. With `more`, the device already runs that token, which
  /// lengthens the cache by one, and draws the one after it. Without, sampling ends until the next
  /// start(). Errors: those of Sampler::sample, a full cache.
  int32_t next(bool more);

 private:
  void run(const std::optional<SamplerOptions>& sampler);
  void draw(const Tensor& logits, const SamplerOptions& options) const;
  void expect_token();

  const CausalLm& model_;
  nn::KvCache& cache_;
  Device device_;
  const bool records_;  // false with WICK_GPU_RECORD=off, so that traces show each kernel
  int64_t vocabulary_;
  Tensor state_;    // u32 [4]: the token, its position, tokens in the history, draws
  Tensor history_;  // u32 [context + 1]
  std::optional<SamplerOptions> options_;  // of sampling since start()
  int64_t drawn_ = 0;                      // the history's length
  std::deque<std::unique_ptr<Readback>> coming_;

  Tensor logits_;                           // of the recording
  std::unique_ptr<Recording> recording_;    // for the cache's capacity at the time
  std::optional<SamplerOptions> recorded_;  // the sampling options in it
  int64_t capacity_ = 0;
};

}  // namespace wick::models
