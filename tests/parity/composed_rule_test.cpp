// Tests the rule for rows that are composed of other rows: for narrow floats, the steps compute in
// f32 and only the result is rounded. Each row is compared with the exact value of its definition,
// with a tolerance of half a step of the dtype plus some steps of f32. Intermediate results
// overflow, cancel or are numerous. The reference implements the definition, not the steps.

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "tests/parity/harness.h"
#include "tests/parity/tensors.h"
#include "wick/op/op.h"
#include "wick/tensor/gradients.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

using Real = long double;
using Reals = std::vector<Real>;

struct Input {
  Shape shape;
  std::function<Real(int64_t)> value;
};

/// The expected values of a call, and the permitted error of f32 (f64) steps without the final
/// rounding.
struct Truth {
  Reals value, slack;
};

struct Call {
  std::string name;
  std::vector<Input> inputs;
  Shape result;
  TensorCall call;
  std::function<Truth(const std::vector<Reals>&, Real unit)> truth;
};

Truth log_sum(const Reals& x, Real unit) {
  Real top = -INFINITY, sum = 0;
  for (const Real v : x) top = std::max(top, v);
  for (const Real v : x) sum += std::exp(v - top);
  const Real y = top + std::log(sum);
  return {{y}, {unit * (std::fabs(top) + static_cast<Real>(x.size()) + 8)}};
}

Truth variance(const Reals& x, Real unit) {
  const auto n = static_cast<Real>(x.size());
  Real mean = 0, squares = 0, largest = 0;
  for (const Real v : x) mean += v / n;
  for (const Real v : x)
    squares += (v - mean) * (v - mean), largest = std::max(largest, std::fabs(v));
  const Real shift = unit * largest;
  return {{squares / (n - 1)}, {unit * 64 * squares / (n - 1) + 8 * shift * shift}};
}

/// Returns inputs whose sums exceed the dtype's range, stay near 0, or have many terms.
std::vector<Input> reductions(DType dtype) {
  const Real most = format_of(dtype).max;
  const bool wide = dtype == DType::f32 || dtype == DType::f64;
  return {{{wide ? 3000 : 70000}, [](int64_t) { return 0.0L; }},
          {{1000}, [](int64_t) { return 0.0L; }},
          {{17}, [most](int64_t i) { return i % 2 == 0 ? std::min(most / 2, 200.0L) : -1.0L; }},
          {{33}, [](int64_t i) { return i == 0 ? -0.03125L : -4 - static_cast<Real>(i % 5); }},
          {{300}, [](int64_t i) { return -5.75L + static_cast<Real>(i % 7) / 64; }},
          {{2}, [](int64_t i) { return i == 0 ? -0.6875L : -0.6953125L; }}};
}

std::vector<Call> reduction_calls(Op op, DType dtype) {
  std::vector<Call> calls;
  for (const Input& input : reductions(dtype)) {
    calls.push_back({fmt::format("{}{}", name(op), input.shape.str()),
                     {input},
                     {},
                     [op](auto in) { return op == Op::var ? var(in[0]) : logsumexp(in[0]); },
                     [op](const std::vector<Reals>& x, Real unit) {
                       return op == Op::var ? variance(x[0], unit) : log_sum(x[0], unit);
                     }});
  }
  return calls;
}

/// Three factors, where the product of the first two exceeds the range of narrow floats, and a sum
/// before a product.
std::vector<Call> einsum_calls(Op, DType dtype) {
  const Real big = dtype == DType::f8e4m3 ? 16 : dtype == DType::f16 ? 200 : 1e10L, small = 1 / big;
  constexpr int64_t n = 5;
  const auto number = [](int64_t i) { return 1 + static_cast<Real>(i % 3) / 4; };
  const std::vector<Input> chain = {{{n, n}, [=](int64_t i) { return big * number(i); }},
                                    {{n, n}, [=](int64_t i) { return big * number(i + 1); }},
                                    {{n, n}, [=](int64_t i) { return small * number(i + 2) / 4; }}};
  const auto product = [](const std::vector<Reals>& x, Real unit) {
    Truth t;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t l = 0; l < n; ++l) {
        Real sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t k = 0; k < n; ++k) {
            sum += x[0][static_cast<size_t>(i * n + j)] * x[1][static_cast<size_t>(j * n + k)] *
                   x[2][static_cast<size_t>(k * n + l)];
          }
        }
        t.value.push_back(sum), t.slack.push_back(unit * 64 * sum);
      }
    }
    return t;
  };
  const std::vector<Input> summed = {{{n, 40}, [=](int64_t i) { return big * number(i); }},
                                     {{n}, [=](int64_t i) { return small * number(i) / 64; }}};
  const auto sums = [](const std::vector<Reals>& x, Real unit) {
    Truth t{{0}, {0}};
    for (int64_t i = 0; i < n * 40; ++i)
      t.value[0] += x[0][static_cast<size_t>(i)] * x[1][static_cast<size_t>(i / 40)];
    t.slack[0] = unit * 256 * t.value[0];
    return t;
  };
  return {{"einsum ij,jk,kl->il",
           chain,
           {n, n},
           [](auto in) { return einsum("ij,jk,kl->il", in); },
           product},
          {"einsum ij,i->", summed, {}, [](auto in) { return einsum("ij,i->", in); }, sums}};
}

