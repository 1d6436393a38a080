#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/io/gguf.h"
#include "wick/models/batch.h"
#include "wick/nn/kv_cache.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

struct LoadOptions {
  Device device;
  /// Gives the file's pages back to the system once their weights are packed for the device.
  bool release_file_pages = true;
  /// Called with the number of layers loaded so far and of all layers.
  std::function<void(int64_t, int64_t)> progress;
};

/// A model that predicts the next token. Immutable once loaded: several threads may run it at once,
/// each with a cache of its own.
class WICK_API CausalLm {
 public:
  virtual ~CausalLm();

  /// Errors: the file is one part of a split model, or of an architecture that isn't built in (the
  /// message lists those that are).
  static void require_supported(const io::Gguf& file);
  /// Loads the model a GGUF file describes. Errors: those of require_supported(), missing or
  /// misshapen tensors, values out of range, a file that was changed meanwhile.
  static std::unique_ptr<CausalLm> load(const io::Gguf& file, const LoadOptions& options);

  virtual int64_t vocab_size() const = 0;
  /// Positions the model was trained for.
  virtual int64_t context_length() const = 0;
  virtual int64_t parameters() const = 0;
  /// A cache of `sequences` conversations of at most `context` positions each. positions: most of
  /// all of them together; 0: as many as their contexts allow. Errors: those of KvCache.
  virtual nn::KvCache make_cache(int64_t context, DType dtype, int64_t sequences = 1,
                                 int64_t positions = 0) const = 0;
  /// Runs a step's rows, stores their keys and values in the cache, which isn't advanced, and
  /// returns the logits of the wanted rows, f32 [wanted, vocabulary]. A row's result depends on its
  /// own sequence alone. Copies nothing between host and device, so that a step can be recorded,
  /// unless some rows aren't wanted. Errors: a file that weights are read from and that was changed
  /// since it was loaded.
  virtual Tensor forward(const Batch& batch, nn::KvCache& cache) const = 0;
  /// The same for the next tokens of some sequences, which the cache then has seen. Errors: those
  /// of Batch::of.
  Tensor forward(std::span<const BatchInput> inputs, nn::KvCache& cache, Logits logits) const;
  /// The same for the next tokens of a cache's first sequence.
  Tensor forward(std::span<const int32_t> tokens, nn::KvCache& cache, Logits logits) const;
  /// The device that it was loaded to.
  virtual Device device() const = 0;
};

}  // namespace wick::models
