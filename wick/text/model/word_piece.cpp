#include "wick/text/model/word_piece.h"

#include <algorithm>

namespace wick::text {
namespace {

Trie trie_of(std::vector<WordToken> tokens) {
  std::erase_if(tokens, [](const WordToken& token) { return token.text.empty(); });
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const WordToken& a, const WordToken& b) { return a.text < b.text; });
  std::vector<std::pair<std::string_view, int32_t>> keys;
  keys.reserve(tokens.size());
  for (const WordToken& token : tokens) {
    if (!keys.empty() && keys.back().first == token.text) {
      keys.back().second = token.id;
    } else {
      keys.emplace_back(token.text, token.id);
    }
  }
  return Trie(keys);
}

}  // namespace

/// Matches words.
class WordPiece::Match : public Model::Run {
 public:
  explicit Match(const WordPiece& model) : model_(model) {}

  void encode(std::string_view word, std::vector<int32_t>& out) override {
    const size_t from = out.size();
    const auto characters = std::count_if(word.begin(), word.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    });
    bool known = static_cast<size_t>(characters) <= model_.longest_;
    for (size_t at = 0; known && at < word.size();) {
      const Trie& trie = at == 0 ? model_.first_ : model_.inner_;
      int32_t id = Trie::kNone;
      size_t end = at;
      uint32_t node = Trie::kRoot;
      for (size_t i = at; i < word.size();) {
        if (!trie.step(node, static_cast<unsigned char>(word[i++]))) break;
        if (trie.value(node) == Trie::kNone) continue;
        id = trie.value(node);
        end = i;
      }
      known = id != Trie::kNone && !(model_.whole_ && end < word.size());
      if (known) out.push_back(id);
      at = end;
    }
    if (known) return;
    out.resize(from);
    if (model_.unknown_ >= 0) out.push_back(model_.unknown_);
  }

 private:
  const WordPiece& model_;
};

WordPiece::WordPiece(std::vector<WordToken> first, std::vector<WordToken> inner, int32_t unknown,
                     size_t longest, bool whole)
    : first_(trie_of(std::move(first))),
      inner_(trie_of(std::move(inner))),
      unknown_(unknown),
      longest_(longest),
      whole_(whole) {}

std::unique_ptr<Model::Run> WordPiece::run() const { return std::make_unique<Match>(*this); }

}  // namespace wick::text
