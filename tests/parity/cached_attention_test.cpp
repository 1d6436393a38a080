// cached_attention must give the results and leave the caches, bit by bit, of the CPU's composition
// of rope, stores and attention. Steps have one token or more and end at chunk boundaries. They run
// directly, and as a graph that is captured once and replayed with positions that change on the
// device.

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <limits>

#include "tests/parity/grid.h"
#include "wick/backend/gpu/attention/attention.h"
#include "wick/base/error.h"

namespace wick::parity {
namespace {

struct Case {
  int64_t h, g, d, e, half, capacity;
  DType cache;
  AttentionParams params = {};
  bool key_major = true;  ///< keys are stored as [g, d, capacity + 32], as in KvCache
  bool sinks = false;
};

/// `c` with sinks.
Case with_sinks(Case c) {
  c.sinks = true;
  return c;
}

std::string describe(const Case& c) {
  return fmt::format(
      "cached_attention h {} g {} d {} e {} half {} capacity {} {} window {} cap {}{}{}", c.h, c.g,
      c.d, c.e, c.half, c.capacity, name(c.cache), c.params.window, c.params.soft_cap,
      c.key_major ? "" : " keys by position", c.sinks ? " sinks" : "");
}

/// The operands of a step of t tokens on the host.
struct Step {
  TestTensor qkv, cos, sin, positions, keys, values, out, sinks;
  Step(const Case& c, int64_t t, Values kind, Random& random)
      : qkv(DType::f32, Place::contiguous, {t, (c.h + c.g) * c.d + c.g * c.e}, 1),
        cos(DType::f32, Place::contiguous, {c.capacity, c.half}, 2),
        sin(DType::f32, Place::contiguous, {c.capacity, c.half}, 3),
        positions(DType::u32, Place::contiguous, {t}, 4),
        keys(c.cache, Place::contiguous,
             c.key_major ? Shape{c.g, c.d, c.capacity + 32} : Shape{c.g, c.capacity, c.d}, 5),
        values(c.cache, Place::contiguous, {c.g, c.capacity, c.e}, 6),
        out(DType::f32, Place::contiguous, {t, c.h * c.e}, 7, true),
        sinks(DType::f32, Place::stepped, {c.h}, 8) {
    for (TestTensor* x : {&qkv, &keys, &values}) x->fill(kind, random);
    for (TestTensor* x : {&cos, &sin}) x->fill(Values::normal, random);
    constexpr long double kSinks[] = {1.5L, -INFINITY, -2.0L, 30.0L};
    sinks.fill_with([&](int64_t i) {
      return kind == Values::special && i == 2 ? std::numeric_limits<long double>::quiet_NaN()
                                               : kSinks[i % 4];
    });
  }
  void set_start(int64_t start) {
    positions.fill_bits([&](int64_t i) { return static_cast<uint64_t>(start + i); });
  }
};

/// The operands on a device. On the CPU the caches are those of the host.
struct StepThere {
  Backend& backend;
  const Case& c;
  Step& host;
  OnDevice qkv, cos, sin, positions, keys, values, out, sinks;
  StepThere(Backend& b, const Case& the_case, Step& s)
      : backend(b),
        c(the_case),
        host(s),
        qkv(b, s.qkv.storage()),
        cos(b, s.cos.storage()),
        sin(b, s.sin.storage()),
        positions(b, s.positions.storage()),
        keys(b, s.keys.storage()),
        values(b, s.values.storage()),
        out(b, s.out.storage()),
        sinks(b, s.sinks.storage()) {}