/// One-dimensional windows over alternating large numbers whose sums are small.
std::vector<Call> window_calls(Op op, DType dtype) {
  const Real big = std::min(format_of(dtype).max / 2, 1e30L);
  constexpr int64_t l = 12;
  const Input x{{1, 1, l}, [=](int64_t i) {
                  return (i % 2 == 0 ? big : -big) * (1 - static_cast<Real>(i % 3) / 4);
                }};
  const Input ones{{1, 1, 4}, [](int64_t) { return 1.0L; }};
  const auto windowed = [=](Real factor) {
    return [=](const std::vector<Reals>& in, Real unit) {
      Truth t;
      for (size_t i = 0; i + 4 <= l; ++i) {
        Real sum = 0, magnitude = 0;
        for (size_t j = i; j < i + 4; ++j)
          sum += in[0][j] * factor, magnitude += std::fabs(in[0][j] * factor);
        t.value.push_back(sum), t.slack.push_back(unit * 8 * magnitude);
      }
      return t;
    };
  };
  const Shape out{1, 1, l - 3};
  if (op == Op::avg_pool1d)
    return {{"avg_pool1d",
             {x},
             out,
             [](auto in) { return avg_pool1d(in[0], {.kernel = 4, .stride = 1}); },
             windowed(0.25L)}};
  if (op == Op::conv1d)
    return {{"conv1d", {x, ones}, out, [](auto in) { return conv1d(in[0], in[1]); }, windowed(1)}};
  if (op == Op::conv_transpose1d) {
    // Cropped to the positions where all four taps overlap, it is the same sum.
    return {{"conv_transpose1d",
             {x, ones},
             out,
             [](auto in) { return conv_transpose1d(in[0], in[1], {}, {.padding = 3}); },
             windowed(1)}};
  }
  if (op == Op::max_pool1d) {
    return {{"max_pool1d",
             {x},
             out,
             [](auto in) { return max_pool1d(in[0], {.kernel = 4, .stride = 1}); },
             [](const std::vector<Reals>& in, Real) {
               Truth t;
               for (size_t i = 0; i + 4 <= l; ++i)
                 t.value.push_back(*std::max_element(in[0].begin() + static_cast<long>(i),
                                                     in[0].begin() + static_cast<long>(i) + 4)),
                     t.slack.push_back(0);
               return t;
             }}};
  }
  return {{"upsample_nearest1d",
           {x},
           {1, 1, 2 * l},
           [](auto in) { return upsample_nearest1d(in[0], 2 * l); },
           [](const std::vector<Reals>& in, Real) {
             Truth t;
             for (size_t i = 0; i < 2 * l; ++i)
               t.value.push_back(in[0][i / 2]), t.slack.push_back(0);
             return t;
           }}};
}

/// Gradients of softmax whose sums exceed the range of narrow floats.
std::vector<Call> softmax_grad_calls(Op op, DType dtype) {
  const Real big = std::min(format_of(dtype).max / 2, 1e30L);
  constexpr int64_t n = 1000;
  const bool log = op == Op::log_softmax_grad;
  const Input y{{n}, [=](int64_t) { return log ? -7.0L : 0x1p-6L; }};
  const Input grad{{n}, [=](int64_t i) { return i % 8 == 0 ? big / 2 : big; }};
  return {{std::string(name(op)),
           {y, grad},
           {n},
           [=](auto in) {
             return log ? log_softmax_grad(in[0], in[1], 0) : softmax_grad(in[0], in[1], 0);
           },
           [=](const std::vector<Reals>& in, Real unit) {
             Truth t;
             Real sum = 0;
             for (size_t i = 0; i < n; ++i) sum += log ? in[1][i] : in[1][i] * in[0][i];
             for (size_t i = 0; i < n; ++i) {
               const Real by = log ? std::exp(in[0][i]) : in[0][i];
               t.value.push_back(log ? in[1][i] - by * sum : by * (in[1][i] - sum));
               t.slack.push_back(unit * 64 * by * sum);
             }
             return t;
           }}};
}

