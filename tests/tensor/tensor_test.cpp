// Tensors as values: creation, views, cat and split, slice_set, sharing.
#include "wick/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "tests/expect_error.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor iota(const Shape& shape) { return Tensor::arange(0, shape.elems()).reshape(shape); }
std::vector<float> values(const Tensor& t) { return t.to_vector<float>(); }

TEST(Tensor, Creation) {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    EXPECT_THAT(values(Tensor::full({3}, 2, dtype).to(DType::f32)), ElementsAre(2, 2, 2));
    EXPECT_THAT(values(Tensor::zeros({2}, dtype).to(DType::f32)), ElementsAre(0, 0));
    EXPECT_THAT(values(Tensor::ones({1}, dtype).to(DType::f32)), ElementsAre(1));
    EXPECT_THAT(values(Tensor::arange(1, 4, 2, dtype).to(DType::f32)), ElementsAre(1, 3, 5, 7));
    EXPECT_EQ(Tensor::empty({2, 3}, dtype).storage()->bytes(),
              static_cast<size_t>(bytes_of(dtype, 6)));
  }
  EXPECT_EQ(Tensor::arange(INT64_MAX - 1, 2, 1, DType::i64).to_vector<int64_t>().back(), INT64_MAX);
  EXPECT_EQ(Tensor::from(std::vector<int16_t>{-1, 2}, {2, 1}).to_vector<int16_t>(),
            (std::vector<int16_t>{-1, 2}));
  EXPECT_EQ(Tensor::full({}, 2.5, DType::f64).item<double>(), 2.5);
  EXPECT_EQ(Tensor::empty({2, 64}, DType::q4_1).storage()->bytes(), 80u);
  EXPECT_TRUE(values(Tensor::empty({0, 3}, DType::f32)).empty());
  EXPECT_EQ(iota({2, 3}).str(), "f32[2,3]@cpu");
  EXPECT_EQ(Tensor().str(), "undefined");
}

