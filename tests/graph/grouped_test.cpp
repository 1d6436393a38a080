// grouped_linear: each sequence has the bits that it has alone, and short ones have those of their
// expert's linear for each row, eagerly and in graphs.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/expect_error.h"
#include "tests/graph/grouped_tests.h"
#include "wick/tensor/fused.h"

namespace wick {
namespace {

using test::error_of;
using test::expect_same;
using testing::HasSubstr;
using Tensors = std::vector<Tensor>;
using Arguments = std::span<const Tensor>;

class Grouped : public test::WithExperts {
 protected:
  /// Computes the result row by row.
  static Tensor reference(const Tensor& x, const std::vector<Weight>& experts,
                          const Tensor& chosen) {
    const std::vector<uint32_t> words = chosen.contiguous().to_vector<uint32_t>();
    const int64_t n = chosen.size(1);
    std::vector<Tensor> rows;
    for (size_t i = 0; i < words.size(); ++i) {
      const Tensor row = x.narrow(0, static_cast<int64_t>(i) / n, 1);
      rows.push_back(linear(row, experts[words[i]], FusedLinear{.each = 1}));
    }
    return cat(rows, 0).reshape({x.size(0), n, experts.front().n()});
  }
  /// Computes all rows with all experts, and selects.
  Tensor by_row(const Tensor& x, const std::vector<Weight>& experts, const Tensor& chosen) const {
    const int64_t t = x.size(0), n = chosen.size(1), width = experts.front().n();
    std::vector<Tensor> all;
    for (const Weight& w : experts) all.push_back(linear(x, w, FusedLinear{.each = 1}));
    std::vector<uint32_t> places = chosen.contiguous().to_vector<uint32_t>();
    for (size_t i = 0; i < places.size(); ++i) {
      places[i] = places[i] * static_cast<uint32_t>(t) +
                  static_cast<uint32_t>(i) / static_cast<uint32_t>(n);
    }
    return index_select(cat(all, 0), ids(places, 1).reshape({t * n}), 0).reshape({t, n, width});
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Grouped, testing::ValuesIn(test::graph_devices()),
                         test::device_test_name);

TEST_P(Grouped, RowsHaveTheBitsOfTheirExpertAlone) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q4_0, DType::q4_1,
                            DType::q5_0, DType::q5_1, DType::q8_0, DType::q4_k, DType::q6_k}) {
    const std::vector<Weight> weights = experts(5, 72, 512, dtype);
    for (const int64_t t : {1, 3, 40}) {
      for (const DType of_x : {DType::f32, DType::f16, DType::bf16}) {
        if (of_x != DType::f32 && t != 3) continue;
        const Tensor rows = x({t, 512}, 3, of_x), chosen = some_ids(t, 2, 5, 7);
        expect_same({grouped_linear(rows, weights, chosen, {.each = 1})},
                    {reference(rows, weights, chosen)}, std::string(name(dtype)));
      }
    }
  }
}

/// Prompts: several rows for each expert, which GPUs multiply in tiles.
TEST_P(Grouped, Prompts) {
  for (const DType dtype : {DType::q4_0, DType::q8_0, DType::q4_k, DType::q6_k, DType::q5_1,
                            DType::f32, DType::f16, DType::bf16}) {
    const int64_t k = info(dtype).block_elems == 256 ? 256 : 96;
    for (const int64_t count : {4, 8, 60}) {
      const std::vector<Weight> weights = experts(count, 37, k, dtype);
      for (const int64_t t : {1, 7, 64, 300}) {
        if (count == 60 && t == 64) continue;
        const Tensor rows = x({t, k}, 3), chosen = some_ids(t, 2, count, 7);
        expect_same({grouped_linear(rows, weights, chosen, {.each = 1})},
                    {by_row(rows, weights, chosen)},
                    fmt::format("{} {} of {}", name(dtype), t, count));
      }
    }
  }
}

/// All rows chose one expert; rows that are slices, in every dtype of x.
TEST_P(Grouped, PromptsForOneExpert) {
  for (const DType dtype : {DType::q4_0, DType::q4_k, DType::bf16}) {
    const std::vector<Weight> weights = experts(3, 150, 256, dtype);
    for (const DType of_x : {DType::f32, DType::f16, DType::bf16}) {
      const Tensor rows = x({256, 140}, 3, of_x).transpose(0, 1).narrow(0, 2, 131);
      const Tensor chosen = ids(std::vector<uint32_t>(131, 1), 1);
      expect_same({grouped_linear(rows, weights, chosen, {.each = 1})},
                  {by_row(rows.contiguous(), weights, chosen)}, std::string(name(dtype)));
    }
  }
}

