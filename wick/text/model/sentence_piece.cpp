#include "wick/text/model/sentence_piece.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "wick/base/error.h"

namespace wick::text {
namespace {

constexpr uint32_t kEnd = 0xffffffffu;

/// Whether a space follows another character.
bool has_inner_space(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == ' ' && text[i - 1] != ' ') return true;
  }
  return false;
}

}  // namespace

PieceRanks::PieceRanks(std::span<const float> scores, const TokenTable& tokens)
    : ranks_(tokens.size(), kNoRank) {
  if (scores.size() != tokens.size()) {
    throw Error("tokenizer", "tokens and scores differ in number",
                fmt::format("{} tokens, {} scores", tokens.size(), scores.size()));
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      throw Error("tokenizer", "a score is NaN", fmt::format("token {}", i));
    }
  }
  std::vector<uint32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++rank;
    const auto id = static_cast<int32_t>(order[i]);
    if (tokens.type(id) != TokenType::normal) continue;
    ranks_[order[i]] = rank;
    by_word_ = by_word_ && !has_inner_space(tokens.bytes(id));
    longest_ = std::max(longest_, tokens.bytes(id).size());
  }
}

void PieceEncoder::encode(std::string_view text, std::vector<int32_t>& out) {
  constexpr std::string_view kMark = "\xe2\x96\x81";  // U+2581 stands for a space in pieces
  if (text.find(kMark) != std::string_view::npos) {
    spaced_.clear();
    for (size_t pos = 0; pos < text.size();) {
      const size_t mark = std::min(text.find(kMark, pos), text.size());
      spaced_.append(text, pos, mark - pos);
      if (mark < text.size()) spaced_ += ' ';
      pos = mark + kMark.size();
    }
    text = spaced_;
  }
  after_unknown_ = false;
  while (!text.empty()) {
    size_t end = text.size();
    if (ranks_.by_word()) {
      end = std::min(text.find_first_not_of(' '), end);
      end = std::min(text.find(' ', end), text.size());
    }
    encode_word(text.substr(0, end), out);
    text.remove_prefix(end);
  }
}

/// Finds the token that node i makes with the next node. Returns whether there is one.
bool PieceEncoder::refresh(std::string_view word, uint32_t i) {
  Node& node = nodes_[i];
  node.rank = PieceRanks::kNoRank;
  if (node.next == kEnd) return false;
  const size_t length = nodes_[node.next].end - node.begin;
  if (length > ranks_.longest()) return false;
  const int32_t id = tokens_.find(word.substr(node.begin, length));
  if (id == TokenTable::kNone) return false;
  node.rank = ranks_.of(id);
  heap_.push_back((static_cast<uint64_t>(node.rank) << 32) | i);
  return true;
}

// Uses a doubly linked list of nodes and a heap of (rank, position), as in
// WordEncoder::encode_long.
void PieceEncoder::encode_word(std::string_view word, std::vector<int32_t>& out) {
  if (const int32_t id = tokens_.find(word); id != TokenTable::kNone && word.size() == 1) {
    out.push_back(id);
    after_unknown_ = false;
    return;
  }
  nodes_.clear();
  heap_.clear();
  for (uint32_t begin = 0; begin < word.size();) {
    uint32_t end = begin + 1;
    while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xc0) == 0x80) ++end;
    const auto i = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(
        {begin, end, i - 1, i + 1, PieceRanks::kNoRank});  // the first previous wraps: kEnd
    begin = end;
  }
  nodes_.back().next = kEnd;
  const std::greater<> lowest_first;
  for (uint32_t i = 0; i < nodes_.size(); ++i) refresh(word, i);
  std::make_heap(heap_.begin(), heap_.end(), lowest_first);
  const auto push = [&](uint32_t i) {
    if (refresh(word, i)) std::push_heap(heap_.begin(), heap_.end(), lowest_first);
  };
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), lowest_first);
    const uint64_t entry = heap_.back();
    heap_.pop_back();
    const auto i = static_cast<uint32_t>(entry);
    Node& node = nodes_[i];
    if (node.rank != static_cast<uint32_t>(entry >> 32)) continue;  // stale
    Node& gone = nodes_[node.next];
    node.end = gone.end;
    node.next = gone.next;
    gone.rank = PieceRanks::kNoRank;
    if (node.next != kEnd) nodes_[node.next].previous = i;
    push(i);
    if (node.previous != kEnd) push(node.previous);
  }
  for (uint32_t i = 0; i != kEnd; i = nodes_[i].next) {
    append_piece(word.substr(nodes_[i].begin, nodes_[i].end - nodes_[i].begin), out);
  }
}

/// Appends the token of a piece, or those of its bytes, or the unknown token.
void PieceEncoder::append_piece(std::string_view piece, std::vector<int32_t>& out) {
  const bool after_unknown = std::exchange(after_unknown_, false);
  if (const int32_t id = tokens_.find(piece); id != TokenTable::kNone) {
    out.push_back(id);
    return;
  }
  const bool by_bytes = std::all_of(piece.begin(), piece.end(), [&](char c) {
    return tokens_.byte_token(static_cast<unsigned char>(c)) != TokenTable::kNone;
  });
  if (by_bytes) {
    for (const char c : piece) out.push_back(tokens_.byte_token(static_cast<unsigned char>(c)));
    return;
  }
  after_unknown_ = true;
  if (unknown_ != TokenTable::kNone && !after_unknown) out.push_back(unknown_);
}

std::unique_ptr<Model::Run> Pieces::run() const {
  class Words : public Model::Run {
   public:
    explicit Words(const Pieces& model) : encoder_(model.tokens_, model.ranks_, model.unknown_) {}
    void encode(std::string_view word, std::vector<int32_t>& out) override {
      encoder_.encode(word, out);
    }

   private:
    PieceEncoder encoder_;
  };
  return std::make_unique<Words>(*this);
}

}  // namespace wick::text
