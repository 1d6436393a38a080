// The models of a tokenizer.json.

#include "wick/text/json/models.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "wick/text/model/bpe.h"
#include "wick/text/model/unigram.h"
#include "wick/text/model/word_piece.h"

namespace wick::text {
namespace {

/// The type of a model; old files leave it out.
std::string model_type(const JsonNode& model) {
  if (model.has("type")) return model.type();
  if (model.has("merges")) return "BPE";
  if (model["vocab"].json().is_array()) return "Unigram";
  return model.has("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

int32_t unknown_of(const JsonNode& model, const JsonVocabulary& vocabulary) {
  return model.has("unk_token") ? vocabulary.find(model["unk_token"].text()) : TokenTable::kNone;
}

/// Merges as pairs of strings in the document.
std::vector<MergeTable::Rule> read_merges(const JsonNode& node) {
  std::vector<MergeTable::Rule> rules;
  rules.reserve(node.json().is_array() ? node.json().size() : 0);
  node.for_each([&](const JsonNode& merge) {
    const JsonNode::Json& json = merge.json();
    if (json.is_string()) {
      const std::string_view line = json.get_ref<const std::string&>();
      const size_t space = line.find(' ');
      if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
        merge.fail("need two tokens with one space between them");
      }
      rules.push_back({line.substr(0, space), line.substr(space + 1)});
    } else if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
      rules.push_back(
          {json[0].get_ref<const std::string&>(), json[1].get_ref<const std::string&>()});
    } else {
      merge.fail("need two tokens");
    }
  });
  return rules;
}

std::vector<std::string_view> views_of(const JsonVocabulary& vocabulary) {
  return {vocabulary.tokens().begin(), vocabulary.tokens().end()};
}

std::unique_ptr<const Model> read_bpe(const JsonNode& model, const JsonVocabulary& vocabulary,
                                      bool byte_level, std::unique_ptr<const TokenTable>& table) {
  if (model.has("dropout") && model["dropout"].number() != 0) {
    model["dropout"].unsupported("dropout");
  }
  const std::vector<MergeTable::Rule> rules = read_merges(model["merges"]);
  CharBpeOptions options;
  options.whole_word_first = model.flag("ignore_merges", false);
  options.byte_fallback = model.flag("byte_fallback", false);
  options.unknown = unknown_of(model, vocabulary);
  options.fuse_unknown = model.flag("fuse_unk", false);
  options.inner_prefix = model.text("continuing_subword_prefix", "");
  options.end_suffix = model.text("end_of_word_suffix", "");
  options.in_alphabet = byte_level;
  const bool marked = !options.inner_prefix.empty() || !options.end_suffix.empty();
  const bool by_characters = !byte_level || marked;
  table =
      std::make_unique<const TokenTable>(views_of(vocabulary), std::vector<TokenType>(),
                                         by_characters ? Spelling::raw : Spelling::gpt2_alphabet);
  if (by_characters) return std::make_unique<const CharBpe>(rules, *table, std::move(options));
  std::string lines;
  for (const auto& [left, right] : rules) ((lines += left) += ' ') += right;
  std::vector<std::string_view> views;
  views.reserve(rules.size());
  size_t pos = 0;
  for (const auto& [left, right] : rules) {
    const size_t size = left.size() + 1 + right.size();
    views.push_back(std::string_view(lines).substr(pos, size));
    pos += size;
  }
  return std::make_unique<const ByteBpe>(views, *table, options.whole_word_first, options.unknown,
                                         options.fuse_unknown);
}

/// The double that the reference tokenizer's JSON reader makes of a number: its digits as an
/// integer, multiplied or divided by a power of ten, which is rounded twice. The best of several
/// sequences of tokens may depend on the last bit. The digits are those of the shortest text of
/// `exact`, which is how JSON writers print it.
double as_read_by_the_reference(double exact) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, exact, std::chars_format::scientific);
  uint64_t digits = 0;
  int exponent = 0;
  bool in_fraction = false;
  const char* p = text;
  for (; p != end.ptr && *p != 'e'; ++p) {
    if (*p == '.') in_fraction = true;
    if (*p < '0' || *p > '9') continue;
    digits = digits * 10 + static_cast<uint64_t>(*p - '0');
    if (in_fraction) --exponent;
  }
  if (p == end.ptr) return exact;  // infinite
  int written = 0;
  p += p[1] == '+' ? 2 : 1;
  std::from_chars(p, end.ptr, written);
  exponent += written;
  static const std::array<double, 309> kPowers = [] {
    std::array<double, 309> powers;
    for (size_t i = 0; i < powers.size(); ++i) {
      const std::string power = fmt::format("1e{}", i);
      std::from_chars(power.data(), power.data() + power.size(), powers[i]);
    }
    return powers;
  }();
  if (std::abs(exponent) > 308) return exact;
  const auto whole = static_cast<double>(digits);
  const double power = kPowers[static_cast<size_t>(std::abs(exponent))];
  return std::copysign(exponent < 0 ? whole / power : whole * power, exact);
}

