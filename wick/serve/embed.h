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
};

/// The embeddings of texts, pooled as the model file says: f32 [texts, size] on the host. Each text
/// is encoded with the vocabulary's start and end tokens. An embedding doesn't depend on the other
/// texts. Errors: a text isn't UTF-8 or has no tokens; a text has more tokens than the model was
/// trained for; the size is above the model's. Stops and returns the embeddings so far if
/// `progress` returns false. Source of shorter embeddings: Kusupati et al., "Matryoshka
/// Representation Learning", 2022.
WICK_API Tensor embed(const Engine& engine, std::span<const std::string> texts,
                      const EmbedOptions& options = {},
                      const std::function<bool(int64_t done)>& progress = {});

}  // namespace wick::serve
