// attention: bit-equal to the specified order for every mask, head size, cache dtype and layout,
// with one query or many, and close to the exact value.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/math/scalar.h"

namespace wick::parity {
namespace {

struct Case {
  int64_t b, h, g, m, n, d, e;
  AttentionParams params;
  Place place = Place::contiguous;
  bool key_major = false;  ///< k is stored as [b, g, d, n], as in a cache
  /// What is added to the scores: '+' an f32 mask, 'h' an f16 mask, 'b' a bf16 mask, '0' a u8 mask,
  /// 'a' ALiBi slopes, 'A' slopes and an f32 mask. 's': sinks, 'S': sinks, slopes and an f32 mask.
  char bias = ' ';

  bool adds_mask() const {
    return bias == '+' || bias == 'h' || bias == 'b' || bias == 'A' || bias == 'S';
  }
  bool adds_slopes() const { return bias == 'a' || bias == 'A' || bias == 'S'; }
  bool has_sinks() const { return bias == 's' || bias == 'S'; }
  DType mask_dtype() const {
    return bias == '0'   ? DType::u8
           : bias == 'h' ? DType::f16
           : bias == 'b' ? DType::bf16
                         : DType::f32;
  }
};

AttentionParams masks(bool causal, int64_t window = 0, float soft_cap = 0) {
  return {.scale = 0.2f, .causal = causal, .window = window, .soft_cap = soft_cap};
}

std::string describe(const Case& c) {
  return fmt::format("attention q[{},{},{},{}] k[{},{}] v[{}] {}{} causal {} window {} cap {} '{}'",
                     c.b, c.h, c.m, c.d, c.g, c.n, c.e, name(c.place),
                     c.key_major ? " key-major" : "", c.params.causal, c.params.window,
                     c.params.soft_cap, c.bias);
}

struct Inputs {
  TestTensor q, k, v, mask, slopes, sinks;
};

/// The sink of a head. Sinks that are NaN or +inf are among the special values.
long double sink_of(int64_t head, Values values) {
  constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
  constexpr long double kNormal[] = {0.75L, -kInfinity, 9.0L, -3.5L, 0.0L, 40.0L};
  if (values == Values::special && head == 2) return std::numeric_limits<long double>::quiet_NaN();
  if (values == Values::special && head == 3) return kInfinity;
  return kNormal[head % 6];
}

Inputs make_inputs(const Case& c, DType dtype, DType cache, Values values, Random& random) {
  Inputs in{TestTensor(dtype, c.place, {c.b, c.h, c.m, c.d}, 1),
            TestTensor(cache, c.place,
                       c.key_major ? Shape{c.b, c.g, c.d, c.n} : Shape{c.b, c.g, c.n, c.d}, 2),
            TestTensor(cache, c.place, {c.b, c.g, c.n, c.e}, 3),
            TestTensor(c.mask_dtype(), c.place, {c.b, c.h, c.m, c.n}, 5),
            TestTensor(DType::f32, c.place, {c.h}, 6),
            TestTensor(DType::f32, c.place, {c.h}, 7)};
  if (c.bias == '0') {
    // The mask also hides whole chunks and whole rows.
    in.mask.fill_bits([&](int64_t i) {
      const int64_t key = c.n == 0 ? 0 : i % c.n, row = c.n == 0 ? 0 : i / c.n;
      return uint64_t{row % 5 != 3 && key / 256 % 2 == row % 2 && random.below(3) != 0};
    });
  } else {
    in.mask.fill_with([&](int64_t i) -> long double {
      return random.below(4) == 0 || (c.n > 256 && i / 256 % 2 == 0)
                 ? -std::numeric_limits<long double>::infinity()
                 : static_cast<long double>(random.normal());
    });
  }
  in.slopes.fill_with([&](int64_t i) { return 0.01L * static_cast<long double>(i + 1); });
  in.sinks.fill_with([&](int64_t i) { return sink_of(i, values); });
  in.q.fill(values, random);
  in.k.fill(values, random);
  in.v.fill(values, random);
  return in;
}

/// What results should be, and how far the rounding of the scores moves them: by at most twice the
/// largest error of a score times the largest value, because two scores take part in a weight.
struct Exact {
  std::vector<long double> values, slack;
};

/// Computes the specified order, one query after another. `exact` receives the exact values unless
/// it is null.
std::vector<uint64_t> reference(const Case& c, DType dtype, const Inputs& in, Exact* exact) {
  const std::vector<float> q = elements<float>(in.q), k = elements<float>(in.k),
                           v = elements<float>(in.v), mask = elements<float>(in.mask),
                           slopes = elements<float>(in.slopes), sinks = elements<float>(in.sinks);
  const auto key_at = [&](int64_t bg, int64_t j, int64_t i) {
    return k[static_cast<size_t>(c.key_major ? (bg * c.d + i) * c.n + j
                                             : (bg * c.n + j) * c.d + i)];
  };
  std::vector<uint64_t> bits;
  const float infinity = std::numeric_limits<float>::infinity();
  for (int64_t row = 0; row < c.b * c.h * c.m; ++row) {
    const int64_t i = row % c.m, head = row / c.m % c.h;
    const int64_t bg = row / c.m / c.h * c.g + head / (c.h / c.g);
    const int64_t shift = c.n - c.m;
    const auto visible = [&](int64_t j) {
      return j < c.n && (!c.params.causal || j <= i + shift) &&
             (c.params.window == 0 || j > i + shift - c.params.window);
    };
    const float sink = c.has_sinks() ? sinks[static_cast<size_t>(head)] : -infinity;
    bool first = sink == -infinity;
    float m = sink, l = 1;
    std::vector<float> o(static_cast<size_t>(c.e));
    std::vector<double> true_score;
    std::vector<int64_t> seen;
    double score_error = 0;
    for (int64_t chunk = 0; chunk < c.n; chunk += 256) {
      std::vector<float> s(256, -infinity);
      bool any = false;
      float top = -infinity;
      for (int64_t j = 0; j < 256; ++j) {
        if (!visible(chunk + j)) continue;
        any = true;
        float score = 0;
        double exact_score = 0;
        for (int64_t x = 0; x < c.d; ++x) {
          score = std::fma(q[static_cast<size_t>(row * c.d + x)], key_at(bg, chunk + j, x), score);
        }
        // A loop of its own: std::fma is a call.
        for (int64_t x = 0; exact != nullptr && x < c.d; ++x) {
          exact_score +=
              static_cast<double>(q[static_cast<size_t>(row * c.d + x)]) * key_at(bg, chunk + j, x);
        }
        score *= c.params.scale;
        exact_score *= c.params.scale;
        const float cap = c.params.soft_cap;
        if (cap > 0) {
          score = cap * math::tanh(score / cap);
          exact_score = cap * std::tanh(exact_score / cap);
        }
        if (c.adds_slopes()) {
          const auto distance = static_cast<float>(chunk + j - (i + shift));
          const float slope = slopes[static_cast<size_t>(head)];
          score = score + slope * distance;
          exact_score += static_cast<double>(slope) * static_cast<double>(distance);
        }
        const float added = mask[static_cast<size_t>(row * c.n + chunk + j)];
        if (c.adds_mask()) score = score + added, exact_score += added;
        if (c.bias == '0' && added == 0) score = -infinity, exact_score = score;
        if (std::isfinite(score)) {
          score_error = std::max(score_error, std::fabs(score - exact_score));
        }
        s[static_cast<size_t>(j)] = score;
        top = math::maximum(top, score);
        seen.push_back(chunk + j);
        true_score.push_back(exact_score);
      }
      if (!any || (c.bias != ' ' && top == -infinity)) continue;
      std::vector<float> e(256), oc(static_cast<size_t>(c.e));
      for (int64_t j = 0; j < 256; ++j) {
        if (!visible(chunk + j)) continue;
        const float ej = math::exp(s[static_cast<size_t>(j)] - top);
        e[static_cast<size_t>(j)] = ej;
        for (int64_t x = 0; x < c.e; ++x) {
          const auto ox = static_cast<size_t>(x);
          oc[ox] = std::fma(ej, v[static_cast<size_t>((bg * c.n + chunk + j) * c.e + x)], oc[ox]);
        }
      }
      const float lc = ordered_sum<float>(e);
      if (first) {
        m = top, l = lc, o = oc, first = false;
        continue;
      }
      const float joint = top > m ? top : m;
      const float a = math::exp(m - joint), b = math::exp(top - joint);
      m = joint;
      l = std::fma(l, a, lc * b);
      for (size_t x = 0; x < o.size(); ++x) o[x] = std::fma(o[x], a, oc[x] * b);
    }
    // A query that sees keys, all of whose scores are -inf: only a mask may hide them all.
    const bool nothing = first && !seen.empty() && !c.adds_mask() && c.bias != '0';
    const float none = nothing ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    for (float x : o) bits.push_back(encode(dtype, first ? none : x / l));
    if (exact == nullptr) continue;
    double top = sink, largest = 0;
    for (double s : true_score) top = std::max(top, s);
    double sum = first ? 0 : std::exp(sink - top);
    for (int64_t j : seen) {
      for (int64_t x = 0; x < c.e; ++x) {
        largest =
            std::max<double>(largest, std::fabs(v[static_cast<size_t>((bg * c.n + j) * c.e + x)]));
      }
    }
    std::vector<double> y(static_cast<size_t>(c.e));
    for (size_t z = 0; z < seen.size(); ++z) {
      const double e = first ? 0 : std::exp(true_score[z] - top);
      sum += e;
      for (int64_t x = 0; x < c.e; ++x) {
        y[static_cast<size_t>(x)] += e * v[static_cast<size_t>((bg * c.n + seen[z]) * c.e + x)];
      }
    }
    const double slack = 2 * score_error * largest;
    for (double x : y) {
      exact->values.push_back(first ? 0 : x / sum);
      exact->slack.push_back(slack);
    }
  }
  return bits;
}

std::vector<uint64_t> check(const Case& c, DType dtype, DType cache, Values values,
                            Random& random) {
  const std::string what =
      describe(c) + fmt::format(" {} {} {}", name(dtype), name(cache), name(values));
  const Inputs in = make_inputs(c, dtype, cache, values, random);
  TestTensor out(dtype, c.place, {c.b, c.h, c.m, c.e}, 4, true);
  const TestTensor* const inputs[] = {&in.q, &in.k, &in.v, &in.mask, &in.slopes, &in.sinks};
  const auto bias = [&](auto views) {
    AttentionBias given;
    if (c.adds_mask() || c.bias == '0') given.mask = views[3];
    if (c.adds_slopes()) given.slopes = views[4];
    if (c.has_sinks()) given.sinks = views[5];
    return given;
  };
  run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
    ConstView k = views[1];
    if (c.key_major) k.layout = k.layout.transpose(2, 3);
    const auto work = [&] { b.attention(o, views[0], k, views[2], c.params, bias(views)); };
    // Every call can be captured in a graph.
    if (c.m * c.n == 7 * 70) {
      b.record(work)->replay();
    } else {
      work();
    }
  });
  Exact exact;
  const std::vector<uint64_t> bits =
      reference(c, dtype, in, values == Values::normal ? &exact : nullptr);
  expect_bits(what, out, bits);
  if (values == Values::normal) {
    std::vector<long double> tolerance;
    for (size_t i = 0; i < exact.values.size(); ++i) {
      tolerance.push_back(0.51L * ulp(dtype, exact.values[i]) + std::max(0x1p-15L, exact.slack[i]));
    }
    expect_within(what, out, exact.values, tolerance);
  }
  // Runs the same queries one at a time: decoding and prompts must give the same bits.
  if (c.m > 1 && c.params.causal && (c.bias == ' ' || c.bias == 's') && c.m <= c.n && !failed()) {
    const std::vector<uint64_t> all = out.bits();
    for (int64_t i = 0; i < c.m; i += 1 + c.m / 7) {
      const int64_t keys = c.n - c.m + i + 1;
      TestTensor one(dtype, Place::contiguous, {c.b, c.h, 1, c.e}, 4, true);
      run_everywhere(what + " one query", one, inputs, [&](Backend& b, const View& o, auto views) {
        ConstView q = views[0], k = views[1], v = views[2];
        if (c.key_major) k.layout = k.layout.transpose(2, 3);
        q.layout = q.layout.narrow(2, i, 1);
        k.layout = k.layout.narrow(2, 0, keys);
        v.layout = v.layout.narrow(2, 0, keys);
        b.attention(o, q, k, v, c.params, bias(views));
      });
      const std::vector<uint64_t> got = one.bits();
      for (size_t x = 0; x < got.size(); ++x) {
        const auto bh = x / static_cast<size_t>(c.e), ex = x % static_cast<size_t>(c.e);
        const size_t at =
            (bh * static_cast<size_t>(c.m) + static_cast<size_t>(i)) * static_cast<size_t>(c.e) +
            ex;
        if (same_bits(dtype, got[x], all[at])) continue;
        ADD_FAILURE() << what << ": query " << i << " alone differs at " << x;
        return bits;
      }
    }
  }
  return bits;
}

