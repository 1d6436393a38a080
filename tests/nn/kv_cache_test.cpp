#include "wick/nn/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/expect_error.h"
#include "wick/backend/backend.h"
#include "wick/tensor/ops.h"

namespace wick::nn {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

KvCacheOptions options() {
  return {.layers = {2, {.heads = 3, .key_size = 4, .value_size = 5}},
          .context = 2000,
          .dtype = DType::f32};
}

void add(KvCache& cache, int64_t count, int64_t sequence = 0) {
  cache.reserve(count, sequence);
  cache.advance(count, sequence);
}

/// Writes a sequence's number into its pages in each layer.
void mark(const KvCache& cache, int64_t sequence) {
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (const uint32_t page : cache.pages(sequence)) {
      for (Tensor pool : {cache.keys(layer), cache.values(layer)}) {
        const View page_view = pool.narrow(0, page, 1).mutable_view();
        backend(Device::cpu()).fill(page_view, static_cast<double>(10 * sequence + layer));
      }
    }
  }
}

void expect_marked(const KvCache& cache, int64_t sequence) {
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (const uint32_t page : cache.pages(sequence)) {
      for (const Tensor& pool : {cache.keys(layer), cache.values(layer)}) {
        for (const float x : pool.narrow(0, page, 1).contiguous().to_vector<float>()) {
          ASSERT_EQ(x, static_cast<float>(10 * sequence + layer)) << sequence << " " << layer;
        }
      }
    }
  }
}

TEST(KvCache, KeepsPagesWhileItGrows) {
  KvCacheOptions o = options();
  o.sequences = 3;
  KvCache cache(o);
  std::vector<std::vector<uint32_t>> held(3);
  // Growth over several pages, up to the limit.
  for (const int64_t count : {1, 255, 1, 300, 512, 1, 900}) {
    for (int64_t s = 0; s < 3; ++s) {
      add(cache, std::min(count, 2000 - cache.length(s)), s);
      mark(cache, s);
      // Positions keep their pages in the tables.
      const auto pages = cache.pages(s);
      auto& before = held[static_cast<size_t>(s)];
      ASSERT_GE(pages.size(), before.size());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), pages.begin()));
      before.assign(pages.begin(), pages.end());
    }
    for (int64_t s = 0; s < 3; ++s) expect_marked(cache, s);
  }
  std::set<uint32_t> all;
  for (const auto& pages : held) all.insert(pages.begin(), pages.end());
  // Sequences don't share pages.
  EXPECT_EQ(all.size(), held[0].size() + held[1].size() + held[2].size());
  EXPECT_EQ(cache.length(1), 1970);
  EXPECT_EQ(error_of([&] { cache.reserve(31, 1); }),
            "kv cache: context is full: 1970 positions held, 31 more: the context is 2000");
}

TEST(KvCache, TablesNameThePages) {
  KvCacheOptions o = options();
  o.sequences = 2;
  KvCache cache(o);
  add(cache, 300, 0);
  add(cache, 10, 1);
  EXPECT_EQ(cache.reach(), 512);
  const int64_t order[] = {1, 0};
  const auto first = cache.pages(0), second = cache.pages(1);
  EXPECT_THAT(cache.tables(order, Device::cpu()).to_vector<uint32_t>(),
              ElementsAre(second[0], 0, first[0], first[1]));
  // Only as wide as the given sequences' pages; the rows on the host reach all positions.
  const int64_t shorter[] = {1};
  EXPECT_THAT(cache.tables(shorter, Device::cpu()).to_vector<uint32_t>(), ElementsAre(second[0]));
  EXPECT_THAT(cache.table_rows(shorter), ElementsAre(second[0], 0));
  const int64_t moves = cache.moves(), changes = cache.changes();
  add(cache, 100, 1);  // within its last page
  EXPECT_EQ(cache.moves(), moves);
  EXPECT_EQ(cache.changes(), changes);
  add(cache, 200, 1);
  EXPECT_GT(cache.changes(), changes);
  const int64_t wrong[] = {2};
  EXPECT_EQ(error_of([&] { cache.tables(wrong, Device::cpu()); }),
            "kv cache: no such sequence: 2: there are 2");
}

