// Sorting rows. Every element becomes a record of a key, whose order as an unsigned number is the
// wanted one, and its index. Records are sorted by the bytes of their keys, lowest byte first (few
// records by merging), and keys are converted back into elements. If a small part of a row is kept,
// only candidates for that part are collected.
//
// Reads a row once. Sorting moves 8 bytes (16 for f64 and i64) per element and byte of the key, in
// scratch memory. Writes the elements that are kept.

#include "wick/backend/cpu/sort/sort_kernels.h"

#include "wick/backend/cpu/sort/records.h"
#include "wick/backend/cpu/storage_type.h"
#include "wick/math/fn.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// Elements of a dtype as keys, and back. Floats: negative numbers have all bits inverted, others
/// the sign bit; NaN of either sign is the last key. Descending order inverts all bits, but not
/// those of NaN.
template <DType kDType>
struct Keys {
  using Bits = UnsignedOf<info(kDType).block_bytes>;
  static constexpr int kTop = 8 * sizeof(Bits) - 1;
  static constexpr auto kSign = static_cast<Bits>(Bits{1} << kTop);
  static constexpr auto kAll = static_cast<Bits>(~Bits{0});
  /// The largest magnitude that isn't NaN.
  static constexpr Bits kMost = kDType == DType::f8e4m3 ? Bits{0x7e}
                                : kDType == DType::bf16 ? static_cast<Bits>(0x7f80)
                                : kDType == DType::f16  ? static_cast<Bits>(0x7c00)
                                : kDType == DType::f32
                                    ? static_cast<Bits>(0x7f800000)
                                    : static_cast<Bits>(uint64_t{0x7ff0000000000000});

  WICK_FN static Bits of(Bits x, bool descending) {
    const Bits turn = descending ? kAll : Bits{0};
    if constexpr (is_float(kDType)) {
      const Bits flip = (x & kSign) != 0 ? kAll : kSign;
      const bool nan = static_cast<Bits>(x & ~kSign) > kMost;
      return nan ? kAll : static_cast<Bits>(x ^ flip ^ turn);
    } else if constexpr (info(kDType).kind == DTypeKind::signed_integer) {
      return static_cast<Bits>(x ^ kSign ^ turn);
    } else {
      return static_cast<Bits>(x ^ turn);
    }
  }
  WICK_FN static Bits back(Bits key, bool descending) {
    const Bits turn = descending ? kAll : Bits{0};
    const auto x = static_cast<Bits>(key ^ turn);
    if constexpr (is_float(kDType)) {
      return static_cast<Bits>(x ^ ((x & kSign) != 0 ? kSign : kAll));
    } else if constexpr (info(kDType).kind == DTypeKind::signed_integer) {
      return static_cast<Bits>(x ^ kSign);
    } else {
      return x;
    }
  }
};

template <bool kLong>
struct RecordType {
  using type = ShortRecord;
};
template <>
struct RecordType<true> {
  using type = LongRecord;
};
template <DType kDType>
using RecordOf = typename RecordType<(info(kDType).block_bytes > 4)>::type;

constexpr int64_t kBlock = 64;        // keys that are compared together
constexpr int64_t kMostColumns = 16;  // columns that are read together

/// Whether so few elements are kept that the others aren't sorted.
bool selects(const SortRows& s) { return s.n >= 4 * kBlock && s.keep <= s.n / 8; }
/// Room for the records of a selection: collected until it is full, then reduced to `keep`.
int64_t room(const SortRows& s) { return 2 * s.keep + 2 * kBlock; }

bool by_columns(const SortRows& s) {
  const auto size = [](int64_t step) { return step < 0 ? -step : step; };
  return s.lines > 1 && size(s.x_next) < size(s.x_step);
}
/// Columns at a time: as many as stay in L2, together with a cache line of x for each row.
template <class R>
int64_t columns_together(const SortRows& s) {
  const int64_t fit = (int64_t{1} << 19) / (s.n * static_cast<int64_t>(2 * sizeof(R)) + 1);
  const int64_t most = s.lines < kMostColumns ? s.lines : kMostColumns;
  return fit < 4 ? (most < 4 ? most : 4) : fit < most ? fit : most;
}

template <DType kDType>
int64_t scratch_bytes(const SortRows& s) {
  using R = RecordOf<kDType>;
  const int64_t size = sizeof(R);
  if (by_columns(s)) return (columns_together<R>(s) + 1) * s.n * size;
  return 2 * size * (selects(s) ? room(s) : s.n);
}

/// Writes the kept elements of a sorted row.
template <DType kDType>
void write_row(const SortRows& s, int64_t line, const RecordOf<kDType>* sorted) {
  using K = Keys<kDType>;
  using Bits = typename K::Bits;
  if (s.values != nullptr) {
    Bits* to = static_cast<Bits*>(s.values) + line * s.values_next;
    for (int64_t i = 0; i < s.keep; ++i) {
      to[i * s.values_step] = K::back(static_cast<Bits>(sorted[i].key()), s.descending);
    }
  }
  if (s.indices != nullptr) {
    uint32_t* to = s.indices + line * s.indices_next;
    for (int64_t i = 0; i < s.keep; ++i) to[i * s.indices_step] = sorted[i].place();
  }
}

constexpr int64_t kFewKept = 64;

/// The smallest of a block of keys.
template <class Key>
WICK_FN Key least_of(const Key* block) {
  Key least = block[0];
  for (int64_t j = 1; j < kBlock; ++j) least = block[j] < least ? block[j] : least;
  return least;
}