/// Gradients of norms of numbers whose squares, and products with the gradient, exceed the range of
/// narrow floats.
std::vector<Call> norm_grad_calls(Op op, DType dtype) {
  const Real big = dtype == DType::f8e4m3 ? 100 : 300;
  constexpr int64_t n = 16;
  const Input x{{n}, [=](int64_t i) { return big * (i % 3 == 0 ? -1 : 1) * (1 + i % 5) / 4; }};
  const Input grad{{n}, [=](int64_t i) { return big * (1 - (i % 4) / 2.0L) / 2; }};
  if (op == Op::norm_sums) {
    const Input scale{{1}, [=](int64_t) { return 0x1p-6L; }};
    return {{"norm_sums",
             {x, grad, scale},
             {2},
             [](auto in) {
               return norm_sums(in[0], in[1], in[2].to(tape::wide(in[0].dtype())), {})
                   .to(in[0].dtype());
             },
             [=](const std::vector<Reals>& in, Real unit) {
               Truth t{{0, 0}, {0, 0}};
               for (size_t i = 0; i < n; ++i) {
                 const Real term = in[0][i] * in[1][i] * in[2][0];
                 t.value[0] += term, t.value[1] += in[1][i];
                 t.slack[0] += unit * 16 * std::fabs(term);
                 t.slack[1] += unit * 16 * std::fabs(in[1][i]);
               }
               return t;
             }}};
  }
  return {{"norm_grad",
           {x, grad},
           {n},
           [](auto in) { return norm_grad(in[0], in[1]).x; },
           [=](const std::vector<Reals>& in, Real unit) {
             Truth t;
             Real mean = 0, squares = 0, of_g = 0, of_gh = 0;
             for (const Real v : in[0]) mean += v / n;
             for (const Real v : in[0]) squares += (v - mean) * (v - mean) / n;
             const Real r = 1 / std::sqrt(squares + 1e-5L);
             const auto h = [&](size_t i) { return (in[0][i] - mean) * r; };
             for (size_t i = 0; i < n; ++i) of_g += in[1][i] / n, of_gh += in[1][i] * h(i) / n;
             for (size_t i = 0; i < n; ++i) {
               t.value.push_back(r * ((in[1][i] - of_g) - h(i) * of_gh));
               t.slack.push_back(unit * 256 * r * big);
             }
             return t;
           }}};
}

// Recurrences of two rows of one sequence. States and products exceed the range of f16, and the
// sums of them cancel. They are composed only if a gradient is needed.

std::function<Real(int64_t)> in_turn(Real first, Real second) {
  return [=](int64_t i) { return i % 2 == 0 ? first : second; };
}
Tensor state_of(const Tensor& x, const Shape& shape) {
  return Tensor::zeros(shape, DType::f32, x.device());
}
Tensor slots_of(const Tensor& x) { return Tensor::zeros({1}, DType::u32, x.device()); }

Call conv_call() {
  const Input x{{2, 1}, in_turn(256, 255)}, weight{{1, 2}, in_turn(-512, 512)};
  return {"causal_conv",
          {x, weight},
          {2, 1},
          [](auto in) {
            return causal_conv(in[0].requires_grad(), in[1], state_of(in[0], {1, 1, 1}),
                               slots_of(in[0]))
                .detach();
          },
          [](const std::vector<Reals>& in, Real unit) {
            const Real first = in[0][0] * in[1][1];
            const Real second = in[0][0] * in[1][0] + in[0][1] * in[1][1];
            const Real slack = unit * 8 * std::fabs(first);
            return Truth{{first, second}, {slack, slack}};
          }};
}

/// The results of two rows, each the sum of a state's two numbers times `read`, after step(row,
/// state) has changed them.
template <class Step>
Truth of_states(const Reals& read, Real unit, Step step) {
  Truth t;
  Real s[2] = {};
  for (size_t row = 0; row < 2; ++row) {
    step(row, s);
    const Real a = s[0] * read[2 * row], b = s[1] * read[2 * row + 1];
    t.value.push_back(a + b);
    t.slack.push_back(unit * 16 * (std::fabs(s[0]) + std::fabs(s[1])));
  }
  return t;
}

const Input kOnes{{2, 1}, in_turn(1, 1)}, kScanned{{2, 1, 1}, in_turn(300, 200)};
/// Subtracts the numbers of a state.
const Input kRead{{2, 1, 2}, in_turn(1, -0.984375L)};

Call ssm_call() {
  const Input a{{1}, [](int64_t) { return -0.125L; }}, b{{2, 1, 2}, in_turn(256, 255)};
  return {"ssm_scan",
          {kScanned, kOnes, a, b, kRead},
          {2, 1, 1},
          [](auto in) {
            return ssm_scan(in[0].requires_grad(), in[1], in[2], in[3], in[4],
                            state_of(in[0], {1, 1, 2, 1}), slots_of(in[0]))
                .detach();
          },
          [](const std::vector<Reals>& in, Real unit) {
            return of_states(in[4], unit, [&](size_t row, Real(&s)[2]) {
              const Real decay = std::exp(in[1][row] * in[2][0]), added = in[1][row] * in[0][row];
              for (size_t i = 0; i < 2; ++i) s[i] = s[i] * decay + added * in[3][2 * row + i];
            });
          }};
}

