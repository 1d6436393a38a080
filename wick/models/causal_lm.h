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

/// Of which of the given tokens the logits are wanted.
enum class Logits : uint8_t { last, all };

/// How a model is loaded.
struct LoadOptions {
  Device device;
  /// Packs weights for the device and gives the file's pages back as it goes.
  bool release_file_pages = true;
  /// Called with layers loaded and layers in all.
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
  /// misshapen tensors, values out of range, a file that was
  /// changed meanwhile.
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
  /// The same for one token, with what changes from step to step in the device's memory, so that
  /// the step can be recorded: token and position u32 [1]; the cache has room for the position and
  /// isn't advanced. Returns f32 [1, vocabulary].
  virtual Tensor decode(const Tensor& token, const Tensor& position, nn::KvCache& cache) const = 0;
  /// Where it was loaded.
  virtual Device device() const = 0;
};

}  // namespace wick::models
