#include "wick/text/model/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <string>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/base/utf8.h"

namespace wick::text {
namespace {

// One merge line; the stages of Block fill in its members.
struct Line {
  std::string_view left, joined;  // into the scratch text
  std::string_view right() const { return joined.substr(left.size()); }
  uint64_t left_hash, right_hash;
  int32_t left_token, right_token, token;
  uint64_t key;
};

[[noreturn]] void throw_malformed(size_t rank, std::string_view line) {
  throw Error("tokenizer", "malformed merge",
              fmt::format("merge {} '{}'", rank, printable(line, 60)),
              "need two words of the byte-level alphabet with one space between them");
}

void parse(size_t rank, std::string_view line, char* out, Line& parsed) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size()) {
    throw_malformed(rank, line);
  }
  const size_t left = decode_alphabet(line.substr(0, space), out);
  if (left == std::string_view::npos) throw_malformed(rank, line);
  const size_t right = decode_alphabet(line.substr(space + 1), out + left);
  if (right == std::string_view::npos) throw_malformed(rank, line);
  parsed.left = {out, left};
  parsed.joined = {out, left + right};
}

/// A block of merge lines that is processed in stages. Each stage prefetches what the next one
/// reads, because nearly every look-up misses the cache.
class Block {
 public:
  static constexpr size_t kLines = 32;

  explicit Block(const TokenTable& tokens) : tokens_(tokens) {}

  /// Reads up to kLines lines from line `first` on; returns their number.
  size_t read(std::span<const std::string_view> merges, size_t first) {
    const auto lines = merges.subspan(first, std::min(kLines, merges.size() - first));
    size_t total = 0;
    for (std::string_view line : lines) total += line.size();
    if (scratch_.size() < total) scratch_.resize(total);
    char* out = scratch_.data();
    for (size_t j = 0; j < lines.size(); ++j) {
      Line& line = lines_[j];
      parse(first + j, lines[j], out, line);
      out += line.joined.size();
      line.left_hash = tokens_.hash(line.left);
      line.right_hash = tokens_.hash(line.right());
      tokens_.prefetch(line.left_hash);
      tokens_.prefetch(line.right_hash);
    }
    return lines.size();
  }

  /// Looks up the tokens of a line; kNone if the vocabulary lacks one.
  Line& look_up(size_t j) {
    Line& line = lines_[j];
    line.left_token = tokens_.find(line.left, line.left_hash);
    line.right_token = tokens_.find(line.right(), line.right_hash);
    line.token = find_joined(line.joined);
    if (line.token != TokenTable::kNone) hint_ = line.token;
    return line;
  }

  const Line& operator[](size_t j) const { return lines_[j]; }

 private:
  int32_t find_joined(std::string_view joined) const {
    for (const int32_t id : {hint_ + 1, hint_}) {
      if (static_cast<size_t>(id) < tokens_.size() && tokens_.type(id) == TokenType::normal &&
          tokens_.bytes(id) == joined) {
        return id;
      }
    }
    return tokens_.find(joined);
  }

  const TokenTable& tokens_;
  Line lines_[kLines];
  std::vector<char> scratch_;
  // The result of the previous merge. Vocabularies list most tokens in the order of their merges,
  // so the next result is nearly always this token or the one after it.
  int32_t hint_ = 0;
};

}  // namespace

void MergeTable::reserve(size_t merges) {
  if (merges >= kNoRank) throw Error("tokenizer", "too many merges", fmt::format("{}", merges));
  const size_t capacity = std::bit_ceil(merges + merges / 2 + 2);
  slots_.assign(capacity, Slot{kEmpty, 0, 0});
  mask_ = capacity - 1;
}

/// Of equal keys the first counts.
inline void MergeTable::insert(uint64_t key, size_t rank, int32_t token) {
  uint64_t i = hash(key) & mask_;
  while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask_;
  if (slots_[i].key == kEmpty) slots_[i] = {key, static_cast<uint32_t>(rank), token};
}

