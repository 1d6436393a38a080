// group_norm and batch_norm: bit-equal to the specified order, and close to the exact value.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/backend/cpu/fused/channel_norm_kernels.h"
#include "wick/backend/cpu/thread_pool.h"

namespace wick::parity {
namespace {

constexpr DType kFloatDTypes[] = {DType::bf16, DType::f16, DType::f32, DType::f64, DType::f8e4m3};
constexpr float kEps = 1e-5f;

struct Case {
  Place place;
  Shape shape;  // [b, c, ..]
};

/// Every layout, and sizes near the limits of chunks, channels and gathered rows.
const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {Place::contiguous, {3, 6, 70}},
      {Place::transposed, {3, 6, 5, 7}},
      {Place::sliced, {2, 6, 33}},
      {Place::stepped, {4, 6, 3, 11}},
      {Place::scattered, {2, 6, 40}},
      {Place::broadcast, {3, 6, 20}},
      {Place::scalar, {3, 6, 20}},
      {Place::contiguous, {5, 6}},
      {Place::transposed, {7, 12}},
      {Place::sliced, {0, 6, 4}},
      {Place::sliced, {2, 6, 0}},
      {Place::scattered, {2, 6, 3, 1, 2, 2, 1, 3}},
      {Place::contiguous, {2, 6, 64, 65}},  // rows with several chunks
      {Place::contiguous, {2, 708, 3}},  // channels with few pixels, more than are laid out at once
      {Place::contiguous, {3, 1030}},
      {Place::stepped, {2, 3, 1500}},
      {Place::transposed, {2, 6, 40, 30}},
      {Place::contiguous, {1, 3, 5000}},  // fewer rows than threads
      {Place::sliced, {1, 3, 20011}},     // rows too long to be gathered
      {Place::scattered, {3, 3, 17001}},
      {Place::contiguous, {2, 6, 24, 8}},  // vectors that lie in one channel
      {Place::contiguous, {1, 12, 2800}},  // rows that GPUs split
      {Place::contiguous, {2, 1, 333}},    // one channel
  };
  return list;
}

/// Large cases are skipped without a weight or bias, where they test nothing new.
bool is_large(const Case& c) { return c.shape.elems() > 10000; }

/// Allows half a unit of the result's dtype for the final rounding, and some roundings of the
/// steps, whose operands have the magnitude `scale`.
long double tolerance(DType dtype, long double exact, long double scale) {
  return 0.51L * ulp(dtype, exact) + (1 + scale) * (dtype == DType::f64 ? 0x1p-48L : 0x1p-19L);
}

/// The per-channel vectors of an operation. Missing vectors are 1 or absent.
struct Vectors {
  Vectors(DType dtype, const Case& c, int with, Values values, Random& random)
      : weight(dtype, c.place, Shape{c.shape[1]}, 2),
        bias(dtype, c.place, Shape{c.shape[1]}, 4),
        has_weight((with & 1) != 0),
        has_bias((with & 2) != 0) {
    weight.fill(values, random);
    bias.fill(values, random);
  }
  ConstView view(const TestTensor& t, std::span<const ConstView> inputs) const {
    if (&t == &weight) return has_weight ? inputs[1] : ConstView{};
    return has_bias ? inputs[2] : ConstView{};
  }
  TestTensor weight, bias;
  bool has_weight, has_bias;
};

/// The expected result, element by element.
struct Expected {
  std::vector<uint64_t> bits;
  std::vector<long double> exact, off;
};

template <class A>
Expected group_norm_of(const TestTensor& x, int64_t groups, const Vectors& v) {
  using E = ExactOf<A>;
  const std::vector<A> xs = elements<A>(x), ws = elements<A>(v.weight), bs = elements<A>(v.bias);
  const Shape& shape = x.shape();
  const auto n = xs.size() / static_cast<size_t>(shape[0] * groups);
  const size_t channels = ws.size(),
               pixels = xs.size() / (static_cast<size_t>(shape[0]) * channels);
  Expected result;
  for (size_t first = 0; first < xs.size(); first += n) {
    const std::span row(xs.data() + first, n);
    const A mean = ordered_sum<A>(row) / static_cast<A>(n);
    E true_mean = 0, true_squares = 0;
    for (A e : row) true_mean += static_cast<E>(e) / static_cast<E>(n);
    std::vector<A> squares;
    for (A e : row) {
      squares.push_back((e - mean) * (e - mean));
      const E off = static_cast<E>(e) - true_mean;
      true_squares += off * off;
    }
    const A scale =
        A{1} / std::sqrt(ordered_sum<A>(squares) / static_cast<A>(n) + static_cast<A>(kEps));
    const E true_scale = 1 / std::sqrt(true_squares / static_cast<E>(n) + static_cast<E>(kEps));
    for (size_t i = 0; i < n; ++i) {
      const size_t c = (first + i) / pixels % channels;
      A y = (row[i] - mean) * scale;
      E t = (static_cast<E>(row[i]) - true_mean) * true_scale, size = 1;
      if (v.has_weight) y = y * ws[c], t *= ws[c];
      size += std::fabs(t);
      if (v.has_bias) y = y + bs[c], t += bs[c];
      result.bits.push_back(encode(x.dtype(), y));
      result.exact.push_back(t);
      result.off.push_back(tolerance(x.dtype(), t, size));
    }
  }
  return result;
}

