#include "wick/nn/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/expect_error.h"
#include "wick/backend/backend.h"

namespace wick::nn {
namespace {

using test::error_of;
using testing::HasSubstr;

KvCacheOptions options() {
  return {.layers = 2,
          .heads = 3,
          .key_size = 4,
          .value_size = 5,
          .context = 2000,
          .dtype = DType::f32};
}

/// [1, heads, count, size] whose elements say which position, head and place they are.
Tensor marks(int64_t start, int64_t count, int64_t size, float sign) {
  std::vector<float> values;
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t i = 0; i < size; ++i) {
        values.push_back(sign * static_cast<float>(((start + t) * 3 + h) * 8 + i));
      }
    }
  }
  return Tensor::from(values, {1, 3, count, size});
}

void append(KvCache& cache, int64_t count) {
  cache.reserve(count);
  for (int64_t layer = 0; layer < 2; ++layer) {
    const float sign = layer == 0 ? 1.0f : -1.0f;
    cache.append(layer, marks(cache.length(), count, 4, sign),
                 marks(cache.length(), count, 5, sign));
  }
  cache.advance(count);
}

void expect_held(const KvCache& cache, int64_t count) {
  for (int64_t layer = 0; layer < 2; ++layer) {
    const float sign = layer == 0 ? 1.0f : -1.0f;
    EXPECT_EQ(cache.keys(layer, count).to_vector<float>(),
              marks(0, count, 4, sign).to_vector<float>());
    EXPECT_EQ(cache.values(layer, count).to_vector<float>(),
              marks(0, count, 5, sign).to_vector<float>());
  }
}

TEST(KvCache, HoldsWhatWasAppendedWhileItGrows) {
  KvCache cache(options());
  for (int64_t count : {1, 7, 504, 1, 600, 887}) {  // over the first capacity and to the end
    append(cache, count);
    expect_held(cache, cache.length());
  }
  EXPECT_EQ(cache.length(), 2000);
  EXPECT_EQ(error_of([&] { cache.reserve(1); }),
            "kv cache: context is full: 2000 positions held, 1 more: the context is 2000");
}

TEST(KvCache, Truncates) {
  KvCache cache(options());
  append(cache, 10);
  cache.truncate(20);
  EXPECT_EQ(cache.length(), 10);
  cache.truncate(4);
  append(cache, 3);
  EXPECT_EQ(cache.length(), 7);
  expect_held(cache, 7);
  cache.truncate(-5);
  EXPECT_EQ(cache.length(), 0);
}

TEST(KvCache, MemoryGrowsWithPositions) {
  Backend& cpu = backend(Device::cpu());
  KvCacheOptions o = options();
  o.context = 1 << 20;
  const size_t before = cpu.memory_info().in_use_bytes;
  KvCache cache(o);
  EXPECT_EQ(cpu.memory_info().in_use_bytes, before);
  EXPECT_EQ(cache.full_bytes(), size_t{2 * 3 * 9 * 4} << 20);
  append(cache, 1);
  EXPECT_LT(cpu.memory_info().in_use_bytes - before, cache.full_bytes() / 100);
}

TEST(KvCache, MisuseIsAnError) {
  KvCache cache(options());
  EXPECT_THAT(error_of([&] { cache.keys(0, 1); }), HasSubstr("kv cache: more positions"));
  cache.reserve(1);
  const Tensor k = marks(0, 1, 4, 1), v = marks(0, 1, 5, 1);
  for (int64_t layer : {int64_t{-1}, int64_t{2}, INT64_MAX}) {
    EXPECT_EQ(error_of([&] { cache.append(layer, k, v); }),
              "kv cache: no such layer: " + std::to_string(layer) + ": there are 2");
    EXPECT_THAT(error_of([&] { cache.keys(layer, 1); }), HasSubstr("no such layer"));
    EXPECT_THAT(error_of([&] { cache.values(layer, 1); }), HasSubstr("no such layer"));
  }
  for (int64_t count : {int64_t{-1}, int64_t{2001}, INT64_MAX, INT64_MIN}) {
    EXPECT_THAT(error_of([&] { cache.reserve(count); }), HasSubstr("context is full"));
  }
  EXPECT_THAT(error_of([&] { cache.advance(513); }), HasSubstr("more positions than reserved"));
  EXPECT_THAT(error_of([&] { cache.append(0, marks(0, 513, 4, 1), marks(0, 513, 5, 1)); }),
              HasSubstr("more positions than reserved"));
  EXPECT_THAT(error_of([&] { cache.keys(0, 513); }), HasSubstr("more positions than reserved"));
  EXPECT_THAT(error_of([&] { cache.values(0, 513); }), HasSubstr("range outside"));
  EXPECT_THAT(error_of([&] { cache.append(0, v, k); }), HasSubstr("shapes differ"));
  EXPECT_THAT(error_of([&] { cache.append(0, Tensor(), v); }), HasSubstr("undefined"));
  EXPECT_EQ(cache.length(), 0);
  KvCache empty;
  EXPECT_THAT(error_of([&] { empty.reserve(1); }), HasSubstr("context is full"));
}

TEST(KvCache, OptionsOutOfRange) {
  for (auto change : std::vector<void (*)(KvCacheOptions&)>{
           [](KvCacheOptions& o) { o.layers = 0; },
           [](KvCacheOptions& o) { o.heads = -1; },
           [](KvCacheOptions& o) { o.key_size = INT64_MAX; },
           [](KvCacheOptions& o) { o.value_size = 0; },
           [](KvCacheOptions& o) { o.context = 0; },
           [](KvCacheOptions& o) { o.context = INT64_MAX; },
           [](KvCacheOptions& o) { o.dtype = DType::f64; },
           [](KvCacheOptions& o) { o.dtype = DType::q8_0; },
       }) {
    KvCacheOptions o = options();
    change(o);
    EXPECT_THAT(error_of([&] { KvCache{o}; }), HasSubstr("kv cache: options out of range: "));
  }
  KvCacheOptions o = options();
  o.context = 1'000'000'000'000;
  EXPECT_THAT(error_of([&] { KvCache{o}; }),
              HasSubstr("kv cache: not enough memory: context 1000000000000 needs "));
  EXPECT_THAT(error_of([&] { KvCache{o}; }), HasSubstr("ask for a shorter context"));
}

}  // namespace
}  // namespace wick::nn
