#pragma once

#include <vector>

#include "wick/models/layers/step.h"

namespace wick::models {

/// grouped_linear of x [t · m, k] with ids u32 [t · m, q], in which each of the runs' t tokens has
/// m rows. Each sequence's rows get the bits that they have alone.
Tensor grouped_of_runs(const Tensor& x, const std::vector<Weight>& weights, const Tensor& ids,
                       Runs runs);

}  // namespace wick::models
