#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "wick/base/export.h"
#include "wick/serve/engine.h"
#include "wick/tensor/tensor.h"

namespace wick::serve {

/// Texts of one step have together at most this number of tokens, or are a single text.
inline constexpr int64_t kEmbedTokens = 2048;

struct EmbedOptions {
  int64_t size = 0;       ///< keeps the first elements (Matryoshka embeddings); 0: all
  bool normalize = true;  ///< gives embeddings the Euclidean norm 1
  /// The name of a text in errors. Unset: "embed: texts[INDEX]".
  std::function<std::string(size_t index)> text_name = {};
  /// Called between texts and between steps; the work ends if it returns true.
  std::function<bool()> cancelled = {};
};

/// Computes the embeddings of texts, pooled as the model file says, step by step. `on_rows` gets
/// those of each step in the order of the texts: f32 [n, size] on the host. Each text is encoded
/// with the vocabulary's start and end tokens. An embedding doesn't depend on the other texts.
/// Errors: the size is above the model's; a text isn't UTF-8, has no tokens, or has more than the
/// model was trained for (the message names the text). All texts are checked before the first step.
/// Source of shorter embeddings: Kusupati et al., "Matryoshka Representation Learning", 2022.
WICK_API void embed_steps(const Engine& engine, std::span<const std::string> texts,
                          const EmbedOptions& options,
                          const std::function<void(const Tensor& rows)>& on_rows);

/// The embeddings of embed_steps() in one tensor, f32 [texts, size]; fewer if it was cancelled.
WICK_API Tensor embed(const Engine& engine, std::span<const std::string> texts,
                      const EmbedOptions& options = {});

}  // namespace wick::serve
