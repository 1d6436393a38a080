// GGUF vocabularies from the tokenizer.json of Hugging Face's tokenizers: byte-level BPE,
// SentencePiece's BPE and WordPiece.
#include "wick/text/gguf_vocabulary.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "wick/base/utf8.h"
#include "wick/text/json/models.h"
#include "wick/text/json/stages.h"
#include "wick/text/split/pre_tokenizers.h"
#include "wick/text/vocab/token_table.h"

namespace wick::text {
namespace {

constexpr const char* kMark = "\xe2\x96\x81";  // U+2581
constexpr auto kNormal = static_cast<int32_t>(TokenType::normal);

/// The types of the stages of a part: of a Sequence those of its members.
std::vector<std::string> types_of(const JsonNode& document, const char* part, const char* members) {
  std::vector<std::string> types;
  if (!document.has(part)) return types;
  const JsonNode node = document[part];
  if (node.type() != "Sequence") return {node.type()};
  node[members].for_each([&](const JsonNode& one) { types.push_back(one.type()); });
  return types;
}

/// One stage of a part whose types are `types_of`.
JsonNode stage_of(const JsonNode& document, const char* part, const char* members, size_t index) {
  const JsonNode node = document[part];
  if (node.type() != "Sequence") return node;
  const JsonNode list = node[members];
  return {list.json()[index], list.place()};
}

/// Reads tokens, their types and what texts get at their ends; sets `difference` for flags that
/// GGUF files don't have.
void read_tokens(const JsonNode& document, const Tokenizer& tokenizer, size_t size,
                 GgufVocabulary& out) {
  JsonVocabulary vocabulary;
  read_vocabulary(document["model"], vocabulary);
  AddedTokenList added = read_added_tokens(document, static_cast<int64_t>(size), vocabulary);
  added.add_to(vocabulary, document);
  for (const AddedToken& one : added.tokens) {
    if (!out.difference.empty()) break;
    const std::string name = printable(one.content, 60);
    for (const auto& [flag, is_set] : {std::pair{"single_word", one.single_word},
                                       {"lstrip", one.lstrip},
                                       {"rstrip", one.rstrip}}) {
      if (is_set && out.difference.empty()) {
        out.difference = fmt::format("the added token '{}' has the flag {}", name, flag);
      }
    }
    if (one.normalized && document.has("normalizer") && out.difference.empty()) {
      out.difference = fmt::format("the added token '{}' is found in normalised text", name);
    }
  }
  out.tokens = vocabulary.tokens();
  out.token_types.assign(out.tokens.size(), kNormal);
  for (const AddedToken& one : added.tokens) {
    out.token_types[static_cast<size_t>(one.id)] =
        static_cast<int32_t>(one.special ? TokenType::control : TokenType::user_defined);
  }
  if (out.tokens.size() < size) out.tokens.resize(size);
  out.token_types.resize(out.tokens.size(), kNormal);
  for (size_t i = 0; i < out.tokens.size(); ++i) {
    if (!out.tokens[i].empty()) continue;
    out.tokens[i] = fmt::format("[PAD{}]", i);
    out.token_types[i] = static_cast<int32_t>(TokenType::unused);
  }
  out.add_bos = tokenizer.add_bos();
  out.add_eos = tokenizer.add_eos();
  if (out.add_bos) out.bos = tokenizer.bos();
  if (out.add_eos) out.eos = tokenizer.eos();
}

/// The merges' tokens.
std::vector<std::pair<std::string, std::string>> merges_of(const JsonNode& model) {
  std::vector<std::pair<std::string, std::string>> merges;
  model["merges"].for_each([&](const JsonNode& merge) {
    const auto& json = merge.json();
    if (json.is_array()) {
      merges.emplace_back(json[0].get<std::string>(), json[1].get<std::string>());
      return;
    }
    const std::string line = merge.text();
    const size_t space = line.find(' ');
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  });
  return merges;
}

/// Whether a BPE has none of the parts that GGUF files don't have.
bool is_plain_bpe(const JsonNode& model) {
  return model.text("type", "BPE") == "BPE" && model.has("merges") &&
         model.text("continuing_subword_prefix", "").empty() &&
         model.text("end_of_word_suffix", "").empty();
}

// ---- Byte-level BPE ----

/// Sets the algorithm and the pattern. Returns why there is none.
std::string read_byte_level(const JsonNode& document, GgufVocabulary& out) {
  const JsonNode model = document["model"];
  if (!is_plain_bpe(model) || model.flag("byte_fallback", false)) return "its BPE has affixes";
  PreTokenizerStages stages;
  read_pre_tokenizer(document["pre_tokenizer"], stages);
  const PreTokenizer* pre = find_pre_tokenizer(stages.stages, model.flag("ignore_merges", false));
  if (pre == nullptr) return "llama.cpp has no name for its pre-tokenizer";
  for (const std::string& step : types_of(document, "normalizer", "normalizers")) {
    if (step != "NFC") return fmt::format("llama.cpp has no normalizer {}", printable(step, 60));
    out.difference = "its text isn't normalised to NFC";
  }
  out.model = "gpt2";
  out.pre = pre->name;
  for (const auto& [left, right] : merges_of(model)) out.merges.push_back(left + ' ' + right);
  return {};
}

// ---- SentencePiece's BPE ----

/// Whether a Replace step makes each space a mark.
bool marks_spaces(const JsonNode& step) {
  return step["pattern"].has("String") && step["pattern"]["String"].text() == " " &&
         step["content"].text() == kMark;
}

/// Whether a pre-tokenizer does nothing after spaces became marks.
bool is_idle_split(const JsonNode& stage) {
  return stage.type() == "Split" && stage["pattern"].has("String") &&
         stage["pattern"]["String"].text() == " ";
}

/// Whether texts get a mark at their beginning; nothing if the parts aren't SentencePiece's.
std::optional<bool> mark_prefix(const JsonNode& document) {
  const auto steps = types_of(document, "normalizer", "normalizers");
  const auto splits = types_of(document, "pre_tokenizer", "pretokenizers");
  const auto step = [&](size_t i) { return stage_of(document, "normalizer", "normalizers", i); };
  if (splits == std::vector<std::string>{"Metaspace"} && steps.empty()) {
    const JsonNode stage = stage_of(document, "pre_tokenizer", "pretokenizers", 0);
    const std::string scheme =
        stage.text("prepend_scheme", stage.flag("add_prefix_space", true) ? "always" : "never");
    if (stage.flag("split", true) || stage.text("replacement", kMark) != kMark) return {};
    if (scheme != "always" && scheme != "never") return {};
    return scheme == "always";
  }
  const bool idle =
      splits.empty() || (splits.size() == 1 &&
                         is_idle_split(stage_of(document, "pre_tokenizer", "pretokenizers", 0)));
  if (!idle) return {};
  if (steps == std::vector<std::string>{"Prepend", "Replace"}) {
    if (step(0)["prepend"].text() != kMark || !marks_spaces(step(1))) return {};
    return true;
  }
  if (steps == std::vector<std::string>{"Replace"} && marks_spaces(step(0))) return false;
  return {};
}

/// Scores that order tokens as the merges that make them. Returns whether SentencePiece's
/// algorithm, which merges any two tokens whose concatenation is one, has the same order.
bool score_by_merges(const std::vector<std::pair<std::string, std::string>>& merges,
                     GgufVocabulary& out) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < out.tokens.size(); ++i) {
    if (out.token_types[i] == kNormal) ids.emplace(out.tokens[i], i);
  }
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> first(out.tokens.size(), kNone), last(out.tokens.size(), 0),
      count(out.tokens.size(), 0);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto found = ids.find(merges[rank].first + merges[rank].second);
    if (found == ids.end()) return false;
    const size_t id = found->second;
    first[id] = std::min(first[id], rank);
    last[id] = rank;
    ++count[id];
  }
  bool exact = true;
  out.scores.assign(out.tokens.size(), 0);
  for (size_t i = 0; i < out.tokens.size(); ++i) {
    out.scores[i] = first[i] == kNone ? -1e9f : -static_cast<float>(first[i]);
    if (first[i] == kNone) continue;
    // All merges of a token are next to each other, and there is one for each of its splits.
    size_t splits = 0;
    const std::string_view token = out.tokens[i];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      if (ids.contains(token.substr(0, cut)) && ids.contains(token.substr(cut))) ++splits;
    }
    exact = exact && last[i] - first[i] + 1 == count[i] && splits == count[i];
  }
  return exact && merges.size() < (size_t{1} << 24);  // which f32 numbers
}

