// attention of many queries where a backend may choose the order of summation. Results must be
// within the bound of docs/design/numerics/attention.md, which an intermediate rounding to f16
// violates.

#include "tests/parity/attention_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "tests/parity/grid.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/precision.h"
#include "wick/math/half.h"
#include "wick/tensor/fused.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

using Case = AttentionCase;
using Bound = AttentionBound;

/// A mask of shape [1 or b, 1 or h, 1 or m, n], which broadcasts, slopes and sinks.
struct Added {
  std::optional<DType> mask = {};
  Shape shape = {};
  Place place = Place::contiguous;
  bool slopes = false;
  int64_t sees = 2;  ///< the mask hides all but about one of `sees` keys
  bool sinks = false;
};

std::string describe(const Case& c, DType dtype, DType cache, const Added& added) {
  std::string text =
      fmt::format("attention b {} h {} g {} m {} n {} d {} e {} {} {} causal {} window {} cap {}{}",
                  c.b, c.h, c.g, c.m, c.n, c.d, c.e, name(dtype), name(cache), c.params.causal,
                  c.params.window, c.params.soft_cap, c.key_major ? " key-major" : "");
  if (added.mask) {
    text += fmt::format(" mask {}[{},{},{},{}] {}", name(*added.mask), added.shape[0],
                        added.shape[1], added.shape[2], added.shape[3], name(added.place));
  }
  return text + (added.slopes ? " slopes" : "") + (added.sinks ? " sinks" : "");
}

/// Fills a mask. It hides some keys, all keys of some queries, and whole tiles of others.
void fill_mask(TestTensor& mask, int64_t sees, Random& random) {
  const int64_t n = mask.shape()[3], m = mask.shape()[2];
  const auto hidden = [&](int64_t i) {
    const int64_t key = i % n, query = i / n % m;
    const bool whole_row = m > 1 && query % 7 == 3,
               tile = n > 128 && key / 64 % 3 == query / 16 % 3;
    return whole_row || tile || random.below(sees) != 0;
  };
  if (mask.dtype() == DType::u8) {
    mask.fill_bits([&](int64_t i) { return hidden(i) ? 0 : uint64_t{1} << random.below(8); });
  } else {
    mask.fill_with(
        [&](int64_t i) -> long double { return hidden(i) ? -INFINITY : 2 * random.normal(); });
  }
}

/// The operands of a call. The mask's elements are those of all heads and queries.
struct Operands {
  TestTensor q, k, v, mask, slopes, sinks;
  AttentionTerms terms;

