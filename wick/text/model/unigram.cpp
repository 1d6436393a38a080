#include "wick/text/model/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wick/base/error.h"

namespace wick::text {
namespace {

size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

}  // namespace

/// The search of one thread.
class Unigram::Viterbi : public Model::Run {
 public:
  explicit Viterbi(const Unigram& model) : model_(model) {}

  void encode(std::string_view word, std::vector<int32_t>& out) override {
    if (model_.options_.float_sums) {
      search<float>(word);
    } else {
      search<double>(word);
    }
    collect(word, out);
  }

 private:
  static constexpr int32_t kUnknown = -1;
  struct Best {
    double score;    // of the best tokens up to here
    uint32_t begin;  // where the last of them begins
    int32_t number;  // its number in the trie, or kUnknown
  };
  static constexpr uint32_t kUnreached = 0xffffffffu;

  template <typename Sum>
  void search(std::string_view word) {
    best_.assign(word.size() + 1, Best{0, kUnreached, kUnknown});
    const auto offer = [&](size_t end, double score, size_t begin, int32_t number) {
      Best& best = best_[end];
      const double rounded = static_cast<Sum>(score);
      if (best.begin == kUnreached || rounded > best.score) {
        best = {rounded, static_cast<uint32_t>(begin), number};
      }
    };
    const Trie& trie = model_.trie_;
    const double* const scores = model_.scores_.data();
    for (size_t begin = 0; begin < word.size();) {
      const double before = best_[begin].score;
      const size_t next = std::min(begin + character_bytes(word[begin]), word.size());
      bool single = false;
      uint32_t node = Trie::kRoot;
      for (size_t end = begin; end < word.size();) {
        if (!trie.step(node, static_cast<unsigned char>(word[end++]))) break;
        const int32_t number = trie.value(node);
        if (number == Trie::kNone) continue;
        offer(end, scores[number] + before, begin, number);
        single = single || end == next;
      }
      if (!single) offer(next, model_.options_.unknown_score + before, begin, kUnknown);
      begin = next;
    }
  }

  /// Appends the tokens of the best path. Adjacent unknown characters are one.
  void collect(std::string_view word, std::vector<int32_t>& out) {
    const size_t from = out.size();
    for (size_t end = word.size(); end > 0;) {
      const Best& last = best_[end];
      if (last.number != kUnknown) {
        out.push_back(model_.ids_[static_cast<size_t>(last.number)]);
        end = last.begin;
        continue;
      }
      size_t begin = last.begin;
      while (begin > 0 && best_[begin].number == kUnknown) begin = best_[begin].begin;
      if (model_.has_bytes_) {
        for (size_t i = end; i-- > begin;) {
          out.push_back(model_.options_.byte_tokens[static_cast<unsigned char>(word[i])]);
        }
      } else if (model_.options_.unknown >= 0) {
        out.push_back(model_.options_.unknown);
      }
      end = begin;
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(from), out.end());
  }

  const Unigram& model_;
  std::vector<Best> best_;
};

Unigram::Unigram(std::vector<UnigramToken> tokens, const UnigramOptions& options)
    : options_(options),
      has_bytes_(std::all_of(std::begin(options.byte_tokens), std::end(options.byte_tokens),
                             [](int32_t id) { return id >= 0; })) {
  std::erase_if(tokens, [](const UnigramToken& token) { return token.text.empty(); });
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const UnigramToken& a, const UnigramToken& b) { return a.text < b.text; });
  std::vector<std::pair<std::string_view, int32_t>> keys;
  keys.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (std::isnan(tokens[i].score)) {
      throw Error("tokenizer", "a score is NaN", fmt::format("token {}", tokens[i].id));
    }
    if (i + 1 < tokens.size() && tokens[i + 1].text == tokens[i].text) continue;
    keys.emplace_back(tokens[i].text, static_cast<int32_t>(ids_.size()));
    ids_.push_back(tokens[i].id);
    scores_.push_back(tokens[i].score);
  }
  trie_ = Trie(keys);
}

std::unique_ptr<Model::Run> Unigram::run() const { return std::make_unique<Viterbi>(*this); }

}  // namespace wick::text
