#include "wick/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/base/utf8.h"
#include "wick/text/bpe.h"
#include "wick/text/sentence_piece.h"
#include "wick/text/specials.h"
#include "wick/text/split.h"
#include "wick/text/token_table.h"

namespace wick::text {
namespace {

// Tokens that end an answer. The metadata of many files names only some of them.
constexpr std::string_view kEndNames[] = {
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
};

// Some files mark chat markup as user-defined or even normal. It is treated as control tokens,
// because otherwise text could forge it with parse_special off.
bool looks_like_control(std::string_view token) {
  if (token.size() > 4 && token.starts_with("<|") && token.ends_with("|>")) return true;
  return std::find(std::begin(kEndNames), std::end(kEndNames), token) != std::end(kEndNames);
}

void check_id(const char* name, std::optional<int32_t> id, size_t size) {
  if (id && (*id < 0 || static_cast<size_t>(*id) >= size)) {
    throw Error("tokenizer", "special token outside the vocabulary",
                fmt::format("{} = {}, {} tokens", name, *id, size));
  }
}

// Algorithms in GGUF files that wick doesn't support, for the error message.
constexpr std::pair<std::string_view, std::string_view> kVocabularies[] = {
    {"bert", "WordPiece"},         {"t5", "Unigram"}, {"rwkv", "RWKV"}, {"plamo2", "PLaMo-2"},
    {"no_vocab", "no vocabulary"},
};

// Checks the algorithm first, because files of other algorithms have unknown split patterns, or
// none. Returns nothing for SentencePiece, which has no split pattern.
std::optional<PreTokenizer> check_family(const TokenizerSpec& spec) {
  if (spec.model == "gpt2") return find_pre_tokenizer(spec.pre);
  if (spec.model == "llama") return std::nullopt;
  std::string kind = fmt::format("'{}'", printable(spec.model, 60));
  for (const auto& [model, algorithm] : kVocabularies) {
    if (spec.model == model) kind += fmt::format(" ({})", algorithm);
  }
  throw Error(ErrorKind::not_implemented, "tokenizer", "unsupported vocabulary", kind,
              "need gpt2 (byte-level BPE) or llama (SentencePiece)");
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

}  // namespace

namespace {

/// Byte-level BPE: a split pattern, and merges within its words.
class ByteLevel {
 public:
  ByteLevel(const PreTokenizer& pre, const TokenizerSpec& spec, const TokenTable& tokens)
      : pre_(pre), splitter_(pre), tokens_(tokens), merges_(spec.merges, tokens) {}

  /// Encodes text between special tokens.
  void encode(std::string_view text, std::vector<int32_t>& out) const {
    WordEncoder encoder(tokens_, merges_);
    Splitter::Cursor cursor(splitter_, text);
    for (std::string_view word = cursor.next(); !word.empty(); word = cursor.next()) {
      if (word.size() == 1) {
        const int32_t id = tokens_.byte_token(static_cast<unsigned char>(word[0]));
        if (id != TokenTable::kNone) out.push_back(id);
        continue;
      }
      if (pre_.whole_word_first) {
        const int32_t id = tokens_.find(word);
        if (id != TokenTable::kNone) {
          out.push_back(id);
          continue;
        }
      }
      encoder.encode(word, out);
    }
  }

 private:
  PreTokenizer pre_;
  Splitter splitter_;
  const TokenTable& tokens_;
  MergeTable merges_;
};

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(const TokenizerSpec& spec) : Impl(spec, check_family(spec)) {}
  Impl(const TokenizerSpec& spec, const std::optional<PreTokenizer>& pre)
      : tokens(spec.tokens, check_types(spec),
               pre ? Spelling::gpt2_alphabet : Spelling::sentence_piece),
        all_special(tokens, ids_of(tokens, true)),
        user_defined(tokens, ids_of(tokens, false)),
        bos(spec.bos),
        eos(spec.eos),
        eot(spec.eot),
        pad(spec.pad),
        unknown(spec.unk.value_or(TokenTable::kNone)),
        add_bos(spec.add_bos),
        add_eos(spec.add_eos),
        add_space_prefix(!pre && spec.add_space_prefix) {
    if (pre) {
      byte_level.emplace(*pre, spec, tokens);
    } else {
      piece_ranks.emplace(spec.scores, tokens);
    }
    for (const std::string_view name : kEndNames) {
      const auto id = all_special.exact(name);
      if (id && is_special(*id)) ends.push_back(*id);
    }
    for (const auto id : {eos, eot}) {
      if (id) ends.push_back(*id);
    }
  }

  bool contains(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < tokens.size(); }
  bool is_special(int32_t id) const {
    return contains(id) &&
           (tokens.type(id) == TokenType::control || tokens.type(id) == TokenType::unknown);
  }

  /// Encodes text between special tokens.
  void encode_plain(std::string_view text, std::vector<int32_t>& out) const {
    if (byte_level) return byte_level->encode(text, out);
    PieceEncoder encoder(tokens, *piece_ranks, unknown);
    if (!add_space_prefix) return encoder.encode(text, out);
    std::string prefixed = " ";
    prefixed += text;
    encoder.encode(prefixed, out);
  }