  Operands(const Case& c, DType dtype, DType cache, const Added& added, Random& random)
      : q(dtype, Place::contiguous, {c.b, c.h, c.m, c.d}, 1),
        k(cache, Place::contiguous,
          c.key_major ? Shape{c.b, c.g, c.d, c.n} : Shape{c.b, c.g, c.n, c.d}, 2),
        v(cache, Place::contiguous, {c.b, c.g, c.n, c.e}, 3),
        mask(added.mask.value_or(DType::u8), added.place, added.mask ? added.shape : Shape{0}, 5),
        slopes(DType::f32, added.place, {c.h}, 6),
        sinks(DType::f32, added.place, {c.h}, 7) {
    for (TestTensor* t : {&q, &k, &v}) t->fill(Values::normal, random);
    if (added.mask) {
      fill_mask(mask, added.sees, random);
      set_terms(c);
    }
    if (added.slopes) {
      slopes.fill_with([](int64_t i) { return i % 2 == 0 ? 0.25L / (i + 1) : -0.01L; });
      terms.slopes = slopes.doubles();
    }
    if (added.sinks) {
      // Among them are sinks that all exponentials are far below, that are far below them, and
      // none.
      constexpr long double kSinks[] = {1.7L, 23.4L, -5.3L, -INFINITY, 0.0L, -60.0L};
      sinks.fill_with([&](int64_t i) { return kSinks[(i + c.n) % 6]; });
      terms.sinks = sinks.doubles();
    }
  }
  /// Reads the mask's elements, after a change.
  void set_terms(const Case& c) {
    const std::vector<double> elements = mask.doubles();
    const auto at = [&](int64_t dim, int64_t index) {
      return mask.shape()[static_cast<int>(dim)] == 1 ? 0 : index;
    };
    terms.mask.clear();
    for (int64_t row = 0; row < c.b * c.h * c.m; ++row) {
      const int64_t b = row / c.m / c.h, h = row / c.m % c.h, i = row % c.m;
      const int64_t first =
          ((at(0, b) * mask.shape()[1] + at(1, h)) * mask.shape()[2] + at(2, i)) * c.n;
      for (int64_t j = 0; j < c.n; ++j) {
        const double x = elements[static_cast<size_t>(first + j)];
        terms.mask.push_back(mask.dtype() != DType::u8 ? x : x == 0 ? -INFINITY : 0.0);
      }
    }
  }
  /// The exact values and the bound.
  Bound bound(const Case& c, DType dtype, double rounding = 0, double of_queries = 0) const {
    return Bound(c, dtype, q.doubles(), k.doubles(), v.doubles(), terms, rounding, of_queries);
  }
  /// The result on a device.
  std::vector<double> run(const Case& c, DType dtype, const Target& target) {
    Backend& backend = *target.backend;
    TestTensor out(dtype, Place::contiguous, {c.b, c.h, c.m, c.e}, 4, true);
    out.wipe();
    const OnDevice q_there(backend, q.storage()), k_there(backend, k.storage()),
        v_there(backend, v.storage()), mask_there(backend, mask.storage()),
        slopes_there(backend, slopes.storage()), sinks_there(backend, sinks.storage()),
        out_there(backend, out.storage());
    ConstView keys = k_there.view(std::as_const(k).view());
    if (c.key_major) keys.layout = keys.layout.transpose(2, 3);
    AttentionBias bias;
    if (!terms.mask.empty()) {
      bias.mask = mask_there.view(std::as_const(mask).view());
      bias.mask.layout = bias.mask.layout.broadcast_to({c.b, c.h, c.m, c.n});
    }
    if (!terms.slopes.empty()) bias.slopes = slopes_there.view(std::as_const(slopes).view());
    if (!terms.sinks.empty()) bias.sinks = sinks_there.view(std::as_const(sinks).view());
    backend.attention(out_there.view(out.view()), q_there.view(std::as_const(q).view()), keys,
                      v_there.view(std::as_const(v).view()), c.params, bias);
    out_there.fetch(out.storage());
    return out.doubles();
  }
};

/// Compares results with the bound on every target.
void expect_bound(const std::string& what, const Bound& bound, Operands& in, const Case& c,
                  DType dtype) {
  for (const Target& target : targets()) {
    const std::vector<double> got = in.run(c, dtype, target);
    const int64_t at = bound.beyond(got);
    if (at >= 0) {
      const auto i = static_cast<size_t>(at);
      ADD_FAILURE() << fmt::format(
          "{} on {}: element {} is {:.9g}, not {:.9g}, off by more than {:.3g}", what, target.name,
          at, got[i], bound.exact[i], bound.tolerance[i]);
    }
  }
}

void check(const Case& c, DType dtype, DType cache, Random& random, const Added& added = {}) {
  Operands in(c, dtype, cache, added, random);
  expect_bound(describe(c, dtype, cache, added), in.bound(c, dtype), in, c, dtype);
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
  for (const float scale : {1e8f, 3e3f, 0.0f, -0.1f})
    run({1, 1, 130, 256, 64, 64, {.scale = scale}});
  run({3, 1, 50, 264, 64, 64, causal, false});  // rows aren't copied in whole boxes
  unsetenv("WICK_GPU_ATTENTION");
}

