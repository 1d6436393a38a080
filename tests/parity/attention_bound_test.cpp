// attention of many queries where a backend may choose the order of summation. Results must be
// within the bound of docs/design/numerics/attention.md, which an intermediate rounding to f16
// violates.

#include "tests/parity/attention_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/parity/grid.h"
#include "wick/math/half.h"

namespace wick::parity {
namespace {

using Case = AttentionCase;
using Bound = AttentionBound;

void check(const Case& c, DType dtype, DType cache, Random& random) {
  TestTensor q(dtype, Place::contiguous, {1, c.h, c.m, c.d}, 1);
  TestTensor k(cache, Place::contiguous,
               c.key_major ? Shape{1, c.g, c.d, c.n} : Shape{1, c.g, c.n, c.d}, 2);
  TestTensor v(cache, Place::contiguous, {1, c.g, c.n, c.e}, 3);
  for (TestTensor* t : {&q, &k, &v}) t->fill(Values::normal, random);
  const Bound bound(c, dtype, q.doubles(), k.doubles(), v.doubles());
  const std::string what =
      fmt::format("attention h {} g {} m {} n {} d {} e {} {} {} causal {} window {} cap {}{}", c.h,
                  c.g, c.m, c.n, c.d, c.e, name(dtype), name(cache), c.params.causal,
                  c.params.window, c.params.soft_cap, c.key_major ? " key-major" : "");
  for (const Target& target : targets()) {
    TestTensor out(dtype, Place::contiguous, {1, c.h, c.m, c.e}, 4, true);
    out.wipe();
    const OnDevice q_there(*target.backend, q.storage()), k_there(*target.backend, k.storage()),
        v_there(*target.backend, v.storage()), out_there(*target.backend, out.storage());
    ConstView keys = k_there.view(std::as_const(k).view());
    if (c.key_major) keys.layout = keys.layout.transpose(2, 3);
    target.backend->attention(out_there.view(out.view()), q_there.view(std::as_const(q).view()),
                              keys, v_there.view(std::as_const(v).view()), c.params, {});
    out_there.fetch(out.storage());
    const std::vector<double> got = out.doubles();
    const int64_t at = bound.beyond(got);
    if (at >= 0) {
      const auto i = static_cast<size_t>(at);
      ADD_FAILURE() << fmt::format(
          "{} on {}: element {} is {:.9g}, not {:.9g}, off by more than {:.3g}", what, target.name,
          at, got[i], bound.exact[i], bound.tolerance[i]);
    }
  }
}

void check_all(DType dtype, DType cache) {
  Random random(3);
  const AttentionParams causal{.scale = 0.1f};
  const auto run = [&](const Case& c) {
    if (!failed()) check(c, dtype, cache, random);
  };
  for (int64_t d : {8, 64, 80, 128}) {
    run({4, 1, 40, 96, d, d, causal});
    run({2, 2, 70, 136, d, 64, causal, false});
  }
  for (int64_t m : {9, 16, 64, 65, 200}) run({3, 1, m, (m + 7) / 8 * 8, 64, 64, causal});
  run({2, 1, 12, 1200, 128, 128, causal});
  run({2, 1, 30, 600, 64, 64, {.scale = 0.1f, .causal = false}});
  for (int64_t window : {1, 30, 100})
    run({2, 1, 90, 304, 64, 64, {.scale = 0.1f, .window = window}});
  run({2, 1, 90, 304, 64, 64, {.scale = 0.1f, .soft_cap = 5.0f}});
  run({3, 1, 30, 16, 64, 64, causal});  // the first queries attend to no key
  run({2, 1, 20, 33, 30, 20, causal});  // odd sizes
  // Scores so large that subtracting 14 doesn't change the float. The result must be finite.
  for (float scale : {3e6f, 1e8f}) run({2, 1, 70, 200, 64, 64, {.scale = scale}});
}

/// Checks the kernels that WICK_GPU_ATTENTION selects. Adds cases with several thread blocks of
/// rows, with so many keys that kernels use fewer terms, and with tiles that causal rows and
/// windows see in part.
void check_kernel(DType dtype, DType cache, const char* kernel) {
  setenv("WICK_GPU_ATTENTION", kernel, 1);
  check_all(dtype, cache);
  Random random(5);
  const auto run = [&](const Case& c) {
    if (!failed()) check(c, dtype, cache, random);
  };
  const AttentionParams causal{.scale = 0.1f}, open{.scale = 0.1f, .causal = false};
  for (const bool key_major : {true, false}) {
    run({1, 1, 150, 1288, 128, 128, causal, key_major});
    run({4, 1, 70, 200, 64, 64, causal, key_major});
    run({1, 1, 130, 1104, 64, 56, open, key_major});
    run({2, 2, 140, 264, 72, 128, {.scale = 0.1f, .window = 150}, key_major});
  }
  run({1, 1, 260, 256, 64, 64, {.scale = 0.1f, .soft_cap = 5.0f}});
  run({1, 1, 130, 256, 64, 64, {.scale = 1e8f}});
  unsetenv("WICK_GPU_ATTENTION");
}

/// Rounding the queries to f16 must be detected.
void check_planted() {
  Random random(4);
  const Case c{1, 1, 40, 96, 64, 64, {.scale = 0.1f}};
  std::vector<double> q, rounded, k, v;
  for (int64_t i = 0; i < c.m * c.d; ++i) {
    q.push_back(double{static_cast<float>(2 * random.normal())});
    rounded.push_back(
        double{math::to_f32(math::from_f32<math::f16>(static_cast<float>(q.back())))});
  }
  for (int64_t i = 0; i < c.n * c.d; ++i) k.push_back(2 * random.normal());
  for (int64_t i = 0; i < c.n * c.e; ++i) v.push_back(2 * random.normal());
  const Bound bound(c, DType::f32, q, k, v), planted(c, DType::f32, rounded, k, v);
  EXPECT_GE(bound.beyond(planted.exact), 0);
}

const bool added = [] {
  unsetenv("WICK_REPRODUCIBLE");
  for (DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (DType cache : {DType::bf16, DType::f16}) {
      add(fmt::format("attention_bound.{}.{}_cache", name(dtype), name(cache)),
          [=] { check_all(dtype, cache); });
      for (const char* kernel : {"mma", "wgmma"}) {
        add(fmt::format("attention_bound.{}.{}_cache.{}", name(dtype), name(cache), kernel),
            [=] { check_kernel(dtype, cache, kernel); });
      }
    }
  }
  add("attention_bound.planted", check_planted);
  return true;
}();

}  // namespace
}  // namespace wick::parity
