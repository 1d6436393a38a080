#pragma once

// grouped_linear in tiles: the pairs of a row and an expert, ordered by expert on the device.

#include <cstdint>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/grouped.h"
#include "wick/backend/gpu/linear/pack_rows.h"

namespace wick::gpu {

/// The tiles of one call, at most `width` pairs each: kernels/linear/expert_tiles.gpu makes the
/// list. It belongs to the call, in which later kernels read it.
class ExpertTiles {
 public:
  /// Launches the kernel. out: the call's result, dense. with_columns: columns() isn't null.
  ExpertTiles(Gpu& gpu, const ExpertLaunches& launches, uint32_t width, const View& out,
              bool with_columns = false);

  /// The number of tiles, with empty ones; it depends on the numbers of pairs and experts only.
  uint32_t count() const { return count_; }
  ExpertTileList list() const {
    return {tiles_.data<ExpertTile>(), tokens_.data<uint32_t>(), places()};
  }
  ChosenRows rows() const { return {tokens_.data<uint32_t>(), pairs_}; }
  /// See ExpertTilesArgs::columns.
  const uint32_t* columns() const { return with_columns_ ? places() + pairs_ : nullptr; }

  /// Calls launch(first, tiles) for tiles [first, first + tiles), which lie along the grid's y
  /// axis.
  template <class Launch>
  void for_each(Launch&& launch) const {
    constexpr uint32_t kMost = 32768;
    for (uint32_t first = 0; first < count_; first += kMost) {
      launch(first, std::min(kMost, count_ - first));
    }
  }

 private:
  uint32_t* places() const { return tokens_.data<uint32_t>() + pairs_; }

  uint32_t pairs_, count_;
  bool with_columns_;
  Scratch tiles_, tokens_;
};

/// The tiles of a list that aren't empty, and their number, in device memory.
class CompactTiles {
 public:
  /// Launches the kernel.
  CompactTiles(Gpu& gpu, const ExpertTiles& all);

  /// `all` must outlive the list.
  ExpertTileList list() const { return {tiles_.data<ExpertTile>(), all_.tokens, all_.places}; }
  const uint32_t* count() const { return count_.data<uint32_t>(); }

 private:
  ExpertTileList all_;
  Scratch tiles_, count_;
};

}  // namespace wick::gpu
