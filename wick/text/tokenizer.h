#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"
#include "wick/text/marked_string.h"

namespace wick::text {

/// A vocabulary as a model file describes it. The views are only used while a Tokenizer is
/// constructed; they may point into a mapped file.
struct TokenizerSpec {
  std::string model;                     ///< algorithm: "gpt2" (byte-level BPE) or "llama"
                                         ///< (SentencePiece's BPE)
  std::string pre;                       ///< split pattern: smollm, gpt-2, llama-bpe, qwen2 …
  std::vector<std::string_view> tokens;  ///< [vocabulary]; gpt2: normal tokens in the byte
                                         ///< alphabet; llama: U+2581 for a space
  std::vector<int32_t> token_types;      ///< [vocabulary] or empty (all normal); 1 normal,
                                         ///< 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::string_view> merges;  ///< gpt2: lines "left right", best first
  std::vector<float> scores;             ///< llama: [vocabulary]; higher scores merge first
  std::optional<int32_t> bos, eos, eot, unk, pad;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;  ///< llama: insert a space before text, also after special tokens
};

/// Options of Tokenizer::encode.
struct EncodeOptions {
  std::optional<bool> add_bos = std::nullopt;  ///< unset: the vocabulary's default
  std::optional<bool> add_eos = std::nullopt;  ///< unset: the vocabulary's default
  bool parse_special = true;                   ///< false: control tokens become plain text
  /// Ascending ranges of the text in which control tokens become plain text, also those that begin
  /// or end outside of a range.
  std::span<const TextRange> content = {};
};

/// Converts text to token ids and back, for byte-level BPE vocabularies and SentencePiece
/// vocabularies of the BPE kind.
///
/// A tokenizer is a cheap handle: copies share one immutable vocabulary, and several threads may
/// call all methods at once.
class WICK_API Tokenizer {
 public:
  /// Errors: the model or split pattern is unknown; there are no tokens; the list of types or
  /// scores has another length; a type is unknown; a special id is outside the vocabulary; a token
  /// isn't UTF-8; a merge is malformed; a score is NaN.
  explicit Tokenizer(const TokenizerSpec& spec);

  /// Encodes `text`. Special tokens are extracted first, the longest at each position: user-defined
  /// tokens always, control tokens only with `parse_special`. Text isn't Unicode-normalised. Bytes
  /// without a token are dropped, as in the models' reference tokenizers. Errors: ill-formed UTF-8,
  /// with its byte offset; text of 2 GiB or more.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

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
  bool add_bos() const;
  bool add_eos() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace wick::text