TEST(Tensor, ViewsShareStorage) {
  const Tensor x = iota({2, 3, 4});
  const std::vector<Tensor> views = {x.narrow(1, 1, 2),
                                     x.slice(2, 3, -9, -2),
                                     x.transpose(0, 2),
                                     x.t(),
                                     x.permute({2, 0, 1}),
                                     x.unsqueeze(1),
                                     x.unsqueeze(0).squeeze(0),
                                     x.reshape({6, 4}),
                                     x.flatten(),
                                     x.flatten(1),
                                     x.broadcast_to({5, 2, 3, 4}),
                                     x.contiguous(),
                                     x.to(DType::f32),
                                     x.split(std::vector<int64_t>{1, 2}, 1)[1],
                                     x.chunk(2, -1)[0]};
  for (const Tensor& v : views) EXPECT_EQ(v.storage(), x.storage()) << v.str();
  EXPECT_THAT(values(views[1].narrow(0, 1, 1).narrow(1, 0, 1)), ElementsAre(15, 13));
  EXPECT_EQ(views[2].shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(views[9].shape(), (Shape{2, 12}));
  // A reshape that can't be a view is a copy.
  const Tensor copy = x.transpose(0, 1).reshape({6, 4});
  EXPECT_NE(copy.storage(), x.storage());
  EXPECT_EQ(values(copy), values(x.transpose(0, 1)));
  EXPECT_NE(x.clone().storage(), x.storage());
  EXPECT_EQ(values(x.clone()), values(x));
  EXPECT_NE(x.t().contiguous().storage(), x.storage());
  EXPECT_EQ(Tensor::full({}, 1, DType::f32).flatten().shape(), (Shape{1}));
  EXPECT_EQ(x.size(-1), 4);
}

TEST(Tensor, ViewsOutliveTheTensorTheyCameFrom) {
  Tensor view;
  {
    const Tensor x = iota({4});
    view = x.slice(0, 3, -5, -1);
  }
  EXPECT_THAT(values(view), ElementsAre(3, 2, 1, 0));
}

TEST(Tensor, SplitAndChunk) {
  const Tensor x = iota({7, 2});
  const auto parts = x.split(std::vector<int64_t>{3, 0, 4}, 0);
  EXPECT_EQ(parts[1].shape(), (Shape{0, 2}));
  EXPECT_THAT(values(parts[2]).front(), 6);
  std::vector<int64_t> sizes;
  for (const Tensor& c : x.chunk(3, 0)) sizes.push_back(c.size(0));
  EXPECT_THAT(sizes, ElementsAre(3, 3, 1));
  EXPECT_EQ(x.chunk(INT64_MAX, 0).size(), 7u);
  EXPECT_EQ(x.narrow(0, 0, 0).chunk(3, 0).size(), 1u);
  EXPECT_EQ(error_of([&] {
              x.split(std::vector<int64_t>{3, 3}, 0);
            }),
            "split: sizes don't add up: f32[7,2]@cpu, dim 0: 6 != 7");
  EXPECT_THAT(error_of([&] { x.split(std::vector<int64_t>{8}, 0); }), HasSubstr("narrow: range"));
  EXPECT_THAT(error_of([&] { x.split(std::vector<int64_t>{-1, 8}, 0); }), HasSubstr("narrow: "));
  EXPECT_EQ(error_of([&] { x.chunk(0, 0); }), "chunk: count below 1: 0");
}

TEST(Tensor, CatAndStack) {
  const Tensor a = iota({2, 3}), b = iota({2, 2});
  const Tensor c = cat(std::vector<Tensor>{a, b, a.t().narrow(0, 0, 1).t()}, 1);
  EXPECT_EQ(c.shape(), (Shape{2, 6}));
  EXPECT_THAT(values(c), ElementsAre(0, 1, 2, 0, 1, 0, 3, 4, 5, 2, 3, 3));
  const Tensor s = stack(std::vector<Tensor>{a, a + a}, -1);
  EXPECT_EQ(s.shape(), (Shape{2, 3, 2}));
  EXPECT_THAT(values(s), ElementsAre(0, 0, 1, 2, 2, 4, 3, 6, 4, 8, 5, 10));
  EXPECT_EQ(error_of([] { cat({}, 0); }), "cat: no tensors: need one or more");
  EXPECT_EQ(error_of([] { stack({}, 0); }), "stack: no tensors: need one or more");
  EXPECT_EQ(error_of([&] {
              cat(std::vector<Tensor>{a, b}, 0);
            }),
            "cat: shapes differ outside the dimension: f32[2,3]@cpu and f32[2,2]@cpu, dim 0");
  EXPECT_EQ(error_of([&] {
              stack(std::vector<Tensor>{a, b}, 0);
            }),
            "stack: shapes differ: f32[2,3]@cpu and f32[2,2]@cpu");
  EXPECT_THAT(error_of([&] {
                cat(std::vector<Tensor>{a, a.to(DType::f16)}, 0);
              }),
              HasSubstr("cat: dtypes differ: lhs f32[2,3]@cpu, rhs f16[2,3]@cpu: dtypes "
                        "aren't promoted: convert one, e.g. rhs to f32"));
  EXPECT_EQ(error_of([&] { cat(std::vector<Tensor>{a, Tensor()}, 0); }), "cat: undefined tensor");
  EXPECT_EQ(error_of([&] { stack(std::vector<Tensor>{Tensor()}, 0); }), "stack: undefined tensor");
  const Tensor huge = Tensor::ones({1}, DType::u8).broadcast_to({int64_t{1} << 61});
  EXPECT_THAT(error_of([&] { cat(std::vector<Tensor>(4, huge), 0); }), HasSubstr("cat: too many"));
  EXPECT_THAT(error_of([&] { cat(std::vector<Tensor>(3, huge), 0); }), HasSubstr("too many"));
}

TEST(Tensor, SliceSet) {
  Tensor t = Tensor::zeros({2, 4}, DType::f32);
  slice_set(t, iota({2, 2}).t(), 1, 1);
  EXPECT_THAT(values(t), ElementsAre(0, 0, 2, 0, 0, 1, 3, 0));
  slice_set(t, Tensor::full({2, 1}, 9, DType::i16), -1, 3);  // converted
  EXPECT_THAT(values(t), ElementsAre(0, 0, 2, 9, 0, 1, 3, 9));
  slice_set(t, Tensor::zeros({2, 0}, DType::f32), 1, 4);
  // A view that is the only owner of its storage may be written, too.
  Tensor column = Tensor::zeros({4, 2}, DType::f32);
  column = column.t().narrow(0, 1, 1);
  slice_set(column, Tensor::ones({1, 2}, DType::f32), 1, 2);
  EXPECT_THAT(values(column), ElementsAre(0, 0, 1, 1));

  const std::string range =
      "slice_set: range outside the target: target f32[2,4]@cpu, dim 1, start ";
  const Tensor two = iota({2, 2});
  EXPECT_EQ(error_of([&] { slice_set(t, two, 1, 3); }), range + "3, length 2");
  EXPECT_EQ(error_of([&] { slice_set(t, two, 1, -1); }), range + "-1, length 2");
  EXPECT_THAT(error_of([&] { slice_set(t, two, 1, INT64_MAX); }), HasSubstr(range));
  EXPECT_EQ(error_of([&] {
              slice_set(t, iota({3, 2}), 1, 0);
            }),
            "slice_set: shapes differ outside the dimension: target f32[2,4]@cpu, source "
            "f32[3,2]@cpu, dim 1");
  EXPECT_THAT(error_of([&] { slice_set(t, two, 2, 0); }), HasSubstr("dim 2 of rank 2"));
  const Tensor shared = t;
  EXPECT_EQ(error_of([&] { slice_set(t, two, 1, 0); }),
            "slice_set: target's storage is shared: f32[2,4]@cpu: other tensors would change under "
            "their owners: clone it first");
  Tensor wide = Tensor::zeros({1, 2}, DType::f32);
  wide = wide.broadcast_to({2, 2});
  EXPECT_EQ(error_of([&] { slice_set(wide, two, 0, 0); }),
            "slice_set: target's elements overlap: f32[2,2]@cpu");
  const std::vector<float> bytes(4);
  Tensor mapped(Storage::map(bytes.data(), 16, nullptr), DType::f32, Layout::contiguous({4}));
  EXPECT_EQ(error_of([&] { slice_set(mapped, iota({4}), 0, 0); }),
            "slice_set: target is read-only: f32[4]@cpu: it maps a file, or another "
            "library's memory: clone it first");
  Tensor undefined;
  EXPECT_EQ(error_of([&] { slice_set(undefined, two, 0, 0); }), "slice_set: undefined tensor");
  EXPECT_EQ(error_of([&] { slice_set(wide, undefined, 0, 0); }), "slice_set: undefined tensor");
}

TEST(Tensor, SliceSetOfALayout) {
  Tensor x = iota({3, 4});
  const auto values = [&] { return x.to_vector<float>(); };
  slice_set(x, Tensor::full({2, 1}, 9, DType::f32), x.layout().narrow(0, 1, 2).narrow(1, 0, 2));
  EXPECT_THAT(values(), ElementsAre(0, 1, 2, 3, 9, 9, 6, 7, 9, 9, 10, 11));
  {
    const Tensor own = x.narrow(0, 0, 2);  // read before anything is written
    slice_set(x, own, x.layout().narrow(0, 1, 2));
  }
  EXPECT_THAT(values(), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 9, 9, 6, 7));
  slice_set(x, Tensor::full({}, 4, DType::i64), x.layout().transpose(0, 1));
  EXPECT_THAT(values(), testing::Each(4));
  EXPECT_THAT(error_of([&] { slice_set(x, Tensor::zeros({3}, DType::f32), x.layout()); }),
              HasSubstr("broadcast"));
  Tensor one = Tensor::zeros({1}, DType::f32);
  EXPECT_THAT(error_of([&] {
                slice_set(one, x, Layout(Shape{3, 4}, {0, 0}, 0));
              }),
              HasSubstr("slice_set: target's elements overlap"));
  const Tensor alias = x.narrow(0, 0, 1);
  EXPECT_THAT(error_of([&] { slice_set(x, one, x.layout()); }), HasSubstr("storage is shared"));
}

