// Rows of products and windows that the tensor layer composes of other ops. einsum, conv1d and
// transposed convolutions must be within the bound of their class; one-dimensional pools and
// upsampling must be bit-equal.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/parity/conv_reference.h"
#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "tests/parity/tensors.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

using Bits = std::vector<uint64_t>;

constexpr Place kPlaces[] = {Place::contiguous, Place::transposed, Place::broadcast, Place::scalar,
                             Place::sliced,     Place::stepped,    Place::scattered};

// ---- einsum ----

struct Equation {
  const char* text;
  std::vector<std::string> terms;  // terms of the operands, then of the result
};
const std::vector<Equation>& equations() {
  static const std::vector<Equation> list = {
      {"ij,jk->ik", {"ij", "jk", "ik"}},
      {"bij,bjk->bik", {"bij", "bjk", "bik"}},
      {"ij->ji", {"ij", "ji"}},
      {"ijb->b", {"ijb", "b"}},
      {"ij,ij->", {"ij", "ij", ""}},
      {"i,j->ij", {"i", "j", "ij"}},
      {"bi,bj,k->kb", {"bi", "bj", "k", "kb"}},
      {",->", {"", "", ""}},
      {"abcdefgh,h->ga", {"abcdefgh", "h", "ga"}},
  };
  return list;
}

/// Returns the size of a letter's dim. If `empty`, j has size 0.
int64_t size_of(char letter, bool empty) {
  switch (letter) {
    case 'i':
      return 7;
    case 'j':
      return empty ? 0 : 33;
    case 'k':
      return 19;
    case 'a':
      return 2;
    case 'b':
      return 3;
    case 'h':
      return 5;
    default:
      return letter % 2 + 1;
  }
}
Shape shape_of(const std::string& letters, bool empty) {
  std::vector<int64_t> sizes;
  for (char c : letters) sizes.push_back(size_of(c, empty));
  return Shape(std::span<const int64_t>(sizes));
}

/// Exact sums of products over all values of all letters.
struct Sums {
  std::vector<Truth> truth;
  Bits wrapped;  // for integers
};
Sums sums_of(const Equation& e, bool empty, DType dtype, const std::vector<Bits>& operands) {
  std::string letters;
  for (const std::string& term : e.terms) {
    for (char c : term) {
      if (letters.find(c) == std::string::npos) letters += c;
    }
  }
  Sums sums;
  const Shape all = shape_of(letters, empty);
  const auto n = static_cast<size_t>(shape_of(e.terms.back(), empty).elems());
  sums.truth.resize(n), sums.wrapped.resize(n);
  for (int64_t at = 0; at < all.elems(); ++at) {
    std::array<int64_t, 128> index{};
    int64_t rest = at;
    for (size_t d = letters.size(); d-- > 0;) {
      index[static_cast<size_t>(letters[d])] = rest % all[static_cast<int>(d)];
      rest /= all[static_cast<int>(d)];
    }
    const auto place = [&](const std::string& term) {
      int64_t i = 0;
      for (char c : term) i = i * size_of(c, empty) + index[static_cast<size_t>(c)];
      return static_cast<size_t>(i);
    };
    long double product = 1;
    uint64_t whole = 1;
    for (size_t t = 0; t < operands.size(); ++t) {
      const uint64_t bits = operands[t][place(e.terms[t])];
      product *= decode(dtype, bits);
      if (!is_float(dtype)) whole *= static_cast<uint64_t>(decode_int(dtype, bits));
    }
    Truth& truth = sums.truth[place(e.terms.back())];
    truth.value += product, truth.magnitude += std::fabs(product), ++truth.terms;
    sums.wrapped[place(e.terms.back())] += whole;
  }
  return sums;
}

