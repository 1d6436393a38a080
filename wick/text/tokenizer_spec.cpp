// Tokenizers from the keys of GGUF files.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/text/model/bpe.h"
#include "wick/text/model/sentence_piece.h"
#include "wick/text/model/unigram.h"
#include "wick/text/model/word_piece.h"
#include "wick/text/split/pre_tokenizers.h"
#include "wick/text/tokenizer_impl.h"

namespace wick::text {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

enum class Family : uint8_t { bpe, pieces, unigram, word_piece, none };

// Checks the algorithm first, because files of other algorithms have unknown split patterns, or
// none.
Family family_of(const TokenizerSpec& spec) {
  constexpr std::pair<std::string_view, Family> kFamilies[] = {
      {"gpt2", Family::bpe},        {"gemma4", Family::bpe}, {"llama", Family::pieces},
      {"t5", Family::unigram},      {"none", Family::none},  {"no_vocab", Family::none},
      {"bert", Family::word_piece},
  };
  for (const auto& [model, family] : kFamilies) {
    if (spec.model == model) return family;
  }
  throw Error(ErrorKind::not_implemented, "tokenizer", "unsupported vocabulary",
              fmt::format("'{}'", printable(spec.model, 60)),
              "need gpt2 or gemma4 (BPE), llama or t5 (SentencePiece), bert (WordPiece) or none");
}

void check_id(const char* name, std::optional<int32_t> id, size_t size) {
  if (id && (*id < 0 || static_cast<size_t>(*id) >= size)) {
    throw Error("tokenizer", "special token outside the vocabulary",
                fmt::format("{} = {}, {} tokens", name, *id, size));
  }
}

// Checks the whole description and returns the types of all tokens.
std::vector<TokenType> check_types(const TokenizerSpec& spec) {
  if (spec.tokens.empty()) throw Error("tokenizer", "the vocabulary is empty");
  if (spec.tokens.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error("tokenizer", "too many tokens", fmt::format("{}", spec.tokens.size()));
  }
  if (!spec.token_types.empty() && spec.token_types.size() != spec.tokens.size()) {
    throw Error("tokenizer", "tokens and token types differ in number",
                fmt::format("{} tokens, {} types", spec.tokens.size(), spec.token_types.size()));
  }
  std::vector<TokenType> types(spec.tokens.size(), TokenType::normal);
  for (size_t i = 0; i < spec.token_types.size(); ++i) {
    const int32_t type = spec.token_types[i];
    if (type < 1 || type > 6) {
      throw Error("tokenizer", "unknown token type", fmt::format("type {} of token {}", type, i),
                  "need 1 to 6");
    }
    types[i] = static_cast<TokenType>(type);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if ((types[i] == TokenType::normal || types[i] == TokenType::user_defined) &&
        looks_like_control(spec.tokens[i])) {
      types[i] = TokenType::control;
    }
  }
  check_id("bos", spec.bos, types.size());
  check_id("eos", spec.eos, types.size());
  check_id("eot", spec.eot, types.size());
  check_id("unk", spec.unk, types.size());
  check_id("pad", spec.pad, types.size());
  if (spec.add_bos && !spec.bos) throw Error("tokenizer", "add_bos is set without a bos token");
  if (spec.add_eos && !spec.eos) throw Error("tokenizer", "add_eos is set without an eos token");
  if (spec.token_types.empty()) {
    for (const auto id : {spec.bos, spec.eos, spec.eot}) {
      if (id) types[static_cast<size_t>(*id)] = TokenType::control;
    }
  }
  return types;
}

/// User-defined tokens, with `control` also control tokens.
std::vector<int32_t> ids_of(const TokenTable& tokens, bool control) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < static_cast<int32_t>(tokens.size()); ++id) {
    const TokenType type = tokens.type(id);
    if (type == TokenType::user_defined ||
        (control && (type == TokenType::control || type == TokenType::unknown))) {
      ids.push_back(id);
    }
  }
  return ids;
}

/// The split pattern of a BPE vocabulary, and a warning if its name is unknown.
const PreTokenizer& pre_tokenizer_of(const TokenizerSpec& spec, std::string& warning) {
  if (spec.model == "gemma4") return *find_pre_tokenizer("gemma4");
  const PreTokenizer* const pre = find_pre_tokenizer(spec.pre);
  if (pre != nullptr) return *pre;
  const std::string what = spec.pre.empty()
                               ? "no pre-tokenizer is named"
                               : fmt::format("unknown pre-tokenizer '{}'", printable(spec.pre, 60));
  warning = fmt::format(
      "{}: text is split by the pattern of 'default', and the tokens may "
      "differ from the model's",
      what);
  return default_pre_tokenizer();
}

/// The tokens that CharBpe may produce, in their own spelling.
std::unique_ptr<const TokenTable> raw_tokens(const TokenizerSpec& spec, const TokenTable& tokens) {
  std::vector<TokenType> types(tokens.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const TokenType type = tokens.type(static_cast<int32_t>(i));
    const bool mergeable = type == TokenType::normal || type == TokenType::byte;
    types[i] = mergeable ? TokenType::normal : TokenType::unused;
  }
  return std::make_unique<const TokenTable>(spec.tokens, std::move(types), Spelling::raw);
}

