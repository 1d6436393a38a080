// Gradients of matrix products, rotary embeddings and attention. Ops without f64 are compared with
// equivalent ops in f64.

#include <cmath>

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"
#include "wick/tensor/fused.h"

namespace wick {
namespace {

using test::error_of;
using test::GradientCheck;
using test::Inputs;
using test::numbers;

WICK_GRADIENT_CHECK(matmul) {
  const Tensor a = numbers({2, 1, 3, 4}, 5), b = numbers({3, 4, 2}, 6);
  check.twice("batches", [](Inputs x) { return matmul(x[0], x[1]); }, {a, b});
  check.twice("by itself", [](Inputs x) { return matmul(x[0], x[0].t()); }, {a});
}

WICK_GRADIENT_CHECK(einsum) {
  const Tensor a = numbers({2, 3, 4}, 4), b = numbers({4, 3}, 5), c = numbers({3}, 6);
  for (const char* equation : {"bij,jk,i->b", "bij,jk,i->kib", "bij,jk,k->i"}) {
    check.twice(equation, [=](Inputs x) { return einsum(equation, x); }, {a, b, c});
  }
  check.twice("one operand", [](Inputs x) { return einsum("bij->ib", x); }, {a});
}

WICK_GRADIENT_CHECK(linear) {
  // The gradient passes through quantized weights to the activations.
  for (const DType dtype : {DType::q4_0, DType::q8_0}) {
    const Tensor matrix = quantize(numbers({5, 64}, 16).to(DType::f32), dtype);
    const Weight weight(matrix);
    const Tensor values = dequantize(matrix).to(DType::f64);
    check.against(
        "quantised", [&](Inputs i) { return linear(i[0], weight); },
        [&](Inputs i) { return matmul(i[0], values.t()); }, {numbers({2, 3, 64}, 17)}, 2e-5,
        GradientCheck::Orders::first);
  }
  const Tensor x = numbers({2, 3, 8}, 17), w = numbers({5, 8}, 18), more = numbers({2, 8}, 19);
  check.against(
      "float weights", [](Inputs i) { return linear(i[0], Weight(i[1])); },
      [](Inputs i) { return matmul(i[0], i[1].t()); }, {x, w});
  check.against(
      "stacked weights",
      [](Inputs i) {
        const Tensor both[] = {i[1], i[2]};
        return linear(i[0], Weight(both));
      },
      [](Inputs i) {
        const Tensor both[] = {i[1], i[2]};
        return matmul(i[0], cat(both, 0).t());
      },
      {x, w, more});
  const Weight fixed(w.to(DType::f32));
  const Tensor at = w.to(DType::f32).to(DType::f64);
  check.against(
      "norm and residual",
      [&](Inputs i) { return linear(i[0], fixed, {.norm = i[1], .eps = 1e-3f, .residual = i[2]}); },
      [&](Inputs i) { return matmul(rms_norm(i[0], i[1], 1e-3f), at.t()) + i[2]; },
      {x, numbers({8}, 20), numbers({2, 3, 5}, 21)}, 5e-5);
  check.against(
      "silu_mul", [&](Inputs i) { return linear(i[0], fixed, {.silu_mul = true}); },
      [&](Inputs i) {
        return matmul(silu_mul(i[0].narrow(-1, 0, 8), i[0].narrow(-1, 8, 8)), at.t());
      },
      {numbers({3, 16}, 22)});
  const Tensor chosen = Tensor::from(std::vector<uint32_t>{1, 0, 1, 1}, {2, 2});
  check.against(
      "experts",
      [&](Inputs i) {
        const Weight experts[] = {Weight(i[1]), Weight(i[2])};
        return grouped_linear(i[0], experts, chosen);
      },
      [&](Inputs i) {
        const Tensor first = matmul(i[0], i[1].t()), second = matmul(i[0], i[2].t());
        const Tensor rows[] = {second.narrow(0, 0, 1), first.narrow(0, 0, 1),
                               second.narrow(0, 1, 1), second.narrow(0, 1, 1)};
        return cat(rows, 0).reshape({2, 2, 5});
      },
      {numbers({2, 8}, 23), w, numbers({5, 8}, 24)});
}

TEST(GradientOf, Weights) {
  const Tensor w = numbers({5, 8}, 18).to(DType::bf16).requires_grad(),
               x = numbers({3, 8}, 17).to(DType::f32);
  const Tensor given = gradients(sum(linear(x, Weight(w))), std::span(&w, 1))[0];
  EXPECT_EQ(given.dtype(), DType::bf16);
  EXPECT_FALSE(linear(x, Weight(w.detach())).needs_grad());
  const NoGrad none;
  EXPECT_FALSE(linear(x, Weight(w)).needs_grad());
}

/// rope of the first r elements, composed of other ops.
Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
  const int64_t pairs = cos.size(-1), rest = x.size(-1) - 2 * pairs;
  const Tensor a = interleaved ? x.slice(-1, 0, 2 * pairs, 2) : x.narrow(-1, 0, pairs);
  const Tensor b = interleaved ? x.slice(-1, 1, 2 * pairs, 2) : x.narrow(-1, pairs, pairs);
  const Tensor both[] = {a * cos - b * sin, b * cos + a * sin};
  const Tensor turned = interleaved ? stack(both, -1).flatten(-2, -1) : cat(both, -1);
  const Tensor all[] = {turned, x.narrow(-1, 2 * pairs, rest)};
  return cat(all, -1);
}
void check_rope(GradientCheck& check, bool interleaved) {
  const auto rotate = interleaved ? &rope_interleaved : &rope;
  const Tensor x = numbers({2, 3, 6}, 7);
  const Tensor cos = numbers({3, 2}, 9).to(DType::f32), sin = numbers({3, 2}, 10).to(DType::f32);
  check.twice("of heads", [&](Inputs i) { return rotate(i[0], cos, sin); }, {x});
  check.twice("of tokens", [&](Inputs i) { return rope_of_tokens(i[0], cos, sin, interleaved); },
              {numbers({2, 3, 2, 6}, 8)});
  check.against(
      "by tables", [&](Inputs i) { return rotate(i[0], i[1], i[2]); },
      [&](Inputs i) { return rotated(i[0], i[1], i[2], interleaved); },
      {x, numbers({3, 2}, 9), numbers({3, 2}, 10)});
  check.against(
      "by tables a batch", [&](Inputs i) { return rotate(i[0], i[1], i[2]); },
      [&](Inputs i) { return rotated(i[0], i[1].unsqueeze(1), i[2].unsqueeze(1), interleaved); },
      {numbers({2, 4, 3, 6}, 7), numbers({2, 3, 2}, 9), numbers({2, 3, 2}, 10)});
}
WICK_GRADIENT_CHECK(rope) { check_rope(check, false); }
WICK_GRADIENT_CHECK(rope_interleaved) { check_rope(check, true); }

/// Attention, composed of other ops.
Tensor attention_in_ops(const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionOptions& p, const Tensor& mask = {},
                        const Tensor& slopes = {}, const Tensor& sinks = {}) {
  const int64_t b = q.size(0), h = q.size(1), m = q.size(2), g = k.size(1), n = k.size(2);
  const auto for_all_heads = [&](const Tensor& t) {
    const int64_t wide = t.size(3);
    return t.unsqueeze(2).broadcast_to({b, g, h / g, n, wide}).reshape({b, h, n, wide});
  };
  const auto scale = static_cast<double>(*p.scale), cap = static_cast<double>(p.soft_cap);
  Tensor s = affine(matmul(q, for_all_heads(k).t()), scale, 0.0);
  if (cap > 0) s = affine(tanh(affine(s, 1 / cap, 0.0)), cap, 0.0);
  std::vector<double> hidden, distance;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t off = j - i - (n - m);
      const bool seen = (!p.causal || off <= 0) && (p.window == 0 || off > -p.window);
      hidden.push_back(seen ? 0 : -1e9);
      distance.push_back(static_cast<double>(off));
    }
  }
  s = s + Tensor::from(hidden, {m, n});
  if (mask.defined()) s = s + mask;
  if (slopes.defined()) s = s + slopes.reshape({h, 1, 1}) * Tensor::from(distance, {m, n});
  if (!sinks.defined()) return matmul(softmax(s, -1), for_all_heads(v));
  const Tensor with_sinks[] = {s, sinks.reshape({1, h, 1, 1}).broadcast_to({b, h, m, 1})};
  return matmul(softmax(cat(with_sinks, -1), -1).narrow(-1, 0, n), for_all_heads(v));
}

