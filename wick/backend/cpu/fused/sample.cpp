#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"
#include "wick/base/sampling/sampler.h"

namespace wick::cpu {
namespace {

/// Element [row, i] of a matrix of words, or [row] of a vector.
uint32_t& word(const View& view, int64_t row, int64_t i = 0) {
  const Layout& l = view.layout;
  const int64_t at = row * l.stride(0) + (l.rank() > 1 ? i * l.stride(1) : 0);
  return static_cast<uint32_t*>(view.data)[l.offset() + at];
}

SamplerOptions options_of(const ConstView& words, int64_t row) {
  const Layout& l = words.layout;
  std::array<uint32_t, kSamplerWords> all;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<const uint32_t*>(
        words.data)[l.offset() + row * l.stride(0) + static_cast<int64_t>(i) * l.stride(1)];
  }
  return sampler_options(all);
}

void sample_row(const SampleState& state, int64_t row, const ConstView& logits) {
  const int64_t count = logits.layout.shape()[1], step = logits.layout.stride(1);
  const float* from = static_cast<const float*>(logits.data) + logits.layout.offset() +
                      row * logits.layout.stride(0);
  std::vector<float> dense;
  if (step != 1) {
    for (int64_t i = 0; i < count; ++i) dense.push_back(from[i * step]);
    from = dense.data();
  }
  const SamplerOptions options = options_of(state.options, row);
  const int64_t room = state.history.layout.shape()[1];
  uint32_t &tokens = word(state.counts, row, 0), &draws = word(state.counts, row, 1);
  if (room > 0 && tokens >= room) {
    throw Error(ErrorKind::runtime, "sample", "the history is full", std::to_string(tokens));
  }
  std::vector<int32_t> history;
  if (room > 0) {
    // Only the tokens that penalties use.
    const int64_t wanted = options.penalty_window >= 0 ? options.penalty_window : tokens;
    for (int64_t i = std::max<int64_t>(0, tokens - wanted); i < tokens; ++i) {
      history.push_back(static_cast<int32_t>(word(state.history, row, i)));
    }
  }
  Sampler sampler(options);
  sampler.set_draws(draws);
  const auto token =
      static_cast<uint32_t>(sampler.sample({from, static_cast<size_t>(count)}, history));
  word(state.tokens, row) = token;
  ++word(state.positions, row);
  if (room > 0) word(state.history, row, tokens++) = token;
  if (sampler.draws()) ++draws;
  uint32_t& chosen = word(state.counts, row, 2);
  word(state.chosen, chosen++ % state.chosen.layout.shape()[0], row) = token;
}

}  // namespace

void CpuBackend::sample(const SampleState& state, const ConstView& logits) {
  for (int64_t row = 0; row < logits.layout.shape()[0]; ++row) sample_row(state, row, logits);
}

}  // namespace wick::cpu
