// Errors of every op, which are thrown before a backend is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/expect_error.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

using test::error_of;
using testing::HasSubstr;
using testing::StartsWith;

Tensor make(const Shape& shape, DType dtype = DType::f32) { return Tensor::zeros(shape, dtype); }

using Call = std::function<void(const Tensor&)>;

/// Returns every op of ops.def, called with `x` as one operand and valid other operands.
std::vector<std::pair<Op, Call>> calls() {
  std::vector<std::pair<Op, Call>> all;
  const Tensor good = make({2, 2}), whole = make({2, 2}, DType::i32);
  // clang-format off
#define WICK_UNARY(name, ...) all.push_back({Op::name, [](const Tensor& x) { name(x); }});
#define WICK_TEST(name, ...) all.push_back({Op::name, [](const Tensor& x) { name(x); }});
#define WICK_COMPARE(name, ...)                                             \
  all.push_back({Op::name, [good](const Tensor& x) { name(x, good); }});    \
  all.push_back({Op::name, [good](const Tensor& x) { name(good, x); }});
#define WICK_GOOD_Real good
#define WICK_GOOD_Any good
#define WICK_GOOD_Floats good
#define WICK_GOOD_Integers whole
#define WICK_GOOD_Bits whole
#define WICK_BINARY(name, dtypes, ...)                                                   \
  all.push_back({Op::name, [=](const Tensor& x) { name(x, WICK_GOOD_##dtypes); }});      \
  all.push_back({Op::name, [=](const Tensor& x) { name(WICK_GOOD_##dtypes, x); }});
#define WICK_REDUCE(name, ...) all.push_back({Op::name, [](const Tensor& x) { name(x); }});
#define WICK_ARG(name, ...) all.push_back({Op::name, [](const Tensor& x) { name(x, 0); }});
#include "wick/op/ops.def"
  // clang-format on
  const Tensor ids = make({2}, DType::u32), heads = make({1, 2, 3, 4}), table = make({2, 1});
  const Tensor blocks = quantize(make({2, 32}), DType::q8_0);
  auto add = [&](Op op, Call call) { all.push_back({op, std::move(call)}); };
  add(Op::fill, [](const Tensor& x) { x.mutable_view(); });
  add(Op::iota, [](const Tensor& x) { x.view(); });
  add(Op::copy, [](const Tensor& x) { (void)x.clone(); });
  add(Op::cat, [good](const Tensor& x) { cat(std::vector<Tensor>{good, x}, 0); });
  add(Op::cat, [good](const Tensor& x) { stack(std::vector<Tensor>{x, good}, 0); });
  add(Op::cast, [](const Tensor& x) { cast(x, DType::f16); });
  add(Op::index_select, [good](const Tensor& x) { index_select(good, x, 0); });
  add(Op::index_select, [ids](const Tensor& x) { index_select(x, ids, 0); });
  add(Op::gather, [good](const Tensor& x) { gather(good, x, 0); });
  add(Op::gather, [ids](const Tensor& x) { gather(x, ids, 0); });
  for (const auto& [op, function] : {std::pair{Op::scatter, &scatter},
                                     {Op::scatter_add, &scatter_add},
                                     {Op::index_add, &index_add}}) {
    add(op, [ids, good, f = function](const Tensor& x) { f(x, ids, good, 0); });
    add(op, [good, f = function](const Tensor& x) { f(good, x, good, 0); });
    add(op, [ids, good, f = function](const Tensor& x) { f(good, ids, x, 0); });
  }
  add(Op::one_hot, [](const Tensor& x) { one_hot(x, 3); });
  add(Op::sort, [](const Tensor& x) { sort(x, 0); });
  add(Op::argsort, [](const Tensor& x) { argsort(x, 0); });
  add(Op::topk, [](const Tensor& x) { topk(x, 1, 0); });
  add(Op::cumsum, [](const Tensor& x) { cumsum(x, 0); });
  add(Op::cumprod, [](const Tensor& x) { cumprod(x, 0); });
  add(Op::uniform, [](const Tensor& x) { uniform(x.shape()); });
  add(Op::normal, [](const Tensor& x) { normal(x.shape()); });
  add(Op::copy, [](const Tensor& x) { flip(x); });
  add(Op::roll, [](const Tensor& x) { roll(x, 1, 0); });
  add(Op::repeat, [](const Tensor& x) { repeat(x, {2}); });
  add(Op::pad, [](const Tensor& x) { pad(x, {{1, 1}}); });
  add(Op::tril, [](const Tensor& x) { tril(x); });
  add(Op::triu, [](const Tensor& x) { triu(x); });
  add(Op::fill, [](const Tensor& x) {
    Tensor target = x;
    const_set(target, 1);
  });
  add(Op::affine, [](const Tensor& x) { affine(x, 1, 1); });
  add(Op::clamp, [](const Tensor& x) { clamp(x, 0, 1); });
  add(Op::powf, [](const Tensor& x) { powf(x, 2); });
  add(Op::elu, [](const Tensor& x) { elu(x); });
  const Tensor mask = make({2, 2}, DType::u8);
  add(Op::where, [good](const Tensor& x) { where(x, good, good); });
  add(Op::where, [good, mask](const Tensor& x) { where(mask, x, good); });
  add(Op::where, [good, mask](const Tensor& x) { where(mask, good, x); });
  add(Op::where, [good](const Tensor& x) { masked_fill(good, x, 1); });
  add(Op::where, [mask](const Tensor& x) { masked_fill(x, mask, 1); });
  add(Op::matmul, [good](const Tensor& x) { matmul(good, x); });
  add(Op::matmul, [good](const Tensor& x) { matmul(x, good); });
  add(Op::quantize, [](const Tensor& x) { quantize(x, DType::q8_0); });
  add(Op::dequantize, [](const Tensor& x) { dequantize(x); });
  add(Op::linear, [blocks](const Tensor& x) { linear(x, Weight(blocks)); });
  add(Op::linear, [](const Tensor& x) { Weight{x}; });
  const Tensor line = make({1, 2, 4}), image = make({1, 2, 4, 4});
  add(Op::conv1d, [line](const Tensor& x) { conv1d(x, line); });
  add(Op::conv1d, [line](const Tensor& x) { conv1d(line, x); });
  add(Op::conv2d, [image](const Tensor& x) { conv2d(x, image); });
  add(Op::conv2d, [image](const Tensor& x) { conv2d(image, x); });
  add(Op::conv2d, [image](const Tensor& x) { conv2d_weight(image, x, {2, 2}); });
  add(Op::conv_transpose1d, [line](const Tensor& x) { conv_transpose1d(x, line); });
  add(Op::conv_transpose2d, [image](const Tensor& x) { conv_transpose2d(image, x); });
  add(Op::max_pool1d, [](const Tensor& x) { max_pool1d(x, {.kernel = 2}); });
  add(Op::max_pool2d, [](const Tensor& x) { max_pool2d(x, {}); });
  add(Op::max_pool2d, [image](const Tensor& x) { max_pool2d_grad(image, x, {}); });
  add(Op::avg_pool1d, [](const Tensor& x) { avg_pool1d(x, {.kernel = 2}); });
  add(Op::avg_pool2d, [](const Tensor& x) { avg_pool2d(x, {}); });
  add(Op::avg_pool2d, [image](const Tensor& x) { avg_pool2d_grad(x, image, {}); });
  add(Op::upsample_nearest1d, [](const Tensor& x) { upsample_nearest1d(x, 4); });
  add(Op::upsample_nearest2d, [](const Tensor& x) { upsample_nearest2d(x, {.size = {4, 4}}); });
  add(Op::upsample_bilinear2d, [](const Tensor& x) { upsample_bilinear2d(x, {.size = {4, 4}}); });
  add(Op::softmax, [](const Tensor& x) { softmax(x, 0); });
  add(Op::log_softmax, [](const Tensor& x) { log_softmax(x, 0); });
  add(Op::rms_norm, [good](const Tensor& x) { rms_norm(good, x, 1e-5f); });
  add(Op::rms_norm, [ids](const Tensor& x) { rms_norm(x, make({2}), 1e-5f); });
  add(Op::layer_norm, [](const Tensor& x) { layer_norm(x); });
  add(Op::var, [](const Tensor& x) { var(x); });
  add(Op::logsumexp, [](const Tensor& x) { logsumexp(x); });
  add(Op::any, [](const Tensor& x) { any(x); });
  add(Op::all, [](const Tensor& x) { wick::all(x); });
  add(Op::group_norm, [](const Tensor& x) { group_norm(x, 1); });
  add(Op::batch_norm, [good](const Tensor& x) { batch_norm(x, good, good); });
  add(Op::softmax_grad, [good](const Tensor& x) { softmax_grad(x, good, 0); });
  add(Op::softmax_grad, [good](const Tensor& x) { softmax_grad(good, x, 0); });
  add(Op::log_softmax_grad, [good](const Tensor& x) { log_softmax_grad(good, x, 0); });
  add(Op::norm_grad, [good](const Tensor& x) { (void)norm_grad(x, good); });
  add(Op::norm_grad, [good](const Tensor& x) { (void)norm_grad(good, x); });
  constexpr std::array over = {0};
  add(Op::norm_sums, [=](const Tensor& x) { norm_sums(x, good, good, over); });
  add(Op::norm_sums, [=](const Tensor& x) { norm_sums(good, x, good, over); });
  add(Op::norm_sums, [=](const Tensor& x) { norm_sums(good, good, x, over); });
  add(Op::einsum, [](const Tensor& x) { einsum("i->i", std::span(&x, 1)); });
  add(Op::rope, [table](const Tensor& x) { rope(x, table, table); });
  add(Op::rope, [good, table](const Tensor& x) { rope(good, x, table); });
  add(Op::rope_interleaved, [good, table](const Tensor& x) { rope_interleaved(good, table, x); });
  add(Op::rope_interleaved, [table](const Tensor& x) { rope_interleaved(x, table, table); });
  add(Op::attention, [heads](const Tensor& x) { attention(x, heads, heads, {}); });
  add(Op::attention, [heads](const Tensor& x) { attention(heads, x, heads, {}); });
  add(Op::attention, [heads](const Tensor& x) { attention(heads, heads, x, {}); });
  const Tensor rows = make({1, 2, 8}), id = Tensor::zeros({1}, DType::u32);
  add(Op::store_in_pages, [=](const Tensor& x) { store_in_pages(x, rows, id.unsqueeze(0), id); });
  add(Op::store_in_pages, [=](const Tensor& x) { store_in_pages(heads, x, id.unsqueeze(0), id); });
  add(Op::store_in_pages, [=](const Tensor& x) { store_in_pages(heads, rows, x, id); });
  add(Op::store_in_pages,
      [=](const Tensor& x) { store_in_pages(heads, rows, id.unsqueeze(0), x); });
  const Tensor steps = make({2, 4}), states = make({1, 3, 4}), of_heads = make({1, 1, 8, 8});
  const Tensor one = make({1, 1, 8}), number = make({1, 1}), factor = make({1});
  add(Op::causal_conv, [=](const Tensor& x) { causal_conv(x, steps, states, id); });
  add(Op::causal_conv, [=](const Tensor& x) { causal_conv(steps, x, states, id); });
  add(Op::causal_conv, [=](const Tensor& x) { causal_conv(steps, steps, x, id); });
  add(Op::causal_conv, [=](const Tensor& x) { causal_conv(steps, steps, states, x); });
  add(Op::ssm_scan, [=](const Tensor& x) { ssm_scan(x, number, factor, one, one, of_heads, id); });
  add(Op::ssm_scan, [=](const Tensor& x) { ssm_scan(one, x, factor, one, one, of_heads, id); });
  add(Op::ssm_scan, [=](const Tensor& x) { ssm_scan(one, number, x, one, one, of_heads, id); });
  add(Op::ssm_scan, [=](const Tensor& x) { ssm_scan(one, number, factor, x, one, of_heads, id); });
  add(Op::ssm_scan, [=](const Tensor& x) { ssm_scan(one, number, factor, one, x, of_heads, id); });
  add(Op::ssm_scan, [=](const Tensor& x) { ssm_scan(one, number, factor, one, one, x, id); });
  add(Op::ssm_scan, [=](const Tensor& x) { ssm_scan(one, number, factor, one, one, of_heads, x); });
  add(Op::gated_delta_scan,
      [=](const Tensor& x) { gated_delta_scan(x, one, one, number, number, of_heads, id); });
  add(Op::gated_delta_scan,
      [=](const Tensor& x) { gated_delta_scan(one, x, one, number, number, of_heads, id); });
  add(Op::gated_delta_scan,
      [=](const Tensor& x) { gated_delta_scan(one, one, x, number, number, of_heads, id); });
  add(Op::gated_delta_scan,
      [=](const Tensor& x) { gated_delta_scan(one, one, one, x, number, of_heads, id); });
  add(Op::gated_delta_scan,
      [=](const Tensor& x) { gated_delta_scan(one, one, one, number, x, of_heads, id); });
  add(Op::gated_delta_scan,
      [=](const Tensor& x) { gated_delta_scan(one, one, one, number, number, x, id); });
  add(Op::gated_delta_scan,
      [=](const Tensor& x) { gated_delta_scan(one, one, one, number, number, of_heads, x); });
  return all;
}

TEST(OpErrors, UndefinedTensorsAreErrorsEverywhere) {
  const Tensor u;
  std::vector<bool> seen(static_cast<size_t>(kOpCount));
  for (const auto& [op, call] : calls()) {
    seen[static_cast<size_t>(op)] = true;
    EXPECT_THAT(error_of([&] { call(u); }), HasSubstr("undefined")) << name(op);
  }
  for (int i = 0; i < kOpCount; ++i) {
    EXPECT_TRUE(seen[static_cast<size_t>(i)])
        << kOps[static_cast<size_t>(i)].name << " has no call";
  }
  const std::vector<Call> methods = {
      [](const Tensor& x) { x.dtype(); },
      [](const Tensor& x) { x.layout(); },
      [](const Tensor& x) { x.shape(); },
      [](const Tensor& x) { x.rank(); },
      [](const Tensor& x) { x.size(0); },
      [](const Tensor& x) { x.elems(); },
      [](const Tensor& x) { x.device(); },
      [](const Tensor& x) { x.narrow(0, 0, 0); },
      [](const Tensor& x) { x.slice(0, 0, 0); },
      [](const Tensor& x) { (void)x.transpose(0, 0); },
      [](const Tensor& x) { x.t(); },
      [](const Tensor& x) { x.permute({}); },
      [](const Tensor& x) { (void)x.broadcast_to({2}); },
      [](const Tensor& x) { (void)x.squeeze(0); },
      [](const Tensor& x) { (void)x.unsqueeze(0); },
      [](const Tensor& x) { x.split({}, 0); },
      [](const Tensor& x) { x.chunk(1, 0); },
      [](const Tensor& x) { (void)x.reshape({1}); },
      [](const Tensor& x) { x.flatten(); },
      [](const Tensor& x) { (void)x.contiguous(); },
      [](const Tensor& x) { (void)x.clone(); },
      [](const Tensor& x) { (void)x.to(DType::f32); },
      [](const Tensor& x) { (void)x.to(DType::f16); },
      [](const Tensor& x) { x.to_vector<float>(); },
      [](const Tensor& x) { x.item<float>(); },
      [](const Tensor& x) { x.view(); },
      [](const Tensor& x) { x.mutable_view(); },
  };
  for (size_t i = 0; i < methods.size(); ++i) {
    EXPECT_THAT(error_of([&] { methods[i](u); }), HasSubstr("undefined")) << i;
  }
  EXPECT_EQ(error_of([] { Weight().n(); }), "weight: undefined");
  EXPECT_EQ(error_of([] { linear(make({1}), Weight()); }), "linear: undefined weight");
  EXPECT_EQ(error_of([] { Weight(std::span<const Tensor>{}); }), "weight: no matrices");
}

TEST(OpErrors, DtypesOutsideTheRow) {
  // Ops with one operand accept the dtypes of their row.
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& row = kOps[static_cast<size_t>(i)];
    if (row.kind == OpKind::other) continue;
    for (const auto& [op, call] : calls()) {
      if (op != static_cast<Op>(i) || row.kind == OpKind::binary || row.kind == OpKind::compare) {
        continue;
      }
      for (int d = 0; d < kDTypeCount; ++d) {
        const auto dtype = static_cast<DType>(d);
        if (is_block(dtype)) continue;
        const std::string error = error_of([&] { call(make({2, 2}, dtype)); });
        if (row.dtypes.contains(dtype)) {
          EXPECT_EQ(error, "no error") << row.name << " " << name(dtype);
        } else {
          EXPECT_THAT(error, StartsWith(std::string(row.name) + ": unsupported dtype: " +
                                        std::string(name(dtype)) + "[2,2]@cpu: takes "));
        }
      }
    }
  }
  EXPECT_EQ(error_of([] { silu(make({2}, DType::i32)); }),
            "silu: unsupported dtype: i32[2]@cpu: takes bf16 f16 f32 f64 f8e4m3");
  EXPECT_THAT(error_of([] { neg(quantize(make({32}), DType::q4_0)); }),
              HasSubstr("neg: unsupported dtype: q4_0[32]@cpu: takes u8 u32 i16"));
  EXPECT_THAT(error_of([] { cast(make({2}), DType::q4_0); }),
              StartsWith("cast: to a block dtype: f32[2]@cpu: use quantize"));
}

TEST(Errors, PagesOfBlocks) {
  const auto pages = [](Shape shape, DType dtype = DType::u8) {
    return Tensor::zeros(shape, dtype);
  };
  const Tensor keys = pages({2, 1, 1, 34, 256}), values = pages({2, 1, 256, 1, 34});
  const Tensor q = pages({1, 2, 1, 32}, DType::f32), rows = pages({1, 1, 32}, DType::f32);
  const Tensor table = Tensor::zeros({1, 1}, DType::u32), one = Tensor::ones({1}, DType::u32);
  const auto attend = [&](const Tensor& k, const Tensor& v, const Tensor& of) {
    return error_of([&] { attention_of_pages(of, k, v, table, one); });
  };
  EXPECT_EQ(attend(keys, values, q), "no error");
  const auto misfit = HasSubstr("attention_of_pages: operands don't fit");
  EXPECT_THAT(attend(keys, pages({2, 1, 256, 1, 18}), q), misfit);  // another type
  EXPECT_THAT(attend(values, values, q), misfit);                   // the layout of values
  EXPECT_THAT(attend(keys, pages({3, 1, 256, 1, 34}), q), misfit);
  EXPECT_THAT(attend(keys, values, pages({1, 2, 1, 64}, DType::f32)), misfit);
  EXPECT_THAT(attend(keys, pages({2, 1, 256, 32}, DType::f16), q), HasSubstr("u8"));
  const auto layout = HasSubstr("pages of blocks with another layout");
  const Tensor moved = pages({2 * 34 * 256 + 1}).narrow(0, 1, 2 * 34 * 256);
  EXPECT_THAT(attend(moved.reshape({2, 1, 1, 34, 256}), values, q), layout);
  const Tensor wide = pages({2, 1, 256, 1, 68}).narrow(4, 0, 34);
  EXPECT_THAT(attend(keys, wide, q), layout);
  const auto store = [&](const Tensor& to, const Tensor& from) {
    return error_of([&] { store_in_pages(to, from, table, Tensor::zeros({1}, DType::u32)); });
  };
  EXPECT_EQ(store(keys, rows), "no error");
  EXPECT_THAT(store(keys, pages({1, 1, 64}, DType::f32)), HasSubstr("operands don't fit"));
  EXPECT_THAT(store(wide, rows), layout);
  EXPECT_THAT(store(pages({2, 1, 1, 20, 256}), rows), HasSubstr("u8"));  // no block has 20 bytes
  EXPECT_THAT(attend(keys, values, q.requires_grad()),
              HasSubstr("its keys and values are quantised"));
}

TEST(OpErrors, OperandsThatDontMatch) {
  const Tensor a = make({2, 3}), h = make({2, 3}, DType::f16);
  EXPECT_EQ(error_of([&] { add(a, h); }),
            "add: dtypes differ: lhs f32[2,3]@cpu, rhs f16[2,3]@cpu: dtypes aren't promoted: "
            "convert one, e.g. rhs to f32");
  EXPECT_EQ(
      error_of([&] { mul(a, make({2})); }),
      "mul: shapes don't broadcast: lhs [2,3], rhs [2]: each size must be equal or 1, counted "
      "from the last dimension");
  EXPECT_EQ(error_of([&] { lt(a, h); }).substr(0, 58),
            "lt: dtypes differ: lhs f32[2,3]@cpu, rhs f16[2,3]@cpu: dty");
  EXPECT_THAT(error_of([&] { ge(a, make({2})); }), HasSubstr("ge: shapes don't broadcast"));
  const Tensor mask = make({2, 3}, DType::u8);
  EXPECT_EQ(error_of([&] {
              where(make({2, 3}, DType::i32), a, a);
            }),
            "where: condition of this dtype: i32[2,3]@cpu: use bool, u8, u32 or i64");
  EXPECT_THAT(error_of([&] { where(mask, a, h); }), HasSubstr("where: dtypes differ"));
  EXPECT_THAT(error_of([&] { where(mask, a, make({4})); }), HasSubstr("shapes don't broadcast"));
  EXPECT_THAT(error_of([&] { where(make({2}, DType::u8), a, a); }),
              HasSubstr("where: shapes don't broadcast"));
  EXPECT_EQ(error_of([&] { masked_fill(a, a, 1); }),
            "masked_fill: condition of this dtype: f32[2,3]@cpu: use bool, u8, u32 or i64");
  EXPECT_EQ(error_of([&] {
              masked_fill(a, make({4, 2, 3}, DType::u8), 1);
            }),
            "masked_fill: mask larger than the tensor: mask u8[4,2,3]@cpu, tensor f32[2,3]@cpu: "
            "the mask broadcasts to the tensor");
  EXPECT_EQ(error_of([&] { clamp(make({2}, DType::i32), NAN, 1); }),
            "clamp: a bound is NaN: i32[2]@cpu: bounds of integers must not be NaN");
  EXPECT_THAT(error_of([&] { rem(make({2}, DType::i32), make({2}, DType::i32)); }),
              HasSubstr("rem: integer division by zero"));
  EXPECT_EQ(error_of([&] { matmul(a, a); }),
            "matmul: inner dimensions differ: lhs f32[2,3]@cpu, rhs f32[2,3]@cpu: need lhs[-1] == "
            "rhs[-2] (3 != 2)");
  EXPECT_EQ(error_of([&] { matmul(make({3}), a); }),
            "matmul: rank below 2: lhs f32[3]@cpu, rhs f32[2,3]@cpu: unsqueeze a vector first");
  EXPECT_THAT(error_of([&] {
                matmul(make({2, 1, 3}), make({3, 3, 1}));
              }),
              HasSubstr("matmul: shapes don't broadcast: lhs [2], rhs [3]"));
  EXPECT_THAT(error_of([&] { matmul(a, h.t()); }), HasSubstr("matmul: dtypes differ"));
  EXPECT_EQ(error_of([&] { sum(a, 2); }),
            "sum: dimension out of range: dim 2 of rank 2: need -2 <= dim < 2");
  const auto twice = [&](auto&& reduction) {
    return error_of([&] { reduction(a, std::vector<int>{1, 0, -1}, true); });
  };
  const std::string rest =
      ": dimension named twice: dims (1,0,-1) of rank 2: name each dimension once";
#define WICK_REDUCE(name, ...) \
  EXPECT_EQ(twice([](auto&&... of) { return name(of...); }), #name + rest);
#include "wick/op/ops.def"
  EXPECT_EQ(twice([](auto&&... of) { return var(of...); }), "var" + rest);
  EXPECT_EQ(twice([](auto&&... of) { return logsumexp(of...); }), "logsumexp" + rest);
  EXPECT_EQ(twice([](auto&&... of) { return any(of...); }), "any" + rest);
  EXPECT_EQ(twice([](auto&&... of) { return all(of...); }), "all" + rest);
  EXPECT_EQ(error_of([&] {
              max(make({2, 0}), 1);
            }),
            "max: nothing to reduce: f32[2,0]@cpu: the reduced range must not be empty");
  EXPECT_THAT(error_of([&] { argmin(make({0, 2}), 0); }), HasSubstr("argmin: nothing to reduce"));
  EXPECT_THAT(error_of([&] { argmax(make({}), 0); }), HasSubstr("argmax: dimension out of range"));
  EXPECT_THAT(error_of([&] { softmax(a, -3); }), HasSubstr("softmax: dimension out of range"));
  EXPECT_EQ(error_of([&] { rms_norm(a, make({2}), 1e-5f); }),
            "rms_norm: operands don't fit: x f32[2,3]@cpu, weight f32[2]@cpu: need x [.., d] and "
            "weight [d] in x's dtype or f32");
  EXPECT_THAT(error_of([&] { rms_norm(a, make({3}, DType::f16), 1e-5f); }),
              HasSubstr("rms_norm: operands don't fit"));
  EXPECT_THAT(error_of([&] {
                rope(make({2, 4}), make({2, 3}), make({2, 3}));
              }),
              HasSubstr("rope: operands don't fit"));
  EXPECT_THAT(error_of([&] {
                rope(make({4}), make({2, 2}), make({2, 2}));
              }),
              HasSubstr("need x [.., t, d] and f32 tables [t, r/2], or [b, t, r/2]"));
  const Tensor q = make({1, 4, 2, 8}), k = make({1, 3, 5, 8});
  EXPECT_EQ(error_of([&] { attention(q, k, k, {}); }),
            "attention: operands don't fit: q f32[1,4,2,8]@cpu, k f32[1,3,5,8]@cpu, v "
            "f32[1,3,5,8]@cpu: need q [b,h,m,d], k [b,g,n,d], v [b,g,n,e] with h a multiple of g");
  EXPECT_THAT(error_of([&] {
                attention(q, make({1, 0, 5, 8}), make({1, 0, 5, 8}), {});
              }),
              HasSubstr("attention: operands don't fit"));
  EXPECT_THAT(error_of([&] { attention(q, q, q, {.scale = NAN}); }),
              HasSubstr("attention: parameters out of range"));
  EXPECT_THAT(error_of([&] { attention(q, q, q, {.window = -1}); }), HasSubstr("window -1"));
  EXPECT_EQ(error_of([&] { attention(q, q, q, {}, {}, {}, make({3})); }),
            "attention: sinks don't fit: q f32[1,4,2,8]@cpu, sinks f32[3]@cpu: need f32, one per "
            "head");
  for (const Tensor& wrong : {make({4}, DType::f16), make({4, 1}), make({})}) {
    EXPECT_THAT(error_of([&] { attention(q, q, q, {}, {}, {}, wrong); }),
                HasSubstr("sinks don't fit"));
    EXPECT_THAT(error_of([&] { attention(q, q, q, {}, {}, wrong); }),
                HasSubstr("slopes don't fit"));
    const Tensor table = Tensor::zeros({1, 1}, DType::u32), length = Tensor::zeros({1}, DType::u32);
    EXPECT_THAT(error_of([&] { attention_of_pages(q, q, q, table, length, {}, {}, wrong); }),
                HasSubstr("sinks don't fit"));
    const int64_t starts[] = {0, 2};
    EXPECT_THAT(error_of([&] {
                  const Tensor rows = make({2, 4, 8});
                  attention_of_lengths(rows, rows, rows, starts, starts, {}, {}, wrong);
                }),
                HasSubstr("sinks don't fit"));
  }
  const Weight w(make({4, 3}));
  EXPECT_EQ(
      error_of([&] {
        linear(make({2, 4}), w);
      }),
      "linear: operands don't fit: x f32[2,4]@cpu, weight f32[4,3]@cpu: need x [.., k] of f32, "
      "f16 or bf16 for a weight [n, k] on its device");
  EXPECT_THAT(error_of([&] { linear(make({2, 3}, DType::f64), w); }), HasSubstr("x f64[2,3]@cpu"));
  EXPECT_THAT(error_of([&] { linear(make({}), w); }), HasSubstr("linear: operands don't fit"));
  EXPECT_THAT(error_of([] {
                Weight(make({4, 3}, DType::f64));
              }),
              HasSubstr("weight: unsupported dtype: f64[4,3]@cpu: takes bf16 f16 f32 q4_0"));
  EXPECT_THAT(error_of([] {
                Weight(std::vector<Tensor>{make({4, 3}), make({4, 2})});
              }),
              HasSubstr("weight: not matrices with equal k"));
  EXPECT_EQ(error_of([&] { quantize(a, DType::q4_0); }),
            "quantize: rows aren't whole blocks: f32[2,3]@cpu to q4_0: need a multiple of 32");
  EXPECT_THAT(error_of([&] { quantize(make({}), DType::q4_0); }), HasSubstr("whole blocks"));
  EXPECT_THAT(error_of([&] { quantize(make({32}, DType::f16), DType::q4_0); }),
              HasSubstr("quantize: unsupported conversion: f16[32]@cpu to q4_0"));
  EXPECT_THAT(error_of([&] { quantize(make({256}), DType::q5_k); }),
              HasSubstr("unsupported conversion"));
  EXPECT_EQ(error_of([&] { quantize(make({288}), DType::q4_k); }),
            "quantize: rows aren't whole blocks: f32[288]@cpu to q4_k: need a multiple of 256");
  EXPECT_THAT(error_of([&] { dequantize(a); }), HasSubstr("dequantize: unsupported conversion"));
}

TEST(OpErrors, SizesThatOverflow) {
  const int64_t big = int64_t{1} << 40;
  const Tensor column = make({1, 1}, DType::u8).broadcast_to({big, 1});
  EXPECT_THAT(error_of([&] { add(column, column.t()); }), HasSubstr("shape: too many elements"));
  EXPECT_THAT(error_of([&] { matmul(column, column.t()); }), HasSubstr("shape: too many elements"));
  EXPECT_THAT(error_of([&] {
                (void)column.unsqueeze(0).broadcast_to({big, big, 1});
              }),
              HasSubstr("shape: too many elements"));
  const Tensor most = make({1}, DType::u8).broadcast_to({int64_t{1} << 62});
  EXPECT_THAT(error_of([&] { (void)most.clone(); }), HasSubstr("out of memory"));
  EXPECT_THAT(error_of([&] { most.to_vector<uint8_t>(); }), HasSubstr("out of memory"));
  EXPECT_THAT(error_of([&] { cast(most, DType::f64); }), HasSubstr("too many bytes"));
  EXPECT_THAT(error_of([] { Tensor::arange(0, -1); }), HasSubstr("negative size"));
  EXPECT_THAT(error_of([] { Tensor::zeros({INT64_MAX, 2}, DType::u8); }), HasSubstr("2^62"));
  EXPECT_THAT(error_of([] { argmax(make({1}, DType::u8).broadcast_to({int64_t{1} << 33}), 0); }),
              HasSubstr("argmax: range too long for u32 indices: u8[8589934592]@cpu"));
}

TEST(OpErrors, HostCopies) {
  EXPECT_EQ(error_of([] { make({2}).to_vector<int32_t>(); }),
            "to_vector: wrong dtype: f32[2]@cpu: asked for i32; convert to i32 first");
  EXPECT_EQ(error_of([] { logsumexp(make({0})); }),
            "logsumexp: nothing to reduce: f32[0]@cpu: the reduced range must not be empty");
  EXPECT_EQ(logsumexp(make({0, 0}), std::array{1}).shape(), Shape({0}));
  EXPECT_EQ(error_of([] {
              stack(std::array{make({}), make({})}, 3);
            }),
            "stack: dimension out of range: dim 3 of rank 1: need -1 <= dim < 1");
  EXPECT_EQ(error_of([] { softmax(make({}), 0); }),
            "softmax: dimension out of range: dim 0 of rank 0: rank 0 has no dimensions");
  EXPECT_THAT(error_of([] { sqr(quantize(make({256}), DType::q4_k)); }),
              HasSubstr("f8e4m3: dequantize it first"));
  EXPECT_EQ(error_of([] { make({2}).item<float>(); }),
            "item: not one element: f32[2]@cpu: need exactly one");
  EXPECT_EQ(error_of([] {
              Tensor::from(std::vector<float>(3), {2, 2});
            }),
            "from: element counts differ: 3 values, shape [2,2]: 3 != 4");
  EXPECT_EQ(error_of([] { make({4}).flatten(1, 0); }),
            "flatten: dimension out of range: dim 1 of rank 1: need -1 <= dim < 1");
  EXPECT_EQ(error_of([] {
              make({4, 2}).flatten(1, 0);
            }),
            "flatten: dimensions out of order: f32[4,2]@cpu, 1 to 0");
  EXPECT_THAT(error_of([] { Tensor::zeros({1}, DType::f32, Device::parse("cuda:99")); }),
              testing::HasSubstr("device: no such device here: cuda:99: "));
}

}  // namespace
}  // namespace wick
