#pragma once

// Sorting records of a key and the index that it had. Indices are distinct, so every algorithm is
// stable and gives the same order. For kernel sources only (see isa.h).

#include <cstdint>

#include "wick/math/fn.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// A key of up to 32 bits above its index, compared as one number.
struct ShortRecord {
  using Key = uint32_t;
  uint64_t bits;

  static ShortRecord of(Key key, uint32_t place) { return {uint64_t{key} << 32 | place}; }
  Key key() const { return static_cast<Key>(bits >> 32); }
  uint32_t place() const { return static_cast<uint32_t>(bits); }
  bool before(const ShortRecord& other) const { return bits < other.bits; }
};
struct LongRecord {
  using Key = uint64_t;
  uint64_t bits;
  uint32_t from, unused;

  static LongRecord of(Key key, uint32_t place) { return {key, place, 0}; }
  Key key() const { return bits; }
  uint32_t place() const { return from; }
  bool before(const LongRecord& other) const {
    return bits != other.bits ? bits < other.bits : from < other.from;
  }
};

/// Sorts a few records in place.
template <class R>
void insertion_sort(R* a, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const R r = a[i];
    int64_t at = i;
    for (; at > 0 && r.before(a[at - 1]); --at) a[at] = a[at - 1];
    a[at] = r;
  }
}

/// Sorts runs of 8 by insertion, then merges pairs of runs from one array into the other and back.
/// Returns the array with the result.
template <class R>
R* merge_sort(R* a, R* b, int64_t n) {
  constexpr int64_t kRun = 8;
  for (int64_t i = 0; i < n; i += kRun) insertion_sort(a + i, n - i < kRun ? n - i : kRun);
  for (int64_t width = kRun; width < n; width *= 2) {
    for (int64_t start = 0; start < n; start += 2 * width) {
      const R* left = a + start;
      const R* const left_end = a + (start + width < n ? start + width : n);
      const R* right = left_end;
      const R* const right_end = a + (start + 2 * width < n ? start + 2 * width : n);
      R* to = b + start;
      while (left < left_end && right < right_end) {
        const bool second = right->before(*left);
        *to++ = second ? *right : *left;
        right += second;
        left += !second;
      }
      while (left < left_end) *to++ = *left++;
      while (right < right_end) *to++ = *right++;
    }
    R* const other = a;
    a = b;
    b = other;
  }
  return a;
}

constexpr int kDigits = 256;

/// Radix sort: one pass for each byte, at `shift`, of the key minus the least key, lowest first;
/// each pass moves records from one array to the other. Returns the array with the result.
template <int kPasses, class R>
R* radix_passes(R* a, R* b, int64_t n, typename R::Key least, const int* shift) {
  uint32_t places[kPasses][kDigits] = {};
  for (int64_t i = 0; i < n; ++i) {
    const auto key = a[i].key() - least;
    for (int p = 0; p < kPasses; ++p) ++places[p][key >> shift[p] & (kDigits - 1)];
  }
  for (int p = 0; p < kPasses; ++p) {
    uint32_t at = 0;
    for (uint32_t& place : places[p]) {
      const uint32_t count = place;
      place = at;
      at += count;
    }
    for (int64_t i = 0; i < n; ++i) {
      const R r = a[i];
      b[places[p][(r.key() - least) >> shift[p] & (kDigits - 1)]++] = r;
    }
    R* const other = a;
    a = b;
    b = other;
  }
  return a;
}

/// Sorts runs of keys that, minus the least key, are equal from bit `shift` on, by their lower
/// bits.
template <class R>
void sort_runs(R* a, R* spare, int64_t n, typename R::Key least, int shift) {
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    bool ordered = true;
    for (; end < n && (a[end].key() - least) >> shift == (a[i].key() - least) >> shift; ++end) {
      ordered = ordered && a[end - 1].before(a[end]);
    }
    if (!ordered && end - i <= 16) {
      insertion_sort(a + i, end - i);
    } else if (!ordered) {
      const R* sorted = merge_sort(a + i, spare, end - i);
      if (sorted != a + i)
        __builtin_memcpy(a + i, sorted, static_cast<size_t>(end - i) * sizeof(R));
    }
    i = end;
  }
}

/// Sorts the n records of `a`; `b` has room for as many. Returns the array with the result.
template <class R>
R* sort_records(R* a, R* b, int64_t n) {
  constexpr int64_t kFew = 160;
  if (n <= kFew) return merge_sort(a, b, n);
  typename R::Key least = a[0].key(), varies = 0;
  for (int64_t i = 1; i < n; ++i) least = a[i].key() < least ? a[i].key() : least;
  for (int64_t i = 0; i < n; ++i) varies |= a[i].key() - least;
  // The bytes in which keys differ; if more than four, the highest: others rarely matter.
  int shifts[sizeof(least)], count = 0;
  for (int shift = 0; shift < static_cast<int>(8 * sizeof least); shift += 8) {
    if ((varies >> shift & 0xff) != 0) shifts[count++] = shift;
  }
  const int* first = count > 4 ? shifts + count - 4 : shifts;
  switch (count) {
    case 0:
      return a;
    case 1:
      return radix_passes<1>(a, b, n, least, first);
    case 2:
      return radix_passes<2>(a, b, n, least, first);
    case 3:
      return radix_passes<3>(a, b, n, least, first);
    case 4:
      return radix_passes<4>(a, b, n, least, first);
    default:
      a = radix_passes<4>(a, b, n, least, first);
      sort_runs(a, b, n, least, *first);
      return a;
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
