// Attention with dense keys, with concatenated sequences, and with pages.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/soak/soak.h"
#include "wick/tensor/ops.h"

namespace wick::soak {
namespace {

AttentionOptions random_params(Case& c, int64_t d) {
  AttentionOptions p;
  p.scale = 1 / std::sqrt(static_cast<float>(d));
  p.causal = c.one_in(2);
  p.window = c.one_in(4) ? c.between(1, 9) : 0;
  p.soft_cap = c.one_in(4) ? 5.0f : 0.0f;
  c.note(fmt::format("{}window {} cap {}", p.causal ? "causal " : "", p.window, p.soft_cap));
  return p;
}

/// The result of one query. q(i), k(j, i) and v(j, i) return elements; bias(j) is added to a score,
/// and NaN hides a key.
struct Query {
  const AttentionOptions& p;
  int64_t query, queries, keys, d, e;
  Real sink = -std::numeric_limits<Real>::infinity();

  template <class Q, class K, class V, class Bias>
  void run(const Q& q, const K& k, const V& v, const Bias& bias,
           const std::function<void(int64_t, Real, Real)>& put) const {
    const int64_t own = query + keys - queries;
    std::vector<Real> scores(static_cast<size_t>(keys), -std::numeric_limits<Real>::infinity());
    const bool sinks = !std::isinf(sink);
    Real top = sink, magnitude = sinks ? std::fabs(sink) : 0;
    for (int64_t j = 0; j < keys; ++j) {
      const Real added = bias(j);
      if ((p.causal && j > own) || (p.window > 0 && j <= own - p.window) || std::isnan(added))
        continue;
      Real score = 0, terms = 0;
      for (int64_t i = 0; i < d; ++i) score += q(i) * k(j, i), terms += std::fabs(q(i) * k(j, i));
      const auto scale = static_cast<Real>(*p.scale), cap = static_cast<Real>(p.soft_cap);
      score *= scale, terms *= scale;
      if (cap > 0) score = cap * std::tanh(score / cap);
      scores[static_cast<size_t>(j)] = score + added;
      top = std::max(top, score + added);
      magnitude = std::max(magnitude, terms + std::fabs(added));
    }
    Real sum = sinks ? std::exp(sink - top) : 0;
    for (Real& s : scores) s = std::isinf(top) ? 0 : std::exp(s - top), sum += s;
    for (int64_t i = 0; i < e; ++i) {
      Real y = 0, weight = 0;
      for (int64_t j = 0; j < keys; ++j) {
        const Real w = sum > 0 ? scores[static_cast<size_t>(j)] / sum : 0;
        y += w * v(j, i), weight += w * std::fabs(v(j, i));
      }
      put(i, y, weight * (magnitude + 1));
    }
  }
};

/// f32 caches are exact up to some f32 steps. On GPUs, attention with many queries and 16-bit keys
/// uses matrix units, which round weights, and f32 queries, to 16 bits: class bound.
Real error_of(DType keys) { return keys == DType::f32 ? 0x1p-18L : 0x1p-6L; }

struct Heads {
  int64_t batch, kv, group, m, n, d, e;
  explicit Heads(Case& c) {
    batch = c.between(1, 2), kv = c.between(1, 3), group = c.between(1, 4);
    m = c.one_in(2) ? c.between(1, 8) : c.size(70),
    n = c.one_in(2) ? c.between(1, 40) : c.size(300);
    d = c.one_in(2) ? 8 * c.between(1, 16) : c.size(150);
    e = c.one_in(2) ? d : c.size(150);
    while (batch * kv * n * (d + e) > 4 * c.most_elems)
      n = std::max<int64_t>(1, n / 2), d = std::max<int64_t>(1, d - d / 3),
      e = std::max<int64_t>(1, e - e / 3);
    while (batch * kv * group * m * std::max(d, e) > 4 * c.most_elems)
      m = std::max<int64_t>(1, m / 2), group = std::max<int64_t>(1, group - 1),
      d = m == 1 && group == 1 ? std::max<int64_t>(1, d / 2) : d,
      e = m == 1 && group == 1 ? std::max<int64_t>(1, e / 2) : e;
  }
  int64_t heads() const { return kv * group; }
};

}  // namespace

void attention_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kActivations),
              of = c.one_in(2) ? dtype : c.dtype(dtypes::kActivations);
  const Heads s(c);
  const Operand q = c.operand(dtype, {s.batch, s.heads(), s.m, s.d});
  const Operand k = c.operand(of, {s.batch, s.kv, s.n, s.d}),
                v = c.operand(of, {s.batch, s.kv, s.n, s.e});
  const AttentionOptions p = random_params(c, s.d);
  c.is_bound = s.m > 8;
  const bool masked = c.one_in(4), sloped = c.one_in(4), sunk = c.one_in(4);
  const DType mask_dtype = c.pick({DType::f32, DType::f16, DType::bf16, DType::u8, DType::boolean});
  const Operand mask = c.operand(mask_dtype, {s.batch, 1, s.m, s.n}),
                slopes = c.operand(DType::f32, {s.heads()}),
                sinks = c.operand(DType::f32, {s.heads()});
  c.note(
      fmt::format("{}{}{}", masked ? "mask " : "", sloped ? "slopes " : "", sunk ? "sinks" : ""));
  Array y(dtype, {s.batch, s.heads(), s.m, s.e});
  Bound bound{2.0L, {}};
  int64_t at = 0;
  for (int64_t row = 0; row < s.batch * s.heads() * s.m; ++row) {
    const int64_t query = row % s.m, head = row / s.m % s.heads(), b = row / s.m / s.heads();
    const int64_t kv = b * s.kv + head / s.group;
    Query of_row{p, query, s.m, s.n, s.d, s.e};
    if (sunk) of_row.sink = sinks.a[head];
    of_row.run([&](int64_t i) { return q.a[row * s.d + i]; },
               [&](int64_t j, int64_t i) { return k.a[(kv * s.n + j) * s.d + i]; },
               [&](int64_t j, int64_t i) { return v.a[(kv * s.n + j) * s.e + i]; },
               [&](int64_t j) {
                 Real bias =
                     sloped ? slopes.a[head] * static_cast<Real>(j - query - (s.n - s.m)) : 0;
                 if (!masked) return bias;
                 const Real m = mask.a[(b * s.m + query) * s.n + j];
                 return is_float(mask_dtype) ? bias + m
                        : m != 0             ? bias
                                             : std::numeric_limits<Real>::quiet_NaN();
               },
               [&](int64_t, Real value, Real scale) {
                 y[at++] = value;
                 bound.slack.push_back(error_of(of) * (scale + std::fabs(value)) + 0x1p-40L);
               });
  }
  c.expect(attention(q.x, k.x, v.x, p, masked ? mask.x : Tensor(), sloped ? slopes.x : Tensor(),
                     sunk ? sinks.x : Tensor()),
           y, bound);
}

