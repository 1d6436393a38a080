// The pre-tokenizers and decoders of a tokenizer.json.

#include "wick/text/split/pre_tokenizers.h"

#include <algorithm>
#include <utility>

#include "wick/text/json/stages.h"
#include "wick/text/vocab/token_table.h"

namespace wick::text {
namespace {

SplitBehavior behavior_of(const JsonNode& node, SplitBehavior or_else) {
  if (!node.has("behavior")) return or_else;
  constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Isolated", SplitBehavior::isolated},
      {"Removed", SplitBehavior::removed},
      {"Contiguous", SplitBehavior::contiguous},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
  };
  const std::string text = node["behavior"].text();
  for (const auto& [name, behavior] : kNames) {
    if (name == text) return behavior;
  }
  node["behavior"].unsupported(text);
}

SplitStage metaspace_stage(const JsonNode& node) {
  SplitStage stage;
  stage.mark = node.text("replacement", "\xe2\x96\x81");
  if (stage.mark.empty()) node["replacement"].fail("need a character");
  // Older files say add_prefix_space instead of prepend_scheme.
  const std::string scheme =
      node.text("prepend_scheme", node.flag("add_prefix_space", true) ? "always" : "never");
  if (scheme == "always" || scheme == "first") {
    stage.prefix = stage.mark;
    stage.only_first = scheme == "first";
  } else if (scheme != "never") {
    node["prepend_scheme"].unsupported(scheme);
  }
  if (node.flag("split", true)) {
    stage.pattern = stage.mark;
    stage.literal = true;
    stage.behavior = SplitBehavior::merged_with_next;
  }
  return stage;
}

constexpr const char* kPunctuation = R"([\p{P}!-/:-@\[-`{-~])";

/// Text with every occurrence of `from` replaced.
void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty() || text.find(from) == std::string::npos) return;
  std::string out;
  size_t pos = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, pos)) {
    out.append(text, pos, at - pos) += to;
    pos = at + from.size();
  }
  text = out.append(text, pos);
}

}  // namespace

void read_pre_tokenizer(const JsonNode& node, PreTokenizerStages& out) {
  const std::string type = node.type();
  if (out.byte_level && type != "Sequence") {
    node.unsupported(type + " after ByteLevel");
  }
  if (type == "Sequence") {
    node["pretokenizers"].for_each([&](const JsonNode& stage) { read_pre_tokenizer(stage, out); });
  } else if (type == "ByteLevel") {
    SplitStage stage;
    if (node.flag("add_prefix_space", true)) stage.prefix = " ";
    if (node.flag("use_regex", true)) stage.pattern = gpt2_pattern();
    if (!stage.prefix.empty() || !stage.pattern.empty()) out.stages.push_back(std::move(stage));
    out.byte_level = true;
  } else if (type == "Split") {
    SplitStage stage;
    const JsonNode pattern = node["pattern"];
    stage.literal = pattern.has("String");
    stage.pattern = pattern[stage.literal ? "String" : "Regex"].text();
    if (stage.pattern.empty()) pattern.fail("need a pattern");
    stage.behavior = behavior_of(node, SplitBehavior::isolated);
    stage.invert = node.flag("invert", false);
    out.stages.push_back(std::move(stage));
  } else if (type == "Metaspace") {
    out.stages.push_back(metaspace_stage(node));
  } else if (type == "Whitespace") {
    // The joiners and the circled and squared letters are characters of words, too.
    out.stages.push_back({.pattern = R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d})"
                                     R"(\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169})"
                                     R"(\x{1f170}-\x{1f189}]+|[^\s\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})"
                                     R"(\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149})"
                                     R"(\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}]+)",
                          .behavior = SplitBehavior::removed,
                          .invert = true});
  } else if (type == "WhitespaceSplit") {
    out.stages.push_back({.pattern = R"(\s+)", .behavior = SplitBehavior::removed});
  } else if (type == "Punctuation") {
    out.stages.push_back(
        {.pattern = kPunctuation, .behavior = behavior_of(node, SplitBehavior::isolated)});
  } else if (type == "Digits") {
    out.stages.push_back(
        {.pattern = node.flag("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)"});
  } else if (type == "BertPreTokenizer") {
    for (SplitStage& stage : bert_stages()) out.stages.push_back(std::move(stage));
  } else if (type == "FixedLength") {
    const int32_t length = node.has("length") ? node["length"].id() : 5;
    constexpr int32_t kLongest = 10000;  // PCRE2 repeats a character at most 65535 times
    if (length < 1 || length > kLongest) node["length"].fail("need 1 to 10000");
    out.stages.push_back({.pattern = fmt::format("(?s:.{{{}}})", length)});
  } else if (type == "CharDelimiterSplit") {
    out.stages.push_back(
        {.pattern = node["delimiter"].text(), .literal = true, .behavior = SplitBehavior::removed});
  } else {
    node.unsupported(type);
  }
}

void read_decoder(const JsonNode& node, DecoderRules& rules) {
  const std::string type = node.type();
  if (type == "Sequence") {
    node["decoders"].for_each([&](const JsonNode& part) { read_decoder(part, rules); });
  } else if (type == "ByteLevel") {
    rules.byte_level = true;
  } else if (type == "ByteFallback") {
    rules.byte_fallback = true;
  } else if (type == "Fuse") {
    // Tokens are always joined.
  } else if (type == "Replace") {
    const JsonNode pattern = node["pattern"];
    if (!pattern.has("String")) pattern.unsupported("Regex");
    rules.replacements.push_back({pattern["String"].text(), node["content"].text()});
  } else if (type == "Metaspace") {
    rules.replacements.push_back({node.text("replacement", "\xe2\x96\x81"), " "});
    const std::string scheme =
        node.text("prepend_scheme", node.flag("add_prefix_space", true) ? "always" : "never");
    rules.strips_first = scheme != "never";
  } else if (type == "Strip") {
    const std::string content = node["content"].text();
    const bool none_at_end = !node.has("stop") || node["stop"].id() == 0;
    if (content != " " || !none_at_end || node["start"].id() > 1) node.unsupported(type);
    rules.removes_space = rules.removes_space || node["start"].id() == 1;
  } else if (type == "WordPiece") {
    rules.word_piece = true;
    rules.continuation = node.text("prefix", "##");
    rules.removes_space = true;
    rules.cleans_up = node.flag("cleanup", true);
  } else if (type == "BPEDecoder") {
    rules.end_suffix = node.text("suffix", "</w>");
  } else {
    node.unsupported(type);
  }
}

std::string decoded(std::string token, const DecoderRules& rules) {
  if (rules.byte_level) {
    std::string bytes(token.size(), '\0');
    const size_t length = decode_alphabet(token, bytes.data());
    // A token outside the alphabet stands for its own bytes.
    if (length == std::string_view::npos) return token;
    bytes.resize(length);
    return bytes;
  }
  for (const auto& [from, to] : rules.replacements) replace_all(token, from, to);
  if (rules.byte_fallback) {
    if (const int byte = byte_of_token(token); byte >= 0) return {static_cast<char>(byte)};
  }
  if (rules.word_piece) {
    if (!rules.continuation.empty() && token.starts_with(rules.continuation)) {
      token.erase(0, rules.continuation.size());
    } else {
      token.insert(0, " ");
    }
  }
  if (!rules.end_suffix.empty()) replace_all(token, rules.end_suffix, " ");
  return token;
}

}  // namespace wick::text
