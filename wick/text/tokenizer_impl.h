#pragma once

// The parts of a Tokenizer, for its readers.

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/pipeline/text_pipeline.h"
#include "wick/text/tokenizer.h"
#include "wick/text/vocab/added_tokens.h"
#include "wick/text/vocab/token_table.h"

namespace wick::text {

/// A tokenizer's vocabulary and stages. Immutable once a Tokenizer has it. Members refer to each
/// other, so it isn't moved.
struct Tokenizer::Impl {
  /// `table` has the bytes that each id stands for, and its type.
  explicit Impl(TokenTable table) : tokens(std::move(table)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool contains(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < tokens.size(); }
  bool is_special(int32_t id) const {
    return contains(id) &&
           (tokens.type(id) == TokenType::control || tokens.type(id) == TokenType::unknown);
  }
  /// Notes the model's spelling of a token, which has at least the bytes of the text that the token
  /// stands for.
  void note_spelling(std::string_view token) { longest = std::max(longest, token.size()); }
  /// Sets `kept` and `bytes_per_token` after all stages are set.
  void find_bound();
  /// Sets `ends` from eos, eot and the control tokens with well-known names.
  void find_ends();

  TokenTable tokens;
  size_t longest = 0;          // bytes of the longest spelling of a token; 0: not known
  std::bitset<256> kept;       // bytes of texts that are part of a token wherever they are
  size_t bytes_per_token = 0;  // a token stands for at most this many bytes of a text
  /// The model's spelling of the tokens, if it isn't their bytes.
  std::unique_ptr<const TokenTable> spelled;
  /// Tokens that are found in text before it is normalised: all of them, and those that aren't
  /// control tokens.
  std::optional<AddedTokens> added, added_plain;
  TextPipeline text;
  std::vector<int32_t> ends;
  std::optional<int32_t> bos, eos, eot, pad, unk;
  std::vector<int32_t> prefix, suffix;  // what add_bos and add_eos add
  bool add_bos = false, add_eos = false;
  /// What decode() does with a space at the beginning of text: keeps it, or removes it at the very
  /// beginning, or behind the control tokens at the beginning, or removes all of the first token.
  enum class FirstSpace : uint8_t { kept, removed, removed_after_control, all_of_first_token };
  FirstSpace first_space = FirstSpace::kept;
  bool drops_last_space = false;  // decode() drops a space at the end, the mark of a word's end
  bool cleans_up = false;  // decode() removes spaces before punctuation, as BERT's tokenizers do
  std::string warning;
};

/// Whether a token's name is markup, whatever its type.
bool looks_like_control(std::string_view token);

}  // namespace wick::text
