// Caches of q8_0 and q4_0: pages must get the blocks that `quantize` makes, and attention over them
// must give the bits of attention over pages of f16 that hold the dequantised values.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/expect_error.h"
#include "tests/parity/grid.h"
#include "wick/base/block_pages.h"
#include "wick/base/error.h"
#include "wick/math/quants.h"

namespace wick::parity {
namespace {

constexpr int64_t kPositions = 256, kValues = 32;

struct Case {
  DType format;
  int64_t h, g, d, e;
  int64_t entries;              ///< pages of a sequence
  std::vector<int64_t> starts;  ///< positions that each sequence has before
  int64_t each;                 ///< rows that are stored, and queries
  AttentionParams params = {.scale = 0.2f};
  bool sinks = false, slopes = false;
  bool latent = false;  ///< values are the last e elements of the keys
  bool recorded = false;
  DType queries = DType::f32;
};

std::string describe(const Case& c) {
  return fmt::format("{} h {} g {} d {} e {} pages {}, {} rows of {} {}{}{}{}{}", name(c.format),
                     c.h, c.g, c.d, c.e, c.entries, c.each, c.starts.size(), name(c.queries),
                     c.sinks ? ", sinks" : "", c.slopes ? ", slopes" : "",
                     c.latent ? ", latent" : "", c.recorded ? ", recorded" : "");
}

/// The blocks of one cache by [page, head, position, block], and the bytes and the f16 elements of
/// its pages.
class Blocks {
 public:
  Blocks(DType format, int64_t pages, int64_t heads, int64_t width, Random& random)
      : format_(format), pages_(pages), heads_(heads), blocks_(width / kValues) {
    bytes_ = format == DType::q8_0 ? 34 : 18;
    data_.resize(static_cast<size_t>(pages * heads * kPositions * blocks_ * bytes_));
    for (uint8_t& byte : data_) byte = static_cast<uint8_t>(random.next());
    for (size_t at = 0; at < data_.size(); at += static_cast<size_t>(bytes_)) {
      const math::f16 scale = math::from_f32<math::f16>(static_cast<float>(random.normal()) / 16);
      std::memcpy(&data_[at], &scale, sizeof scale);
    }
  }
  uint8_t* block(int64_t page, int64_t head, int64_t position, int64_t n) {
    return &data_[static_cast<size_t>(
        (((page * heads_ + head) * kPositions + position) * blocks_ + n) * bytes_)];
  }
  void put(int64_t page, int64_t head, int64_t position, const float* row) {
    for (int64_t n = 0; n < blocks_; ++n) {
      if (format_ == DType::q8_0) {
        math::BlockQ8_0 made;
        math::quantize(row + n * kValues, &made);
        std::memcpy(block(page, head, position, n), &made, sizeof made);
      } else {
        math::BlockQ4_0 made;
        math::quantize(row + n * kValues, &made);
        std::memcpy(block(page, head, position, n), &made, sizeof made);
      }
    }
  }
  uint16_t element(int64_t page, int64_t head, int64_t position, int64_t x) {
    const uint8_t* of = block(page, head, position, x / kValues);
    math::f16 d;
    std::memcpy(&d, of, sizeof d);
    const int64_t i = x % kValues;
    const int quant = format_ == DType::q8_0 ? static_cast<int8_t>(of[2 + i])
                      : i < 16               ? (of[2 + i] & 15) - 8
                                             : (of[2 + i - 16] >> 4) - 8;
    return math::from_f32<math::f16>(math::to_f32(d) * static_cast<float>(quant)).bits;
  }
  /// Byte `at` of the pages, as base/block_pages.h describes them.
  std::vector<uint8_t> key_bytes() {
    std::vector<uint8_t> bytes;
    for (int64_t page = 0; page < pages_; ++page) {
      for (int64_t head = 0; head < heads_; ++head) {
        for (int64_t n = 0; n < blocks_; ++n) {
          for (int64_t p = 0; p < kPositions; ++p) {
            const uint8_t* of = block(page, head, p, n);
            bytes.insert(bytes.end(), of, of + 2);
          }
          for (int64_t byte = 2; byte < bytes_; ++byte) {
            for (int64_t p = 0; p < kPositions; ++p) bytes.push_back(block(page, head, p, n)[byte]);
          }
        }
      }
    }
    return bytes;
  }
  const std::vector<uint8_t>& value_bytes() const { return data_; }

