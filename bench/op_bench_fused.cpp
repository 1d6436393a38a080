// Rows of softmax, norms, rope and attention.

#include <fmt/format.h>

#include <array>

#include "bench/op_bench.h"

namespace wick::bench {
namespace {

Backend& cpu() { return backend(Device()); }

const Shape kRows{1024, 4096};
double copied(const Shape& shape, DType dtype) {
  return 2 * static_cast<double>(bytes_of(dtype, shape.elems()));
}

void add_softmax(std::vector<OpRow>& rows, const char* name, DType dtype, const Shape& shape,
                 const char* shape_name, int dim, bool log) {
  rows.push_back({name, dtype, shape_name, Limit::copy, copied(shape, dtype), [=] {
                    const Tensor x = random_tensor(shape, dtype), y = Tensor::empty(shape, dtype);
                    return [=] { cpu().softmax(y.mutable_view(), x.view(), dim, log); };
                  }});
}

void add_norms(std::vector<OpRow>& rows, DType dtype) {
  rows.push_back({"layer_norm", dtype, "1024x4096", Limit::copy, copied(kRows, dtype), [=] {
                    const Tensor x = random_tensor(kRows, dtype), w = random_tensor({4096}, dtype),
                                 b = random_tensor({4096}, dtype), y = Tensor::empty(kRows, dtype);
                    return [=] {
                      cpu().layer_norm(y.mutable_view(), x.view(), w.view(), b.view(), 1e-5f);
                    };
                  }});
  rows.push_back({"rms_norm", dtype, "1024x4096", Limit::copy, copied(kRows, dtype), [=] {
                    const Tensor x = random_tensor(kRows, dtype), w = random_tensor({4096}, dtype),
                                 y = Tensor::empty(kRows, dtype);
                    return [=] { cpu().rms_norm(y.mutable_view(), x.view(), w.view(), 1e-5f); };
                  }});
}

/// Functions that return a new result, whose memory comes from the allocator's cache.
void add_image_norms(std::vector<OpRow>& rows) {
  const Shape image{8, 64, 56, 56};
  rows.push_back(
      {"group_norm", DType::f32, "8x64x56x56,8", Limit::copy, copied(image, DType::f32), [=] {
         const Tensor x = random_tensor(image, DType::f32), w = random_tensor({64}, DType::f32),
                      b = random_tensor({64}, DType::f32);
         return [=] { group_norm(x, 8, w, b); };
       }});
  rows.push_back(
      {"batch_norm", DType::f32, "8x64x56x56", Limit::copy, copied(image, DType::f32), [=] {
         const Tensor x = random_tensor(image, DType::f32),
                      mean = random_tensor({64}, DType::f32, 2),
                      var = sqr(random_tensor({64}, DType::f32, 3)),
                      w = random_tensor({64}, DType::f32, 4),
                      b = random_tensor({64}, DType::f32, 5);
         return [=] { batch_norm(x, mean, var, w, b); };
       }});
}

/// Gradients of softmax and norms. They read x (or y) and grad; norm_sums writes little.
void add_gradients(std::vector<OpRow>& rows, DType dtype) {
  const double moved = 1.5 * copied(kRows, dtype);
  for (const bool log : {false, true}) {
    rows.push_back(
        {log ? "log_softmax_grad" : "softmax_grad", dtype, "1024x4096", Limit::copy, moved, [=] {
           const Tensor y = random_tensor(kRows, dtype), g = random_tensor(kRows, dtype, 2),
                        out = Tensor::empty(kRows, dtype);
           return [=] { cpu().softmax_grad(out.mutable_view(), y.view(), g.view(), 1, log); };
         }});
  }
  rows.push_back({"norm_grad", dtype, "1024x4096", Limit::copy, moved, [=] {
                    const Tensor x = random_tensor(kRows, dtype),
                                 g = random_tensor(kRows, dtype, 2),
                                 w = random_tensor({4096}, dtype),
                                 out = Tensor::empty(kRows, dtype),
                                 statistics = Tensor::empty({2, 1024}, DType::f32);
                    return [=] {
                      cpu().norm_grad(out.mutable_view(), statistics.mutable_view(), x.view(),
                                      g.view(), w.view(), {0, true, 1e-5f});
                    };
                  }});
  rows.push_back({"norm_sums", dtype, "1024x4096", Limit::copy, copied(kRows, dtype), [=] {
                    const Tensor x = random_tensor(kRows, dtype),
                                 g = random_tensor(kRows, dtype, 2),
                                 mean = random_tensor({1024, 1}, DType::f32, 3),
                                 scale = random_tensor({1024, 1}, DType::f32, 4);
                    return [=] { norm_sums(x, g, scale, std::array{0}, mean); };
                  }});
}

void add_rope(std::vector<OpRow>& rows, DType dtype) {
  const Shape heads{1, 32, 512, 128};
  for (bool interleaved : {false, true}) {
    rows.push_back({interleaved ? "rope_interleaved" : "rope", dtype, "1x32x512x128", Limit::copy,
                    copied(heads, dtype), [=] {
                      const Tensor x = random_tensor(heads, dtype),
                                   cos = random_tensor({512, 64}, DType::f32, 2),
                                   sin = random_tensor({512, 64}, DType::f32, 3),
                                   y = Tensor::empty(heads, dtype);
                      return [=] {
                        cpu().rope(y.mutable_view(), x.view(), cos.view(), sin.view(), interleaved);
                      };
                    }});
  }
}

struct Heads {
  const char* name;
  int64_t heads, key_heads, queries, keys, size;
  bool causal;
};

void add_attention(std::vector<OpRow>& rows, DType dtype, const Heads& a) {
  const std::string shape =
      fmt::format("h{}g{}m{}n{}d{}", a.heads, a.key_heads, a.queries, a.keys, a.size);
  const double pairs =
      static_cast<double>(a.queries) * static_cast<double>(a.keys) -
      (a.causal ? static_cast<double>(a.queries) * static_cast<double>(a.queries - 1) / 2 : 0);
  const bool decode = a.queries == 1;
  const double cache = 2 * static_cast<double>(bytes_of(dtype, a.key_heads * a.keys * a.size));
  rows.push_back(
      {a.name, dtype, shape, decode ? Limit::read : Limit::fma,
       decode ? cache : 2 * pairs * static_cast<double>(a.heads) * static_cast<double>(a.size),
       [=] {
         const Tensor q = random_tensor({1, a.heads, a.queries, a.size}, dtype, 1),
                      k = random_tensor({1, a.key_heads, a.keys, a.size}, dtype, 2),
                      v = random_tensor({1, a.key_heads, a.keys, a.size}, dtype, 3),
                      y = Tensor::empty({1, a.heads, a.queries, a.size}, dtype);
         AttentionParams params;
         params.scale = 0.125f;
         params.causal = a.causal;
         return
             [=] { cpu().attention(y.mutable_view(), q.view(), k.view(), v.view(), params, {}); };
       }});
}

/// Stores one token of each of several sequences to caches with 8 heads of size 128.
void add_store(std::vector<OpRow>& rows, DType cache) {
  constexpr int64_t kSequences = 256, kHeads = 8, kSize = 128;
  const double bytes = static_cast<double>(kSequences * kHeads * kSize) *
                       static_cast<double>(bytes_of(cache, 1) + 4);
  rows.push_back({"store_in_pages", cache, "256x8x128", Limit::copy, bytes, [=] {
                    const Tensor pages = Tensor::zeros({kSequences, kHeads, 256, kSize}, cache),
                                 x = random_tensor({kSequences, kHeads, kSize}, DType::f32, 1),
                                 ids = Tensor::arange(0, kSequences, 1, DType::u32);
                    const Tensor at = Tensor::zeros({kSequences}, DType::u32);
                    return [=] {
                      cpu().store_in_pages(pages.mutable_view(), x.view(), ids.unsqueeze(1).view(),
                                           at.view());
                    };
                  }});
}

/// The convolution and the scan of Mamba-2 (2.7B), and the gated delta rule of Qwen3-Next, for one
/// sequence of `rows` rows. Each multiplication of a scan is a fused one.
void add_recurrences(std::vector<OpRow>& rows, int64_t each, const char* shape) {
  constexpr int64_t kChannels = 5376, kTaps = 4, kHeads = 80, kColumns = 64, kState = 128;
  constexpr int64_t kDeltaHeads = 32, kDeltaColumns = 128, kKeyHeads = 16;
  const auto t = static_cast<double>(each);
  const auto slot = [] { return Tensor::zeros({1}, DType::u32); };
  rows.push_back({"causal_conv", DType::f32, shape, Limit::copy, t * kChannels * 8, [=] {
                    const Tensor x = random_tensor({each, kChannels}, DType::f32, 1),
                                 weight = random_tensor({kChannels, kTaps}, DType::f32, 2),
                                 state = Tensor::zeros({1, kTaps - 1, kChannels}, DType::f32),
                                 slots = slot(), y = Tensor::empty({each, kChannels}, DType::f32);
                    return [=] {
                      cpu().causal_conv(y.mutable_view(), x.view(), weight.view(), {},
                                        {state.mutable_view(), slots.view()});
                    };
                  }});
  rows.push_back(
      {"ssm_scan", DType::f32, shape, Limit::fma, t * 2 * kHeads * kColumns * kState, [=] {
         const Tensor x = random_tensor({each, kHeads, kColumns}, DType::f32, 1),
                      dt = Tensor::full({each, kHeads}, 0.1, DType::f32),
                      a = Tensor::full({kHeads}, -1.0, DType::f32),
                      b = random_tensor({each, 1, kState}, DType::f32, 2),
                      state = Tensor::zeros({1, kHeads, kState, kColumns}, DType::f32),
                      slots = slot(), y = Tensor::empty(x.shape(), DType::f32);
         return [=] {
           cpu().ssm_scan(y.mutable_view(), {x.view(), dt.view(), a.view(), b.view(), b.view(), {}},
                          {state.mutable_view(), slots.view()});
         };
       }});
  rows.push_back(
      {"gated_delta_scan", DType::f32, shape, Limit::fma,
       t * 3 * kDeltaHeads * kDeltaColumns * kState, [=] {
         const Tensor v = random_tensor({each, kDeltaHeads, kDeltaColumns}, DType::f32, 1),
                      k = Tensor::full({each, kKeyHeads, kState}, 0.08, DType::f32),
                      g = Tensor::full({each, kDeltaHeads}, -0.1, DType::f32),
                      beta = Tensor::full({each, kDeltaHeads}, 0.5, DType::f32),
                      state = Tensor::zeros({1, kDeltaHeads, kState, kDeltaColumns}, DType::f32),
                      slots = slot(), y = Tensor::empty(v.shape(), DType::f32);
         return [=] {
           cpu().gated_delta_scan(y.mutable_view(),
                                  {k.view(), k.view(), v.view(), g.view(), beta.view()},
                                  {state.mutable_view(), slots.view()});
         };
       }});
}

}  // namespace

void add_fused(std::vector<OpRow>& rows) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_softmax(rows, "softmax", dtype, kRows, "1024x4096", 1, false);
    add_softmax(rows, "softmax_dim0", dtype, kRows, "1024x4096", 0, false);
    add_softmax(rows, "log_softmax", dtype, kRows, "1024x4096", 1, true);
    add_norms(rows, dtype);
    add_gradients(rows, dtype);
    add_rope(rows, dtype);
  }
  add_softmax(rows, "softmax", DType::f32, {8192, 128}, "8192x128", 1, false);
  add_image_norms(rows);
  const Heads attentions[] = {
      {"attention", 8, 8, 1024, 1024, 64, false},
      {"attention_causal", 8, 8, 1024, 1024, 64, true},
      {"attention_grouped", 8, 2, 1024, 1024, 64, true},
      {"attention_decode", 8, 8, 1, 4096, 64, false},
      {"attention_decode_grouped", 32, 8, 1, 4096, 128, false},
  };
  for (const Heads& a : attentions) {
    add_attention(rows, DType::f32, a);
    add_attention(rows, DType::bf16, a);
  }
  add_attention(rows, DType::f16, attentions[0]);
  add_store(rows, DType::f16);
  add_recurrences(rows, 1, "1");
  add_recurrences(rows, 512, "512");
}

}  // namespace wick::bench
