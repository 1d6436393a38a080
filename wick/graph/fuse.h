#pragma once

#include "wick/graph/graph.h"

namespace wick::graph {

/// Replaces compositions of calls by calls that compute the same bits in one kernel:
/// rms_norm or the gate silu_mul in front of a linear, and an addition behind it.
void fuse(Graph& graph);

}  // namespace wick::graph