/// Checks masks of each dtype, with broadcast dims and with layouts that kernels can't load as
/// vectors, and slopes.
void check_added(DType dtype, DType cache, const char* kernel) {
  setenv("WICK_GPU_ATTENTION", kernel, 1);
  Random random(6);
  const auto run = [&](const Case& c, const Added& added) {
    if (!failed()) check(c, dtype, cache, random, added);
  };
  const AttentionParams causal{.scale = 0.1f}, open{.scale = 0.1f, .causal = false};
  for (const DType mask : {DType::f32, DType::f16, DType::bf16, DType::u8}) {
    // Rows of the mask are aligned, and the last tile is not whole.
    run({4, 2, 33, 136, 64, 64, causal}, {mask, {1, 1, 33, 136}});
    run({2, 1, 70, 264, 128, 128, open}, {mask, {1, 2, 70, 264}});
    run({4, 4, 20, 144, 64, 64, open, true, 2}, {mask, {2, 1, 1, 144}});
    // Odd sizes, and other layouts.
    run({6, 2, 19, 137, 64, 64, open, false, 2}, {mask, {2, 6, 19, 137}});
    run({2, 1, 35, 130, 40, 64, causal, false}, {mask, {1, 2, 35, 130}, Place::transposed});
    run({2, 2, 12, 192, 64, 24, open, false, 2}, {mask, {2, 2, 12, 192}, Place::stepped, true});
    run({2, 1, 12, 128, 64, 64, open}, {mask, {1, 2, 12, 128}, Place::broadcast});
    // With a window, a cap and slopes.
    run({2, 1, 70, 200, 64, 64, {.scale = 0.1f, .window = 90, .soft_cap = 5.0f}},
        {mask, {1, 1, 70, 200}, Place::contiguous, true});
    // Several thread blocks share the keys of a row. Few keys are visible, so exponentials need all
    // terms.
    run({2, 1, 12, 1160, 64, 64, open}, {mask, {1, 1, 12, 1160}, Place::contiguous, false, 60});
    run({2, 1, 12, 1160, 64, 64, {.scale = 1e-3f, .causal = false}},
        {mask, {1, 1, 12, 1160}, Place::contiguous, false, 600});
    run({3, 1, 30, 16, 64, 64, causal}, {mask, {1, 1, 30, 16}});  // first queries without keys
  }
  // The rows of a thread block of flash_wgmma.gpu.
  run({2, 1, 140, 392, 64, 64, causal}, {DType::bf16, {1, 1, 140, 392}});
  run({2, 2, 130, 264, 128, 128, open, false}, {DType::f32, {1, 2, 130, 264}, {}, true});
  for (const bool key_major : {true, false}) {
    const Added slopes{.slopes = true};
    run({4, 2, 33, 136, 64, 64, causal, key_major, 2}, slopes);
    run({2, 1, 40, 1160, 64, 64, open, key_major}, slopes);
    run({2, 1, 130, 264, 128, 128, {.scale = 0.1f, .window = 50}, key_major}, slopes);
  }
  unsetenv("WICK_GPU_ATTENTION");
}

/// Checks sinks, alone and with masks and slopes.
void check_sinks(DType dtype, DType cache, const char* kernel) {
  setenv("WICK_GPU_ATTENTION", kernel, 1);
  Random random(10);
  const auto run = [&](const Case& c, Added added = {}) {
    added.sinks = true;
    if (!failed()) check(c, dtype, cache, random, added);
  };
  const AttentionParams causal{.scale = 0.1f}, open{.scale = 0.1f, .causal = false};
  for (const bool key_major : {true, false}) {
    run({6, 2, 33, 136, 64, 64, causal, key_major, 2});
    run({2, 2, 70, 264, 128, 128, open, key_major}, {.place = Place::stepped});
    run({2, 1, 130, 264, 128, 128, {.scale = 0.1f, .window = 50}, key_major});
    // Several thread blocks share the keys of a row, of which one adds the sink.
    run({3, 1, 12, 1160, 64, 64, open, key_major});
    run({2, 1, 12, 1161, 128, 128, causal, false});
  }
  run({1, 1, 150, 1288, 128, 128, causal});
  run({2, 1, 70, 200, 64, 64, {.scale = 0.1f, .soft_cap = 5.0f}});
  run({2, 2, 40, 136, 64, 64, {.scale = -0.1f}});
  run({3, 1, 30, 16, 64, 64, causal});  // the first queries see no key
  run({2, 1, 20, 33, 30, 20, causal});  // odd sizes
  run({1, 1, 9, 1, 64, 64, open});
  run({2, 1, 12, 1160, 64, 64, open}, {DType::u8, {1, 1, 12, 1160}, Place::contiguous, true, 60});
  run({4, 2, 33, 136, 64, 64, causal}, {DType::f32, {1, 4, 33, 136}, Place::contiguous, true});
  unsetenv("WICK_GPU_ATTENTION");
}

