// Recurrences over the rows of sequences, and the states that they leave.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/soak/soak.h"
#include "wick/tensor/ops.h"

namespace wick::soak {
namespace {

/// Sequences with their rows of a state, and one row that belongs to none.
struct Sequences {
  int64_t count, each;
  std::vector<uint32_t> slots;
  Operand start;  // f32 [count + 1, ..]
  Tensor state, of_rows;

  Sequences(Case& c, int64_t sequences, int64_t rows, const Shape& shape)
      : count(sequences),
        each(rows),
        start(c.operand(DType::f32, shape.with_inserted(0, sequences + 1))) {
    for (int64_t i = 0; i < count; ++i) slots.push_back(static_cast<uint32_t>(count - i));
    state = start.x.detach().clone();
    of_rows = c.once<Tensor>([&] { return Tensor::from(slots, {count}, c.device); });
    c.note(fmt::format("{} sequences of {} rows", count, each));
  }
  int64_t state_at(int64_t sequence) const {
    return int64_t{slots[static_cast<size_t>(sequence)]} * (start.a.elems() / (count + 1));
  }
};

/// Values with the sums of the magnitudes of their terms.
struct Sum {
  Real value = 0, terms = 0;
  void add(Real x, Real magnitude) { value += x, terms += magnitude; }
};

/// Expects a result and a state. `steps`: the rounded steps that lead to an element.
void expect_both(Case& c, const Tensor& y, const std::vector<Sum>& of_y, const Tensor& state,
                 const std::vector<Sum>& of_state, Real steps) {
  const auto expect = [&](const Tensor& got, const std::vector<Sum>& sums, Real ulps) {
    Array exact(got.dtype(), got.shape());
    Bound bound{ulps, {}};
    for (size_t i = 0; i < sums.size(); ++i) {
      exact[static_cast<int64_t>(i)] = sums[i].value;
      bound.slack.push_back(steps * 0x1p-22L * sums[i].terms + 0x1p-100L);
    }
    c.expect(got, exact, bound);
  };
  expect(y, of_y, 1);
  expect(state, of_state, 1);
}

std::vector<Sum> sums_of(const Array& x) {
  std::vector<Sum> sums;
  for (const Real v : x.v) sums.push_back({v, std::fabs(v)});
  return sums;
}

void conv(Case& c) {
  const DType dtype = c.dtype(dtypes::kActivations);
  const int64_t taps = c.between(1, 5), channels = c.size(150), each = c.between(0, 7);
  const Sequences of(c, c.between(1, 4), each, {taps - 1, channels});
  const Operand x = c.operand(dtype, {of.count * each, channels});
  const Operand w = c.operand(c.dtype(dtypes::kActivations), {channels, taps});
  const Operand bias = c.operand(c.dtype(dtypes::kActivations), {channels});
  const bool has_bias = c.one_in(2);
  std::vector<Sum> state = sums_of(of.start.a), y;
  for (int64_t s = 0; s < of.count; ++s) {
    const auto input = [&](int64_t row, int64_t i) {
      return row < 0 ? of.start.a[of.state_at(s) + (row + taps - 1) * channels + i]
                     : x.a[(s * each + row) * channels + i];
    };
    for (int64_t row = 0; row < each; ++row) {
      for (int64_t i = 0; i < channels; ++i) {
        Sum sum;
        if (has_bias) sum.add(bias.a[i], std::fabs(bias.a[i]));
        for (int64_t j = 0; j < taps; ++j) {
          const Real term = w.a[i * taps + j] * input(row - taps + 1 + j, i);
          sum.add(term, std::fabs(term));
        }
        y.push_back(sum);
      }
    }
    if (y.empty()) continue;
    for (int64_t j = 0; j < taps - 1; ++j) {
      for (int64_t i = 0; i < channels; ++i) {
        const Real v = input(each - taps + 1 + j, i);
        state[static_cast<size_t>(of.state_at(s) + j * channels + i)] = {v, 0};
      }
    }
  }
  const Tensor got = causal_conv(x.x, w.x, of.state, of.of_rows, has_bias ? bias.x : Tensor());
  expect_both(c, got, y, of.state, state, static_cast<Real>(taps + 2));
}

/// Sizes of a scan.
struct Sizes {
  int64_t heads, groups, m, columns, each;
  explicit Sizes(Case& c)
      : groups(c.between(1, 3)), m(c.size(40)), columns(c.size(70)), each(c.between(0, 3)) {
    heads = groups * c.between(1, 3);
  }
  Real steps() const { return static_cast<Real>((m + 16) * (each + 1)); }
};

void ssm(Case& c) {
  const DType dtype = c.dtype(dtypes::kActivations);
  const Sizes n(c);
  const Sequences of(c, c.between(1, 3), n.each, {n.heads, n.m, n.columns});
  const int64_t rows = of.count * n.each;
  const Operand x = c.operand(dtype, {rows, n.heads, n.columns});
  const Operand dt = c.operand(DType::f32, {rows, n.heads}, Values::positive);
  const Operand a = c.operand(DType::f32, {n.heads}, Values::positive);  // negated
  const Operand b = c.operand(dtype, {rows, n.groups, n.m}),
                k = c.operand(dtype, {rows, n.groups, n.m});
  const Operand d = c.operand(DType::f32, {n.heads});
  const bool has_d = c.one_in(2);
  std::vector<Sum> state = sums_of(of.start.a), y(static_cast<size_t>(x.a.elems()));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t at = 0; at < n.heads * n.columns; ++at) {
      const int64_t head = at / n.columns, column = at % n.columns;
      const int64_t shared = (row * n.groups + head / (n.heads / n.groups)) * n.m;
      const Real step = dt.a[row * n.heads + head], decay = std::exp(-step * a.a[head]);
      const Real v = x.a[row * n.heads * n.columns + at];
      Sum sum;
      for (int64_t i = 0; i < n.m; ++i) {
        Sum& s = state[static_cast<size_t>(of.state_at(row / n.each) +
                                           (head * n.m + i) * n.columns + column)];
        const Real added = step * v * b.a[shared + i];
        // The error of dt · a is an error of the decay times dt · a.
        s = {s.value * decay + added, s.terms * decay * (1 + step * a.a[head]) + std::fabs(added)};
        sum.add(s.value * k.a[shared + i], s.terms * std::fabs(k.a[shared + i]));
      }
      if (has_d) sum.add(d.a[head] * v, std::fabs(d.a[head] * v));
      y[static_cast<size_t>(row * n.heads * n.columns + at)] = sum;
    }
  }
  const Tensor got =
      ssm_scan(x.x, dt.x, neg(a.x), b.x, k.x, of.state, of.of_rows, has_d ? d.x : Tensor());
  expect_both(c, got, y, of.state, state, n.steps());
}