void lengths_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kActivations);
  const int64_t kv = c.between(1, 3), group = c.between(1, 3), d = c.between(1, 40),
                e = c.between(1, 40);
  std::vector<int64_t> qs = {0}, ks = {0};
  for (int64_t i = c.between(1, 4); i > 0; --i) {
    qs.push_back(qs.back() + c.below(12));
    c.is_bound = c.is_bound || qs.back() - qs[qs.size() - 2] > 8;
    ks.push_back(ks.back() + c.between(qs.back() > qs[qs.size() - 2] ? 1 : 0, 20));
  }
  const int64_t t = qs.back(), rows = ks.back(), heads = kv * group;
  if (t == 0 || rows == 0) return;
  const Operand q = c.operand(dtype, {t, heads, d}), k = c.operand(dtype, {rows, kv, d}),
                v = c.operand(dtype, {rows, kv, e});
  const AttentionOptions p = random_params(c, d);
  Array y(dtype, {t, heads, e});
  Bound bound{2.0L, std::vector<Real>(y.v.size())};
  for (size_t s = 0; s + 1 < qs.size(); ++s) {
    for (int64_t row = qs[s]; row < qs[s + 1]; ++row) {
      for (int64_t head = 0; head < heads; ++head) {
        const auto key = [&](int64_t j) { return (ks[s] + j) * kv + head / group; };
        Query{p, row - qs[s], qs[s + 1] - qs[s], ks[s + 1] - ks[s], d, e}.run(
            [&](int64_t i) { return q.a[(row * heads + head) * d + i]; },
            [&](int64_t j, int64_t i) { return k.a[key(j) * d + i]; },
            [&](int64_t j, int64_t i) { return v.a[key(j) * e + i]; }, [](int64_t) { return 0.0L; },
            [&](int64_t i, Real value, Real scale) {
              const int64_t at = (row * heads + head) * e + i;
              y[at] = value;
              bound.slack[static_cast<size_t>(at)] =
                  error_of(dtype) * (scale + std::fabs(value)) + 0x1p-40L;
            });
      }
    }
  }
  c.note(fmt::format("{} sequences", qs.size() - 1));
  c.expect(attention_of_lengths(q.x, k.x, v.x, qs, ks, p), y, bound);
}

