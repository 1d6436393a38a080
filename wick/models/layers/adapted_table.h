#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wick/models/adapter.h"
#include "wick/models/layers/step.h"
#include "wick/nn/layers.h"

namespace wick::models {

/// A table that is read by row, and the changes of adapters: a row y becomes y + Σ c · (y' − y),
/// where y' is the row of the adapted table and c the scale of the reading row and the adapter.
class AdaptedTable {
 public:
  AdaptedTable() = default;
  /// Errors: those of Adapter::find_table.
  AdaptedTable(const std::string& name, const Tensor& table, std::span<const Adapter> adapters,
               Device device);

  /// ids u32 [t] → f32 [t, size]. Errors: an id is out of range.
  Tensor operator()(const Tensor& ids, Runs runs) const;
  const Tensor& table() const { return base_.table(); }

 private:
  struct Update {
    int64_t adapter;
    nn::Embedding rows;           // of the factor [rows, rank], or of the whole table
    std::optional<nn::Linear> b;  // [size, rank]; none: `rows` is a whole table
  };
  nn::Embedding base_;
  std::vector<Update> updates_;
};

}  // namespace wick::models