std::string read_pieces(const JsonNode& document, GgufVocabulary& out) {
  const JsonNode model = document["model"];
  if (!is_plain_bpe(model)) return "its BPE has affixes";
  if (!model.flag("byte_fallback", false)) return "its BPE has no bytes for unknown characters";
  if (model.flag("ignore_merges", false)) return "its BPE ignores merges for whole words";
  const std::optional<bool> prefix = mark_prefix(document);
  if (!prefix) return "llama.cpp has no name for its normalizer and pre-tokenizer";
  for (size_t i = 0; i < out.tokens.size(); ++i) {
    if (out.token_types[i] == kNormal && byte_of_token(out.tokens[i]) >= 0) {
      out.token_types[i] = static_cast<int32_t>(TokenType::byte);
    }
  }
  if (!score_by_merges(merges_of(model), out)) {
    out.difference = "no order of scores stands for its merges";
  }
  if (model.has("unk_token")) {
    const std::string unknown = model["unk_token"].text();
    const auto found = std::find(out.tokens.begin(), out.tokens.end(), unknown);
    if (found != out.tokens.end()) {
      out.unk = static_cast<int32_t>(found - out.tokens.begin());
      out.token_types[static_cast<size_t>(*out.unk)] = static_cast<int32_t>(TokenType::unknown);
    }
  }
  out.model = "llama";
  out.pre = "default";
  out.add_space_prefix = *prefix;
  return {};
}