void pages_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kActivations);
  const int64_t batch = c.between(1, 3), kv = c.between(1, 2), group = c.between(1, 3),
                m = c.between(1, 4);
  const int64_t d = c.between(1, 40), e = c.between(1, 40), size = c.pick<int64_t>({1, 4, 16}),
                pages = c.between(1, 6), each = c.between(1, 4);
  const int64_t heads = kv * group;
  const Operand q = c.operand(dtype, {batch, heads, m, d});
  const Operand k = c.operand(dtype, {pages, kv, size, d}),
                v = c.operand(dtype, {pages, kv, size, e});
  const Operand tables = c.ids(c.pick({DType::u32, DType::i32, DType::i64}), {batch, each}, pages);
  std::vector<uint32_t> lengths;
  for (int64_t b = 0; b < batch; ++b) {
    lengths.push_back(static_cast<uint32_t>(c.between(1, each * size)));
  }
  const AttentionOptions p = random_params(c, d);
  Array y(dtype, {batch, heads, m, e});
  Bound bound{2.0L, {}};
  int64_t at = 0;
  for (int64_t row = 0; row < batch * heads * m; ++row) {
    const int64_t query = row % m, head = row / m % heads, b = row / m / heads;
    const auto key = [&](int64_t j) {
      const auto page = static_cast<int64_t>(tables.a[b * each + j / size]);
      return (page * kv + head / group) * size + j % size;
    };
    Query{p, query, m, lengths[static_cast<size_t>(b)], d, e}.run(
        [&](int64_t i) { return q.a[row * d + i]; },
        [&](int64_t j, int64_t i) { return k.a[key(j) * d + i]; },
        [&](int64_t j, int64_t i) { return v.a[key(j) * e + i]; }, [](int64_t) { return 0.0L; },
        [&](int64_t, Real value, Real scale) {
          y[at++] = value;
          bound.slack.push_back(error_of(dtype) * (scale + std::fabs(value)) + 0x1p-40L);
        });
  }
  const Tensor counts =
      c.once<Tensor>([&] { return Tensor::from(lengths, {batch}, q.x.device()); });
  c.expect(attention_of_pages(q.x, k.x, v.x, tables.x, counts, p), y, bound);
}

void store_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kActivations), cache = c.dtype(dtypes::kActivations);
  const int64_t batch = c.between(1, 4), each = c.between(0, 9), g = c.between(1, 4),
                d = c.between(1, 40), size = c.pick<int64_t>({1, 4, 16}),
                entries = c.between(3, 12);
  const Operand rows = c.operand(dtype, {batch * each, g, d});
  std::vector<uint32_t> positions, tables(static_cast<size_t>(batch * entries));
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t first = c.between(0, std::max<int64_t>(0, entries * size - each));
    for (int64_t i = 0; i < each; ++i) positions.push_back(static_cast<uint32_t>(first + i));
    for (int64_t i = 0; i < entries; ++i) {
      tables[static_cast<size_t>(b * entries + i)] = static_cast<uint32_t>(i * batch + b);
    }
  }
  const bool fits = each <= entries * size;
  const Shape shape{batch * entries, g, size, d};
  const Tensor pages = Tensor::zeros(shape, cache, c.device);
  const Tensor table = c.once<Tensor>([&] {
    return Tensor::from(tables, {batch, entries}, c.device);
  }),
               at = c.once<Tensor>(
                   [&] { return Tensor::from(positions, {batch * each}, c.device); });
  if (!fits) {
    return c.expect_error("store_in_pages", [&] { store_in_pages(pages, rows.x, table, at); });
  }
  Array y(cache, shape);
  for (int64_t i = 0; i < batch * each; ++i) {
    const int64_t position = positions[static_cast<size_t>(i)], b = i / each;
    const int64_t page = position / size * batch + b;
    for (int64_t x = 0; x < g * d; ++x) {
      y[((page * g + x / d) * size + position % size) * d + x % d] =
          rounded(cache, rows.a[i * g * d + x]);
    }
  }
  store_in_pages(pages, rows.x, table, at);
  c.expect(pages, y);
}

}  // namespace wick::soak
