// Cases of the soak test: matrix products, block formats, attention and token sampling.

#include <algorithm>
#include <cmath>

#include "tests/backend/soak.h"
#include "tests/parity/attention_bound.h"

namespace wick::soak {
namespace {

constexpr std::initializer_list<DType> kBlocks = {DType::q4_0, DType::q4_1, DType::q5_0,
                                                  DType::q8_0, DType::q4_k, DType::q6_k};
constexpr std::initializer_list<DType> kHalves = {DType::f32, DType::f16, DType::bf16};

double ulp(DType dtype, double x) { return static_cast<double>(parity::ulp(dtype, x)); }

/// Returns the error that a product may have: class bound in docs/design/numerics.md.
double bound_of(DType dtype, int64_t k, double y, double magnitude) {
  const double unit = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  return 0.51 * ulp(dtype, y) + 4 * std::sqrt(static_cast<double>(k)) * unit * magnitude;
}

TestTensor normal(Soak& s, DType dtype, Place place, const Shape& shape, int operand) {
  TestTensor t(dtype, place, shape, operand);
  t.fill(Values::normal, s.random);
  return t;
}

void matmul(Soak& s) {
  const DType dtype = s.dtype(info(Op::matmul).dtypes);
  const int64_t most = s.options.elems;
  const int64_t m = s.size(300), k = s.size(std::max<int64_t>(most / m, 1)),
                n = s.size(std::max<int64_t>(std::min(most / k, 16 * most / (m * k)), 1));
  const int64_t batch =
      std::max<int64_t>(std::min(most / std::max({m * k, k * n, m * n}), s.size(6)), 1);
  const bool empty = s.one_in(24);
  const Shape a_shape{batch, empty && s.one_in(2) ? 0 : m, k};
  const Shape b_shape{batch, k, n}, out_shape{batch, a_shape[1], n};
  TestTensor a(dtype, s.place(), a_shape, 1), b(dtype, s.place(), b_shape, 2);
  TestTensor out(dtype, s.place(), out_shape, 0, true);
  const Values values = is_integer(dtype) ? s.values() : Values::normal;
  a.fill(values, s.random);
  b.fill(values, s.random);
  s.what = fmt::format("matmul {} [{},{},{}]@[{},{}] {} {}", name(dtype), batch, a_shape[1], k, k,
                       n, a.layout().stride(2), b.layout().stride(2));
  const auto call = [](Backend& backend, const View& o, auto from) {
    backend.matmul(o, from[0], from[1]);
  };
  if (is_integer(dtype)) return s.compare(out, {&a, &b}, call);
  s.run(out, {&a, &b}, call);
  const std::vector<double> x = a.doubles(), y = b.doubles();
  std::vector<double> exact, tolerance;
  for (int64_t row = 0; row < batch * a_shape[1]; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      long double sum = 0, all = 0;
      for (int64_t i = 0; i < k; ++i) {
        const auto at_b = static_cast<size_t>((row / a_shape[1] * k + i) * n + column);
        const long double p =
            static_cast<long double>(x[static_cast<size_t>(row * k + i)]) * y[at_b];
        sum += p, all += std::fabs(p);
      }
      exact.push_back(static_cast<double>(sum));
      tolerance.push_back(bound_of(dtype, k, exact.back(), static_cast<double>(all)));
    }
  }
  s.expect_within(out, exact, tolerance);
}

/// A weight, its parts as `prepare` receives them, and activations.
struct Gemm {
  LinearFusion fusion;
  int64_t m, n, k;
  TestTensor weight, x, norm, residual, out;
  std::vector<int64_t> starts;  // first rows of the parts

