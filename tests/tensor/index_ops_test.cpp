// gather, scatter, index_add, one_hot, sort, topk and cumsum through the public functions: results
// for small tensors, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/expect_error.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor floats(std::vector<float> values, const Shape& shape) { return Tensor::from(values, shape); }
Tensor ids(std::vector<uint32_t> values, const Shape& shape) { return Tensor::from(values, shape); }
constexpr uint32_t kPadding = 0xffffffff;

TEST(IndexOps, GatherPicksAndPads) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(gather(x, ids({2, 0, kPadding, 1}, {2, 2}), 1).to_vector<float>(),
              ElementsAre(3, 1, 0, 5));
  EXPECT_THAT(gather(x, ids({1, 0, 1}, {1, 3}), 0).to_vector<float>(), ElementsAre(4, 2, 6));
  EXPECT_THAT(gather(x.t(), ids({1, 0, 1}, {3, 1}), -1).to_vector<float>(), ElementsAre(4, 2, 6));
  EXPECT_EQ(gather(x, ids({}, {0, 3}), 0).shape(), Shape({0, 3}));
  EXPECT_EQ(error_of([&] {
              gather(x, ids({3}, {1, 1}), 1);
            }),
            "gather: id out of range: id 3 at position 0 of u32[1,1], x f32[2,3], dim 1: need 0 <= "
            "id < 3");
  EXPECT_EQ(error_of([&] {
              gather(x, ids({0, 0, 0}, {3, 1}), 1);
            }),
            "gather: shapes don't fit: x f32[2,3]@cpu, ids u32[3,1]@cpu, dim 1: need ids of x's "
            "rank and no larger but along the dim");
  EXPECT_THAT(error_of([&] { gather(x, ids({0}, {1}), 0); }), HasSubstr("shapes don't fit"));
  EXPECT_EQ(error_of([&] { gather(x, x, 0); }),
            "gather: unsupported id dtype: f32[2,3]@cpu: use u8, u32, i32 or i64");
  EXPECT_THAT(error_of([&] {
                gather(x, ids({0}, {1, 1}), 2);
              }),
              HasSubstr("gather: dimension out of range"));
  // Only padding can be gathered from a dim of size 0.
  const Tensor none = floats({}, {2, 0});
  EXPECT_THAT(gather(none, ids({kPadding}, {1, 1}), 1).to_vector<float>(), ElementsAre(0));
  EXPECT_THAT(error_of([&] { gather(none, ids({0}, {1, 1}), 1); }), HasSubstr("id < 0"));
}

TEST(IndexOps, ScatterWritesInOrder) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor at = ids({0, 0, kPadding, 2, 1, 1}, {2, 3});
  const Tensor source = floats({10, 20, 30, 40, 50, 60}, {2, 3});
  EXPECT_THAT(scatter(x, at, source, 1).to_vector<float>(), ElementsAre(20, 2, 3, 4, 60, 40));
  EXPECT_THAT(scatter_add(x, at, source, 1).to_vector<float>(), ElementsAre(31, 2, 3, 4, 115, 46));
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(
      scatter(floats({7}, {1, 1}).broadcast_to({2, 2}), ids({1}, {1, 1}), floats({9}, {1, 1}), 0)
          .to_vector<float>(),
      ElementsAre(7, 7, 9, 7));
  EXPECT_EQ(error_of([&] {
              scatter_add(x, ids({0}, {1, 1}), source, 1);
            }),
            "scatter_add: shapes don't fit: x f32[2,3]@cpu, ids u32[1,1]@cpu, source "
            "f32[2,3]@cpu, dim 1: need ids and source of one shape, of x's rank and no larger but "
            "along the dim");
  EXPECT_THAT(error_of([&] { scatter(x, at, source.to(DType::f16), 1); }),
              HasSubstr("scatter: dtypes differ"));
  EXPECT_THAT(error_of([&] {
                scatter(x, ids({3}, {1, 1}), floats({1}, {1, 1}), 1);
              }),
              HasSubstr("scatter: id out of range: id 3"));
}

