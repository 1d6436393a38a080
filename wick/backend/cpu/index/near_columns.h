#pragma once

// Neighbouring columns from which, or into which, ids choose. Their rows are pages apart, and rows
// at a power-of-two stride share a few sets of a cache. So a dense copy is used.

#include <cstdlib>
#include <cstring>
#include <memory>

#include "wick/backend/cpu/index/ids.h"

namespace wick::cpu {

/// A dense copy of a strip's columns, of all rows that ids may choose.
template <class T>
class NearColumns {
 public:
  /// Whether a copy costs less than it saves, and stays in a cache.
  static bool pay(const Strip& s, uint64_t places) {
    constexpr int64_t kPage = 4096, kCache = int64_t{4} << 20;
    const int64_t row = s.inner * static_cast<int64_t>(sizeof(T));
    const auto count = static_cast<int64_t>(places);
    return s.inner_step.chosen == sizeof(T) && std::abs(s.step) >= kPage && count <= kCache / row &&
           count / 4 <= s.outer;
  }

  NearColumns(const Strip& s, uint64_t places)
      : from_(s),
        row_(static_cast<size_t>(s.inner)),
        places_(static_cast<size_t>(places)),
        near_(std::make_unique_for_overwrite<T[]>(row_ * places_)) {
    for (size_t p = 0; p < places_; ++p) std::memcpy(&near_[p * row_], far(p), row_ * sizeof(T));
  }

  /// The strip with the copy as `chosen`.
  Strip strip() const {
    Strip s = from_;
    s.chosen = reinterpret_cast<char*>(near_.get());
    s.step = static_cast<int64_t>(row_ * sizeof(T));
    return s;
  }
  /// Writes the copy back.
  void put_back() const {
    for (size_t p = 0; p < places_; ++p) std::memcpy(far(p), &near_[p * row_], row_ * sizeof(T));
  }

 private:
  char* far(size_t place) const { return from_.chosen + static_cast<int64_t>(place) * from_.step; }

  Strip from_;
  size_t row_, places_;
  std::unique_ptr<T[]> near_;
};

}  // namespace wick::cpu