const AttentionOptions kAttentions[] = {
    {.scale = 0.4f, .causal = true, .window = 4, .soft_cap = 0.0f},
    {.scale = 0.4f, .causal = true, .window = 0, .soft_cap = 3.0f},
    {.scale = 0.6f, .causal = false, .window = 0, .soft_cap = 0.0f},
};

WICK_GRADIENT_CHECK(attention) {
  const Tensor q = numbers({2, 4, 3, 4}, 20), k = numbers({2, 2, 5, 4}, 21),
               v = numbers({2, 2, 5, 3}, 22);
  for (const AttentionOptions& p : kAttentions) {
    check.against(
        "heads in groups", [&](Inputs i) { return attention(i[0], i[1], i[2], p); },
        [&](Inputs i) { return attention_in_ops(i[0], i[1], i[2], p); }, {q, k, v});
    check.against(
        "mask and slopes", [&](Inputs i) { return attention(i[0], i[1], i[2], p, i[3], i[4]); },
        [&](Inputs i) { return attention_in_ops(i[0], i[1], i[2], p, i[3], i[4]); },
        {q, k, v, numbers({4, 1, 5}, 23), numbers({4}, 24, 0.1, 0.6)});
    check.against(
        "sinks", [&](Inputs i) { return attention(i[0], i[1], i[2], p, {}, {}, i[3]); },
        [&](Inputs i) { return attention_in_ops(i[0], i[1], i[2], p, {}, {}, i[3]); },
        {q, k, v, numbers({4}, 25)});
    check.against(
        "mask, slopes and sinks",
        [&](Inputs i) { return attention(i[0], i[1], i[2], p, i[3], i[4], i[5]); },
        [&](Inputs i) { return attention_in_ops(i[0], i[1], i[2], p, i[3], i[4], i[5]); },
        {q, k, v, numbers({4, 1, 5}, 23), numbers({4}, 24, 0.1, 0.6), numbers({4}, 25)});
  }
  const AttentionOptions open{.scale = 0.5f, .causal = false};
  const Tensor bits =
      Tensor::from(std::vector<uint8_t>{1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0}, {3, 5});
  const Tensor low = affine(bits.to(DType::f64), 1e9, -1e9);
  check.against(
      "hidden keys", [&](Inputs i) { return attention(i[0], i[1], i[2], open, bits); },
      [&](Inputs i) { return attention_in_ops(i[0], i[1], i[2], open, low); }, {q, k, v});
}

