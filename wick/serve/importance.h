#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "wick/base/export.h"
#include "wick/io/importance.h"
#include "wick/models/causal_lm.h"

namespace wick::serve {

struct ImportanceOptions {
  int64_t chunk_size = 512;  ///< tokens in a chunk
  int64_t first_chunk = 0;   ///< the chunks before it are left out
  int64_t chunks = 0;        ///< the largest number of chunks; 0: all
  int32_t first_token = -1;  ///< replaces the first token of each chunk; -1: none
};

/// The number of chunks that importance() runs for a text of `tokens` tokens. A rest that is
/// shorter than a chunk is left out, unless the text is. Errors: see importance().
WICK_API int64_t importance_chunks(int64_t tokens, const ImportanceOptions& options);

/// The sums of squares of the inputs of the weights in a model's layers, over a text in chunks of
/// chunk_size tokens, each of which is run alone. Sums are added in f64 in the order of the tokens.
/// Weights of experts have a count for each expert. Calls `progress` with the number of chunks
/// done; stops if it returns false. Errors: the text has no tokens, or none after the first chunks;
/// first_token replaces the only token of a chunk; an option is out of range; an input isn't finite
/// (the message names the weight); those of CausalLm::embed().
WICK_API io::Importance importance(const models::CausalLm& model, std::span<const int32_t> tokens,
                                   const ImportanceOptions& options,
                                   const std::function<bool(int64_t done)>& progress = {});

}  // namespace wick::serve
