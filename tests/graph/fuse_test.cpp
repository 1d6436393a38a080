// Fused calls have the bits of the calls that they replace, and calls aren't fused if fusing would
// change what is computed.

#include "wick/graph/fuse.h"

#include <algorithm>

#include "tests/graph/fuse_tests.h"
#include "wick/nn/attention.h"

namespace wick {
namespace {

using test::expect_same;
using Tensors = std::vector<Tensor>;
using Arguments = std::span<const Tensor>;

using Fuse = test::FuseOnDevices;
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

// The first linear is moved to the addition behind the second one. The norm, gate or attention that
// both read must stay for both.
TEST_P(Fuse, AnInputOfSeveralLinearsStays) {
  const Tensor scale = x({256}, 2);
  for (const DType dtype : kWeightTypes) {
    const Weight w = weight(256, 256, dtype), v = weight(256, 256, dtype);
    for (const bool gated : {false, true}) {
      const auto both = [&](Arguments a) -> Tensors {
        const Tensor in = gated ? silu(a[0].narrow(1, 0, 256)) * a[0].narrow(1, 256, 256)
                                : rms_norm(a[0].narrow(1, 0, 256), scale, 1e-5f);
        const Tensor first = linear(in, w), second = linear(in, v);
        const Tensor more = first + second * 0.5;
        return {a[1] + more};
      };
      for (const int64_t rows : {1, 5}) {
        ops(both, {x({rows, 512}, 3), x({rows, 256}, 4)});
      }
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
    const auto in_steps = [&](Arguments a) -> Tensors {
      const Tensors halves = a[0].chunk(2, -1);
      return {linear(silu(halves[0]) * halves[1], w), linear(halves[1] * silu(halves[0]), w)};
    };
    EXPECT_EQ(std::vector<Op>(2, Op::linear), ops(in_steps, {x({3, 512}, 3)}));
    const auto exchanged = [&](Arguments a) -> Tensors {
      const Tensors halves = a[0].chunk(2, -1);
      return {linear(silu_mul(halves[1], halves[0]), w)};
    };
    EXPECT_EQ((std::vector<Op>{Op::silu_mul, Op::linear}), ops(exchanged, {x({3, 512}, 3)}));
  }
}

TEST_P(Fuse, AGeluGateBeforeALinear) {
  for (const DType dtype : kWeightTypes) {
    const Weight w = weight(64, 256, dtype);
    const auto gate = [&](Arguments a) -> Tensors {
      const Tensors halves = a[0].chunk(2, -1);
      return {linear(gelu(halves[0]) * halves[1], w), linear(halves[1] * gelu(halves[0]), w)};
    };
    EXPECT_EQ(std::vector<Op>(2, Op::linear), ops(gate, {x({3, 512}, 3)}));
    const auto exchanged = [&](Arguments a) -> Tensors {
      const Tensors halves = a[0].chunk(2, -1);
      return {linear(gelu(halves[1]) * halves[0], w)};
    };
    EXPECT_EQ((std::vector<Op>{Op::gelu, Op::mul, Op::linear}), ops(exchanged, {x({3, 512}, 3)}));
    const auto read_twice = [&](Arguments a) -> Tensors {
      const Tensors halves = a[0].chunk(2, -1);
      const Tensor y = gelu(halves[0]);
      return {linear(y * halves[1], w), y};
    };
    EXPECT_EQ((std::vector<Op>{Op::gelu, Op::mul, Op::linear}), ops(read_twice, {x({3, 512}, 3)}));
  }
}

TEST_P(Fuse, ResidualBehindANorm) {
  for (const int64_t size : {64, 512, 640, 2560, 5120}) {
    const Tensor scale = x({size}, 2);
    for (const int64_t rows : {1, 3, 40}) {
      const auto run = [&](auto&& sum) {
        return ops(
            [&](Arguments a) -> Tensors { return {sum(rms_norm(a[0], scale, 1e-6f), a[1])}; },
            {x({rows, size}, 3), x({rows, size}, 4)});
      };
      EXPECT_EQ(std::vector<Op>{Op::rms_norm},
                run([](const Tensor& y, const Tensor& r) { return r + y; }));
      EXPECT_EQ(std::vector<Op>{Op::rms_norm},
                run([](const Tensor& y, const Tensor& r) { return y + r; }));
      // The residual is computed between the norm and the sum.
      EXPECT_EQ((std::vector<Op>{Op::sqr, Op::rms_norm}),
                run([](const Tensor& y, const Tensor& r) { return y + sqr(r); }));
      // The norm is read twice.
      EXPECT_EQ((std::vector<Op>{Op::rms_norm, Op::add, Op::mul}),
                run([](const Tensor& y, const Tensor& r) { return (y + r) * y; }));
      // The residual has other strides than the result, or is broadcast before.
      EXPECT_EQ(std::vector<Op>{Op::rms_norm}, run([&](const Tensor& y, const Tensor& r) {
                  return y + r.reshape({size, rows}).transpose(0, 1);
                }));
      EXPECT_EQ(std::vector<Op>{Op::rms_norm}, run([&](const Tensor& y, const Tensor& r) {
                  return y + r.narrow(0, 0, 1).broadcast_to({rows, size});
                }));
      // Vectors of the residual aren't aligned.
      const Tensor longer = x({rows * size + 1}, 5);
      EXPECT_EQ(std::vector<Op>{Op::rms_norm}, run([&](const Tensor& y, const Tensor&) {
                  return y + longer.narrow(0, 1, rows * size).reshape({rows, size});
                }));
      if (rows == 1) continue;
      // The addition broadcasts the residual.
      EXPECT_EQ((std::vector<Op>{Op::rms_norm, Op::add}),
                run([](const Tensor& y, const Tensor& r) { return y + r.narrow(0, 0, 1); }));
    }
  }
}

TEST_P(Fuse, ANormBehindAProjectionBeforeAResidual) {
  const Tensor scale = x({256}, 2);
  const Weight w = weight(256, 256, DType::q4_0), v = weight(256, 256, DType::q4_0);
  const auto layer = [&](Arguments a) -> Tensors {
    const Tensor y = a[0] + rms_norm(linear(a[0], w), scale, 1e-6f);
    return {y + rms_norm(linear(rms_norm(y, scale, 1e-6f), v), scale, 1e-6f)};
  };
  const std::vector<Op> two{Op::linear, Op::rms_norm, Op::linear, Op::rms_norm};
  EXPECT_EQ(two, ops(layer, {x({1, 256}, 3)}));
  EXPECT_EQ(two, ops(layer, {x({9, 256}, 3)}));
}

TEST_P(Fuse, ResidualBehindALinear) {
  for (const DType dtype : kWeightTypes) {
    const Weight w = weight(256, 256, dtype);
    EXPECT_EQ(std::vector<Op>{Op::linear},
              ops([&](Arguments a) -> Tensors { return {linear(a[0], w) + a[1]}; },
                  {x({3, 256}, 3), x({3, 256}, 4)}));
    // A bias, which all rows share; one value for each row; a single value.
    for (const Shape& shape : {Shape{256}, Shape{1, 256}, Shape{3, 1}, Shape{1}}) {
      EXPECT_EQ(std::vector<Op>{Op::linear},
                ops([&](Arguments a) -> Tensors { return {linear(a[0], w) + a[1]}; },
                    {x({3, 256}, 3), x(shape, 4)}));
    }
    // GPUs may divide f32 gemms of this size along k.
    const Weight deep = weight(40, 1280, dtype);
    EXPECT_EQ(std::vector<Op>{Op::linear},
              ops([&](Arguments a) -> Tensors { return {a[1] + linear(a[0], deep)}; },
                  {x({96, 1280}, 3), x({96, 40}, 4)}));
    // The sum has more rows than the gemm.
    EXPECT_EQ((std::vector<Op>{Op::linear, Op::add}),
              ops([&](Arguments a) -> Tensors { return {linear(a[0], w) + a[1]}; },
                  {x({1, 256}, 3), x({3, 256}, 4)}));
    // The residual is computed between the GEMM and the sum.
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
  // The result of linear is read twice: it is also the addend.
  EXPECT_EQ(1, count(ops(
                         [&](Arguments a) -> Tensors {
                           const Tensor y = linear(a[0], w);
                           return {y + a[1], y};
                         },
                         {x({3, 256}), x({3, 256}, 2)}),
                     Op::add));
  EXPECT_EQ(1, count(ops(
                         [&](Arguments a) -> Tensors {
                           const Tensor y = linear(a[0], w);
                           return {y + y};
                         },
                         {x({3, 256})}),
                     Op::add));
  // 16-bit steps round. The gate is read twice, or broadcast.
  EXPECT_EQ(1, count(ops([](Arguments a) -> Tensors { return {silu(a[0]) * a[0]}; },
                         {x({3, 256}, 1, DType::f16)}),
                     Op::silu));
  EXPECT_EQ(1, count(ops(
                         [](Arguments a) -> Tensors {
                           const Tensor y = silu(a[0]);
                           return {y * a[0], y};
                         },
                         {x({3, 256})}),
                     Op::silu));
  EXPECT_EQ(1, count(ops([](Arguments a) -> Tensors { return {silu(a[0]) * a[1]}; },
                         {x({3, 256}), x({256})}),
                     Op::silu));
  EXPECT_EQ(1, count(ops([&](Arguments a) -> Tensors { return {linear(a[0], w) + a[0]}; },
                         {x({3, 256}, 1, DType::f16)}),
                     Op::add));
  // linear reads a view of the norm.
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
  const auto norm_then_write = [&](Arguments a) -> Tensors {
    slice_set(cache, a[0], 0, 0);
    const Tensor y = rms_norm(cache, scale, 1e-5f);
    slice_set(cache, a[1], 0, 0);
    return {y + a[1]};
  };
  const std::vector<Op> norm = ops(norm_then_write, {x({3, 256}, 5), x({3, 256}, 6)});
  EXPECT_EQ(1, std::count(norm.begin(), norm.end(), Op::add));
  // The write is between the gelu and the product, or between the product and the linear.
  Tensor halves = Tensor::zeros({3, 512}, DType::f32, GetParam());
  for (const bool behind_product : {false, true}) {
    const auto gate_then_write = [&](Arguments a) -> Tensors {
      slice_set(halves, a[0], 0, 0);
      Tensor y = gelu(halves.narrow(1, 0, 256));
      if (behind_product) y = y * halves.narrow(1, 256, 256);
      slice_set(halves, a[1], 0, 0);
      if (!behind_product) y = y * halves.narrow(1, 256, 256);
      return {linear(y, w)};
    };
    const std::vector<Op> gate = ops(gate_then_write, {x({3, 512}, 5), x({3, 512}, 6)});
    EXPECT_EQ(1, std::count(gate.begin(), gate.end(), Op::gelu));
  }
}

// ---- Attention with a cache ----

/// A cache, and the parameters of one attention call.
struct CachedCase {
  /// `each` rows per sequence, from position `first` on.
  int64_t sequences = 1, each = 1, first = 0;
  int64_t heads = 4, key_heads = 2, key_size = 32, value_size = 32, rotated = 32;
  DType cache = DType::f16;
  AttentionOptions params = {.scale = 0.2f, .causal = true};

  int64_t rows() const { return sequences * each; }
  int64_t width() const { return heads * key_size + key_heads * (key_size + value_size); }
};

class FuseAttention : public Fuse {
 protected:
  static constexpr int64_t kSize = 256, kEntries = 3;

  /// Returns qkv, positions, tables, key pages, value pages, cosines and sines.
  Tensors arguments(const CachedCase& c) {
    std::vector<uint32_t> positions, tables;
    for (int64_t s = 0; s < c.sequences; ++s) {
      for (int64_t i = 0; i < c.each; ++i) {
        positions.push_back(static_cast<uint32_t>(c.first + s + i));
      }
      for (int64_t i = 0; i < kEntries; ++i) {
        tables.push_back(
            static_cast<uint32_t>((i * c.sequences + s + 1) % (kEntries * c.sequences)));
      }
    }
    const int64_t pages = kEntries * c.sequences;
    return {x({c.rows(), c.width()}, 1),
            Tensor::from(positions, {c.rows()}, GetParam()),
            Tensor::from(tables, {c.sequences, kEntries}, GetParam()),
            x({pages, c.key_heads, c.key_size, kSize}, 2, c.cache),
            x({pages, c.key_heads, kSize, c.value_size}, 3, c.cache),
            x({kEntries * kSize, c.rotated / 2}, 4),
            x({kEntries * kSize, c.rotated / 2}, 5)};
  }
  /// Views [t, columns] as [t, heads, size].
  static Tensor heads(const Tensor& rows, int64_t from, int64_t count, int64_t size) {
    return rows.narrow(1, from, count * size).reshape({rows.size(0), count, size});
  }
  static Tensor attend(const CachedCase& c, Arguments a, const Tensor& sinks = {}) {
    const int64_t keys = c.heads * c.key_size, values = keys + c.key_heads * c.key_size;
    return nn::attend(
        heads(a[0], 0, c.heads, c.key_size), heads(a[0], keys, c.key_heads, c.key_size),
        heads(a[0], values, c.key_heads, c.value_size), nn::SequenceRows(a[1], a[2]),
        {index_select(a[5], a[1], 0), index_select(a[6], a[1], 0)}, a[3], a[4], c.params, sinks);
  }
  /// Returns the graph's nodes after fusing. Expects the results and caches of the unfused
  /// function.
  std::vector<graph::Node> nodes(const graph::Function& function, const Tensors& given) {
    Tensors expected_arguments, got_arguments;
    for (const Tensor& t : given) {
      expected_arguments.push_back(t.clone());
      got_arguments.push_back(t.clone());
    }
    const Tensors expected = function(expected_arguments);
    graph::Trace trace = graph::trace(function, given);
    graph::fuse(trace.graph);
    const std::vector<graph::Node> nodes = trace.graph.nodes;
    graph::Executable executable(std::move(trace.graph));
    for (int call = 0; call < 3; ++call) {
      expect_same(executable.run(got_arguments), expected, "fused");
      expect_same(got_arguments, expected_arguments, "what was written");
    }
    return nodes;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, FuseAttention, testing::ValuesIn(test::graph_devices()),
                         test::device_test_name);

TEST_P(FuseAttention, IsOneOp) {
  std::vector<CachedCase> cases;
  for (const int64_t each : {1, 2, 5, 40}) cases.push_back({.each = each, .first = 250});
  for (const int64_t each : {1, 3}) {
    cases.push_back({.sequences = 5, .each = each, .first = 300, .cache = DType::bf16});
  }
  cases.push_back({.heads = 3, .key_heads = 3, .key_size = 20, .value_size = 24, .rotated = 8});
  cases.push_back({.heads = 1, .key_heads = 1, .cache = DType::f32});
  cases.push_back({.each = 7, .params = {.scale = 1, .causal = true, .window = 5, .soft_cap = 20}});
  // Heads of any size up to the largest that models may have; keys and values differ in size.
  for (const int64_t each : {1, 12}) {
    cases.push_back({.each = each,
                     .first = 250,
                     .heads = 2,
                     .key_heads = 1,
                     .key_size = 576,
                     .value_size = 512,
                     .rotated = 64});
    cases.push_back({.each = each,
                     .first = 3,
                     .heads = 2,
                     .key_heads = 2,
                     .key_size = 34,
                     .value_size = 576,
                     .rotated = 34});
  }
  for (const CachedCase& c : cases) {
    const auto fused = nodes([&](Arguments a) -> Tensors { return {attend(c, a)}; }, arguments(c));
    ASSERT_EQ(fused.size(), 1u);
    EXPECT_EQ(fused[0].part, Part::cached);
  }
  for (const int64_t each : {1, 12}) {
    const CachedCase c{.each = each, .first = 250};
    Tensors with_sinks = arguments(c);
    with_sinks.push_back(x({c.heads}, 9));
    const auto fused =
        nodes([&](Arguments a) -> Tensors { return {attend(c, a, a[7])}; }, with_sinks);
    ASSERT_EQ(fused.size(), 1u);
    EXPECT_EQ(fused[0].part, Part::cached);
  }
}

/// Qwen 3 and Gemma 3 apply rms_norm to queries and keys between the projections and rope.
TEST_P(FuseAttention, NormsOfHeadsAreInPlace) {
  const auto normed = [&](const CachedCase& c, Arguments a, const Tensor& qkv, bool query, bool key,
                          float key_eps = 1e-5f) {
    const int64_t keys = c.heads * c.key_size, values = keys + c.key_heads * c.key_size;
    const Tensor q = heads(qkv, 0, c.heads, c.key_size);
    const Tensor k = heads(qkv, keys, c.key_heads, c.key_size);
    return nn::attend(query ? rms_norm(q, a[7], 1e-5f) : q, key ? rms_norm(k, a[8], key_eps) : k,
                      heads(qkv, values, c.key_heads, c.value_size), nn::SequenceRows(a[1], a[2]),
                      {index_select(a[5], a[1], 0), index_select(a[6], a[1], 0)}, a[3], a[4],
                      c.params);
  };
  const auto given = [&](const CachedCase& c) {
    Tensors all = arguments(c);
    all.push_back(x({c.key_size}, 11));
    all.push_back(x({c.key_size}, 12));
    return all;
  };
  const auto ops_of = [](const std::vector<graph::Node>& nodes) {
    std::vector<Op> all;
    for (const graph::Node& node : nodes) all.push_back(node.op);
    return all;
  };
  std::vector<CachedCase> cases;
  for (const int64_t each : {1, 5, 40}) cases.push_back({.each = each, .first = 250});
  cases.push_back({.sequences = 3, .each = 2, .first = 20, .cache = DType::bf16});
  cases.push_back({.heads = 3, .key_heads = 3, .key_size = 20, .value_size = 24, .rotated = 8});
  cases.push_back({.heads = 4, .key_heads = 1, .key_size = 256, .value_size = 256, .rotated = 256});
  for (const CachedCase& c : cases) {
    const auto all = [&](Arguments a) -> Tensors {
      return {normed(c, a, a[0] + a[0], true, true)};
    };
    const std::vector<graph::Node> fused = nodes(all, given(c));
    EXPECT_EQ((std::vector<Op>{Op::add, Op::rms_norm, Op::attention}), ops_of(fused));
    ASSERT_EQ(3u, fused.size());
    EXPECT_EQ(Part::pair, fused[1].part);
    const auto other_eps = [&](Arguments a) -> Tensors {
      return {normed(c, a, a[0] + a[0], true, true, 1e-6f)};
    };
    EXPECT_EQ((std::vector<Op>{Op::add, Op::rms_norm, Op::rms_norm, Op::attention}),
              ops_of(nodes(other_eps, given(c))));
  }
  const CachedCase c{.each = 3};
  const auto one = [&](Arguments a) -> Tensors { return {normed(c, a, a[0] + a[0], false, true)}; };
  EXPECT_EQ((std::vector<Op>{Op::add, Op::rms_norm, Op::attention}), ops_of(nodes(one, given(c))));
  // Not fused: the projections are an argument, a result, or an operand of another call.
  const auto cached = [&](const graph::Function& function) {
    const auto all = nodes(function, given(c));
    return std::count_if(all.begin(), all.end(),
                         [](const graph::Node& node) { return node.part == Part::cached; });
  };
  EXPECT_EQ(0, cached([&](Arguments a) -> Tensors { return {normed(c, a, a[0], true, true)}; }));
  EXPECT_EQ(0, cached([&](Arguments a) -> Tensors {
              const Tensor qkv = a[0] + a[0];
              return {normed(c, a, qkv, true, true), qkv};
            }));
  EXPECT_EQ(0, cached([&](Arguments a) -> Tensors {
              const Tensor qkv = a[0] + a[0];
              return {normed(c, a, qkv, true, true) + sqr(qkv.narrow(1, 0, 128))};
            }));
}

/// 16-bit activations run the separate ops.
TEST_P(FuseAttention, NarrowActivationsAreComposed) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const int64_t each : {1, 12}) {
      const CachedCase c{.sequences = 2, .each = each, .first = 20};
      const auto narrow = [&](Arguments a) -> Tensors {
        Tensors cast(a.begin(), a.end());
        cast[0] = a[0].to(dtype);
        const Tensor y = attend(c, cast);
        EXPECT_EQ(y.dtype(), dtype);
        return {y};
      };
      const auto all = nodes(narrow, arguments(c));
      EXPECT_TRUE(std::none_of(all.begin(), all.end(),
                               [](const graph::Node& node) { return node.part == Part::cached; }));
    }
  }
}

TEST_P(FuseAttention, GoesIntoTheLinearThatReadsIt) {
  for (const DType dtype : kWeightTypes) {
    const Weight w = weight(256, 256, dtype), into = weight(384, 256, dtype);
    const Tensor scale = x({256}, 2);
    const CachedCase c{.heads = 8};
    const auto block = [&](Arguments a) -> Tensors {
      Tensors of_layer(a.begin(), a.end());
      Tensor y = a[7];
      for (int layer = 0; layer < 2; ++layer) {
        of_layer[0] = linear(rms_norm(y, scale, 1e-5f), into);
        y = y + linear(attend(c, of_layer, a.size() > 8 ? a[8] : Tensor()), w);
      }
      return {y};
    };
    Tensors given = arguments(c);
    given.push_back(x({1, 256}, 9));
    for (const bool sinks : {false, true}) {
      if (sinks) given.push_back(x({c.heads}, 10));
      const auto fused = nodes(block, given);
      ASSERT_EQ(fused.size(), 4u);
      for (const graph::Node& node : fused) EXPECT_EQ(node.op, Op::linear);
    }
  }
}

TEST_P(FuseAttention, NothingWhereItWouldChangeWhatIsComputed) {
  const CachedCase c{.each = 3, .first = 10};
  const auto count = [&](const graph::Function& function) {
    const auto all = nodes(function, arguments(c));
    return std::count_if(all.begin(), all.end(),
                         [](const graph::Node& node) { return node.part == Part::cached; });
  };
  const int64_t keys = c.heads * c.key_size, values = keys + c.key_heads * c.key_size;
  // Each variant changes one thing: what is rotated, stored or attended to.
  const auto call = [&](Arguments a, const Tensor& k, const Tensor& v, const Tensor& lengths,
                        const Tensor& key_angles, const AttentionOptions& params) {
    const Tensor cos = index_select(a[5], a[1], 0), sin = index_select(a[6], a[1], 0);
    const Tensor pages = a[3].transpose(2, 3);
    store_in_pages(pages, rope_of_tokens(k, key_angles, sin, true), a[2], a[1]);
    store_in_pages(a[4], v, a[2], a[1]);
    const Tensor q = rope_of_tokens(heads(a[0], 0, c.heads, c.key_size), cos, sin, true);
    return attention_of_pages(q.unsqueeze(0).transpose(1, 2), pages, a[4], a[2], lengths, params);
  };
  const auto k_of = [&](Arguments a) { return heads(a[0], keys, c.key_heads, c.key_size); };
  const auto v_of = [&](Arguments a) { return heads(a[0], values, c.key_heads, c.value_size); };
  const auto length_of = [](Arguments a) { return affine(a[1].narrow(0, 2, 1), 1, 1); };
  const auto cos_of = [](Arguments a) { return index_select(a[5], a[1], 0); };
  const auto sin_of = [](Arguments a) { return index_select(a[6], a[1], 0); };
  EXPECT_EQ(1, count([&](Arguments a) -> Tensors {
              return {call(a, k_of(a), v_of(a), length_of(a), cos_of(a), c.params)};
            }));
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              return {call(a, v_of(a), v_of(a), length_of(a), cos_of(a), c.params)};
            }));
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              return {call(a, k_of(a), k_of(a), length_of(a), cos_of(a), c.params)};
            }));
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              return {call(a, k_of(a), v_of(a) * 2, length_of(a), cos_of(a), c.params)};
            }));
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              const Tensor shorter = affine(a[1].narrow(0, 1, 1), 1, 1);
              return {call(a, k_of(a), v_of(a), shorter, cos_of(a), c.params)};
            }));
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              const Tensor longer = affine(a[1].narrow(0, 2, 1), 1, 2);
              return {call(a, k_of(a), v_of(a), longer, cos_of(a), c.params)};
            }));
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              return {call(a, k_of(a), v_of(a), length_of(a), sin_of(a), c.params)};
            }));
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              AttentionOptions all = c.params;
              all.causal = false;
              return {call(a, k_of(a), v_of(a), length_of(a), cos_of(a), all)};
            }));
  // The rotated queries are read twice.
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              const Tensor q =
                  rope_of_tokens(heads(a[0], 0, c.heads, c.key_size), cos_of(a), sin_of(a), true);
              const Tensor pages = a[3].transpose(2, 3);
              store_in_pages(pages, rope_of_tokens(k_of(a), cos_of(a), sin_of(a), true), a[2],
                             a[1]);
              store_in_pages(a[4], v_of(a), a[2], a[1]);
              return {attention_of_pages(q.unsqueeze(0).transpose(1, 2), pages, a[4], a[2],
                                         length_of(a), c.params),
                      sqr(q)};
            }));
  // The values are read between the store and the attention.
  EXPECT_EQ(0, count([&](Arguments a) -> Tensors {
              const Tensor pages = a[3].transpose(2, 3);
              store_in_pages(pages, rope_of_tokens(k_of(a), cos_of(a), sin_of(a), true), a[2],
                             a[1]);
              store_in_pages(a[4], v_of(a), a[2], a[1]);
              const Tensor between = sqr(a[4]);
              const Tensor q =
                  rope_of_tokens(heads(a[0], 0, c.heads, c.key_size), cos_of(a), sin_of(a), true);
              return {attention_of_pages(q.unsqueeze(0).transpose(1, 2), pages, a[4], a[2],
                                         length_of(a), c.params),
                      between};
            }));
}

}  // namespace
}  // namespace wick