/// The first `keep` of n keys, sorted, for a small `keep`: each key that comes before the last of
/// those kept is inserted among them. keys(i, m, block) writes m <= kBlock keys from i on.
template <class R, class Blocks>
const R* select_few(const SortRows& s, R* kept, const Blocks& keys) {
  typename R::Key block[kBlock];
  int64_t count = 0;
  for (int64_t i = 0; i < s.n; i += kBlock) {
    const int64_t m = s.n - i < kBlock ? s.n - i : kBlock;
    keys(i, m, block);
    const bool full = count == s.keep;
    if (full && m == kBlock && least_of(block) >= kept[count - 1].key()) continue;
    for (int64_t j = 0; j < m; ++j) {
      if (count == s.keep && block[j] >= kept[count - 1].key()) continue;
      const R r = R::of(block[j], static_cast<uint32_t>(i + j));
      int64_t at = count < s.keep ? count++ : count - 1;
      for (; at > 0 && r.before(kept[at - 1]); --at) kept[at] = kept[at - 1];
      kept[at] = r;
    }
  }
  return kept;
}

/// The first `keep` of n keys, sorted. Keys that don't come before the last of those kept are
/// skipped, a block at a time.
template <class R, class Blocks>
const R* select(const SortRows& s, R* records, const Blocks& keys) {
  using Key = typename R::Key;
  if (s.keep <= kFewKept) return select_few(s, records, keys);
  const int64_t most = room(s);
  R* kept = records;
  R* spare = records + most;
  int64_t count = 0;
  bool full = false;
  Key last = 0;
  Key block[kBlock];
  for (int64_t i = 0; i < s.n; i += kBlock) {
    const int64_t m = s.n - i < kBlock ? s.n - i : kBlock;
    keys(i, m, block);
    if (full && m == kBlock && least_of(block) >= last) continue;
    for (int64_t j = 0; j < m; ++j) {
      kept[count] = R::of(block[j], static_cast<uint32_t>(i + j));
      count += !full || block[j] < last;
    }
    if (count + kBlock < most) continue;
    R* const sorted = sort_records(kept, spare, count);
    if (sorted != kept) spare = kept, kept = sorted;
    count = s.keep;
    last = kept[s.keep - 1].key();
    full = true;
  }
  return sort_records(kept, spare, count);
}

/// Rows one after another.
template <DType kDType>
void sort_rows(const SortRows& s, RecordOf<kDType>* records) {
  using K = Keys<kDType>;
  using R = RecordOf<kDType>;
  using Bits = typename K::Bits;
  for (int64_t line = 0; line < s.lines; ++line) {
    const Bits* x = static_cast<const Bits*>(s.x) + line * s.x_next;
    if (selects(s)) {
      write_row<kDType>(s, line, select<R>(s, records, [&](int64_t i, int64_t m, auto* keys) {
                          const Bits* from = x + i * s.x_step;
                          if (s.x_step == 1 && m == kBlock) {
                            for (int64_t j = 0; j < kBlock; ++j)
                              keys[j] = K::of(from[j], s.descending);
                          } else {
                            for (int64_t j = 0; j < m; ++j)
                              keys[j] = K::of(from[j * s.x_step], s.descending);
                          }
                        }));
      continue;
    }
    if (s.x_step == 1) {
      for (int64_t i = 0; i < s.n; ++i) {
        records[i] = R::of(K::of(x[i], s.descending), static_cast<uint32_t>(i));
      }
    } else {
      for (int64_t i = 0; i < s.n; ++i) {
        records[i] = R::of(K::of(x[i * s.x_step], s.descending), static_cast<uint32_t>(i));
      }
    }
    write_row<kDType>(s, line, sort_records(records, records + s.n, s.n));
  }
}

/// Neighbouring columns are read together, and sorted one after another.
template <DType kDType>
void sort_columns(const SortRows& s, RecordOf<kDType>* records) {
  using K = Keys<kDType>;
  using R = RecordOf<kDType>;
  using Bits = typename K::Bits;
  const int64_t together = columns_together<R>(s);
  R* const spare = records + together * s.n;
  for (int64_t line = 0; line < s.lines; line += together) {
    const int64_t count = s.lines - line < together ? s.lines - line : together;
    const Bits* x = static_cast<const Bits*>(s.x) + line * s.x_next;
    for (int64_t i = 0; i < s.n; ++i) {
      for (int64_t c = 0; c < count; ++c) {
        const Bits element = x[i * s.x_step + c * s.x_next];
        records[c * s.n + i] = R::of(K::of(element, s.descending), static_cast<uint32_t>(i));
      }
    }
    for (int64_t c = 0; c < count; ++c) {
      write_row<kDType>(s, line + c, sort_records(records + c * s.n, spare, s.n));
    }
  }
}

template <DType kDType>
void sort_all(const SortRows& s, void* scratch) {
  auto* records = static_cast<RecordOf<kDType>*>(scratch);
  by_columns(s) ? sort_columns<kDType>(s, records) : sort_rows<kDType>(s, records);
}

template <DType kDType>
constexpr void add_dtype(SortKernels& table) {
  if constexpr (!is_block(kDType)) {
    table.run[static_cast<int>(kDType)] = sort_all<kDType>;
    table.bytes[static_cast<int>(kDType)] = scratch_bytes<kDType>;
  }
}
constexpr SortKernels make_table() {
  SortKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr SortKernels sort_kernels = make_table();
static_assert(complete(sort_kernels));

}  // namespace wick::cpu::WICK_ISA
