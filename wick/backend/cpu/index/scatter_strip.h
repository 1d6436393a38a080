#pragma once

#include <cstring>

#include "wick/backend/cpu/index/near_columns.h"
#include "wick/backend/cpu/index/scatter.h"
#include "wick/math/arithmetic.h"

namespace wick::cpu {

/// Writes or adds an element at the index that its id names.
template <class T, class Id, bool kAdd>
inline void put(const char* from, const char* ids, char* to, int64_t step, Share share) {
  Id id;
  std::memcpy(&id, ids, sizeof id);
  const uint64_t place = static_cast<uint64_t>(id) - share.first;
  if (place >= share.count) return;
  char* const at = to + static_cast<int64_t>(place) * step;
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (kAdd) {
    T sum;
    std::memcpy(&sum, at, sizeof sum);
    value = math::add(sum, value);
  }
  std::memcpy(at, &value, sizeof value);
}

/// A strip's elements in order. Reads each element and its id once; writes, or reads and writes,
/// the chosen element.
template <class T, class Id, bool kAdd>
void scatter_strided(const Strip& s, Share share) {
  const Strip::Steps inner = s.inner_step;
  const int64_t n = s.inner, step = s.step;
  for (int64_t o = 0; o < s.outer; ++o) {
    const char* from = s.walked + o * s.outer_step.walked;
    char* to = s.chosen + o * s.outer_step.chosen;
    const char* ids = s.ids + o * s.outer_step.ids;
    prefetch_row_ahead(s, o);
    for (int64_t i = 0; i < n; ++i) {
      put<T, Id, kAdd>(from, ids, to, step, share);
      from += inner.walked, to += inner.chosen, ids += inner.ids;
    }
  }
}

/// Dense rows along the dim. While one is written out of order, the next is prefetched in order.
template <class T, class Id, bool kAdd>
void scatter_dense(const Strip& s, Share share) {
  constexpr int64_t kLine = 64 / sizeof(T), kSize = sizeof(T), kId = sizeof(Id);
  const int64_t n = s.inner;
  for (int64_t o = 0; o < s.outer; ++o) {
    const char* const from = s.walked + o * s.outer_step.walked;
    char* const to = s.chosen + o * s.outer_step.chosen;
    const char* const ids = s.ids + o * s.outer_step.ids;
    const char* const next = o + 1 < s.outer ? to + s.outer_step.chosen : to;
    int64_t i = 0;
    for (; i + kLine <= n; i += kLine) {
      __builtin_prefetch(next + i * kSize, 1);
      prefetch_ahead(from + i * kSize, 64);
      prefetch_ahead(ids + i * kId, kLine * kId);
      for (int64_t j = i; j < i + kLine; ++j) {
        put<T, Id, kAdd>(from + j * kSize, ids + j * kId, to, kSize, share);
      }
    }
    for (; i < n; ++i) put<T, Id, kAdd>(from + i * kSize, ids + i * kId, to, kSize, share);
  }
}

template <class T, class Id, bool kAdd>
void scatter_strip(const Strip& s, Share share) {
  if (s.is_dense<T, Id>()) return scatter_dense<T, Id, kAdd>(s, share);
  if (!NearColumns<T>::pay(s, share.count)) return scatter_strided<T, Id, kAdd>(s, share);
  const NearColumns<T> columns(s, share.count);
  scatter_strided<T, Id, kAdd>(columns.strip(), share);
  columns.put_back();
}

}  // namespace wick::cpu
