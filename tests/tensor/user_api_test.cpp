// The C++ API as users write it: numbers as operands, indexing, printing, 16-bit floats.

#include <gtest/gtest.h>

#include <sstream>

#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

Tensor counting(const Shape& shape) {
  return Tensor::arange(0, shape.elems(), 1, DType::i64).reshape(shape);
}

TEST(UserApi, NumbersBesideTensors) {
  for (const DType dtype : {DType::f32, DType::f16, DType::f64, DType::i16, DType::u8}) {
    const Tensor x = counting({2, 3}).to(dtype), two = Tensor::full({}, 2, dtype);
    const auto same = [](const Tensor& a, const Tensor& b) {
      EXPECT_EQ(a.str(), b.str());
      EXPECT_EQ(a.to(DType::f64).to_vector<double>(), b.to(DType::f64).to_vector<double>());
    };
    same(x + 2, add(x, two));
    same(2 - x, sub(two, x));
    same(x * 2, mul(x, two));
    same(2 / (x + 1), div(two, add(x, Tensor::ones({}, dtype))));
    same(x < 2, lt(x, two));
    same(2 <= x, le(two, x));
    same(x > 2.0, gt(x, two));
    same(2.0 >= x, ge(two, x));
    same(-x, neg(x));
  }
  Tensor x = Tensor::ones({2}, DType::f32);
  x += x;
  x *= x * 1.5;
  EXPECT_EQ((std::vector<float>{6, 6}), x.to_vector<float>());
  EXPECT_EQ((std::vector<float>{0.25f, 0.5f}),
            (Tensor::from<float>({1, 2}, {2}) * 0.25).to_vector<float>());
  x += 2;
  x *= 0.5;
  x -= 1.0;
  x /= 2;
  EXPECT_EQ((std::vector<float>{1.5, 1.5}), x.to_vector<float>());
  Tensor whole = counting({2});
  EXPECT_THROW(whole *= 0.5, Error);
  EXPECT_EQ((std::vector<int64_t>{0, 1}), whole.to_vector<int64_t>());
}

/// The same arguments are optional as in Python, with the same defaults.
TEST(UserApi, DefaultsOfPython) {
  const Tensor x = (counting({3, 4}).to(DType::f32) - 5.5) * 0.25,
               w = Tensor::ones({4}, DType::f32);
  const Tensor parts[] = {x, x}, ids = Tensor::from<int64_t>({2, 0}, {2});
  const auto same = [](const Tensor& a, const Tensor& b) { EXPECT_EQ(to_string(a), to_string(b)); };
  same(softmax(x), softmax(x, 1));
  same(log_softmax(x), log_softmax(x, 1));
  same(sort(x).indices, sort(x, 1, false).indices);
  same(argsort(x), argsort(x, 1, false));
  same(topk(x, 2).values, topk(x, 2, 1, true).values);
  same(cumsum(x), cumsum(x, 1));
  same(cumprod(x), cumprod(x, 1));
  same(cat(parts), cat(parts, 0));
  same(stack(parts), stack(parts, 0));
  same(index_select(x, ids), index_select(x, ids, 0));
  same(affine(x, 2), affine(x, 2, 0));
  same(elu(x), elu(x, 1));
  same(rms_norm(x, w), rms_norm(x, w, 1e-5f));
  same(layer_norm(x), layer_norm(x, {}, {}, 1e-5f));
  const Tensor q = x.reshape({1, 1, 3, 4});
  AttentionOptions options;
  options.causal = false, options.window = 0, options.soft_cap = 0, options.scale = 0.5f;
  same(attention(q, q, q), attention(q, q, q, options, {}, {}, {}));
  same(tril(x), tril(x, 0));
  same(sum(x), sum(x, std::vector<int>{0, 1}, false));
  same(var(x), var(x, std::vector<int>{0, 1}, false, 1));
}

TEST(UserApi, NumbersThatADtypeDoesntHold) {
  const Tensor x = counting({3}).to(DType::u8);
  EXPECT_THROW((void)(x * 0.5), Error);
  EXPECT_THROW((void)(x + 256), Error);
  EXPECT_THROW((void)(x + -1), Error);
  EXPECT_THROW((void)(Tensor() + 1), Error);
  EXPECT_NO_THROW((void)(x + 255.0));
}