  CachedAttention where() const {
    CachedAttention where{.cos = cos.view(host.cos.view()),
                          .sin = sin.view(host.sin.view()),
                          .positions = positions.view(host.positions.view()),
                          .keys = keys.view(host.keys.view()),
                          .values = values.view(host.values.view()),
                          .params = c.params,
                          .sinks = {}};
    if (c.sinks) where.sinks = sinks.view(std::as_const(host.sinks).view());
    if (c.key_major) {
      where.keys.layout = where.keys.layout.narrow(2, 0, c.capacity).transpose(1, 2);
    }
    where.keys.layout = where.keys.layout.unsqueeze(0);  // one page
    where.values.layout = where.values.layout.unsqueeze(0);
    return where;
  }
  void run() {
    backend.cached_attention(out.view(host.out.view()), qkv.view(host.qkv.view()), where());
  }
  void set_start(int64_t start) {
    host.set_start(start);
    const View there = positions.view(host.positions.view());
    if (there.data != host.positions.view().data) {
      backend.upload(there.data, host.positions.storage().data(), host.positions.storage().size());
    }
  }
  void fetch() {
    keys.fetch(host.keys.storage());
    values.fetch(host.values.storage());
    out.fetch(host.out.storage());
  }
};

using Bits = std::vector<uint64_t>;

void expect_same(const std::string& what, DType dtype, const Bits& expected, const Bits& got) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (same_bits(dtype, expected[i], got[i])) continue;
    ADD_FAILURE() << fmt::format("{}: element {} is {:#x}, expected {:#x}", what, i, got[i],
                                 expected[i]);
    return;
  }
}

/// Compares a target's results (the outputs for each start, then keys and values) with those of the
/// first target, which it stores.
bool agrees(std::vector<Bits>& first, std::vector<Bits> results, const std::string& what,
            DType cache, std::span<const int64_t> starts) {
  if (first.empty()) {
    first = std::move(results);
    return true;
  }
  const size_t keys = starts.size(), values = keys + 1;
  for (size_t i = 0; i < keys; ++i) {
    expect_same(fmt::format("{} start {}", what, starts[i]), DType::f32, first[i], results[i]);
  }
  expect_same(what + " keys", cache, first[keys], results[keys]);
  expect_same(what + " values", cache, first[values], results[values]);
  return !failed();
}

