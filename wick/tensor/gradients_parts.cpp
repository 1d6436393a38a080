// Gradient rules of the ops that copy parts: cat, pad, roll, repeat, tril and triu.

#include <vector>

#include "wick/tensor/gradients.h"

namespace wick::tape {

void cat_rule(const Vjp& v) {
  const int along = v.get<AlongDim>().dim;
  int64_t at = 0;
  for (size_t i = 0; i < v.inputs(); ++i) {
    const int64_t size = v.x(i).shape()[along];
    v.to_if_wanted(i, [&] { return v.grad().narrow(along, at, size); });
    at += size;
  }
}

void roll_rule(const Vjp& v) {
  auto [by, along] = v.get<Shifts>();
  for (int64_t& shift : by) shift = -shift;
  const auto count = static_cast<size_t>(along.count);
  v.to_x(roll(v.grad(), std::span(by.data(), count), std::span(along.dims.data(), count)));
}

/// Sums over the repetitions of each dim.
void repeat_rule(const Vjp& v) {
  const Shape& shape = v.x().shape();
  Tensor sums = v.grad();
  const std::span<const int64_t> whole = sums.shape().dims();
  std::vector<int64_t> sizes(whole.begin(), whole.end());
  const int more = sums.rank() - shape.rank();
  for (int d = 0; d < sums.rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    const int64_t size = d < more ? 1 : shape[d - more], all = sizes[at];
    if (all == size) continue;
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < at; ++i) outer *= sizes[i];
    for (size_t i = at + 1; i < sizes.size(); ++i) inner *= sizes[i];
    sizes[at] = size;
    sums = sum(sums.reshape({outer, all / size, size, inner}), 1).reshape(Shape(sizes));
  }
  v.to_x(sums.reshape(shape));
}

/// Adds the gradients of copied padding to the elements from which it was copied, in the reverse
/// order of pad's dims.
void pad_rule(const Vjp& v) {
  const auto& [padding, count, mode, value] = v.get<PadParams>();
  const int first = v.x().rank() - count;
  Tensor g = v.grad();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const int d = first + static_cast<int>(i), behind = g.rank() - 1 - d;
    const auto [before, after] = padding[i];
    const int64_t size = v.x().shape()[d];
    const auto place = [&, behind = behind](const Tensor& part, int64_t front, int64_t back) {
      std::vector<Padding> around(static_cast<size_t>(behind + 1));
      around[0] = {front, back};
      return pad(part, around);
    };
    const Tensor front = g.narrow(d, 0, before), back = g.narrow(d, before + size, after);
    g = g.narrow(d, before, size);
    if (mode == PadMode::reflect) {
      if (before > 0) g = g + place(flip(front, d), 1, size - 1 - before);
      if (after > 0) g = g + place(flip(back, d), size - 1 - after, 1);
    } else if (mode == PadMode::replicate) {
      if (before > 0) g = g + place(sum(front, d, true), 0, size - 1);
      if (after > 0) g = g + place(sum(back, d, true), size - 1, 0);
    }
  }
  v.to_x(g);
}

void tril_rule(const Vjp& v) { v.to_x(tril(v.grad(), v.get<Diagonal>().diagonal)); }
void triu_rule(const Vjp& v) { v.to_x(triu(v.grad(), v.get<Diagonal>().diagonal)); }

}  // namespace wick::tape
