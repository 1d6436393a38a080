#include "wick/models/causal_lm.h"

#include "wick/base/error.h"
#include "wick/models/decoder_lm.h"
#include "wick/models/registry.h"

namespace wick::models {

CausalLm::~CausalLm() = default;

void CausalLm::require_supported(const io::ModelFile& file) { find_architecture(file); }

Tensor CausalLm::forward(std::span<const BatchInput> inputs, nn::KvCache& cache,
                         Logits logits) const {
  const Batch batch = Batch::of(cache, inputs, logits, vocab_size(), device(), adapters(), chunk());
  Tensor result;
  try {
    result = forward(batch, cache);
  } catch (...) {
    // Some layers may have advanced their recurrent states.
    if (cache.has_states()) {
      for (const BatchInput& input : inputs) cache.truncate(0, input.sequence);
    }
    throw;
  }
  for (const BatchInput& input : inputs) {
    cache.advance(static_cast<int64_t>(input.tokens.size()), input.sequence);
  }
  return result;
}

Tensor CausalLm::forward(std::span<const int32_t> tokens, nn::KvCache& cache, Logits logits) const {
  const BatchInput input{0, tokens};
  return forward({&input, 1}, cache, logits);
}

std::unique_ptr<CausalLm> CausalLm::load(const io::ModelFile& file, const LoadOptions& options) {
  const Architecture& architecture = find_architecture(file);
  try {
    auto model = std::make_unique<DecoderLm>(file, architecture, options);
    file.require_unchanged("load");
    return model;
  } catch (const Error&) {
    file.require_unchanged(
        "load");  // reports the change instead of an error in the changed contents
    throw;
  }
}

}  // namespace wick::models
