#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/io/gguf.h"
#include "wick/models/batch.h"
#include "wick/models/placement.h"
#include "wick/nn/kv_cache.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

struct LoadOptions {
  Device device;
  /// Returns the file's pages to the system once their weights are packed for the device.
  bool release_file_pages = true;
  /// Adapters (LoRA) beside the weights: paths of GGUF files, or of
  /// folders as PEFT writes them. Each row of a step has a scale for
  /// each of them.
  std::vector<std::string> adapters = {};
  /// How the model is split between `device`, further GPUs and the CPU.
  SplitOptions split = {};
  /// Called with the number of layers loaded so far and the number of all layers.
  std::function<void(int64_t, int64_t)> progress = {};
};

/// A model that predicts the next token. It is immutable after loading. Several threads may run it
/// at the same time, each with its own cache.
class WICK_API CausalLm {
 public:
  virtual ~CausalLm();

  /// Errors: the file is only one part of a split model, or has an unsupported architecture (the
  /// message lists the supported ones).
  static void require_supported(const io::ModelFile& file);
  /// Loads a model from a file that open_model() returned. Errors: those of require_supported();
  /// tensors are missing or have wrong shapes; metadata values are out of range; the file changed
  /// during loading.
  static std::unique_ptr<CausalLm> load(const io::ModelFile& file, const LoadOptions& options);

  virtual int64_t vocab_size() const = 0;
  /// The number of adapters.
  virtual int64_t adapters() const = 0;
  /// False for encoders, which make embeddings only.
  virtual bool makes_logits() const = 0;
  /// The number of elements of an embedding.
  virtual int64_t embedding_size() const = 0;
  /// The embeddings of sequences of tokens: the pooled states of the last layer, f32 [sequences,
  /// embedding_size()], not normalised. Errors: there are no sequences; a sequence has no tokens or
  /// more than context_length(); an id is outside the vocabulary; the file changed.
  virtual Tensor embed(std::span<const std::vector<int32_t>> sequences) const = 0;
  /// The number of positions that the model was trained for.
  virtual int64_t context_length() const = 0;
  virtual int64_t parameters() const = 0;
  /// Whether a layer is a mixture of experts.
  virtual bool has_experts() const { return false; }
  /// The positions that some layers attend within, see Batch::of; 0: all layers see all positions.
  virtual int64_t chunk() const { return 0; }
  /// LongRoPE: sequences of more tokens have other angles at all positions, so their caches are
  /// others from the first layer on; 0: all sequences have the same angles.
  virtual int64_t short_context() const { return 0; }
  /// What Batch::of needs.
  BatchOptions batch_options() const {
    return {vocab_size(), adapters(), chunk(), short_context()};
  }
  /// Makes a cache for `sequences` sequences of at most `context` positions each. `positions`
  /// limits their total length; 0: no limit beyond the contexts. Errors: those of KvCache.
  virtual nn::KvCache make_cache(int64_t context, DType dtype, int64_t sequences = 1,
                                 int64_t positions = 0) const = 0;
  /// Runs the rows of a step, stores their keys and values in the cache without advancing it, and
  /// returns the logits of the selected rows, f32 [selected, vocabulary]. A row's result depends on
  /// its own sequence alone. If all rows are selected, nothing is copied between host and device,
  /// so the step of a model with one piece can be captured. Errors: the model makes no logits; the
  /// file that weights are read from changed after loading.
  Tensor forward(const Batch& batch, nn::KvCache& cache) const;
  /// Runs the next tokens of several sequences and advances the cache. Errors: those of the forward
  /// above and of Batch::of. If the forward fails, sequences with recurrent states are cleared.
  Tensor forward(std::span<const BatchInput> inputs, nn::KvCache& cache, Logits logits) const;
  /// Runs the next tokens of the cache's first sequence and advances the cache.
  Tensor forward(std::span<const int32_t> tokens, nn::KvCache& cache, Logits logits) const;
  /// The device of the logits; without a split, that of all weights.
  virtual Device device() const = 0;
  /// Where the layers are, in one line: see models::summary.
  virtual const std::string& placement() const = 0;

  // A step runs in pieces: one for each change of the device along the model, a single one if the
  // model isn't split.

  /// What a piece hands over.
  struct Carried {
    std::vector<Tensor> moved;  ///< to the next piece, moved to its device
    std::vector<Tensor> kept;   ///< to the piece after the next one, which is on the same device
  };
  virtual size_t pieces() const = 0;
  virtual Device device_of(size_t piece) const = 0;
  /// Runs a piece with a batch on its device. `in` has what the piece before it moved and what the
  /// one before that kept. The last piece moves the logits alone. Nothing is copied between
  /// devices, so a piece can be captured. Errors: those of forward().
  virtual Carried run_piece(size_t piece, const Batch& batch, const nn::KvCache& cache,
                            const Carried& in) const = 0;

 protected:
  /// Calls `run` for all pieces and moves what they hand over. → the last piece's first tensor.
  Tensor run_pieces(const std::function<Carried(size_t piece, const Carried& in)>& run) const;
};

}  // namespace wick::models