// ---- WordPiece ----

std::string read_word_piece(const JsonNode& document, GgufVocabulary& out) {
  const JsonNode model = document["model"];
  const auto only = [&](const char* part, const char* members, const char* type) {
    return types_of(document, part, members) == std::vector<std::string>{type};
  };
  if (!only("normalizer", "normalizers", "BertNormalizer") ||
      !only("pre_tokenizer", "pretokenizers", "BertPreTokenizer")) {
    return "its normalizer and pre-tokenizer aren't BERT's";
  }
  const JsonNode normalizer = stage_of(document, "normalizer", "normalizers", 0);
  if (!normalizer.flag("clean_text", true) || !normalizer.flag("handle_chinese_chars", true)) {
    return "its normalizer isn't BERT's";
  }
  const std::string inner = model.text("continuing_subword_prefix", "##");
  constexpr int32_t kLongestWord = 100;
  if (inner.empty() || (model.has("max_input_chars_per_word") &&
                        model["max_input_chars_per_word"].id() != kLongestWord)) {
    return "its words aren't limited to 100 characters";
  }
  const std::string unknown = model.text("unk_token", "[UNK]");
  for (size_t i = 0; i < out.tokens.size(); ++i) {
    std::string& token = out.tokens[i];
    if (token == unknown) out.unk = static_cast<int32_t>(i);
    if (out.token_types[i] != kNormal || token == unknown) continue;
    token = token.starts_with(inner) ? token.substr(inner.size()) : kMark + token;
  }
  out.model = "bert";
  out.lower = normalizer.flag("lowercase", true);
  out.strip_accents = normalizer.flag("strip_accents", out.lower);
  return {};
}

// ---- Comparison ----