TEST(KvCache, TruncationFreesPages) {
  KvCacheOptions o = options();
  o.sequences = 2;
  o.positions = 1024;
  KvCache cache(o);
  add(cache, 1024, 0);
  add(cache, 256, 1);  // a sequence's last page may be partly filled
  EXPECT_THAT(error_of([&] { cache.reserve(1, 1); }), HasSubstr("all pages are in use"));
  EXPECT_EQ(cache.length(1), 256);
  const std::vector<uint32_t> before(cache.pages(0).begin(), cache.pages(0).end());
  cache.truncate(2000);
  EXPECT_EQ(cache.length(), 1024);
  cache.truncate(257);
  EXPECT_EQ(cache.pages(0).size(), 2U);
  add(cache, 500, 1);
  EXPECT_EQ(cache.length(1), 756);
  cache.truncate(-5, 1);
  EXPECT_EQ(cache.length(1), 0);
  EXPECT_TRUE(cache.pages(1).empty());
  EXPECT_EQ(cache.pages(0)[0], before[0]);
  EXPECT_EQ(cache.pages(0)[1], before[1]);
}

TEST(KvCache, MemoryGrowsWithPositions) {
  Backend& cpu = backend(Device::cpu());
  KvCacheOptions o = options();
  o.context = 1 << 20;
  const size_t before = cpu.memory_info().in_use_bytes;
  KvCache cache(o);
  EXPECT_EQ(cpu.memory_info().in_use_bytes, before);
  EXPECT_EQ(cache.full_bytes(), size_t{2 * 3 * 9 * 4} << 20);
  add(cache, 1);
  EXPECT_LT(cpu.memory_info().in_use_bytes - before, cache.full_bytes() / 100);
}

TEST(KvCache, LayersDiffer) {
  KvCacheOptions o = options();
  o.layers = {{.heads = 2, .key_size = 8, .value_size = 4},
              {},
              {.heads = 1, .key_size = 16, .value_size = 0}};
  KvCache cache(o);
  EXPECT_EQ(cache.full_bytes(), size_t{(2 * 12 + 16) * 4 * 2000});
  add(cache, 300);
  add(cache, 300);  // grows
  EXPECT_EQ(cache.keys(0).shape(), Shape({4, 2, 8, 256}));
  EXPECT_EQ(cache.values(0).shape(), Shape({4, 2, 256, 4}));
  EXPECT_FALSE(cache.keys(1).defined());
  EXPECT_FALSE(cache.values(1).defined());
  EXPECT_EQ(cache.keys(2).shape(), Shape({4, 1, 16, 256}));
  EXPECT_FALSE(cache.values(2).defined());
}

TEST(KvCache, StatesAreClearedWithTheirSequence) {
  KvCacheOptions o = options();
  o.layers = {{.heads = 1, .key_size = 4, .value_size = 4}, {.states = {{3}, {2, 2}}}};
  o.sequences = 2;
  KvCache cache(o);
  EXPECT_TRUE(cache.has_states());
  EXPECT_FALSE(KvCache(options()).has_states());
  EXPECT_EQ(cache.full_bytes(), size_t{8 * 4 * 4000 + 2 * 7 * 4});
  add(cache, 3, 0);
  ASSERT_EQ(cache.states(1).size(), 2U);
  EXPECT_TRUE(cache.states(0).empty());
  EXPECT_EQ(cache.states(1)[0].shape(), Shape({2, 3}));
  EXPECT_EQ(cache.states(1)[1].shape(), Shape({2, 2, 2}));
  const std::vector<int64_t> both = {1, 0};
  EXPECT_EQ(cache.slots(both, Device::cpu()).to_vector<uint32_t>(), std::vector<uint32_t>({1, 0}));
  const auto values = [&](int64_t sequence) {
    return cache.states(1)[0].narrow(0, sequence, 1).to_vector<float>();
  };
  const std::vector<float> zeros(3, 0.0f), ones(3, 1.0f);
  EXPECT_EQ(values(0), zeros);
  add(cache, 1, 1);
  Tensor all = Tensor::ones({2, 3}, DType::f32);
  std::memcpy(cache.states(1)[0].storage()->data(), all.storage()->data(), 6 * sizeof(float));
  add(cache, 600, 0);  // grows
  EXPECT_EQ(values(0), ones);
  cache.truncate(604, 0);
  EXPECT_THAT(error_of([&] { cache.truncate(100, 0); }), HasSubstr("can't be shortened"));
  cache.truncate(0, 0);
  cache.reserve(1, 0);
  EXPECT_EQ(values(0), zeros);
  EXPECT_EQ(values(1), ones);
}

