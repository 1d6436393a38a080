// Matrix products: matmul, einsum, linear with float and quantized weights, grouped products, and
// blocks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/soak/soak.h"
#include "wick/tensor/ops.h"

namespace wick::soak {
namespace {

constexpr DType kBlockWeights[] = {DType::q4_0, DType::q4_1, DType::q5_0,
                                   DType::q8_0, DType::q4_k, DType::q6_k};

/// Sizes of a product whose operands stay within the case's limit.
struct Sizes {
  int64_t m, n, k;
  Sizes(Case& c, int64_t least_k = 1) {
    k = c.size(std::min<int64_t>(c.most_elems, 600));
    if (least_k > 1)
      k = least_k *
          c.between(1, std::max<int64_t>(1, std::min<int64_t>(8, c.most_elems / least_k / 4)));
    m = c.size(std::max<int64_t>(1, c.most_elems / k)),
    n = c.size(std::max<int64_t>(1, c.most_elems / k));
    // The reference takes m · n · k steps.
    const int64_t most = 64 * c.most_elems;
    while (m * n * k > most) (m > n ? m : n) = std::max<int64_t>(1, (m > n ? m : n) / 2);
  }
};

/// A sum of products with its value and the bound on its rounding error.
struct Dot {
  Real sum = 0, magnitude = 0;
  void add(Real a, Real b) { sum += a * b, magnitude += std::fabs(a * b); }
  Real slack(DType dtype, int64_t terms) const {
    return step(dtype) * static_cast<Real>(terms + 8) * magnitude;
  }
};

/// Returns the exact sum of integer products, wrapped.
Int whole_dot(const std::function<std::pair<Real, Real>(int64_t)>& term, int64_t count) {
  unsigned __int128 sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto [a, b] = term(i);
    sum += static_cast<unsigned __int128>(static_cast<Int>(a)) *
           static_cast<unsigned __int128>(static_cast<Int>(b));
  }
  return static_cast<Int>(sum);
}

}  // namespace

void matmul_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kReal);
  const Sizes s(c);
  std::vector<int64_t> batch;
  for (int64_t i = c.one_in(2) ? c.between(1, 3) : 0; i > 0; --i) batch.push_back(c.between(1, 3));
  const auto with = [](const Shape& front, int64_t rows, int64_t columns) {
    std::vector<int64_t> sizes(front.dims().begin(), front.dims().end());
    sizes.push_back(rows), sizes.push_back(columns);
    return Shape(sizes);
  };
  const Shape full{batch}, left = c.broadcasting(full);
  const Values values =
      is_float(dtype) ? Values::ordinary : c.pick({Values::ordinary, Values::special});
  const Operand a = c.operand(dtype, with(left, s.m, s.k), values),
                b = c.operand(dtype, with(full, s.k, s.n), values);
  Array y(dtype, with(full, s.m, s.n));
  Bound bound{is_float(dtype) ? 1.0L : 0, {}};
  int64_t at = 0, matrix = 0;
  for_each_index(full, [&](std::span<const int64_t> index) {
    const int64_t first = broadcast_at(left, index) * s.m * s.k, second = matrix++ * s.k * s.n;
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j, ++at) {
        const auto term = [&](int64_t t) {
          return std::pair(a.a[first + i * s.k + t], b.a[second + t * s.n + j]);
        };
        if (!is_float(dtype)) {
          y[at] = wrap(dtype, whole_dot(term, s.k));
          continue;
        }
        Dot dot;
        for (int64_t t = 0; t < s.k; ++t) dot.add(term(t).first, term(t).second);
        y[at] = dot.sum;
        bound.slack.push_back(dot.slack(dtype, s.k));
      }
    }
  });
  c.expect(matmul(a.x, b.x), y, bound);
}

