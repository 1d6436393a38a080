#include "wick/text/model/trie.h"

#include <algorithm>

#include "wick/base/error.h"

namespace wick::text {

Trie::Trie(std::span<const std::pair<std::string_view, int32_t>> keys) {
  units_.resize(256);
  based_.resize(256);
  free_.push_back(255);
  units_[kRoot].label = kFree - 1;  // in use, with a label that is no byte
  struct Range {
    size_t begin, end, depth;
    uint32_t node;
  };
  std::vector<Range> pending{{0, keys.size(), 0, kRoot}};
  std::vector<unsigned char> labels;
  std::vector<size_t> begins;
  while (!pending.empty()) {
    const Range range = pending.back();
    pending.pop_back();
    size_t begin = range.begin;
    if (begin < range.end && keys[begin].first.size() == range.depth) {
      units_[range.node].value = keys[begin].second;
      ++begin;
    }
    labels.clear();
    begins.clear();
    while (begin < range.end) {
      const char byte = keys[begin].first[range.depth];
      labels.push_back(static_cast<unsigned char>(byte));
      begins.push_back(begin);
      const auto same = [&](const auto& key) { return key.first[range.depth] == byte; };
      begin = static_cast<size_t>(
          std::partition_point(keys.begin() + static_cast<std::ptrdiff_t>(begin),
                               keys.begin() + static_cast<std::ptrdiff_t>(range.end), same) -
          keys.begin());
    }
    if (labels.empty()) continue;
    begins.push_back(range.end);
    const uint32_t base = find_base(labels);
    units_[range.node].base = base;
    based_[base] = true;
    free_[base / 256] -= static_cast<uint32_t>(labels.size());
    for (size_t i = 0; i < labels.size(); ++i) {
      const uint32_t child = base ^ labels[i];
      units_[child].label = labels[i];
      pending.push_back({begins[i], begins[i + 1], range.depth + 1, child});
    }
  }
}

/// Finds a base that is no other node's and whose units for `labels` are free. Only the last blocks
/// are searched, so that building takes linear time.
uint32_t Trie::find_base(std::span<const unsigned char> labels) {
  constexpr uint32_t kSearched = 4;
  const auto blocks = static_cast<uint32_t>(free_.size());
  for (uint32_t block = blocks > kSearched ? blocks - kSearched : 0; block < blocks; ++block) {
    if (free_[block] < labels.size()) continue;
    for (uint32_t base = block * 256; base < (block + 1) * 256; ++base) {
      if (based_[base]) continue;
      const auto is_free = [&](unsigned char label) { return units_[base ^ label].label == kFree; };
      if (std::all_of(labels.begin(), labels.end(), is_free)) return base;
    }
  }
  if (units_.size() + 256 >= kNoBase) throw Error("tokenizer", "the vocabulary is too large");
  units_.resize(units_.size() + 256);
  based_.resize(units_.size());
  free_.push_back(256);
  return blocks * 256;
}

}  // namespace wick::text