void delta(Case& c) {
  const DType dtype = c.dtype(dtypes::kActivations);
  const Sizes n(c);
  const Sequences of(c, c.between(1, 3), n.each, {n.heads, n.m, n.columns});
  const int64_t rows = of.count * n.each;
  const Operand v = c.operand(dtype, {rows, n.heads, n.columns});
  const Operand q = c.operand(dtype, {rows, n.groups, n.m}),
                k = c.operand(dtype, {rows, n.groups, n.m});
  const Operand g = c.operand(DType::f32, {rows, n.heads}, Values::positive);  // negated
  const Operand beta = c.operand(DType::f32, {rows, n.heads}, Values::positive);
  std::vector<Sum> state = sums_of(of.start.a), y(static_cast<size_t>(v.a.elems()));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t at = 0; at < n.heads * n.columns; ++at) {
      const int64_t head = at / n.columns, column = at % n.columns;
      const int64_t shared = (row * n.groups + head / (n.heads / n.groups)) * n.m;
      const Real log_decay = g.a[row * n.heads + head], decay = std::exp(-log_decay);
      const auto s = [&](int64_t i) -> Sum& {
        return state[static_cast<size_t>(of.state_at(row / n.each) + (head * n.m + i) * n.columns +
                                         column)];
      };
      Sum held, sum;
      for (int64_t i = 0; i < n.m; ++i) {
        s(i) = {s(i).value * decay, s(i).terms * decay * (1 + log_decay)};
        held.add(s(i).value * k.a[shared + i], s(i).terms * std::fabs(k.a[shared + i]));
      }
      const Real value = v.a[row * n.heads * n.columns + at], factor = beta.a[row * n.heads + head];
      const Sum change{(value - held.value) * factor, (std::fabs(value) + held.terms) * factor};
      for (int64_t i = 0; i < n.m; ++i) {
        s(i).add(k.a[shared + i] * change.value, std::fabs(k.a[shared + i]) * change.terms);
        sum.add(s(i).value * q.a[shared + i], s(i).terms * std::fabs(q.a[shared + i]));
      }
      y[static_cast<size_t>(row * n.heads * n.columns + at)] = sum;
    }
  }
  const Tensor got = gated_delta_scan(q.x, k.x, v.x, neg(g.x), beta.x, of.state, of.of_rows);
  expect_both(c, got, y, of.state, state, n.steps());
}

}  // namespace

void recurrence_case(Case& c, Op op) {
  if (op == Op::causal_conv) return conv(c);
  return op == Op::ssm_scan ? ssm(c) : delta(c);
}

}  // namespace wick::soak
