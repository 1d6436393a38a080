#pragma once

// Collapsed dims of several operands of one shape. Two neighbouring dims are merged if in every
// operand the outer stride is the inner stride times the inner size. Both backends turn the result
// into loops and index arithmetic.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "wick/base/layout.h"

namespace wick {

/// A vector of dims with inline storage. Its capacity is three more than the rank of a shape can
/// be, for callers that cut dims into blocks.
template <class Dim>
class DimList {
 public:
  static constexpr size_t kMost = Shape::kMaxRank + 3;

  DimList() = default;
  DimList(const DimList& other) { *this = other; }
  DimList& operator=(const DimList& other) {
    count_ = other.count_;
    std::copy(other.begin(), other.end(), items_);  // the rest of items_ is uninitialised
    return *this;
  }

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Dim* begin() { return items_; }
  Dim* end() { return items_ + count_; }
  const Dim* begin() const { return items_; }
  const Dim* end() const { return items_ + count_; }
  Dim& operator[](size_t i) { return items_[i]; }
  const Dim& operator[](size_t i) const { return items_[i]; }
  Dim& back() { return items_[count_ - 1]; }
  const Dim& back() const { return items_[count_ - 1]; }
  void push_back(const Dim& dim) { items_[count_++] = dim; }
  void pop_back() { --count_; }
  void erase(Dim* at) {
    std::copy(at + 1, end(), at);
    --count_;
  }
  void resize(size_t count) { count_ = count; }

 private:
  Dim items_[kMost];
  size_t count_ = 0;
};

/// Where sort() places the dims along which operand 0 has stride 0.
enum class RepeatedDims { innermost, outermost };

/// The collapsed dims of N operands. The caller chooses whether offsets and strides count elements
/// or bytes.
template <int N>
struct CollapsedDims {
  using Offsets = std::array<int64_t, static_cast<size_t>(N)>;
  struct Dim {
    int64_t size;
    Offsets stride;
  };

  DimList<Dim> dims;  ///< outermost first, none of size 1
  Offsets start{};    ///< the offset of the first element in each operand
  int64_t elems = 1;

  CollapsedDims() = default;
  explicit CollapsedDims(const Offsets& first) : start(first) {}
  /// All dims of layouts of one shape, or those of the set `which` (bit d for dim d).
  explicit CollapsedDims(const std::array<const Layout*, static_cast<size_t>(N)>& layouts,
                         uint32_t which = ~0u) {
    for (size_t k = 0; k < kCount; ++k) start[k] = layouts[k]->offset();
    const Shape& shape = layouts[0]->shape();
    for (int d = 0; d < shape.rank(); ++d) {
      if ((which >> d & 1) == 0) continue;
      Offsets stride;
      for (size_t k = 0; k < kCount; ++k) stride[k] = layouts[k]->stride(d);
      add(shape[d], stride);
    }
  }

  int rank() const { return static_cast<int>(dims.size()); }
  /// A dim counted from the innermost: inner(0) is the last.
  Dim& inner(int i) { return dims[dims.size() - 1 - static_cast<size_t>(i)]; }
  const Dim& inner(int i) const { return dims[dims.size() - 1 - static_cast<size_t>(i)]; }

  /// Adds a dim inside the others. It is merged with the innermost dim if the strides of every
  /// operand allow that. A dim of size 1 is left out.
  void add(int64_t size, const Offsets& stride) {
    elems *= size;
    if (size != 1) append({size, stride});
  }

  /// Reverses the order of the elements along a dim.
  void reverse(Dim& dim) {
    for (size_t k = 0; k < kCount; ++k) {
      start[k] += (dim.size - 1) * dim.stride[k];
      dim.stride[k] = -dim.stride[k];
    }
  }

  /// Reverses the dims along which operand 0 has a negative stride, then sorts. Callers may process
  /// elements in any order and pass the output as operand 0; neighbours in its memory then have
  /// neighbouring indices.
  void arrange() {
    for (Dim& dim : dims) {
      if (dim.stride[0] < 0) reverse(dim);
    }
    sort();
  }

  /// Sorts the dims by the magnitude of operand 0's stride, the smallest innermost, and merges what
  /// then can be merged. Ties are decided by the next operand whose two strides differ and aren't
  /// 0.
  void sort(RepeatedDims repeats = RepeatedDims::innermost) {
    for (size_t i = 1; i < dims.size(); ++i) {
      const Dim dim = dims[i];
      size_t at = i;
      for (; at > 0 && belongs_inside(dims[at - 1], dim, repeats); --at) dims[at] = dims[at - 1];
      if (at != i) dims[at] = dim;
    }
    const size_t count = dims.size();
    dims.resize(0);
    for (size_t i = 0; i < count; ++i) append(dims[i]);
  }

  /// The offsets of the element with row-major index `index`.
  Offsets at(int64_t index) const {
    Offsets offsets = start;
    for (size_t d = dims.size(); d-- > 0;) {
      const Dim& dim = dims[d];
      const int64_t here = d == 0 ? index : index % dim.size;
      index /= dim.size;
      for (size_t k = 0; k < kCount; ++k) offsets[k] += here * dim.stride[k];
    }
    return offsets;
  }

  /// Calls body(offsets, strides, count) for the elements [begin, end), cut into runs along the
  /// innermost dim.
  template <class F>
  void runs(int64_t begin, int64_t end, F&& body) const {
    static constexpr Offsets kNone{};
    if (dims.empty()) {
      if (begin < end) body(start, kNone, end - begin);
      return;
    }
    const Dim& last = dims.back();
    for (int64_t index = begin; index < end;) {
      const int64_t count = std::min(end - index, last.size - index % last.size);
      body(at(index), last.stride, count);
      index += count;
    }
  }

 private:
  static constexpr auto kCount = static_cast<size_t>(N);

  void append(const Dim& dim) {
    if (!dims.empty()) {
      Dim& last = dims.back();
      bool even = true;
      for (size_t k = 0; k < kCount; ++k) even &= last.stride[k] == dim.stride[k] * dim.size;
      if (even) {
        last.size *= dim.size;
        last.stride = dim.stride;
        return;
      }
    }
    dims.push_back(dim);
  }

  /// Whether `outer`, which is now outside `dim`, must become inner to it.
  static bool belongs_inside(const Dim& outer, const Dim& dim, RepeatedDims repeats) {
    for (size_t k = 0; k < kCount; ++k) {
      const int64_t x = std::abs(outer.stride[k]), y = std::abs(dim.stride[k]);
      if (x == y) continue;
      if (k == 0 && repeats == RepeatedDims::outermost && (x == 0 || y == 0)) return y == 0;
      if (k == 0 || (x != 0 && y != 0)) return x < y;
    }
    return false;
  }
};

}  // namespace wick
