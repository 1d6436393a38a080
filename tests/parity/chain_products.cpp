// The multiplying steps of chains. Ops of the class bound get small integers, so that every order
// of summation gives the same bits. Ops of the classes blocked and tree get arbitrary numbers.

#include <fmt/format.h>

#include "tests/parity/chain.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

// Limit of the multiply-adds in one step.
constexpr int64_t kMostProducts = 40 * kMostElems;

/// Returns integers of magnitude at most 4; NaN becomes 0.
Tensor small_whole(const Tensor& x) {
  const Tensor whole = x.to(DType::i32);
  const DType dtype = x.dtype();
  return clamp(whole, dtype == DType::u8 || dtype == DType::u32 ? 0 : -4, 4).to(dtype);
}

/// Returns kernels of small integers with x's dtype and device.
Tensor taps(const Shape& shape, const Tensor& x) {
  const Tensor waves = sin(Tensor::arange(0, shape.elems(), 1, DType::f32, x.device()));
  return small_whole(affine(waves, 4, 0)).to(x.dtype()).reshape(shape);
}

Made of_matrices(const Choice& c) {
  const int a = c.value(dtypes::kReal, 2);
  if (a < 0) return {};
  const Tensor& x = c.at(a);
  if (c.one_in(2)) {
    if (x.elems() * x.size(-2) > kMostProducts) return {};
    return made("matmul", fmt::format("matmul(small %{}, itself transposed)", a), [=](auto v) {
      const Tensor whole = small_whole(v[z(a)]);
      return matmul(whole, whole.t());
    });
  }
  const std::string letters = std::string("abcdefgh").substr(0, static_cast<size_t>(x.rank()));
  const std::string equation =
      letters + "," + letters + "->" + letters.substr(0, 1) + letters.back();
  if (x.elems() * x.size(-1) > kMostProducts || x.size(0) * x.size(-1) > kMostElems) return {};
  return made("einsum", fmt::format("einsum({}, small %{} twice)", equation, a), [=](auto v) {
    const Tensor both[] = {small_whole(v[z(a)]), small_whole(v[z(a)])};
    return einsum(equation, both);
  });
}

/// linear with float weights: multiplies the rows of x by each other.
Made by_float_weights(const Choice& c) {
  const int a = c.value(dtypes::kActivations, 2);
  if (a < 0) return {};
  const Tensor& x = c.at(a);
  const int64_t k = x.size(-1);
  if (k == 0 || x.elems() == 0) return {};
  const int64_t n = std::min<int64_t>(x.elems() / k, 40);
  const DType type = c.of(std::vector<DType>{DType::f32, DType::f16, DType::bf16});
  const std::string text =
      fmt::format("linear(small %{}, its first {} rows as {})", a, n, name(type));
  return made("linear", text, [=](auto v) {
    const Tensor whole = small_whole(v[z(a)]);
    const Tensor rows = whole.reshape({whole.elems() / k, k}).narrow(0, 0, n);
    return linear(whole, Weight(rows.to(type)));
  });
}

/// linear with quantized weights and arbitrary numbers: products of blocks are exact.
Made by_blocks(const Choice& c) {
  const int a = c.value(dtypes::kActivations, 1);
  if (a < 0) return {};
  const DType type = c.of(std::vector<DType>{DType::q4_0, DType::q4_1, DType::q5_0, DType::q8_0,
                                             DType::q4_k, DType::q6_k});
  const int64_t k = info(type).block_elems * (c.one_in(2) ? 1 : 2);
  const int64_t rows = c.at(a).elems() / k;
  if (rows == 0) return {};
  const int64_t n = std::min<int64_t>(rows, 40);
  const std::string text =
      fmt::format("linear(%{} as [{},{}], its first {} rows as {})", a, rows, k, n, name(type));
  return made("linear", text, [=](auto v) {
    const Tensor x = v[z(a)].flatten().narrow(0, 0, rows * k).reshape({rows, k});
    const Tensor some = x.narrow(0, 0, n).to(DType::f32);
    // Blocks can't represent infinities and NaN; x keeps them.
    const Tensor none = Tensor::zeros({}, DType::f32, x.device());
    const Tensor finite = where(logical_or(isnan(some), isinf(some)), none, some);
    const Tensor blocks = quantize(clamp(finite, -1e4, 1e4).to(Device::cpu()), type);
    return linear(x, Weight(std::span(&blocks, 1), x.device(), false));
  });
}

/// Attention of at most eight queries, which has the same order everywhere: the last rows of x
/// attend to all rows.
Made attention_step(const Choice& c) {
  const int a = c.value(dtypes::kActivations, 2);
  if (a < 0) return {};
  const Tensor& x = c.at(a);
  const int64_t t = x.size(-2), d = x.size(-1);
  if (x.elems() == 0) return {};
  const int64_t heads = x.elems() / (t * d), queries = std::min<int64_t>(t, c.random.below(8) + 1);
  const bool shared = heads % 2 == 0 && c.one_in(2);
  AttentionOptions params;
  params.scale = c.one_in(2) ? 0.25f : 1;
  params.causal = c.one_in(2);
  params.window = c.one_in(3) ? c.random.below(t) + 1 : 0;
  params.soft_cap = c.one_in(4) ? 20.0f : 0;
  const bool sloped = c.one_in(4), sunk = c.one_in(4);
  const std::string text = fmt::format(
      "attention(last {} rows of %{}, it, cos of it{}, scale {}, causal {}, window {}, cap {}{}{})",
      queries, a, shared ? ", half its heads" : "", *params.scale, params.causal, params.window,
      params.soft_cap, sloped ? ", slopes" : "", sunk ? ", sinks" : "");
  return made("attention", text, [=](auto v) {
    const Tensor all = v[z(a)].reshape({1, heads, t, d});
    const Tensor keys = shared ? all.narrow(1, 0, heads / 2) : all;
    Tensor slopes, sinks;
    const auto by_head = [&](double step, double first) {
      return affine(Tensor::arange(0, heads, 1, DType::f32, all.device()), step, first);
    };
    if (sloped) slopes = by_head(0.125, 0.1);
    if (sunk) sinks = by_head(-0.75, 2.0);
    return attention(all.narrow(2, t - queries, queries), keys, cos(keys), params, {}, slopes,
                     sinks);
  });
}