  Gemm(Soak& s, DType type, DType dtype, bool fused)
      : fusion(some_fusion(s, dtype, fused)),
        m(s.one_in(2) ? s.pick<int64_t>({1, 1, 2, 3, 5, 8, 9, 16, 17, 33, 64, 70}) : s.size(140)),
        n(s.size(200)),
        k(depth(s, type, n)),
        weight(normal(s, type, s.pick({Place::contiguous, Place::sliced}), {n, k}, 1)),
        x(normal(s, dtype, s.place(), {m, is_gated(fusion.input) ? 2 * k : k}, 2)),
        norm(normal(s, DType::f32, Place::contiguous, {k}, 3)),
        residual(normal(s, dtype, s.place(), {m, n}, 4)),
        out(dtype, s.place(), {m, n}, 0, true) {
    for (int64_t row = 0; row < n; row += s.size(n)) starts.push_back(row);
    s.what = fmt::format("linear {} {} [{},{}]@[{},{}] in {} parts, input {}, add {}, x {},{}",
                         name(type), name(dtype), m, k, n, k, starts.size(),
                         static_cast<int>(fusion.input), fusion.add, x.layout().stride(0),
                         x.layout().stride(1));
  }
  static bool is_gated(LinearFusion::Input input) {
    return input == LinearFusion::Input::silu_mul || input == LinearFusion::Input::gelu_mul;
  }
  static int64_t depth(Soak& s, DType type, int64_t n) {
    const int64_t block = info(type).block_elems;
    return block * s.size(std::clamp<int64_t>(8 * s.options.elems / (n * block), 1, 4096 / block));
  }
  static LinearFusion some_fusion(Soak& s, DType dtype, bool fused) {
    using Input = LinearFusion::Input;
    LinearFusion fusion;
    if (fused) {
      fusion.input = s.pick({Input::plain, Input::rms_norm, Input::silu_mul, Input::gelu_mul});
    }
    fusion.eps = 1e-5f;
    fusion.add = dtype == DType::f32 && s.one_in(2);
    return fusion;
  }

  std::unique_ptr<PreparedWeight> prepare(Backend& b, const ConstView& whole) const {
    std::vector<ConstView> parts;
    for (size_t i = 0; i < starts.size(); ++i) {
      const int64_t end = i + 1 < starts.size() ? starts[i + 1] : n;
      parts.push_back(whole);
      parts.back().layout = whole.layout.narrow(0, starts[i], end - starts[i]);
    }
    return b.prepare(parts, false);
  }
  /// inputs: the weight, x, the norm's weight, the residual.
  void call(Backend& b, const View& o, std::span<const ConstView> from) const {
    const auto prepared = prepare(b, from[0]);
    LinearFusion with = fusion;
    with.norm = from[2], with.residual = from[3];
    b.linear(o, from[1], *prepared, with);
    b.synchronize();  // the weight is freed at the end of this scope
  }
};

void linear_blocks(Soak& s) {
  const DType dtype = s.pick(kHalves);
  Gemm p(s, s.pick(kBlocks), dtype, dtype == DType::f32 && s.one_in(2));
  s.compare(p.out, {&p.weight, &p.x, &p.norm, &p.residual},
            [&](Backend& b, const View& o, auto from) { p.call(b, o, from); });
}

void linear_floats(Soak& s) {
  Gemm p(s, s.pick(kHalves), s.pick(kHalves), false);
  s.run(p.out, {&p.weight, &p.x, &p.norm, &p.residual},
        [&](Backend& b, const View& o, auto from) { p.call(b, o, from); });
  const std::vector<double> w = p.weight.doubles(), add = p.residual.doubles();
  std::vector<double> x = p.x.doubles();
  // bf16 weights round activations to bf16: docs/design/numerics/matmul.md.
  if (p.weight.dtype() == DType::bf16) {
    for (double& v : x) v = static_cast<double>(parity::round_to(DType::bf16, v));
  }
  std::vector<double> exact, tolerance;
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t r = 0; r < p.n; ++r) {
      double sum = 0, all = 0;
      for (int64_t i = 0; i < p.k; ++i) {
        const double product =
            x[static_cast<size_t>(row * p.k + i)] * w[static_cast<size_t>(r * p.k + i)];
        sum += product, all += std::fabs(product);
      }
      const double y = sum + (p.fusion.add ? add[exact.size()] : 0);
      exact.push_back(y);
      tolerance.push_back(bound_of(p.out.dtype(), p.k, sum, all) + 0.51 * ulp(p.out.dtype(), y));
    }
  }
  s.expect_within(p.out, exact, tolerance);
}

