#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "wick/text/vocab/specials.h"
#include "wick/text/vocab/token_table.h"

namespace wick::text {

/// How an added token is found in text, with the names of tokenizer.json.
struct AddedFlags {
  bool single_word = false;  ///< only between characters that aren't part of words
  bool lstrip = false;       ///< it takes the white space before it
  bool rstrip = false;       ///< it takes the white space after it
};

/// Tokens that are found verbatim in text before it is split into words.
class AddedTokens {
 public:
  /// `names` is a table with the tokens' texts, and `ids` are tokens of it. `flags` is empty or has
  /// flags for each token of the table, and `results` is empty or has the id that each stands for.
  AddedTokens(const TokenTable& names, std::vector<int32_t> ids, std::vector<AddedFlags> flags = {},
              std::vector<int32_t> results = {});
  /// As above, and owns the table.
  AddedTokens(std::shared_ptr<const TokenTable> names, std::vector<int32_t> ids,
              std::vector<AddedFlags> flags, std::vector<int32_t> results);

  /// One pass over a text.
  class Cursor {
   public:
    Cursor(const AddedTokens& tokens, std::string_view text);
    struct Part {
      std::string_view text;  ///< without a token; may be empty
      int32_t id;             ///< the token after it; TokenTable::kNone at the end of the text
    };
    /// Returns the text up to the next token, and the token. After the last part has been returned,
    /// call it no more.
    Part next();

   private:
    const AddedTokens& tokens_;
    SpecialMatcher::Cursor matches_;
    std::string_view text_;
    size_t pos_ = 0;   // end of the parts so far
    size_t from_ = 0;  // where the search goes on
  };

  bool empty() const { return empty_; }
  /// The token whose name is `text`.
  std::optional<int32_t> exact(std::string_view text) const;

 private:
  std::shared_ptr<const TokenTable> owned_;
  std::unique_ptr<const SpecialMatcher> matcher_;
  std::vector<AddedFlags> flags_;
  std::vector<int32_t> results_;
  bool empty_;
};

}  // namespace wick::text
