// Tokenizers from the tokenizer.json of Hugging Face's tokenizers.

#include <algorithm>
#include <fstream>
#include <utility>

#include "wick/text/json/models.h"
#include "wick/text/json/stages.h"
#include "wick/text/tokenizer_impl.h"

namespace wick::text {
namespace {

/// The added tokens that are found before (or after) the text is normalised.
std::optional<AddedTokens> matcher_of(const std::vector<AddedToken>& all, bool normalized,
                                      bool special, const Normalizer& normalizer) {
  std::vector<std::string> names;
  std::vector<int32_t> ids, results;
  std::vector<AddedFlags> flags;
  bool plain = true;
  for (const AddedToken& added : all) {
    if (added.content.empty()) continue;
    if (added.normalized != normalized || (added.special && !special)) continue;
    names.push_back(added.content);
    if (normalized) normalizer.apply(names.back());
    ids.push_back(static_cast<int32_t>(ids.size()));
    results.push_back(added.id);
    flags.push_back({added.single_word, added.lstrip, added.rstrip});
    plain = plain && !added.single_word && !added.lstrip && !added.rstrip;
  }
  if (names.empty()) return std::nullopt;
  const std::vector<std::string_view> views(names.begin(), names.end());
  auto table = std::make_shared<const TokenTable>(views, std::vector<TokenType>(), Spelling::raw);
  if (plain) flags.clear();
  return AddedTokens(std::move(table), std::move(ids), std::move(flags), std::move(results));
}

/// Reads what a post-processor adds to a single sequence.
void read_post_processor(const JsonNode& node, Tokenizer::Impl& impl) {
  const std::string type = node.type();
  const auto checked = [&](const JsonNode& id) {
    if (!impl.contains(id.id())) id.fail("outside the vocabulary");
    return id.id();
  };
  if (type == "Sequence") {
    node["processors"].for_each([&](const JsonNode& part) { read_post_processor(part, impl); });
  } else if (type == "ByteLevel") {
    // It changes offsets alone.
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto id_of = [&](const char* key) {
      const JsonNode pair = node[key];
      if (!pair.json().is_array() || pair.json().size() != 2) pair.fail("need a token and its id");
      return checked(JsonNode(pair.json()[1], pair.place()));
    };
    impl.prefix.insert(impl.prefix.begin(), id_of("cls"));
    impl.suffix.push_back(id_of("sep"));
  } else if (type == "TemplateProcessing") {
    std::vector<int32_t> before, after;
    bool seen = false;
    node["single"].for_each([&](const JsonNode& piece) {
      if (piece.has("Sequence")) {
        if (std::exchange(seen, true)) piece.unsupported("a second sequence");
        return;
      }
      const std::string name = piece["SpecialToken"]["id"].text();
      node["special_tokens"][name.c_str()]["ids"].for_each(
          [&](const JsonNode& id) { (seen ? after : before).push_back(checked(id)); });
    });
    impl.prefix.insert(impl.prefix.begin(), before.begin(), before.end());
    impl.suffix.insert(impl.suffix.end(), after.begin(), after.end());
  } else {
    node.unsupported(type);
  }
}

/// The bytes of every id, and its type.
TokenTable output_table(const JsonVocabulary& vocabulary, const std::vector<AddedToken>& all,
                        const DecoderRules& rules) {
  std::vector<TokenType> types(vocabulary.tokens().size(), TokenType::normal);
  for (const AddedToken& added : all) {
    if (added.content.empty()) continue;
    types[static_cast<size_t>(added.id)] =
        added.special ? TokenType::control : TokenType::user_defined;
  }
  std::vector<std::string> bytes;
  bytes.reserve(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string& token = vocabulary.tokens()[i];
    const bool verbatim = token.empty() || (types[i] != TokenType::normal && rules.byte_level);
    bytes.push_back(verbatim ? token : decoded(token, rules));
  }
  const std::vector<std::string_view> views(bytes.begin(), bytes.end());
  return TokenTable(views, std::move(types), Spelling::raw);
}

/// Sets the special tokens after the post-processor was read.
void set_special(const JsonTokens& tokens, Tokenizer::Impl& impl) {
  const auto known = [&](std::optional<int32_t> id, std::optional<int32_t> or_else = {}) {
    return id && impl.contains(*id) && !impl.tokens.bytes(*id).empty() ? id : or_else;
  };
  impl.add_bos = !impl.prefix.empty();
  impl.add_eos = !impl.suffix.empty();
  impl.bos = known(tokens.bos, impl.add_bos ? std::optional(impl.prefix.front()) : std::nullopt);
  impl.eos = known(tokens.eos, impl.add_eos ? std::optional(impl.suffix.back()) : std::nullopt);
  impl.pad = known(tokens.pad);
  impl.unk = known(tokens.unk);
}

/// Names the first tokens that were left out.
std::string warning_of(const std::vector<std::string>& left_out) {
  if (left_out.empty()) return {};
  std::string names;
  constexpr size_t kMostNamed = 3;
  for (size_t i = 0; i < std::min(left_out.size(), kMostNamed); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", printable(left_out[i], 60));
  }
  if (left_out.size() > kMostNamed) names += ", ...";
  return fmt::format(
      "{} added token{} of the tokenizer.json ha{} no row in the embedding and {} read as text: {}",
      left_out.size(), left_out.size() == 1 ? "" : "s", left_out.size() == 1 ? "s" : "ve",
      left_out.size() == 1 ? "is" : "are", names);
}

std::shared_ptr<const Tokenizer::Impl> build(const JsonNode& document, const JsonTokens& tokens) {
  if (!document.json().is_object()) document.fail("need an object");
  const JsonNode model = document["model"];
  JsonVocabulary vocabulary;
  read_vocabulary(model, vocabulary);
  AddedTokenList list = read_added_tokens(document, tokens.rows, vocabulary);
  PreTokenizerStages stages;
  if (document.has("pre_tokenizer")) read_pre_tokenizer(document["pre_tokenizer"], stages);
  std::unique_ptr<const TokenTable> spelled;
  std::unique_ptr<const Model> made = read_model(model, vocabulary, stages.byte_level, spelled);
  list.add_to(vocabulary, document);
  const std::vector<AddedToken>& added = list.tokens;
  if (vocabulary.tokens().empty()) model.fail("the vocabulary is empty");

  DecoderRules rules;
  if (document.has("decoder")) {
    read_decoder(document["decoder"], rules);
  } else {
    // The reference tokenizer puts spaces between tokens.
    rules.word_piece = true;
    rules.removes_space = true;
  }
  auto impl = std::make_shared<Tokenizer::Impl>(output_table(vocabulary, added, rules));
  impl->spelled = std::move(spelled);
  impl->text.model = std::move(made);
  if (document.has("normalizer")) read_normalizer(document["normalizer"], impl->text.normalizer);
  if (!stages.stages.empty()) impl->text.splitter.emplace(std::move(stages.stages));
  const Normalizer& normalizer = impl->text.normalizer;
  impl->added = matcher_of(added, false, true, normalizer);
  impl->added_plain = matcher_of(added, false, false, normalizer);
  impl->text.added = matcher_of(added, true, true, normalizer);
  impl->text.added_plain = matcher_of(added, true, false, normalizer);
  using FirstSpace = Tokenizer::Impl::FirstSpace;
  if (rules.removes_space) impl->first_space = FirstSpace::removed;
  if (rules.strips_first) impl->first_space = FirstSpace::all_of_first_token;
  impl->cleans_up = rules.cleans_up;
  impl->drops_last_space = !rules.end_suffix.empty();
  if (document.has("post_processor")) read_post_processor(document["post_processor"], *impl);
  set_special(tokens, *impl);
  impl->warning = warning_of(list.left_out);
  impl->find_ends();
  // A token that takes the white space around it stands for texts of any length.
  const bool strips = std::any_of(added.begin(), added.end(), [](const AddedToken& token) {
    return token.lstrip || token.rstrip;
  });
  if (!strips) {
    for (const std::string& token : vocabulary.tokens()) impl->note_spelling(token);
  }
  impl->find_bound();
  return impl;
}

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view json, const JsonTokens& tokens) {
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(json);
  } catch (const nlohmann::json::exception& e) {
    throw Error("tokenizer.json", "malformed JSON", printable(e.what()));
  }
  return Tokenizer(build(JsonNode(document, ""), tokens));
}

Tokenizer Tokenizer::from_file(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[1 << 16];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    text.append(block, static_cast<size_t>(file.gcount()));
    if (static_cast<int64_t>(text.size()) > kMostBytes) {
      throw Error(printable(path), "too large for a tokenizer.json", {}, "need at most 1 GiB");
    }
  }
  if (!file.eof()) throw Error(ErrorKind::file, printable(path), "can't be read");
  try {
    return from_json(text);
  } catch (const Error& e) {
    throw Error(e.kind(), printable(path), e.what());
  }
}

}  // namespace wick::text