void quantize(Soak& s) {
  const DType type = s.pick(kBlocks);
  const int64_t k = info(type).block_elems * s.size(10),
                rows = s.size(std::max<int64_t>(s.options.elems / k / 4, 1));
  TestTensor in(DType::f32, s.place(), {rows, k}, 1);
  in.fill(Values::normal, s.random);
  TestTensor out(type, s.pick({Place::contiguous, Place::sliced}), {rows, k}, 0, true);
  s.what = fmt::format("quantize {} of [{},{}]", name(type), rows, k);
  s.compare(out, {&in}, [](Backend& b, const View& o, auto from) { b.quantize(o, from[0]); });
}

void dequantize(Soak& s) {
  const DType type = s.pick(kBlocks);
  const int64_t k = info(type).block_elems * s.size(10),
                rows = s.size(std::max<int64_t>(s.options.elems / k, 1));
  const TestTensor in = normal(s, type, s.place(), {rows, k}, 1);
  TestTensor out(s.pick(kHalves), s.place(), {rows, k}, 0, true);
  s.what = fmt::format("dequantize {} of [{},{}] to {}", name(type), rows, k, name(out.dtype()));
  s.compare(out, {&in}, [](Backend& b, const View& o, auto from) { b.dequantize(o, from[0]); });
}

// ---- Attention ----

AttentionParams masks(Soak& s) {
  return {.scale = 0.1f + 0.1f * static_cast<float>(s.random.below(3)),
          .causal = !s.one_in(4),
          .window = s.one_in(3) ? s.size(300) : 0,
          .soft_cap = s.one_in(4) ? 4.0f : 0.0f};
}

void attention(Soak& s) {
  const int64_t group = s.pick<int64_t>({1, 1, 2, 3, 4, 7}), g = s.size(3);
  const int64_t d = s.pick<int64_t>({1, 8, 16, 20, 32, 64, 64, 80, 128, 128}),
                e = s.one_in(2) ? d : s.pick<int64_t>({1, 16, 40, 64, 128});
  const int64_t most = std::max<int64_t>(s.options.elems / (d * group * g), 2);
  const int64_t m = s.one_in(2) ? 1 : s.size(std::min<int64_t>(most, 300));
  const int64_t n = s.size(std::clamp<int64_t>(8 * most / m, 2, 1200)) + s.random.below(m);
  const parity::AttentionCase c{group * g, g, m, n, d, e, masks(s), s.one_in(2)};
  const DType dtype = s.pick(kHalves), cache = s.pick(kHalves);
  // With many queries, GPUs may use any order of summation.
  const bool free = m > 8 && !s.reproducible;
  const auto place = [&] { return s.one_in(2) ? Place::contiguous : s.place(); };
  const Values values = free || !s.one_in(4) ? Values::normal : Values::special;
  TestTensor q(dtype, place(), {1, c.h, m, d}, 1);
  TestTensor k(cache, place(), c.key_major ? Shape{1, g, d, n} : Shape{1, g, n, d}, 2);
  TestTensor v(cache, place(), {1, g, n, e}, 3), out(dtype, place(), {1, c.h, m, e}, 4, true);
  for (TestTensor* t : {&q, &k, &v}) t->fill(values, s.random);
  s.what = fmt::format(
      "attention q[{},{},{}] k[{},{}] e {} {} cache {} causal {} window {} cap {} "
      "key-major {}",
      c.h, m, d, g, n, e, name(dtype), name(cache), c.params.causal, c.params.window,
      c.params.soft_cap, c.key_major);
  const auto call = [&](Backend& b, const View& o, auto from) {
    ConstView keys = from[1];
    if (c.key_major) keys.layout = keys.layout.transpose(2, 3);
    b.attention(o, from[0], keys, from[2], c.params, {});
  };
  if (!free) return s.compare(out, {&q, &k, &v}, call);
  s.run(out, {&q, &k, &v}, call);
  const parity::AttentionBound bound(c, dtype, q.doubles(), k.doubles(), v.doubles());
  s.expect_within(out, bound.exact, bound.tolerance);
}

