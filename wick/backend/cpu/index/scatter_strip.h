#pragma once

#include <cstring>

#include "wick/backend/cpu/index/scatter.h"
#include "wick/math/arithmetic.h"

namespace wick::cpu {

/// Writes or adds a strip's elements where their ids say, in order: reads each element and its id
/// once, and reads and writes (or writes) what they choose.
template <class T, class Id, bool kAdd, bool kDense>
void scatter_elems(const Strip& s, Share share) {
  const int64_t from_step = kDense ? static_cast<int64_t>(sizeof(T)) : s.inner_step.walked;
  const int64_t to_step = kDense ? 0 : s.inner_step.chosen;
  const int64_t id_step = kDense ? static_cast<int64_t>(sizeof(Id)) : s.inner_step.ids;
  const int64_t step = kDense ? static_cast<int64_t>(sizeof(T)) : s.step;
  for (int64_t o = 0; o < s.outer; ++o) {
    const char* from = s.walked + o * s.outer_step.walked;
    char* to = s.chosen + o * s.outer_step.chosen;
    const char* ids = s.ids + o * s.outer_step.ids;
    for (int64_t i = 0; i < s.inner; ++i) {
      Id id;
      std::memcpy(&id, ids + i * id_step, sizeof id);
      const uint64_t place = static_cast<uint64_t>(id) - share.first;
      if (place >= share.count) continue;
      char* const at = to + i * to_step + static_cast<int64_t>(place) * step;
      T value;
      std::memcpy(&value, from + i * from_step, sizeof value);
      if constexpr (kAdd) {
        T sum;
        std::memcpy(&sum, at, sizeof sum);
        value = math::add(sum, value);
      }
      std::memcpy(at, &value, sizeof value);
    }
  }
}

template <class T, class Id, bool kAdd>
void scatter_strip(const Strip& s, Share share) {
  if (s.is_dense<T, Id>()) return scatter_elems<T, Id, kAdd, true>(s, share);
  scatter_elems<T, Id, kAdd, false>(s, share);
}

}  // namespace wick::cpu
