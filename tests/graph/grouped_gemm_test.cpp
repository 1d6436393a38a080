// grouped_linear of prompts with f16 and bf16 weights, which GPUs multiply by matrix units: the
// error against products in f64, and the bits of sequences that share a call.
#include <fmt/format.h>

#include <cmath>

#include "tests/graph/grouped_tests.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/tensor/fused.h"

namespace wick {
namespace {

using test::expect_same;
using Tensors = std::vector<Tensor>;

/// Sizes of a call: `count` experts [n, k], `used` ids for each of t rows.
struct Sizes {
  int64_t count, t, used, n, k;

  std::string str() const {
    return fmt::format("{} experts [{}, {}], {} rows of {} ids", count, n, k, t, used);
  }
};
/// Odd and even sizes; more rows of an expert than a tile has; tiles of few rows; k that isn't a
/// multiple of a slab, or below one; n below, at and beyond a tile's columns.
constexpr Sizes kSizes[] = {{4, 40, 2, 37, 77},    {3, 300, 1, 257, 200}, {8, 70, 2, 128, 64},
                            {60, 300, 2, 33, 136}, {2, 400, 1, 300, 72},  {5, 21, 4, 66, 1000},
                            {3, 20, 2, 70, 40}};

class GroupedGemm : public test::WithExperts {
 protected:
  Tensor ids_of(const Sizes& s, uint32_t seed) const {
    return some_ids(s.t, s.used, s.count, seed);
  }
  /// Compares a result with products in f64, row by row.
  static void expect_within_bound(const Tensor& got, const Tensor& x,
                                  const std::vector<Weight>& weights,
                                  const std::vector<Tensor>& matrices, const Tensor& chosen,
                                  const std::string& what) {
    const DType of = weights.front().dtype();
    // Activations are rounded to bf16 for bf16 weights.
    const std::vector<float> a =
        (of == DType::bf16 ? x.to(DType::bf16) : x).to(DType::f32).contiguous().to_vector<float>();
    const std::vector<float> y = got.to(DType::f32).to_vector<float>();
    const std::vector<uint32_t> words = chosen.contiguous().to_vector<uint32_t>();
    std::vector<std::vector<float>> w;
    for (const Tensor& m : matrices) w.push_back(m.to(DType::f32).to_vector<float>());
    const auto k = static_cast<size_t>(x.size(1)), n = static_cast<size_t>(weights.front().n());
    const auto used = static_cast<size_t>(chosen.size(1));
    const double half_ulp = got.dtype() == DType::f32   ? 0x1p-24
                            : got.dtype() == DType::f16 ? 0x1p-11
                                                        : 0x1p-8;
    double worst = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      for (size_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (size_t p = 0; p < k; ++p) {
          const double term = double{a[i / used * k + p]} * double{w[words[i]][j * k + p]};
          sum += term;
          size += std::abs(term);
        }
        const double bound = half_ulp * std::abs(sum) + 0x1p-25 +
                             4 * std::sqrt(static_cast<double>(k)) * 0x1p-24 * size;
        worst = std::max(worst, std::abs(double{y[i * n + j]} - sum) / bound);
      }
    }
    EXPECT_LE(worst, 1) << what;
  }
  /// The matrices of experts(), rounded to their dtype.
  std::vector<Tensor> matrices(int64_t count, int64_t n, int64_t k, DType dtype) const {
    std::vector<Tensor> all;
    for (int64_t e = 0; e < count; ++e) {
      all.push_back((x({n, k}, static_cast<uint64_t>(100 + e)) * 0.1f).to(dtype));
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GroupedGemm, testing::ValuesIn(test::graph_devices()),
                         test::device_test_name);

TEST_P(GroupedGemm, IsWithinTheBound) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const Sizes& s : kSizes) {
      const std::vector<Weight> weights = experts(s.count, s.n, s.k, dtype);
      const std::vector<Tensor> of = matrices(s.count, s.n, s.k, dtype);
      for (const DType of_x : {DType::f32, DType::f16, DType::bf16}) {
        const Tensor rows = x({s.t, s.k}, 3, of_x), chosen = ids_of(s, 7);
        expect_within_bound(grouped_linear(rows, weights, chosen), rows, weights, of, chosen,
                            fmt::format("{} by {}, {}", name(of_x), name(dtype), s.str()));
      }
    }
  }
}

