#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "wick/text/split/split.h"

namespace wick::text {

/// How a family of BPE vocabularies splits text into words before merging: the meaning of a name in
/// GGUF's `tokenizer.ggml.pre`.
struct PreTokenizer {
  std::string_view name;                  ///< smollm, gpt-2, llama-bpe …
  std::span<const char* const> patterns;  ///< each cuts the words of the one before it
  int grouped = -1;               ///< the pattern whose matches are cut into groups of three
                                  ///< characters, counted from their end; -1: none
  bool whole_word_first = false;  ///< a word that is a token isn't built by merges
  bool adds_bos = false;          ///< a bos token is added unless the file says otherwise
  /// Tokens are spelled in UTF-8, not in GPT-2's byte alphabet, and characters without a token
  /// become byte tokens.
  bool raw = false;
  bool spaces_are_marks = false;   ///< each space becomes U+2581 before the text is split
  bool marks_start_words = false;  ///< each U+2581 starts a word, and so does each line
};

/// Returns the family of a name, or nullptr if the name is unknown.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
/// Returns the family whose patterns are those of stages of a tokenizer.json, or nullptr if there
/// is none. Characters may be written as themselves or by their number.
const PreTokenizer* find_pre_tokenizer(std::span<const SplitStage> stages, bool whole_word_first);
/// The family "default", which is also used for vocabularies with an unknown name.
const PreTokenizer& default_pre_tokenizer();
/// The stages of a family.
std::vector<SplitStage> stages_of(const PreTokenizer& pre);
/// The stages of BERT's tokenizers: white space is removed and punctuation isolated.
std::vector<SplitStage> bert_stages();
/// GPT-2's pattern.
const char* gpt2_pattern();
/// All known names.
std::vector<std::string_view> pre_tokenizer_names();

}  // namespace wick::text
