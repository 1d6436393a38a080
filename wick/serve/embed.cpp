#include "wick/serve/embed.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::serve {
namespace {

/// x [n, d] with rows of norm 1; a row of zeros stays.
Tensor normalized(const Tensor& x) {
  constexpr int kLast[] = {-1};
  const Tensor norms = sqrt(sum(sqr(x), kLast, true));
  return x / maximum(norms, Tensor::full({1, 1}, 1e-12, DType::f32, x.device()));
}

}  // namespace

Tensor embed(const Engine& engine, std::span<const std::string> texts, const EmbedOptions& options,
             const std::function<bool(int64_t done)>& progress) {
  const models::CausalLm& model = engine.model();
  const int64_t size = options.size == 0 ? model.embedding_size() : options.size;
  if (size < 1 || size > model.embedding_size()) {
    throw Error("embed", "size out of range", fmt::format("{}", options.size),
                fmt::format("the model's embeddings have {} elements", model.embedding_size()));
  }
  if (texts.empty()) return Tensor::zeros({0, size}, DType::f32);
  std::vector<Tensor> parts;
  for (size_t at = 0; at < texts.size();) {
    std::vector<std::vector<int32_t>> sequences;
    size_t tokens = 0;
    while (at < texts.size()) {
      std::vector<int32_t> next = engine.tokenizer().encode(texts[at]);
      if (!sequences.empty() && tokens + next.size() > static_cast<size_t>(kEmbedTokens)) break;
      tokens += next.size();
      sequences.push_back(std::move(next));
      ++at;
    }
    Tensor rows = model.embed(sequences).narrow(1, 0, size);
    if (options.normalize) rows = normalized(rows);
    parts.push_back(rows.contiguous().to(Device::cpu()));
    if (progress && !progress(static_cast<int64_t>(at))) break;
  }
  return cat(parts, 0);
}

}  // namespace wick::serve
