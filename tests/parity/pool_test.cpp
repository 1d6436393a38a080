// max_pool2d and avg_pool2d with their gradients: bit-equal to the specified order.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/math/scalar.h"

namespace wick::parity {
namespace {

struct Case {
  Shape x;
  PoolParams params;

  Shape out() const {
    int64_t size[2];
    for (int i = 0; i < 2; ++i) {
      size[i] = (x[2 + i] + 2 * params.padding[i] - params.kernel[i]) / params.stride[i] + 1;
    }
    return {x[0], x[1], size[0], size[1]};
  }
};

PoolParams params(std::array<int64_t, 2> kernel, std::array<int64_t, 2> stride,
                  std::array<int64_t, 2> padding = {0, 0}, bool count = true) {
  return {.kernel = {kernel[0], kernel[1]},
          .stride = {stride[0], stride[1]},
          .padding = {padding[0], padding[1]},
          .count_include_pad = count};
}

constexpr int64_t kFar = int64_t{1} << 30;

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {{2, 3, 8, 70}, params({2, 2}, {2, 2})},
      {{1, 2, 9, 71}, params({3, 3}, {2, 2}, {1, 1})},
      {{1, 2, 9, 71}, params({3, 3}, {2, 2}, {1, 1}, false)},
      {{2, 2, 12, 40}, params({3, 3}, {1, 1}, {1, 1})},
      {{2, 2, 12, 40}, params({3, 3}, {3, 3})},
      {{1, 3, 11, 37}, params({4, 5}, {3, 2}, {2, 1}, false)},
      {{1, 1, 7, 50}, params({2, 3}, {3, 5}, {1, 1})},
      {{3, 2, 1, 90}, params({1, 4}, {1, 1}, {0, 2})},
      {{2, 2, 33, 1}, params({5, 1}, {2, 1}, {2, 0}, false)},
      {{1, 2, 6, 5}, params({6, 5}, {1, 1})},
      {{1, 2, 3, 3}, params({7, 7}, {1, 1}, {3, 3}, false)},
      {{0, 2, 6, 6}, params({2, 2}, {2, 2})},
      {{4, 5, 40, 60}, params({2, 2}, {2, 2})},
      // GPUs have separate kernels for windows of up to 2 or 3 rows and columns and for long
      // windows.
      {{1, 2, 6, 41}, params({3, 2}, {1, 2}, {1, 1}, false)},
      {{1, 2, 5, 33}, params({1, 2}, {1, 1})},
      {{1, 2, 30, 40}, params({30, 40}, {1, 1})},
      {{2, 1, 12, 130}, params({5, 100}, {3, 40}, {2, 50}, false)},
      {{1, 1, 2, 700}, params({2, 600}, {1, 100})},
      // Positions beyond 2^29.
      {{1, 2, 2, 5}, params({1, kFar + 1}, {1, 1}, {0, kFar / 2})},
      {{1, 1, 2, 5}, params({2, kFar + 1}, {1, 1}, {1, kFar / 2}, false)},
  };
  return list;
}

constexpr Place kPlaces[] = {Place::contiguous, Place::transposed, Place::broadcast,
                             Place::sliced,     Place::stepped,    Place::scattered};

std::string describe(const char* what, DType dtype, const Case& c, Place place, Values values) {
  return fmt::format("{}.{}.{}{} kernel [{}, {}] stride [{}, {}] padding [{}, {}] {}", what,
                     name(dtype), name(place), c.x.str(), c.params.kernel[0], c.params.kernel[1],
                     c.params.stride[0], c.params.stride[1], c.params.padding[0],
                     c.params.padding[1], name(values));
}

/// Returns, for each output in row-major order, the indices into x of its window in row-major
/// order.
std::vector<std::vector<size_t>> windows(const Case& c) {
  const Shape out = c.out();
  std::vector<std::vector<size_t>> result(static_cast<size_t>(out.elems()));
  for (int64_t i = 0; i < out.elems(); ++i) {
    const int64_t top = i / out[3] % out[2] * c.params.stride[0] - c.params.padding[0];
    const int64_t left = i % out[3] * c.params.stride[1] - c.params.padding[1];
    const int64_t plane = i / (out[3] * out[2]);
    const int64_t bottom = std::min(top + c.params.kernel[0], c.x[2]);
    const int64_t right = std::min(left + c.params.kernel[1], c.x[3]);
    for (int64_t y = std::max<int64_t>(top, 0); y < bottom; ++y) {
      for (int64_t x = std::max<int64_t>(left, 0); x < right; ++x) {
        result[static_cast<size_t>(i)].push_back(
            static_cast<size_t>((plane * c.x[2] + y) * c.x[3] + x));
      }
    }
  }
  return result;
}

