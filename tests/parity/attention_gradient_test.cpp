// The gradients of attention where a backend may choose the order of summation. Results must be
// within the bound of docs/design/numerics/attention.md, which a rounding of the weights to 16 bits
// violates.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "tests/parity/attention_bound.h"
#include "tests/parity/grid.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/precision.h"
#include "wick/math/half.h"

namespace wick::parity {
namespace {

using Case = AttentionCase;

struct Doubles {
  std::vector<double> q, k, v, g;
};
/// A gradient's exact values and their tolerances.
struct Bounded {
  std::vector<double> exact, tolerance;
  explicit Bounded(int64_t count)
      : exact(static_cast<size_t>(count)), tolerance(static_cast<size_t>(count)) {}
  void add(int64_t at, double value, double error) {
    exact[static_cast<size_t>(at)] += value, tolerance[static_cast<size_t>(at)] += error;
  }
  /// Returns the first index that exceeds its tolerance, or -1.
  int64_t beyond(const std::vector<double>& got) const {
    for (size_t i = 0; i < exact.size(); ++i) {
      if (!(std::abs(got[i] - exact[i]) <= tolerance[i])) return static_cast<int64_t>(i);
    }
    return -1;
  }
};

/// The exact gradients and the bound. rounding: of weights and gradients of scores, if they may be
/// rounded to 16 bits. round_weights: rounds the weights to bf16, as an error that
/// must be found.
struct GradientBound {
  Bounded dq, dk, dv, d_sinks;
  GradientBound(const Case& c, DType dtype, const Doubles& in, const AttentionTerms& terms,
                double rounding = 0, bool round_weights = false)
      : dq(c.b * c.h * c.m * c.d),
        dk(c.b * c.g * c.n * c.d),
        dv(c.b * c.g * c.n * c.e),
        d_sinks(c.b * c.h * c.m) {
    const double split = dtype == DType::f32 ? 0 : std::max(rounding, 0x1p-17);
    const double scale = double{c.params.scale}, cap = double{c.params.soft_cap};
    const int64_t group = c.h / c.g;
    const double many = std::sqrt(static_cast<double>(c.m * group));
    const auto root = [](int64_t n) { return std::sqrt(static_cast<double>(n)); };
    const auto at = [](const std::vector<double>& of, int64_t i) {
      return of[static_cast<size_t>(i)];
    };
    // The floor of f16 terms is relative to the largest product of a key head.
    std::vector<double> top(static_cast<size_t>(c.b * c.g), 0.0);
    struct Pair {
      int64_t key;
      double weight, bend, product, size;  // size: of the product's terms
    };
    const auto pairs_of = [&](int64_t row, double& error, double& sink_weight) {
      const int64_t own = row % c.m + c.n - c.m, head = row / c.m % c.h;
      const int64_t g = row / c.m / c.h * c.g + head / group;
      std::vector<Pair> pairs;
      std::vector<double> scores, added;
      const double sink = terms.sink(head);
      const bool sinks = sink != -INFINITY;
      double most = sink, off = 0;
      for (int64_t j = 0; j < c.n; ++j) {
        if (c.params.causal && j > own) continue;
        if (c.params.window > 0 && j <= own - c.params.window) continue;
        double s = 0, all = 0, product = 0, size = 0;
        for (int64_t x = 0; x < c.d; ++x) {
          const double p = at(in.q, row * c.d + x) * at(in.k, (g * c.n + j) * c.d + x);
          s += p, all += std::abs(p);
        }
        for (int64_t x = 0; x < c.e; ++x) {
          const double p = at(in.g, row * c.e + x) * at(in.v, (g * c.n + j) * c.e + x);
          product += p, size += std::abs(p);
        }
        s *= scale;
        double bend = 1, magnitude = 0;
        if (cap > 0) {
          const double t = std::tanh(s / cap);
          bend = 1 - t * t, s = cap * t;
        }
        if (!terms.slopes.empty()) {
          const double term = at(terms.slopes, head) * static_cast<double>(j - own);
          s += term, magnitude += std::abs(term);
        }
        if (!terms.mask.empty()) {
          const double term = at(terms.mask, row * c.n + j);
          if (term == -INFINITY) continue;
          s += term, magnitude += std::abs(term);
        }
        pairs.push_back({j, 0, bend, product, size});
        scores.push_back(s), added.push_back(magnitude);
        most = std::max(most, s);
        off = std::max(off, 4 * root(c.d) * 0x1p-24 * std::abs(scale) * all);
        double& limit = top[static_cast<size_t>(g)];
        limit = std::max(limit, size);
      }
      double l = sinks ? std::exp(sink - most) : 0, mean = 0, largest_term = 0;
      sink_weight = l;
      for (size_t z = 0; z < pairs.size(); ++z) l += pairs[z].weight = std::exp(scores[z] - most);
      for (size_t z = 0; z < pairs.size(); ++z) {
        pairs[z].weight /= l;
        if (round_weights) {
          pairs[z].weight =
              double{math::to_f32(math::from_f32<math::bf16>(static_cast<float>(pairs[z].weight)))};
        }
        mean += pairs[z].weight * added[z], largest_term = std::max(largest_term, added[z]);
      }
      if (sinks) {
        sink_weight /= l;
        mean += sink_weight * std::abs(sink), largest_term = std::max(largest_term, std::abs(sink));
      }
      const int64_t count = static_cast<int64_t>(pairs.size()) + (sinks ? 1 : 0);
      error = 2 * off + 4 * (root(count) + root(c.e)) * 0x1p-24 + 0x1p-20 + split +
              (largest_term + mean) * 0x1p-23 + (cap > 0 ? 2 * off / cap + 0x1p-20 : 0);
      return pairs;
    };
    for (int64_t row = 0; row < c.b * c.h * c.m; ++row) {
      double error, sink_weight;
      const int64_t g = row / c.m / c.h * c.g + row / c.m % c.h / group;
      const std::vector<Pair> pairs = pairs_of(row, error, sink_weight);
      double delta = 0, mean = 0;
      for (const Pair& p : pairs) delta += p.weight * p.product, mean += p.weight * p.size;
      // The sums of rows aren't split into terms. Weights that aren't normal numbers may be 0.
      d_sinks.add(row, -sink_weight * delta, mean * (2 * sink_weight * (error - split) + 0x1p-126));
      const double limit = top[static_cast<size_t>(g)];
      const double floor = dtype == DType::f16 ? 0x1p-37 * limit : 0x1p-120;
      for (const Pair& p : pairs) {
        const double ds = p.weight * (p.product - delta) * p.bend;
        // With a cap, an error of the derivative doesn't shrink with it.
        const double size = p.weight * (p.size + mean) * (cap > 0 ? 1 : p.bend);
        for (int64_t x = 0; x < c.d; ++x) {
          const double k = scale * at(in.k, (g * c.n + p.key) * c.d + x),
                       q = scale * at(in.q, row * c.d + x);
          dq.add(row * c.d + x, ds * k, std::abs(k) * (size * error + floor));
          dk.add((g * c.n + p.key) * c.d + x, ds * q,
                 std::abs(q) * (size * (error + 4 * many * 0x1p-24) + floor));
        }
        for (int64_t x = 0; x < c.e; ++x) {
          const double y = at(in.g, row * c.e + x);
          dv.add((g * c.n + p.key) * c.e + x, p.weight * y,
                 std::abs(y) * (p.weight * (error + 4 * many * 0x1p-24) +
                                (dtype == DType::f16 ? 0x1p-38 : 0x1p-120)));
        }
      }
    }
    for (Bounded* of : {&dq, &dk, &dv, &d_sinks}) {
      for (size_t i = 0; i < of->exact.size(); ++i) {
        // The sign of a sum that is close to a power of two may choose the larger ulp.
        const double most = std::abs(of->exact[i]) + of->tolerance[i];
        const DType rounded = of == &d_sinks ? DType::f32 : dtype;
        if (of->tolerance[i] > 0) of->tolerance[i] += ulp_of(rounded, most) / 2;
      }
    }
  }
};

/// What a call has besides its shapes.
struct Added {
  std::optional<DType> mask = {};
  bool slopes = false;
  Place place = Place::contiguous;  ///< of all operands
  double gradient = 1;              ///< the size of the result's gradient
  bool sinks = false;
};

struct Operands {
  TestTensor q, k, v, g, mask, slopes, sinks;
  AttentionTerms terms;

