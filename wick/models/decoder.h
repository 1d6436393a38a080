#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/base/sampler.h"
#include "wick/models/causal_lm.h"
#include "wick/tensor/recording.h"

namespace wick::models {

/// Runs a model one token of each of some sequences at a time, on its device: after the first step
/// a step's kernels are launched as one recording. Tokens are given by the caller (step), or
/// sampled on the device (start, next), which then is a step ahead of the host. The cache must
/// outlive it. Calls may come from one thread at a time.
class WICK_API Decoder {
 public:
  /// Of the cache's first sequence. Tokens are drawn from the first `vocabulary` logits; 0: all.
  Decoder(const CausalLm& model, nn::KvCache& cache, int64_t vocabulary = 0);
  /// Of several. Errors: none, one that the cache doesn't have, one twice.
  Decoder(const CausalLm& model, nn::KvCache& cache, std::span<const int64_t> sequences,
          int64_t vocabulary = 0);

  /// The logits after a token of each sequence at its length: f32 [sequences, vocabulary],
  /// overwritten by the next step. Errors: those of Batch::of.
  Tensor step(std::span<const int32_t> tokens);
  Tensor step(int32_t token) { return step({&token, 1}); }

  /// What a sequence is sampled with.
  struct Sampling {
    std::span<const int32_t> history;  ///< the tokens so far, oldest first, for the penalties
    SamplerOptions options;
  };
  /// Starts sampling: draws the token after each sequence's last one, from its logits [sequences,
  /// vocabulary]. Errors: those of Sampler.
  void start(const Tensor& logits, std::span<const Sampling> sampling);
  /// The next token of each sequence, as Sampler draws it. With `more`, these tokens are run, too,
  /// on a GPU before this returns, which lengthens the sequences by one, and the ones after them
  /// drawn. Without, sampling ends until the next start(). Errors: those of Sampler::sample, a full
  /// cache.
  std::vector<int32_t> next(bool more);

 private:
  void run(bool draws);
  void draw(const Tensor& logits);
  void expect_tokens();
  void refresh_tables();
  void reserve();

  const CausalLm& model_;
  nn::KvCache& cache_;
  Device device_;
  std::vector<int64_t> sequences_;
  const bool records_;  // false with WICK_GPU_RECORD=off, so that traces show each kernel
  const bool ahead_;    // whether the device works while the host does
  int64_t vocabulary_;

  // On the device; a row, or a column, a sequence.
  Tensor tokens_, positions_;  // u32 [b]
  Tensor counts_;              // u32 [b, 3]: of tokens, see SampleState
  Tensor chosen_;              // u32 [kPlaces, b]: the newest tokens, row by row
  Tensor options_;             // u32 [b, kSamplerWords]
  Tensor history_;             // u32 [b, context + 1]
  Tensor tables_;              // u32 [b, pages]
  int64_t changes_ = -1;       // of the cache when the tables were written

  bool step_due_ = false;  // the next step is run when its tokens are asked for
  int64_t drawn_ = 0;      // rows of tokens since start()
  std::deque<std::unique_ptr<Readback>> coming_;

  Tensor logits_;                         // of the recording
  std::unique_ptr<DeviceGraph> recording_;  // of the cache as it lay at the time
  bool recorded_draws_ = false;           // whether it samples, too
  int64_t moves_ = -1;
};

}  // namespace wick::models