/// Returns whether b is larger than a in the order of max: NaN is largest, and -0 is below +0.
bool beats(DType dtype, uint64_t b, uint64_t a) {
  if (!is_float(dtype)) {
    if (dtype == DType::u32) return static_cast<uint32_t>(b) > static_cast<uint32_t>(a);
    return decode_int(dtype, b) > decode_int(dtype, a);
  }
  const long double x = decode(dtype, a), y = decode(dtype, b);
  if (std::isnan(x)) return false;
  if (std::isnan(y)) return true;
  return y > x || (y == x && std::signbit(x) && !std::signbit(y));
}

size_t first_largest(DType dtype, const std::vector<uint64_t>& bits,
                     const std::vector<size_t>& window) {
  size_t best = window[0];
  for (size_t i : window) {
    if (beats(dtype, bits[i], bits[best])) best = i;
  }
  return best;
}

int64_t divisor(const Case& c, const std::vector<size_t>& window) {
  return c.params.count_include_pad ? c.params.kernel[0] * c.params.kernel[1]
                                    : static_cast<int64_t>(window.size());
}

uint64_t mean(DType dtype, const Case& c, const std::vector<uint64_t>& bits,
              const std::vector<size_t>& window) {
  const int64_t count = divisor(c, window);
  if (!is_float(dtype)) {
    __int128 sum = 0;
    for (size_t i : window) sum += decode_int(dtype, bits[i]);
    const int width = 8 * info(dtype).block_bytes;
    return static_cast<uint64_t>(sum / count) & (~uint64_t{0} >> (64 - width));
  }
  uint64_t result = 0;
  with_compute_type(dtype, [&](auto zero) {
    using A = decltype(zero);
    A sum = 0;
    for (size_t i : window) sum = sum + static_cast<A>(decode(dtype, bits[i]));
    result = encode(dtype, sum / static_cast<A>(count));
  });
  return result;
}

void check_pool(Op op, DType dtype) {
  Random random(81);
  for (const Case& c : cases()) {
    std::vector<std::vector<size_t>> groups;
    for (Place place : kPlaces) {
      if (!here(place, c.x)) continue;
      if (groups.empty()) groups = windows(c);
      for (Values values : kAllValues) {
        TestTensor x(dtype, place, c.x, 1), out(dtype, place, c.out(), 2, true);
        x.fill(values, random);
        const std::string what = describe(name(op).data(), dtype, c, place, values);
        const TestTensor* const inputs[] = {&x};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
              b.pool2d(op, o, in[0], c.params);
            })) {
          return;
        }
        const std::vector<uint64_t> bits = x.bits();
        std::vector<uint64_t> expected;
        for (const std::vector<size_t>& window : groups) {
          expected.push_back(op == Op::max_pool2d ? bits[first_largest(dtype, bits, window)]
                                                  : mean(dtype, c, bits, window));
        }
        expect_bits(what, out, expected);
        if (failed()) return;
      }
    }
  }
}

void check_grad(Op op, DType dtype) {
  Random random(82);
  for (const Case& c : cases()) {
    std::vector<std::vector<size_t>> groups;
    for (Place place : kPlaces) {
      if (!here(place, c.x)) continue;
      if (groups.empty()) groups = windows(c);
      for (Values values : kAllValues) {
        TestTensor x(dtype, place, c.x, 1), grad(dtype, place, c.out(), 3);
        TestTensor out(dtype, place, c.x, 2, true);
        x.fill(values, random);
        grad.fill(values == Values::bits ? Values::special : Values::normal, random);
        const std::string what = describe(name(op).data(), dtype, c, place, values) + " grad";
        const TestTensor* const inputs[] = {&x, &grad};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
              b.pool2d_grad(op, o, in[1], in[0], c.params);
            })) {
          return;
        }
        const std::vector<uint64_t> bits = x.bits(), grads = grad.bits();
        std::vector<uint64_t> expected(bits.size());
        with_compute_type(dtype, [&](auto zero) {
          using A = decltype(zero);
          std::vector<A> sums(bits.size());
          for (size_t i = 0; i < groups.size(); ++i) {
            const A g = static_cast<A>(decode(dtype, grads[i]));
            if (op == Op::max_pool2d) {
              A& sum = sums[first_largest(dtype, bits, groups[i])];
              sum = sum + g;
              continue;
            }
            const A share = g / static_cast<A>(divisor(c, groups[i]));
            for (size_t at : groups[i]) sums[at] = sums[at] + share;
          }
          for (size_t i = 0; i < sums.size(); ++i) expected[i] = encode(dtype, sums[i]);
        });
        expect_bits(what, out, expected);
        if (failed()) return;
      }
    }
  }
}

[[maybe_unused]] const bool added = [] {
  for (Op op : {Op::max_pool2d, Op::avg_pool2d}) {
    add_rows(op, [=](DType dtype) { check_pool(op, dtype); });
    add_rows(fmt::format("{}_grad", name(op)), dtypes::kFloats,
             [=](DType dtype) { check_grad(op, dtype); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
