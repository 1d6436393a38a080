#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"
#include "wick/text/tokenizer.h"

namespace wick::text {

/// The vocabulary of a tokenizer.json in the form that GGUF files have it in (tokenizer.ggml.*).
struct GgufVocabulary {
  std::string model;                ///< gpt2, llama or bert; empty: no form has the vocabulary
  std::string pre;                  ///< gpt2: the name of the split pattern
  std::vector<std::string> tokens;  ///< see TokenizerSpec for this and the following ones
  std::vector<int32_t> token_types;
  std::vector<std::string> merges;
  std::vector<float> scores;
  std::optional<int32_t> bos, eos, unk;  ///< bos, eos: what is added to each text
  bool add_bos = false, add_eos = false;
  bool add_space_prefix = false;
  bool lower = true, strip_accents = true;
  /// Why ids may differ from those of the tokenizer.json, or why no form has the vocabulary. Empty:
  /// they don't differ.
  std::string difference;

  /// The description of a Tokenizer. Its views are those of this object's texts.
  TokenizerSpec spec() const;
};

/// Makes the vocabulary of `size` ids, or of as many as there are tokens if these are more; ids
/// without a token get an unused one. Added tokens from `size` on are left out; 0: none is. The
/// parts of the tokenizer.json must be those that a form stands for; besides, the ids of the
/// tokens' own texts and of texts in several scripts must be equal. Differences that llama.cpp's
/// converter accepts, too, are named: NFC, flags of added tokens, and merges that no order of
/// scores expresses. Errors: those of Tokenizer::from_json.
WICK_API GgufVocabulary gguf_vocabulary(std::string_view json, size_t size);

}  // namespace wick::text