/// Sliding windows over the last dim of [b, c, l].
Made windows_1d(const Choice& c) {
  const int a = c.value(dtypes::kFloats, 3);
  if (a < 0) return {};
  const Tensor& x = c.at(a);
  if (x.rank() != 3 || x.size(2) < 3 || x.size(1) == 0) return {};
  const int64_t channels = x.size(1);
  if (!c.one_in(3)) {
    if (x.elems() * 6 > kMostProducts || channels > 64) return {};
    const bool back = c.one_in(2);
    const std::string op = back ? "conv_transpose1d" : "conv1d";
    return made(op, fmt::format("{}(small %{}, 3 taps)", op, a), [=](auto v) {
      const Tensor& t = v[z(a)];
      return back ? conv_transpose1d(small_whole(t), taps({channels, 2, 3}, t))
                  : conv1d(small_whole(t), taps({2, channels, 3}, t));
    });
  }
  const bool largest = c.one_in(2);
  const std::string op = largest ? "max_pool1d" : "avg_pool1d";
  return made(op, fmt::format("{}(%{}, 3 by 2)", op, a), [=](auto v) {
    const PoolParams1d p{3, 2, 1, true};
    return largest ? max_pool1d(v[z(a)], p) : avg_pool1d(v[z(a)], p);
  });
}

/// Images in the last two dims, with their channels in the dim before.
Made windows_2d(const Choice& c) {
  const int a = c.value(dtypes::kFloats, 2);
  if (a < 0) return {};
  const Tensor& x = c.at(a);
  if (x.elems() == 0) return {};
  const int64_t h = x.size(-2), w = x.size(-1), channels = x.rank() > 2 ? x.size(-3) : 1;
  const Shape shape{x.elems() / (channels * h * w), channels, h, w};
  const int64_t kind = c.random.below(6), stride = c.random.below(2) + 1;
  if (kind < 3) {
    if (x.elems() * 2 * 6 > kMostProducts || channels > 64) return {};
    const bool back = kind == 2;
    if (back && w == 1) return {};  // the output would be empty
    const std::string op = back ? "conv_transpose2d" : "conv2d";
    const int64_t groups = channels % 2 == 0 && c.one_in(2) ? 2 : 1;
    ConvParams p;
    p.stride[0] = stride, p.padding[0] = p.padding[1] = 1, p.groups = groups;
    const std::string text = fmt::format("{}(small %{} as {}, 3x2 taps, stride {}, groups {})", op,
                                         a, shape.str(), stride, groups);
    return made(op, text, [=](auto v) {
      const Tensor image = small_whole(v[z(a)]).reshape(shape);
      return back ? conv_transpose2d(image, taps({channels, 2 / groups, 3, 2}, image), {}, p)
                  : conv2d(image, taps({2, channels / groups, 3, 2}, image), {}, p);
    });
  }
  if (kind < 5) {
    const bool largest = kind == 3;
    const std::string op = largest ? "max_pool2d" : "avg_pool2d";
    PoolParams p;
    p.kernel[0] = 3, p.kernel[1] = 2, p.stride[0] = stride, p.padding[0] = p.padding[1] = 1;
    const std::string text = fmt::format("{}(%{} as {}, 3x2 by {}x2)", op, a, shape.str(), stride);
    return made(op, text, [=](auto v) {
      const Tensor image = v[z(a)].reshape(shape);
      return largest ? max_pool2d(image, p) : avg_pool2d(image, p);
    });
  }
  const bool nearest = c.one_in(2);
  const std::string op = nearest ? "upsample_nearest2d" : "upsample_bilinear2d";
  UpsampleParams p;
  p.size = {c.random.below(2 * h) + 1, c.random.below(2 * w) + 1};
  const std::string text =
      fmt::format("{}(%{} as {}, {}x{})", op, a, shape.str(), p.size[0], p.size[1]);
  return made(op, text, [=](auto v) {
    const Tensor image = v[z(a)].reshape(shape);
    return nearest ? upsample_nearest2d(image, p) : upsample_bilinear2d(image, p);
  });
}

}  // namespace

Made random_product(const Choice& c) {
  switch (c.random.below(7)) {
    case 0:
      return of_matrices(c);
    case 1:
      return by_float_weights(c);
    case 2:
      return by_blocks(c);
    case 3:
    case 4:
      return attention_step(c);
    case 5:
      return windows_1d(c);
    default:
      return windows_2d(c);
  }
}

}  // namespace wick::parity
