#include <algorithm>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

uint32_t& word(const View& view, int64_t i) {
  return static_cast<uint32_t*>(view.data)[view.layout.offset() + i * view.layout.stride(0)];
}

}  // namespace

void CpuBackend::sample(const SampleState& state, const ConstView& logits,
                        const SamplerOptions& options) {
  const int64_t count = logits.layout.shape()[0], step = logits.layout.stride(0);
  const float* from = static_cast<const float*>(logits.data) + logits.layout.offset();
  std::vector<float> row;
  if (step != 1) {
    for (int64_t i = 0; i < count; ++i) row.push_back(from[i * step]);
    from = row.data();
  }
  const int64_t room = state.history.layout.elems();
  uint32_t &tokens = word(state.counts, 0), &draws = word(state.counts, 1);
  if (room > 0 && tokens >= room) {
    throw Error(ErrorKind::runtime, "sample", "the history is full", std::to_string(tokens));
  }
  std::vector<int32_t> history;
  if (room > 0) {
    // What the penalties look at, no more.
    const int64_t wanted = options.penalty_window >= 0 ? options.penalty_window : tokens;
    for (int64_t i = std::max<int64_t>(0, tokens - wanted); i < tokens; ++i) {
      history.push_back(static_cast<int32_t>(word(state.history, i)));
    }
  }
  Sampler sampler(options);
  sampler.set_draws(draws);
  const auto token =
      static_cast<uint32_t>(sampler.sample({from, static_cast<size_t>(count)}, history));
  word(state.token, 0) = token;
  ++word(state.position, 0);
  if (room > 0) word(state.history, tokens++) = token;
  if (sampler.draws()) ++draws;
}

}  // namespace wick::cpu