/// All rows choose one expert; rows of x are apart, and their elements, too.
TEST_P(GroupedGemm, OneExpertAndStridedRows) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<Weight> weights = experts(3, 150, 100, dtype);
    const std::vector<Tensor> of = matrices(3, 150, 100, dtype);
    for (const DType of_x : {DType::f32, DType::bf16}) {
      const Tensor rows = x({100, 290}, 3, of_x).transpose(0, 1).narrow(0, 2, 280);
      const Tensor chosen = ids(std::vector<uint32_t>(280, 1), 1);
      const Tensor y = grouped_linear(rows, weights, chosen);
      expect_within_bound(y, rows, weights, of, chosen, std::string(name(dtype)));
      expect_same({y}, {grouped_linear(rows.contiguous(), weights, chosen)}, "dense");
    }
  }
}

/// Rows of x that differ by powers of two from row to row have a scale of their own.
TEST_P(GroupedGemm, RowsHaveTheirOwnScales) {
  const std::vector<Weight> weights = experts(4, 40, 96, DType::f16);
  const std::vector<Tensor> of = matrices(4, 40, 96, DType::f16);
  std::vector<float> scales;
  for (int i = 0; i < 60; ++i) scales.push_back(std::ldexp(1.0f, i % 30));
  const Tensor rows = x({60, 96}, 3) * Tensor::from(scales, {60, 1}, GetParam());
  const Tensor chosen = some_ids(60, 2, 4, 7);
  expect_within_bound(grouped_linear(rows, weights, chosen), rows, weights, of, chosen, "scales");
}

/// Each of several sequences in a call has the bits that it has alone, whatever experts the others
/// choose.
TEST_P(GroupedGemm, SequencesHaveTheBitsThatTheyHaveAlone) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<Weight> weights = experts(4, 70, 200, dtype);
    for (const DType of_x : {DType::f32, dtype}) {
      for (const int64_t each : {1, 3, 5, 9, 16, 40, 130}) {
        const int64_t count = each > 100 ? 2 : 4, t = count * each;
        const Tensor rows = x({t, 200}, 3, of_x);
        const Tensor crowd = ids(std::vector<uint32_t>(static_cast<size_t>(t - each) * 2, 1), 2);
        const Tensor apart = some_ids(each, 2, 4, 11);
        const Tensor parts[] = {apart, crowd};
        for (const Tensor& chosen : {some_ids(t, 2, 4, 7), cat(parts, 0)}) {
          const Tensor all = grouped_linear(rows, weights, chosen, {.each = each});
          for (int64_t s = 0; s < count; ++s) {
            const auto of = [&](const Tensor& x) { return x.narrow(0, s * each, each); };
            expect_same(
                {of(all)}, {grouped_linear(of(rows), weights, of(chosen))},
                fmt::format("{} {}, sequence {} of {} rows", name(dtype), name(of_x), s, each));
          }
        }
      }
    }
  }
}

/// A call with so many rows that it takes the larger tiles has the bits of its sequences alone,
/// which take the smaller ones.
TEST_P(GroupedGemm, LargeTilesHaveTheBitsOfSmallOnes) {
  const bool on_gpu = GetParam().kind != DeviceKind::cpu;
  const int64_t processors = on_gpu ? gpu::backend_of(GetParam()).gpu().info.multiprocessors : 1;
  // Two experts have five tiles of 128 rows; for wgmma, which expects six, tiles of 128 columns
  // take more than one round.
  const int64_t t = 640, each = 20, n = 128 * (processors / 5 + 1) + 1, k = 72;
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < t; ++i) words.push_back(i * 7 / 3 % 2);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<Weight> weights = experts(2, n, k, dtype);
    const Tensor rows = x({t, k}, 3, dtype), chosen = ids(words, 1);
    const Tensor all = grouped_linear(rows, weights, chosen, {.each = each});
    for (const int64_t first : {0, 300, 620}) {
      const auto of = [&](const Tensor& x) { return x.narrow(0, first, each); };
      expect_same({of(all)}, {grouped_linear(of(rows), weights, of(chosen))},
                  fmt::format("{}, rows from {}", name(dtype), first));
    }
    if (!on_gpu) continue;
    gpu::Gpu& gpu = gpu::backend_of(GetParam()).gpu();
    if (!gpu.has(gpu::Feature::matrix_unit)) continue;
    const bool hopper = gpu.has(gpu::Feature::wgmma);
    EXPECT_TRUE(gpu.has_used(hopper ? "grouped_wgmma" : "grouped_mma",
                             fmt::format("grouped_{}_{}", name(dtype), hopper ? 256 : 128)));
  }
}