TEST(KvCache, MisuseIsAnError) {
  KvCache cache(options());
  EXPECT_THAT(error_of([&] { cache.keys(0); }), HasSubstr("nothing was reserved"));
  cache.reserve(1);
  for (const int64_t layer : {int64_t{-1}, int64_t{2}, INT64_MAX}) {
    EXPECT_EQ(error_of([&] { cache.keys(layer); }),
              "kv cache: no such layer: " + std::to_string(layer) + ": there are 2");
    EXPECT_THAT(error_of([&] { cache.values(layer); }), HasSubstr("no such layer"));
  }
  for (const int64_t sequence : {int64_t{-1}, int64_t{1}, INT64_MAX, INT64_MIN}) {
    EXPECT_THAT(error_of([&] { cache.reserve(1, sequence); }), HasSubstr("no such sequence"));
    EXPECT_THAT(error_of([&] { cache.advance(1, sequence); }), HasSubstr("no such sequence"));
    EXPECT_THAT(error_of([&] { cache.truncate(0, sequence); }), HasSubstr("no such sequence"));
  }
  for (const int64_t count : {int64_t{-1}, int64_t{2001}, INT64_MAX, INT64_MIN}) {
    EXPECT_THAT(error_of([&] { cache.reserve(count); }), HasSubstr("context is full"));
  }
  for (const int64_t count : {int64_t{-1}, int64_t{257}, INT64_MAX}) {
    EXPECT_THAT(error_of([&] { cache.advance(count); }), HasSubstr("more positions than reserved"));
  }
  EXPECT_EQ(cache.length(), 0);
  KvCache empty;
  EXPECT_THAT(error_of([&] { empty.reserve(1); }), HasSubstr("no such sequence"));
}

TEST(KvCache, OptionsOutOfRange) {
  const auto refuses = [](auto change, const char* text) {
    KvCacheOptions o = options();
    change(o);
    EXPECT_THAT(error_of([&] { KvCache cache(o); }), HasSubstr(text));
  };
  using O = KvCacheOptions;
  refuses([](O& o) { o.layers.clear(); }, "options out of range");
  refuses([](O& o) { o.layers[1].key_size = 0; }, "options out of range");
  for (const int64_t bad : {int64_t{-1}, INT64_MAX, INT64_MIN}) {
    refuses([=](O& o) { o.layers[0].heads = bad; }, "options out of range");
    refuses([=](O& o) { o.layers[1].key_size = bad; }, "options out of range");
    refuses([=](O& o) { o.layers[1].value_size = bad; }, "options out of range");
  }
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    refuses([=](O& o) { o.context = bad; }, "options out of range");
    refuses([=](O& o) { o.sequences = bad; }, "options out of range");
  }
  refuses([](O& o) { o.positions = -1; }, "options out of range");
  refuses([](O& o) { o.dtype = DType::u8; }, "options out of range");
  refuses([](O& o) { o.context = int64_t{1} << 39; }, "not enough memory");
}

}  // namespace
}  // namespace wick::nn
