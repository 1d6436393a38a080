#pragma once

// What ops with an id per element share: the types and limits of ids, and the loops over the rows
// of a tensor along one dim.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "wick/backend/cpu/thread_pool.h"
#include "wick/backend/view.h"
#include "wick/base/collapsed_dims.h"
#include "wick/math/fn.h"
#include "wick/op/op.h"

namespace wick::cpu {

/// Elements for which a second thread pays.
inline constexpr int64_t kIndexGrain = 16384;

/// Calls body with a number of the ids' type.
template <class F>
auto with_id_type(DType dtype, F&& body) {
  switch (dtype) {
    case DType::u8:
      return body(uint8_t{});
    case DType::u32:
      return body(uint32_t{});
    case DType::i32:
      return body(int32_t{});
    default:
      return body(int64_t{});
  }
}

/// Ids below this limit name elements of a dim. The largest number of an unsigned type is padding.
template <class Id>
uint64_t id_limit(int64_t size) {
  const auto elems = static_cast<uint64_t>(size);
  if (std::numeric_limits<Id>::is_signed) return elems;
  return std::min(elems, static_cast<uint64_t>(std::numeric_limits<Id>::max()));
}
template <class Id>
constexpr bool is_padding(Id id) {
  return !std::numeric_limits<Id>::is_signed && id == std::numeric_limits<Id>::max();
}

/// Checks all ids. Errors: an id that is neither padding nor inside `dim` of x; the message names
/// the first one.
void check_ids(Op op, const ConstView& ids, const ConstView& x, int dim);
/// Throws the error of the first such id.
[[noreturn]] void fail_id(Op op, const ConstView& ids, const ConstView& x, int dim);

/// Prefetches memory that is read in order, some way ahead. Hardware prefetchers don't see that
/// order, because the accesses that ids choose lie in between.
WICK_FN void prefetch_ahead(const char* at, int64_t bytes) {
  constexpr int64_t kAhead = 4096;
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + kAhead + i);
}

/// Two nested loops over three operands: `walked`, which is accessed element by element; `chosen`,
/// in which id i stands for the element i · step bytes further; and the ids. Strides in bytes.
struct Strip {
  struct Steps {
    int64_t walked, chosen, ids;
  };
  int64_t outer, inner;
  char* walked;
  char* chosen;
  const char* ids;
  Steps outer_step, inner_step;
  int64_t step;

  /// Whether the inner loop runs along the dim, and all operands are dense there.
  template <class T, class Id>
  bool is_dense() const {
    return inner_step.walked == sizeof(T) && inner_step.chosen == 0 &&
           inner_step.ids == sizeof(Id) && step == sizeof(T);
  }
};

/// Prefetches the row some rows after row `o` of a strip, if rows are short: hardware prefetchers
/// see no pattern in a few cache lines of each page.
WICK_FN void prefetch_row_ahead(const Strip& s, int64_t o) {
  constexpr int64_t kRows = 8, kShort = 1024;
  const auto ask = [&](const char* row, int64_t step) __attribute__((always_inline)) {
    const int64_t bytes = s.inner * (step < 0 ? -step : step);
    if (bytes > kShort) return;
    const char* const from = step < 0 ? row - bytes : row;
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i);
  };
  ask(s.walked + (o + kRows) * s.outer_step.walked, s.inner_step.walked);
  ask(s.ids + (o + kRows) * s.outer_step.ids, s.inner_step.ids);
}

/// Cuts an op along `dim` into strips. Rows along the dim are independent of each other; within a
/// row, and within a strip, elements are processed in order.
class Strips {
 public:
  /// Views of the ids' shape, but for `chosen`, which is at least as large and has any size along
  /// `dim`.
  Strips(const ConstView& walked, const ConstView& chosen, const ConstView& ids, int dim);

  int64_t row_length() const { return n_; }
  /// Pieces for threads if rows aren't cut.
  int64_t units() const { return along_ ? rows_.elems : rows_.elems / columns_ * blocks_; }
  /// Calls body(strip) for all strips, on as many threads as pay. With `cut`, rows may be cut.
  template <class F>
  void for_each(bool cut, F&& body) const;
  /// Calls body(strip) for all strips on this thread alone.
  template <class F>
  void for_each_here(F&& body) const {
    some(0, units(), body);
  }
  /// Whether a strip's inner loop runs along the dim; else its outer loop does.
  bool along() const { return along_; }

 private:
  using Offsets = CollapsedDims<3>::Offsets;

  Strip strip(const Offsets& at) const;
  template <class F>
  void some(int64_t begin, int64_t end, F& body) const;

  char* base_[3];
  int64_t bytes_[3];
  CollapsedDims<3> rows_;
  int64_t n_, step_;
  Offsets along_step_;
  bool along_;
  int64_t columns_ = 1, block_ = 1, blocks_ = 1;
};

template <class F>
void Strips::some(int64_t begin, int64_t end, F& body) const {
  if (along_) {
    rows_.runs(begin, end, [&](const Offsets& at, const Offsets& next, int64_t count) {
      Strip s = strip(at);
      s.outer = count, s.inner = n_;
      s.outer_step = {next[0] * bytes_[0], next[1] * bytes_[1], next[2] * bytes_[2]};
      s.inner_step = {along_step_[0] * bytes_[0], 0, along_step_[2] * bytes_[2]};
      body(s);
    });
    return;
  }
  const Offsets next = rows_.rank() == 0 ? Offsets{} : rows_.inner(0).stride;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t column = unit % blocks_ * block_;
    Strip s = strip(rows_.at(unit / blocks_ * columns_ + column));
    s.outer = n_, s.inner = std::min(block_, columns_ - column);
    s.outer_step = {along_step_[0] * bytes_[0], 0, along_step_[2] * bytes_[2]};
    s.inner_step = {next[0] * bytes_[0], next[1] * bytes_[1], next[2] * bytes_[2]};
    body(s);
  }
}

template <class F>
void Strips::for_each(bool cut, F&& body) const {
  const int64_t each = along_ ? n_ : n_ * block_;
  const int64_t pieces = cut && along_ ? (n_ + kIndexGrain - 1) / kIndexGrain : 1;
  if (pieces > 1 && rows_.elems < 4 * ThreadPool::global().threads()) {
    parallel_for(rows_.elems * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t start = unit % pieces * kIndexGrain;
        auto piece = [&](Strip s) {
          s.walked += start * s.inner_step.walked;
          s.ids += start * s.inner_step.ids;
          s.inner = std::min(kIndexGrain, n_ - start);
          body(s);
        };
        some(unit / pieces, unit / pieces + 1, piece);
      }
    });
    return;
  }
  parallel_for(units(), kIndexGrain / std::max<int64_t>(each, 1),
               [&](int64_t begin, int64_t end) { some(begin, end, body); });
}

}  // namespace wick::cpu
