// flip, roll, repeat, pad, tril, triu, eye and const_set against plain loops over indices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/expect_error.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

using Index = std::vector<int64_t>;

/// Checks each element of a result: from(its index) is an index into x, or empty for `value`.
void expect_moved(const Tensor& got, const Tensor& x, const std::function<Index(Index)>& from,
                  int64_t value = 0) {
  const std::vector<int64_t> in = x.to_vector<int64_t>(), out = got.to_vector<int64_t>();
  const Shape& shape = got.shape();
  for (size_t i = 0; i < out.size(); ++i) {
    Index index(static_cast<size_t>(shape.rank()));
    auto rest = static_cast<int64_t>(i);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % shape[d];
      rest /= shape[d];
    }
    const Index source = from(index);
    int64_t at = 0;
    for (size_t d = 0; d < source.size(); ++d) at = at * x.shape()[static_cast<int>(d)] + source[d];
    ASSERT_EQ(out[i], source.empty() ? value : in[static_cast<size_t>(at)])
        << got.str() << " element " << i;
  }
}

Tensor counting(const Shape& shape) {
  return Tensor::arange(1, shape.elems(), 1, DType::i64).reshape(shape);
}

TEST(ShapeOps, FlipIsAView) {
  const Tensor x = counting({3, 4, 5});
  const Tensor y = flip(x, std::vector<int>{0, -1});
  EXPECT_EQ(y.storage(), x.storage());
  expect_moved(y, x, [](Index i) { return Index{2 - i[0], i[1], 4 - i[2]}; });
  expect_moved(flip(x), x, [](Index i) { return Index{2 - i[0], 3 - i[1], 4 - i[2]}; });
  expect_moved(flip(flip(x, 1), 1), x, [](Index i) { return i; });
  EXPECT_EQ(flip(Tensor::zeros({2, 0}, DType::f32), 1).shape(), Shape({2, 0}));
  EXPECT_EQ(flip(Tensor::ones({}, DType::f32)).item<float>(), 1);
  EXPECT_EQ(error_of([&] {
              flip(x, std::vector<int>{1, -2});
            }),
            "flip: dimension named twice: dims (1,-2) of rank 3: name each dimension once");
  EXPECT_THAT(error_of([&] { flip(x, 3); }), HasSubstr("flip: dimension out of range"));
  EXPECT_THAT(error_of([&] { flip(quantize(Tensor::zeros({32}, DType::f32), DType::q8_0)); }),
              HasSubstr("flip: unsupported dtype"));
}

TEST(ShapeOps, Roll) {
  const Tensor x = counting({3, 4, 5});
  for (int64_t shift : {0, 1, 3, 4, -1, -9, 1000001}) {
    const auto back = [&](int64_t i, int64_t n) { return ((i - shift) % n + n) % n; };
    expect_moved(roll(x, shift, 1), x, [&](Index i) { return Index{i[0], back(i[1], 4), i[2]}; });
    const std::vector<int64_t> shifts = {shift, 2};
    expect_moved(roll(x.transpose(0, 2), shifts, std::vector<int>{0, -1}), x.transpose(0, 2),
                 [&](Index i) {
                   return Index{back(i[0], 5), i[1], (i[2] + 1) % 3};
                 });
  }
  EXPECT_EQ(roll(Tensor::zeros({0, 2}, DType::f32), 1, 0).shape(), Shape({0, 2}));
  EXPECT_THAT(error_of([&] {
                roll(x, std::vector<int64_t>{1, 2}, std::vector<int>{0});
              }),
              HasSubstr("roll: numbers of shifts and dims differ: 2 and 1"));
  EXPECT_THAT(error_of([&] { roll(x, 1, -4); }), HasSubstr("roll: dimension out of range"));
}

TEST(ShapeOps, Repeat) {
  const Tensor x = counting({2, 1, 3});
  expect_moved(repeat(x, {2, 3, 2}), x, [](Index i) { return Index{i[0] % 2, 0, i[2] % 3}; });
  expect_moved(repeat(x, {4}), x, [](Index i) { return Index{i[0], 0, i[2] % 3}; });
  expect_moved(repeat(x.transpose(0, 2), {5, 1, 2, 3}), x, [](Index i) {
    return Index{i[3] % 2, 0, i[1] % 3};
  });
  const Tensor deep = counting({2, 2, 2, 2, 2, 2, 2, 2});
  expect_moved(repeat(deep, {2, 1, 2, 1, 1, 3, 1, 2}), deep, [](Index i) {
    for (int64_t& j : i) j %= 2;
    return i;
  });
  EXPECT_EQ(repeat(x, {0, 1, 1}).shape(), Shape({0, 1, 3}));
  EXPECT_EQ(repeat(x, {1, 0, 1}).elems(), 0);
  EXPECT_EQ(repeat(Tensor::ones({}, DType::f32), {3}).shape(), Shape({3}));
  EXPECT_THAT(error_of([&] { repeat(x, {-1}); }), HasSubstr("repeat: a negative count"));
  EXPECT_THAT(error_of([&] { repeat(x, {int64_t{1} << 62}); }), HasSubstr("too many elements"));
  EXPECT_THAT(error_of([&] {
                repeat(x, {1, 1, 1, 1, 1, 1, 1, 1, 1});
              }),
              HasSubstr("repeat: too many dimensions"));
}