void add_bpe(Tokenizer::Impl& impl, const TokenizerSpec& spec, const PreTokenizer& pre) {
  impl.text.splitter.emplace(stages_of(pre));
  if (!pre.raw) {
    impl.text.model = std::make_unique<ByteBpe>(spec.merges, impl.tokens, pre.whole_word_first);
    return;
  }
  std::vector<MergeTable::Rule> rules;
  rules.reserve(spec.merges.size());
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const std::string_view line = spec.merges[i];
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) {
      throw Error("tokenizer", "malformed merge",
                  fmt::format("merge {} '{}'", i, printable(line, 60)),
                  "need two tokens with one space between them");
    }
    rules.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  impl.spelled = raw_tokens(spec, impl.tokens);
  impl.text.model =
      std::make_unique<CharBpe>(rules, *impl.spelled,
                                CharBpeOptions{.whole_lines_first = pre.spaces_are_marks,
                                               .byte_fallback = true,
                                               .unknown = spec.unk.value_or(TokenTable::kNone),
                                               .fuse_unknown = true});
}

void add_unigram(Tokenizer::Impl& impl, const TokenizerSpec& spec) {
  if (spec.scores.size() != spec.tokens.size()) {
    throw Error("tokenizer", "tokens and scores differ in number",
                fmt::format("{} tokens, {} scores", spec.tokens.size(), spec.scores.size()));
  }
  UnigramOptions options;
  options.unknown = spec.unk.value_or(TokenTable::kNone);
  options.float_sums = true;
  float least = std::numeric_limits<float>::max();
  std::vector<UnigramToken> tokens;
  for (int32_t id = 0; id < static_cast<int32_t>(impl.tokens.size()); ++id) {
    if (impl.tokens.type(id) != TokenType::normal) continue;
    const float score = spec.scores[static_cast<size_t>(id)];
    tokens.push_back({impl.tokens.bytes(id), id, score});
    least = std::min(least, score);
  }
  constexpr float kPenalty = 10;
  options.unknown_score = least - kPenalty;
  // Byte tokens stand for unknown characters only if there are all of them.
  std::fill(std::begin(options.byte_tokens), std::end(options.byte_tokens), TokenTable::kNone);
  for (int32_t id = static_cast<int32_t>(impl.tokens.size()) - 1; id >= 0; --id) {
    if (impl.tokens.type(id) == TokenType::byte && impl.tokens.bytes(id).size() == 1) {
      options.byte_tokens[static_cast<unsigned char>(impl.tokens.bytes(id)[0])] = id;
    }
  }
  impl.text.model = std::make_unique<Unigram>(std::move(tokens), options);
  impl.text.normalizer.add(
      sentence_piece_step({.map = std::make_shared<const Charsmap>(spec.charsmap),
                           .remove_extra_spaces = spec.remove_extra_spaces,
                           .add_space_prefix = spec.add_space_prefix}));
}

void add_word_piece(Tokenizer::Impl& impl, const TokenizerSpec& spec) {
  std::vector<WordToken> first, inner;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (impl.tokens.type(id) != TokenType::normal) continue;
    std::string_view text = spec.tokens[i];
    const bool begins = text.starts_with(kSpaceMark);
    if (begins) text.remove_prefix(kSpaceMark.size());
    (begins ? first : inner).push_back({text, id});
  }
  constexpr size_t kLongestWord = 100;
  impl.text.model = std::make_unique<WordPiece>(std::move(first), std::move(inner),
                                                spec.unk.value_or(TokenTable::kNone), kLongestWord);
  impl.text.normalizer.add(bert_step({.strip_accents = spec.strip_accents, .lower = spec.lower}));
  impl.text.splitter.emplace(bert_stages());
  impl.cleans_up = true;
}

}  // namespace

bool adds_bos_by_default(std::string_view model, std::string_view pre) {
  if (model == "llama" || model == "bert" || model == "gemma4") return true;
  const PreTokenizer* const found = model == "gpt2" ? find_pre_tokenizer(pre) : nullptr;
  return found != nullptr && found->adds_bos;
}

Tokenizer::Tokenizer(const TokenizerSpec& spec) {
  const Family family = family_of(spec);
  std::string of_split;
  const PreTokenizer* const pre =
      family == Family::bpe ? &pre_tokenizer_of(spec, of_split) : nullptr;
  const bool in_alphabet = pre != nullptr && !pre->raw;
  auto impl = std::make_shared<Impl>(
      TokenTable(spec.tokens, check_types(spec),
                 in_alphabet ? Spelling::gpt2_alphabet : Spelling::sentence_piece));
  const bool has_both = !spec.warning.empty() && !of_split.empty();
  impl->warning = fmt::format("{}{}{}", spec.warning, has_both ? "; " : "", of_split);
  impl->bos = spec.bos;
  impl->eos = spec.eos;
  impl->eot = spec.eot;
  impl->pad = spec.pad;
  impl->unk = spec.unk;
  impl->add_bos = spec.add_bos;
  impl->add_eos = spec.add_eos;
  if (spec.bos) impl->prefix = {*spec.bos};
  if (spec.eos) impl->suffix = {*spec.eos};
  if (family == Family::word_piece ||
      ((family == Family::pieces || family == Family::unigram) && spec.add_space_prefix)) {
    impl->first_space = Impl::FirstSpace::removed_after_control;
  }
  switch (family) {
    case Family::bpe:
      add_bpe(*impl, spec, *pre);
      break;
    case Family::unigram:
      add_unigram(*impl, spec);
      break;
    case Family::word_piece:
      add_word_piece(*impl, spec);
      break;
    case Family::pieces:
      impl->text.model =
          std::make_unique<Pieces>(spec.scores, impl->tokens, spec.unk.value_or(TokenTable::kNone));
      if (spec.add_space_prefix) impl->text.normalizer.add(prepend_step(" "), 1);
      break;
    case Family::none:
      break;
  }
  impl->added.emplace(impl->tokens, ids_of(impl->tokens, true));
  impl->added_plain.emplace(impl->tokens, ids_of(impl->tokens, false));
  impl->find_ends();
  for (const std::string_view token : spec.tokens) impl->note_spelling(token);
  impl->find_bound();
  impl_ = std::move(impl);
}

}  // namespace wick::text
