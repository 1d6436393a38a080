#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "wick/backend/view.h"

namespace wick::cpu {

/// The rows of matrices [n_i, k] of one dtype, stacked.
class StackedRows {
 public:
  struct Row {
    const uint8_t* data = nullptr;  ///< null past the last row
    int64_t k_stride = 0;           ///< elements from one k to the next
  };

  explicit StackedRows(std::span<const ConstView> parts);

  int64_t count() const { return starts_.back(); }
  /// Reads rows begin, begin + 1, … into all of `out`; begin < count().
  void read(int64_t begin, std::span<Row> out) const;
  /// Releases the whole pages of rows [begin, end), if rows are contiguous: what lies between other
  /// rows belongs to others.
  void release(int64_t begin, int64_t end) const;

 private:
  size_t part_of(int64_t row) const;
  const uint8_t* pointer(size_t part, int64_t row) const;

  std::span<const ConstView> parts_;
  std::vector<int64_t> starts_;  // the first row of each part, and the end
};

/// Calls pack(panel) for all panels of `panel_rows` rows, on all threads. `release` is for rows in
/// mapped files: their pages are released as soon as they are packed.
void pack_panels(const StackedRows& rows, int64_t panel_rows, int64_t panel_bytes, bool release,
                 const std::function<void(int64_t panel)>& pack);

}  // namespace wick::cpu
