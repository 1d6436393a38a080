#include "wick/models/layers/adapted_linear.h"

#include <algorithm>

#include "wick/models/observe.h"
#include "wick/models/weights.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

/// magnitude / ‖rows of W · scale + B·A‖, [n], of the rows in the file's order. Some rows are
/// decoded at a time.
Tensor row_gains(const AdaptedMatrix& m, const MatrixChange& change) {
  constexpr int64_t kElemsAtOnce = int64_t{1} << 22;
  constexpr int kColumns[] = {1};
  const int64_t n = m.matrix.size(0), k = m.matrix.size(1);
  const int64_t at_once = std::max<int64_t>(1, kElemsAtOnce / k);
  std::vector<Tensor> norms;
  for (int64_t first = 0; first < n; first += at_once) {
    const int64_t rows = std::min(at_once, n - first);
    const Tensor part = m.matrix.narrow(0, first, rows);
    Tensor w = is_block(part.dtype()) ? dequantize(part) : part.to(DType::f32);
    if (m.scale.defined()) w = w * m.scale;
    const Tensor adapted = w + matmul(change.b.narrow(0, first, rows), change.a);
    norms.push_back(sqrt(sum(sqr(adapted), kColumns)));
  }
  return change.magnitude / cat(norms, 0);
}

}  // namespace

AdaptedLinear::AdaptedLinear(const std::vector<AdaptedMatrix>& matrices,
                             std::span<const Adapter> adapters, Device device, bool release) {
  std::vector<Tensor> bases, biases;
  int64_t offset = 0;
  for (const AdaptedMatrix& m : matrices) {
    if (std::find(names_.begin(), names_.end(), m.name) == names_.end()) names_.push_back(m.name);
    bases.push_back(reordered(m.matrix, m.order));
    biases.push_back(reordered(m.bias, m.order));
    add_updates(m, offset, adapters, device);
    offset += m.matrix.size(0);
  }
  set_scales(matrices, biases, device);
  base_ = nn::Projections(bases, biases, device, release);
}

void AdaptedLinear::add_updates(const AdaptedMatrix& m, int64_t offset,
                                std::span<const Adapter> adapters, Device device) {
  const int64_t n = m.matrix.size(0), k = m.matrix.size(1);
  const auto on_device = [&](const Tensor& vector) {
    return vector.defined() ? reordered(vector, m.order).to(device) : Tensor();
  };
  const auto linear = [&](const Tensor& matrix) { return nn::Linear(matrix, {}, device, false); };
  for (size_t i = 0; i < adapters.size(); ++i) {
    const MatrixChange* const change =
        adapters[i].find(m.adapted.empty() ? m.name : m.adapted, n, k);
    if (change == nullptr) continue;
    Update update{.adapter = static_cast<int64_t>(i), .offset = offset, .size = n};
    Tensor gain, b = change->b;
    if (change->magnitude.defined()) {
      const Tensor rows = row_gains(m, *change);
      b = b * rows.unsqueeze(1);
      gain = rows - 1.0;
    } else if (change->whole.defined()) {
      gain = Tensor::full({n}, -1.0, DType::f32);
    }
    if (change->a.defined()) {
      update.a = linear(change->a);
      update.b = linear(reordered(b, m.order));
    } else if (change->whole.defined()) {
      update.b = linear(reordered(change->whole, m.order));
    }
    Tensor shift = change->shift;
    if (change->bias.defined()) {
      const Tensor more = m.bias.defined() ? change->bias - m.bias.to(DType::f32) : change->bias;
      shift = shift.defined() ? shift + more : more;
    }
    update.gain = on_device(gain), update.shift = on_device(shift);
    updates_.push_back(std::move(update));
  }
}

void AdaptedLinear::set_scales(const std::vector<AdaptedMatrix>& matrices,
                               std::vector<Tensor>& biases, Device device) {
  const auto defined = [](const Tensor& t) { return t.defined(); };
  const bool scaled = std::any_of(matrices.begin(), matrices.end(),
                                  [](const AdaptedMatrix& m) { return m.scale.defined(); });
  const bool gains = std::any_of(updates_.begin(), updates_.end(),
                                 [](const Update& update) { return update.gain.defined(); });
  if (!scaled && !gains) return;
  const bool biased = std::any_of(biases.begin(), biases.end(), defined);
  std::vector<Tensor> scales;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const Shape rows{matrices[i].matrix.size(0)};
    const Tensor& scale = matrices[i].scale;
    scales.push_back(scale.defined() ? scale.broadcast_to(rows) : Tensor::ones(rows, DType::f32));
    if (biased && !biases[i].defined()) biases[i] = Tensor::zeros(rows, DType::f32);
  }
  if (scaled) scales_ = cat(scales, 0).to(device);
  if (biased) biases_ = cat(biases, 0).to(device);
  std::fill(biases.begin(), biases.end(), Tensor());
}

/// y' − y of an update's columns, [t, size].
Tensor AdaptedLinear::difference(const Update& update, const Tensor& x, const Tensor& product,
                                 Runs runs) const {
  Tensor sum;
  const auto add = [&](const Tensor& part) { sum = sum.defined() ? sum + part : part; };
  if (update.b) add((*update.b)(update.a ? (*update.a)(x, runs.sequences) : x, runs.sequences));
  if (update.gain.defined()) add(product.narrow(1, update.offset, update.size) * update.gain);
  if (update.shift.defined()) {
    add(sum.defined() ? update.shift : update.shift.broadcast_to({x.size(0), update.size}));
  }
  return sum;
}

Tensor AdaptedLinear::operator()(const Tensor& x, Runs runs) const {
  if (InputObserver* const observer = input_observer()) observer->on_input(names_, x);
  Tensor y = base_.joined(x, runs.sequences);
  if (scales_.defined()) y = y * scales_;
  const Tensor product = y;
  if (biases_.defined()) y = y + biases_;
  if (!runs.scales.defined()) return y;
  for (const Update& update : updates_) {
    const Tensor scale = runs.scales.narrow(1, update.adapter, 1);
    y = with_columns_added(y, update.offset, difference(update, x, product, runs) * scale);
  }
  return y;
}

Tensor with_columns_added(const Tensor& y, int64_t offset, const Tensor& part) {
  const int64_t size = part.size(-1), after = y.size(-1) - offset - size;
  if (offset == 0 && after == 0) return y + part;
  const std::vector<Tensor> parts = y.split(std::vector<int64_t>{offset, size, after}, -1);
  const Tensor changed[] = {parts[0], parts[1] + part, parts[2]};
  return cat(changed, -1);
}

}  // namespace wick::models