TEST(IndexOps, RowsAPageApart) {
  // Gathers along dim 0 of rows of 6,000 bytes, from a slice and from reversed rows.
  constexpr int64_t kPlaces = 40, kRows = 37, kColumns = 1200;
  std::vector<uint32_t> chosen(kRows * kColumns);
  for (size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = i % 91 == 0 ? kPadding : static_cast<uint32_t>(i * 2654435761u >> 7) % kPlaces;
  }
  const Tensor at = ids(chosen, {kRows, kColumns});
  const Tensor wide = Tensor::arange(0, kPlaces * 1500, 1, DType::f32).reshape({kPlaces, 1500});
  const Tensor source =
      Tensor::arange(0, kRows * kColumns, 1, DType::f32).reshape({kRows, kColumns});
  for (const bool reversed : {false, true}) {
    const Tensor x =
        (reversed ? wide.slice(0, kPlaces - 1, -kPlaces - 1, -1) : wide).narrow(1, 3, kColumns);
    const std::vector<float> before = x.to_vector<float>(), added = source.to_vector<float>();
    std::vector<float> picked(chosen.size()), put = before, sum = before;
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] == kPadding) continue;
      const size_t place = chosen[i] * kColumns + i % kColumns;
      picked[i] = before[place];
      put[place] = added[i];
      sum[place] += added[i];
    }
    EXPECT_EQ(gather(x, at, 0).to_vector<float>(), picked);
    EXPECT_EQ(scatter(x, at, source, 0).to_vector<float>(), put);
    EXPECT_EQ(scatter_add(x, at, source, 0).to_vector<float>(), sum);
  }
}

TEST(IndexOps, SumsRoundOnce) {
  // 2048 + 1 rounds to 2048 in f16, but the ones add up in f32.
  const Tensor x = floats({2048}, {1}).to(DType::f16);
  const Tensor ones = Tensor::ones({4}, DType::f16), at = Tensor::zeros({4}, DType::u8);
  EXPECT_EQ(scatter_add(x, at, ones, 0).to(DType::f32).item<float>(), 2052);
  EXPECT_EQ(index_add(x, at, ones, 0).to(DType::f32).item<float>(), 2052);
}

TEST(IndexOps, IndexAdd) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor source = floats({10, 20, 30, 40, 50, 60}, {3, 2});
  EXPECT_THAT(index_add(x, ids({2, 2, kPadding}, {3}), source, 0).to_vector<float>(),
              ElementsAre(1, 2, 3, 4, 45, 66));
  EXPECT_THAT(index_add(x.t(), ids({2, 2, 0}, {3}), source.t(), -1).to_vector<float>(),
              ElementsAre(51, 3, 45, 62, 4, 66));
  EXPECT_EQ(error_of([&] {
              index_add(x, ids({0, 1}, {2}), source, 0);
            }),
            "index_add: shapes don't fit: x f32[3,2]@cpu, ids u32[2]@cpu, source f32[3,2]@cpu, dim "
            "0: need ids [n] and source of x's shape but for n along the dim");
  EXPECT_THAT(error_of([&] {
                index_add(x, ids({0, 1, 3}, {3}), source, 0);
              }),
              HasSubstr("index_add: id out of range: id 3 at position 2"));
}

