#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/base/sampling/sampler.h"
#include "wick/models/causal_lm.h"
#include "wick/tensor/recording.h"

namespace wick::models {

/// Decodes sequences token by token on the device. From the second step on, a step on a GPU is one
/// launch of a captured graph; a step of a split model is one launch for each of its pieces that is
/// on a GPU. The caller gives the tokens (step), or they are sampled on the
/// device (start, next), which then runs one step ahead of the host. The cache must outlive the
/// decoder. Only one thread may call at a time.
class WICK_API Decoder {
 public:
  /// Decodes the cache's first sequence. Tokens are drawn from the first `vocabulary` logits; 0:
  /// all.
  Decoder(const CausalLm& model, nn::KvCache& cache, int64_t vocabulary = 0);
  /// Decodes several sequences. Errors: none is given; a sequence doesn't exist or is given twice.
  Decoder(const CausalLm& model, nn::KvCache& cache, std::span<const int64_t> sequences,
          int64_t vocabulary = 0);

  /// Runs one token of each sequence, with the angles of a sequence that it ends, and returns the
  /// logits, f32 [sequences, vocabulary], which the next step overwrites. Errors: those of
  /// Batch::of.
  Tensor step(std::span<const int32_t> tokens);
  Tensor step(int32_t token) { return step({&token, 1}); }

  /// Sets the scales of the model's adapters for a sequence (by its index in the constructor's
  /// list); missing ones are 1. Errors: those of scales_of.
  void set_scales(size_t index, std::span<const float> scales);

  /// Sampling parameters of a sequence.
  struct Sampling {
    std::span<const int32_t> history;  ///< tokens so far, oldest first, for the penalties
    SamplerOptions options;
    uint32_t draws = 0;  ///< random draws made before
  };
  /// Starts sampling. Draws the next token of each sequence from its logits, [sequences,
  /// vocabulary]. Errors: those of Sampler.
  void start(const Tensor& logits, std::span<const Sampling> sampling);
  /// Returns the next token of each sequence, as Sampler draws it. With `more`, it also runs these
  /// tokens, which extends each sequence by one, and draws the tokens after them; a GPU starts that
  /// work before this returns. Without `more`, sampling ends until the next start(). Errors: those
  /// of Sampler::sample; the cache is full.
  std::vector<int32_t> next(bool more);

 private:
  void run(bool draws);
  void run_step(bool draws);
  void draw(const Tensor& logits);
  void expect_tokens();
  void refresh_tables();
  void reserve();

  /// What a step reads on one device.
  struct Inputs {
    Device device;
    Tensor tokens, positions;  // u32 [b]
    Tensor tables;             // u32 [b, pages]
    Tensor slots, is_long;     // u32 [b] and bool [b, 1], or undefined: see Batch::Run
    Tensor scales;             // f32 [b, adapters]; undefined without adapters
  };
  /// A piece of the step.
  struct Piece {
    size_t inputs;                       // its device's index in inputs_
    std::vector<Tensor> moved;           // what the piece before it hands over, on this device
    CausalLm::Carried out = {};          // what it hands over
    std::unique_ptr<DeviceGraph> graph;  // captured piece, valid while cache_.moves() == moves_
  };
  Inputs& main() { return inputs_.front(); }
  void add_pieces();
  void receive(size_t piece);
  void run_piece(size_t piece, bool draws);

  const CausalLm& model_;
  nn::KvCache& cache_;
  Device device_;
  std::vector<int64_t> sequences_;
  const bool records_;  // WICK_GPU_RECORD=off disables capturing, so that traces show each kernel
  bool ahead_ = true;   // whether all devices work asynchronously to the host
  int64_t vocabulary_;

  /// On each device that the model is on, first the one of the logits, where tokens are sampled.
  std::vector<Inputs> inputs_;
  // Tensors on that device, with one row or column for each sequence.
  Tensor counts_;         // u32 [b, 3]: token counts, see SampleState
  Tensor chosen_;         // u32 [kPlaces, b]: ring of the newest tokens, one step per row
  Tensor options_;        // u32 [b, kSamplerWords]
  Tensor history_;        // u32 [b, context + 1]
  int64_t changes_ = -1;  // the cache's changes() when the tables were written

  bool step_due_ = false;  // next() runs the pending step before it returns tokens
  int64_t drawn_ = 0;      // steps drawn since start()
  std::deque<std::unique_ptr<Readback>> coming_;

  std::vector<Piece> pieces_;
  Tensor logits_;                // logits of the captured step
  bool recorded_draws_ = false;  // whether the captured step also samples
  int64_t moves_ = -1;
};

}  // namespace wick::models