TEST(UserApi, Indexing) {
  const Tensor x = counting({2, 3, 4});
  const auto values = [](const Tensor& t) { return t.to_vector<int64_t>(); };
  EXPECT_EQ(values(x.narrow(0, 1, 1)), values(x[1]));
  EXPECT_EQ((Shape{3, 4}), x[-1].shape());
  EXPECT_EQ(23, (x[{1, 2, 3}].item<int64_t>()));
  EXPECT_EQ(23, (x[{-1, -1, -1}].item<int64_t>()));
  EXPECT_EQ(values(x.narrow(1, 1, 2)), values(x[{Slice{}, Slice{1, 3}}]));
  EXPECT_EQ(values(x.narrow(2, 0, 1).squeeze(2)), values(x[{ellipsis, 0}]));
  EXPECT_EQ((Shape{2, 1, 3, 4, 1}), (x[{Slice{}, new_axis, ellipsis, new_axis}].shape()));
  EXPECT_EQ((Shape{0, 3, 4}), (x[{Slice{2, 1}}].shape()));
}

/// Slices with every start, stop and step, compared with a loop.
TEST(UserApi, SlicesLikePythons) {
  const int64_t size = 5;
  const Tensor x = counting({size});
  for (int64_t step = -3; step <= 3; ++step) {
    if (step == 0) continue;
    for (int64_t start = -8; start <= 8; ++start) {
      for (int64_t stop = -8; stop <= 8; ++stop) {
        // 8 stands for an omitted value.
        Slice slice{.start = {}, .stop = {}, .step = step};
        if (start != 8) slice.start = start;
        if (stop != 8) slice.stop = stop;
        const auto clamped = [&](int64_t bound) {
          if (bound < 0) bound += size;
          if (step > 0) return bound < 0 ? 0 : bound > size ? size : bound;
          return bound < -1 ? -1 : bound > size - 1 ? size - 1 : bound;
        };
        const int64_t first = start == 8 ? (step > 0 ? 0 : size - 1) : clamped(start);
        const int64_t end = stop == 8 ? (step > 0 ? size : -1) : clamped(stop);
        std::vector<int64_t> expected;
        for (int64_t i = first; step > 0 ? i < end : i > end; i += step) expected.push_back(i);
        EXPECT_EQ(expected, (x[{slice}].to_vector<int64_t>()))
            << start << ":" << stop << ":" << step;
      }
    }
  }
}

TEST(UserApi, IndicesThatDontFit) {
  const Tensor x = counting({2, 3});
  EXPECT_THROW((void)x[2], Error);
  EXPECT_THROW((void)x[-3], Error);
  EXPECT_THROW((void)(x[{0, 0, 0}]), Error);
  EXPECT_THROW((void)(x[{ellipsis, ellipsis}]), Error);
  EXPECT_THROW((void)(x[{Slice{0, 1, 0}}]), Error);
  EXPECT_THROW((void)Tensor::zeros({}, DType::f32)[0], Error);
  EXPECT_THROW((void)Tensor()[0], Error);
}

TEST(UserApi, Printing) {
  std::ostringstream out;
  out << Tensor::from<float>({1, 2.5, -3, 1e10f}, {2, 2});
  EXPECT_EQ("[[    1,   2.5],\n [   -3, 1e+10]] f32[2,2]@cpu", out.str());
  EXPECT_EQ("[0, 1, 2] i64[3]@cpu", to_string(counting({3})));
  EXPECT_EQ("7 i64[]@cpu", to_string(Tensor::full({}, 7, DType::i64)));
  EXPECT_EQ("[ true, false] bool[2]@cpu", to_string(counting({2}) < 1));
  EXPECT_EQ("[] f16[0]@cpu", to_string(Tensor::zeros({0}, DType::f16)));
  EXPECT_EQ("undefined", to_string(Tensor()));
  EXPECT_EQ("[   0,    1,    2, ..., 1997, 1998, 1999] i64[2000]@cpu", to_string(counting({2000})));
}

TEST(UserApi, FloatsOf16Bits) {
  const std::vector<float> values = {1, 0.5f, -2, 65504};
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = Tensor::from(values, {4}, dtype);
    EXPECT_EQ(dtype, x.dtype());
    EXPECT_EQ(x.to(DType::f32).to_vector<float>(), x.to_vector<float>());
    EXPECT_EQ(0.5f, x[1].item<float>());
    EXPECT_THROW((void)x.to_vector<double>(), Error);
  }
  EXPECT_EQ(values, Tensor::from(values, {4}, DType::f16).to_vector<float>());
}

}  // namespace
}  // namespace wick
