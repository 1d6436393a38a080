#include <fmt/format.h>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/sample_call.h"
#include "wick/backend/gpu/space.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

uint32_t* words(const View& view) {
  return static_cast<uint32_t*>(view.data) + view.layout.offset();
}

}  // namespace

void GpuBackend::sample(const SampleState& state, const ConstView& logits,
                        const SamplerOptions& options) {
  const Sampler checked(options);  // throws for options out of range
  const int64_t count = logits.layout.shape()[0];
  if (count == 0) throw Error("sample", "no logits");
  if (count > (int64_t{1} << 21) - 1) {
    throw Error("sample", "too many logits", fmt::format("{}", count), "need < 2^21");
  }
  const bool penalties = options.penalizes();
  SampleCall c{};
  c.logits = static_cast<const float*>(logits.data) + logits.layout.offset();
  c.step = logits.layout.stride(0), c.count = static_cast<uint32_t>(count);
  c.by_fours = access_of(logits).vectors_of(4) ? 1 : 0;

  const size_t slabs = (static_cast<size_t>(count) + kSlab - 1) / kSlab;
  const Scratch largest(gpu_, slabs * sizeof(uint32_t));
  const Scratch penalized(gpu_, penalties ? static_cast<size_t>(count) * sizeof(float) : 0);
  c.largest = largest.data<uint32_t>();
  if (penalties) c.penalized = penalized.data<float>();
  c.arrived = gpu_.zeros();

  c.token = words(state.token), c.position = words(state.position);
  c.history = words(state.history), c.counts = words(state.counts);
  c.history_step = state.history.layout.stride(0), c.counts_step = state.counts.layout.stride(0);
  c.room = static_cast<uint32_t>(state.history.layout.elems());
  c.window = static_cast<uint32_t>(options.penalty_window);  // -1: more than there can be
  c.repetition = options.repetition_penalty, c.presence = options.presence_penalty;
  c.frequency = options.frequency_penalty;
  c.temperature = options.temperature, c.top_p = options.top_p, c.min_p = options.min_p;
  c.top_k = static_cast<uint32_t>(options.top_k), c.seed = options.seed;
  c.faults = gpu_.fault_line();
  c.note = gpu_.note("sample", logits, state.history, count);
  gpu_.launch("sample", "sample",
              Grid{.groups = {(c.count + kGroupLogits - 1) / kGroupLogits, 1, 1},
                   .items = kSampleItems,
                   .early = true},
              c);
}

}  // namespace wick::gpu