void einsum_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kReal);
  const int64_t i = c.size(12), j = c.size(12), k = c.size(12), b = c.between(1, 3);
  const int64_t kind = c.below(4);
  const char* const equations[] = {"bij,bkj->bik", "ij,jk->ki", "bij,bij->bi", "ij,k->jik"};
  const Shape lefts[] = {{b, i, j}, {i, j}, {b, i, j}, {i, j}},
              rights[] = {{b, k, j}, {j, k}, {b, i, j}, {k}},
              results[] = {{b, i, k}, {k, i}, {b, i}, {j, i, k}};
  const Operand x = c.operand(dtype, lefts[kind]), y = c.operand(dtype, rights[kind]);
  c.note(equations[kind]);
  Array exact(dtype, results[kind]);
  Bound bound{is_float(dtype) ? 1.0L : 0, {}};
  int64_t at = 0;
  for_each_index(exact.shape, [&](std::span<const int64_t> o) {
    const int64_t count = kind == 3 ? 1 : j;
    const auto term = [&](int64_t t) {
      switch (kind) {
        case 0:
          return std::pair(x.a({o[0], o[1], t}), y.a({o[0], o[2], t}));
        case 1:
          return std::pair(x.a({o[1], t}), y.a({t, o[0]}));
        case 2:
          return std::pair(x.a({o[0], o[1], t}), y.a({o[0], o[1], t}));
        default:
          return std::pair(x.a({o[1], o[0]}), y.a({o[2]}));
      }
    };
    Dot dot;
    for (int64_t t = 0; t < count; ++t) dot.add(term(t).first, term(t).second);
    exact[at++] = is_float(dtype) ? dot.sum : wrap(dtype, whole_dot(term, count));
    bound.slack.push_back(is_float(dtype) ? dot.slack(dtype, count) : 0);
  });
  const Tensor operands[] = {x.x, y.x};
  c.expect(einsum(equations[kind], operands), exact, bound);
}

namespace {

/// Returns a weight [n, k] of random blocks and the numbers that it represents.
Operand block_weight(Case& c, DType dtype, int64_t n, int64_t k) {
  return c.once<Operand>([&] {
    const Operand values = c.operand(DType::f32, {n, k});
    const Tensor blocks = quantize(values.x, dtype);
    c.note(fmt::format("as {}", name(dtype)));
    return Operand{blocks, read(dequantize(blocks))};
  });
}

Weight prepared(Case& c, const Operand& w) {
  return c.once<Weight>([&] { return Weight(w.x); });
}

/// How products with a weight round x: quantized weights to 8 bits per block of 32; bf16 weights to
/// bf16, as documented for many rows.
enum class Rounds { nothing, blocks, to_bf16 };

/// Expects x times the transpose of a weight.
void expect_product(Case& c, const Operand& x, const Operand& w, const Tensor& got, Rounds rounds) {
  const int64_t k = w.a.shape[1], n = w.a.shape[0], rows = x.a.elems() / std::max<int64_t>(k, 1);
  std::vector<int64_t> sizes(x.a.shape.dims().begin(), x.a.shape.dims().end());
  sizes.back() = n;
  Array y(x.a.dtype, Shape(sizes));
  Bound bound{1.0L, {}};
  // A block's step is its largest element divided by 127 and rounded up to four bits. K-quants
  // share a step among 256 elements.
  constexpr int64_t kShared = 256;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      Dot dot;
      Real rounding = 0;
      for (int64_t first = 0; first < k; first += kShared) {
        Real largest = 0, weights = 0;
        for (int64_t t = first; t < std::min(k, first + kShared); ++t) {
          dot.add(x.a[r * k + t], w.a[j * k + t]);
          largest = std::max(largest, std::fabs(x.a[r * k + t])),
          weights += std::fabs(w.a[j * k + t]);
        }
        rounding += largest / 127 * weights;
      }
      y[r * n + j] = dot.sum;
      bound.slack.push_back(dot.slack(DType::f32, k) + (rounds == Rounds::blocks ? rounding
                                                        : rounds == Rounds::to_bf16
                                                            ? dot.magnitude * 0x1p-8L
                                                            : 0));
    }
  }
  c.expect(got, y, bound);
}

}  // namespace

void linear_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kActivations);
  if (c.one_in(2)) {
    const DType of = kBlockWeights[c.below(6)];
    const Sizes s(c, info(of).block_elems);
    const Operand w = block_weight(c, of, s.n, s.k);
    const Operand x = c.one_in(3) ? c.operand(dtype, {1, s.m, s.k}) : c.operand(dtype, {s.m, s.k});
    return expect_product(c, x, w, linear(x.x, prepared(c, w)), Rounds::blocks);
  }
  const Sizes s(c);
  const DType of = c.pick({DType::f32, DType::f16, DType::bf16});
  const Operand w = c.once<Operand>([&] { return c.operand(of, {s.n, s.k}); });
  const Operand x = c.operand(dtype, {s.m, s.k});
  c.is_bound = true;
  const bool narrows = of == DType::bf16 && dtype != DType::bf16;
  expect_product(c, x, w, linear(x.x, prepared(c, w)), narrows ? Rounds::to_bf16 : Rounds::nothing);
}

