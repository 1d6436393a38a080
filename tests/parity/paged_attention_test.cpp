// Attention with paged caches: cached_attention of several sequences, and attention_of_pages, must
// give and store the bits that the CPU gives for each sequence alone with its keys in one piece.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tests/expect_error.h"
#include "tests/parity/grid.h"
#include "wick/base/error.h"

namespace wick::parity {
namespace {

struct Case {
  int64_t h, g, d, e, half;
  int64_t size;     ///< positions per page
  int64_t entries;  ///< pages per sequence
  DType cache;
  AttentionParams params = {};
  bool key_major = true;  ///< keys are stored as [pages, g, d, size]
  bool sinks = false;     ///< of cached_attention
};

std::string describe(const Case& c) {
  return fmt::format("h {} g {} d {} e {} half {} pages {} of {} {} window {} cap {}{}", c.h, c.g,
                     c.d, c.e, c.half, c.entries, c.size, name(c.cache), c.params.window,
                     c.params.soft_cap, c.key_major ? "" : " keys by position");
}

/// `count` sequences whose pages are shuffled. The first page belongs to no sequence.
struct Pool {
  const Case& c;
  int64_t count, pages;
  TestTensor keys, values, tables, cos, sin, sinks;

  Pool(const Case& the_case, int64_t sequences, Random& random)
      : c(the_case),
        count(sequences),
        pages(sequences * the_case.entries + 1),
        keys(c.cache, Place::contiguous,
             c.key_major ? Shape{pages, c.g, c.d, c.size} : Shape{pages, c.g, c.size, c.d}, 1),
        values(c.cache, Place::contiguous, {pages, c.g, c.size, c.e}, 2),
        tables(DType::u32, Place::contiguous, {count, c.entries}, 3),
        cos(DType::f32, Place::contiguous, {c.entries * c.size, c.half}, 4),
        sin(DType::f32, Place::contiguous, {c.entries * c.size, c.half}, 5),
        sinks(DType::f32, Place::contiguous, {c.h}, 16) {
    sinks.fill_with([](int64_t i) -> long double { return i == 1 ? -INFINITY : 1.5L - i; });
    for (TestTensor* x : {&keys, &values, &cos, &sin}) x->fill(Values::normal, random);
    std::vector<uint64_t> order(static_cast<size_t>(pages - 1));
    std::iota(order.begin(), order.end(), uint64_t{1});
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    tables.fill_bits([&](int64_t i) { return order[static_cast<size_t>(i)]; });
  }

