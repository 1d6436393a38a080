// Attention on the GPUs that WICK_TEST_DEVICES names, with operands and caches of every layout,
// read directly and through shared memory. The result must have the bits of the CPU with dense
// operands.

#include <bit>
#include <cmath>

#include "tests/backend/gpu_layouts.h"
#include "wick/backend/gpu/attention/attention.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::gpu {
namespace {

/// Calls test() with each way of staging keys and values, until one fails.
template <class Test>
void with_each_staging(Test test) {
  const AttentionStaging default_staging = attention_staging;
  for (const AttentionStaging staging :
       {AttentionStaging::where_copies_run_alone, AttentionStaging::always}) {
    attention_staging = staging;
    test();
    if (testing::Test::HasFailure()) break;
  }
  attention_staging = default_staging;
}

struct Attention {
  int64_t b, h, g, m, n, d, e;
};

TEST_F(GpuLayouts, Attention) {
  const Attention shapes[] = {
      {1, 2, 1, 1, 9, 8, 8},       {1, 2, 2, 5, 6, 3, 4},     {2, 4, 2, 3, 16, 16, 16},
      {1, 2, 2, 9, 20, 8, 16},     {1, 1, 1, 1, 1, 8, 8},     {1, 2, 2, 4, 0, 8, 8},
      {1, 4, 1, 2, 300, 8, 32},    {2, 1, 1, 1, 24, 1, 2},    {1, 2, 1, 17, 40, 24, 8},
      {1, 3, 3, 1, 600, 64, 64},   {1, 8, 1, 3, 520, 80, 48}, {1, 4, 1, 1, 270, 128, 128},
      {1, 1, 1, 1, 100, 128, 128}, {1, 3, 3, 1, 600, 80, 80},
  };
  on_each([&](GpuBackend& gpu) {
    with_each_staging([&] {
      Rng random(5);
      uint64_t seed = 40'000;
      for (int i = 0; i < 60 * static_cast<int>(std::size(shapes)); ++i) {
        const Attention& s = shapes[static_cast<size_t>(i) % std::size(shapes)];
        const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
        const DType cache = dtypes[random() % 3];
        const DType of_q = random() % 2 == 0 ? DType::f32 : cache;
        const Shape q{s.b, s.h, s.m, s.d}, k{s.b, s.g, s.n, s.d}, v{s.b, s.g, s.n, s.e},
            y{s.b, s.h, s.m, s.e};
        // Layouts that caches have, with some dims reversed or overlapping, or any other layout.
        const auto turn = [&](int64_t stride) { return random() % 3 == 0 ? -stride : stride; };
        const int64_t keys = up_to(s.n, 8) + 8, heads = s.d * keys, wide = up_to(s.e, 8);
        const int64_t starts[] = {0, 0, 8, 1, 2, 4};
        const int64_t step = random() % 6 == 0 ? 8 : keys;
        Way way_k{"",
                  {turn(heads * s.g), turn(heads), random() % 8 == 0 ? -1 : 1, turn(step)},
                  starts[random() % 6]};
        Way way_v{
            "", {turn(wide * s.g * s.n), turn(wide), turn(wide * s.g), 1}, starts[random() % 6]};
        if (random() % 5 == 0) way_k = some_way(k, false, random);
        if (random() % 5 == 0) way_v = some_way(v, false, random);
        spoil(k, way_k.strides, random);
        spoil(v, way_v.strides, random);
        Placed pq(gpu, of_q, q, some_way(q, false, random), seed++);
        Placed pk(gpu, cache, k, way_k, seed++), pv(gpu, cache, v, way_v, seed++);
        Placed out(gpu, of_q, y, some_way(y, true, random), seed++);
        Placed sinks(gpu, DType::f32, {s.h}, some_way({s.h}, false, random), seed++);
        sinks.set(gpu, [](int64_t j) {
          return std::bit_cast<uint32_t>(j == 1 ? -HUGE_VALF : 1.5f - static_cast<float>(j));
        });
        const bool sunk = random() % 3 == 0;
        AttentionParams params{.scale = 0.3f};
        params.causal = random() % 2 == 0;
        params.window = random() % 4 == 0 ? 5 : 0;
        expect_cpu_bits(
            gpu, fmt::format("{}: attention{}", i, sunk ? " with sinks" : ""), out,
            {&pq, &pk, &pv, &sinks},
            [&](Backend& on, const View& to, const Inputs& in) {
              AttentionBias bias;
              if (sunk) bias.sinks = in[3];
              on.attention(to, in[0], in[1], in[2], params, bias);
            },
            tolerance_of(gpu, pq.there().layout.shape()[2], cache));
        if (HasFailure()) break;
      }
    });
  });
}

/// Tests rows, caches and tables of cached_attention, including what it writes to the caches.
TEST_F(GpuLayouts, CachedAttention) {
  on_each([&](GpuBackend& gpu) {
    with_each_staging([&] {
      Rng random(6);
      uint64_t seed = 50'000;
      for (int i = 0; i < 300; ++i) {
        const int64_t g = 1 + static_cast<int64_t>(random() % 2), h = g * 2, d = 8, e = 16;
        const int64_t ts[] = {1, 2, 5, 12}, t = ts[random() % 4], room = 24;
        const uint32_t first = static_cast<uint32_t>(random() % (static_cast<size_t>(room - t)));
        const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
        const DType cache = dtypes[random() % 3];
        const Shape keys{g, room, d}, values{g, room, e}, rows{t, h * d + g * (d + e)};
        const auto turn = [&](int64_t stride) { return random() % 3 == 0 ? -stride : stride; };
        const int64_t starts[] = {0, 0, 8, 1};
        Way way_k{
            "", {turn(room * d), random() % 8 == 0 ? -1 : 1, turn(room)}, starts[random() % 4]};
        Way way_v{"", {turn(room * e), turn(e), 1}, starts[random() % 4]};
        if (random() % 5 == 0) way_k = some_way(keys, true, random);
        if (random() % 5 == 0) way_v = some_way(values, true, random);
        spoil(keys, way_k.strides, random);
        spoil(values, way_v.strides, random);
        Placed pk(gpu, cache, keys, way_k, seed++), pv(gpu, cache, values, way_v, seed++);
        Placed qkv(gpu, DType::f32, rows, some_way(rows, false, random), seed++);
        const Shape table{room, d / 2};
        Placed cos(gpu, DType::f32, table, some_way(table, false, random), seed++);
        Placed sin(gpu, DType::f32, table, some_way(table, false, random), seed++);
        Placed sinks(gpu, DType::f32, {h}, some_way({h}, false, random), seed++);
        sinks.set(gpu, [](int64_t j) {
          return std::bit_cast<uint32_t>(j == 1 ? -HUGE_VALF : 1.5f - static_cast<float>(j));
        });
        const bool sunk = random() % 3 == 0;
        Placed positions(gpu, DType::u32, {t}, {"", {1}}, seed++);
        positions.set(gpu, [&](int64_t j) { return first + static_cast<uint64_t>(j); });
        const Shape y{t, h * e};
        Placed out(gpu, DType::f32, y, some_way(y, true, random), seed++);
        const std::string what = fmt::format("{}: keys {} values {}", i, pk.str(), pv.str());
        expect_cpu_bits(
            gpu, what, out, {&qkv, &cos, &sin, &positions, &sinks},
            [&](Backend& on, const View& to, const Inputs& in) {
              const bool device = &on == &gpu;
              CachedAttention where;
              where.cos = in[1], where.sin = in[2], where.positions = in[3];
              where.keys = device ? pk.there() : pk.dense();
              where.values = device ? pv.there() : pv.dense();
              where.keys.layout = where.keys.layout.unsqueeze(0);  // one page
              where.values.layout = where.values.layout.unsqueeze(0);
              where.params = {.scale = 0.3f};
              where.params.causal = true;
              if (sunk) where.sinks = in[4];
              on.cached_attention(to, in[0], where);
            },
            tolerance_of(gpu, t, cache));
        for (Placed* stored : {&pk, &pv}) {
          const std::vector<uint64_t> got = stored->fetch(gpu);
          for (size_t j = 0; j < got.size(); ++j) {
            ASSERT_EQ(got[j], stored->dense_bits(static_cast<int64_t>(j))) << what << " " << j;
          }
        }
        if (HasFailure()) break;
      }
    });
  });
}

/// Includes sequences without keys and without queries, and reversed heads.
TEST_F(GpuLayouts, AttentionOfLengths) {
  for (const Device& device : test::devices()) {
    with_each_staging([&] {
      const auto numbers = [](const Shape& shape, uint64_t seed) {
        std::vector<float> all(static_cast<size_t>(shape.elems()));
        for (size_t i = 0; i < all.size(); ++i) {
          all[i] =
              static_cast<float>(test::decode(DType::f32, test::random_bits(DType::f32, seed + i)));
        }
        return Tensor::from(all, shape);
      };
      const auto attend = [&](Device on) {
        const Tensor q = numbers({1, 4, 3}, 1).to(on).broadcast_to({16, 4, 3});
        const Tensor k = numbers({3, 2, 20}, 100).to(on).transpose(0, 2);
        const Tensor v = numbers({20, 2, 4}, 300).to(on).slice(1, 1, -3, -1);
        EXPECT_EQ(v.layout().stride(1), -4);
        const int64_t queries[] = {0, 5, 5, 10, 16}, keys[] = {0, 6, 15, 20, 20};
        const AttentionOptions params{.scale = 0.5f, .causal = true};
        return attention_of_lengths(q, k, v, queries, keys, params).to(Device::cpu());
      };
      const std::vector<float> got = attend(device).to_vector<float>();
      EXPECT_EQ(got, attend(Device::cpu()).to_vector<float>());
    });
  }
}

}  // namespace
}  // namespace wick::gpu
