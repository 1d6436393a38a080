#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "wick/backend/view.h"

namespace wick::cpu {

/// The rows of matrices [n_i, k] of one dtype, one matrix below the other.
class StackedRows {
 public:
  struct Row {
    const uint8_t* data = nullptr;  ///< null: no such row
    int64_t k_stride = 0;           ///< elements from one k to the next
  };

  explicit StackedRows(std::span<const ConstView> parts);

  int64_t count() const { return starts_.back(); }
  /// Rows begin, begin + 1, …, as many as `out` has room for; begin < count().
  void read(int64_t begin, std::span<Row> out) const;
  /// Gives back the pages that rows [begin, end) fill. Only where rows follow each other: what lies
  /// between others isn't ours to give.
  void release(int64_t begin, int64_t end) const;

 private:
  size_t part_of(int64_t row) const;
  const uint8_t* pointer(size_t part, int64_t row) const;

  std::span<const ConstView> parts_;
  std::vector<int64_t> starts_;  // of each part, and the end
};

/// Calls pack(panel) for all panels of `panel_rows` rows, on all threads. With `release`, which is
/// for rows in mapped files, their pages are given back as packing goes on.
void pack_panels(const StackedRows& rows, int64_t panel_rows, int64_t panel_bytes, bool release,
                 const std::function<void(int64_t panel)>& pack);

}  // namespace wick::cpu