TEST(Tensor, AWeightReleasesOnlyPagesOfFiles) {
  const Tensor own = Tensor::ones({4096, 8}, DType::f32);
  const std::vector<float> host(4096 * 8, 1);
  const Tensor mapped(Storage::map(host.data(), host.size() * 4, nullptr), DType::f32,
                      Layout::contiguous({4096, 8}));
  for (const Tensor& source : {own, mapped}) {
    const Weight weight(source, true);
    EXPECT_THAT(source.to_vector<float>(), testing::Each(1.0f));
  }
}

TEST(Tensor, IndexSelectShapes) {
  const Tensor x = iota({3, 4, 2});
  auto ids = [](std::vector<uint32_t> v, const Shape& shape) { return Tensor::from(v, shape); };
  EXPECT_EQ(index_select(x, ids({2, 0}, {2}), 0).shape(), (Shape{2, 4, 2}));
  EXPECT_EQ(index_select(x, ids({2, 0, 1, 1, 1, 3}, {2, 3}), 1).shape(), (Shape{3, 2, 3, 2}));
  EXPECT_EQ(index_select(x, ids({1}, {}), -1).shape(), (Shape{3, 4}));
  EXPECT_EQ(index_select(x, ids({}, {0}), 1).shape(), (Shape{3, 0, 2}));
  EXPECT_THAT(values(index_select(x, ids({1}, {}), 2).narrow(0, 0, 1)), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(values(index_select(x.t(), ids({3, 3}, {2, 1}), 2).narrow(0, 2, 1)),
              ElementsAre(22, 22, 23, 23));
  EXPECT_EQ(error_of([&] { index_select(x, x, 0); }),
            "index_select: unsupported id dtype: f32[3,4,2]@cpu: use u8, u32, i32 or i64");
  EXPECT_THAT(error_of([&] { index_select(x, ids({3}, {1}), 0); }), HasSubstr("index_select: "));
  EXPECT_THAT(error_of([&] { index_select(x, Tensor::from(std::vector<int32_t>{-1}, {1}), 0); }),
              HasSubstr("index_select: "));
  EXPECT_THAT(error_of([&] {
                index_select(x, ids({0}, {1, 1, 1, 1, 1, 1, 1}), 0);
              }),
              HasSubstr("too many dimensions"));
  const Tensor q = quantize(iota({3, 32}), DType::q8_0);
  EXPECT_EQ(index_select(q, ids({2}, {1}), 0, DType::f16).str(), "f16[1,32]@cpu");
  EXPECT_THAT(error_of([&] { index_select(q, ids({0}, {1}), 1); }),
              HasSubstr("index_select: not for this block tensor: q8_0[3,32]@cpu"));
}

TEST(Tensor, BlockTensorsKeepTheirRowsWhole) {
  const Tensor q = quantize(iota({4, 64}), DType::q4_0);
  EXPECT_EQ(q.narrow(0, 1, 2).shape(), (Shape{2, 64}));
  EXPECT_EQ(values(dequantize(q.narrow(0, 1, 2))), values(dequantize(q).narrow(0, 1, 2)));
  for (const std::string& error :
       {error_of([&] { q.narrow(1, 0, 32); }), error_of([&] { q.slice(-1, 0, 32); }),
        error_of([&] { q.t(); }), error_of([&] {
          q.permute({1, 0});
        }),
        error_of([&] {
          (void)q.reshape({2, 128});
        }),
        error_of([&] { (void)q.clone(); }), error_of([&] { (void)q.unsqueeze(0); }),
        error_of([&] { (void)q.squeeze(0); }), error_of([&] {
          (void)q.broadcast_to({2, 4, 64});
        })}) {
    EXPECT_THAT(error, HasSubstr("not for a block dtype: q4_0[4,64]@cpu: dequantize it first"));
  }
  EXPECT_EQ(error_of([] {
              Tensor::empty({4, 33}, DType::q4_0);
            }),
            "empty: the last dimension isn't whole blocks: q4_0[4,33]: need a multiple of 32");
  EXPECT_THAT(error_of([] { Tensor::empty({}, DType::q4_k); }), HasSubstr("multiple of 256"));
  EXPECT_THAT(error_of([] { Tensor::zeros({32}, DType::q8_0); }),
              HasSubstr("full: not for a block"));
}

TEST(Tensor, LayoutsMustLieInsideTheirStorage) {
  const auto storage = Storage::allocate(Device::cpu(), 24);
  auto error = [&](DType dtype, const Layout& layout) {
    return error_of([&] { Tensor(storage, dtype, layout); });
  };
  EXPECT_EQ(error(DType::f32, Layout::contiguous({2, 3})), "no error");
  EXPECT_EQ(error(DType::f32, Layout({2, 3}, {-3, 1}, 3)), "no error");
  EXPECT_EQ(error(DType::f32, Layout({0}, {1}, 100)), "no error");
  EXPECT_EQ(error(DType::f64, Layout({100}, {0}, 2)), "no error");
  EXPECT_EQ(error(DType::q4_0, Layout::contiguous({32})), "no error");
  const std::string outside = "tensor: layout outside the storage: ";
  EXPECT_EQ(error(DType::f32, Layout::contiguous({7})),
            outside + "f32[7]@cpu, offset 0, storage of 24 bytes");
  EXPECT_THAT(error(DType::f32, Layout::contiguous({6}, 1)), HasSubstr(outside));
  EXPECT_THAT(error(DType::f32, Layout::contiguous({1}, -1)), HasSubstr(outside));
  EXPECT_THAT(error(DType::f32, Layout({2}, {-1}, 0)), HasSubstr(outside));
  EXPECT_THAT(error(DType::f32, Layout({2}, {INT64_MAX}, 0)), HasSubstr(outside));
  EXPECT_THAT(error(DType::f32, Layout({1}, {1}, INT64_MAX)), HasSubstr(outside));
  EXPECT_THAT(error(DType::q4_0, Layout::contiguous({64})), HasSubstr(outside));
  EXPECT_THAT(error(DType::q4_0, Layout({32}, {2}, 0)), HasSubstr(outside));
  EXPECT_EQ(error_of([] { Tensor(nullptr, DType::f32, Layout()); }),
            "tensor: undefined: no value was assigned");
}

TEST(Tensor, ThreadsShareTensors) {
  const Tensor x = iota({64, 64});
  const std::vector<float> expected = values(x.t() + x);
  std::vector<std::jthread> threads;
  std::vector<int> same(4, 0);
  for (auto& count : same) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) count += values(x.t() + Tensor(x)) == expected;
    });
  }
  threads.clear();
  EXPECT_THAT(same, ElementsAre(50, 50, 50, 50));
}

}  // namespace
}  // namespace wick