  int64_t positions() const { return c.entries * c.size; }
  View by_position(View view) const {
    if (c.key_major) view.layout = view.layout.transpose(2, 3);
    return view;
  }
  /// Returns the cache elements of sequence i, position by position: [g, positions, width].
  std::vector<uint64_t> of_sequence(const TestTensor& cache, int64_t i, bool turned,
                                    int64_t width) const {
    const auto bits = cache.bits();
    const auto table = tables.bits();
    std::vector<uint64_t> result;
    for (int64_t head = 0; head < c.g; ++head) {
      for (int64_t p = 0; p < positions(); ++p) {
        const auto page =
            static_cast<int64_t>(table[static_cast<size_t>(i * c.entries + p / c.size)]);
        for (int64_t x = 0; x < width; ++x) {
          const int64_t at = turned ? ((page * c.g + head) * width + x) * c.size + p % c.size
                                    : ((page * c.g + head) * c.size + p % c.size) * width + x;
          result.push_back(bits[static_cast<size_t>(at)]);
        }
      }
    }
    return result;
  }
};

void expect_same(const std::string& what, DType dtype, const std::vector<uint64_t>& expected,
                 const std::vector<uint64_t>& got) {
  ASSERT_EQ(expected.size(), got.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (same_bits(dtype, expected[i], got[i])) continue;
    ADD_FAILURE() << fmt::format("{}: element {} is {:#x}, expected {:#x}", what, i, got[i],
                                 expected[i]);
    return;
  }
}

/// The results of one sequence alone, with its keys and values in one piece: outputs, keys, values.
struct Alone {
  std::vector<uint64_t> out, keys, values;
  Alone(const Pool& pool, int64_t i, const TestTensor& qkv, int64_t each, int64_t start) {
    const Case& c = pool.c;
    Backend& cpu = *targets().front().backend;
    TestTensor k(c.cache, Place::contiguous, {1, c.g, pool.positions(), c.d}, 6),
        v(c.cache, Place::contiguous, {1, c.g, pool.positions(), c.e}, 7),
        positions(DType::u32, Place::contiguous, {each}, 8),
        y(DType::f32, Place::contiguous, {each, c.h * c.e}, 9, true);
    const auto all_keys = pool.of_sequence(pool.keys, i, c.key_major, c.d),
               all_values = pool.of_sequence(pool.values, i, false, c.e);
    k.fill_bits([&](int64_t at) { return all_keys[static_cast<size_t>(at)]; });
    v.fill_bits([&](int64_t at) { return all_values[static_cast<size_t>(at)]; });
    positions.fill_bits([&](int64_t at) { return static_cast<uint64_t>(start + at); });
    ConstView rows = qkv.view();
    rows.layout = rows.layout.narrow(0, i * each, each);
    cpu.cached_attention(y.view(), rows,
                         {.cos = pool.cos.view(),
                          .sin = pool.sin.view(),
                          .positions = std::as_const(positions).view(),
                          .keys = k.view(),
                          .values = v.view(),
                          .tables = {},
                          .params = c.params,
                          .sinks = c.sinks ? pool.sinks.view() : ConstView{}});
    out = y.bits(), keys = k.bits(), values = v.bits();
  }
};

/// Tests `each` rows of every sequence, from its start on.
void check_cached(const Case& c, int64_t each, std::vector<int64_t> starts, Random& random,
                  bool recorded = false) {
  if (failed()) return;
  const auto count = static_cast<int64_t>(starts.size());
  Pool pool(c, count, random);
  TestTensor qkv(DType::f32, Place::contiguous, {count * each, (c.h + c.g) * c.d + c.g * c.e}, 10),
      positions(DType::u32, Place::contiguous, {count * each}, 11),
      out(DType::f32, Place::contiguous, {count * each, c.h * c.e}, 12, true);
  qkv.fill(Values::normal, random);
  positions.fill_bits([&](int64_t i) {
    return static_cast<uint64_t>(starts[static_cast<size_t>(i / each)] + i % each);
  });
  std::vector<Alone> alone;
  for (int64_t i = 0; i < count; ++i) {
    alone.emplace_back(pool, i, qkv, each, starts[static_cast<size_t>(i)]);
  }
  const std::vector<std::byte> keys(pool.keys.storage().begin(), pool.keys.storage().end());
  const std::vector<std::byte> values(pool.values.storage().begin(), pool.values.storage().end());
  for (const Target& target : targets()) {
    const std::string what = fmt::format("{} {} rows of {}{} on {}", describe(c), each, count,
                                         recorded ? " recorded" : "", target.name);
    std::copy(keys.begin(), keys.end(), pool.keys.storage().begin());
    std::copy(values.begin(), values.end(), pool.values.storage().begin());
    Backend& backend = *target.backend;
    const OnDevice k(backend, pool.keys.storage()), v(backend, pool.values.storage()),
        tables(backend, pool.tables.storage()), cos(backend, pool.cos.storage()),
        sin(backend, pool.sin.storage()), sinks(backend, pool.sinks.storage()),
        x(backend, qkv.storage()), at(backend, positions.storage()), y(backend, out.storage());
    const auto work = [&] {
      backend.cached_attention(
          y.view(out.view()), x.view(qkv.view()),
          {.cos = cos.view(pool.cos.view()),
           .sin = sin.view(pool.sin.view()),
           .positions = at.view(positions.view()),
           .keys = k.view(pool.by_position(pool.keys.view())),
           .values = v.view(pool.values.view()),
           .tables = tables.view(pool.tables.view()),
           .params = c.params,
           .sinks = c.sinks ? sinks.view(std::as_const(pool.sinks).view()) : ConstView{}});
    };
    try {
      if (recorded) {
        backend.record(work)->replay();
      } else {
        work();
      }
      y.fetch(out.storage());
      k.fetch(pool.keys.storage());
      v.fetch(pool.values.storage());
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << " threw: " << error.what();
      return;
    }
    const auto bits = out.bits();
    for (int64_t i = 0; i < count; ++i) {
      const std::string which = fmt::format("{}, sequence {}", what, i);
      const Alone& one = alone[static_cast<size_t>(i)];
      const auto row = static_cast<ptrdiff_t>(c.h * c.e * each);
      const std::vector<uint64_t> rows(bits.begin() + i * row, bits.begin() + (i + 1) * row);
      expect_same(which, DType::f32, one.out, rows);
      expect_same(which + " keys", c.cache, one.keys,
                  pool.of_sequence(pool.keys, i, c.key_major, c.d));
      expect_same(which + " values", c.cache, one.values,
                  pool.of_sequence(pool.values, i, false, c.e));
      if (failed()) return;
    }
  }
}

enum class With { nothing, slopes, sinks, both };

/// Tests attention_of_pages with queries of any dtype. Lengths may be less than the number of
/// queries. with: ALiBi slopes or sinks.
void check_pages(const Case& c, DType dtype, int64_t m, std::vector<int64_t> lengths,
                 Random& random, With with = With::nothing) {
  if (failed()) return;
  const auto count = static_cast<int64_t>(lengths.size());
  Pool pool(c, count, random);
  TestTensor q(dtype, Place::contiguous, {count, c.h, m, c.d}, 10),
      counts(DType::u32, Place::contiguous, {count}, 11),
      out(dtype, Place::contiguous, {count, c.h, m, c.e}, 12, true),
      slopes(DType::f32, Place::contiguous, {c.h}, 16),
      sinks(DType::f32, Place::contiguous, {c.h}, 17);
  const bool sloped = with == With::slopes || with == With::both,
             sunk = with == With::sinks || with == With::both;
  q.fill(Values::normal, random);
  sinks.fill_with([](int64_t i) -> long double { return i == 1 ? -INFINITY : 1.5L - i; });
  slopes.fill_with([](int64_t i) { return 0.03L * static_cast<long double>(i + 1); });
  counts.fill_bits(
      [&](int64_t i) { return static_cast<uint64_t>(lengths[static_cast<size_t>(i)]); });
  std::vector<uint64_t> expected;
  for (int64_t i = 0; i < count; ++i) {
    const auto k_bits = pool.of_sequence(pool.keys, i, c.key_major, c.d),
               v_bits = pool.of_sequence(pool.values, i, false, c.e);
    TestTensor k(c.cache, Place::contiguous, {1, c.g, pool.positions(), c.d}, 13),
        v(c.cache, Place::contiguous, {1, c.g, pool.positions(), c.e}, 14),
        y(dtype, Place::contiguous, {1, c.h, m, c.e}, 15, true);
    k.fill_bits([&](int64_t at) { return k_bits[static_cast<size_t>(at)]; });
    v.fill_bits([&](int64_t at) { return v_bits[static_cast<size_t>(at)]; });
    const int64_t length = lengths[static_cast<size_t>(i)];
    ConstView rows = q.view(), kv = std::as_const(k).view(), vv = std::as_const(v).view();
    rows.layout = rows.layout.narrow(0, i, 1);
    kv.layout = kv.layout.narrow(2, 0, length);
    vv.layout = vv.layout.narrow(2, 0, length);
    AttentionBias bias;
    if (sloped) bias.slopes = std::as_const(slopes).view();
    if (sunk) bias.sinks = std::as_const(sinks).view();
    targets().front().backend->attention(y.view(), rows, kv, vv, c.params, bias);
    for (uint64_t bit : y.bits()) expected.push_back(bit);
  }
  for (const Target& target : targets()) {
    const std::string what =
        fmt::format("{} {} queries {}{}{} on {}", describe(c), m, name(dtype),
                    sloped ? " with slopes" : "", sunk ? " with sinks" : "", target.name);
    Backend& backend = *target.backend;
    const OnDevice k(backend, pool.keys.storage()), v(backend, pool.values.storage()),
        tables(backend, pool.tables.storage()), lens(backend, counts.storage()),
        x(backend, q.storage()), y(backend, out.storage()), slope(backend, slopes.storage()),
        sink(backend, sinks.storage());
    AttentionBias bias;
    if (sloped) bias.slopes = slope.view(std::as_const(slopes).view());
    if (sunk) bias.sinks = sink.view(std::as_const(sinks).view());
    backend.attention_of_pages(
        y.view(out.view()), x.view(q.view()), k.view(pool.by_position(pool.keys.view())),
        v.view(pool.values.view()), {tables.view(pool.tables.view()), lens.view(counts.view())},
        c.params, bias);
    y.fetch(out.storage());
    expect_same(what, dtype, expected, out.bits());
    if (failed()) return;
  }
}

void check_all(DType cache) {
  Random random(91);
  const AttentionParams plain{.scale = 0.2f};
  // Chunks within one page, and pages that are smaller than a chunk or split it.
  const std::vector<int64_t> some = {256, 48}, all = {256, 512, 64, 48, 5};
  for (const int64_t size : cache == DType::f16 ? all : some) {
    const int64_t entries = size < 64 ? 1200 / size / (size < 10 ? 8 : 2) : 1024 / size;
    const int64_t last = entries * size;
    for (const bool key_major : {true, false}) {
      const Case c{4, 2, 32, 32, 16, size, entries, cache, plain, key_major};
      check_cached(c, 1, {last - 1, 0, last / 2, 3, 4}, random);
      check_cached(c, 3, {last - 3, 0, last / 2 + 1}, random);
      check_cached(c, 20, {last - 20, 1}, random);
      Case sinks = c;
      sinks.sinks = true;
      for (const int64_t each : {1, 3, 20}) {
        check_cached(sinks, each, {last - each, 0, last / 2 + 1}, random, each == 1);
      }
    }
    const Case narrow{6, 2, 24, 40, 8, size, entries, cache, {.scale = 0.3f, .window = 20}};
    check_cached(narrow, 1, {last - 1, 7, last / 3}, random, true);
    check_cached(narrow, 12, {last - 12, 7}, random);
    for (const int64_t m : {1, 4, 11}) {
      check_pages({4, 1, 32, 32, 16, size, entries, cache, plain}, DType::f32, m,
                  {last, 0, 1, last / 2, last - 1}, random);
      check_pages({3, 3, 16, 24, 8, size, entries, cache, {.scale = 0.2f, .causal = false}}, cache,
                  m, {last / 2 + 1, 2}, random);
      for (const With with : {With::slopes, With::sinks, With::both}) {
        check_pages({4, 2, 16, 24, 8, size, entries, cache, plain}, DType::f32, m, {last, 0, 9},
                    random, with);
      }
    }
  }
  check_cached({8, 2, 64, 64, 32, 256, 4, cache, plain}, 1, {1023, 255, 256, 511, 0, 700}, random);
  check_cached({4, 1, 128, 128, 64, 256, 4, cache, plain}, 1, {1023, 255, 256, 257}, random, true);
  check_cached({7, 1, 7, 5, 3, 256, 3, cache, plain}, 2, {600, 254, 256}, random);
}

/// So many sequences of unrelated lengths that a GPU uses the kernels for many sequences.
void check_batches() {
  Random random(93);
  const AttentionParams plain{.scale = 0.2f};
  for (const int64_t count : {2, 9, 40}) {
    std::vector<int64_t> starts;
    for (int64_t i = 0; i < count; ++i) starts.push_back((i * 331 + 255) % 767);
    check_cached({16, 4, 32, 32, 16, 256, 3, DType::f16, plain}, 1, starts, random, count == 9);
    check_cached({8, 4, 64, 32, 16, 256, 3, DType::bf16, {.scale = 0.2f, .window = 270}}, 1, starts,
                 random);
    check_cached({8, 1, 64, 64, 16, 256, 3, DType::f16, plain, true, true}, 1, starts, random);
  }
}

/// Calls that decode_paged.gpu supports, with enough heads to fill 132 multiprocessors: one thread
/// block for each sequence and four heads, or a cluster of two. All heads share a key head, which
/// keeps the caches small.
void check_steps() {
  Random random(94);
  const AttentionParams plain{.scale = 0.2f};
  const std::vector<int64_t> some = {767, 0, 255, 600}, more = {767, 0, 255, 256, 257, 511, 512, 3};
  check_cached({64, 1, 64, 64, 24, 256, 3, DType::f16, plain}, 1, some, random);
  check_cached({64, 1, 64, 64, 32, 256, 3, DType::f16, plain}, 1, more, random, true);
  check_cached({64, 1, 128, 128, 64, 256, 3, DType::f16, plain}, 1, some, random, true);
  check_cached({64, 1, 128, 128, 40, 256, 3, DType::f16, plain}, 1, more, random);
  check_cached({64, 1, 64, 64, 32, 256, 3, DType::f16, plain, true, true}, 1, more, random);
}

enum class Wrong { position, page, shared_page, order };

/// A row whose position or page is out of range isn't stored. Two sequences that write to one page,
/// and positions that don't follow each other, are reported.
void check_outside(const Case& c) {
  Random random(92);
  for (const Wrong wrong : {Wrong::position, Wrong::page, Wrong::shared_page, Wrong::order}) {
    for (const int64_t each : {1, 3, 20}) {
      if (wrong == Wrong::order && each == 1) continue;
      Pool pool(c, 2, random);
      TestTensor qkv(DType::f32, Place::contiguous, {2 * each, (c.h + 2 * c.g) * c.d}, 10),
          positions(DType::u32, Place::contiguous, {2 * each}, 11),
          out(DType::f32, Place::contiguous, {2 * each, c.h * c.e}, 12, true);
      qkv.fill(Values::normal, random);
      // Start of the second sequence.
      const int64_t start = wrong == Wrong::position ? 513 - each : 300;
      positions.fill_bits([&](int64_t i) {
        const bool twice = wrong == Wrong::order && i == 2 * each - 1;
        return static_cast<uint64_t>((i < each ? 0 : start) + i % each - (twice ? 1 : 0));
      });
      const auto table = pool.tables.bits();
      pool.tables.fill_bits([&](int64_t i) {
        if (i == 3 && wrong == Wrong::page) return static_cast<uint64_t>(pool.pages);
        return i == 3 && wrong == Wrong::shared_page ? table[0] : table[static_cast<size_t>(i)];
      });
      const auto values = pool.values.bits(), keys = pool.keys.bits();
      for (const Target& target : targets()) {
        Backend& backend = *target.backend;
        const OnDevice k(backend, pool.keys.storage()), v(backend, pool.values.storage()),
            tables(backend, pool.tables.storage()), cos(backend, pool.cos.storage()),
            sin(backend, pool.sin.storage()), x(backend, qkv.storage()),
            at(backend, positions.storage()), y(backend, out.storage());
        const auto work = [&] {
          backend.cached_attention(y.view(out.view()), x.view(qkv.view()),
                                   {.cos = cos.view(pool.cos.view()),
                                    .sin = sin.view(pool.sin.view()),
                                    .positions = at.view(positions.view()),
                                    .keys = k.view(pool.by_position(pool.keys.view())),
                                    .values = v.view(pool.values.view()),
                                    .tables = tables.view(pool.tables.view()),
                                    .params = c.params});
          backend.synchronize();
        };
        const std::string what = fmt::format("{} rows, heads of {}, wrong {} on {}", each, c.d,
                                             static_cast<int>(wrong), target.name);
        const std::string error = test::error_of(work);
        EXPECT_FALSE(error.empty()) << what;
        if (wrong == Wrong::shared_page) {
          EXPECT_NE(error.find("two sequences write to one page"), std::string::npos)
              << what << ": " << error;
        }
        if (wrong == Wrong::order) {
          EXPECT_NE(error.find("doesn't follow"), std::string::npos) << what << ": " << error;
        }
        k.fetch(pool.keys.storage());
        v.fetch(pool.values.storage());
        // Positions of the first sequence, which is valid, may have been stored.
        const auto own = pool.tables.bits();
        const auto k_after = pool.keys.bits(), v_after = pool.values.bits();
        const int64_t page = c.g * c.size * c.d;
        for (int64_t p = 0; p < pool.pages; ++p) {
          if (static_cast<uint64_t>(p) == own[0]) continue;
          if (wrong == Wrong::order && static_cast<uint64_t>(p) == own[3]) continue;
          for (int64_t i = p * page; i < (p + 1) * page; ++i) {
            const auto e = static_cast<size_t>(i);
            ASSERT_EQ(k_after[e], keys[e]) << what << " page " << p;
            ASSERT_EQ(v_after[e], values[e]) << what << " page " << p;
          }
        }
        std::fill(pool.keys.storage().begin(), pool.keys.storage().end(), std::byte{0});
        pool.keys.fill_bits([&](int64_t i) { return keys[static_cast<size_t>(i)]; });
        pool.values.fill_bits([&](int64_t i) { return values[static_cast<size_t>(i)]; });
      }
    }
  }
}

const bool added = [] {
  for (DType cache : {DType::bf16, DType::f16, DType::f32}) {
    add(fmt::format("paged_attention.{}_cache", name(cache)), [=] { check_all(cache); });
  }
  add("paged_attention.batches", check_batches);
  add("paged_attention.steps", check_steps);
  add("paged_attention.outside", [] {
    check_outside({4, 2, 16, 16, 8, 256, 2, DType::f16, {.scale = 0.2f}});
    check_outside({120, 1, 64, 64, 8, 256, 2, DType::f16, {.scale = 0.2f}});
  });
  return true;
}();

}  // namespace
}  // namespace wick::parity