/// Sequences of few tokens have the bits of their rows alone, also if a token has several rows.
TEST_P(GroupedGemm, FewTokensHaveTheBitsOfRowsAlone) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<Weight> weights = experts(4, 70, 128, dtype);
    const int64_t few = std::min<int64_t>(weights.front().rows_alike(), 8);
    for (const int64_t of_token : {1, 16}) {
      const int64_t each = few * of_token, t = 3 * each;
      const Tensor rows = x({t, 128}, 3), chosen = some_ids(t, 1, 4, 7);
      expect_same({grouped_linear(rows, weights, chosen, {.each = each, .of_token = of_token})},
                  {grouped_linear(rows, weights, chosen, {.each = 1})}, std::string(name(dtype)));
    }
  }
}

/// A captured function runs with ids that differ from those of its first run.
TEST_P(GroupedGemm, CapturedWithOtherIds) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<Weight> weights = experts(5, 140, 96, dtype);
    const Compiled compiled([&](std::span<const Tensor> a) -> Tensors {
      return {grouped_linear(a[0], weights, a[1], {.each = 100})};
    });
    for (uint32_t seed = 1; seed < 8; ++seed) {
      // In some runs one expert has all rows.
      const Tensor chosen =
          seed % 3 == 0 ? ids(std::vector<uint32_t>(400, seed % 4), 2) : some_ids(200, 2, 5, seed);
      const Tensor arguments[] = {x({200, 96}, seed), chosen};
      expect_same(compiled(arguments),
                  {grouped_linear(arguments[0], weights, chosen, {.each = 100})},
                  std::string(name(dtype)));
    }
  }
}

/// More rows than are packed at once.
TEST_P(GroupedGemm, RowsInParts) {
  const int64_t t = 520, used = 4, k = 16384, each = 20;
  const std::vector<Weight> weights = experts(2, 8, k, DType::f16);
  const Tensor rows = x({t, k}, 3);
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < t * used; ++i) words.push_back(i * 7 / 3 % 2);
  const Tensor chosen = ids(words, used),
               all = grouped_linear(rows, weights, chosen, {.each = each});
  // The first part has 512 rows, and ends in the middle of the second one of these sequences.
  for (const int64_t first : {0, 500}) {
    const auto of = [&](const Tensor& x) { return x.narrow(0, first, each); };
    expect_same({of(all)}, {grouped_linear(of(rows), weights, of(chosen))},
                fmt::format("rows from {}", first));
  }
}

/// More experts than a launch takes.
TEST_P(GroupedGemm, ManyExperts) {
  const std::vector<Weight> weights = experts(270, 66, 64, DType::bf16);
  const std::vector<Tensor> of = matrices(270, 66, 64, DType::bf16);
  const Tensor rows = x({300, 64}, 3), chosen = some_ids(300, 5, 270, 7);
  expect_within_bound(grouped_linear(rows, weights, chosen), rows, weights, of, chosen, "270");
}

/// An infinite f16 weight gives infinities, not NaN, where the second f16 of an element of x is 0.
TEST_P(GroupedGemm, InfiniteWeights) {
  std::vector<Weight> weights = experts(3, 40, 96, DType::f16);
  std::vector<float> values(40 * 96, 0.5f);
  values[0] = INFINITY;  // of expert 1
  weights[1] = Weight(Tensor::from(values, {40, 96}, GetParam()).to(DType::f16));
  const Tensor rows = Tensor::ones({60, 96}, DType::f32, GetParam());
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 60; ++i) words.push_back(i % 2);
  const std::vector<float> y = grouped_linear(rows, weights, ids(words, 1)).to_vector<float>();
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(std::isinf(y[i]), i % 80 == 40) << i;
    ASSERT_FALSE(std::isnan(y[i])) << i;
  }
}

/// On GPUs with a matrix unit, prompts use it. On other devices each row has the bits that it has
/// alone.
TEST_P(GroupedGemm, TakesTheMatrixUnit) {
  const std::vector<Weight> weights = experts(2, 130, 128, DType::bf16);
  const Tensor rows = x({40, 128}, 3), chosen = some_ids(40, 2, 2, 7);
  const Tensor y = grouped_linear(rows, weights, chosen);
  const auto has = [&](gpu::Feature feature) {
    return GetParam().kind != DeviceKind::cpu && gpu::backend_of(GetParam()).gpu().has(feature);
  };
  if (!has(gpu::Feature::matrix_unit)) {
    expect_same({y}, {grouped_linear(rows, weights, chosen, {.each = 1})}, "no matrix unit");
    return;
  }
  const bool hopper = has(gpu::Feature::wgmma);
  EXPECT_TRUE(gpu::backend_of(GetParam())
                  .gpu()
                  .has_used(hopper ? "grouped_wgmma" : "grouped_mma",
                            hopper ? "grouped_bf16_128" : "grouped_bf16_64"));
}

}  // namespace
}  // namespace wick
