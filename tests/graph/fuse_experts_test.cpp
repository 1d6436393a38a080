// The fused calls of a mixture of experts have the bits of the calls that they replace.

#include <cmath>

#include "tests/expect_error.h"
#include "tests/graph/fuse_tests.h"
#include "wick/tensor/index_ops.h"

namespace wick {
namespace {

using Tensors = std::vector<Tensor>;
using Arguments = std::span<const Tensor>;

/// A router's choice, as models write it.
struct Routing {
  enum class Scores { logits, softmax, sigmoid } scores = Scores::softmax;
  int64_t used = 2;
  bool softmax_of_chosen = false, normalize = false;
  double scale = 1;

  Tensors chosen(const Tensor& logits, const Tensor& bias) const {
    Tensor scores_of = logits;
    if (scores == Scores::softmax) scores_of = softmax(logits, -1);
    if (scores == Scores::sigmoid) scores_of = sigmoid(logits);
    const Tensor selection = bias.defined() ? scores_of + bias : scores_of;
    const Tensor ids = topk(selection, used, -1).indices;
    Tensor weights = gather(scores_of, ids, -1);
    if (softmax_of_chosen) weights = softmax(weights, -1);
    constexpr int kLast[] = {-1};
    if (normalize) weights = weights / sum(weights, kLast, true);
    if (scale != 1) weights = weights * scale;
    return {ids, weights};
  }
  /// The ids go into another call, because the pattern needs them to be temporary.
  Tensors operator()(const Tensor& logits, const Tensor& bias) const {
    const Tensors both = chosen(logits, bias);
    return {cast(both[0], DType::i64), both[1]};
  }
};

class FuseExperts : public test::FuseOnDevices {
 protected:
  Tensor of(const std::vector<float>& numbers, const Shape& shape) const {
    return Tensor::from(numbers, shape, GetParam());
  }
  std::vector<Weight> experts(int64_t count, int64_t n, int64_t k, DType dtype) const {
    std::vector<Weight> all;
    for (int64_t e = 0; e < count; ++e) {
      const Tensor matrix = x({n, k}, static_cast<uint64_t>(100 + e)) * 0.1f;
      all.emplace_back(is_block(dtype) ? quantize(matrix, dtype) : matrix.to(dtype));
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, FuseExperts, testing::ValuesIn(test::graph_devices()),
                         test::device_test_name);

const std::vector<Op> kChoice = {Op::topk, Op::cast};
const Routing::Scores kAllScores[] = {Routing::Scores::logits, Routing::Scores::softmax,
                                      Routing::Scores::sigmoid};

TEST_P(FuseExperts, TheChoiceIsOneCall) {
  for (const int64_t count : {1, 5, 33, 128, 129, 256, 300, 512, 513}) {
    for (const Routing::Scores scores : kAllScores) {
      for (const bool biased : {false, true}) {
        Routing routing{.scores = scores, .used = std::min<int64_t>(count, 8)};
        const Tensor bias = biased ? x({count}, 7) : Tensor();
        const auto choice = [&](Arguments a) { return routing(a[0], bias); };
        EXPECT_EQ(kChoice, ops(choice, {x({3, count}, 5)})) << count;
        routing.normalize = true;
        routing.scale = 2.5;
        EXPECT_EQ(kChoice, ops(choice, {x({6, count}, 6)})) << count;
      }
    }
  }
}

TEST_P(FuseExperts, TheNumberOfChosenExperts) {
  for (const int64_t used : {1, 2, 3, 4, 5, 8, 17, 31, 32, 33}) {
    for (const bool of_chosen : {false, true}) {
      const Routing routing{
          .scores = of_chosen ? Routing::Scores::logits : Routing::Scores::softmax,
          .used = used,
          .softmax_of_chosen = of_chosen,
          .normalize = !of_chosen};
      EXPECT_EQ(kChoice, ops([&](Arguments a) { return routing(a[0], Tensor()); }, {x({9, 40}, 5)}))
          << used;
    }
  }
}

/// Ties, zeros of both signs, infinities and NaN.
TEST_P(FuseExperts, SpecialScores) {
  constexpr float kInf = INFINITY;
  const Tensor logits =
      of({1, 1,     1,     1,   1, 1,   1,    1,   0.0f, -0.0f, 0.0f, -0.0f, -1, 0, -1, 2,
          2, -kInf, -kInf, 3,   2, 3,   kInf, 1,   2,    3,     4,    kInf,  5,  6, -1, NAN,
          2, -2,    1,     NAN, 0, 100, -100, 200, -200, 0,     1,    2,     3,  4, 5,  6},
         {6, 8});
  for (const Routing::Scores scores : kAllScores) {
    for (const int64_t used : {1, 3, 8}) {
      const Routing routing{.scores = scores, .used = used};
      // NaN have any payload, so that they are replaced before the bits are compared.
      ops(
          [&](Arguments a) -> Tensors {
            const Tensors made = routing(a[0], Tensor());
            const Tensor zeros = Tensor::zeros(made[1].shape(), DType::f32, GetParam());
            return {made[0], where(isnan(made[1]), zeros, made[1]), isnan(made[1])};
          },
          {logits});
    }
  }
}

/// Calls stay if something else needs what they make.
TEST_P(FuseExperts, ScoresThatAreReadStay) {
  const Routing routing{.normalize = true};
  const auto also_scores = [&](Arguments a) -> Tensors {
    const Tensor scores = softmax(a[0], -1);
    const auto [values, ids] = topk(scores, 2, -1);
    return {cast(ids, DType::i64), gather(scores, ids, -1), neg(scores)};
  };
  EXPECT_EQ((std::vector<Op>{Op::softmax, Op::topk, Op::cast, Op::gather, Op::neg}),
            ops(also_scores, {x({3, 16})}));
  const auto also_values = [&](Arguments a) -> Tensors {
    const auto [values, ids] = topk(softmax(a[0], -1), 2, -1);
    return {ids, neg(values)};
  };
  EXPECT_EQ((std::vector<Op>{Op::softmax, Op::topk, Op::neg}), ops(also_values, {x({3, 16})}));
  // The ids are read before the weights are complete.
  const auto early = [&](Arguments a) -> Tensors {
    const Tensor scores = softmax(a[0], -1);
    const Tensor ids = topk(scores, 2, -1).indices;
    const Tensor weights = gather(scores, ids, -1);
    const Tensor twice = gather(a[1], ids, -1);
    constexpr int kLast[] = {-1};
    return {twice, weights / sum(weights, kLast, true)};
  };
  ops(early, {x({3, 16}), x({3, 16}, 9)});
  // A bias of one number, which all experts share.
  const auto shared = [&](Arguments a) { return routing(a[0], a[1]); };
  EXPECT_LT(kChoice.size(), ops(shared, {x({3, 16}), x({1}, 5)}).size());
  // Division by the sum of some weights, and by the sums of columns.
  for (const bool columns : {false, true}) {
    const auto divided = [&](Arguments a) -> Tensors {
      const Tensor scores = softmax(a[0], -1);
      const Tensor ids = topk(scores, 3, -1).indices;
      const Tensor weights = gather(scores, ids, -1);
      const Tensor part = columns ? weights.transpose(0, 1) : weights.narrow(1, 0, 1);
      constexpr int kLast[] = {-1};
      return {cast(ids, DType::i64), weights / sum(part, kLast, true)};
    };
    EXPECT_EQ((std::vector<Op>{Op::topk, Op::cast, Op::sum, Op::div}), ops(divided, {x({3, 16})}));
  }
  // A factor of another rank.
  const auto deep = [&](Arguments a) -> Tensors {
    const Tensors chosen = Routing{}.chosen(a[0], Tensor());
    const Tensor factor = Tensor::full({1, 1, 1}, 2.5, DType::f32, GetParam());
    return {cast(chosen[0], DType::i64), chosen[1] * factor};
  };
  EXPECT_LT(kChoice.size(), ops(deep, {x({3, 16})}).size());
  // A row that isn't contiguous, and a softmax of columns.
  ops([&](Arguments a) { return routing(a[0].transpose(0, 1), Tensor()); }, {x({16, 3})});
  ops(
      [&](Arguments a) -> Tensors {
        const Tensor scores = softmax(a[0], 0);
        const Tensor ids = topk(scores, 2, -1).indices;
        return {ids, gather(scores, ids, -1)};
      },
      {x({3, 16})});
}

TEST_P(FuseExperts, TheWeightedSumIsOneCall) {
  for (const int64_t n : {1, 2, 3, 4, 7, 8, 9, 31, 32, 33}) {
    for (const int64_t k : {1, 7, 300}) {
      constexpr int kChosen[] = {1};
      const auto combined = [&](Arguments a) -> Tensors {
        return {sum(a[0] * a[1].unsqueeze(-1), kChosen)};
      };
      EXPECT_EQ(std::vector<Op>{Op::sum}, ops(combined, {x({3, n, k}, 2), x({3, n}, 3)})) << n;
      for (const Shape& residual : {Shape{3, k}, Shape{k}, Shape{3, 1}}) {
        const auto added = [&](Arguments a) -> Tensors {
          return {a[2] + sum(a[0] * a[1].unsqueeze(-1), kChosen)};
        };
        EXPECT_EQ(std::vector<Op>{Op::sum},
                  ops(added, {x({3, n, k}, 2), x({3, n}, 3), x(residual, 4)}));
      }
      // Products of -0 add up to +0.
      ops(combined, {x({3, n, k}, 2) * 0.0, x({3, n}, 3)});
      ops(combined, {x({3, n, k}, 2), x({n, 3}, 3).transpose(0, 1)});
    }
  }
}

TEST_P(FuseExperts, OtherSumsStay) {
  constexpr int kChosen[] = {1}, kLast[] = {2};
  ops([&](Arguments a) -> Tensors { return {sum(a[0] * a[1], kChosen)}; },
      {x({3, 4, 5}), x({3, 4, 5}, 2)});
  ops([&](Arguments a) -> Tensors { return {sum(a[0] * a[1], kLast)}; },
      {x({3, 4, 5}), x({3, 4, 1}, 2)});
  ops([&](Arguments a) -> Tensors { return {sum(a[0] * a[1], kChosen)}; },
      {x({3, 4, 5}), x({4, 1}, 2)});
  ops(
      [&](Arguments a) -> Tensors {
        const Tensor y = a[0] * a[1];
        return {sum(y, kChosen), y};
      },
      {x({3, 4, 5}), x({3, 4, 1}, 2)});
}

TEST_P(FuseExperts, TheGateBeforeTheSecondGemm) {
  for (const DType dtype : {DType::q4_0, DType::q6_k, DType::f16}) {
    const std::vector<Weight> up = experts(5, 512, 256, dtype), down = experts(5, 256, 256, dtype);
    const Routing routing{.normalize = true};
    const auto mixture = [&](Arguments a) -> Tensors {
      const Tensors chosen = routing.chosen(a[1], Tensor());
      const Tensor& ids = chosen[0];
      const int64_t t = a[0].size(0), n = ids.size(1);
      const Tensors halves = grouped_linear(a[0], up, ids).chunk(2, -1);
      const Tensor inner = (silu(halves[0]) * halves[1]).reshape({t * n, 256});
      const Tensor y = grouped_linear(inner, down, ids.reshape({t * n, 1})).reshape({t, n, 256});
      constexpr int kChosen[] = {1};
      return {a[0] + sum(y * chosen[1].unsqueeze(-1), kChosen)};
    };
    for (const int64_t t : {1, 4, 40}) {
      EXPECT_EQ((std::vector<Op>{Op::topk, Op::linear, Op::linear, Op::sum}),
                ops(mixture, {x({t, 256}, 3), x({t, 5}, 4)}))
          << name(dtype);
    }
  }
}

/// The rows of a bias that ids [t, n] select, as models write it.
Tensor rows_of(const Tensor& bias, const Tensor& ids) {
  return index_select(bias, ids.reshape({ids.elems()}), 0)
      .reshape({ids.size(0), ids.size(1), bias.size(1)});
}

Tensor clamped_swiglu(const Tensor& y) {
  const Tensors halves = y.chunk(2, -1);
  const Tensor g = clamp(halves[0], -INFINITY, 1.5), u = clamp(halves[1], -1.5, 1.5);
  return g * sigmoid(g * 1.702) * (u + 1.0);
}

TEST_P(FuseExperts, TheClampedGateIsOneCall) {
  const Tensor ids = Tensor::from(std::vector<uint32_t>{0, 3, 2, 2, 1, 3}, {3, 2}, GetParam());
  for (const int64_t k : {1, 7, 300}) {
    const auto gate = [&](Arguments a) -> Tensors { return {clamped_swiglu(a[0])}; };
    EXPECT_EQ(std::vector<Op>{Op::mul}, ops(gate, {x({3, 2, 2 * k}) * 2.0}));
    const auto biased = [&](Arguments a) -> Tensors {
      return {clamped_swiglu(a[0] + rows_of(a[1], a[2]))};
    };
    EXPECT_EQ(std::vector<Op>{Op::mul}, ops(biased, {x({3, 2, 2 * k}), x({4, 2 * k}, 2), ids}));
    // Other limits of the halves, and a value that is read again.
    const auto other = [&](Arguments a) -> Tensors {
      const Tensors halves = a[0].chunk(2, -1);
      const Tensor g = clamp(halves[0], -INFINITY, 1.5), u = clamp(halves[1], -1.0, 1.5);
      return {g * sigmoid(g * 1.702) * (u + 1.0)};
    };
    EXPECT_LT(1u, ops(other, {x({3, 2, 2 * k})}).size());
    const auto again = [&](Arguments a) -> Tensors {
      const Tensor y = a[0] + rows_of(a[1], a[2]);
      return {clamped_swiglu(y), y};
    };
    ops(again, {x({3, 2, 2 * k}), x({4, 2 * k}, 2), ids});
  }
}

TEST_P(FuseExperts, ABiasBeforeTheWeightedSum) {
  const Tensor ids = Tensor::from(std::vector<uint32_t>{0, 3, 2, 2, 1, 3}, {3, 2}, GetParam());
  constexpr int kChosen[] = {1};
  const auto combined = [&](Arguments a) -> Tensors {
    const Tensor y = a[0] + rows_of(a[1], a[2]);
    return {a[4] + sum(y * a[3].unsqueeze(-1), kChosen)};
  };
  for (const int64_t k : {1, 7, 300}) {
    EXPECT_EQ(std::vector<Op>{Op::sum},
              ops(combined, {x({3, 2, k}), x({4, k}, 2), ids, x({3, 2}, 3), x({3, k}, 4)}));
  }
}

/// Rows of a bias that only have as many elements as y.
TEST_P(FuseExperts, BiasesOfAnotherWidthStay) {
  const Tensor ids = Tensor::from(std::vector<uint32_t>{0, 3, 2}, {3}, GetParam());
  constexpr int kChosen[] = {1};
  const auto rows = [&](Arguments a) {
    return index_select(a[1], ids, 0).reshape({3, 2, a[1].size(1) / 2});
  };
  const auto combined = [&](Arguments a) -> Tensors {
    return {sum((a[0] + rows(a)) * a[2].unsqueeze(-1), kChosen)};
  };
  EXPECT_LT(1u, ops(combined, {x({3, 2, 4}), x({4, 8}, 2), x({3, 2}, 3)}).size());
  const auto gate = [&](Arguments a) -> Tensors { return {clamped_swiglu(a[0] + rows(a))}; };
  EXPECT_LT(1u, ops(gate, {x({3, 2, 8}), x({4, 16}, 2)}).size());
}

/// 0xffffffff selects zeros, and adding them makes +0 of -0.
TEST_P(FuseExperts, IdsThatSelectNoBias) {
  const Tensor ids =
      Tensor::from(std::vector<uint32_t>{0, 0xffffffff, 2, 2, 0xffffffff, 3}, {3, 2}, GetParam());
  constexpr int kChosen[] = {1};
  const auto combined = [&](Arguments a) -> Tensors {
    return {sum((a[0] + rows_of(a[1], ids)) * a[2].unsqueeze(-1), kChosen)};
  };
  EXPECT_EQ(std::vector<Op>{Op::sum},
            ops(combined, {x({3, 2, 7}) * -0.0, x({4, 7}, 2), x({3, 2}, 3)}));
  const auto gate = [&](Arguments a) -> Tensors {
    return {clamped_swiglu(a[0] + rows_of(a[1], ids))};
  };
  EXPECT_EQ(std::vector<Op>{Op::mul}, ops(gate, {x({3, 2, 14}) * -0.0, x({4, 14}, 2)}));
}

/// The fused calls report what index_select reports.
TEST_P(FuseExperts, IdsOfBiasesOutOfRange) {
  const Tensor ids = Tensor::from(std::vector<uint32_t>{0, 3, 2, 9, 1, 3}, {3, 2}, GetParam());
  constexpr int kChosen[] = {1};
  const auto combined = [&](Arguments a) -> Tensors {
    return {sum((a[0] + rows_of(a[1], a[2])) * a[3].unsqueeze(-1), kChosen)};
  };
  const auto gate = [&](Arguments a) -> Tensors {
    return {clamped_swiglu(a[0] + rows_of(a[1], a[2]))};
  };
  for (const int64_t k : {2, 300}) {
    const Tensors arguments = {x({3, 2, k}), x({4, k}, 2), ids, x({3, 2}, 3)};
    for (const graph::Function& function : {graph::Function(combined), graph::Function(gate)}) {
      const auto run = [&](bool fused) {
        return test::error_of([&] {
          graph::Trace trace = graph::trace(function, arguments);
          if (fused) graph::fuse(trace.graph);
          graph::Executable(std::move(trace.graph)).run(arguments);
          backend(GetParam()).synchronize();
        });
      };
      const std::string separate = run(false);
      EXPECT_THAT(separate, testing::HasSubstr("index_select: "));
      EXPECT_EQ(separate, run(true));
    }
  }
}

}  // namespace
}  // namespace wick