MergeTable::MergeTable(std::span<const std::string_view> merges, const TokenTable& tokens)
    : multipliers_(random_hash_key()) {
  reserve(merges.size());
  Block block(tokens);
  for (size_t first = 0; first < merges.size(); first += Block::kLines) {
    const size_t count = block.read(merges, first);
    for (size_t j = 0; j < count; ++j) {
      Line& line = block.look_up(j);
      line.key = make_key(line.left_token, line.right_token);
      __builtin_prefetch(&slots_[hash(line.key) & mask_]);
    }
    for (size_t j = 0; j < count; ++j) {
      const Line& line = block[j];
      if (line.left_token == TokenTable::kNone || line.right_token == TokenTable::kNone ||
          line.token == TokenTable::kNone) {
        continue;
      }
      insert(line.key, first + j, line.token);
    }
  }
}

MergeTable::MergeTable(std::span<const Rule> rules, const TokenTable& tokens, size_t skipped)
    : multipliers_(random_hash_key()) {
  reserve(rules.size());
  std::string joined;
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    if (rule.right.size() < skipped) continue;
    (joined = rule.left) += rule.right.substr(skipped);
    const int32_t left = tokens.find(rule.left), right = tokens.find(rule.right);
    const int32_t token = tokens.find(joined);
    if (left == TokenTable::kNone || right == TokenTable::kNone || token == TokenTable::kNone) {
      continue;
    }
    insert(make_key(left, right), i, token);
  }
}

void WordEncoder::encode(std::string_view word, std::vector<int32_t>& out) {
  if (word.size() < kLong) {
    int32_t token[kLong];
    size_t count = 0;
    for (const char c : word) {
      const int32_t id = tokens_.byte_token(static_cast<unsigned char>(c));
      if (id != TokenTable::kNone) token[count++] = id;
    }
    return merge_short(token, count, out);
  }
  nodes_.clear();
  for (const char c : word) {
    const int32_t id = tokens_.byte_token(static_cast<unsigned char>(c));
    if (id != TokenTable::kNone) add_node(id);
  }
  merge_nodes(out);
}

void WordEncoder::merge(std::span<const int32_t> symbols, std::vector<int32_t>& out) {
  if (symbols.size() < kLong) {
    int32_t token[kLong];
    std::copy(symbols.begin(), symbols.end(), token);
    return merge_short(token, symbols.size(), out);
  }
  nodes_.clear();
  for (const int32_t id : symbols) add_node(id);
  merge_nodes(out);
}

void WordEncoder::add_node(int32_t token) {
  const auto i = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({token, i - 1, i + 1, {MergeTable::kNoRank, 0}});  // node 0's previous is kEnd
}

// Quadratic, but faster than a heap for the words of real text.
void WordEncoder::merge_short(int32_t* __restrict token, size_t n, std::vector<int32_t>& out) {
  MergeTable::Merge merge[kLong];
  for (size_t i = 0; i + 1 < n; ++i) merge[i] = merges_.find(token[i], token[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (merge[i].rank < merge[best].rank) best = i;
    }
    if (merge[best].rank == MergeTable::kNoRank) break;
    token[best] = merge[best].token;
    --n;
    for (size_t i = best + 1; i < n; ++i) {
      token[i] = token[i + 1];
      merge[i] = merge[i + 1];
    }
    if (best > 0) merge[best - 1] = merges_.find(token[best - 1], token[best]);
    if (best + 1 < n) merge[best] = merges_.find(token[best], token[best + 1]);
  }
  out.insert(out.end(), token, token + n);
}

