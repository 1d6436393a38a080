#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wick/base/keyed_hash.h"
#include "wick/text/json/json_node.h"
#include "wick/text/model/model.h"
#include "wick/text/vocab/token_table.h"

namespace wick::text {

/// The vocabulary of a tokenizer.json, by id. Ids without a token have an empty one.
class JsonVocabulary {
 public:
  /// Adds a token. Errors: the id is far beyond the number of tokens, or another token has it.
  void add(std::string token, int32_t id, const JsonNode& node);
  /// Takes a token out, with the ids behind the last token.
  void remove(const std::string& token);
  /// The id of a token, or TokenTable::kNone.
  int32_t find(std::string_view token) const;
  const std::vector<std::string>& tokens() const { return tokens_; }
  /// Limits ids to a small multiple of `count`, the number of tokens in the file.
  void expect(size_t count) { most_ = 4 * count + (1u << 20); }

 private:
  size_t most_ = 0;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t, KeyedHash, std::equal_to<>> ids_;
};

/// Reads the tokens of `model`. Errors: they are malformed.
void read_vocabulary(const JsonNode& model, JsonVocabulary& vocabulary);

/// An entry of added_tokens. Its id is that of the token in the model's vocabulary, if it has it.
struct AddedToken {
  int32_t id;
  std::string content;
  bool single_word, lstrip, rstrip, normalized, special;
};

/// The added tokens of a document.
struct AddedTokenList {
  std::vector<AddedToken> tokens;
  std::vector<std::string> left_out;  ///< texts of those that the embedding has no row for

  /// Adds the tokens to a vocabulary; tokens of equal texts get the first one's id. Errors: another
  /// token has an id.
  void add_to(JsonVocabulary& vocabulary, const JsonNode& document);
};

/// Reads the added tokens of a document whose model has `vocabulary`. If `rows` isn't 0, tokens
/// from that id on are left out, and taken out of `vocabulary`. Errors: an entry is malformed.
AddedTokenList read_added_tokens(const JsonNode& document, int64_t rows,
                                 JsonVocabulary& vocabulary);

/// Makes the model. `vocabulary` has its tokens alone; `table` gets the table that the model refers
/// to, if any. Errors: the model isn't supported or malformed.
std::unique_ptr<const Model> read_model(const JsonNode& model, const JsonVocabulary& vocabulary,
                                        bool byte_level, std::unique_ptr<const TokenTable>& table);

}  // namespace wick::text
