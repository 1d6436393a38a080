#include <fmt/format.h>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/index/index_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

const KernelFamily<SampleArgs> kSample("sample", "sample");

uint32_t* words(const View& view) {
  return static_cast<uint32_t*>(view.data) + view.layout.offset();
}

}  // namespace

void GpuBackend::sample(const SampleState& state, const ConstView& logits) {
  const int64_t rows = logits.layout.shape()[0], count = logits.layout.shape()[1];
  if (rows == 0) return;
  if (count == 0) throw Error("sample", "no logits");
  if (count > (int64_t{1} << 21) - 1) {
    throw Error("sample", "too many logits", fmt::format("{}", count), "need < 2^21");
  }
  if (rows >= Gpu::kZeros) throw Error("sample", "too many sequences", fmt::format("{}", rows));
  SampleArgs c{};
  c.logits = static_cast<const float*>(logits.data) + logits.layout.offset();
  c.row = logits.layout.stride(0), c.step = logits.layout.stride(1);
  c.count = static_cast<uint32_t>(count);
  c.by_fours = access_of(logits).vectors_of(4) ? 1 : 0;

  const size_t slabs = (static_cast<size_t>(count) + kSlab - 1) / kSlab;
  const auto all = static_cast<size_t>(rows);
  const Scratch largest(gpu_, all * slabs * sizeof(uint32_t));
  const Scratch penalized(gpu_, all * static_cast<size_t>(count) * sizeof(float));
  c.largest = largest.data<uint32_t>(), c.penalized = penalized.data<float>();
  c.arrived = gpu_.zeros();

  const Layout &history = state.history.layout, &counts = state.counts.layout;
  c.tokens = words(state.tokens), c.token_step = state.tokens.layout.stride(0);
  c.positions = words(state.positions), c.position_step = state.positions.layout.stride(0);
  c.history = words(state.history), c.counts = words(state.counts);
  c.history_row = history.stride(0), c.history_step = history.stride(1);
  c.counts_row = counts.stride(0), c.counts_step = counts.stride(1);
  c.options = static_cast<const uint32_t*>(state.options.data) + state.options.layout.offset();
  c.options_row = state.options.layout.stride(0), c.options_step = state.options.layout.stride(1);
  const Layout& chosen = state.chosen.layout;
  c.chosen = words(state.chosen), c.places = static_cast<uint32_t>(chosen.shape()[0]);
  c.chosen_row = chosen.stride(0), c.chosen_step = chosen.stride(1);
  c.room = static_cast<uint32_t>(history.shape()[1]);
  c.faults = gpu_.fault_line();
  c.note = gpu_.note("sample", logits, state.history, count);
  kSample().launch(
      gpu_,
      Grid{.blocks = {(c.count + kBlockLogits - 1) / kBlockLogits, static_cast<unsigned>(rows), 1},
           .threads = kSampleThreads,
           .pdl = true},
      c);
}

}  // namespace wick::gpu