/// Checks Precision::fast.
void check_fast(DType dtype, DType cache) {
  Random random(9);
  const AttentionParams causal{.scale = 0.1f}, open{.scale = 0.1f, .causal = false};
  const auto run = [&](const Case& c, const Added& added = {}) {
    if (failed()) return;
    Operands in(c, dtype, cache, added, random);
    const double rounding = cache == DType::f16 ? 0x1p-11 : 0x1p-8;
    set_precision(Precision::fast);
    expect_bound("fast " + describe(c, dtype, cache, added),
                 in.bound(c, dtype, rounding, dtype == cache ? 0 : rounding), in, c, dtype);
    set_precision(Precision::full);
  };
  for (const bool key_major : {true, false}) {
    for (const int64_t d : {64, 128, 256}) {
      run({1, 1, 150, 1288, d, d, causal, key_major});
      run({6, 2, 70, 200, d, d, causal, key_major, 2});
      run({5, 1, 130, 264, d, 56, open, key_major});  // five heads share a key head
      run({2, 2, 200, 264, d, d, {.scale = 0.1f, .window = 150}, key_major});
      run({2, 1, 140, 392, d, d, causal, key_major}, {DType::bf16, {1, 1, 140, 392}});
      run({2, 1, 130, 264, d, d, open, key_major}, {.slopes = true});
      run({3, 1, 130, 264, d, d, causal, key_major}, {.sinks = true});
    }
  }
  for (const Target& target : targets()) {
    auto* const gpus = dynamic_cast<gpu::GpuBackend*>(target.backend);
    if (failed() || gpus == nullptr || !gpus->gpu().has(gpu::Feature::wgmma)) continue;
    for (const int turned : {0, 1}) {
      const std::string kernel = fmt::format("flash_wgmma_fast_256_{}_{}", name(cache), turned);
      EXPECT_TRUE(gpus->gpu().has_used("flash_wgmma", kernel)) << kernel << " on " << target.name;
    }
  }
  run({1, 1, 260, 256, 64, 64, {.scale = 0.1f, .soft_cap = 5.0f}});
  run({1, 1, 200, 256, 64, 64, {.scale = -0.1f}});
  run({1, 1, 200, 256, 64, 64, {.scale = 0.0f}});
  run({1, 1, 200, 256, 64, 64, {.scale = 1e8f}});
}

/// Checks masks whose elements aren't small: NaN and infinity make exactly the rows NaN that see
/// them, and the least finite number hides nothing.
void check_extremes(DType cache, const char* kernel) {
  setenv("WICK_GPU_ATTENTION", kernel, 1);
  Random random(7);
  const Case c{2, 1, 40, 136, 64, 64, {.scale = 0.1f}};
  for (const DType mask : {DType::f32, DType::f16, DType::bf16}) {
    Operands in(c, DType::f32, cache, {mask, {1, 2, c.m, c.n}}, random);
    const auto fill = [&](auto element) {
      in.mask.fill_with([&](int64_t i) -> long double { return element(i / c.n % c.m, i % c.n); });
      in.set_terms(c);
    };
    // Query i sees the keys up to i + 96. Key 100 is hidden from the first ones.
    for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
      fill([&](int64_t i, int64_t j) { return j == 100 && i % 3 == 0 ? wrong : 0.5; });
      for (const Target& target : targets()) {
        const std::vector<double> got = in.run(c, DType::f32, target);
        for (size_t at = 0; at < got.size(); ++at) {
          const int64_t i = static_cast<int64_t>(at) / c.e % c.m;
          const bool sees = i % 3 == 0 && i + c.n - c.m >= 100;
          if (std::isnan(got[at]) == sees) continue;
          ADD_FAILURE() << fmt::format("mask {} with {} on {}: query {} gives {}", name(mask),
                                       wrong, target.name, i, got[at]);
          break;
        }
      }
    }
    if (mask == DType::f16) continue;
    // All scores of a query round to the mask's element, so all visible keys have one weight.
    in.q.fill_bits([](int64_t) { return uint64_t{0}; });
    fill([&](int64_t, int64_t) { return mask == DType::f32 ? -0x1.fffffep127 : -0x1.fep127; });
    in.terms.mask.assign(in.terms.mask.size(), 0.0);
    expect_bound(fmt::format("the least {} as mask", name(mask)), in.bound(c, DType::f32), in, c,
                 DType::f32);
  }
  unsetenv("WICK_GPU_ATTENTION");
}