// Uses a doubly linked list of nodes and a heap of (rank, position): O(n log n). A heap entry is
// stale if its node has been merged into another or now merges at another rank.
void WordEncoder::merge_nodes(std::vector<int32_t>& out) {
  constexpr uint32_t kEnd = 0xffffffffu;
  heap_.clear();
  if (nodes_.empty()) return;
  nodes_.back().next = kEnd;
  const auto refresh = [&](uint32_t i) {
    Node& node = nodes_[i];
    node.merge = node.next == kEnd ? MergeTable::Merge{MergeTable::kNoRank, 0}
                                   : merges_.find(node.token, nodes_[node.next].token);
    if (node.merge.rank == MergeTable::kNoRank) return false;
    heap_.push_back((static_cast<uint64_t>(node.merge.rank) << 32) | i);
    return true;
  };
  for (uint32_t i = 0; i < nodes_.size(); ++i) refresh(i);
  const std::greater<> lowest_first;
  std::make_heap(heap_.begin(), heap_.end(), lowest_first);
  const auto push = [&](uint32_t i) {
    if (refresh(i)) std::push_heap(heap_.begin(), heap_.end(), lowest_first);
  };
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), lowest_first);
    const uint64_t entry = heap_.back();
    heap_.pop_back();
    const auto i = static_cast<uint32_t>(entry);
    Node& node = nodes_[i];
    if (node.merge.rank != static_cast<uint32_t>(entry >> 32)) continue;
    node.token = node.merge.token;
    const uint32_t gone = node.next;
    node.next = nodes_[gone].next;
    nodes_[gone].merge.rank = MergeTable::kNoRank;
    if (node.next != kEnd) nodes_[node.next].previous = i;
    push(i);
    if (node.previous != kEnd) push(node.previous);
  }
  for (uint32_t i = 0; i != kEnd; i = nodes_[i].next) out.push_back(nodes_[i].token);
}

/// Encodes words on one thread.
class ByteBpe::Words : public Model::Run {
 public:
  explicit Words(const ByteBpe& model) : model_(model), encoder_(model.tokens_, model.merges_) {}

  void encode(std::string_view word, std::vector<int32_t>& out) override {
    if (model_.unknown_ != TokenTable::kNone) return encode_unknown(word, out);
    if (word.size() == 1) {
      const int32_t id = model_.tokens_.byte_token(static_cast<unsigned char>(word[0]));
      if (id != TokenTable::kNone) out.push_back(id);
      return;
    }
    if (model_.whole_word_first_) {
      const int32_t id = model_.tokens_.find(word);
      if (id != TokenTable::kNone) {
        out.push_back(id);
        return;
      }
    }
    encoder_.encode(word, out);
  }

 private:
  /// As encode(), for vocabularies that lack bytes and have an unknown token.
  void encode_unknown(std::string_view word, std::vector<int32_t>& out) {
    if (model_.whole_word_first_) {
      const int32_t id = model_.tokens_.find(word);
      if (id != TokenTable::kNone) {
        out.push_back(id);
        return;
      }
    }
    symbols_.clear();
    bool after_unknown = false;
    for (const char c : word) {
      const int32_t id = model_.tokens_.byte_token(static_cast<unsigned char>(c));
      const bool known = id != TokenTable::kNone;
      if (known || !after_unknown || !model_.fuse_unknown_) {
        symbols_.push_back(known ? id : model_.unknown_);
      }
      after_unknown = !known;
    }
    encoder_.merge(symbols_, out);
  }

  const ByteBpe& model_;
  WordEncoder encoder_;
  std::vector<int32_t> symbols_;
};

ByteBpe::ByteBpe(std::span<const std::string_view> merges, const TokenTable& tokens,
                 bool whole_word_first, int32_t unknown, bool fuse_unknown)
    : tokens_(tokens),
      merges_(merges, tokens),
      whole_word_first_(whole_word_first),
      unknown_(TokenTable::kNone),
      fuse_unknown_(fuse_unknown) {
  if (!bytes_with_tokens(tokens).all()) unknown_ = unknown;
}

std::unique_ptr<Model::Run> ByteBpe::run() const { return std::make_unique<Words>(*this); }

}  // namespace wick::text
