#include "wick/models/layers/adapted_linear.h"

#include <algorithm>

#include "wick/models/observe.h"
#include "wick/models/weights.h"
#include "wick/tensor/ops.h"

namespace wick::models {

AdaptedLinear::AdaptedLinear(const std::vector<AdaptedMatrix>& matrices,
                             std::span<const Adapter> adapters, Device device, bool release) {
  std::vector<Tensor> bases, biases;
  int64_t offset = 0;
  for (const AdaptedMatrix& m : matrices) {
    const int64_t n = m.matrix.size(0), k = m.matrix.size(1);
    if (std::find(names_.begin(), names_.end(), m.name) == names_.end()) names_.push_back(m.name);
    bases.push_back(reordered(m.matrix, m.order));
    biases.push_back(reordered(m.bias, m.order));
    for (size_t i = 0; i < adapters.size(); ++i) {
      const Adapter::Factors* factors = adapters[i].find(m.name, n, k);
      if (factors == nullptr) continue;
      updates_.push_back({.adapter = static_cast<int64_t>(i),
                          .offset = offset,
                          .size = n,
                          .a = nn::Linear(factors->a, {}, device, false),
                          .b = nn::Linear(reordered(factors->b, m.order), {}, device, false)});
    }
    offset += n;
  }
  base_ = nn::Projections(bases, biases, device, release);
}

Tensor AdaptedLinear::operator()(const Tensor& x, Runs runs) const {
  if (InputObserver* const observer = input_observer()) observer->on_input(names_, x);
  Tensor y = base_.joined(x, runs.sequences);
  if (!runs.scales.defined()) return y;
  for (const Update& update : updates_) {
    const Tensor scale = runs.scales.narrow(1, update.adapter, 1);
    const Tensor delta = update.b(update.a(x, runs.sequences), runs.sequences) * scale;
    const int64_t before = update.offset, after = y.size(1) - before - update.size;
    const std::vector<Tensor> parts = y.split(std::vector<int64_t>{before, update.size, after}, -1);
    const Tensor changed[] = {parts[0], parts[1] + delta, parts[2]};
    y = before == 0 && after == 0 ? changed[1] : cat(changed, -1);
  }
  return y;
}

}  // namespace wick::models