/// Checks attention_of_pages with slopes or sinks. There is one key head, so the keys of a sequence
/// are its pages.
void check_pages(DType dtype, DType cache, const char* kernel, const Added& added,
                 int64_t width = 64) {
  setenv("WICK_GPU_ATTENTION", kernel, 1);
  Random random(8);
  constexpr int64_t kPage = 128, kPages = 3;
  const Case c{3, 1, 20, kPage * kPages, width, width, {.scale = 0.1f}, false};
  Operands in(c, dtype, cache, added, random);
  TestTensor tables(DType::u32, Place::contiguous, {1, kPages}, 7),
      lengths(DType::u32, Place::contiguous, {1}, 8);
  tables.fill_bits([](int64_t i) { return static_cast<uint64_t>(i); });
  lengths.fill_bits([&](int64_t) { return static_cast<uint64_t>(c.n); });
  const Bound bound = in.bound(c, dtype);
  for (const Target& target : targets()) {
    Backend& backend = *target.backend;
    TestTensor out(dtype, Place::contiguous, {1, c.h, c.m, c.e}, 4, true);
    out.wipe();
    const OnDevice q(backend, in.q.storage()), k(backend, in.k.storage()),
        v(backend, in.v.storage()), slopes(backend, in.slopes.storage()),
        sinks(backend, in.sinks.storage()), table(backend, tables.storage()),
        length(backend, lengths.storage()), y(backend, out.storage());
    AttentionBias bias;
    if (added.slopes) bias.slopes = slopes.view(std::as_const(in.slopes).view());
    if (added.sinks) bias.sinks = sinks.view(std::as_const(in.sinks).view());
    const auto pages = [&](ConstView all, int64_t size) {
      all.layout = Layout::contiguous({kPages, 1, kPage, size});
      return all;
    };
    backend.attention_of_pages(
        y.view(out.view()), q.view(std::as_const(in.q).view()),
        pages(k.view(std::as_const(in.k).view()), c.d),
        pages(v.view(std::as_const(in.v).view()), c.e),
        {table.view(std::as_const(tables).view()), length.view(std::as_const(lengths).view())},
        c.params, bias);
    y.fetch(out.storage());
    const int64_t at = bound.beyond(out.doubles());
    if (at < 0) continue;
    ADD_FAILURE() << describe(c, dtype, cache, added) << " in pages on " << target.name
                  << ": element " << at;
  }
  unsetenv("WICK_GPU_ATTENTION");
}

/// Caches of which only the first keys are written, a number that isn't a multiple of eight. What
/// lies behind them must not be read, which the emulator reports with exact blocks, and must not
/// change the result.
void check_cut_keys(DType cache, const char* kernel) {
  setenv("WICK_GPU_ATTENTION", kernel, 1);
  Random random(12);
  const auto numbers = [&](const Shape& shape, Device device, DType dtype) {
    std::vector<float> all(static_cast<size_t>(shape.elems()));
    for (float& x : all) x = static_cast<float>(2 * random.normal());
    return Tensor::from(all, shape).to(dtype).to(device);
  };
  for (const Target& target : targets()) {
    const Device device = target.backend->device();
    if (device.kind == DeviceKind::cpu) continue;
    for (const int64_t size : {64, 128, 256}) {
      for (const int64_t n : {9, 62, 67, 127}) {
        const Tensor q = numbers({1, 4, 20, size}, device, DType::f32);
        const Tensor k = numbers({1, 2, size, n}, device, cache);
        const Tensor v = numbers({1, 2, n, size}, device, cache);
        const auto attend = [&](Tensor all) {
          slice_set(all, k, 3, 0);
          return attention(q, all.narrow(3, 0, n).transpose(2, 3), v, {.scale = 0.1f})
              .to_vector<float>();
        };
        const Shape room{1, 2, size, 136};
        const std::vector<float> zeros = attend(Tensor::zeros(room, cache, device));
        EXPECT_EQ(attend(Tensor::empty(room, cache, device)), zeros) << n << " " << target.name;
        EXPECT_EQ(attend(Tensor::full(room, NAN, cache, device)), zeros) << n << " " << target.name;
      }
    }
  }
  unsetenv("WICK_GPU_ATTENTION");
}

