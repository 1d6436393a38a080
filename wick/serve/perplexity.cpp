#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "wick/base/error.h"
#include "wick/serve/engine.h"
#include "wick/tensor/ops.h"

namespace wick::serve {

Perplexity perplexity(const Engine& engine, std::span<const int32_t> tokens,
                      const SessionOptions& options, const std::function<bool(int64_t)>& progress) {
  const int64_t context = options.context > 0 ? options.context : engine.model().context_length();
  const auto total = static_cast<int64_t>(tokens.size());
  if (total < 2 || context < 2 || options.batch < 1) {
    throw Error("perplexity", "nothing to score",
                fmt::format("{} tokens, context {}, batch {}", total, context, options.batch),
                "need at least 2 tokens and a context of 2");
  }
  for (const int32_t id : tokens) {
    if (id < 0 || id >= engine.model().vocab_size()) {
      throw Error(ErrorKind::index, "perplexity", "token id out of range", fmt::format("{}", id),
                  fmt::format("the vocabulary has {}", engine.model().vocab_size()));
    }
  }
  // Limits the logits of a forward pass, f32 [rows, vocabulary], to about 50 MB.
  const int64_t rows =
      std::clamp<int64_t>((int64_t{12} << 20) / engine.model().vocab_size(), 1, options.batch);
  const text::Tokenizer& tokenizer = engine.tokenizer();
  const std::optional<int32_t> bos = tokenizer.first_added();
  Perplexity result;
  result.tokens = total;
  nn::KvCache cache = engine.model().make_cache(std::min(context, total), options.cache_dtype);
  for (int64_t start = 0; start < total; start += context) {
    const int64_t end = std::min(total, start + context);
    cache.truncate(0);
    // The last token of a chunk isn't run, because the token after it isn't scored.
    for (int64_t at = start; at + 1 < end; at += rows) {
      const int64_t count = std::min(rows, end - 1 - at);
      const auto given = tokens.subspan(static_cast<size_t>(at), static_cast<size_t>(count));
      std::vector<int32_t> part(given.begin(), given.end());
      if (at == start && start > 0 && bos) part.front() = *bos;
      const models::BatchInput input{0, part, options.adapter_scales, end - 1 - start};
      const Tensor logits = engine.model().forward({&input, 1}, cache, models::Logits::all);
      const std::vector<float> log_probs = log_softmax(logits, -1).to_vector<float>();
      const int64_t vocabulary = logits.size(1);
      for (int64_t i = 0; i < count; ++i) {
        const int32_t next = tokens[static_cast<size_t>(at + i + 1)];
        const float log_prob = log_probs[static_cast<size_t>(i * vocabulary + next)];
        if (!std::isfinite(log_prob)) {
          throw Error(ErrorKind::runtime, "perplexity", "score isn't finite",
                      fmt::format("token {}", at + i + 1), "need finite logits from the model");
        }
        result.nll.push_back(-static_cast<double>(log_prob));
      }
      if (progress && !progress(at + count)) return result;
    }
  }
  double sum = 0;
  for (double nll : result.nll) sum += nll;
  result.mean_nll = sum / static_cast<double>(result.nll.size());
  return result;
}

}  // namespace wick::serve
