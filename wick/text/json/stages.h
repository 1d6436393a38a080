#pragma once

#include <string>
#include <vector>

#include "wick/text/json/json_node.h"
#include "wick/text/normalize/normalizer.h"
#include "wick/text/split/split.h"

namespace wick::text {

/// Adds the steps of `normalizer`. Errors: a step isn't supported or malformed.
void read_normalizer(const JsonNode& node, Normalizer& normalizer);

/// What pre-tokenizers say besides their stages.
struct PreTokenizerStages {
  std::vector<SplitStage> stages;
  bool byte_level = false;  ///< words are spelled in GPT-2's byte alphabet
};
/// Adds the stages of `pre_tokenizer`. Errors: a stage isn't supported or malformed.
void read_pre_tokenizer(const JsonNode& node, PreTokenizerStages& out);

/// What decoders make of a token, without regard to its neighbours, and what they do at the
/// beginning of a text.
struct DecoderRules {
  bool byte_level = false;     ///< tokens are spelled in GPT-2's byte alphabet
  bool byte_fallback = false;  ///< <0x41> is a byte
  struct Replacement {
    std::string from, to;
  };
  std::vector<Replacement> replacements;
  bool word_piece = false;  ///< a space before tokens that don't begin with `continuation`
  std::string continuation = {};
  std::string end_suffix = {};  ///< a suffix that becomes a space, but at the end nothing
  bool removes_space = false;   ///< a space at the beginning of the text is removed
  bool strips_first = false;    ///< all spaces of the first token are removed
  bool cleans_up = false;       ///< spaces before punctuation are removed
};
/// Adds the rules of `decoder`. Errors: a rule isn't supported or malformed.
void read_decoder(const JsonNode& node, DecoderRules& rules);
/// The bytes that a token stands for.
std::string decoded(std::string token, const DecoderRules& rules);

/// Replaces every match of a pattern.
class Replacer {
 public:
  /// `pattern` is {"String": …} or {"Regex": …}.
  Replacer(const JsonNode& pattern, std::string content);
  void operator()(std::string& text) const;

 private:
  std::shared_ptr<const Regex> regex_;
  std::string content_;
};

}  // namespace wick::text