/// Steps of a prompt and of later tokens, in one cache.
void cached_attention(Soak& s) {
  const int64_t group = s.pick<int64_t>({1, 2, 3, 4, 7}), g = s.size(3), h = group * g;
  const int64_t d = s.pick<int64_t>({7, 16, 32, 64, 64, 80, 128}), e = s.one_in(3) ? 24 : d;
  const int64_t half = s.one_in(2) ? d / 2 : s.random.below(d / 2 + 1);
  const int64_t capacity = 8 + s.size(std::min<int64_t>(s.options.elems / d, 700));
  const DType cache = s.pick(kHalves);
  AttentionParams params = masks(s);
  params.causal = true;
  const bool key_major = s.one_in(2);
  TestTensor cos(DType::f32, Place::contiguous, {capacity, half}, 2),
      sin(DType::f32, Place::contiguous, {capacity, half}, 3);
  TestTensor keys(cache, Place::contiguous,
                  key_major ? Shape{g, d, capacity + 32} : Shape{g, capacity, d}, 5),
      values(cache, Place::contiguous, {g, capacity, e}, 6);
  for (TestTensor* t : {&cos, &sin, &keys, &values}) t->fill(Values::normal, s.random);
  const OnDevice cos_there(s.gpu, cos.storage()), sin_there(s.gpu, sin.storage()),
      keys_there(s.gpu, keys.storage()), values_there(s.gpu, values.storage());
  int64_t position = s.random.below(capacity - 4);
  for (int step = 0; step < 4; ++step) {
    const int64_t room = capacity - position;
    if (room < 1) break;
    const int64_t t = step == 0 || s.one_in(3) ? s.size(std::min<int64_t>(room, 40)) : 1;
    s.what = fmt::format(
        "cached_attention h {} g {} d {} e {} half {} capacity {} {} window {} cap "
        "{} key-major {} position {} t {}",
        h, g, d, e, half, capacity, name(cache), params.window, params.soft_cap, key_major,
        position, t);
    TestTensor positions(DType::u32, Place::contiguous, {t}, 4);
    positions.fill_bits([&](int64_t i) { return static_cast<uint64_t>(position + i); });
    const TestTensor qkv = normal(s, DType::f32, Place::contiguous, {t, (h + g) * d + g * e}, 1);
    TestTensor out(DType::f32, Place::contiguous, {t, h * e}, 7, true),
        got(DType::f32, Place::contiguous, {t, h * e}, 7, true);
    const auto call = [&](Backend& b, const View& o, const ConstView& x, const ConstView& at,
                          CachedAttention where) {
      where.positions = at, where.params = params;
      if (key_major) where.keys.layout = where.keys.layout.narrow(2, 0, capacity).transpose(1, 2);
      where.keys.layout = where.keys.layout.unsqueeze(0);  // one page
      where.values.layout = where.values.layout.unsqueeze(0);
      b.cached_attention(o, x, where);
    };
    call(s.cpu, out.view(), qkv.view(), std::as_const(positions).view(),
         {.cos = cos.view(),
          .sin = sin.view(),
          .positions = {},
          .keys = keys.view(),
          .values = values.view(),
          .params = {}});
    const OnDevice x_there(s.gpu, qkv.storage()), at_there(s.gpu, positions.storage()),
        out_there(s.gpu, got.storage());
    call(s.gpu, out_there.view(got.view()), x_there.view(qkv.view()),
         at_there.view(std::as_const(positions).view()),
         {.cos = cos_there.view(cos.view()),
          .sin = sin_there.view(sin.view()),
          .positions = {},
          .keys = keys_there.view(keys.view()),
          .values = values_there.view(values.view()),
          .params = {}});
    out_there.fetch(got.storage());
    if (t <= 8 || s.reproducible) s.expect_same("out", DType::f32, out.bits(), got.bits());
    position += t;
  }
  const auto expected_keys = keys.bits(), expected_values = values.bits();
  keys_there.fetch(keys.storage());
  values_there.fetch(values.storage());
  s.expect_same("keys", cache, expected_keys, keys.bits());
  s.expect_same("values", cache, expected_values, values.bits());
}

// ---- Sampling ----

