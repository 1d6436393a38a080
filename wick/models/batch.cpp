#include "wick/models/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wick/base/error.h"

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
    throw Error("forward", "a sequence is given twice", fmt::format("{}", *twice));
  }
}

/// Whether the next rows of a sequence are on both sides of a multiple of `chunk`.
bool crosses_chunks(const nn::KvCache& cache, std::span<const int64_t> sequences, int64_t rows,
                    int64_t chunk) {
  return chunk > 0 && std::any_of(sequences.begin(), sequences.end(), [&](int64_t sequence) {
           return cache.length(sequence) % chunk + rows > chunk;
         });
}

}  // namespace

std::vector<float> scales_of(std::span<const float> given, int64_t adapters) {
  if (static_cast<int64_t>(given.size()) > adapters) {
    throw Error("forward", "more scales than adapters", fmt::format("{}", given.size()),
                fmt::format("there are {}", adapters));
  }
  std::vector<float> scales(given.begin(), given.end());
  for (const float scale : scales) {
    if (!std::isfinite(scale)) {
      throw Error("forward", "scale of an adapter isn't finite", fmt::format("{}", scale));
    }
  }
  scales.resize(static_cast<size_t>(adapters), 1.0f);
  return scales;
}

Batch Batch::of(nn::KvCache& cache, std::span<const BatchInput> inputs, Logits logits,
                const BatchOptions& options, Device device) {
  const auto [vocabulary, adapters, chunk, short_context] = options;
  check(inputs, vocabulary);
  std::vector<float> scales;
  std::vector<bool> is_long;
  std::vector<uint32_t> tokens, positions, last;
  for (const BatchInput& input : inputs) {
    const auto count = static_cast<int64_t>(input.tokens.size());
    cache.reserve(count, input.sequence);
    tokens.insert(tokens.end(), input.tokens.begin(), input.tokens.end());
    for (int64_t i = 0; i < count; ++i) {
      positions.push_back(static_cast<uint32_t>(cache.length(input.sequence) + i));
    }
    last.push_back(static_cast<uint32_t>(tokens.size()) - 1);
    if (short_context > 0) {
      const int64_t end = std::max(input.end, cache.length(input.sequence) + count);
      is_long.insert(is_long.end(), input.tokens.size(), end > short_context);
    }
    const std::vector<float> of_row = scales_of(input.scales, adapters);
    for (int64_t i = 0; i < count; ++i) scales.insert(scales.end(), of_row.begin(), of_row.end());
  }
  const auto on_device = [&](const std::vector<uint32_t>& words) {
    return Tensor::from(words, {static_cast<int64_t>(words.size())}, device);
  };
  Batch batch;
  batch.tokens = on_device(tokens);
  if (adapters > 0) {
    batch.scales = Tensor::from(scales, {static_cast<int64_t>(tokens.size()), adapters}, device);
  }
  if (logits == Logits::last && last.size() < tokens.size()) batch.wanted = on_device(last);
  const Tensor all_positions = on_device(positions);
  const Tensor all_long =
      short_context > 0 ? Tensor::from(is_long, {batch.rows(), 1}, device) : Tensor();
  // Page tables are made after pages have been reserved for all sequences.
  int64_t first = 0;
  for (size_t i = 0; i < inputs.size();) {
    const size_t each = inputs[i].tokens.size();
    std::vector<int64_t> sequences;
    while (i < inputs.size() && inputs[i].tokens.size() == each) {
      sequences.push_back(inputs[i++].sequence);
    }
    const auto add = [&](std::span<const int64_t> of, int64_t count) {
      batch.runs.push_back({all_positions.narrow(0, first, count), cache.tables(of, device),
                            cache.has_states() ? cache.slots(of, device) : Tensor(),
                            short_context > 0 ? all_long.narrow(0, first, count) : Tensor()});
      first += count;
    };
    const auto rows = static_cast<int64_t>(each);
    if (!crosses_chunks(cache, sequences, rows, chunk)) {
      add(sequences, static_cast<int64_t>(sequences.size()) * rows);
      continue;
    }
    for (const int64_t sequence : sequences) {
      for (int64_t done = 0; done < rows;) {
        const int64_t left = chunk - (cache.length(sequence) + done) % chunk;
        const int64_t count = std::min(left, rows - done);
        add({&sequence, 1}, count);
        done += count;
      }
    }
  }
  return batch;
}

Batch Batch::to(Device device) const {
  Batch moved{.tokens = tokens.to(device),
              .runs = {},
              .scales = scales.to(device),
              .wanted = wanted.to(device)};
  for (const Run& run : runs) {
    moved.runs.push_back({run.positions.to(device), run.tables.to(device), run.slots.to(device),
                          run.is_long.to(device)});
  }
  return moved;
}

const Batch& BatchOnDevices::on(Device device) {
  for (const Batch& copy : copies_) {
    if (copy.tokens.device() == device) return copy;
  }
  return copies_.emplace_back(copies_.front().to(device));
}

}  // namespace wick::models
