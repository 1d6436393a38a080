// upsample_nearest2d and upsample_bilinear2d with their gradients: bit-equal to the specified
// order.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"

namespace wick::parity {
namespace {

struct Case {
  Shape x;
  std::array<int64_t, 2> size;
  ResampleParams params;
  Shape out() const { return {x[0], x[1], size[0], size[1]}; }
};

Case sized(const Shape& x, std::array<int64_t, 2> size, bool align = false) {
  Case c{x, size, {}};
  c.params.align_corners = align;
  for (size_t i = 0; i < 2; ++i) {
    const auto in = static_cast<double>(x[2 + static_cast<int>(i)]);
    const auto out = static_cast<double>(size[i]);
    c.params.scale[i] = !align ? in / out : out > 1 ? (in - 1) / (out - 1) : 0;
  }
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> list = {
      sized({2, 3, 5, 35}, {10, 70}),   sized({1, 2, 4, 19}, {16, 76}),
      sized({1, 2, 5, 21}, {15, 63}),   sized({2, 2, 9, 50}, {4, 23}),
      sized({1, 3, 7, 40}, {9, 51}),    sized({1, 2, 1, 33}, {1, 66}),
      sized({2, 2, 6, 1}, {11, 3}),     sized({1, 2, 8, 30}, {8, 30}),
      sized({1, 1, 3, 300}, {5, 10}),   sized({0, 2, 4, 4}, {8, 8}),
      sized({3, 4, 30, 60}, {60, 120}),
  };
  for (bool align : {false, true}) list.push_back(sized({1, 2, 5, 37}, {12, 90}, align));
  list.push_back(sized({1, 2, 8, 37}, {3, 9}, true));
  list.push_back(sized({1, 2, 5, 6}, {1, 1}, true));
  list.push_back(sized({1, 2, 1, 1}, {4, 40}, true));
  // Steps that differ from the ratio of the sizes: positions beyond the last element.
  Case steps = sized({1, 2, 6, 40}, {12, 90});
  steps.params.scale[0] = 1 / 1.7;
  steps.params.scale[1] = 0.75;
  list.push_back(steps);
  return list;
}

constexpr Place kPlaces[] = {Place::contiguous, Place::transposed, Place::broadcast,
                             Place::sliced,     Place::stepped,    Place::scattered};

/// The two inputs between which an output lies along one axis, and the weight of the second.
struct Lies {
  int64_t low, high;
  double part;
};
Lies lies(Op op, const Case& c, int axis, int64_t at) {
  const int64_t last = c.x[2 + axis] - 1;
  const double scale = c.params.scale[axis], i = static_cast<double>(at);
  if (op == Op::upsample_nearest2d) {
    const auto place = std::min(static_cast<int64_t>(std::floor(i * scale)), last);
    return {place, place, 0};
  }
  double place = c.params.align_corners ? i * scale : (i + 0.5) * scale - 0.5;
  if (place < 0) place = 0;
  const auto low = std::min(static_cast<int64_t>(place), last);
  return {low, std::min(low + 1, last), std::min(place - static_cast<double>(low), 1.0)};
}

std::string describe(Op op, DType dtype, const Case& c, Place place, Values values) {
  return fmt::format("{}.{}.{}{} to [{}, {}]{} {}", name(op), name(dtype), name(place), c.x.str(),
                     c.size[0], c.size[1], c.params.align_corners ? " aligned" : "", name(values));
}

/// Calls visit(output, y, x, first element of the output's input plane).
template <class Visit>
void for_each_output(Op op, const Case& c, Visit&& visit) {
  const Shape out = c.out();
  for (int64_t i = 0; i < out.elems(); ++i) {
    visit(static_cast<size_t>(i), lies(op, c, 0, i / out[3] % out[2]), lies(op, c, 1, i % out[3]),
          i / (out[3] * out[2]) * c.x[2] * c.x[3]);
  }
}

void check_forward(Op op, DType dtype) {
  Random random(91);
  for (const Case& c : cases()) {
    if (op == Op::upsample_nearest2d && c.params.align_corners) continue;
    for (Place place : kPlaces) {
      if (!here(place, c.x)) continue;
      for (Values values : kAllValues) {
        TestTensor x(dtype, place, c.x, 1), out(dtype, place, c.out(), 2, true);
        x.fill(values, random);
        const std::string what = describe(op, dtype, c, place, values);
        const TestTensor* const inputs[] = {&x};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
              b.resample(op, o, in[0], c.params);
            })) {
          return;
        }
        const std::vector<uint64_t> bits = x.bits();
        std::vector<uint64_t> expected(static_cast<size_t>(out.elems()));
        for_each_output(op, c, [&](size_t i, const Lies& y, const Lies& at, int64_t plane) {
          const auto element = [&](int64_t row, int64_t col) {
            return bits[static_cast<size_t>(plane + row * c.x[3] + col)];
          };
          if (op == Op::upsample_nearest2d) {
            expected[i] = element(y.low, at.low);
            return;
          }
          with_compute_type(dtype, [&](auto zero) {
            using A = decltype(zero);
            const auto value = [&](int64_t row, int64_t col) {
              return static_cast<A>(decode(dtype, element(row, col)));
            };
            const A x1 = static_cast<A>(at.part), x0 = A{1} - x1;
            const A y1 = static_cast<A>(y.part), y0 = A{1} - y1;
            const A top = x0 * value(y.low, at.low) + x1 * value(y.low, at.high);
            const A bottom = x0 * value(y.high, at.low) + x1 * value(y.high, at.high);
            expected[i] = encode(dtype, y0 * top + y1 * bottom);
          });
        });
        expect_bits(what, out, expected);
        if (failed()) return;
      }
    }
  }
}

