#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/base/export.h"
#include "wick/text/marked/marked_string.h"

namespace wick::text {

/// A vocabulary as a model file describes it. The views are only used while a Tokenizer is
/// constructed; they may point into a mapped file.
struct TokenizerSpec {
  /// The algorithm: "gpt2" (BPE, byte-level unless `pre` says otherwise), "gemma4" (BPE from
  /// characters), "llama" (SentencePiece's BPE), "t5" (SentencePiece's unigrams), "bert"
  /// (WordPiece), or "none" (no vocabulary: text can't be encoded).
  std::string model;
  std::string pre;                       ///< gpt2: how text is split: smollm, gpt-2, llama-bpe …
  std::vector<std::string_view> tokens;  ///< [vocabulary]; gpt2: normal tokens in the byte
                                         ///< alphabet; others: U+2581 for a space
  std::vector<int32_t> token_types;      ///< [vocabulary] or empty (all normal); 1 normal,
                                         ///< 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::string_view> merges;  ///< gpt2, gemma4: lines "left right", best first
  std::vector<float> scores;             ///< llama, t5: [vocabulary]; higher scores merge first, or
                                         ///< are log probabilities
  std::string charsmap;                  ///< t5: SentencePiece's precompiled map, or empty
  std::optional<int32_t> bos, eos, eot, pad;
  std::optional<int32_t> unk;  ///< stands for characters without a token, except in byte-level BPE
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;     ///< llama, t5: insert a space before text, also after special
                                     ///< tokens
  bool remove_extra_spaces = false;  ///< t5: remove spaces at the ends and all but one of each run
  bool lower = true;                 ///< bert: text becomes lower case
  bool strip_accents = true;         ///< bert: accents are dropped
  std::string warning;               ///< what the caller adds to Tokenizer::warning(), one line
};

/// Whether vocabularies of this algorithm and split pattern begin with a bos token if their file
/// doesn't say.
WICK_API bool adds_bos_by_default(std::string_view model, std::string_view pre);

/// Options of Tokenizer::encode.
struct EncodeOptions {
  std::optional<bool> add_bos = std::nullopt;  ///< unset: the vocabulary's default
  std::optional<bool> add_eos = std::nullopt;  ///< unset: the vocabulary's default
  bool parse_special = true;                   ///< false: control tokens become plain text
  /// Ill-formed UTF-8 becomes U+FFFD, one for each maximal subpart (Unicode 3.9), instead of an
  /// error.
  bool replace_invalid = false;
  /// Ascending ranges of the text in which control tokens become plain text, also those that begin
  /// or end outside of a range.
  std::span<const TextRange> content = {};
  /// Texts of at least a million bytes that certainly have more tokens are errors before they are
  /// encoded.
  std::optional<int64_t> most_tokens = std::nullopt;
};

/// What other files of a model say of the tokens of its tokenizer.json.
struct JsonTokens {
  /// Special tokens. Without one, or with an id that isn't a token's, bos and eos are what the
  /// post-processor puts first and last.
  std::optional<int32_t> bos = {}, eos = {}, pad = {}, unk = {};
  /// Added tokens from this id on are left out, because the embedding has no row for them; 0: none.
  int64_t rows = 0;
};

/// Converts text to token ids and back.
///
/// A tokenizer is a cheap handle: copies share one immutable vocabulary, and several threads may
/// call all methods at once.
class WICK_API Tokenizer {
 public:
  /// An unknown split pattern is replaced by the pattern "default" (see warning()). Errors: the
  /// model is unknown; there are no tokens; the list of types or scores has another length; a type
  /// is unknown; a special id is outside the vocabulary; a token isn't UTF-8; a merge is malformed;
  /// a score is NaN; the map of characters is malformed.
  explicit Tokenizer(const TokenizerSpec& spec);

  /// Reads a tokenizer.json of Hugging Face's tokenizers. Errors: the text isn't JSON or lacks a
  /// part; a part isn't supported (its name is in the message); an id or a name contradicts
  /// another.
  static Tokenizer from_json(std::string_view json, const JsonTokens& tokens = {});
  /// Reads a tokenizer.json from a file of at most 1 GiB. Errors: the file can't be read; those of
  /// from_json().
  static Tokenizer from_file(const std::string& path);

  /// Encodes `text`. Special tokens are extracted first, the longest at each position: user-defined
  /// tokens always, control tokens only with `parse_special`. What has neither a token nor byte
  /// tokens becomes the unknown token; without one, or with byte-level BPE, it is dropped, as in
  /// the models' reference tokenizers. Errors: ill-formed UTF-8, with its byte offset; text of
  /// 2 GiB or more, or certainly of more than most_tokens; the file has no vocabulary; a split
  /// pattern exceeds PCRE2's limits.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// The errors of encode() about a text's length and UTF-8.
  void check_text(std::string_view text, const EncodeOptions& options = {}) const;

  /// A lower bound of the number of a text's tokens, by its length and the longest token. It is
  /// found in a fraction of the time of encode(). 0 if the vocabulary has none.
  int64_t least_tokens(std::string_view text) const;

  /// Concatenates the bytes of `ids`. A cut between two tokens may split a UTF-8 character (see
  /// StreamDecoder). `skip_special` omits control tokens. The space that the vocabulary inserts
  /// before text is removed. Errors: an id is outside the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// The bytes of a token, valid as long as any copy of this tokenizer. Errors: the id is outside
  /// the vocabulary.
  std::string_view piece(int32_t id) const;

  /// Returns the token whose bytes are `text` (" the", "<|im_end|>"), preferring special tokens;
  /// empty if there is none.
  std::optional<int32_t> token_id(std::string_view text) const;

  /// The number of ids; valid ids are 0 … vocab_size() - 1.
  int32_t vocab_size() const;

  /// Whether `id` ends a model's answer: the declared eos and eot, and control tokens with
  /// well-known names (<|im_end|>, <|endoftext|>, <|eot_id|> …). False for ids outside the
  /// vocabulary.
  bool is_end_of_generation(int32_t id) const;

  /// Whether `id` is a control token, which is markup and never part of the text. False for ids
  /// outside the vocabulary.
  bool is_special(int32_t id) const;

  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  std::optional<int32_t> eot() const;
  std::optional<int32_t> pad() const;
  std::optional<int32_t> unk() const;
  bool add_bos() const;
  bool add_eos() const;
  /// The first token of each encoded text if add_bos(): bos(), unless a tokenizer.json says
  /// otherwise.
  std::optional<int32_t> first_added() const;

  /// What may make the tokens differ from the model's, in one line: the file names an unknown split
  /// pattern, added tokens were left out (JsonTokens::rows), or TokenizerSpec::warning. Empty if
  /// nothing does.
  const std::string& warning() const;

  /// The stages of a tokenizer; internal.
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace wick::text
