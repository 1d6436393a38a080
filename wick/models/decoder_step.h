#pragma once

// What the layers of one call of a DecoderLm share; only its implementation includes this.

#include <vector>

#include "wick/models/decoder_lm.h"

namespace wick::models {

struct DecoderLm::Step {
  std::vector<StepRows> slices;
  Tensor wanted;                      // rows whose logits are returned; undefined: all rows
  std::vector<nn::RowRun> last_runs;  // runs of the rows that follow the last layer's attention
  Tensor last_scales;                 // and their scales of adapters
  RowSet last_set() const { return {last_runs, last_scales}; }
  std::vector<LayerCache> caches;  // of each layer; those of other stages are undefined
};

}  // namespace wick::models