void expect_sums(const std::string& what, DType dtype, const Bits& got, const Sums& sums,
                 size_t steps, bool random) {
  const FloatFormat format = format_of(dtype);
  // Intermediate steps are rounded to the dtype, too.
  const long double unit = std::ldexp(1.0L, -format.precision);
  for (size_t i = 0; i < got.size(); ++i) {
    if (!is_float(dtype)) {
      const uint64_t mask = ~uint64_t{0} >> (64 - 8 * info(dtype).block_bytes);
      ASSERT_EQ(got[i], sums.wrapped[i] & mask) << what << ", element " << i;
      continue;
    }
    const Truth& t = sums.truth[i];
    const long double value = decode(dtype, got[i]);
    long double want = t.value;
    if (!format.has_infinity) want = std::clamp(want, -format.max, format.max);
    const long double bound = bound_of(dtype, value, t, random) +
                              static_cast<long double>(steps - 1) * unit * t.magnitude;
    ASSERT_LE(std::fabs(value - want), bound) << what << ", element " << i << " is " << value;
  }
}

void check_einsum(DType dtype) {
  Random random(56);
  for (const Equation& e : equations()) {
    for (Place place : kPlaces) {
      for (bool empty : {false, true}) {
        const Shape first = shape_of(e.terms[0], empty);
        if (empty && e.terms[0].find('j') == std::string::npos) continue;
        if (!here(place, first)) continue;
        std::vector<TestTensor> operands;
        std::vector<const TestTensor*> inputs;
        std::vector<Bits> bits;
        for (size_t t = 0; t + 1 < e.terms.size(); ++t) {
          operands.emplace_back(dtype, place, shape_of(e.terms[t], empty), static_cast<int>(t) + 1);
          // The values are small, so that products of three stay within the narrowest format.
          operands.back().fill_with([&](int64_t) {
            const auto x = static_cast<long double>(random.normal());
            return is_float(dtype) ? x * 0.5L : std::floor(std::fabs(x * 40));
          });
        }
        for (const TestTensor& t : operands) inputs.push_back(&t), bits.push_back(t.bits());
        const Sums sums = sums_of(e, empty, dtype, bits);
        const std::string what = fmt::format("einsum.{} {} {}", name(dtype), e.text, name(place));
        const bool repeats = place == Place::broadcast || place == Place::scalar;
        run_tensors(
            what, inputs, dtype, shape_of(e.terms.back(), empty),
            [&](auto t) { return einsum(e.text, t); },
            [&](const Bits& got) {
              expect_sums(what, dtype, got, sums, 2 * operands.size(), !repeats);
            });
        if (failed()) return;
      }
    }
  }
}

// ---- Convolutions ----

/// x [b, c, h, w] and its kernels. In one dimension, h and kh are 1 and are dropped.
struct Spatial {
  ConvCase c;
  bool transposed;
  int dims;
};
Shape without_h(const Shape& s, int dims) { return dims == 2 ? s : Shape{s[0], s[1], s[3]}; }

std::vector<Spatial> convolutions(bool transposed, int dims) {
  const auto one = [](int64_t stride, int64_t padding, int64_t dilation, int64_t groups) {
    return ConvParams{{1, stride}, {0, padding}, {1, dilation}, groups};
  };
  std::vector<Spatial> list;
  // For a transposed convolution, x here is the result and `out` is the input.
  const auto add = [&](const Shape& x, const Shape& w, const ConvParams& p) {
    list.push_back({{"", x, w, p}, transposed, dims});
  };
  if (dims == 1) {
    add({2, 3, 1, 40}, {5, 3, 1, 3}, one(1, 1, 1, 1));
    add({1, 6, 1, 71}, {9, 2, 1, 5}, one(2, 2, 1, 3));
    add({2, 4, 1, 33}, {4, 1, 1, 3}, one(1, 2, 2, 4));
    add({1, 8, 1, 300}, {3, 8, 1, 1}, one(1, 0, 1, 1));
    add({0, 3, 1, 20}, {5, 3, 1, 3}, one(1, 1, 1, 1));
  } else {
    add({2, 3, 9, 11}, {5, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1});
    add({1, 6, 13, 9}, {8, 3, 3, 2}, {{2, 3}, {1, 0}, {1, 2}, 2});
    add({0, 3, 9, 9}, {5, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1});
  }
  return list;
}

