#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "wick/base/shape.h"

namespace wick::cpu {

/// The index space of some dims of K operands, walked row-major: where each index lies in each
/// operand, in elements. Dims are added outermost first; neighbours that every operand strides
/// through evenly become one.
template <int K>
class Walk {
 public:
  using Offsets = std::array<int64_t, K>;

  explicit Walk(const Offsets& start) : start_(start) {}

  void add(int64_t size, const Offsets& strides) {
    total_ *= size;
    if (size == 1) return;
    if (rank_ > 0) {
      const size_t last = static_cast<size_t>(rank_ - 1);
      bool even = true;
      for (size_t k = 0; k < K; ++k) even = even && strides_[last][k] == strides[k] * size;
      if (even) {
        sizes_[last] *= size;
        strides_[last] = strides;
        return;
      }
    }
    sizes_[static_cast<size_t>(rank_)] = size;
    strides_[static_cast<size_t>(rank_)] = strides;
    ++rank_;
  }

  int64_t total() const { return total_; }
  int rank() const { return rank_; }
  /// Size and strides of a merged dim counted from the innermost.
  int64_t size_back(int i) const { return sizes_[static_cast<size_t>(rank_ - 1 - i)]; }
  const Offsets& strides_back(int i) const { return strides_[static_cast<size_t>(rank_ - 1 - i)]; }

  /// Where row-major index `index` lies.
  Offsets at(int64_t index) const {
    Offsets offsets = start_;
    for (int d = rank_ - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      const int64_t here = d == 0 ? index : index % sizes_[i];
      index /= sizes_[i];
      for (size_t k = 0; k < K; ++k) offsets[k] += here * strides_[i][k];
    }
    return offsets;
  }

  /// Calls body(offsets, strides, count) for [begin, end) cut into runs along the innermost dim.
  template <class F>
  void runs(int64_t begin, int64_t end, F&& body) const {
    static constexpr Offsets kNone{};
    if (rank_ == 0) {
      if (begin < end) body(start_, kNone, end - begin);
      return;
    }
    const int64_t inner = size_back(0);
    for (int64_t index = begin; index < end;) {
      const int64_t in_run = std::min(end - index, inner - index % inner);
      body(at(index), strides_back(0), in_run);
      index += in_run;
    }
  }

 private:
  Offsets start_;
  int rank_ = 0;
  int64_t total_ = 1;
  std::array<int64_t, Shape::kMaxRank> sizes_{};
  std::array<Offsets, Shape::kMaxRank> strides_{};
};

/// to[i] = from[i * stride] for elements of 1, 2, 4 or 8 bytes.
inline void gather(void* to, const void* from, int64_t stride, int64_t count, size_t elem_bytes) {
  const auto* source = static_cast<const unsigned char*>(from);
  auto* target = static_cast<unsigned char*>(to);
  const auto bytes = static_cast<int64_t>(elem_bytes);
  const auto each = [&](auto zero) {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(target + i * bytes, source + i * stride * bytes, sizeof zero);
    }
  };
  if (elem_bytes == 1) return each(uint8_t{});
  if (elem_bytes == 2) return each(uint16_t{});
  if (elem_bytes == 4) return each(uint32_t{});
  each(uint64_t{});
}

/// to[i * stride] = from[i].
inline void scatter(void* to, int64_t stride, const void* from, int64_t count, size_t elem_bytes) {
  const auto* source = static_cast<const unsigned char*>(from);
  auto* target = static_cast<unsigned char*>(to);
  const auto bytes = static_cast<int64_t>(elem_bytes);
  const auto each = [&](auto zero) {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(target + i * stride * bytes, source + i * bytes, sizeof zero);
    }
  };
  if (elem_bytes == 1) return each(uint8_t{});
  if (elem_bytes == 2) return each(uint16_t{});
  if (elem_bytes == 4) return each(uint32_t{});
  each(uint64_t{});
}

}  // namespace wick::cpu