template <class A>
Expected batch_norm_of(const TestTensor& x, const TestTensor& mean, const TestTensor& variance,
                       const Vectors& v) {
  using E = ExactOf<A>;
  const std::vector<A> xs = elements<A>(x), ms = elements<A>(mean), vs = elements<A>(variance),
                       ws = elements<A>(v.weight), bs = elements<A>(v.bias);
  Expected result;
  if (xs.empty()) return result;
  const size_t pixels = xs.size() / (static_cast<size_t>(x.shape()[0]) * ms.size());
  for (size_t i = 0; i < xs.size(); ++i) {
    const size_t c = i / pixels % ms.size();
    const A a = (v.has_weight ? ws[c] : A{1}) / std::sqrt(vs[c] + static_cast<A>(kEps));
    const E true_a = (v.has_weight ? static_cast<E>(ws[c]) : 1) /
                     std::sqrt(static_cast<E>(vs[c]) + static_cast<E>(kEps));
    A y = (xs[i] - ms[c]) * a;
    E t = (static_cast<E>(xs[i]) - static_cast<E>(ms[c])) * true_a;
    const E size = std::fabs(t);
    if (v.has_bias) y = y + bs[c], t += bs[c];
    result.bits.push_back(encode(x.dtype(), y));
    result.exact.push_back(t);
    result.off.push_back(tolerance(x.dtype(), t, size));
  }
  return result;
}

/// `near`: a row has enough elements for its variance not to be the rounding error of nearly equal
/// numbers.
void expect(std::string_view what, const TestTensor& y, const Expected& expected, bool near) {
  expect_bits(what, y, expected.bits);
  if (near) expect_within(what, y, expected.exact, expected.off);
}

/// with: bit 0 for a weight, bit 1 for a bias.
void check_group_norm(DType dtype, DType vector_dtype, int with) {
  Random random(54);
  for (const Case& c : cases()) {
    if (!here(c.place, c.shape)) continue;
    if (with != 3 && is_large(c)) continue;
    for (int64_t groups : {int64_t{1}, int64_t{3}, c.shape[1]}) {
      if (c.shape[1] % groups != 0) continue;
      for (Values values : {Values::normal, Values::special}) {
        if (values == Values::special && c.shape.elems() > 20000) continue;
        TestTensor x(dtype, c.place, c.shape, 1), y(dtype, c.place, c.shape, 3, true);
        x.fill(values, random);
        const Vectors v(vector_dtype, c, with, values, random);
        const std::string what = fmt::format("group_norm.{}.{}{} groups {} vectors {} {:#b} {}",
                                             name(dtype), name(c.place), c.shape.str(), groups,
                                             name(vector_dtype), with, name(values));
        const TestTensor* const inputs[] = {&x, &v.weight, &v.bias};
        if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
              b.group_norm(o, in[0], groups, v.view(v.weight, in), v.view(v.bias, in), kEps);
            })) {
          return;
        }
        if (c.shape.elems() == 0) continue;
        const int64_t n = c.shape.elems() / (c.shape[0] * groups);
        with_compute_type(dtype, [&](auto zero) {
          const bool near = values == Values::normal && n > 8 && c.place != Place::scalar &&
                            c.place != Place::broadcast;
          expect(what, y, group_norm_of<decltype(zero)>(x, groups, v), near);
        });
        if (failed()) return;
      }
    }
  }
}