Tensor call_conv(const Spatial& s, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const ConvParams& p = s.c.params;
  const ConvParams1d p1{p.stride[1], p.padding[1], p.dilation[1], p.groups};
  if (!s.transposed) return conv1d(x, w, bias, p1);
  // The remainder that the strides leave at the end.
  std::array<int64_t, 2> left{};
  for (int i = 0; i < 2; ++i) {
    const int64_t reach = p.dilation[i] * (s.c.w[2 + i] - 1) + 1;
    left[static_cast<size_t>(i)] = (s.c.x[2 + i] + 2 * p.padding[i] - reach) % p.stride[i];
  }
  if (s.dims == 1) return conv_transpose1d(x, w, bias, p1, left[1]);
  return conv_transpose2d(x, w, bias, p, left);
}

void check_conv(bool transposed, int dims, DType dtype) {
  Random random(57);
  for (const Spatial& s : convolutions(transposed, dims)) {
    const Shape in = transposed ? s.c.out() : s.c.x, out = transposed ? s.c.x : s.c.out();
    for (Place place : kPlaces) {
      if (!here(place, in)) continue;
      TestTensor x(dtype, place, without_h(in, dims), 1),
          w(dtype, place, without_h(s.c.w, dims), 3);
      TestTensor bias(dtype, place, {out[1]}, 2);
      for (TestTensor* t : {&x, &w, &bias}) t->fill(Values::normal, random);
      std::vector<Truth> truth = truth_of(transposed ? Form::input : Form::forward, s.c,
                                          x.doubles(), x.doubles(), w.doubles());
      const bool repeats = place == Place::broadcast || place == Place::scalar;
      const std::vector<double> biases = bias.doubles();
      const int64_t pixels = out[2] * out[3];
      for (bool with_bias : {false, true}) {
        const std::string what =
            fmt::format("conv.{} {} {} {}{}", name(dtype), in.str(), s.c.w.str(), name(place),
                        with_bias ? " with a bias" : "");
        const TestTensor* const inputs[] = {&x, &w, &bias};
        run_tensors(
            what, inputs, dtype, without_h(out, dims),
            [&](auto t) { return call_conv(s, t[0], t[1], with_bias ? t[2] : Tensor()); },
            [&](const Bits& got) {
              for (size_t i = 0; i < got.size(); ++i) {
                const long double value = decode(dtype, got[i]);
                const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / pixels % out[1]);
                Truth t = truth[i];
                if (with_bias) t.value += static_cast<long double>(biases[channel]);
                long double want = t.value, bound = bound_of(dtype, value, t, !repeats);
                // The sum is rounded before the bias is added.
                if (with_bias)
                  bound += 0.5L * ulp(dtype, truth[i].value) + bound_of(dtype, 0, truth[i], false);
                const FloatFormat format = format_of(dtype);
                if (!format.has_infinity) want = std::clamp(want, -format.max, format.max);
                ASSERT_LE(std::fabs(value - want), bound) << what << ", element " << i;
              }
            });
        if (failed()) return;
      }
    }
  }
}

// ---- Windows of one dimension ----

struct PoolCase {
  Shape x;
  PoolParams1d params;
};
const std::vector<PoolCase>& pools() {
  static const std::vector<PoolCase> list = {
      {{2, 3, 70}, {2, 2, 0, true}},  {{1, 4, 33}, {3, 2, 1, false}}, {{2, 2, 41}, {5, 1, 2, true}},
      {{3, 2, 19}, {4, 3, 0, false}}, {{0, 3, 20}, {2, 2, 0, true}},
  };
  return list;
}

uint64_t pooled(Op op, DType dtype, const Bits& window, int64_t count) {
  if (op == Op::avg_pool1d && !is_float(dtype)) {
    __int128 sum = 0;
    for (uint64_t bits : window) sum += decode_int(dtype, bits);
    return static_cast<uint64_t>(sum / count) &
           (~uint64_t{0} >> (64 - 8 * info(dtype).block_bytes));
  }
  if (op == Op::avg_pool1d) {
    uint64_t result = 0;
    with_compute_type(dtype, [&](auto zero) {
      using A = decltype(zero);
      A sum = 0;
      for (uint64_t bits : window) sum = sum + static_cast<A>(decode(dtype, bits));
      result = encode(dtype, sum / static_cast<A>(count));
    });
    return result;
  }
  uint64_t best = window[0];
  for (uint64_t bits : window) {
    if (!is_float(dtype)) {
      if (decode_int(dtype, bits) > decode_int(dtype, best)) best = bits;
      continue;
    }
    const long double a = decode(dtype, best), b = decode(dtype, bits);
    if (std::isnan(a)) continue;
    if (std::isnan(b) || b > a || (b == a && std::signbit(a) && !std::signbit(b))) best = bits;
  }
  return best;
}