void check_grad(Op op, DType dtype) {
  Random random(92);
  for (const Case& c : cases()) {
    if (op == Op::upsample_nearest2d && c.params.align_corners) continue;
    for (Place place : kPlaces) {
      if (!here(place, c.x)) continue;
      for (Values values : kAllValues) {
        TestTensor grad(dtype, place, c.out(), 1), out(dtype, place, c.x, 2, true);
        grad.fill(values, random);
        const std::string what = describe(op, dtype, c, place, values) + " grad";
        const TestTensor* const inputs[] = {&grad};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
              b.resample_grad(op, o, in[0], c.params);
            })) {
          return;
        }
        const std::vector<uint64_t> bits = grad.bits();
        std::vector<uint64_t> expected(static_cast<size_t>(c.x.elems()));
        with_compute_type(dtype, [&](auto zero) {
          using A = decltype(zero);
          std::vector<A> sums(expected.size());
          for_each_output(op, c, [&](size_t i, const Lies& y, const Lies& at, int64_t plane) {
            const A g = static_cast<A>(decode(dtype, bits[i]));
            const auto join = [&](int64_t row, int64_t col, A value) {
              A& sum = sums[static_cast<size_t>(plane + row * c.x[3] + col)];
              sum = sum + value;
            };
            if (op == Op::upsample_nearest2d) return join(y.low, at.low, g);
            const A x1 = static_cast<A>(at.part), x0 = A{1} - x1;
            const A y1 = static_cast<A>(y.part), y0 = A{1} - y1;
            const A up = y0 * g, down = y1 * g;
            join(y.low, at.low, x0 * up);
            join(y.low, at.high, x1 * up);
            join(y.high, at.low, x0 * down);
            join(y.high, at.high, x1 * down);
          });
          for (size_t i = 0; i < sums.size(); ++i) expected[i] = encode(dtype, sums[i]);
        });
        expect_bits(what, out, expected);
        if (failed()) return;
      }
    }
  }
}

[[maybe_unused]] const bool added = [] {
  for (Op op : {Op::upsample_nearest2d, Op::upsample_bilinear2d}) {
    add_rows(op, [=](DType dtype) { check_forward(op, dtype); });
    add_rows(fmt::format("{}_grad", name(op)), dtypes::kFloats,
             [=](DType dtype) { check_grad(op, dtype); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