TEST(ShapeOps, Pad) {
  const Tensor x = counting({3, 4, 5});
  const auto inside = [](int64_t i, int64_t n) { return i >= 0 && i < n; };
  expect_moved(
      pad(x, {{1, 2}, {3, 0}}, PadMode::constant, 7), x,
      [&](Index i) {
        return inside(i[1] - 1, 4) && inside(i[2] - 3, 5) ? Index{i[0], i[1] - 1, i[2] - 3}
                                                          : Index{};
      },
      7);
  const auto mirror = [](int64_t i, int64_t n) {
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
  };
  expect_moved(pad(x, {{2, 1}, {3, 3}, {0, 4}}, PadMode::reflect), x, [&](Index i) {
    return Index{mirror(i[0] - 2, 3), mirror(i[1] - 3, 4), mirror(i[2], 5)};
  });
  expect_moved(pad(x.transpose(0, 1), {{9, 1}, {2, 6}}, PadMode::replicate), x, [&](Index i) {
    return Index{std::clamp<int64_t>(i[1] - 9, 0, 2), i[0], std::clamp<int64_t>(i[2] - 2, 0, 4)};
  });
  expect_moved(pad(x, {}), x, [](Index i) { return i; });
  // An empty tensor: the result is padding only.
  EXPECT_THAT(
      pad(Tensor::zeros({0}, DType::f32), {{1, 1}}, PadMode::constant, 3).to_vector<float>(),
      ElementsAre(3, 3));
  EXPECT_EQ(error_of([&] {
              pad(x, {{0, 5}}, PadMode::reflect);
            }),
            "pad: reflect padding is too large: i64[3,4,5]@cpu, dim 2, 0 before, 5 after: need "
            "less than the size");
  EXPECT_THAT(error_of([&] { pad(x, {{-1, 0}}); }), HasSubstr("pad: negative padding"));
  EXPECT_THAT(error_of([&] { pad(x, {{0, INT64_MAX}}); }), HasSubstr("pad: too many elements"));
  EXPECT_THAT(error_of([&] { pad(x, {{}, {}, {}, {}}); }), HasSubstr("more paddings than"));
  EXPECT_THAT(error_of([&] {
                pad(Tensor::zeros({0}, DType::f32), {{1, 0}}, PadMode::replicate);
              }),
              HasSubstr("pad: nothing to replicate"));
}

TEST(ShapeOps, Triangles) {
  for (const Shape& shape : {Shape{1, 1}, Shape{7, 7}, Shape{16, 16}, Shape{5, 13}, Shape{13, 5},
                             Shape{2, 3, 37, 41}, Shape{2, 1, 1, 1, 1, 1, 9, 8}, Shape{3, 0}}) {
    const Tensor x = counting(shape);
    const auto d = static_cast<size_t>(shape.rank());
    for (int64_t diagonal : {0, 1, -1, 3, -4, 12, -12, 100, -100}) {
      expect_moved(tril(x, diagonal), x,
                   [&](Index i) { return i[d - 1] - i[d - 2] <= diagonal ? i : Index{}; });
      expect_moved(triu(x, diagonal), x,
                   [&](Index i) { return i[d - 1] - i[d - 2] >= diagonal ? i : Index{}; });
    }
    expect_moved(tril(x.t()), x.t().contiguous(),
                 [&](Index i) { return i[d - 1] <= i[d - 2] ? i : Index{}; });
  }
  const Tensor x = counting({3, 3});
  EXPECT_EQ(triu(x, INT64_MIN).to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(tril(x, INT64_MAX).to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(error_of([&] { tril(counting({3})); }),
            "tril: rank below 2: i64[3]@cpu: need matrices");
  EXPECT_THAT(error_of([&] { triu(counting({3})); }), HasSubstr("triu: rank below 2"));
}

TEST(ShapeOps, Eye) {
  EXPECT_THAT(eye(2, 3).to_vector<float>(), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_THAT(eye(2, DType::u8).to_vector<uint8_t>(), ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(eye(0).shape(), Shape({0, 0}));
  EXPECT_EQ(eye(3, 0, DType::f8e4m3).elems(), 0);
  EXPECT_EQ(error_of([] { eye(-1); }), "eye: negative size: [-1,-1]: need sizes >= 0");
  EXPECT_THAT(error_of([] { eye(2, DType::q4_0); }), HasSubstr("eye: to a block dtype"));
}

TEST(ShapeOps, ConstSet) {
  Tensor x = Tensor::zeros({3, 4}, DType::i64);
  const_set(x, 7, x.layout().slice(1, 0, 4, 2).narrow(0, 1, 2));
  EXPECT_THAT(x.to_vector<int64_t>(), ElementsAre(0, 0, 0, 0, 7, 0, 7, 0, 7, 0, 7, 0));
  const_set(x, 2.9, x.layout().narrow(0, 0, 1).squeeze(0));
  EXPECT_THAT(x.to_vector<int64_t>(), ElementsAre(2, 2, 2, 2, 7, 0, 7, 0, 7, 0, 7, 0));
  // A view that is the only owner of its storage: elements outside the view stay.
  x = x.slice(1, -1, -9, -3);
  const_set(x, 5);
  EXPECT_THAT(x.to_vector<int64_t>(), ElementsAre(5, 5, 5, 5, 5, 5));
  const_set(x, 1, x.layout().narrow(0, 0, 0));

  const Tensor other = x;
  EXPECT_EQ(error_of([&] { const_set(x, 1); }),
            "const_set: target's storage is shared: i64[3,2]@cpu: other tensors would change under "
            "their owners: clone it first");
  Tensor y = Tensor::zeros({3}, DType::f32);
  EXPECT_EQ(error_of([&] {
              const_set(y, 1, y.layout().unsqueeze(0).broadcast_to({2, 3}));
            }),
            "const_set: elements overlap: f32[2,3]@cpu");
  EXPECT_THAT(error_of([&] { const_set(y, 1, Layout::contiguous({4})); }),
              HasSubstr("outside the storage"));
  EXPECT_THAT(error_of([&] { const_set(y, 1, Layout::contiguous({1}, -1)); }),
              HasSubstr("outside the storage"));
}

}  // namespace
}  // namespace wick