  /// Encodes text: the tokens of `specials`, and the text between them.
  void encode_between(const SpecialMatcher& specials, std::string_view text,
                      std::vector<int32_t>& out) const {
    SpecialMatcher::Cursor cursor(specials, text);
    for (size_t pos = 0; pos < text.size();) {
      const SpecialMatcher::Match match = cursor.next(pos);
      const bool found = match.position != std::string_view::npos;
      const size_t end = found ? match.position : text.size();
      if (end > pos) encode_plain(text.substr(pos, end - pos), out);
      if (found) out.push_back(match.id);
      pos = end + match.length;
    }
  }

  /// The control tokens in the parts of a text that aren't content.
  std::vector<SpecialMatcher::Match> control_tokens(std::string_view text,
                                                    std::span<const TextRange> content) const {
    std::vector<SpecialMatcher::Match> out;
    const auto search = [&](size_t begin, size_t end) {
      const std::string_view part = text.substr(begin, end - begin);
      SpecialMatcher::Cursor cursor(all_special, part);
      for (size_t pos = 0; pos < part.size();) {
        SpecialMatcher::Match match = cursor.next(pos);
        if (match.position == std::string_view::npos) break;
        pos = match.position + match.length;
        match.position += begin;
        if (is_special(match.id)) out.push_back(match);
      }
    };
    size_t begin = 0;
    for (const TextRange& range : content) {
      search(begin, range.begin);
      begin = range.end;
    }
    search(begin, text.size());
    return out;
  }

  TokenTable tokens;
  std::optional<ByteLevel> byte_level;
  std::optional<PieceRanks> piece_ranks;  // exactly one of byte_level and piece_ranks is set
  SpecialMatcher all_special, user_defined;
  std::vector<int32_t> ends;
  std::optional<int32_t> bos, eos, eot, pad;
  int32_t unknown;
  bool add_bos, add_eos, add_space_prefix;
};

Tokenizer::Tokenizer(const TokenizerSpec& spec) : impl_(std::make_shared<const Impl>(spec)) {}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error("tokenize", "the text is too long", fmt::format("{} bytes", text.size()),
                "need less than 2 GiB");
  }
  const size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos) {
    throw Error("tokenize", "invalid UTF-8",
                fmt::format("byte {:#04x} at offset {}", static_cast<unsigned char>(text[invalid]),
                            invalid),
                "need well-formed UTF-8 text");
  }
  const Impl& impl = *impl_;
  std::vector<int32_t> out;
  out.reserve(text.size() / 4 + 4);
  const bool add_bos = options.add_bos.value_or(impl.add_bos);
  const bool add_eos = options.add_eos.value_or(impl.add_eos);
  if (add_bos && !impl.bos) throw Error("tokenize", "the vocabulary has no bos token");
  if (add_eos && !impl.eos) throw Error("tokenize", "the vocabulary has no eos token");
  if (add_bos) out.push_back(*impl.bos);
  if (!options.parse_special || options.content.empty()) {
    impl.encode_between(options.parse_special ? impl.all_special : impl.user_defined, text, out);
  } else {
    size_t begin = 0;
    for (const SpecialMatcher::Match& match : impl.control_tokens(text, options.content)) {
      impl.encode_between(impl.user_defined, text.substr(begin, match.position - begin), out);
      out.push_back(match.id);
      begin = match.position + match.length;
    }
    impl.encode_between(impl.user_defined, text.substr(begin), out);
  }
  if (add_eos) out.push_back(*impl.eos);
  return out;
}

std::string_view Tokenizer::piece(int32_t id) const {
  if (!impl_->contains(id)) {
    throw Error(ErrorKind::index, "detokenize", "token id outside the vocabulary",
                fmt::format("id {}, {} tokens", id, impl_->tokens.size()));
  }
  return impl_->tokens.bytes(id);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  for (const int32_t id : ids) {
    const std::string_view bytes = piece(id);
    if (!(skip_special && impl_->is_special(id))) out += bytes;
  }
  if (impl_->add_space_prefix) {
    // Text begins after the leading special tokens, whose bytes are their names.
    size_t begin = 0;
    for (size_t i = 0; i < ids.size() && impl_->is_special(ids[i]); ++i) {
      if (!skip_special) begin += piece(ids[i]).size();
    }
    if (begin < out.size() && out[begin] == ' ') out.erase(begin, 1);
  }
  return out;
}

std::optional<int32_t> Tokenizer::token_id(std::string_view text) const {
  if (const auto id = impl_->all_special.exact(text)) return id;
  if (const int32_t id = impl_->tokens.find(text); id != TokenTable::kNone) return id;
  return std::nullopt;
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(impl_->tokens.size()); }

bool Tokenizer::is_end_of_generation(int32_t id) const {
  return std::find(impl_->ends.begin(), impl_->ends.end(), id) != impl_->ends.end();
}

bool Tokenizer::is_special(int32_t id) const { return impl_->is_special(id); }

std::optional<int32_t> Tokenizer::bos() const { return impl_->bos; }
std::optional<int32_t> Tokenizer::eos() const { return impl_->eos; }
std::optional<int32_t> Tokenizer::eot() const { return impl_->eot; }
std::optional<int32_t> Tokenizer::pad() const { return impl_->pad; }
bool Tokenizer::add_bos() const { return impl_->add_bos; }
bool Tokenizer::add_eos() const { return impl_->add_eos; }

}  // namespace wick::text