TEST_P(Grouped, StridedOperands) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::q8_0}) {
    const std::vector<Weight> weights = experts(4, 40, 256, dtype);
    const Tensor rows = x({256, 9}, 3).transpose(0, 1).narrow(0, 2, 6);
    const Tensor chosen = some_ids(3, 6, 4, 9).transpose(0, 1);
    expect_same({grouped_linear(rows, weights, chosen, {.each = 1})},
                {reference(rows.contiguous(), weights, chosen)}, std::string(name(dtype)));
  }
}

/// More experts than a launch takes, with several rows each.
TEST_P(Grouped, PromptsForManyExperts) {
  for (const DType dtype : {DType::q8_0, DType::f32}) {
    const std::vector<Weight> many = experts(260, 8, 32, dtype);
    const Tensor rows = x({140, 32}, 3), chosen = some_ids(140, 8, 260, 7);
    expect_same({grouped_linear(rows, many, chosen)}, {by_row(rows, many, chosen)},
                std::string(name(dtype)));
  }
}

/// More experts than a launch takes, and rows that exceed shared memory.
TEST_P(Grouped, ManyExpertsAndLongRows) {
  const std::vector<Weight> many = experts(300, 8, 32, DType::q8_0);
  const Tensor rows = x({2, 32}, 3), chosen = ids({3, 255, 256, 299, 0, 270}, 3);
  expect_same({grouped_linear(rows, many, chosen)}, {reference(rows, many, chosen)}, "300");
  for (const DType dtype : {DType::f32, DType::q4_0, DType::q5_1}) {
    const std::vector<Weight> wide = experts(2, 16, 40960, dtype);
    const Tensor row = x({1, 40960}, 3), both = ids({1, 0}, 2);
    expect_same({grouped_linear(row, wide, both)}, {reference(row, wide, both)}, "long rows");
  }
}

/// A mixture of experts as in models: the function computes the ids, which differ in each run.
TEST_P(Grouped, InACompiledFunction) {
  for (const DType dtype : {DType::q4_0, DType::f16, DType::bf16}) {
    const std::vector<Weight> up = experts(6, 64, 256, dtype), down = experts(6, 256, 64, dtype);
    const Weight router(x({6, 256}, 5));
    const auto mixture = [&](Arguments a) -> Tensors {
      const int64_t t = a[0].size(0);
      const auto [values, chosen] = topk(softmax(linear(a[0], router), -1), 2, -1, true);
      const Tensor h = silu(grouped_linear(a[0], up, chosen)).reshape({t * 2, 64});
      const Tensor y = grouped_linear(h, down, chosen.reshape({t * 2, 1})).reshape({t, 2, 256});
      return {sum(y * values.unsqueeze(-1), {1}, false)};
    };
    const Compiled compiled(mixture);
    for (const int64_t t : {1, 4, 50, 90}) {
      for (uint64_t seed = 1; seed < 5; ++seed) {
        const Tensor rows = x({t, 256}, seed);
        expect_same(compiled({&rows, 1}), mixture({&rows, 1}), std::string(name(dtype)));
      }
    }
  }
}

/// A function whose rows depend on a leaf is called, not replayed, and has gradients.
TEST_P(Grouped, GradientsInACompiledFunction) {
  const std::vector<Weight> weights = experts(4, 24, 32, DType::f32);
  const Tensor rows = x({6, 32}, 7), chosen = some_ids(6, 2, 4, 9);
  const auto gradient = [&](bool compiled) {
    const Tensor scale = Tensor::ones({32}, DType::f32, GetParam()).requires_grad();
    const auto function = [&](Arguments a) -> Tensors {
      return {grouped_linear(a[0] * scale, weights, a[1])};
    };
    const Tensors results =
        compiled ? compile(function)({rows, chosen}) : function(std::array{rows, chosen});
    backward(sum(results.front() * results.front()));
    return scale.grad();
  };
  expect_same({gradient(true)}, {gradient(false)}, "gradient");
}

