#include "wick/models/causal_lm.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/split_file.h"
#include "wick/models/llama.h"

namespace wick::models {

CausalLm::~CausalLm() = default;

void CausalLm::require_supported(const io::Gguf& file) {
  io::require_whole(file);  // parts but the first don't name their architecture
  const std::string_view architecture = file.get_string("general.architecture");
  if (architecture == "llama") return;
  throw Error(ErrorKind::not_implemented, file.path(), "unsupported architecture",
              fmt::format("'{}'", printable(architecture, 60)),
              "this version runs llama (Llama 3, SmolLM and their like)");
}

Tensor CausalLm::forward(std::span<const BatchInput> inputs, nn::KvCache& cache,
                         Logits logits) const {
  Tensor result = forward(Batch::of(cache, inputs, logits, vocab_size(), device()), cache);
  for (const BatchInput& input : inputs) {
    cache.advance(static_cast<int64_t>(input.tokens.size()), input.sequence);
  }
  return result;
}

Tensor CausalLm::forward(std::span<const int32_t> tokens, nn::KvCache& cache, Logits logits) const {
  const BatchInput input{0, tokens};
  return forward({&input, 1}, cache, logits);
}

std::unique_ptr<CausalLm> CausalLm::load(const io::Gguf& file, const LoadOptions& options) {
  require_supported(file);
  try {
    auto model = std::make_unique<Llama>(file, options);
    file.require_unchanged("load");
    return model;
  } catch (const Error&) {
    file.require_unchanged(
        "load");  // reports the change instead of an error in the changed contents
    throw;
  }
}

}  // namespace wick::models