/// Expects that GPUs with matrix units have launched their kernels for heads of up to 256 elements.
void expect_wide_kernels(DType dtype, DType cache, std::string_view choice) {
  for (const Target& target : targets()) {
    auto* const backend = dynamic_cast<gpu::GpuBackend*>(target.backend);
    if (backend == nullptr || !backend->gpu().has(gpu::Feature::matrix_unit)) continue;
    const gpu::Gpu& gpu = backend->gpu();
    const bool amd = gpu.device.kind == DeviceKind::hip;
    // flash.gpu takes 129 KiB for queries of three terms, and flash_wgmma.gpu more than there is.
    const bool three_terms = dtype != cache && cache == DType::bf16;
    if (!amd && three_terms && gpu.info.shared_bytes < 129 << 10) continue;
    const bool wgmma = choice == "wgmma" && gpu.has(gpu::Feature::wgmma) && !three_terms;
    const std::string unit = amd ? "flash_mma" : wgmma ? "flash_wgmma" : "flash";
    for (const char* bias : {"", "_bias"}) {
      const std::string kernel = wgmma ? fmt::format("{}{}_exact_256_{}_1", unit, bias, name(cache))
                                       : fmt::format("{}{}_256_{}", unit, bias, name(cache));
      EXPECT_TRUE(gpu.has_used(unit, kernel)) << kernel << " on " << target.name;
    }
  }
}

/// Checks heads of 129 to 256 elements.
void check_wide(DType dtype, DType cache, const char* kernel) {
  setenv("WICK_GPU_ATTENTION", kernel, 1);
  Random random(13);
  const auto run = [&](const Case& c, const Added& added = {}) {
    if (!failed()) check(c, dtype, cache, random, added);
  };
  const AttentionParams causal{.scale = 0.06f}, open{.scale = 0.06f, .causal = false};
  for (const bool key_major : {true, false}) {
    run({2, 1, 40, 96, 256, 256, causal, key_major});
    run({4, 2, 33, 136, 192, 128, causal, key_major, 2});
    run({1, 1, 70, 200, 72, 256, open, key_major});
    run({2, 2, 20, 104, 160, 136, {.scale = 0.06f, .window = 30}, key_major});
    run({1, 1, 150, 1288, 256, 256, causal, key_major});
    run({2, 1, 12, 1160, 256, 248, open, key_major});  // thread blocks share the keys of a row
    run({4, 2, 70, 136, 256, 256, causal, key_major}, {.slopes = true});
    run({2, 1, 33, 136, 256, 256, causal, key_major}, {.sinks = true});
    run({2, 1, 140, 264, 192, 192, open, key_major}, {DType::f32, {1, 2, 140, 264}});
  }
  run({2, 1, 70, 200, 256, 256, {.scale = 0.06f, .window = 90, .soft_cap = 5.0f}});
  run({2, 1, 35, 130, 136, 256, causal, false}, {DType::bf16, {1, 2, 35, 130}, Place::transposed});
  run({2, 1, 12, 1160, 256, 256, open}, {DType::u8, {1, 1, 12, 1160}, Place::contiguous, true, 60});
  run({3, 1, 30, 16, 256, 256, causal}, {DType::u8, {1, 1, 30, 16}});  // queries without keys
  run({1, 1, 130, 256, 256, 256, {.scale = 1e8f}});
  unsetenv("WICK_GPU_ATTENTION");
  check_pages(dtype, cache, kernel, {}, 256);
  check_pages(dtype, cache, kernel, {.sinks = true}, 256);
  if (!failed()) expect_wide_kernels(dtype, cache, kernel);
}

