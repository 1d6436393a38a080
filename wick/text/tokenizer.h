#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"

namespace wick::text {

/// A vocabulary as a model file describes it. The views need to live only while a Tokenizer is
/// constructed; they may point into a mapped file.
struct TokenizerSpec {
  std::string model;                     ///< the algorithm: "gpt2" (byte-level BPE) or "llama"
                                         ///< (SentencePiece's BPE)
  std::string pre;                       ///< the split pattern: smollm, gpt-2, llama-bpe, qwen2 …
  std::vector<std::string_view> tokens;  ///< [vocabulary]; ordinary ones in GPT-2's byte alphabet;
                                         ///< of llama with U+2581 for a space
  std::vector<int32_t> token_types;      ///< [vocabulary] or empty (all normal); 1 normal,
                                         ///< 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::string_view> merges;  ///< of gpt2: "left right", best first
  std::vector<float> scores;             ///< [vocabulary] of llama: what merges first
  std::optional<int32_t> bos, eos, eot, unk, pad;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;  ///< of llama: text begins with a space, also after special tokens
};

/// How a text becomes tokens.
struct EncodeOptions {
  std::optional<bool> add_bos = std::nullopt;  ///< unset: as the vocabulary says
  std::optional<bool> add_eos = std::nullopt;  ///< unset: as the vocabulary says
  bool parse_special = true;                   ///< false: control tokens in the text are plain text
};

/// Text to token ids and back, for byte-level BPE vocabularies and SentencePiece's of the BPE kind.
///
/// A cheap handle: copies share one immutable vocabulary, and all methods may run on several
/// threads at once.
class WICK_API Tokenizer {
 public:
  /// Errors: unknown model or pre name, no tokens, a type list of another length, an unknown type,
  /// a special id outside the vocabulary, a token that is not UTF-8, a malformed merge, a list of
  /// scores of another length, a score that is NaN.
  explicit Tokenizer(const TokenizerSpec& spec);

  /// The ids of `text`. Special tokens are cut out first, the longest at each place: user-defined
  /// ones always, control ones where `parse_special` is set. No Unicode normalisation. A byte that
  /// the vocabulary has no token for is left out, as in the models' reference tokenizers.
  /// Errors: ill-formed UTF-8, with the offset in bytes; text of 2 GiB or more.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// The bytes of `ids` joined; cut between two tokens they need not be UTF-8 (see StreamDecoder).
  /// `skip_special` leaves out control tokens. Where the vocabulary puts a space in front of text,
  /// that space is taken off. Errors: an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// The bytes that `id` stands for; valid as long as any copy of this tokenizer.
  /// Errors: an id outside the vocabulary.
  std::string_view piece(int32_t id) const;

  /// The token whose bytes are `text` (" the", "<|im_end|>"), special tokens first; empty if none.
  std::optional<int32_t> token_id(std::string_view text) const;

  /// Number of ids: valid ones are 0 … vocab_size() - 1.
  int32_t vocab_size() const;

  /// Whether a model ends its answer with `id`: the declared eos and eot, and control tokens known
  /// by name for that use (<|im_end|>, <|endoftext|>, <|eot_id|> …). False outside the vocabulary.
  bool is_end_of_generation(int32_t id) const;

  /// Whether `id` is a control token: markup, never part of the text. False outside the vocabulary.
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