Call delta_call() {
  const Input keys{{2, 1, 2}, [](int64_t i) { return i < 2 ? 256.0L : 0x1p-10L; }};
  const Input decay{{2, 1}, in_turn(-0.0625L, -0.125L)};
  return {"gated_delta_scan",
          {kRead, keys, kScanned, decay, kOnes},
          {2, 1, 1},
          [](auto in) {
            return gated_delta_scan(in[0].requires_grad(), in[1], in[2], in[3], in[4],
                                    state_of(in[0], {1, 1, 2, 1}), slots_of(in[0]))
                .detach();
          },
          [](const std::vector<Reals>& in, Real unit) {
            return of_states(in[0], unit, [&](size_t row, Real(&s)[2]) {
              Real held = 0;
              for (size_t i = 0; i < 2; ++i) {
                s[i] *= std::exp(in[3][row]);
                held += s[i] * in[1][2 * row + i];
              }
              const Real change = (in[2][row] - held) * in[4][row];
              for (size_t i = 0; i < 2; ++i) s[i] += in[1][2 * row + i] * change;
            });
          }};
}

std::vector<Call> recurrence_calls(Op op, DType dtype) {
  if (!dtypes::kActivations.contains(dtype)) return {};
  if (op == Op::causal_conv) return {conv_call()};
  return {op == Op::ssm_scan ? ssm_call() : delta_call()};
}

using Calls = std::vector<Call> (*)(Op, DType);
const std::map<Op, Calls>& composed_rows() {
  static const std::map<Op, Calls> rows = {
      {Op::var, reduction_calls},
      {Op::logsumexp, reduction_calls},
      {Op::einsum, einsum_calls},
      {Op::conv1d, window_calls},
      {Op::conv_transpose1d, window_calls},
      {Op::max_pool1d, window_calls},
      {Op::avg_pool1d, window_calls},
      {Op::upsample_nearest1d, window_calls},
      {Op::softmax_grad, softmax_grad_calls},
      {Op::log_softmax_grad, softmax_grad_calls},
      {Op::norm_grad, norm_grad_calls},
      {Op::norm_sums, norm_grad_calls},
      {Op::causal_conv, recurrence_calls},
      {Op::ssm_scan, recurrence_calls},
      {Op::gated_delta_scan, recurrence_calls},
  };
  return rows;
}

TEST(ComposedRule, EveryComposedRowIsHeldToIt) {
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    EXPECT_EQ(info(op).gradient == Gradient::composed, composed_rows().contains(op)) << name(op);
  }
}

TEST(ComposedRule, NarrowResultsAreRoundedOnce) {
  for (const auto& [op, make_calls] : composed_rows()) {
    for (int d = 0; d < kRealDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      if (!is_float(dtype)) continue;
      for (const Call& c : make_calls(op, dtype)) {
        std::vector<TestTensor> tensors;
        std::vector<Reals> values;
        for (const Input& input : c.inputs) {
          TestTensor t(dtype, Place::contiguous, input.shape);
          t.fill_with(input.value);
          const std::vector<uint64_t> bits = t.bits();
          values.emplace_back();
          for (const uint64_t b : bits) values.back().push_back(decode(dtype, b));
          tensors.push_back(std::move(t));
        }
        std::vector<const TestTensor*> inputs;
        for (const TestTensor& t : tensors) inputs.push_back(&t);
        const Truth truth = c.truth(values, dtype == DType::f64 ? 0x1p-52L : 0x1p-23L);
        const std::string what = fmt::format("{} of {}", c.name, name(dtype));
        run_tensors(what, inputs, dtype, c.result, c.call, [&](const std::vector<uint64_t>& got) {
          for (size_t i = 0; i < got.size(); ++i) {
            const Real y = decode(dtype, got[i]), e = round_to(dtype, truth.value[i]);
            const Real slack = 0.501L * ulp(dtype, truth.value[i]) + truth.slack[i];
            const bool right =
                std::isinf(e) ? y == e
                              : std::fabs(y - truth.value[i]) <= slack ||
                                    (std::fabs(truth.value[i]) > format_of(dtype).max && y == e);
            if (right) continue;
            ADD_FAILURE() << fmt::format(
                "{}: element {} is {}, the truth {} within {}", what, i, static_cast<double>(y),
                static_cast<double>(truth.value[i]), static_cast<double>(slack));
            return;
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace wick::parity