/// Queries that come from projections (cached_attention), compared with the kernels without matrix
/// units of the same device. Both are within the bound, which is below 1e-5 for these operands.
void check_projected(DType cache) {
  constexpr int64_t kHeads = 4, kKeyHeads = 2, kTokens = 40, kCapacity = 320, kStart = 230;
  Random random(14);
  const auto numbers = [&](const Shape& shape, Device device) {
    std::vector<float> all(static_cast<size_t>(shape.elems()));
    for (float& x : all) x = static_cast<float>(random.normal());
    return Tensor::from(all, shape).to(device);
  };
  std::vector<uint32_t> places(kTokens);
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint32_t>(kStart + i);
  for (const Target& target : targets()) {
    const Device device = target.backend->device();
    if (device.kind == DeviceKind::cpu) continue;
    for (const int64_t size : {64, 128, 160, 256}) {
      const Tensor qkv = numbers({kTokens, (kHeads + 2 * kKeyHeads) * size}, device);
      const Tensor k = numbers({kKeyHeads, size, kCapacity}, device).to(cache),
                   v = numbers({kKeyHeads, kCapacity, size}, device).to(cache);
      const Tensor cos = numbers({kCapacity, size / 2}, device),
                   sin = numbers({kCapacity, size / 2}, device);
      const auto attend = [&](const char* kernel) {
        setenv("WICK_GPU_ATTENTION", kernel, 1);
        const AttentionStep step{.cos = cos,
                                 .sin = sin,
                                 .positions = Tensor::from(places, {kTokens}).to(device),
                                 .keys = k.contiguous().transpose(1, 2),
                                 .values = v.contiguous(),
                                 .params = {.scale = 0.05f}};
        return cached_attention(qkv, step).to_vector<float>();
      };
      const std::vector<float> plain = attend("plain"), got = attend("mma");
      for (size_t i = 0; i < plain.size(); ++i) {
        if (std::abs(got[i] - plain[i]) <= 1e-5f * (1 + std::abs(plain[i]))) continue;
        ADD_FAILURE() << fmt::format("{} elements, cache {} on {}: element {} is {}, not {}", size,
                                     name(cache), target.name, i, got[i], plain[i]);
        break;
      }
      unsetenv("WICK_GPU_ATTENTION");
    }
    auto* const backend = dynamic_cast<gpu::GpuBackend*>(target.backend);
    if (device.kind == DeviceKind::hip && backend->gpu().has(gpu::Feature::matrix_unit)) {
      for (const int width : {64, 128, 256}) {
        const std::string kernel = fmt::format("flash_mma_{}_{}", width, name(cache));
        EXPECT_TRUE(backend->gpu().has_used("flash_mma", kernel)) << kernel << " " << target.name;
      }
    }
  }
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

/// A sink that is rounded to bf16, or that a second split adds again, must be detected.
void check_planted_sinks() {
  Random random(11);
  const Case c{1, 1, 40, 96, 64, 64, {.scale = 0.1f}};
  const Operands in(c, DType::f32, DType::f16, {.sinks = true}, random);
  const std::vector<double> q = in.q.doubles(), k = in.k.doubles(), v = in.v.doubles();
  const auto with = [&](double sink) {
    return Bound(c, DType::f32, q, k, v, {.mask = {}, .slopes = {}, .sinks = {sink}});
  };
  const Bound bound = with(9.7);
  for (const double wrong : {9.6875, 9.7 + std::log(2.0), double{-INFINITY}}) {
    EXPECT_GE(bound.beyond(with(wrong).exact), 0) << wrong;
  }
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
        add(fmt::format("attention_bound.{}.{}_cache.{}_added", name(dtype), name(cache), kernel),
            [=] {
              check_added(dtype, cache, kernel);
              check_pages(dtype, cache, kernel, {.slopes = true});
            });
        add(fmt::format("attention_bound.{}.{}_cache.{}_sinks", name(dtype), name(cache), kernel),
            [=] {
              check_sinks(dtype, cache, kernel);
              check_pages(dtype, cache, kernel, {.sinks = true});
            });
        add(fmt::format("attention_bound.{}.{}_cache.{}_wide", name(dtype), name(cache), kernel),
            [=] { check_wide(dtype, cache, kernel); });
      }
    }
  }
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (const DType cache : {DType::bf16, DType::f16}) {
      add(fmt::format("attention_bound.fast.{}.{}_cache", name(dtype), name(cache)),
          [=] { check_fast(dtype, cache); });
    }
  }
  for (const DType cache : {DType::bf16, DType::f16}) {
    add(fmt::format("attention_bound.projected.{}_cache.mma", name(cache)),
        [=] { check_projected(cache); });
    for (const char* kernel : {"plain", "mma", "wgmma"}) {
      add(fmt::format("attention_bound.extremes.{}_cache.{}", name(cache), kernel),
          [=] { check_extremes(cache, kernel); });
      add(fmt::format("attention_bound.cut_keys.{}_cache.{}", name(cache), kernel),
          [=] { check_cut_keys(cache, kernel); });
    }
  }
  add("attention_bound.planted", check_planted);
  add("attention_bound.planted_sinks", check_planted_sinks);
  return true;
}();

}  // namespace
}  // namespace wick::parity