/// The gradients of kernels and those composed of ops, which are made if they are differentiated
/// again, agree, also with a sink of −inf.
TEST(GradientOf, AttentionWithSinksInKernelsAndInOps) {
  const auto f32 = [](const Shape& shape, uint64_t seed) {
    return numbers(shape, seed).to(DType::f32).requires_grad();
  };
  const Tensor sinks = Tensor::from(std::vector<float>{0.5f, -INFINITY, 7.0f, -3.0f}, {4});
  const Tensor inputs[] = {f32({2, 4, 3, 4}, 1), f32({2, 2, 5, 4}, 2), f32({2, 2, 5, 3}, 3),
                           sinks.requires_grad()};
  const Tensor y = attention(inputs[0], inputs[1], inputs[2], {}, {}, {}, inputs[3]);
  const auto kernels = gradients(sum(sqr(y)), inputs);
  const Tensor weight = Tensor::full(y.shape(), 1, DType::f32).requires_grad();
  const auto ops = gradients(sum(sqr(y) * weight), inputs);
  ASSERT_EQ(kernels.size(), ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(kernels[i].shape(), inputs[i].shape());
    const auto got = kernels[i].to_vector<float>(), want = ops[i].to_vector<float>();
    for (size_t at = 0; at < got.size(); ++at) EXPECT_NEAR(got[at], want[at], 1e-5) << i;
  }
  EXPECT_EQ(kernels[3].to_vector<float>()[1], 0);
}

TEST(GradientOf, AttentionThatSeesNothingIsZero) {
  const auto f32 = [](const Shape& shape, uint64_t seed) {
    return numbers(shape, seed).to(DType::f32).requires_grad();
  };
  const Tensor inputs[] = {f32({1, 1, 2, 4}, 1), f32({1, 1, 3, 4}, 2), f32({1, 1, 3, 2}, 3)};
  const Tensor none = Tensor::full({2, 3}, -INFINITY, DType::f32);
  const Tensor y = attention(inputs[0], inputs[1], inputs[2], {.causal = false}, none);
  for (const Tensor& g : gradients(sum(y), inputs)) {
    for (const float value : g.to_vector<float>()) EXPECT_EQ(value, 0);
  }
}

