// Fused calls have the bits of the calls they replace, and nothing is fused where it would change
// what is computed.

#include "wick/graph/fuse.h"

#include <algorithm>

#include "tests/graph/graph_tests.h"
#include "wick/graph/executable.h"

namespace wick {
namespace {

using test::expect_same;
using Tensors = std::vector<Tensor>;
using Arguments = std::span<const Tensor>;

class Fuse : public test::OnDevices {
 protected:
  /// The ops of a function's graph after fusing, in order. Runs it, too: the bits are the same.
  std::vector<Op> ops(const graph::Function& function, const Tensors& arguments) {
    graph::Trace trace = graph::trace(function, arguments);
    graph::fuse(trace.graph);
    std::vector<Op> names;
    for (const graph::Node& node : trace.graph.nodes) names.push_back(node.op);
    graph::Executable executable(std::move(trace.graph));
    for (int call = 0; call < 3; ++call) {
      expect_same(executable.run(arguments), function(arguments), "fused");
    }
    return names;
  }
  Weight weight(int64_t n, int64_t k, DType dtype) {
    const Tensor matrix = x({n, k}, 77);
    return is_block(dtype) ? Weight(quantize(matrix, dtype)) : Weight(matrix.to(dtype));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Fuse, testing::ValuesIn(test::graph_devices()),
                         test::device_test_name);

const DType kWeightTypes[] = {DType::f32, DType::bf16, DType::q4_0, DType::q8_0, DType::q6_k};

TEST_P(Fuse, NormBeforeALinear) {
  const Tensor scale = x({256}, 2);
  for (const DType dtype : kWeightTypes) {
    const Weight w = weight(64, 256, dtype);
    for (const int64_t rows : {1, 5, 40}) {
      EXPECT_EQ(
          std::vector<Op>{Op::linear},
          ops([&](Arguments a) -> Tensors { return {linear(rms_norm(a[0], scale, 1e-5f), w)}; },
              {x({rows, 256}, 3)}));
    }
  }
}

TEST_P(Fuse, GateBeforeALinear) {
  for (const DType dtype : kWeightTypes) {
    const Weight w = weight(64, 256, dtype);
    const auto gate = [&](Arguments a) -> Tensors {
      const Tensors halves = a[0].chunk(2, -1);
      return {linear(silu_mul(halves[0], halves[1]), w)};
    };
    EXPECT_EQ(std::vector<Op>{Op::linear}, ops(gate, {x({3, 512}, 3)}));
    const auto exchanged = [&](Arguments a) -> Tensors {
      const Tensors halves = a[0].chunk(2, -1);
      return {linear(silu_mul(halves[1], halves[0]), w)};
    };
    EXPECT_EQ((std::vector<Op>{Op::silu_mul, Op::linear}), ops(exchanged, {x({3, 512}, 3)}));
  }
}

TEST_P(Fuse, ResidualBehindALinear) {
  for (const DType dtype : kWeightTypes) {
    const Weight w = weight(256, 256, dtype);
    EXPECT_EQ(std::vector<Op>{Op::linear},
              ops([&](Arguments a) -> Tensors { return {linear(a[0], w) + a[1]}; },
                  {x({3, 256}, 3), x({3, 256}, 4)}));
    // The residual is made between the product and the sum.
    EXPECT_EQ((std::vector<Op>{Op::sqr, Op::linear}), ops(
                                                          [&](Arguments a) -> Tensors {
                                                            const Tensor y = linear(a[0], w);
                                                            const Tensor r = sqr(a[1]);
                                                            return {r + y};
                                                          },
                                                          {x({3, 256}, 3), x({3, 256}, 4)}));
  }
}

TEST_P(Fuse, ABlockOfATransformer) {
  const Tensor scale = x({256}, 2);
  const Weight up = weight(1024, 256, DType::q4_0), down = weight(256, 512, DType::q4_0);
  const auto block = [&](Arguments a) -> Tensors {
    Tensor y = a[0];
    for (int layer = 0; layer < 3; ++layer) {
      const Tensors halves = linear(rms_norm(y, scale, 1e-6f), up).chunk(2, -1);
      y = y + linear(silu_mul(halves[0], halves[1]), down);
    }
    return {y};
  };
  EXPECT_EQ(std::vector<Op>(6, Op::linear), ops(block, {x({1, 256}, 3)}));
  EXPECT_EQ(std::vector<Op>(6, Op::linear), ops(block, {x({17, 256}, 3)}));
}

TEST_P(Fuse, NothingWhereItWouldChangeWhatIsComputed) {
  const Tensor scale = x({256}, 2);
  const Weight w = weight(256, 256, DType::q4_0);
  const auto count = [](const std::vector<Op>& ops, Op op) {
    return std::count(ops.begin(), ops.end(), op);
  };
  // The norm is read twice, or returned.
  EXPECT_EQ(1, count(ops(
                         [&](Arguments a) -> Tensors {
                           const Tensor y = rms_norm(a[0], scale, 1e-5f);
                           return {linear(y, w), linear(y, w)};
                         },
                         {x({3, 256})}),
                     Op::rms_norm));
  EXPECT_EQ(1, count(ops(
                         [&](Arguments a) -> Tensors {
                           const Tensor y = rms_norm(a[0], scale, 1e-5f);
                           return {linear(y, w), y};
                         },
                         {x({3, 256})}),
                     Op::rms_norm));
  // The product is read twice; the addend broadcasts, or is the product itself.
  EXPECT_EQ(1, count(ops(
                         [&](Arguments a) -> Tensors {
                           const Tensor y = linear(a[0], w);
                           return {y + a[1], y};
                         },
                         {x({3, 256}), x({3, 256}, 2)}),
                     Op::add));
  EXPECT_EQ(1, count(ops([&](Arguments a) -> Tensors { return {linear(a[0], w) + a[1]}; },
                         {x({3, 256}), x({256}, 2)}),
                     Op::add));
  EXPECT_EQ(1, count(ops(
                         [&](Arguments a) -> Tensors {
                           const Tensor y = linear(a[0], w);
                           return {y + y};
                         },
                         {x({3, 256})}),
                     Op::add));
  // 16 bits: the steps round.
  EXPECT_EQ(1, count(ops([&](Arguments a) -> Tensors { return {linear(a[0], w) + a[0]}; },
                         {x({3, 256}, 1, DType::f16)}),
                     Op::add));
  // A view of the norm.
  EXPECT_EQ(1, count(ops(
                         [&](Arguments a) -> Tensors {
                           return {linear(rms_norm(a[0], scale, 1e-5f).narrow(0, 1, 2), w)};
                         },
                         {x({3, 256})}),
                     Op::rms_norm));
}

TEST_P(Fuse, NotAcrossWritesToAnOperand) {
  const Tensor scale = x({256}, 2);
  const Weight w = weight(256, 256, DType::q4_0);
  Tensor cache = Tensor::zeros({3, 256}, DType::f32, GetParam());
  const auto function = [&](Arguments a) -> Tensors {
    slice_set(cache, a[0], 0, 0);
    const Tensor y = rms_norm(cache, scale, 1e-5f);
    slice_set(cache, a[1], 0, 0);
    return {linear(y, w), linear(cache, w)};
  };
  ops(function, {x({3, 256}, 5), x({3, 256}, 6)});
}

}  // namespace
}  // namespace wick
