#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "wick/base/export.h"

namespace wick {

/// The sizes of up to eight dims, outermost first. Trivially copyable; rank 0 is a scalar.
class WICK_API Shape {
 public:
  static constexpr int kMaxRank = 8;

  constexpr Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// Errors: more than eight dims; a negative size; a product above 2^62.
  explicit Shape(std::span<const int64_t> dims);

  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int dim) const { return dims_[static_cast<size_t>(dim)]; }
  /// The size of a dim counted from the end: back(0) is the innermost.
  constexpr int64_t back(int i = 0) const { return dims_[static_cast<size_t>(rank_ - 1 - i)]; }
  constexpr int64_t elems() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[static_cast<size_t>(i)];
    return n;
  }
  constexpr std::span<const int64_t> dims() const {
    return {dims_.data(), static_cast<size_t>(rank_)};
  }
  constexpr bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i) {
      if ((*this)[i] != other[i]) return false;
    }
    return true;
  }

  /// A copy with one dim replaced, removed or inserted. There is no overflow check, because the
  /// sizes come from valid shapes.
  Shape with(int dim, int64_t size) const;
  Shape without(int dim) const;
  Shape with_inserted(int dim, int64_t size) const;

  /// "[2,8,64]"
  std::string str() const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// Converts a dim, which may be negative (-1 is the last), to an index from the front. Errors: it
/// is out of range; the message names `op`.
WICK_API int resolve_dim(const char* op, int dim, int rank);
/// Converts dims to a set: bit d for dim d. Errors: a dim is out of range or given twice.
WICK_API uint32_t resolve_dims(const char* op, std::span<const int> dims, int rank);

}  // namespace wick