/// The gradients with a mask of bf16 have the bits of those with the same mask in f32, and the
/// mask's gradient is rounded once.
TEST(GradientOf, AttentionWithANarrowMask) {
  const auto gradients_with = [](const Tensor& mask, bool wants_mask) {
    std::vector<Tensor> inputs;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      inputs.push_back(numbers({1, 2, 3, 4}, seed).to(DType::f32).requires_grad());
    }
    if (wants_mask) inputs.push_back(mask.requires_grad());
    const Tensor y = attention(inputs[0], inputs[1], inputs[2], {}, wants_mask ? inputs[3] : mask);
    return gradients(sum(sqr(y)), inputs);
  };
  const Tensor narrow = numbers({3, 3}, 4).to(DType::bf16), wide = narrow.to(DType::f32);
  for (const bool wants_mask : {false, true}) {
    const auto got = gradients_with(narrow, wants_mask), want = gradients_with(wide, wants_mask);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (i == 3) EXPECT_EQ(got[i].dtype(), DType::bf16);
      EXPECT_EQ(got[i].to_vector<float>(), want[i].to(got[i].dtype()).to_vector<float>());
    }
  }
}

TEST(GradientOf, AttentionOfLengthsAndPages) {
  GradientCheck check(Op::attention);
  const AttentionOptions p{.scale = 0.5f, .causal = true};
  const int64_t queries[] = {0, 2, 5}, keys[] = {0, 3, 7};
  const Tensor slopes = numbers({2}, 6, 0.1, 0.5), sinks = numbers({2}, 5);
  const auto part = [](const Tensor& x, int64_t from, int64_t to) {
    return x.narrow(0, from, to - from).transpose(0, 1).unsqueeze(0);
  };
  check.against(
      "lengths",
      [&](Inputs i) {
        return attention_of_lengths(i[0], i[1], i[2], queries, keys, p, i[3], i[4]);
      },
      [&](Inputs i) {
        std::vector<Tensor> parts;
        for (size_t s = 0; s < 2; ++s) {
          parts.push_back(attention_in_ops(part(i[0], queries[s], queries[s + 1]),
                                           part(i[1], keys[s], keys[s + 1]),
                                           part(i[2], keys[s], keys[s + 1]), p, {}, i[3], i[4])
                              .squeeze(0)
                              .transpose(0, 1));
        }
        return cat(parts, 0);
      },
      {numbers({5, 2, 4}, 7), numbers({7, 1, 4}, 8), numbers({7, 1, 3}, 9), slopes, sinks});
  const Tensor tables = Tensor::from(std::vector<uint32_t>{2, 0, 1, 2}, {2, 2});
  const std::vector<uint32_t> counts = {3, 4};
  const Tensor lengths = Tensor::from(counts, {2});
  check.against(
      "pages",
      [&](Inputs i) {
        return attention_of_pages(i[0], i[1], i[2], tables, lengths, p, i[3], i[4]);
      },
      [&](Inputs i) {
        std::vector<Tensor> parts;
        for (int64_t b = 0; b < 2; ++b) {
          const auto all = [&](const Tensor& pages) {
            std::vector<Tensor> two;
            for (int64_t page : b == 0 ? std::vector{2, 0} : std::vector{1, 2}) {
              two.push_back(pages.narrow(0, page, 1));
            }
            return cat(two, 2).narrow(2, 0, counts[b]);
          };
          parts.push_back(
              attention_in_ops(i[0].narrow(0, b, 1), all(i[1]), all(i[2]), p, {}, i[3], i[4]));
        }
        return cat(parts, 0);
      },
      {numbers({2, 2, 2, 4}, 10), numbers({3, 1, 2, 4}, 11), numbers({3, 1, 2, 3}, 12), slopes,
       sinks});
}

TEST(GradientOf, CachesIsRefused) {
  const Tensor table = Tensor::zeros({4, 2}, DType::f32);
  const AttentionStep step{.cos = table,
                           .sin = table,
                           .positions = Tensor::arange(0, 1, 1, DType::u32),
                           .keys = Tensor::zeros({1, 4, 4}, DType::f32),
                           .values = Tensor::zeros({1, 4, 4}, DType::f32),
                           .params = {}};
  const Tensor qkv = Tensor::zeros({1, 12}, DType::f32).requires_grad();
  EXPECT_EQ(error_of([&] { cached_attention(qkv, step); }),
            "cached_attention: not differentiable: f32[1,12]@cpu: it writes to its cache; use "
            "attention");
  const Weight weight(Tensor::zeros({3, 4}, DType::f32));
  EXPECT_EQ(error_of([&] { linear(qkv, weight, {.attention = &step}); }),
            "linear: not differentiable: f32[1,12]@cpu: attention with a cache writes to it");
}

}  // namespace
}  // namespace wick
