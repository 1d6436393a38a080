#include "wick/models/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

void check(std::span<const BatchInput> inputs, int64_t vocabulary) {
  if (inputs.empty()) throw Error("forward", "no sequences");
  std::vector<int64_t> seen;
  for (const BatchInput& input : inputs) {
    if (input.tokens.empty()) throw Error("forward", "no tokens");
    seen.push_back(input.sequence);
    for (int32_t id : input.tokens) {
      if (id >= 0 && id < vocabulary) continue;
      throw Error(ErrorKind::index, "forward", "token id out of range", fmt::format("{}", id),
                  fmt::format("the vocabulary has {}", vocabulary));
    }
  }
  std::sort(seen.begin(), seen.end());
  if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end()) {
    throw Error("forward", "a sequence is there twice", fmt::format("{}", *twice));
  }
}

}  // namespace

Batch Batch::of(nn::KvCache& cache, std::span<const BatchInput> inputs, Logits logits,
                int64_t vocabulary, Device device) {
  check(inputs, vocabulary);
  std::vector<uint32_t> tokens, positions;
  Batch batch;
  batch.all_wanted = logits == Logits::all;
  for (const BatchInput& input : inputs) {
    const auto count = static_cast<int64_t>(input.tokens.size());
    cache.reserve(count, input.sequence);
    tokens.insert(tokens.end(), input.tokens.begin(), input.tokens.end());
    for (int64_t i = 0; i < count; ++i) {
      positions.push_back(static_cast<uint32_t>(cache.length(input.sequence) + i));
    }
    batch.wanted.push_back(static_cast<int64_t>(tokens.size()) - 1);
  }
  const auto rows = static_cast<int64_t>(tokens.size());
  if (batch.all_wanted) {
    batch.wanted.resize(tokens.size());
    std::iota(batch.wanted.begin(), batch.wanted.end(), int64_t{0});
  }
  batch.all_wanted = static_cast<int64_t>(batch.wanted.size()) == rows;
  batch.tokens = Tensor::from(tokens, {rows}, device);
  batch.positions = Tensor::from(positions, {rows}, device);

  // Tables are made when all pages have been handed out.
  int64_t first = 0;
  for (size_t i = 0; i < inputs.size();) {
    const size_t each = inputs[i].tokens.size();
    std::vector<int64_t> sequences;
    while (i < inputs.size() && inputs[i].tokens.size() == each) {
      sequences.push_back(inputs[i++].sequence);
    }
    const auto count = static_cast<int64_t>(sequences.size() * each);
    batch.runs.push_back({first, count, cache.tables(sequences)});
    first += count;
  }
  return batch;
}

Batch Batch::slice(int64_t first, int64_t count) const {
  if (first == 0 && count == rows()) return *this;
  Batch part;
  part.tokens = tokens.narrow(0, first, count);
  part.positions = positions.narrow(0, first, count);
  for (const Run& run : runs) {
    const int64_t begin = std::max(first, run.first);
    const int64_t end = std::min(first + count, run.first + run.rows);
    if (begin >= end) continue;
    const int64_t each = run.rows / run.tables.size(0);
    const int64_t from = (begin - run.first) / each, to = (end - run.first - 1) / each + 1;
    const bool whole = (begin - run.first) % each == 0 && (end - run.first) % each == 0;
    if (!whole && to - from > 1) {
      throw Error("batch", "a slice through several sequences",
                  fmt::format("rows {} to {}", begin, end));
    }
    part.runs.push_back({begin - first, end - begin, run.tables.narrow(0, from, to - from)});
  }
  for (int64_t row : wanted) {
    if (row >= first && row < first + count) part.wanted.push_back(row - first);
  }
  part.all_wanted = static_cast<int64_t>(part.wanted.size()) == count;
  return part;
}

Tensor Batch::wanted_of(const Tensor& x) const {
  if (all_wanted) return x;
  const auto count = static_cast<int64_t>(wanted.size());
  const bool neighbours = wanted.empty() || wanted.back() - wanted.front() + 1 == count;
  if (neighbours) return x.narrow(0, wanted.empty() ? 0 : wanted.front(), count);
  const std::vector<uint32_t> ids(wanted.begin(), wanted.end());
  return index_select(x, Tensor::from(ids, {count}, x.device()), 0);
}

}  // namespace wick::models