TEST(IndexOps, OneHot) {
  EXPECT_THAT(one_hot(ids({1, kPadding, 0}, {3}), 2, DType::i64).to_vector<int64_t>(),
              ElementsAre(0, 1, 0, 0, 1, 0));
  EXPECT_EQ(one_hot(ids({0}, {}), 3).shape(), Shape({3}));
  EXPECT_EQ(one_hot(ids({0, 1}, {1, 2}), 5, DType::bf16).str(), "bf16[1,2,5]@cpu");
  EXPECT_THAT(error_of([&] { one_hot(ids({2}, {1}), 2); }),
              HasSubstr("one_hot: id out of range: id 2"));
  EXPECT_EQ(error_of([&] { one_hot(ids({2}, {1}), -2); }), "one_hot: negative depth: -2");
  EXPECT_EQ(error_of([&] {
              one_hot(ids({0}, {1, 1, 1, 1, 1, 1, 1, 1}), 2);
            }),
            "one_hot: too many dimensions: u32[1,1,1,1,1,1,1,1]@cpu: need a rank below 8");
  EXPECT_THAT(error_of([&] { one_hot(ids({0}, {1}), 2, DType::q8_0); }),
              HasSubstr("one_hot: unsupported dtype"));
  EXPECT_THAT(error_of([&] { one_hot(ids({0}, {1}), int64_t{1} << 62); }), HasSubstr("too"));
  EXPECT_THAT(error_of([&] { one_hot(floats({0}, {1}), 2); }),
              HasSubstr("one_hot: unsupported id dtype"));
}

TEST(IndexOps, SortIsStableWithNanLast) {
  const Tensor x = floats({3, NAN, -1, 3, -0.0f, 0.0f}, {6});
  const Sorted up = sort(x, 0), down = sort(x, -1, true);
  EXPECT_THAT(up.indices.to_vector<uint32_t>(), ElementsAre(2, 4, 5, 0, 3, 1));
  EXPECT_THAT(down.indices.to_vector<uint32_t>(), ElementsAre(0, 3, 5, 4, 2, 1));
  EXPECT_TRUE(std::signbit(up.values.to_vector<float>()[1]));
  EXPECT_FALSE(std::signbit(down.values.to_vector<float>()[2]));
  EXPECT_TRUE(std::isnan(down.values.to_vector<float>()[5]));
  EXPECT_EQ(argsort(x, 0).to_vector<uint32_t>(), up.indices.to_vector<uint32_t>());
  EXPECT_EQ(sort(Tensor::zeros({0, 3}, DType::f32), 0).values.shape(), Shape({0, 3}));
  EXPECT_THAT(error_of([&] { argsort(x, 1); }), HasSubstr("argsort: dimension out of range"));
  EXPECT_THAT(error_of([&] { sort(Tensor::zeros({}, DType::f32), 0); }),
              HasSubstr("sort: dimension out of range"));
  const Tensor long_dim = Tensor::zeros({1}, DType::u8).broadcast_to({int64_t{1} << 33});
  EXPECT_THAT(error_of([&] { sort(long_dim, 0); }), HasSubstr("sort: dimension too long"));
}

TEST(IndexOps, Topk) {
  const Tensor x = floats({3, 1, 2, 9, 9, 7}, {2, 3});
  const Sorted best = topk(x, 2, 1), least = topk(x, 1, 0, false);
  EXPECT_THAT(best.values.to_vector<float>(), ElementsAre(3, 2, 9, 9));
  EXPECT_THAT(best.indices.to_vector<uint32_t>(), ElementsAre(0, 2, 0, 1));
  EXPECT_THAT(least.values.to_vector<float>(), ElementsAre(3, 1, 2));
  EXPECT_EQ(topk(x, 0, 1).values.shape(), Shape({2, 0}));
  EXPECT_EQ(error_of([&] { topk(x, 4, 1); }),
            "topk: k outside the dimension: f32[2,3]@cpu, dim 1, k 4: need 0 <= k <= 3");
  EXPECT_THAT(error_of([&] { topk(x, -1, 1); }), HasSubstr("k -1"));
}

TEST(IndexOps, Cumsum) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(cumsum(x, 1).to_vector<float>(), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(cumsum(x.t(), 1).to_vector<float>(), ElementsAre(1, 5, 2, 7, 3, 9));
  EXPECT_THAT(cumsum(Tensor::full({3}, 100, DType::u8), 0).to_vector<uint8_t>(),
              ElementsAre(100, 200, 44));
  EXPECT_THAT(error_of([&] { cumsum(x, 2); }), HasSubstr("cumsum: dimension out of range"));
}

}  // namespace
}  // namespace wick
