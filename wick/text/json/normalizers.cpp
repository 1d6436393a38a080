// The normalizers of a tokenizer.json.

#include <algorithm>
#include <array>

#include "wick/text/json/stages.h"

namespace wick::text {
namespace {

std::string from_base64(const JsonNode& node) {
  const std::string text = node.text();
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  }
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int value = values[static_cast<unsigned char>(c)];
    if (value < 0) node.fail("need base64");
    bits = (bits << 6) | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> count) & 0xff);
  }
  return out;
}

BertOptions bert_options(const JsonNode& node) {
  BertOptions options;
  options.clean = node.flag("clean_text", true);
  options.ideographs = node.flag("handle_chinese_chars", true);
  options.lower = node.flag("lowercase", true);
  options.strip_accents = node.flag("strip_accents", options.lower);
  return options;
}

}  // namespace

Replacer::Replacer(const JsonNode& pattern, std::string content) : content_(std::move(content)) {
  if (pattern.has("String")) {
    regex_ = std::make_shared<const Regex>(Regex::literal(pattern["String"].text()));
  } else {
    regex_ = std::make_shared<const Regex>(Regex(pattern["Regex"].text()));
  }
}

void Replacer::operator()(std::string& text) const {
  const size_t most = 64 * text.size() + (64u << 10);
  Regex::Scratch scratch(*regex_);
  std::string out;
  Regex::Range match;
  size_t pos = 0, from = 0;
  while (from <= text.size() && regex_->find(text, from, scratch, match)) {
    const bool empty = match.end == match.begin;
    out.append(text, pos, match.begin - pos);
    out += content_;
    pos = match.end;
    from = match.end;
    if (empty) {
      if (from == text.size()) break;
      next_code_point(text, from);
    }
    if (out.size() > most) {
      throw Error("tokenize", "the normalised text is too long",
                  fmt::format("{} bytes", out.size()), fmt::format("need at most {}", most));
    }
  }
  if (pos == 0 && out.empty()) return;
  text = out.append(text, pos);
}

void read_normalizer(const JsonNode& node, Normalizer& normalizer) {
  const std::string type = node.type();
  if (type == "Sequence") {
    node["normalizers"].for_each([&](const JsonNode& step) { read_normalizer(step, normalizer); });
  } else if (type == "NFC") {
    // A character's canonical decomposition has at least a third of its bytes (U+212A becomes K),
    // and at most three times as many.
    normalizer.add(unicode_step(NormalForm::nfc), 9);
  } else if (type == "NFD") {
    normalizer.add(unicode_step(NormalForm::nfd));
  } else if (type == "NFKC") {
    normalizer.add(unicode_step(NormalForm::nfkc));
  } else if (type == "NFKD") {
    normalizer.add(unicode_step(NormalForm::nfkd));
  } else if (type == "Lowercase") {
    normalizer.add(lower_step());
  } else if (type == "StripAccents") {
    normalizer.add(strip_accents_step());
  } else if (type == "Strip") {
    normalizer.add(strip_step(node.flag("strip_left", true), node.flag("strip_right", true)));
  } else if (type == "Prepend") {
    normalizer.add(prepend_step(node["prepend"].text()), 1);
  } else if (type == "Replace") {
    const std::string content = node["content"].text();
    const JsonNode pattern = node["pattern"];
    const bool grows = pattern.has("String") && !content.empty() &&
                       pattern["String"].text().size() <= content.size();
    normalizer.add(Replacer(pattern, content), grows ? 1 : 0);
  } else if (type == "BertNormalizer") {
    normalizer.add(bert_step(bert_options(node)));
  } else if (type == "Nmt") {
    normalizer.add(nmt_step());
  } else if (type == "Precompiled") {
    if (node.has("precompiled_charsmap")) {
      normalizer.add(charsmap_step(
          std::make_shared<const Charsmap>(from_base64(node["precompiled_charsmap"]))));
    }
  } else {
    node.unsupported(type);
  }
}

}  // namespace wick::text