std::unique_ptr<const Model> read_unigram(const JsonNode& model, const JsonVocabulary& vocabulary) {
  UnigramOptions options;
  options.unknown = model.has("unk_id") ? model["unk_id"].id() : TokenTable::kNone;
  const auto size = static_cast<int32_t>(vocabulary.tokens().size());
  if (options.unknown >= size) model["unk_id"].fail("outside the vocabulary");
  std::vector<UnigramToken> tokens;
  double least = std::numeric_limits<double>::max();
  model["vocab"].for_each([&](const JsonNode& entry) {
    const auto id = static_cast<int32_t>(tokens.size());
    if (id >= size) return;  // an added token that was left out
    const double score =
        as_read_by_the_reference(JsonNode(entry.json()[1], entry.place()).number());
    tokens.push_back({vocabulary.tokens()[static_cast<size_t>(id)], id, score});
    least = std::min(least, score);
  });
  constexpr double kPenalty = 10;
  options.unknown_score = least - kPenalty;
  for (int byte = 0; byte < 256; ++byte) {
    options.byte_tokens[byte] = model.flag("byte_fallback", false)
                                    ? vocabulary.find(fmt::format("<0x{:02X}>", byte))
                                    : TokenTable::kNone;
  }
  return std::make_unique<const Unigram>(std::move(tokens), options);
}

std::unique_ptr<const Model> read_words(const JsonNode& model, const JsonVocabulary& vocabulary,
                                        bool pieces) {
  const std::string prefix = pieces ? model.text("continuing_subword_prefix", "##") : "";
  std::vector<WordToken> first, inner;
  for (size_t i = 0; i < vocabulary.tokens().size(); ++i) {
    const std::string_view token = vocabulary.tokens()[i];
    const auto id = static_cast<int32_t>(i);
    first.push_back({token, id});
    if (pieces && token.starts_with(prefix)) inner.push_back({token.substr(prefix.size()), id});
  }
  const size_t longest = pieces && model.has("max_input_chars_per_word")
                             ? static_cast<size_t>(model["max_input_chars_per_word"].id())
                             : (pieces ? 100 : std::numeric_limits<size_t>::max());
  return std::make_unique<const WordPiece>(std::move(first), std::move(inner),
                                           unknown_of(model, vocabulary), longest, !pieces);
}

}  // namespace

void JsonVocabulary::add(std::string token, int32_t id, const JsonNode& node) {
  const auto i = static_cast<size_t>(id);
  if (i >= most_) node.fail(fmt::format("the id {} is far beyond the number of tokens", id));
  if (i >= tokens_.size()) tokens_.resize(i + 1);
  if (token.empty()) return;
  if (!tokens_[i].empty() && tokens_[i] != token) {
    node.fail(fmt::format("two tokens have the id {}: '{}' and '{}'", id, printable(tokens_[i], 60),
                          printable(token, 60)));
  }
  ids_[token] = id;
  tokens_[i] = std::move(token);
}

void JsonVocabulary::remove(const std::string& token) {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return;
  tokens_[static_cast<size_t>(found->second)].clear();
  ids_.erase(found);
  while (!tokens_.empty() && tokens_.back().empty()) tokens_.pop_back();
}

int32_t JsonVocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? TokenTable::kNone : found->second;
}

void read_vocabulary(const JsonNode& model, JsonVocabulary& vocabulary) {
  const JsonNode vocab = model["vocab"];
  vocabulary.expect(vocab.json().size());
  if (model_type(model) == "Unigram") {
    int32_t id = 0;
    vocab.for_each([&](const JsonNode& entry) {
      const JsonNode::Json& json = entry.json();
      if (!json.is_array() || json.size() != 2 || !json[0].is_string()) {
        entry.fail("need a token and its score");
      }
      vocabulary.add(json[0].get<std::string>(), id++, entry);
    });
    return;
  }
  if (!vocab.json().is_object()) vocab.fail("need an object of tokens and ids");
  for (const auto& [token, id] : vocab.json().items()) {
    const JsonNode entry(id, vocab.place());
    vocabulary.add(token, entry.id(), entry);
  }
}

void AddedTokenList::add_to(JsonVocabulary& vocabulary, const JsonNode& document) {
  vocabulary.expect(vocabulary.tokens().size() + tokens.size() + left_out.size());
  for (AddedToken& one : tokens) {
    const int32_t known = vocabulary.find(one.content);
    if (known == TokenTable::kNone) {
      vocabulary.add(one.content, one.id, document["added_tokens"]);
    } else {
      one.id = known;
    }
  }
}

AddedTokenList read_added_tokens(const JsonNode& document, int64_t rows,
                                 JsonVocabulary& vocabulary) {
  AddedTokenList list;
  if (!document.has("added_tokens")) return list;
  document["added_tokens"].for_each([&](const JsonNode& entry) {
    AddedToken added;
    added.content = entry["content"].text();
    added.id = vocabulary.find(added.content);
    if (added.id == TokenTable::kNone) added.id = entry["id"].id();
    if (rows != 0 && added.id >= rows) {
      list.left_out.push_back(added.content);
      return;
    }
    added.special = entry.flag("special", false);
    added.normalized = entry.flag("normalized", !added.special);
    added.single_word = entry.flag("single_word", false);
    added.lstrip = entry.flag("lstrip", false);
    added.rstrip = entry.flag("rstrip", false);
    list.tokens.push_back(std::move(added));
  });
  for (const std::string& token : list.left_out) vocabulary.remove(token);
  return list;
}

std::unique_ptr<const Model> read_model(const JsonNode& model, const JsonVocabulary& vocabulary,
                                        bool byte_level, std::unique_ptr<const TokenTable>& table) {
  const std::string type = model_type(model);
  if (type == "BPE") return read_bpe(model, vocabulary, byte_level, table);
  if (type != "Unigram" && type != "WordPiece" && type != "WordLevel") model.unsupported(type);
  if (byte_level) model.unsupported(type + " after ByteLevel");
  if (type == "Unigram") return read_unigram(model, vocabulary);
  return read_words(model, vocabulary, type == "WordPiece");
}

}  // namespace wick::text
