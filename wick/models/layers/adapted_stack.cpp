#include "wick/models/layers/adapted_stack.h"

#include "wick/models/layers/adapted_linear.h"
#include "wick/models/layers/grouped.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

std::vector<Weight> weights_of(const Tensor& stack, Device device) {
  std::vector<Weight> weights;
  for (int64_t i = 0; i < stack.size(0); ++i) {
    const Tensor matrix = stack[i].contiguous();
    weights.emplace_back(std::span(&matrix, 1), device, false);
  }
  return weights;
}

}  // namespace

void StackUpdates::add(const std::string& name, int64_t count, int64_t n, int64_t k, int64_t offset,
                       std::span<const Adapter> adapters, Device device) {
  for (size_t i = 0; i < adapters.size(); ++i) {
    const MatrixChange* const change = adapters[i].find_stack(name, count, n, k);
    if (change == nullptr) continue;
    add(static_cast<int64_t>(i), change->a, change->b, offset, device);
  }
}

void StackUpdates::add(int64_t adapter, const Tensor& a, const Tensor& b, int64_t offset,
                       Device device) {
  updates_.push_back({.adapter = adapter,
                      .offset = offset,
                      .a = weights_of(a, device),
                      .b = weights_of(b, device)});
}

Tensor StackUpdates::operator()(const Tensor& y, const Tensor& x, const Tensor& ids,
                                Runs runs) const {
  if (!runs.scales.defined()) return y;
  Tensor result = y;
  const int64_t rows = y.size(0) * y.size(1);
  for (const Update& update : updates_) {
    const int64_t rank = update.a.front().n(), n = update.b.front().n();
    const Tensor inner = grouped_of_runs(x, update.a, ids, runs).reshape({rows, rank});
    const Tensor delta = grouped_of_runs(inner, update.b, ids.reshape({rows, 1}), runs);
    const Tensor scale = runs.scales.narrow(1, update.adapter, 1).unsqueeze(-1);  // [t, 1, 1]
    result =
        with_columns_added(result, update.offset, delta.reshape({y.size(0), y.size(1), n}) * scale);
  }
  return result;
}

}  // namespace wick::models