void grouped_linear_case(Case& c) {
  // With 16-bit weights, many rows take the matrix units of GPUs.
  const bool halves = c.one_in(2);
  const DType of = halves ? c.pick({DType::f16, DType::bf16}) : kBlockWeights[c.below(4)];
  const int64_t k = halves ? c.size(150) : info(of).block_elems * c.between(1, 4), n = c.size(40),
                t = c.between(1, halves ? 60 : 6), used = c.between(1, 3);
  c.is_bound = halves;
  std::vector<Weight> weights;
  std::vector<Operand> experts;
  for (int64_t e = c.between(1, 4); e > 0; --e) {
    experts.push_back(halves ? c.once<Operand>([&] {
      return c.operand(of, {n, k});
    })
                             : block_weight(c, of, n, k));
    weights.push_back(prepared(c, experts.back()));
  }
  const Operand x = c.operand(DType::f32, {t, k});
  const Operand chosen = c.ids(DType::u32, {t, used}, static_cast<int64_t>(experts.size()));
  const Tensor got = grouped_linear(x.x, weights, chosen.x);
  for (int64_t i = 0; i < t; ++i) {
    for (int64_t j = 0; j < used; ++j) {
      Operand row{{}, Array(DType::f32, {1, k})};
      for (int64_t s = 0; s < k; ++s) row.a[s] = x.a[i * k + s];
      const auto expert = static_cast<size_t>(chosen.a[i * used + j]);
      expect_product(c, row, experts[expert], got.narrow(0, i, 1).narrow(1, j, 1).squeeze(1),
                     of == DType::bf16 ? Rounds::to_bf16
                     : halves          ? Rounds::nothing
                                       : Rounds::blocks);
    }
  }
}

void quantize_case(Case& c, Op op) {
  const DType of = kBlockWeights[c.below(6)];
  const int64_t block = info(of).block_elems, k = block * c.between(1, 4), rows = c.size(20);
  const Operand x = c.operand(DType::f32, {rows, k});
  const Tensor blocks = quantize(x.x, of);
  c.note(fmt::format("as {}", name(of)));
  if (blocks.dtype() != of) c.fail("the result is " + blocks.str());
  c.result(blocks);
  // Each number is within a step of its block: the range divided by the number of levels, with a
  // margin for the scales of K-quants.
  const int64_t bits = of == DType::q8_0 ? 8 : of == DType::q6_k ? 6 : of == DType::q5_0 ? 5 : 4;
  // Scales are f16, so the least step is half of f16's smallest number times the factor of a scale.
  const Real least_step = 0x1p-25L * (block == 256 ? 127 * 32 : 128);
  const DType to = op == Op::dequantize ? c.dtype(dtypes::kActivations) : DType::f32;
  Array y(to, {rows, k});
  Bound bound{1.0L, std::vector<Real>(y.v.size())};
  for (int64_t first = 0; first < y.elems(); first += block) {
    Real largest = 0;
    for (int64_t i = first; i < first + block; ++i) largest = std::max(largest, std::fabs(x.a[i]));
    for (int64_t i = first; i < first + block; ++i) {
      y[i] = x.a[i];
      bound.slack[static_cast<size_t>(i)] =
          largest * std::ldexp(2.2L, static_cast<int>(1 - bits)) + least_step;
    }
  }
  c.expect(dequantize(blocks, to), y, bound);
  // Selecting rows of blocks by ids gives the same numbers.
  const Operand ids = c.ids(c.id_dtype(), {c.between(1, 5)}, rows);
  const Array all = c.elements(dequantize(blocks, DType::f32));
  Array chosen(DType::f32, {ids.a.elems(), k});
  for (int64_t i = 0; i < chosen.elems(); ++i)
    chosen[i] = all[static_cast<int64_t>(ids.a[i / k]) * k + i % k];
  c.expect(index_select(blocks, ids.x, 0, DType::f32), chosen);
}

}  // namespace wick::soak
