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

/// The number of elements of an embedding. Errors: it is above the model's.
int64_t embedding_size(const Engine& engine, const EmbedOptions& options) {
  const int64_t most = engine.model().embedding_size();
  const int64_t size = options.size == 0 ? most : options.size;
  if (size < 1 || size > most) {
    throw Error("embed", "size out of range", fmt::format("{}", options.size),
                fmt::format("the model's embeddings have {} elements", most));
  }
  return size;
}

/// The tokens of each text; nothing if the work was cancelled. Errors: those of embed_steps(), with
/// the name of the text.
std::vector<std::vector<int32_t>> encode_all(const Engine& engine,
                                             std::span<const std::string> texts,
                                             const EmbedOptions& options) {
  const auto most = static_cast<size_t>(engine.model().context_length());
  std::vector<std::vector<int32_t>> all;
  all.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (options.cancelled && options.cancelled()) return {};
    const auto name = [&] {
      return options.text_name ? options.text_name(i) : fmt::format("embed: texts[{}]", i);
    };
    try {
      all.push_back(
          engine.tokenizer().encode(texts[i], {.most_tokens = static_cast<int64_t>(most)}));
    } catch (const Error& e) {
      throw Error(e.kind(), name(), e.what());
    }
    if (all[i].empty()) throw Error(name(), "no tokens");
    if (all[i].size() > most) {
      throw Error(name(), "too many tokens", fmt::format("{}", all[i].size()),
                  fmt::format("the model was trained for {}", most));
    }
  }
  return all;
}

}  // namespace

void embed_steps(const Engine& engine, std::span<const std::string> texts,
                 const EmbedOptions& options,
                 const std::function<void(const Tensor& rows)>& on_rows) {
  const int64_t size = embedding_size(engine, options);
  const std::vector<std::vector<int32_t>> sequences = encode_all(engine, texts, options);
  for (size_t at = 0; at < sequences.size();) {
    if (options.cancelled && options.cancelled()) return;
    size_t end = at + 1, tokens = sequences[at].size();
    while (end < sequences.size()) {
      tokens += sequences[end].size();
      if (tokens > static_cast<size_t>(kEmbedTokens)) break;
      ++end;
    }
    Tensor rows = engine.model().embed(std::span(sequences).subspan(at, end - at));
    rows = rows.narrow(1, 0, size);
    if (options.normalize) rows = normalized(rows);
    on_rows(rows.contiguous().to(Device::cpu()));
    at = end;
  }
}

Tensor embed(const Engine& engine, std::span<const std::string> texts,
             const EmbedOptions& options) {
  std::vector<Tensor> parts;
  embed_steps(engine, texts, options, [&](const Tensor& rows) { parts.push_back(rows); });
  if (parts.empty()) return Tensor::zeros({0, embedding_size(engine, options)}, DType::f32);
  return cat(parts, 0);
}

}  // namespace wick::serve