  Operands(const Case& c, DType dtype, const Added& added, Random& random)
      : q(dtype, added.place, {c.b, c.h, c.m, c.d}, 1),
        k(dtype, added.place, {c.b, c.g, c.n, c.d}, 2),
        v(dtype, added.place, {c.b, c.g, c.n, c.e}, 3),
        g(dtype, added.place, {c.b, c.h, c.m, c.e}, 4),
        mask(added.mask.value_or(DType::u8), added.place,
             added.mask ? Shape{c.b, c.h, c.m, c.n} : Shape{0}, 5),
        slopes(DType::f32, Place::contiguous, {c.h}, 6),
        sinks(DType::f32, added.place, {c.h}, 10) {
    for (TestTensor* t : {&q, &k, &v}) t->fill(Values::normal, random);
    g.fill_with([&](int64_t) -> long double { return added.gradient * random.normal(); });
    if (added.mask) {
      // Some keys, all keys of some queries, and all queries of some keys are hidden.
      const auto hidden = [&](int64_t i) {
        const int64_t key = i % c.n, query = i / c.n % c.m;
        return query % 7 == 3 || key % 11 == 5 || random.below(2) == 0;
      };
      if (*added.mask == DType::u8) {
        mask.fill_bits([&](int64_t i) { return hidden(i) ? uint64_t{0} : uint64_t{1}; });
      } else {
        mask.fill_with(
            [&](int64_t i) -> long double { return hidden(i) ? -INFINITY : random.normal(); });
      }
      for (const double x : mask.doubles()) {
        terms.mask.push_back(*added.mask != DType::u8 ? x : x == 0 ? -INFINITY : 0.0);
      }
    }
    if (added.slopes) {
      slopes.fill_with([](int64_t i) { return i % 2 == 0 ? 0.25L / (i + 1) : -0.01L; });
      terms.slopes = slopes.doubles();
    }
    if (added.sinks) {
      constexpr long double kSinks[] = {1.7L, 12.4L, -5.3L, -INFINITY, 0.0L, -60.0L};
      sinks.fill_with([&](int64_t i) { return kSinks[(i + c.n) % 6]; });
      terms.sinks = sinks.doubles();
    }
  }
  GradientBound bound(const Case& c, DType dtype, double rounding = 0,
                      bool round_weights = false) const {
    return GradientBound(c, dtype, {q.doubles(), k.doubles(), v.doubles(), g.doubles()}, terms,
                         rounding, round_weights);
  }
};

/// The gradients on a device.
struct Gradients {
  std::vector<double> dq, dk, dv, d_sinks;
  Gradients(Operands& in, const Case& c, DType dtype, Place place, const Target& target) {
    Backend& backend = *target.backend;
    TestTensor q(dtype, place, {c.b, c.h, c.m, c.d}, 7, true),
        k(dtype, place, {c.b, c.g, c.n, c.d}, 8, true),
        v(dtype, place, {c.b, c.g, c.n, c.e}, 9, true),
        sinks(DType::f32, place, {c.b, c.h, c.m}, 11, true);
    for (TestTensor* t : {&q, &k, &v, &sinks}) t->wipe();
    const OnDevice q_in(backend, in.q.storage()), k_in(backend, in.k.storage()),
        v_in(backend, in.v.storage()), g_in(backend, in.g.storage()),
        mask_in(backend, in.mask.storage()), slopes_in(backend, in.slopes.storage()),
        sinks_in(backend, in.sinks.storage()), q_out(backend, q.storage()),
        k_out(backend, k.storage()), v_out(backend, v.storage()), s_out(backend, sinks.storage());
    AttentionBias bias;
    if (!in.terms.mask.empty()) bias.mask = mask_in.view(std::as_const(in.mask).view());
    if (!in.terms.slopes.empty()) bias.slopes = slopes_in.view(std::as_const(in.slopes).view());
    const bool of_sinks = !in.terms.sinks.empty();
    if (of_sinks) bias.sinks = sinks_in.view(std::as_const(in.sinks).view());
    backend.attention_gradient(q_out.view(q.view()), k_out.view(k.view()), v_out.view(v.view()),
                               of_sinks ? s_out.view(sinks.view()) : View{nullptr, DType::f32, {}},
                               g_in.view(std::as_const(in.g).view()),
                               q_in.view(std::as_const(in.q).view()),
                               k_in.view(std::as_const(in.k).view()),
                               v_in.view(std::as_const(in.v).view()), c.params, bias);
    q_out.fetch(q.storage()), k_out.fetch(k.storage()), v_out.fetch(v.storage());
    dq = q.doubles(), dk = k.doubles(), dv = v.doubles();
    if (!of_sinks) return;
    s_out.fetch(sinks.storage());
    d_sinks = sinks.doubles();
  }
};

void check(const Case& c, DType dtype, Random& random, const Added& added = {},
           double rounding = 0) {
  Operands in(c, dtype, added, random);
  const GradientBound bound = in.bound(c, dtype, rounding);
  const Place place = added.place == Place::broadcast ? Place::contiguous : added.place;
  for (const Target& target : targets()) {
    const Gradients got(in, c, dtype, place, target);
    const auto expect = [&](const char* what, const Bounded& of, const std::vector<double>& x) {
      const int64_t at = of.beyond(x);
      if (at < 0) return;
      const auto i = static_cast<size_t>(at);
      ADD_FAILURE() << fmt::format(
          "{} of attention b {} h {} g {} m {} n {} d {} e {} {} causal {} window {} cap {} scale "
          "{}{}{}{} on {}: element {} is {:.9g}, not {:.9g}, off by {:.3g}, more than {:.3g}",
          what, c.b, c.h, c.g, c.m, c.n, c.d, c.e, name(dtype), c.params.causal, c.params.window,
          c.params.soft_cap, c.params.scale, added.mask ? " mask" : "",
          added.slopes ? " slopes" : "", added.sinks ? " sinks" : "", target.name, at, x[i],
          of.exact[i], std::abs(x[i] - of.exact[i]), of.tolerance[i]);
    };
    expect("dq", bound.dq, got.dq);
    expect("dk", bound.dk, got.dk);
    expect("dv", bound.dv, got.dv);
    if (added.sinks) expect("d_sinks", bound.d_sinks, got.d_sinks);
  }
}

constexpr AttentionParams kCausal{.scale = 0.1f}, kOpen{.scale = 0.1f, .causal = false};

/// Sizes, heads, windows and caps, of head sizes that matrix units take and of others.
void check_shapes(DType dtype) {
  Random random(3);
  const auto run = [&](const Case& c, const Added& added = {}) {
    if (!failed()) check(c, dtype, random, added);
  };
  run({1, 1, 1, 1, 8, 8, kCausal});
  run({2, 1, 20, 33, 30, 20, kCausal});  // no vectors
  run({2, 2, 70, 136, 64, 64, kCausal, true, 2});
  run({4, 2, 40, 150, 64, 40, kOpen});
  run({3, 1, 65, 200, 128, 128, kCausal});
  run({1, 1, 140, 130, 80, 128, kOpen});
  run({3, 1, 30, 16, 64, 64, kCausal});  // the first queries see no key
  run({2, 1, 90, 204, 64, 64, {.scale = 0.1f, .window = 30}});
  run({2, 1, 300, 280, 64, 64, kCausal});
  run({2, 2, 270, 330, 128, 128, {.scale = 0.1f, .window = 150}});
  run({2, 1, 20, 204, 64, 64, {.scale = 0.1f, .window = 10}});  // no query sees the first keys
  run({2, 1, 70, 104, 128, 64, {.scale = 0.3f, .soft_cap = 2.0f}});
  run({1, 1, 12, 40, 256, 200, kOpen});
  run({4, 2, 40, 90, 256, 256, kCausal, true, 2});
  run({2, 1, 70, 100, 192, 128, {.scale = 0.1f, .window = 60}});
  run({1, 1, 40, 70, 72, 136, kCausal});
  run({2, 1, 20, 70, 160, 160, {.scale = 0.3f, .soft_cap = 2.0f}});
  run({1, 1, 70, 90, 64, 64, {.scale = 1e8f}});  // scores without significant bits
  run({1, 1, 70, 90, 64, 64, {.scale = -0.2f}});
  run({2, 1, 0, 10, 64, 64, kCausal});
  for (const Place place : {Place::transposed, Place::stepped, Place::sliced}) {
    run({4, 2, 33, 70, 64, 32, kCausal}, {.place = place});
  }
}

/// Random sizes, of heads of up to 256 elements, and random terms of the scores.
void check_random(DType dtype) {
  Random random(6);
  for (int i = 0; i < 12 && !failed(); ++i) {
    Case c{};
    c.g = 1 + random.below(2);
    c.h = c.g * (1 + random.below(3));
    c.m = 1 + random.below(90), c.n = 1 + random.below(150);
    c.d = 8 * (1 + random.below(32)), c.e = 8 * (1 + random.below(32));
    c.params = {.scale = 0.1f, .causal = random.below(2) == 0};
    if (c.params.causal && random.below(3) == 0) c.params.window = 1 + random.below(c.n);
    if (random.below(4) == 0) c.params.soft_cap = 2.0f;
    Added added;
    if (random.below(3) == 0) added.mask = DType::bf16;
    added.slopes = random.below(4) == 0;
    added.sinks = random.below(4) == 0;
    check(c, dtype, random, added);
  }
}

void check_terms(DType dtype) {
  Random random(4);
  const auto run = [&](const Case& c, const Added& added) {
    if (!failed()) check(c, dtype, random, added);
  };
  for (const DType mask : {DType::f32, DType::f16, DType::bf16, DType::u8}) {
    run({4, 2, 33, 72, 64, 64, kCausal}, {.mask = mask});
    run({2, 1, 20, 67, 40, 64, kOpen}, {.mask = mask, .place = Place::transposed});
  }
  run({4, 2, 70, 90, 128, 128, kCausal}, {.slopes = true});
  run({2, 1, 40, 90, 256, 192, kCausal}, {.mask = DType::bf16, .slopes = true});
  run({2, 1, 40, 90, 256, 256, kCausal}, {.gradient = 1024});
  run({2, 1, 70, 90, 64, 64, {.scale = 0.2f, .window = 50, .soft_cap = 3.0f}},
      {.mask = DType::bf16, .slopes = true});
  // Gradients beyond the range of f16's products, and below that of its normal numbers.
  run({2, 1, 70, 90, 64, 64, kCausal}, {.gradient = 4096});
  run({2, 1, 70, 90, 64, 64, kCausal}, {.gradient = 0x1p-12});
}

void check_sinks(DType dtype) {
  Random random(9);
  const auto run = [&](const Case& c, Added added = {}) {
    added.sinks = true;
    if (!failed()) check(c, dtype, random, added);
  };
  run({6, 2, 33, 72, 64, 64, kCausal, true, 2});
  run({2, 1, 140, 130, 128, 128, kOpen});
  run({2, 1, 40, 70, 256, 192, kCausal});
  run({4, 2, 33, 70, 64, 32, kCausal}, {.place = Place::stepped});
  run({3, 1, 30, 16, 64, 64, kCausal});  // the first queries see no key
  run({2, 1, 20, 33, 30, 20, kCausal});  // no vectors
  run({2, 1, 9, 0, 64, 64, kCausal});
  run({2, 2, 90, 204, 64, 64, {.scale = 0.1f, .window = 30, .soft_cap = 3.0f}});
  run({4, 2, 33, 72, 64, 64, kCausal}, {.mask = DType::u8, .slopes = true});
}

/// So many keys that the CPU has no memory for sums of all of them.
void check_long() {
  Random random(8);
  check({2, 1, 60, 3700, 256, 240, {.scale = 0.05f, .window = 3000}}, DType::f32, random);
  check({1, 1, 9, 4200, 256, 200, {.scale = 0.05f, .soft_cap = 3.0f}}, DType::bf16, random);
  check({2, 1, 9, 4200, 256, 200, {.scale = 0.05f}}, DType::f32, random, {.sinks = true});
}

/// Precision::fast, which may round weights and gradients of scores to the dtype.
void check_fast(DType dtype) {
  Random random(7);
  set_precision(Precision::fast);
  const auto run = [&](const Case& c, const Added& added = {}) {
    if (!failed()) check(c, dtype, random, added, dtype == DType::f16 ? 0x1p-11 : 0x1p-8);
  };
  run({4, 2, 70, 150, 64, 64, kCausal, true, 2});
  run({2, 1, 150, 200, 128, 128, kOpen});
  run({2, 1, 70, 104, 128, 64, {.scale = 0.3f, .soft_cap = 2.0f}});
  run({2, 1, 33, 72, 64, 64, kCausal}, {.mask = DType::u8, .slopes = true});
  run({2, 1, 150, 200, 128, 128, kOpen}, {.sinks = true});
  run({2, 1, 30, 90, 256, 256, kCausal}, {.sinks = true});
  run({2, 1, 90, 70, 256, 200, kOpen});
  set_precision(Precision::full);
}

/// Only dq, only dk and dv, or only the gradient of the sinks have the bits of all of them.
void check_wanted() {
  Random random(5);
  const Case c{2, 1, 70, 90, 64, 64, kCausal};
  for (const Target& target : targets()) {
    Backend& backend = *target.backend;
    Operands in(c, DType::bf16, {.sinks = true}, random);
    const Gradients all(in, c, DType::bf16, Place::contiguous, target);
    enum class Only { q, keys, sinks };
    for (const Only only : {Only::q, Only::keys, Only::sinks}) {
      TestTensor q(DType::bf16, Place::contiguous, {c.b, c.h, c.m, c.d}, 7, true),
          k(DType::bf16, Place::contiguous, {c.b, c.g, c.n, c.d}, 8, true),
          v(DType::bf16, Place::contiguous, {c.b, c.g, c.n, c.e}, 9, true),
          sinks(DType::f32, Place::contiguous, {c.b, c.h, c.m}, 11, true);
      const OnDevice q_in(backend, in.q.storage()), k_in(backend, in.k.storage()),
          v_in(backend, in.v.storage()), g_in(backend, in.g.storage()),
          sinks_in(backend, in.sinks.storage()), q_out(backend, q.storage()),
          k_out(backend, k.storage()), v_out(backend, v.storage()), s_out(backend, sinks.storage());
      AttentionBias bias;
      bias.sinks = sinks_in.view(std::as_const(in.sinks).view());
      const auto wanted = [](bool is, View view) {
        if (!is) view.data = nullptr;
        return view;
      };
      backend.attention_gradient(wanted(only == Only::q, q_out.view(q.view())),
                                 wanted(only == Only::keys, k_out.view(k.view())),
                                 wanted(only == Only::keys, v_out.view(v.view())),
                                 wanted(only == Only::sinks, s_out.view(sinks.view())),
                                 g_in.view(std::as_const(in.g).view()),
                                 q_in.view(std::as_const(in.q).view()),
                                 k_in.view(std::as_const(in.k).view()),
                                 v_in.view(std::as_const(in.v).view()), c.params, bias);
      q_out.fetch(q.storage()), k_out.fetch(k.storage()), v_out.fetch(v.storage());
      s_out.fetch(sinks.storage());
      if (only == Only::q) {
        EXPECT_EQ(q.doubles(), all.dq) << target.name;
      } else if (only == Only::sinks) {
        EXPECT_EQ(sinks.doubles(), all.d_sinks) << target.name;
      } else {
        EXPECT_EQ(k.doubles(), all.dk) << target.name;
        EXPECT_EQ(v.doubles(), all.dv) << target.name;
      }
    }
  }
}

/// Rounding the weights to bf16 must be detected in each gradient.
void check_planted() {
  Random random(6);
  const Case c{1, 1, 70, 90, 64, 64, kCausal};
  Operands in(c, DType::f32, {.sinks = true}, random);
  const GradientBound bound = in.bound(c, DType::bf16), planted = in.bound(c, DType::bf16, 0, true);
  EXPECT_GE(bound.dq.beyond(planted.dq.exact), 0);
  EXPECT_GE(bound.dk.beyond(planted.dk.exact), 0);
  EXPECT_GE(bound.dv.beyond(planted.dv.exact), 0);
  EXPECT_GE(bound.d_sinks.beyond(planted.d_sinks.exact), 0);
}

/// Which of the kernels for d and e of up to 64, 128 and 256 a check must have launched, and which
/// of those with a soft cap, a mask, slopes or sinks.
struct Launched {
  std::vector<int> plain, biased;
};

/// Expects that the GPUs launched the kernels that WICK_GPU_ATTENTION=choice selects. A device that
/// lacks them launches those without matrix units.
void expect_launched(DType dtype, std::string_view choice, std::string_view terms,
                     const Launched& launched) {
  for (const Target& target : targets()) {
    auto* const backend = dynamic_cast<gpu::GpuBackend*>(target.backend);
    if (backend == nullptr) continue;
    gpu::Gpu& gpu = backend->gpu();
    const auto expect = [&](std::string_view file, const std::string& kernel) {
      EXPECT_TRUE(gpu.has_used(file, kernel)) << kernel << " on " << target.name;
    };
    if (choice == "plain" || dtype == DType::f32 || !gpu.has(gpu::Feature::matrix_unit)) {
      for (const char* part : {"sums", "queries", "keys"}) {
        expect("gradient", fmt::format("gradient_{}_{}", part, name(dtype)));
      }
      continue;
    }
    const bool amd = gpu.device.kind == DeviceKind::hip,
               wgmma = choice == "wgmma" && gpu.has(gpu::Feature::wgmma);
    const std::string unit = amd ? "_mma" : wgmma ? "_wgmma" : "";
    const auto expect_all = [&](const char* bias, int width) {
      for (const std::string& part :
           {std::string("sums"), fmt::format("queries_{}", terms), fmt::format("keys_{}", terms)}) {
        if (width <= 128) {
          expect("flash_gradient" + unit,
                 fmt::format("flash{}{}_{}_{}_{}", unit, bias, part, width, name(dtype)));
        } else if (amd) {  // with and without a bias
          expect("flash_gradient_mma", fmt::format("flash_mma_wide_{}_{}", part, name(dtype)));
        } else {
          expect("flash_gradient", fmt::format("flash{}_{}_{}_{}", bias, part, width, name(dtype)));
        }
      }
    };
    for (const int width : launched.plain) expect_all("", width);
    for (const int width : launched.biased) expect_all("_bias", width);
  }
}

const bool added = [] {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (const char* kernel : {"plain", "mma", "wgmma"}) {
      const auto with = [=](void (*run)(DType), const Launched& launched) {
        return [=] {
          setenv("WICK_GPU_ATTENTION", kernel, 1);
          run(dtype);
          unsetenv("WICK_GPU_ATTENTION");
          if (!failed()) expect_launched(dtype, kernel, "exact", launched);
        };
      };
      add(fmt::format("attention_gradient.{}.{}", name(dtype), kernel),
          with(check_shapes, {.plain = {64, 128, 256}, .biased = {128, 256}}));
      add(fmt::format("attention_gradient.{}.{}_added", name(dtype), kernel),
          with(check_terms, {.plain = {64, 256}, .biased = {64, 128, 256}}));
      add(fmt::format("attention_gradient.{}.{}_sinks", name(dtype), kernel),
          with(check_sinks, {.plain = {}, .biased = {64, 128, 256}}));
    }
  }
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const char* kernel : {"mma", "wgmma"}) {
      add(fmt::format("attention_gradient.fast.{}.{}", name(dtype), kernel), [=] {
        setenv("WICK_GPU_ATTENTION", kernel, 1);
        check_fast(dtype);
        unsetenv("WICK_GPU_ATTENTION");
        if (!failed()) {
          expect_launched(dtype, kernel, "fast",
                          {.plain = {64, 128, 256}, .biased = {64, 128, 256}});
        }
      });
    }
  }
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    add(fmt::format("attention_gradient.{}.random", name(dtype)), [=] { check_random(dtype); });
  }
  add("attention_gradient.long", check_long);
  add("attention_gradient.wanted", check_wanted);
  add("attention_gradient.planted", check_planted);
  return true;
}();

}  // namespace
}  // namespace wick::parity