void add_biased(std::vector<Case>& list, char bias) {
  for (bool causal : {true, false}) {
    list.push_back({1, 4, 2, 7, 70, 16, 16, masks(causal), Place::contiguous, true, bias});
    list.push_back({2, 3, 1, 40, 600, 16, 20, masks(causal), Place::sliced, false, bias});
    list.push_back({1, 3, 3, 1, 700, 24, 16, masks(causal), Place::stepped, false, bias});
  }
  list.push_back({1, 2, 1, 20, 30, 8, 16, masks(true, 9, 5.0f), Place::transposed, false, bias});
  list.push_back({2, 8, 2, 2, 530, 16, 136, masks(true), Place::broadcast, true, bias});
  list.push_back({1, 3, 1, 9, 5, 16, 16, masks(true, 2), Place::contiguous, false, bias});
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const AttentionParams causal = masks(true), open = masks(false);
  for (bool cached : {true, false}) {
    for (int64_t n : {1, 2, 15, 16, 17, 31, 33, 64, 100, 128, 255, 256, 257, 511, 600, 1100}) {
      list.push_back({1, 9, 3, 1, n, 64, 64, causal, Place::contiguous, cached});
    }
    for (int64_t d : {1, 20, 64, 80, 128}) {
      list.push_back({2, 4, 2, 3, 70, d, d, causal, Place::contiguous, cached});
      list.push_back({1, 2, 1, 1, 300, d, 64, causal, Place::contiguous, cached});
      list.push_back({1, 2, 2, 9, 290, 16, d, open, Place::contiguous, cached});
    }
  }
  for (int64_t group : {1, 2, 3, 4, 5, 6, 7, 12}) {
    list.push_back({1, group, 1, 1, 90, 16, 32, causal, Place::sliced, true});
    list.push_back({1, group, 1, 7, 90, 16, 16, causal, Place::contiguous, true});
  }
  for (int64_t m : {2, 5, 13, 64, 65, 193, 300}) {
    list.push_back({1, 3, 1, m, m, 16, 16, causal, Place::contiguous, true});
    list.push_back({1, 2, 2, m, m + 260, 8, 16, causal, Place::contiguous, true});
    list.push_back({1, 2, 1, m, 300, 8, 8, open});
  }
  // Cases of decode_rows.gpu and decode_warps.gpu: contiguous keys, one to eight rows for each key
  // head, and head sizes with different numbers of keys in a piece of the ring buffer.
  for (int64_t d : {8, 48, 64, 80, 128, 256}) {
    AttentionParams all = open, last = causal, window = masks(true, 200);
    all.scale = last.scale = window.scale = d <= 64 ? 0.2f : 0.06f;
    list.push_back({2, 3, 3, 1, 520, d, d, all});
    list.push_back({1, 4, 2, 8, 300, d, 32, last});
    list.push_back({1, 5, 1, 1, 260, d, d, window});
    list.push_back({1, 1, 1, 1, 100, d, d, all});
    list.push_back({1, 3, 3, 1, 600, d, d, last});
  }
  list.push_back({1, 2, 1, 300, 1100, 20, 16, causal, Place::contiguous, true});
  for (int64_t window : {1, 3, 40, 256, 300, 5000}) {
    list.push_back({1, 2, 1, 1, 700, 16, 16, masks(true, window), Place::contiguous, true});
    list.push_back({1, 2, 1, 290, 400, 8, 16, masks(true, window), Place::contiguous, true});
    list.push_back({1, 2, 1, 20, 30, 8, 16, masks(false, window)});
  }
  list.push_back({1, 2, 1, 40, 300, 16, 16, masks(true, 0, 5.0f), Place::contiguous, true});
  list.push_back({1, 2, 1, 1, 300, 16, 16, masks(true, 33, 2.0f), Place::contiguous, true});
  // With more queries than keys, the first queries attend to no key.
  list.push_back({1, 3, 1, 20, 7, 16, 16, causal});
  list.push_back({1, 3, 3, 9, 5, 16, 16, masks(true, 2)});
  list.push_back({2, 3, 1, 4, 0, 16, 16, causal});
  list.push_back({0, 3, 1, 4, 5, 16, 16, causal});
  list.push_back({1, 3, 1, 4, 5, 16, 0, causal});
  for (char bias : {'+', '0', 'a', 'A', 's', 'S'}) add_biased(list, bias);
  // Passes of the CPU with each number of rows, over whole and partial chunks.
  for (int64_t group : {1, 2, 3, 4, 5, 6, 12}) {
    list.push_back({1, group, 1, 1, 300, 16, 32, causal, Place::contiguous, true, 's'});
    list.push_back({1, group, 1, 20, 270, 16, 16, causal, Place::contiguous, false, 's'});
  }
  // The largest heads of models: 576 elements of keys and 512 of values.
  const AttentionParams large{.scale = 0.04f};
  list.push_back({1, 4, 1, 2, 270, 576, 512, large, Place::contiguous, true});
  list.push_back({1, 4, 1, 1, 270, 576, 512, large, Place::contiguous, false, 'a'});
  for (Place place : {Place::transposed, Place::broadcast, Place::scalar, Place::sliced,
                      Place::stepped, Place::scattered}) {
    for (bool cached : {false, true}) {
      list.push_back({2, 4, 2, 5, 37, 24, 40, causal, place, cached});
      list.push_back({1, 6, 2, 1, 270, 20, 16, causal, place, cached});
    }
  }
  return list;
}