void check_pool1d(Op op, DType dtype) {
  Random random(58);
  for (const PoolCase& c : pools()) {
    const PoolParams1d& p = c.params;
    const Shape out{c.x[0], c.x[1], (c.x[2] + 2 * p.padding - p.kernel) / p.stride + 1};
    for (Place place : kPlaces) {
      if (!here(place, c.x)) continue;
      for (Values values : kAllValues) {
        TestTensor x(dtype, place, c.x, 1);
        x.fill(values, random);
        const Bits in = x.bits();
        Bits expected;
        for (int64_t i = 0; i < out.elems(); ++i) {
          const int64_t start = i % out[2] * p.stride - p.padding;
          Bits window;
          for (int64_t at = std::max<int64_t>(start, 0); at < std::min(start + p.kernel, c.x[2]);
               ++at) {
            window.push_back(in[static_cast<size_t>(i / out[2] * c.x[2] + at)]);
          }
          const auto size = static_cast<int64_t>(window.size());
          expected.push_back(pooled(op, dtype, window, p.count_include_pad ? p.kernel : size));
        }
        const std::string what = fmt::format("{}.{} {} {} {}", name(op), name(dtype), c.x.str(),
                                             name(place), name(values));
        const TestTensor* const inputs[] = {&x};
        run_tensors(
            what, inputs, dtype, out,
            [&](auto t) {
              return op == Op::max_pool1d ? max_pool1d(t[0], p) : avg_pool1d(t[0], p);
            },
            [&](const Bits& got) { expect_same(what, dtype, got, expected); });
        if (failed()) return;
      }
    }
  }
}

void check_nearest1d(DType dtype) {
  Random random(59);
  const std::pair<Shape, int64_t> sizes[] = {
      {{2, 3, 35}, 70}, {{1, 2, 50}, 23}, {{2, 2, 19}, 51}, {{1, 1, 7}, 7}, {{0, 2, 9}, 18}};
  for (const auto& [shape, size] : sizes) {
    for (Place place : kPlaces) {
      if (!here(place, shape)) continue;
      TestTensor x(dtype, place, shape, 1);
      x.fill(Values::bits, random);
      const Bits in = x.bits();
      Bits expected;
      const int64_t n = shape[2], wanted = size;
      for (int64_t i = 0; i < shape[0] * shape[1] * wanted; ++i) {
        const double scale = static_cast<double>(n) / static_cast<double>(wanted);
        const auto at = static_cast<int64_t>(std::floor(static_cast<double>(i % wanted) * scale));
        expected.push_back(in[static_cast<size_t>(i / wanted * n + std::min(at, n - 1))]);
      }
      const std::string what =
          fmt::format("upsample_nearest1d.{} {} {}", name(dtype), shape.str(), name(place));
      const TestTensor* const inputs[] = {&x};
      run_tensors(
          what, inputs, dtype, Shape{shape[0], shape[1], wanted},
          [&](auto t) { return upsample_nearest1d(t[0], wanted); },
          [&](const Bits& got) { expect_same(what, dtype, got, expected); });
      if (failed()) return;
    }
  }
}

const bool added = [] {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    add_row("einsum", name(dtype), [=] { check_einsum(dtype); });
    for (Op op : {Op::max_pool1d, Op::avg_pool1d}) {
      add_row(name(op), name(dtype), [=] { check_pool1d(op, dtype); });
    }
    add_row("upsample_nearest1d", name(dtype), [=] { check_nearest1d(dtype); });
    if (!is_float(dtype)) continue;
    add_row("conv1d", name(dtype), [=] { check_conv(false, 1, dtype); });
    add_row("conv_transpose1d", name(dtype), [=] { check_conv(true, 1, dtype); });
    add_row("conv_transpose2d", name(dtype), [=] { check_conv(true, 2, dtype); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