/// Runs steps of t tokens at each of the starts, one after another with the same caches.
void check(const Case& c, int64_t t, std::span<const int64_t> starts, Values kind, bool recorded,
           Random& random) {
  Step step(c, t, kind, random);
  const auto storage_of = [](const TestTensor& x) {
    return std::vector<std::byte>(x.storage().begin(), x.storage().end());
  };
  const auto keys = storage_of(step.keys), values = storage_of(step.values);
  std::vector<Bits> first;
  for (const Target& target : targets()) {
    const std::string what = fmt::format("{} t {} {}{} on {}", describe(c), t, name(kind),
                                         recorded ? " recorded" : "", target.name);
    std::copy(keys.begin(), keys.end(), step.keys.storage().begin());
    std::copy(values.begin(), values.end(), step.values.storage().begin());
    std::vector<Bits> results;
    try {
      StepThere there(*target.backend, c, step);
      std::unique_ptr<DeviceGraph> recording;
      if (recorded) recording = target.backend->record([&] { there.run(); });
      for (int64_t start : starts) {
        there.set_start(start);
        if (recorded) {
          recording->replay();
        } else {
          there.run();
        }
        there.fetch();
        results.push_back(step.out.bits());
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << " threw: " << error.what();
      return;
    }
    results.push_back(step.keys.bits());
    results.push_back(step.values.bits());
    if (!agrees(first, std::move(results), what, c.cache, starts)) return;
  }
}

void check_all(DType cache) {
  Random random(77);
  const int64_t ends[] = {0, 1, 100, 254, 255, 256, 257, 511, 512, 513, 767, 768};
  const int64_t few[] = {0, 254, 256, 513};
  const AttentionParams plain{.scale = 0.2f};
  const auto run = [&](const Case& c, int64_t t, std::span<const int64_t> starts,
                       Values kind = Values::normal, bool recorded = false) {
    if (!failed()) check(c, t, starts, kind, recorded, random);
  };
  run({4, 2, 64, 64, 32, 800, cache, plain}, 1, ends);
  run({4, 2, 64, 64, 32, 800, cache, plain}, 1, ends, Values::normal, true);
  run({4, 1, 32, 32, 16, 800, cache, plain}, 1, ends, Values::special);
  for (int64_t t : {2, 3, 5, 8}) {
    run({3, 1, 32, 32, 16, 800, cache, plain}, t, few);
    run({2, 2, 16, 24, 4, 800, cache, {.scale = 0.2f, .window = 3}}, t, few);
  }
  for (int64_t t : {9, 40, 260}) {
    run({3, 1, 32, 32, 16, 800, cache, plain}, t, few);
  }
  for (int64_t size : {32, 64, 80, 128, 256}) {
    for (int64_t group : {1, 3, 4}) {
      run({group, 1, size, size, size / 2, 520, cache, plain}, 1, few, Values::normal, group == 3);
    }
  }
  for (int64_t window : {1, 2, 100, 255, 256, 257, 600}) {
    for (int64_t t : {1, 3}) {
      run({3, 1, 16, 32, 8, 800, cache, {.scale = 0.2f, .window = window}}, t, ends);
    }
  }
  run({6, 2, 32, 16, 16, 800, cache, {.scale = 0.3f, .soft_cap = 4.0f}}, 1, few);
  run({6, 2, 32, 16, 16, 800, cache, {.scale = 0.3f, .window = 30, .soft_cap = 4.0f}}, 2, few);
  // Keys in position-major order, odd sizes, more heads than a block handles, partly rotated heads.
  run({4, 2, 32, 32, 16, 800, cache, plain, false}, 1, few);
  run({4, 2, 7, 5, 3, 800, cache, plain}, 1, few);
  run({4, 2, 7, 5, 2, 777, cache, plain}, 4, few);
  run({20, 1, 32, 32, 8, 799, cache, plain}, 1, few);
  run({14, 2, 24, 40, 0, 799, cache, plain}, 3, few, Values::normal, true);
  for (int64_t t : {1, 3, 20}) {
    run(with_sinks({4, 2, 64, 64, 32, 800, cache, plain}), t, ends, Values::normal, t == 3);
    run(with_sinks({3, 1, 32, 32, 16, 800, cache, {.scale = 0.2f, .window = 257}}), t, few,
        Values::special);
    run(with_sinks({6, 2, 32, 16, 16, 800, cache, {.scale = 0.3f, .soft_cap = 4.0f}}), t, few);
  }
  run(with_sinks({4, 2, 32, 32, 16, 800, cache, plain, false}), 1, few);
  run(with_sinks({4, 2, 7, 5, 3, 800, cache, plain}), 1, few);
}

/// The fused output projection of attention, compared on each device with the CPU's attention
/// followed by the projection, for steps of t tokens at each of the starts.
void check_product(const Case& c, int64_t t, DType type, std::span<const int64_t> starts,
                   bool recorded, Random& random) {
  constexpr int64_t kRows = 40;
  const int64_t k = c.h * c.e;
  Step step(c, t, Values::normal, random);
  TestTensor matrix(DType::f32, Place::contiguous, {kRows, k}, 8);
  TestTensor residual(DType::f32, Place::contiguous, {t, kRows}, 9);
  TestTensor y(DType::f32, Place::contiguous, {t, kRows}, 10, true);
  for (TestTensor* x : {&matrix, &residual}) x->fill(Values::normal, random);
  const std::vector<std::byte> no_blocks(static_cast<size_t>(bytes_of(type, kRows * k)));
  const std::vector<std::byte> keys(step.keys.storage().begin(), step.keys.storage().end());
  const std::vector<std::byte> values(step.values.storage().begin(), step.values.storage().end());
  std::vector<Bits> first;
  for (const Target& target : targets()) {
    const std::string what = fmt::format("product with {} of {} t {}{} on {}", name(type),
                                         describe(c), t, recorded ? " recorded" : "", target.name);
    std::copy(keys.begin(), keys.end(), step.keys.storage().begin());
    std::copy(values.begin(), values.end(), step.values.storage().begin());
    Backend& backend = *target.backend;
    StepThere there(backend, c, step);
    const OnDevice matrix_there(backend, matrix.storage()), y_there(backend, y.storage()),
        residual_there(backend, residual.storage());
    std::vector<std::byte> host_blocks = no_blocks;
    const OnDevice blocks_there(backend, host_blocks);
    const View blocks =
        blocks_there.view(View{host_blocks.data(), type, Layout::contiguous({kRows, k})});
    backend.quantize(blocks, matrix_there.view(matrix.view()));
    const ConstView part = blocks;
    const auto weight = backend.prepare({&part, 1}, false);
    const CachedAttention where = there.where();
    LinearFusion fusion;
    fusion.input = LinearFusion::Input::attention;
    fusion.attention = &where;
    fusion.add = true;
    fusion.residual = residual_there.view(residual.view());
    const auto work = [&] {
      backend.linear(y_there.view(y.view()), there.qkv.view(step.qkv.view()), *weight, fusion);
    };
    std::vector<Bits> results;
    const auto recording = recorded ? backend.record(work) : nullptr;
    for (int64_t start : starts) {
      there.set_start(start);
      if (recorded) {
        recording->replay();
      } else {
        work();
      }
      y_there.fetch(y.storage());
      results.push_back(y.bits());
    }
    there.fetch();
    results.push_back(step.keys.bits());
    results.push_back(step.values.bits());
    if (!agrees(first, std::move(results), what, c.cache, starts)) return;
  }
}

void check_products(DType cache) {
  Random random(79);
  const AttentionParams plain{.scale = 0.2f};
  const int64_t starts[] = {0, 1, 37, 254, 255, 256, 513, 700};
  const auto run = [&](const Case& c, int64_t t, DType type, bool recorded = false) {
    if (!failed()) check_product(c, t, type, starts, recorded, random);
  };
  run({4, 2, 64, 64, 32, 800, cache, plain}, 1, DType::q8_0);
  run({4, 2, 64, 64, 32, 800, cache, plain}, 1, DType::q4_k, true);  // blocks share a scale
  run({4, 1, 128, 128, 64, 800, cache, plain}, 1, DType::q4_0, true);
  run({3, 1, 32, 32, 16, 800, cache, plain}, 1, DType::q4_0);  // zero blocks
  run({6, 2, 16, 32, 8, 800, cache, {.scale = 0.2f, .window = 30}}, 3, DType::q8_0, true);
  run({12, 1, 32, 96, 8, 800, cache, {.scale = 0.3f, .soft_cap = 4.0f}}, 8, DType::q8_0);
  run({4, 1, 32, 32, 16, 800, cache, plain}, 9, DType::q8_0);
  run({2, 1, 16, 48, 8, 800, cache, plain}, 1, DType::q8_0);  // blocks that span two heads
  run({4, 1, 32, 32, 16, 800, cache, plain, false}, 1, DType::q8_0);
  run(with_sinks({4, 2, 64, 64, 32, 800, cache, plain}), 1, DType::q8_0, true);
  run(with_sinks({4, 1, 32, 32, 16, 800, cache, plain}), 9, DType::q8_0);
}

/// Stages keys and values in shared memory. GPUs without asynchronous copies do so only in this
/// test.
void check_staged(DType cache) {
  gpu::attention_staging = gpu::AttentionStaging::always;
  Random random(78);
  const int64_t ends[] = {0, 1, 7, 8, 100, 254, 255, 256, 257, 511, 512, 513, 767, 768};
  const AttentionParams plain{.scale = 0.2f};
  for (int64_t t : {1, 2, 5, 8}) {
    for (int64_t group : {1, 3, 4}) {
      check({group, 1, 16, 24, 8, 800, cache, plain}, t, ends, Values::normal, t == 2, random);
      check({2 * group, 2, 24, 16, 8, 800, cache, {.scale = 0.2f, .window = 20}}, t, ends,
            Values::special, false, random);
      check(with_sinks({2 * group, 2, 24, 16, 8, 800, cache, plain}), t, ends, Values::special,
            false, random);
      check({group, 1, 16, 64, 8, 800, cache, plain}, t, ends, Values::normal, false, random);
      if (failed()) break;
    }
  }
  // So many heads that clusters don't take them.
  for (const int64_t head : {64, 128}) {
    check({96, 24, head, head, 32, 800, cache, plain}, 1, ends, Values::normal, false, random);
    check({32, 32, head, head, 32, 800, cache, plain}, 1, ends, Values::normal, false, random);
  }
  gpu::attention_staging = gpu::AttentionStaging::where_copies_run_alone;
}

/// Stages them as a stream of pieces, which supports only some sizes. Heads of 64 and 128 elements
/// of 16 bits pass through larger pieces on GPUs with bulk copies.
void check_stream(DType cache) {
  gpu::attention_staging = gpu::AttentionStaging::stream;
  Random random(80);
  const int64_t ends[] = {0, 1, 7, 8, 100, 254, 255, 256, 257, 300, 511, 512, 513, 767, 768};
  const AttentionParams plain{.scale = 0.2f};
  for (int64_t t : {1, 2, 5, 8}) {
    for (int64_t group : {2, 3, 4, 6}) {
      check({group, 1, 64, 64, 32, 800, cache, plain}, t, ends, Values::normal, t == 2, random);
      check({2 * group, 2, 32, 128, 8, 800, cache, {.scale = 0.2f, .window = 20}}, t, ends,
            Values::special, false, random);
      check({group, 1, 96, 32, 8, 800, cache, {.scale = 0.2f, .window = 301}}, t, ends,
            Values::normal, false, random);
      check({2 * group, 2, 64, 64, 32, 800, cache, {.scale = 0.2f, .window = 20}}, t, ends,
            Values::special, false, random);
      check({group, 1, 128, 128, 64, 800, cache, {.scale = 0.2f, .window = 301}}, t, ends,
            Values::normal, t == 1, random);
      check({group, 1, 64, 32, 32, 800, cache, plain}, t, ends, Values::normal, false, random);
      check(with_sinks({2 * group, 2, 64, 64, 32, 800, cache, plain}), t, ends, Values::special,
            false, random);
      if (failed()) break;
    }
  }
  check({4, 1, 128, 128, 64, 800, cache, {.scale = 0.3f, .soft_cap = 4.0f}}, 1, ends,
        Values::normal, true, random);
  gpu::attention_staging = gpu::AttentionStaging::where_copies_run_alone;
}

void check_outside() {
  Random random(5);
  const Case c{4, 2, 16, 16, 8, 40, DType::f16, {.scale = 0.2f}};
  for (int64_t t : {1, 3, 20}) {
    Step step(c, t, Values::normal, random);
    const auto keys = step.keys.bits(), values = step.values.bits();
    for (const Target& target : targets()) {
      for (int64_t start : {int64_t{40}, 41 - t, int64_t{41}, int64_t{4294967295}}) {
        StepThere there(*target.backend, c, step);
        there.set_start(start);
        const auto work = [&] {
          there.run();
          there.backend.synchronize();
        };
        EXPECT_THROW(work(), Error) << target.name << " start " << start << " t " << t;
        there.fetch();
        EXPECT_EQ(step.keys.bits(), keys) << target.name << " start " << start << " t " << t;
        EXPECT_EQ(step.values.bits(), values) << target.name << " start " << start << " t " << t;
      }
    }
  }
}

const bool added = [] {
  for (DType cache : {DType::bf16, DType::f16, DType::f32}) {
    add(fmt::format("cached_attention.{}_cache", name(cache)), [=] { check_all(cache); });
  }
  for (DType cache : {DType::bf16, DType::f16, DType::f32}) {
    add(fmt::format("cached_attention.{}_staged", name(cache)), [=] { check_staged(cache); });
    add(fmt::format("cached_attention.{}_stream", name(cache)), [=] { check_stream(cache); });
    add(fmt::format("cached_attention.{}_product", name(cache)), [=] { check_products(cache); });
  }
  add("cached_attention.outside", check_outside);
  return true;
}();

}  // namespace
}  // namespace wick::parity
