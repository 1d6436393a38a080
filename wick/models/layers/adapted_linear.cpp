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
  set_scales(matrices, biases, device);
  base_ = nn::Projections(bases, biases, device, release);
}

void AdaptedLinear::set_scales(const std::vector<AdaptedMatrix>& matrices,
                               std::vector<Tensor>& biases, Device device) {
  const auto defined = [](const Tensor& t) { return t.defined(); };
  if (std::none_of(matrices.begin(), matrices.end(),
                   [](const AdaptedMatrix& m) { return m.scale.defined(); })) {
    return;
  }
  const bool biased = std::any_of(biases.begin(), biases.end(), defined);
  std::vector<Tensor> scales;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const Shape rows{matrices[i].matrix.size(0)};
    const Tensor& scale = matrices[i].scale;
    scales.push_back(scale.defined() ? scale.broadcast_to(rows) : Tensor::ones(rows, DType::f32));
    if (biased && !biases[i].defined()) biases[i] = Tensor::zeros(rows, DType::f32);
  }
  scales_ = cat(scales, 0).to(device);
  if (biased) biases_ = cat(biases, 0).to(device);
  std::fill(biases.begin(), biases.end(), Tensor());
}

Tensor AdaptedLinear::operator()(const Tensor& x, Runs runs) const {
  if (InputObserver* const observer = input_observer()) observer->on_input(names_, x);
  Tensor y = base_.joined(x, runs.sequences);
  if (scales_.defined()) y = y * scales_;
  if (biases_.defined()) y = y + biases_;
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
