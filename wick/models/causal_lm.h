#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/io/gguf.h"
#include "wick/nn/kv_cache.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// Which of the given tokens' logits are returned.
enum class Logits : uint8_t { last, all };

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
  virtual nn::KvCache make_cache(int64_t context, DType dtype) const = 0;
  /// Runs tokens at the positions after cache.length() and stores their keys and values.
  /// Returns f32 [1 or tokens, vocabulary]. Errors: no tokens, an id outside the vocabulary, a full
  /// cache, a file that weights are read from and that was changed since it was loaded.
  virtual Tensor forward(std::span<const int32_t> tokens, nn::KvCache& cache,
                         Logits logits) const = 0;
  /// forward() for one token. The token and its position, u32 [1], are read from the device's
  /// memory, so that the step can be recorded. The cache must have room for the position and isn't
  /// advanced. Returns f32 [1, vocabulary].
  virtual Tensor decode(const Tensor& token, const Tensor& position, nn::KvCache& cache) const = 0;
  /// The device that it was loaded to.
  virtual Device device() const = 0;
};

}  // namespace wick::models