/// Returns a shape that is empty if an operand or the result is.
Shape shape_of(const Case& c) { return {c.b, c.h, c.m * c.n, c.d * c.e}; }

void check_list(const std::vector<Case>& list, DType dtype, DType cache, Random& random) {
  for (const Case& c : list) {
    if (!here(c.place, shape_of(c))) continue;
    check(c, dtype, cache, Values::normal, random);
    if (failed()) return;
  }
  for (const Case& c : list) {
    if (c.m * c.n > 5000 || !here(c.place, shape_of(c))) continue;
    check(c, dtype, cache, Values::special, random);
    if (failed()) return;
  }
}

void check_all(DType dtype, DType cache) {
  Random random(41);
  check_list(cases(), dtype, cache, random);
  std::vector<Case> narrow_masks;
  for (char bias : {'h', 'b'}) add_biased(narrow_masks, bias);
  if (!failed()) check_list(narrow_masks, dtype, cache, random);
}

const bool added = [] {
  // GPUs must also use the specified order for many queries here; attention_bound_test covers their
  // other order.
  setenv("WICK_REPRODUCIBLE", "1", 1);
  for (DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    add_row("attention", name(dtype), [=] {
      for (DType cache : {DType::bf16, DType::f16, DType::f32}) check_all(dtype, cache);
    });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