 private:
  DType format_;
  int64_t pages_, heads_, blocks_, bytes_;
  std::vector<uint8_t> data_;
};

void expect_bytes(const std::string& what, const std::vector<uint8_t>& expected,
                  const TestTensor& got) {
  const std::vector<uint64_t> bytes = got.bits();
  ASSERT_EQ(bytes.size(), expected.size()) << what;
  for (size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_EQ(bytes[i], expected[i]) << what << ": byte " << i;
  }
}

void fill_bytes(TestTensor& to, const std::vector<uint8_t>& from) {
  to.fill_bits([&](int64_t i) -> uint64_t { return from[static_cast<size_t>(i)]; });
}

/// What a step reads and writes, on the host.
struct Step {
  const Case& c;
  int64_t count, pages, t;
  std::vector<uint64_t> table;
  Blocks keys, values;
  TestTensor key_pages, value_pages, key_halves, value_halves;
  TestTensor key_rows, value_rows, q, tables, positions, lengths, sinks, slopes, out;

  Step(const Case& the_case, Random& random)
      : c(the_case),
        count(static_cast<int64_t>(the_case.starts.size())),
        pages(count * the_case.entries + 1),
        t(count * the_case.each),
        table(static_cast<size_t>(pages - 1)),
        keys(c.format, pages, c.g, c.d, random),
        values(c.format, pages, c.g, c.e, random),
        key_pages(DType::u8, Place::contiguous, BlockPages::keys(c.format, pages, c.g, c.d), 1),
        value_pages(DType::u8, Place::contiguous, BlockPages::values(c.format, pages, c.g, c.e), 2),
        key_halves(DType::f16, Place::contiguous, {pages, c.g, c.d, kPositions}, 3),
        value_halves(DType::f16, Place::contiguous, {pages, c.g, kPositions, c.e}, 4),
        key_rows(DType::f32, Place::sliced, {t, c.g, c.d}, 5),
        value_rows(DType::f32, Place::contiguous, {t, c.g, c.e}, 6),
        q(c.queries, Place::contiguous, {count, c.h, c.each, c.d}, 7),
        tables(DType::u32, Place::contiguous, {count, c.entries}, 8),
        positions(DType::u32, Place::contiguous, {t}, 9),
        lengths(DType::u32, Place::contiguous, {count}, 10),
        sinks(DType::f32, Place::contiguous, {c.h}, 11),
        slopes(DType::f32, Place::contiguous, {c.h}, 12),
        out(c.queries, Place::contiguous, {count, c.h, c.each, c.e}, 13, true) {
    for (TestTensor* x : {&key_rows, &value_rows, &q}) x->fill(Values::normal, random);
    sinks.fill_with([](int64_t i) -> long double { return i == 1 ? -INFINITY : 1.5L - i; });
    slopes.fill_with([](int64_t i) { return 0.03L * static_cast<long double>(i + 1); });
    std::iota(table.begin(), table.end(), uint64_t{1});
    for (size_t i = table.size(); i > 1; --i) {
      std::swap(table[i - 1], table[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    tables.fill_bits([&](int64_t i) { return table[static_cast<size_t>(i)]; });
    positions.fill_bits([&](int64_t i) { return static_cast<uint64_t>(position(i)); });
    lengths.fill_bits([&](int64_t i) {
      return static_cast<uint64_t>(c.starts[static_cast<size_t>(i)] + c.each);
    });
    fill_bytes(key_pages, keys.key_bytes());
    fill_bytes(value_pages, values.value_bytes());
    store(keys, key_rows, c.d);
    store(values, value_rows, c.e);
    fill_halves();
  }

  int64_t position(int64_t row) const {
    return c.starts[static_cast<size_t>(row / c.each)] + row % c.each;
  }
  int64_t page(int64_t row) const {
    const int64_t entry = row / c.each * c.entries + position(row) / kPositions;
    return static_cast<int64_t>(table[static_cast<size_t>(entry)]);
  }
  void store(Blocks& to, const TestTensor& rows, int64_t width) const {
    const std::vector<double> x = rows.doubles();
    const std::vector<float> floats(x.begin(), x.end());
    for (int64_t row = 0; row < t; ++row) {
      for (int64_t head = 0; head < c.g; ++head) {
        to.put(page(row), head, position(row) % kPositions,
               &floats[static_cast<size_t>((row * c.g + head) * width)]);
      }
    }
  }
  void fill_halves() {
    key_halves.fill_bits([&](int64_t i) -> uint64_t {
      const int64_t p = i % kPositions, x = i / kPositions % c.d, head = i / kPositions / c.d % c.g;
      return keys.element(i / (kPositions * c.d * c.g), head, p, x);
    });
    value_halves.fill_bits([&](int64_t i) -> uint64_t {
      const int64_t x = i % c.e, p = i / c.e % kPositions, head = i / c.e / kPositions % c.g;
      return values.element(i / (kPositions * c.e * c.g), head, p, x);
    });
  }
};

/// Attention of a step on a target, with its blocks or with the f16 that they stand for.
std::vector<uint64_t> attend(Step& s, Backend& backend, bool of_blocks) {
  const Case& c = s.c;
  const auto to_device = [&](TestTensor& x) { return OnDevice(backend, x.storage()); };
  const OnDevice kb = to_device(s.key_pages), vb = to_device(s.value_pages),
                 kh = to_device(s.key_halves), vh = to_device(s.value_halves),
                 kr = to_device(s.key_rows), vr = to_device(s.value_rows), q = to_device(s.q),
                 tables = to_device(s.tables), positions = to_device(s.positions),
                 lengths = to_device(s.lengths), sinks = to_device(s.sinks),
                 slopes = to_device(s.slopes), out = to_device(s.out);
  const auto in = [](const OnDevice& at, const TestTensor& x) { return at.view(x.view()); };
  AttentionBias bias;
  if (c.sinks) bias.sinks = in(sinks, s.sinks);
  if (c.slopes) bias.slopes = in(slopes, s.slopes);
  const PagedSequences sequences{in(tables, s.tables), in(lengths, s.lengths)};
  ConstView k = in(kh, s.key_halves), v = in(vh, s.value_halves);
  k.layout = k.layout.transpose(2, 3);
  if (c.latent) v = {k.data, k.dtype, k.layout.narrow(3, c.d - c.e, c.e)};
  if (of_blocks) {
    k = in(kb, s.key_pages), v = in(vb, s.value_pages);
    if (c.latent) v = {k.data, k.dtype, k.layout.narrow(2, (c.d - c.e) / kValues, c.e / kValues)};
  }
  const auto work = [&] {
    if (of_blocks) {
      backend.store_in_pages(kb.view(s.key_pages.view()), in(kr, s.key_rows), in(tables, s.tables),
                             in(positions, s.positions));
      backend.store_in_pages(vb.view(s.value_pages.view()), in(vr, s.value_rows),
                             in(tables, s.tables), in(positions, s.positions));
    }
    backend.attention_of_pages(out.view(s.out.view()), in(q, s.q), k, v, sequences, c.params, bias);
  };
  if (c.recorded) {
    backend.record(work)->replay();
  } else {
    work();
  }
  out.fetch(s.out.storage());
  kb.fetch(s.key_pages.storage());
  vb.fetch(s.value_pages.storage());
  return s.out.bits();
}

void check(const Case& c, Random& random) {
  if (failed()) return;
  Step s(c, random);
  const std::vector<uint8_t> keys = s.keys.key_bytes(), values = s.values.value_bytes();
  const std::vector<std::byte> old_keys(s.key_pages.storage().begin(), s.key_pages.storage().end());
  const std::vector<std::byte> old_values(s.value_pages.storage().begin(),
                                          s.value_pages.storage().end());
  for (const Target& target : targets()) {
    const std::string what = describe(c) + " on " + target.name;
    std::copy(old_keys.begin(), old_keys.end(), s.key_pages.storage().begin());
    std::copy(old_values.begin(), old_values.end(), s.value_pages.storage().begin());
    const std::vector<uint64_t> expected = attend(s, *target.backend, false);
    const std::vector<uint64_t> got = attend(s, *target.backend, true);
    expect_bytes(what + " keys", keys, s.key_pages);
    expect_bytes(what + " values", values, s.value_pages);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(same_bits(c.queries, expected[i], got[i]))
          << fmt::format("{}: element {} is {:#x}, expected {:#x}", what, i, got[i], expected[i]);
    }
  }
}

void check_all(DType format) {
  Random random(101);
  const std::vector<int64_t> starts = {0, 255, 256, 300, 766};
  for (const bool recorded : {false, true}) {
    check({format, 6, 2, 64, 64, 4, starts, 1, {.scale = 0.2f}, false, false, false, recorded},
          random);
  }
  check({format, 9, 3, 64, 32, 3, {5}, 1}, random);
  check({format, 4, 1, 128, 128, 3, {500, 3}, 1, {.scale = 0.1f, .soft_cap = 20}}, random);
  check({format, 5, 1, 32, 96, 3, {500, 3}, 3, {.scale = 0.1f, .window = 40}}, random);
  check({format, 4, 2, 64, 64, 3, {500, 3}, 1, {.scale = 0.2f}, true}, random);
  check({format, 4, 2, 64, 64, 3, {500, 3}, 20, {.scale = 0.2f}, true}, random);
  check({format, 4, 2, 64, 64, 3, {500, 3}, 2, {.scale = 0.2f}, false, true}, random);
  // Prompts, and queries of other dtypes.
  for (const DType queries : {DType::f32, DType::f16, DType::bf16}) {
    Case c{format, 4, 2, 64, 64, 3, {0, 300}, 70};
    c.queries = queries;
    check(c, random);
    c.each = 2;
    check(c, random);
  }
  check({format, 2, 1, 32, 32, 3, {1}, 300, {.scale = 0.2f}, false, false, false, true}, random);
  // Latent attention: values are elements of the keys.
  for (const int64_t each : {1, 11}) {
    check({format, 4, 1, 96, 64, 3, {500, 3}, each, {.scale = 0.2f}, false, false, true}, random);
  }
}

/// Rows without a valid place aren't stored, and are reported.
void check_outside() {
  Random random(103);
  for (const int64_t start : {512, 600}) {
    const Case c{DType::q8_0, 2, 1, 32, 32, 2, {100}, 1};
    Step s(c, random);
    s.positions.fill_bits([&](int64_t) { return static_cast<uint64_t>(start); });
    for (const Target& target : targets()) {
      Backend& backend = *target.backend;
      const std::vector<uint64_t> before = s.key_pages.bits();
      const OnDevice pages(backend, s.key_pages.storage()), rows(backend, s.key_rows.storage()),
          tables(backend, s.tables.storage()), positions(backend, s.positions.storage());
      const std::string error = test::error_of([&] {
        backend.store_in_pages(pages.view(s.key_pages.view()),
                               rows.view(std::as_const(s.key_rows).view()),
                               tables.view(std::as_const(s.tables).view()),
                               positions.view(std::as_const(s.positions).view()));
        backend.synchronize();
      });
      EXPECT_NE(error.find("store_in_pages"), std::string::npos) << target.name << ": " << error;
      pages.fetch(s.key_pages.storage());
      EXPECT_EQ(s.key_pages.bits(), before) << target.name;
    }
  }
}

const bool added = [] {
  for (const DType format : {DType::q8_0, DType::q4_0}) {
    add(fmt::format("block_cache.{}", name(format)), [=] { check_all(format); });
  }
  add("block_cache.outside", check_outside);
  return true;
}();

}  // namespace
}  // namespace wick::parity