/// Texts in several scripts, with what split patterns treat differently.
constexpr std::string_view kTexts[] = {
    "Hello, world! It's 3.14159 or 2,718 — isn't it? I'LL WE'RE they'd",
    "  two  spaces\tand\ttabs\n\n\nnew lines \r\n end  \n ",
    "camelCase PascalCase snake_case HTTPServer x1y22z333 0x1F4A9 1234567890",
    "for (int i = 0; i < n; ++i) { a[i] += b[i] * c; } // \"quoted\" 'x' `y` $z #w @v",
    "Ünïcödé naïve façade Straße İstanbul ﬁn ½ ² Ⅷ ①",
    "Привет, мир! Γειά σου Κόσμε שלום עולם مرحبا بالعالم ١٢٣",
    "你好，世界！こんにちは世界。カタカナ 안녕하세요 세계 ภาษาไทย हिन्दी भाषा ๑๒๓",
    "😀👍🏽 👨\u200d👩\u200d👧 ❤️ ∑∫√≠ → ← €£¥ …«»“”‘’",
    "a\u00a0b\u2003c\u3000d \u200be e\u0301\u0327 \u00e9",
    "https://example.org/a?b=c&d=%20#e me@example.org C:\\dir\\file.txt",
};

std::string first_difference(const Tokenizer& a, const Tokenizer& b) {
  const auto differ = [&](std::string_view text) { return a.encode(text) != b.encode(text); };
  for (const std::string_view text : kTexts) {
    if (differ(text)) return std::string(text);
  }
  constexpr size_t kTogether = 8;
  std::string last;
  size_t joined = 0;
  for (int32_t id = 0; id < a.vocab_size(); ++id) {
    const std::string_view piece = a.piece(id);
    if (piece.empty() || a.is_special(id) || find_invalid_utf8(piece) != std::string_view::npos)
      continue;
    if (differ(piece)) return std::string(piece);
    last += piece;
    if (++joined % kTogether != 0) continue;
    if (differ(last)) return last;
    last.clear();
  }
  return {};
}

std::string read_form(const JsonNode& document, GgufVocabulary& out) {
  const JsonNode model = document["model"];
  const auto splits = types_of(document, "pre_tokenizer", "pretokenizers");
  const std::string type = model.text("type", model.has("merges") ? "BPE" : "");
  if (type == "WordPiece") return read_word_piece(document, out);
  if (type != "BPE") return fmt::format("the model {} isn't converted", printable(type, 60));
  const bool byte_level = std::find(splits.begin(), splits.end(), "ByteLevel") != splits.end();
  return byte_level ? read_byte_level(document, out) : read_pieces(document, out);
}

GgufVocabulary no_vocabulary(std::string reason) {
  GgufVocabulary none;
  none.difference = std::move(reason);
  return none;
}

}  // namespace

TokenizerSpec GgufVocabulary::spec() const {
  TokenizerSpec spec;
  spec.model = model;
  spec.pre = pre;
  spec.tokens.assign(tokens.begin(), tokens.end());
  spec.token_types = token_types;
  spec.merges.assign(merges.begin(), merges.end());
  spec.scores = scores;
  spec.bos = bos;
  spec.eos = eos;
  spec.unk = unk;
  spec.add_bos = add_bos;
  spec.add_eos = add_eos;
  spec.add_space_prefix = add_space_prefix;
  spec.lower = lower;
  spec.strip_accents = strip_accents;
  return spec;
}

GgufVocabulary gguf_vocabulary(std::string_view json, size_t size) {
  const Tokenizer tokenizer = Tokenizer::from_json(json, {.rows = static_cast<int64_t>(size)});
  const auto parsed = nlohmann::json::parse(json);
  const JsonNode document(parsed, "");
  GgufVocabulary out;
  read_tokens(document, tokenizer, size, out);
  const std::string flags = std::exchange(out.difference, {});
  if (const std::string reason = read_form(document, out); !reason.empty()) {
    return no_vocabulary(reason);
  }
  if (out.difference.empty()) out.difference = flags;
  if (!out.difference.empty()) return out;
  try {
    const std::string text = first_difference(tokenizer, Tokenizer(out.spec()));
    if (!text.empty()) {
      out.difference = fmt::format("the tokens of '{}' differ", printable(text, 60));
    }
  } catch (const Error& e) {
    return no_vocabulary(e.what());
  }
  return out;
}

}  // namespace wick::text
