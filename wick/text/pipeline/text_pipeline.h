#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "wick/text/model/model.h"
#include "wick/text/normalize/normalizer.h"
#include "wick/text/split/split.h"
#include "wick/text/vocab/added_tokens.h"

namespace wick::text {

/// What a tokenizer does with text between added tokens: normalises it, finds the tokens of
/// normalised text, splits the rest into words and encodes these. Immutable, and several threads
/// may use one pipeline at once.
struct TextPipeline {
  Normalizer normalizer;
  /// Tokens that are found in normalised text: all of them, and those that aren't control tokens.
  std::optional<AddedTokens> added, added_plain;
  std::optional<Splitter> splitter;    ///< without it, a text is one word
  std::unique_ptr<const Model> model;  ///< null: words have no tokens

  /// The scratch space of one call of Tokenizer::encode.
  class Run {
   public:
    explicit Run(const TextPipeline& pipeline);
    /// Appends the tokens of `text`, which is well-formed UTF-8. `at_beginning`: whether it is the
    /// beginning of the whole text. `parse_special`: whether control tokens are found.
    void encode(std::string_view text, bool at_beginning, bool parse_special,
                std::vector<int32_t>& out);

   private:
    void encode_words(std::string_view text, bool at_beginning, std::vector<int32_t>& out);

    const TextPipeline& pipeline_;
    std::unique_ptr<Model::Run> model_;
    std::optional<Splitter::Cursor> words_;
    std::string normalized_;
  };
};

}  // namespace wick::text