void check_batch_norm(DType dtype, DType vector_dtype, int with) {
  Random random(55);
  for (const Case& c : cases()) {
    if (!here(c.place, c.shape)) continue;
    if (with != 3 && is_large(c)) continue;
    for (Values values : {Values::normal, Values::special}) {
      TestTensor x(dtype, c.place, c.shape, 1), y(dtype, c.place, c.shape, 3, true),
          mean(vector_dtype, c.place, Shape{c.shape[1]}, 5),
          variance(vector_dtype, c.place, Shape{c.shape[1]}, 6);
      x.fill(values, random);
      mean.fill(values, random);
      constexpr long double kInf = std::numeric_limits<long double>::infinity();
      constexpr long double kOdd[] = {0, kInf, std::numeric_limits<long double>::quiet_NaN(), -1,
                                      0x1p-7L};
      variance.fill_with([&](int64_t i) {
        return values == Values::special ? kOdd[i % 5]
                                         : 0.5L + static_cast<long double>(random.uniform());
      });
      const Vectors v(vector_dtype, c, with, values, random);
      const std::string what =
          fmt::format("batch_norm.{}.{}{} vectors {} {:#b} {}", name(dtype), name(c.place),
                      c.shape.str(), name(vector_dtype), with, name(values));
      const TestTensor* const inputs[] = {&x, &v.weight, &v.bias, &mean, &variance};
      if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
            b.batch_norm(o, in[0], in[3], in[4], v.view(v.weight, in), v.view(v.bias, in), kEps);
          })) {
        return;
      }
      with_compute_type(dtype, [&](auto zero) {
        expect(what, y, batch_norm_of<decltype(zero)>(x, mean, variance, v),
               values == Values::normal);
      });
      if (failed()) return;
    }
  }
}

/// Kernels with non-temporal stores, which outputs larger than the caches use, must give the bits
/// of the others, wherever a run starts.
void check_streams(const cpu::ChannelNormKernels& table, std::string_view isa, DType dtype) {
  Random random(56);
  const auto d = static_cast<size_t>(dtype);
  const int64_t bytes = bytes_of(dtype, 1), n = 1200;
  TestTensor x(dtype, Place::contiguous, {n}, 1), y(dtype, Place::contiguous, {n}, 2, true);
  x.fill(Values::normal, random);
  with_compute_type(dtype, [&](auto zero) {
    using A = decltype(zero);
    std::vector<A> numbers(static_cast<size_t>(3 * n));
    for (A& a : numbers) a = static_cast<A>(random.normal());
    const auto run = [&](bool stream, int64_t from, int64_t count, int64_t pixels, int64_t step) {
      y.wipe();
      const char* in = reinterpret_cast<const char*>(std::as_const(x).storage().data());
      char* out = reinterpret_cast<char*>(y.storage().data()) + from * bytes;
      if (pixels > 0) {
        table.group[d]({in, out, count, 5, pixels, &numbers[0], &numbers[1], &numbers[2],
                        &numbers[static_cast<size_t>(n)], stream});
      } else {
        table.batch[d]({in, out, count, 1, 1, numbers.data(), n, step, stream});
      }
      const auto all = y.storage();
      return std::vector<std::byte>(all.begin(), all.end());
    };
    for (int64_t from : {0, 1, 7, 32}) {
      for (int64_t count : {3, 64, 1100}) {
        for (auto [pixels, step] : {std::pair{1, 0}, {20, 0}, {100, 0}, {0, 0}, {0, 1}}) {
          EXPECT_EQ(run(true, from, count, pixels, step), run(false, from, count, pixels, step))
              << isa << " " << name(dtype) << " from " << from << ", " << count << " elements, "
              << pixels << " pixels, step " << step;
        }
      }
    }
  });
}

void check_all_streams() {
  for (cpu::Isa isa : cpu::available_isas()) {
    for (DType dtype : kFloatDTypes) {
      check_streams(WICK_SELECT_KERNELS(isa, channel_norm_kernels, no_dots), cpu::name(isa), dtype);
    }
  }
}

const bool added = [] {
  for (DType dtype : kFloatDTypes) {
    add_row("group_norm", name(dtype), [=] {
      for (int with : {0, 1, 2, 3}) check_group_norm(dtype, dtype, with);
      if (dtype != DType::f32) check_group_norm(dtype, DType::f32, 3);
    });
    add_row("batch_norm", name(dtype), [=] {
      for (int with : {0, 1, 2, 3}) check_batch_norm(dtype, dtype, with);
      if (dtype != DType::f32) check_batch_norm(dtype, DType::f32, 3);
    });
  }
  add("channel_norm_streams", check_all_streams);
  return true;
}();

}  // namespace
}  // namespace wick::parity