void sample(Soak& s) {
  const int64_t vocabulary = s.size(s.options.elems), room = 50;
  TestTensor logits(DType::f32, s.one_in(4) ? Place::stepped : Place::contiguous, {1, vocabulary},
                    1);
  const int64_t kind = s.random.below(3);
  logits.fill_with([&](int64_t) -> long double {
    if (kind == 0) return static_cast<float>(3 * s.random.normal());
    if (kind == 1) return static_cast<float>(s.random.below(9)) - 4;
    return static_cast<float>(s.random.normal() * std::exp2(s.random.below(40) - 20));
  });
  SamplerOptions o;
  o.temperature = s.pick({0.0f, 0.1f, 0.8f, 1.0f, 30.0f});
  o.top_k = s.pick({0, 1, 40, 40, 200, 5000});
  o.top_p = s.pick({1.0f, 0.95f, 0.5f, 0.01f});
  o.min_p = s.pick({0.0f, 0.05f, 0.5f, 1.0f});
  if (s.one_in(2)) {
    o.repetition_penalty = s.pick({1.0f, 1.1f, 0.7f}), o.presence_penalty = s.pick({0.0f, 0.3f});
    o.frequency_penalty = s.pick({0.0f, -0.5f}), o.penalty_window = s.pick({64, 0, 5, -1});
  }
  o.seed = s.random.next();
  s.what = fmt::format("sample of {} t {} k {} p {} min {} penalties {} {} {} window {} seed {}",
                       vocabulary, o.temperature, o.top_k, o.top_p, o.min_p, o.repetition_penalty,
                       o.presence_penalty, o.frequency_penalty, o.penalty_window, o.seed);
  TestTensor token(DType::u32, Place::contiguous, {1}, 2),
      position(DType::u32, Place::contiguous, {1}, 3),
      history(DType::u32, Place::contiguous, {1, room}, 4),
      counts(DType::u32, Place::contiguous, {1, 3}, 5),
      chosen(DType::u32, Place::contiguous, {2, 1}, 6),
      options(DType::u32, Place::contiguous, {1, kSamplerWords}, 7);
  const auto words = sampler_words(o);
  options.fill_bits([&](int64_t i) { return words[static_cast<size_t>(i)]; });
  chosen.fill_bits([](int64_t) { return 0; });
  const int64_t said = s.random.below(40);
  token.fill_bits([](int64_t) { return 7; });
  position.fill_bits([](int64_t) { return 100; });
  history.fill_bits([&](int64_t i) {
    return i < said ? static_cast<uint64_t>(s.random.below(std::min<int64_t>(vocabulary, 60))) : 0;
  });
  counts.fill_bits([&](int64_t i) { return static_cast<uint64_t>(i == 0 ? said : 3); });
  TestTensor* const state[] = {&token, &position, &history, &counts, &chosen, &options};
  std::deque<OnDevice> there;
  for (const TestTensor* t : state) there.emplace_back(s.gpu, t->storage());
  const OnDevice logits_there(s.gpu, logits.storage());
  const int steps = 1 + static_cast<int>(s.random.below(5));
  for (int i = 0; i < steps; ++i) {
    s.cpu.sample({token.view(), position.view(), history.view(), counts.view(), chosen.view(),
                  options.view()},
                 std::as_const(logits).view());
    s.gpu.sample(
        {there[0].view(token.view()), there[1].view(position.view()), there[2].view(history.view()),
         there[3].view(counts.view()), there[4].view(chosen.view()), there[5].view(options.view())},
        logits_there.view(std::as_const(logits).view()));
  }
  s.gpu.synchronize();
  constexpr const char* kNames[] = {"token", "position", "history", "counts", "chosen", "options"};
  for (size_t i = 0; i < std::size(state); ++i) {
    const std::vector<uint64_t> expected = state[i]->bits();
    there[i].fetch(state[i]->storage());
    s.expect_same(kNames[i], DType::u32, expected, state[i]->bits());
  }
}

}  // namespace

std::span<const Case> product_cases() {
  static constexpr Case kCases[] = {
      {"matmul", matmul, 4},
      {"linear_blocks", linear_blocks, 6},
      {"linear_floats", linear_floats, 4},
      {"quantize", quantize, 2},
      {"dequantize", dequantize, 1},
      {"attention", attention, 5},
      {"cached_attention", cached_attention, 4},
      {"sample", sample, 3},
  };
  return kCases;
}

}  // namespace wick::soak
