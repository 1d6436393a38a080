#include <fmt/format.h>

#include <algorithm>

#include "wick/text/model/bpe.h"

namespace wick::text {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

bool has_inner_mark(std::string_view token) {
  for (size_t at = token.find(kSpaceMark, 1); at != std::string_view::npos;
       at = token.find(kSpaceMark, at + 1)) {
    if (at < kSpaceMark.size() ||
        token.substr(at - kSpaceMark.size(), kSpaceMark.size()) != kSpaceMark) {
      return true;
    }
  }
  return false;
}

/// The end of the marks and of the other characters at the front of `word`.
size_t end_of_marked_word(std::string_view word) {
  size_t at = 0;
  while (word.substr(at).starts_with(kSpaceMark)) at += kSpaceMark.size();
  return std::min(word.find(kSpaceMark, at), word.size());
}

}  // namespace

/// Encodes words on one thread.
class CharBpe::Words : public Model::Run {
 public:
  explicit Words(const CharBpe& model) : model_(model), encoder_(model.tokens_, model.merges_) {}

  void encode(std::string_view word, std::vector<int32_t>& out) override {
    const CharBpeOptions& options = model_.options_;
    if (options.in_alphabet) {
      in_alphabet_.clear();
      encode_alphabet(word, in_alphabet_);
      word = in_alphabet_;
    }
    if (options.whole_word_first ||
        (options.whole_lines_first && word.find_first_not_of('\n') == std::string_view::npos)) {
      const int32_t id = model_.tokens_.find(word);
      if (id != TokenTable::kNone) {
        out.push_back(id);
        return;
      }
    }
    if (!model_.by_mark_) return encode_part(word, out);
    // No merge crosses the beginning of a marked word.
    while (!word.empty()) {
      const size_t end = end_of_marked_word(word);
      encode_part(word.substr(0, end), out);
      word.remove_prefix(end);
    }
  }

 private:
  void encode_part(std::string_view word, std::vector<int32_t>& out) {
    const CharBpeOptions& options = model_.options_;
    symbols_.clear();
    bool after_unknown = false;
    for (size_t begin = 0; begin < word.size();) {
      size_t end = begin + 1;
      while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xc0) == 0x80) ++end;
      const std::string_view character = word.substr(begin, end - begin);
      const int32_t id = find(character, begin == 0, end == word.size());
      if (id != TokenTable::kNone) {
        symbols_.push_back(id);
        after_unknown = false;
      } else if (!add_bytes(character) && options.unknown >= 0) {
        if (!(after_unknown && options.fuse_unknown)) symbols_.push_back(options.unknown);
        after_unknown = true;
      }
      begin = end;
    }
    encoder_.merge(symbols_, out);
  }

  int32_t find(std::string_view character, bool first, bool last) {
    const CharBpeOptions& options = model_.options_;
    if (options.inner_prefix.empty() && options.end_suffix.empty()) {
      return model_.tokens_.find(character);
    }
    spelled_.clear();
    if (!first) spelled_ += options.inner_prefix;
    spelled_ += character;
    if (last) spelled_ += options.end_suffix;
    return model_.tokens_.find(spelled_);
  }

  bool add_bytes(std::string_view character) {
    if (!model_.options_.byte_fallback) return false;
    const auto token = [&](char c) { return model_.byte_tokens_[static_cast<unsigned char>(c)]; };
    const auto has_token = [&](char c) { return token(c) != TokenTable::kNone; };
    if (!std::all_of(character.begin(), character.end(), has_token)) return false;
    for (const char c : character) symbols_.push_back(token(c));
    return true;
  }

  const CharBpe& model_;
  WordEncoder encoder_;
  std::vector<int32_t> symbols_;
  std::string spelled_, in_alphabet_;
};

CharBpe::CharBpe(std::span<const MergeTable::Rule> merges, const TokenTable& tokens,
                 CharBpeOptions options)
    : tokens_(tokens),
      merges_(merges, tokens, options.inner_prefix.size()),
      options_(std::move(options)) {
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = tokens.find(fmt::format("<0x{:02X}>", byte));
  }
  by_mark_ = options_.inner_prefix.empty() && options_.end_suffix.empty() &&
             tokens.find(kSpaceMark) != TokenTable::kNone;
  for (size_t id = 0; by_mark_ && id < tokens.size(); ++id) {
    by_mark_ = !has_inner_mark(tokens.bytes(static_cast<int32_t>(id)));
  }
}

std::bitset<256> CharBpe::kept_bytes() const {
  std::bitset<256> kept;
  for (size_t byte = 0; byte < kept.size() && options_.byte_fallback && !options_.in_alphabet;
       ++byte) {
    kept[byte] = byte_tokens_[byte] != TokenTable::kNone;
  }
  return of_whole_characters(kept);
}

std::unique_ptr<Model::Run> CharBpe::run() const { return std::make_unique<Words>(*this); }

}  // namespace wick::text