TEST_P(Grouped, IdOutOfRange) {
  const bool at_once = GetParam().kind == DeviceKind::cpu;
  for (const DType dtype : {DType::f32, DType::q8_0}) {
    const std::vector<Weight> weights = experts(3, 40, 256, dtype);
    const Tensor rows = x({2, 256}, 3), wrong = ids({0, 3, 2, 1}, 2);
    const std::string error = error_of([&] {
      const Tensor y = grouped_linear(rows, weights, wrong);
      backend(GetParam()).synchronize();
    });
    EXPECT_THAT(error, HasSubstr("grouped_linear: "));
    EXPECT_THAT(error, HasSubstr(at_once ? "index of a weight out of range: 3 of 3"
                                         : "id out of range: id 3"));
    // Later calls work.
    const Tensor good = ids({0, 2}, 1);
    expect_same({grouped_linear(rows, weights, good)}, {reference(rows, weights, good)}, "later");
  }
}

/// Ids that are out of range in a prompt are reported, and the other rows are right.
TEST_P(Grouped, IdOutOfRangeInAPrompt) {
  const bool at_once = GetParam().kind == DeviceKind::cpu;
  for (const DType dtype : {DType::f16, DType::bf16, DType::q8_0}) {
    const std::vector<Weight> weights = experts(3, 41, 256, dtype);
    std::vector<uint32_t> words;
    for (uint32_t i = 0; i < 70; ++i) words.push_back(i % 3);
    const Tensor rows = x({35, 256}, 3), good = ids(words, 2);
    words[20] = words[69] = 3;
    const Tensor wrong = ids(words, 2);
    for (const int64_t each : {0, 1}) {
      const auto product = [&](const Tensor& chosen) {
        return grouped_linear(rows, weights, chosen, {.each = each});
      };
      Tensor y;
      const std::string error = error_of([&] {
        y = product(wrong);
        backend(GetParam()).synchronize();
      });
      EXPECT_THAT(error, HasSubstr(at_once ? "index of a weight out of range: 3 of 3"
                                           : "id out of range: id 3"));
      const Tensor right = product(good);
      if (each == 1) expect_same({right}, {by_row(rows, weights, good)}, "later");
      if (at_once) continue;
      for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 20}, {21, 48}}) {
        expect_same({y.reshape({70, 41}).narrow(0, first, count)},
                    {right.reshape({70, 41}).narrow(0, first, count)}, std::string(name(dtype)));
      }
      for (const int64_t row : {20, 69}) {
        expect_same({y.reshape({70, 41}).narrow(0, row, 1)},
                    {Tensor::zeros({1, 41}, DType::f32, GetParam())}, "zeros");
      }
    }
  }
}

TEST_P(Grouped, InvalidOperands) {
  const std::vector<Weight> weights = experts(2, 40, 256, DType::f32);
  const Tensor rows = x({2, 256}, 3), chosen = ids({0, 1}, 1);
  EXPECT_THAT(error_of([&] { grouped_linear(rows, {}, chosen); }), HasSubstr("no weights"));
  EXPECT_THAT(error_of([&] { grouped_linear(rows, weights, Tensor()); }), HasSubstr("undefined"));
  EXPECT_THAT(error_of([&] {
                grouped_linear(x({3, 256}, 3), weights, chosen);
              }),
              HasSubstr("operands don't fit"));
  EXPECT_THAT(error_of([&] { grouped_linear(rows.to(DType::i32), weights, chosen); }),
              HasSubstr("unsupported dtype"));
  EXPECT_THAT(error_of([&] { grouped_linear(rows.narrow(1, 0, 128), weights, chosen); }),
              HasSubstr("weights differ in size"));
  EXPECT_THAT(error_of([&] { linear(rows, weights[0], FusedLinear{.each = 3}); }),
              HasSubstr("rows aren't whole matrices"));
  const auto in_sequences = [&](const ExpertRows& of) {
    return error_of([&] { grouped_linear(rows, weights, chosen, of); });
  };
  EXPECT_THAT(in_sequences({.each = 3}), HasSubstr("rows aren't whole sequences"));
  EXPECT_THAT(in_sequences({.each = -1}), HasSubstr("rows aren't whole sequences"));
  EXPECT_THAT(in_sequences({.each = 1, .of_token = 2}), HasSubstr("rows aren't whole sequences"));
}

}  // namespace
}  // namespace wick
