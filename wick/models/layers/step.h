#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wick/nn/attention.h"
#include "wick/nn/layers.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::models {

/// The sequences that the rows of an activation belong to, and the scales of adapters.
struct RowSet {
  std::span<const nn::RowRun> sequences;
  Tensor scales = {};  ///< f32 [rows, adapters]; undefined: there are no adapters

  RowSet(std::span<const nn::RowRun> of, const Tensor& of_adapters = {})
      : sequences(of), scales(of_adapters) {}
  RowSet(const std::vector<nn::RowRun>& of) : sequences(of) {}
};
using Runs = const RowSet&;

/// Rows of a step that go through a layer together.
struct StepRows {
  /// Consecutive rows of sequences that have equally many rows each.
  struct Run {
    int64_t first = 0;  ///< index of the run's first row
    nn::SequenceRows rows;
    std::vector<nn::Rotation> rotations;  ///< for each of the model's ropes
    Tensor temperature;                   ///< f32 [t, 1, 1]; undefined if the model has none
    Tensor slots = {};                    ///< u32 [b]: the sequences' rows of LayerCache::states
    std::optional<nn::SequenceRows> chunk = {};  ///< the rows within their chunks, if there are any
    Tensor near;  ///< of encoders: bool [t, t], whether rows are within a window, or undefined

    /// The run's rows of a tensor [rows, ..].
    Tensor of(const Tensor& all) const { return all.narrow(0, first, rows.positions.size(0)); }
  };
  Tensor tokens;
  std::vector<Run> runs;
  RowSet set() const { return {row_runs, scales}; }
  std::vector<nn::RowRun> row_runs;  ///< the sequences of these rows, for Projections
  Tensor scales;                     ///< f32 [t, adapters], see RowSet
  Tensor per_layer;                  ///< [t, layers, size], see PerLayerEmbedding, or undefined
};

/// Calls f(run) for each run and concatenates the results' rows.
template <class F>
Tensor of_runs(const StepRows& rows, const F& f) {
  std::vector<Tensor> ys;
  for (const StepRows::Run& run : rows.runs) ys.push_back(f(run));
  return ys.size() == 1 ? ys.front() : cat(ys, 0);
}

/// The cache pages of a layer, undefined if it has none, and its recurrent states.
struct LayerCache {
  Tensor keys, values;
  std::vector<Tensor> states;  ///< see nn::KvLayer
};

}  // namespace wick::models
