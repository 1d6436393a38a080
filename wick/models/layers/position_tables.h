#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "wick/models/decoder_config.h"
#include "wick/nn/attention.h"
#include "wick/nn/rope.h"

namespace wick::models {

/// Tables of what depends on positions: angles of each of a model's ropes, and the temperatures of
/// queries. They grow as positions are first used. Several threads may call at the same time.
class PositionTables {
 public:
  /// Errors: those of nn::RopeTable.
  PositionTables(const DecoderConfig& config, Device device);

  /// Cosines and sines of each rope for positions u32 [t] below `reach`. `is_long`: see
  /// Batch::Run; undefined: the positions' angles are those of sequences that they end.
  std::vector<nn::Rotation> rotations(const Tensor& positions, const Tensor& is_long,
                                      int64_t reach) const;
  /// Rows whose sequences' rows are all in one chunk each, as rows of sequences that begin with
  /// that chunk: positions within the chunk, and tables of its pages. Nothing if the model has no
  /// chunks.
  std::optional<nn::SequenceRows> within_chunks(const Tensor& positions,
                                                const Tensor& tables) const;
  /// The queries' factors f32 [t, 1, 1]; undefined if the model has none.
  Tensor temperatures(const Tensor& positions, int64_t reach) const;

 private:
  /// Chunks of the positions that page tables of some size reach.
  struct Chunks {
    Tensor offsets;  // u32 [positions]: of each position in its chunk
    Tensor numbers;  // u32 [positions]: the chunk of each position
    Tensor pages;    // u32 [chunks, pages of a chunk]: columns of a page table
  };
  const Chunks& chunks_of(int64_t pages) const;

  struct Rope {
    nn::RopeTable table;
    std::optional<nn::RopeTable> of_long;  // of long sequences, if these have other angles
  };

  Device device_;
  int64_t chunk_;
  mutable std::map<int64_t, Chunks> chunks_;  // by the number of pages
  TemperatureConfig temperature_;
  mutable std::mutex mutex_;
  mutable std::vector<Rope> ropes_;
  mutable Tensor factors_;  // f32 [positions]
};

}  // namespace wick::models
