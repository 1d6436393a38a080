#pragma once

// The pages of a cache to which sequences write their next positions.

#include <cstdint>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/block_pages.h"

namespace wick::cpu {

/// Where t rows lie in pages, as Backend::store_in_pages describes.
class PagePlaces {
 public:
  struct Operands {
    const char* op;       ///< for errors
    ConstView tables;     ///< u32 [b, n]; no data: one sequence in one page
    ConstView positions;  ///< u32 [t]
    int64_t pages, size;  ///< number of pages, and positions of each
    int64_t limit;        ///< positions are below this, and below what the tables reach
    bool reads;           ///< whether all pages of a sequence are used, or only those that are
                          ///< written
  };
  /// Errors: those of Backend::store_in_pages, before anything is written.
  explicit PagePlaces(const Operands& operands);

  int64_t sequences() const { return static_cast<int64_t>(firsts_.size()); }
  /// Rows of a sequence.
  int64_t each() const { return each_; }
  /// The position of a sequence's first row.
  int64_t first(int64_t sequence) const { return firsts_[static_cast<size_t>(sequence)]; }
  /// Casts a sequence's rows [1, g, each, width] into pages [p, g, size, width].
  void store(CpuBackend& backend, const View& pages, const ConstView& rows, int64_t sequence) const;
  /// The same for pages of blocks, to which the rows are quantised.
  void store_blocks(CpuBackend& backend, const View& pages, const BlockPages& of,
                    const ConstView& rows, int64_t sequence) const;

 private:
  int64_t page_of(int64_t sequence, int64_t entry) const;
  int64_t position_of(int64_t row) const;
  void check(int64_t sequence) const;
  void check_own_pages() const;

  Operands of_;
  int64_t each_;
  std::vector<int64_t> firsts_;
};

}  // namespace wick::cpu
