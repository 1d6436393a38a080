// store_in_pages: every row is stored where the tables say, rounded as by cast. Nothing else
// changes, and a row without a valid position is an error.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tests/expect_error.h"
#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/base/error.h"

namespace wick::parity {
namespace {

struct Case {
  Place place;
  int64_t sequences, each, g, d;
  int64_t size, entries;  ///< positions per page, pages per sequence
  int64_t first;          ///< position of a sequence's first row; later rows follow
};

/// The operands of a call. The pages of the sequences are shuffled, and one page belongs to no
/// sequence.
struct Call {
  TestTensor pages, rows, tables, positions;

  Call(const Case& c, DType dtype, DType cache, Random& random)
      : pages(cache, c.place, {c.sequences * c.entries + 1, c.g, c.size, c.d}, 1, true),
        rows(dtype, c.place, {c.sequences * c.each, c.g, c.d}, 2),
        tables(DType::u32, distinct(c.place), {c.sequences, c.entries}, 3),
        positions(DType::u32, distinct(c.place), {c.sequences * c.each}, 4) {
    std::vector<uint64_t> order(static_cast<size_t>(c.sequences * c.entries));
    std::iota(order.begin(), order.end(), uint64_t{1});
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    tables.fill_bits([&](int64_t i) { return order[static_cast<size_t>(i)]; });
    positions.fill_bits(
        [&](int64_t i) { return static_cast<uint64_t>(c.first + i / c.each + i % c.each); });
    pages.fill(Values::normal, random);
  }
  /// Ids must not share memory.
  static Place distinct(Place place) {
    return place == Place::broadcast || place == Place::scalar ? Place::contiguous : place;
  }
};

/// Returns the expected contents of the pages, element by element.
std::vector<uint64_t> expected(const Case& c, const Call& call) {
  std::vector<uint64_t> bits = call.pages.bits();
  const std::vector<float> rows = elements<float>(call.rows);
  const auto tables = call.tables.bits(), positions = call.positions.bits();
  for (int64_t i = 0; i < c.sequences * c.each; ++i) {
    const auto position = static_cast<int64_t>(positions[static_cast<size_t>(i)]);
    const auto page = static_cast<int64_t>(
        tables[static_cast<size_t>(i / c.each * c.entries + position / c.size)]);
    for (int64_t head = 0; head < c.g; ++head) {
      for (int64_t x = 0; x < c.d; ++x) {
        const int64_t to = ((page * c.g + head) * c.size + position % c.size) * c.d + x;
        bits[static_cast<size_t>(to)] =
            encode(call.pages.dtype(), rows[static_cast<size_t>((i * c.g + head) * c.d + x)]);
      }
    }
  }
  return bits;
}

void check(DType dtype) {
  Random random(61);
  const Case list[] = {
      {Place::contiguous, 1, 1, 2, 64, 256, 2, 255}, {Place::contiguous, 5, 1, 3, 40, 16, 3, 30},
      {Place::contiguous, 1, 700, 2, 32, 256, 3, 5}, {Place::contiguous, 3, 41, 1, 7, 5, 12, 2},
      {Place::transposed, 2, 9, 4, 24, 8, 3, 6},     {Place::sliced, 3, 4, 2, 33, 64, 2, 61},
      {Place::stepped, 2, 34, 2, 16, 32, 2, 0},      {Place::scattered, 2, 3, 5, 12, 4, 2, 1},
      {Place::broadcast, 2, 5, 3, 20, 8, 2, 4},      {Place::contiguous, 2, 0, 2, 8, 4, 2, 0},
      {Place::contiguous, 2, 3, 0, 8, 4, 2, 0},      {Place::contiguous, 40, 1, 2, 16, 4, 12, 2},
  };
  for (const Case& c : list) {
    if (!here(c.place, {c.sequences * c.each, c.g, c.d})) continue;
    for (const DType cache : {DType::bf16, DType::f16, DType::f32}) {
      for (const Values values : {Values::normal, Values::special}) {
        Call call(c, dtype, cache, random);
        call.rows.fill(values, random);
        const std::vector<uint64_t> want = expected(c, call), before = call.pages.bits();
        for (const Target& target : targets()) {
          const std::string what = fmt::format(
              "{} rows of {} sequences {} {} to pages of {} {} on {}", c.each, c.sequences,
              name(dtype), name(c.place), c.size, name(cache), target.name);
          const Blame blame(target, what);
          call.pages.wipe();
          call.pages.fill_bits([&](int64_t i) { return before[static_cast<size_t>(i)]; });
          Backend& backend = *target.backend;
          const OnDevice pages(backend, call.pages.storage()), rows(backend, call.rows.storage()),
              tables(backend, call.tables.storage()), positions(backend, call.positions.storage());
          backend.store_in_pages(pages.view(call.pages.view()),
                                 rows.view(std::as_const(call.rows).view()),
                                 tables.view(std::as_const(call.tables).view()),
                                 positions.view(std::as_const(call.positions).view()));
          backend.synchronize();
          pages.fetch(call.pages.storage());
          EXPECT_TRUE(call.pages.surroundings_intact()) << what;
          const std::vector<uint64_t> got = call.pages.bits();
          for (size_t i = 0; i < want.size(); ++i) {
            if (same_bits(cache, want[i], got[i])) continue;
            ADD_FAILURE() << fmt::format("{}: element {} is {:#x}, expected {:#x}", what, i, got[i],
                                         want[i]);
            return;
          }
        }
      }
    }
  }
}

/// Invalid positions: the error names each, and only valid rows are written.
void check_errors() {
  struct Wrong {
    const char* part;  ///< part of the message
    void (*spoil)(const Case&, std::vector<uint64_t>& tables, std::vector<uint64_t>& positions);
  };
  const Wrong wrongs[] = {
      {"outside the cache|id out of range",
       [](const Case& c, auto&, auto& positions) {
         for (int64_t i = 0; i < c.each; ++i) {
           positions[static_cast<size_t>(c.each + i)] =
               static_cast<uint64_t>(c.size * c.entries - c.each + 1 + i);
         }
       }},
      {"outside the cache|id out of range",
       [](const Case& c, auto&, auto& positions) {
         for (int64_t i = 0; i < c.each; ++i) {
           positions[static_cast<size_t>(i)] = 0xffffff00u + static_cast<uint64_t>(i);
         }
       }},
      {"page out of range|id out of range",
       [](const Case& c, auto& tables, auto&) {
         for (int64_t i = 0; i < c.entries; ++i) tables[static_cast<size_t>(i)] = 0xffffffffu;
       }},
      {"two sequences write to one page",
       [](const Case& c, auto& tables, auto&) {
         for (int64_t i = 0; i < c.entries; ++i) {
           tables[static_cast<size_t>(c.entries + i)] = tables[static_cast<size_t>(i)];
         }
       }},
      {"doesn't follow",
       [](const Case& c, auto&, auto& positions) {
         positions[static_cast<size_t>(2 * c.each - 1)] -= 1;
       }},
  };
  Random random(62);
  const Case c{Place::contiguous, 3, 4, 2, 16, 8, 3, 6};
  for (const Wrong& wrong : wrongs) {
    for (const Target& target : targets()) {
      Call call(c, DType::f32, DType::f16, random);
      call.rows.fill(Values::normal, random);
      auto tables = call.tables.bits(), positions = call.positions.bits();
      wrong.spoil(c, tables, positions);
      call.tables.fill_bits([&](int64_t i) { return tables[static_cast<size_t>(i)]; });
      call.positions.fill_bits([&](int64_t i) { return positions[static_cast<size_t>(i)]; });
      Backend& backend = *target.backend;
      const OnDevice pages(backend, call.pages.storage()), rows(backend, call.rows.storage()),
          of(backend, call.tables.storage()), at(backend, call.positions.storage());
      const std::string error = test::error_of([&] {
        backend.store_in_pages(pages.view(call.pages.view()),
                               rows.view(std::as_const(call.rows).view()),
                               of.view(std::as_const(call.tables).view()),
                               at.view(std::as_const(call.positions).view()));
        backend.synchronize();
      });
      const std::string_view parts = wrong.part;
      const size_t bar = parts.find('|');
      const bool says =
          error.find(parts.substr(0, bar)) != std::string::npos ||
          (bar != std::string_view::npos && error.find(parts.substr(bar + 1)) != std::string::npos);
      EXPECT_TRUE(says && error.starts_with("store_in_pages: "))
          << target.name << ": " << error << ", expected " << parts;
      pages.fetch(call.pages.storage());
      EXPECT_TRUE(call.pages.surroundings_intact()) << target.name;
    }
  }
}

const bool added = [] {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    add_row("store_in_pages", name(dtype), [=] { check(dtype); });
  }
  add("store_in_pages.errors", check_errors);
  return true;
}();

}  // namespace
}  // namespace wick::parity
